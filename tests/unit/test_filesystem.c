/* test_filesystem.c: lines of files as records: line ends, quotes over lines, limits, folders, reading on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/filesystem.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/weir-test-fs-XXXXXX");
	return mkdtemp(dir) == NULL;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", dir);
	return system(command);
}

static char *write_bytes(const char *name, const char *data, size_t bytes)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
	return path;
}

static char *write_file(const char *name, const char *text)
{
	return write_bytes(name, text, strlen(text));
}

static struct weir_stream_log *open_log(const char *path, enum weir_format_kind kind, uint32_t record_bytes_max)
{
	static struct weir_format_options format;
	struct weir_stream_log *log = NULL;
	struct weir_diag *dg = NULL;
	format = (struct weir_format_options){.kind = kind};
	struct weir_filesystem_spec spec = {path, &format, record_bytes_max};
	if (weir_filesystem_open(&log, &spec, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	return log;
}

/* Everything of a partition as "line:text|line:text|". */
static const char *read_all(struct weir_stream_log *log, uint32_t p)
{
	static struct weir_buf b;
	int64_t ts;
	b.bytes = 0;
	while (log->ops->peek(log, p, &ts, NULL) == WEIR_POLL_UNIT) {
		struct weir_unit *u = NULL;
		assert_int_equal(log->ops->take(log, p, &u, NULL), WEIR_OK);
		assert_int_equal(u->partition, p);
		for (uint32_t i = 0; i < u->count; i++) {
			assert_true(u->records[i].timestamp > INT64_C(1000000000000));
			weir_buf_printf(&b, "%lld:", (long long)u->records[i].offset);
			weir_buf_put(&b, u->records[i].value, u->records[i].value_bytes);
			weir_buf_put_byte(&b, '|');
		}
		log->ops->release(log, u);
	}
	assert_int_equal(log->ops->peek(log, p, &ts, NULL), WEIR_POLL_BOUND);
	weir_buf_put_byte(&b, 0);
	return (const char *)b.data;
}

static void expect(const char *text, enum weir_format_kind kind, uint32_t max, const char *records, int64_t lines)
{
	struct weir_stream_log *log = open_log(write_file("in", text), kind, max);
	int64_t first, end;
	log->ops->range(log, 0, &first, &end);
	assert_int_equal(first, 0);
	assert_int_equal(end, lines);
	assert_string_equal(read_all(log, 0), records);
	log->ops->close(log);
}

static void test_lines(void **state)
{
	(void)state;
	expect("", WEIR_FORMAT_JSON, 0, "", 0);
	expect("{\"a\":1}\n{\"a\":2}\n", WEIR_FORMAT_JSON, 0, "0:{\"a\":1}|1:{\"a\":2}|", 2);
	expect("\xef\xbb\xbf{}\r\n\r\n  \n[1]", WEIR_FORMAT_JSON, 0, "0:{}|3:[1]|", 4);
	expect("\"a\nb\"\n", WEIR_FORMAT_JSON, 0, "0:\"a|1:b\"|", 2); /* JSON lines never join */
	expect("0123456789x\nok\n", WEIR_FORMAT_JSON, 10, "0:0123456789x|1:ok|", 2);
	expect("0123456789abcdef\nok\n0123456789\n", WEIR_FORMAT_JSON, 10, "0:0123456789a|1:ok|2:0123456789|", 3);
	expect("0123456789abcdef", WEIR_FORMAT_JSON, 10, "0:0123456789a|", 1);
}

static void test_csv(void **state)
{
	(void)state;
	expect("a,b\n\"x\ny\",2\n3,\"\"\"q\n\n,\"\"\"\nlast", WEIR_FORMAT_CSV, 0,
	       "0:a,b|1:\"x\ny\",2|3:3,\"\"\"q\n\n,\"\"\"|6:last|", 7);
	/* A quote inside a field opens nothing. */
	expect("x,5\" pipe,y\nz\n", WEIR_FORMAT_CSV, 0, "0:x,5\" pipe,y|1:z|", 2);
	/* One that never closes takes its own line alone. */
	expect("\"open,1\nb,2\nc,3\n", WEIR_FORMAT_CSV, 0, "0:\"open,1|1:b,2|2:c,3|", 3);
	expect("\"open,1\nb,2\n", WEIR_FORMAT_CSV, 9, "0:\"open,1|1:b,2|", 2);
	struct weir_buf b = {0};
	weir_buf_puts(&b, "\"open\n");
	for (int i = 0; i < 2000; i++)
		weir_buf_puts(&b, "n\n");
	weir_buf_puts(&b, "\"\n");
	struct weir_stream_log *log = open_log(write_bytes("in", (const char *)b.data, b.bytes), WEIR_FORMAT_CSV, 0);
	assert_int_equal(strncmp(read_all(log, 0), "0:\"open|1:n|2:n|", 16), 0);
	log->ops->close(log);
	weir_buf_fini(&b);
	struct weir_format_options format = {
		.kind = WEIR_FORMAT_CSV, .csv_delimiter = ';', .csv_quote = '\'', .csv_escape = '\\'};
	struct weir_filesystem_spec spec = {write_file("in", "a;'b\\'\nc'\n\"d\n"), &format, 0};
	assert_int_equal(weir_filesystem_open(&log, &spec, NULL), WEIR_OK);
	assert_string_equal(read_all(log, 0), "0:a;'b\\'\nc'|2:\"d|");
	log->ops->close(log);
	format.csv_disable_quote = true;
	assert_int_equal(weir_filesystem_open(&log, &spec, NULL), WEIR_OK);
	assert_string_equal(read_all(log, 0), "0:a;'b\\'|1:c'|2:\"d|");
	log->ops->close(log);
}

