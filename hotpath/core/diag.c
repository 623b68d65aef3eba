/* diag.c: what went wrong, where, and what to do about it: building struct weir_diag and reading it. Cold paths,
 * @thread any; one diag belongs to one caller.
 *
 * A report looks like
 *     q.sql:12:8: error: unknown column 'amout'
 *       SELECT amout FROM t
 *              ^
 *     hint: did you mean 'amount'?
 * and is put together when it is first asked for, because hints may be added after the error was made. */
#include "hotpath/core/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "hotpath/core/utf8.h"

enum { LINE_BYTES_MAX = 200, NAME_BYTES_MAX = 128 };

struct weir_diag {
	enum weir_err err;
	int line;
	int column;
	size_t offset; /* of the place in its text */
	bool retriable;
	char *text;
	char *file;    /* NULL: none */
	char *excerpt; /* the line and the caret line, each ended by \n; NULL: none */
	char *hint;    /* NULL: none */
	char *report;  /* made by weir_diag_report */
};

/* One line of valid UTF-8: control characters become spaces, bytes that are no UTF-8 become '?'. */
static void clean_line(char *s)
{
	size_t to = 0, bytes = strlen(s);
	while (bytes > 0 && (s[bytes - 1] == '\n' || s[bytes - 1] == '\r'))
		bytes--;
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)s[i];
		s[to++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
	}
	s[to] = '\0';
	size_t bad, at = 0;
	while (!weir_utf8_check((const uint8_t *)s + at, to - at, &bad)) {
		s[at + bad] = '?';
		at += bad + 1;
	}
}

static char *vformat(const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	WEIR_ASSERT(n >= 0);
	char *s = weir_xmalloc((size_t)n + 1);
	(void)vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	clean_line(s);
	return s;
}

enum weir_err weir_diag_set(struct weir_diag **out, enum weir_err err, const char *fmt, ...)
{
	WEIR_ASSERT(err != WEIR_OK);
	if (out == NULL || *out != NULL)
		return err;
	struct weir_diag *dg = weir_xcalloc(1, sizeof *dg);
	va_list ap;
	va_start(ap, fmt);
	dg->err = err;
	dg->text = vformat(fmt, ap);
	va_end(ap);
	dg->retriable = err == WEIR_E_UNAVAILABLE;
	*out = dg;
	return err;
}

/* The line around at and a caret under it; a long line is cut to a part that shows the place. Tabs stay, and the caret
 * line repeats them, so that both lines agree whatever the width of a tab. */
static char *make_excerpt(const char *line, size_t line_bytes, size_t column)
{
	size_t from = column > LINE_BYTES_MAX / 2 && line_bytes > LINE_BYTES_MAX ? column - LINE_BYTES_MAX / 2 : 0;
	while (from > 0 && ((unsigned char)line[from] & 0xc0) == 0x80)
		from--;
	size_t to = line_bytes - from > LINE_BYTES_MAX ? from + LINE_BYTES_MAX : line_bytes;
	while (to < line_bytes && to > from && ((unsigned char)line[to] & 0xc0) == 0x80)
		to--;
	struct weir_buf b = {0};
	weir_buf_puts(&b, from > 0 ? "  ..." : "  ");
	for (size_t i = from; i < to; i++) {
		unsigned char c = (unsigned char)line[i];
		weir_buf_put_byte(&b, (c < 0x20 && c != '\t') || c == 0x7f ? ' ' : c);
	}
	weir_buf_puts(&b, to < line_bytes ? "...\n" : "\n");
	weir_buf_puts(&b, from > 0 ? "     " : "  ");
	for (size_t i = from; i < column && i < to; i++) {
		unsigned char c = (unsigned char)line[i];
		if (c == '\t')
			weir_buf_put_byte(&b, '\t');
		else if ((c & 0xc0) != 0x80)
			weir_buf_put_byte(&b, ' ');
	}
	weir_buf_puts(&b, "^\n");
	weir_buf_put_byte(&b, '\0');
	size_t bad, at = 0;
	while (!weir_utf8_check(b.data + at, b.bytes - 1 - at, &bad)) {
		b.data[at + bad] = '?';
		at += bad + 1;
	}
	return (char *)b.data;
}

