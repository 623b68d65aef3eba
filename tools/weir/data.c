/* data.c: the command's stdout: one buffer over write(2), JSON strings and base64 into it, and what happens when the
 * reader goes away (quiet end) or the disk is full (an error). Main thread. */
#include "tools/weir/cli.h"
#include "hotpath/format/base64.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t buffer[1 << 16];
static size_t used;
static int failed; /* errno of the write that failed */

static bool (*given_up)(void); /* asked while the reader is slow */

void weir_data_give_up_when(bool (*ask)(void))
{
	given_up = ask;
}

/* Waits until stdout takes bytes. A write into a full pipe would wait beyond every signal. */
static void wait_for_room(void)
{
	enum { ASK_MS = 100 };
	struct pollfd pf = {.fd = STDOUT_FILENO, .events = POLLOUT};
	while (poll(&pf, 1, ASK_MS) <= 0)
		if (given_up != NULL && given_up()) {
			failed = EPIPE;
			return;
		}
}

static void write_all(const uint8_t *p, size_t bytes)
{
	static int is_file = -1;
	struct stat st;
	if (is_file < 0)
		is_file = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	while (bytes != 0 && failed == 0) {
		if (!is_file)
			wait_for_room();
		if (failed != 0)
			break;
		ssize_t n = write(STDOUT_FILENO, p, is_file || bytes < PIPE_BUF ? bytes : PIPE_BUF);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			failed = errno;
		if (n > 0) {
			p += n;
			bytes -= (size_t)n;
		}
	}
}

static void flush(void)
{
	write_all(buffer, used);
	used = 0;
}

void weir_data_put(const void *p, size_t bytes)
{
	if (failed != 0 || bytes == 0)
		return;
	if (bytes > sizeof buffer - used)
		flush();
	if (bytes > sizeof buffer) {
		write_all(p, bytes);
		return;
	}
	memcpy(buffer + used, p, bytes);
	used += bytes;
}

void weir_data_puts(const char *s)
{
	weir_data_put(s, strlen(s));
}

void weir_data_printf(const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n > 0)
		weir_data_put(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

bool weir_data_closed(void)
{
	return failed != 0;
}

int weir_data_end(int code)
{
	flush();
	if (failed == 0 || failed == EPIPE)
		return code;
	fprintf(stderr, "weir: cannot write to stdout: %s\n", strerror(failed));
	return WEIR_EXIT_FAILED;
}

/* Bytes of the well-formed UTF-8 sequence at p, 0 where there is none. */
static size_t utf8_length(const uint8_t *p, size_t bytes)
{
	uint8_t c = p[0];
	if (c < 0x80)
		return 1;
	size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
	if (n == 0 || n > bytes)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
	    (c == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* A control character, quote or backslash as JSON writes it. */
static void put_escape(uint8_t c)
{
	static const char hex[] = "0123456789abcdef";
	char out[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
	char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c == '"' || c == '\\' ? (char)c : 0;
	if (letter != 0) {
		out[1] = letter;
		weir_data_put(out, 2);
	} else {
		weir_data_put(out, 6);
	}
}

void weir_data_json(const uint8_t *p, size_t bytes)
{
	weir_data_put("\"", 1);
	while (bytes != 0) {
		size_t plain = 0;
		while (plain < bytes && p[plain] >= 0x20 && p[plain] < 0x7f && p[plain] != '"' && p[plain] != '\\')
			plain++;
		weir_data_put(p, plain);
		p += plain;
		bytes -= plain;
		if (bytes == 0)
			break;
		size_t n = utf8_length(p, bytes);
		if (n == 0)
			weir_data_put("\xef\xbf\xbd", 3);
		else if (n == 1)
			put_escape(*p);
		else
			weir_data_put(p, n);
		n = n == 0 ? 1 : n;
		p += n;
		bytes -= n;
	}
	weir_data_put("\"", 1);
}

void weir_data_base64(const uint8_t *p, size_t bytes)
{
	enum { CHUNK = 3072 };
	char text[CHUNK / 3 * 4];
	while (bytes != 0) {
		size_t n = bytes < CHUNK ? bytes : CHUNK;
		weir_data_put(text, weir_base64_encode(p, n, text));
		p += n;
		bytes -= n;
	}
}