static void test_folder(void **state)
{
	(void)state;
	char path[128];
	uint32_t partition = 7;
	int64_t ts;
	snprintf(path, sizeof path, "%s/sub", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file("b.jsonl", "b0\nb1\n");
	write_file("a.jsonl", "a0\n");
	write_file(".hidden", "no\n");
	write_file("_SUCCESS", "no\n");
	write_file("empty", "");
	snprintf(path, sizeof path, "file://%s", dir);
	struct weir_stream_log *log = open_log(path, WEIR_FORMAT_JSON, 0);
	assert_int_equal(log->ops->partitions(log), 3);
	assert_string_equal(log->ops->topic(log, 1, &partition), "b.jsonl");
	assert_int_equal(partition, 0);
	assert_string_equal(read_all(log, 0), "0:a0|");
	assert_string_equal(read_all(log, 1), "0:b0|1:b1|");
	assert_int_equal(log->ops->peek(log, 2, &ts, NULL), WEIR_POLL_BOUND);
	assert_int_equal(log->ops->event_fd(log), -1);
	log->ops->close(log);
	struct weir_diag *dg = NULL;
	struct weir_format_options format = {.kind = WEIR_FORMAT_JSON};
	snprintf(path, sizeof path, "%s/sub", dir);
	struct weir_filesystem_spec spec = {path, &format, 0};
	assert_int_equal(weir_filesystem_open(&log, &spec, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "holds no files"));
	weir_diag_destroy(dg);
	dg = NULL;
	spec.path = "/nonexistent/x";
	assert_int_equal(weir_filesystem_open(&log, &spec, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "/nonexistent/x"));
	weir_diag_destroy(dg);
}

/* Units of many lines, over block ends, and reading on at every one of them. */
static void test_units_and_seek(void **state)
{
	(void)state;
	struct weir_buf b = {0};
	enum { LINES = 30000 };
	for (int i = 0; i < LINES; i++)
		weir_buf_printf(&b, "{\"n\":%d,\"pad\":\"%0*d\"}\n", i, 1 + i % 60, 0);
	char *path = write_bytes("in", (const char *)b.data, b.bytes);
	weir_buf_fini(&b);
	struct weir_stream_log *log = open_log(path, WEIR_FORMAT_JSON, 0), *again;
	int64_t line = 0, ts;
	while (log->ops->peek(log, 0, &ts, NULL) == WEIR_POLL_UNIT) {
		struct weir_unit *u, *v;
		int n;
		assert_int_equal(ts, line);
		assert_int_equal(log->ops->take(log, 0, &u, NULL), WEIR_OK);
		assert_true(u->count == WEIR_BATCH_ROWS || line + u->count == LINES);
		for (uint32_t i = 0; i < u->count; i++) {
			assert_int_equal(u->records[i].offset, line + i);
			assert_int_equal(sscanf((const char *)u->records[i].value, "{\"n\":%d", &n), 1);
			assert_int_equal(n, line + i);
		}
		again = open_log(path, WEIR_FORMAT_JSON, 0);
		assert_int_equal(again->ops->seek(again, 0, line, NULL), WEIR_OK);
		assert_int_equal(again->ops->take(again, 0, &v, NULL), WEIR_OK);
		assert_int_equal(v->count, u->count);
		assert_int_equal(v->records[0].offset, line);
		assert_memory_equal(v->records[0].value, u->records[0].value, u->records[0].value_bytes);
		again->ops->release(again, v);
		again->ops->close(again);
		line += u->count;
		assert_int_equal(u->next_offset, line);
		log->ops->release(log, u);
	}
	assert_int_equal(line, LINES);
	log->ops->close(log);
	struct weir_diag *dg = NULL;
	again = open_log(path, WEIR_FORMAT_JSON, 0);
	assert_int_equal(again->ops->seek(again, 0, LINES, NULL), WEIR_OK);
	assert_int_equal(again->ops->peek(again, 0, &ts, NULL), WEIR_POLL_BOUND);
	/* Back again, as another assignment of a group may go. */
	struct weir_unit *back;
	assert_int_equal(again->ops->seek(again, 0, LINES - 700, NULL), WEIR_OK);
	assert_int_equal(again->ops->take(again, 0, &back, NULL), WEIR_OK);
	assert_int_equal(back->count, 700);
	assert_int_equal(back->records[0].offset, LINES - 700);
	again->ops->release(again, back);
	assert_int_equal(again->ops->seek(again, 0, LINES + 1, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "became shorter"));
	weir_diag_destroy(dg);
	again->ops->close(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_csv, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_units_and_seek, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