const char *weir_text_place(const char *text, size_t bytes, const char *at, int *line, int *column)
{
	const char *start = text;
	*line = 1;
	for (const char *p = text; p < at; p++) {
		if (*p == '\n') {
			(*line)++;
			start = p + 1;
		}
	}
	bool mark = start == text && bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 && at >= text + 3;
	*column = mark ? 0 : 1;
	for (const char *p = start; p < at; p++)
		*column += ((unsigned char)*p & 0xc0) != 0x80;
	return start;
}

size_t weir_diag_offset(const struct weir_diag *dg)
{
	return dg != NULL && dg->line > 0 ? dg->offset : SIZE_MAX;
}

void weir_diag_move(struct weir_diag *dg, const char *text, size_t bytes, const char *at)
{
	WEIR_ASSERT(at >= text && at <= text + bytes);
	const char *line = weir_text_place(text, bytes, at, &dg->line, &dg->column);
	const char *end = memchr(at, '\n', (size_t)(text + bytes - at));
	if (end == NULL)
		end = text + bytes;
	if (end > line && end[-1] == '\r' && end - 1 >= at)
		end--;
	free(dg->excerpt);
	dg->excerpt = make_excerpt(line, (size_t)(end - line), (size_t)(at - line));
	dg->offset = (size_t)(at - text);
	free(dg->report);
	dg->report = NULL;
}

enum weir_err weir_diag_set_at(struct weir_diag **out, enum weir_err err, const char *file, const char *text,
			       size_t bytes, const char *at, const char *hint, const char *fmt, ...)
{
	WEIR_ASSERT(err != WEIR_OK);
	if (out == NULL || *out != NULL)
		return err;
	struct weir_diag *dg = weir_xcalloc(1, sizeof *dg);
	va_list ap;
	va_start(ap, fmt);
	dg->err = err;
	dg->text = vformat(fmt, ap);
	va_end(ap);
	dg->retriable = err == WEIR_E_UNAVAILABLE;
	if (file != NULL) {
		dg->file = weir_xstrdup(file);
		clean_line(dg->file);
	}
	if (hint != NULL) {
		dg->hint = weir_xstrdup(hint);
		clean_line(dg->hint);
	}
	if (text != NULL && at != NULL)
		weir_diag_move(dg, text, bytes, at);
	*out = dg;
	return err;
}

static char *copy_text(const char *s)
{
	return s != NULL ? weir_xstrdup(s) : NULL;
}

struct weir_diag *weir_diag_copy(const struct weir_diag *dg)
{
	if (dg == NULL)
		return NULL;
	struct weir_diag *copy = weir_xcalloc(1, sizeof *copy);
	*copy = *dg;
	copy->text = copy_text(dg->text);
	copy->file = copy_text(dg->file);
	copy->excerpt = copy_text(dg->excerpt);
	copy->hint = copy_text(dg->hint);
	copy->report = NULL;
	return copy;
}

void weir_diag_mark_retriable(struct weir_diag *dg)
{
	if (dg != NULL)
		dg->retriable = true;
}

void weir_diag_set_file(struct weir_diag *dg, const char *file)
{
	if (dg == NULL || dg->file != NULL || file == NULL)
		return;
	dg->file = weir_xstrdup(file);
	clean_line(dg->file);
	free(dg->report);
	dg->report = NULL;
}

void weir_diag_add_hint(struct weir_diag *dg, const char *fmt, ...)
{
	if (dg == NULL || dg->hint != NULL)
		return;
	va_list ap;
	va_start(ap, fmt);
	dg->hint = vformat(fmt, ap);
	va_end(ap);
	free(dg->report);
	dg->report = NULL;
}

const char *weir_diag_text(const struct weir_diag *dg)
{
	return dg == NULL ? "" : dg->text;
}

static char *make_report(const struct weir_diag *dg)
{
	struct weir_buf b = {0};
	if (dg->file != NULL) {
		weir_buf_printf(&b, "%s:", dg->file);
		if (dg->line > 0)
			weir_buf_printf(&b, "%d:%d:", dg->line, dg->column);
		weir_buf_put_byte(&b, ' ');
	} else if (dg->line > 0) {
		weir_buf_printf(&b, "%d:%d: ", dg->line, dg->column);
	}
	weir_buf_printf(&b, "error: %s", dg->text);
	if (dg->excerpt != NULL) {
		weir_buf_put_byte(&b, '\n');
		weir_buf_put(&b, dg->excerpt, strlen(dg->excerpt) - 1);
	}
	if (dg->hint != NULL)
		weir_buf_printf(&b, "\nhint: %s", dg->hint);
	weir_buf_put_byte(&b, '\0');
	return (char *)b.data;
}

const char *weir_diag_report(const struct weir_diag *dg)
{
	if (dg == NULL)
		return "";
	if (dg->report == NULL)
		((struct weir_diag *)dg)->report = make_report(dg); /* a cache: the diag's one owner asks */
	return dg->report;
}

enum weir_err weir_diag_code(const struct weir_diag *dg)
{
	return dg == NULL ? WEIR_OK : dg->err;
}

int weir_diag_line(const struct weir_diag *dg)
{
	return dg == NULL ? 0 : dg->line;
}

int weir_diag_column(const struct weir_diag *dg)
{
	return dg == NULL ? 0 : dg->column;
}

int weir_diag_is_retriable(const struct weir_diag *dg)
{
	return dg != NULL && dg->retriable;
}

void weir_diag_destroy(struct weir_diag *dg)
{
	if (dg == NULL)
		return;
	free(dg->text);
	free(dg->file);
	free(dg->excerpt);
	free(dg->hint);
	free(dg->report);
	free(dg);
}

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Edit distance with swaps of neighbours (so "amuont" is one away from "amount"), ignoring ASCII case; more than limit
 * is reported as limit + 1. */
static size_t edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes, size_t limit)
{
	size_t row[3][NAME_BYTES_MAX + 1];
	size_t gap = a_bytes > b_bytes ? a_bytes - b_bytes : b_bytes - a_bytes;
	if (a_bytes > NAME_BYTES_MAX || b_bytes > NAME_BYTES_MAX || gap > limit)
		return limit + 1;
	for (size_t j = 0; j <= b_bytes; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= a_bytes; i++) {
		size_t *cur = row[i % 3], *prev = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		cur[0] = i;
		for (size_t j = 1; j <= b_bytes; j++) {
			char ca = fold(a[i - 1]), cb = fold(b[j - 1]);
			size_t d = prev[j - 1] + (ca != cb);
			if (prev[j] + 1 < d)
				d = prev[j] + 1;
			if (cur[j - 1] + 1 < d)
				d = cur[j - 1] + 1;
			if (i > 1 && j > 1 && ca == fold(b[j - 2]) && fold(a[i - 2]) == cb && before[j - 2] + 1 < d)
				d = before[j - 2] + 1;
			cur[j] = d;
		}
	}
	return row[a_bytes % 3][b_bytes];
}

const char *weir_nearest_name(const char *name, size_t name_bytes, const char *const *names, size_t count)
{
	size_t limit = name_bytes / 3;
	const char *best = NULL;
	if (limit == 0)
		limit = 1; /* a name of one or two letters may differ in one */
	for (size_t i = 0; i < count; i++) {
		size_t d = edit_distance(name, name_bytes, names[i], strlen(names[i]), limit);
		if (d <= limit && (d < name_bytes || name_bytes == 0)) {
			best = names[i];
			if (d == 0)
				break;
			limit = d - 1;
		}
	}
	return best;
}
