/* test_beside.c: the whole engine on a stream beside a table of recorded topics, against a naive twin: rows wait for
 * their table, pass it once it is at its bound, and find their rows in a copy of it; keys and rows are short, long,
 * NULL or missing. Results are the same on any number of workers, and those of a key leave in the order of its
 * partition's rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>
#include <weir/weir_sql.h>

#include "hotpath/core/base.h"
#include "io/recorded/recorded.h"
#include "tests/support/tmpdir.h"
#include "tests/support/topic_digest.h"

enum { PARTITIONS = 3, KEYS = 700, ROWS = 20000, START = 1000000 };

/* What the table says of a key: none, one with NULLs, one of more bytes than lie beside a key, one of many. */
static const char *name_of(uint32_t k)
{
	static char text[400];
	if (k % 7 == 0)
		return NULL;
	size_t bytes = k % 31 == 1 ? 300 : k % 5 == 1 ? 60 : k % 13;
	memset(text, 'a' + (int)(k % 26), bytes);
	if (bytes > 2 && k % 11 == 0)
		text[1] = '"';
	text[bytes] = 0;
	return text;
}
static bool is_there(uint32_t k)
{
	return k % 6 != 3;
}
static const char *key_of(uint32_t k)
{
	static char text[128];
	snprintf(text, sizeof text, k % 29 == 2 ? "k%u-of-a-length-that-does-not-lie-beside-a-row" : "k%u", k);
	return text;
}
static uint32_t key_at(uint32_t i)
{
	return i * 2654435761u % KEYS;
}

static void put(struct weir_topic_writer *w, uint32_t p, const char *key, const char *value, int64_t ts)
{
	struct weir_out r = {.key = {key, key ? strlen(key) : 0}, .value = {value, strlen(value)}, .timestamp = ts};
	assert_int_equal(weir_topic_writer_put(w, p, &r, NULL), WEIR_OK);
}

/* As JSON, quotes escaped. */
static void print_text(char *to, size_t room, const char *text)
{
	size_t n = 0;
	to[n++] = '"';
	for (; *text && n + 3 < room; text++) {
		if (*text == '"')
			to[n++] = '\\';
		to[n++] = *text;
	}
	to[n++] = '"';
	to[n] = 0;
}

static void make_topics(const char *dir)
{
	struct weir_topic_writer *w;
	char text[1024], name[820];
	assert_int_equal(weir_topic_writer_open(&w, dir, "t", PARTITIONS, WEIR_CODEC_NONE, NULL), WEIR_OK);
	for (uint32_t k = 0; k < KEYS; k++) {
		if (!is_there(k))
			continue;
		snprintf(name, sizeof name, "null");
		if (name_of(k))
			print_text(name, sizeof name, name_of(k));
		snprintf(text, sizeof text, "{\"name\":\"before\",\"w\":1}");
		put(w, k % PARTITIONS, key_of(k), text, START);
		snprintf(text, sizeof text, "{\"name\":%s,\"w\":%u}", name, k);
		put(w, k % PARTITIONS, key_of(k), text, START + 1);
	}
	assert_int_equal(weir_topic_writer_close(w, NULL), WEIR_OK);
	assert_int_equal(weir_topic_writer_open(&w, dir, "s", PARTITIONS, WEIR_CODEC_NONE, NULL), WEIR_OK);
	for (uint32_t i = 0; i < ROWS; i++) {
		if (i % 97 == 5)
			snprintf(text, sizeof text, "{\"v\":%u}", i);
		else
			snprintf(text, sizeof text, "{\"k\":\"%s\",\"v\":%u}", key_of(key_at(i)), i);
		put(w, i % PARTITIONS, NULL, text, START + 1000 + i / 2);
	}
	assert_int_equal(weir_topic_writer_close(w, NULL), WEIR_OK);
}

static const char tables[] = "CREATE TABLE s (k STRING, v BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',\n"
			     "  WATERMARK FOR at AS at - INTERVAL '1' SECOND)\n"
			     "WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 's', 'format' = 'json');\n"
			     "CREATE TABLE t (k STRING, name STRING, w BIGINT, PRIMARY KEY (k) NOT ENFORCED)\n"
			     "WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 't', 'format' = 'json');\n"
			     "CREATE TABLE r (v BIGINT, k STRING, name STRING, w BIGINT)\n"
			     "WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json');\n"
			     "INSERT INTO r SELECT s.v, s.k, t.name, t.w FROM s ";

static void run(const char *in, const char *out, const char *join, const char *workers, const char *memory)
{
	const struct weir_sql_variable variables[] = {{"in", in}, {"out", out}};
	const char *const set[][2] = {{"workers", workers}, {"order.point.records", "1500"}, {"memory.max", memory}};
	struct weir_topology *tp = NULL;
	struct weir_conf *cf = weir_conf_create();
	struct weir_engine *en = NULL;
	struct weir_diag *dg = NULL;
	char sql[2048], *text = NULL;
	size_t bytes = 0;
	snprintf(sql, sizeof sql, "%s%s;\n", tables, join);
	if (weir_sql_expand("beside", sql, strlen(sql), variables, WEIR_COUNT_OF(variables), &text, &bytes, &dg) !=
		    WEIR_OK ||
	    weir_sql_compile(&tp, NULL, "beside", text, bytes, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_free(text);
	for (size_t i = 0; i < WEIR_COUNT_OF(set); i++)
		assert_int_equal(weir_conf_set(cf, set[i][0], set[i][1], NULL), WEIR_OK);
	if (weir_engine_create(&en, tp, cf, &dg) != WEIR_OK || weir_engine_run(en, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_engine_destroy(en);
}

/* The result of row i as the twin has it; false: it has none. */
static bool expected(uint32_t i, bool outer, bool condition, char *to, size_t room)
{
	uint32_t k = key_at(i);
	bool null_key = i % 97 == 5, match = !null_key && is_there(k) && (!condition || k < i % KEYS);
	char name[820] = "null", key[160] = "null", w[16] = "null";
	if (!match && !outer)
		return false;
	if (!null_key)
		snprintf(key, sizeof key, "\"%s\"", key_of(k));
	if (match && name_of(k))
		print_text(name, sizeof name, name_of(k));
	if (match)
		snprintf(w, sizeof w, "%u", k);
	snprintf(to, room, "{\"v\":%u,\"k\":%s,\"name\":%s,\"w\":%s}", i, key, name, w);
	return true;
}

/* Every result is the twin's, each comes once, and those of a key in the order of a partition's rows. */
static void check(const char *out, bool outer, bool condition)
{
	struct weir_stream_log *sl;
	struct weir_diag *dg = NULL;
	const char *topic = "out";
	struct weir_recorded_source_spec spec = {
		.path = out, .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	static bool seen[ROWS];
	static uint32_t last[KEYS][PARTITIONS];
	uint32_t results = 0, wanted = 0;
	char text[1200];
	memset(seen, 0, sizeof seen);
	memset(last, 0, sizeof last);
	assert_int_equal(weir_recorded_source_open(&sl, &spec, &dg), WEIR_OK);
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		while (sl->ops->peek(sl, p, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			assert_int_equal(sl->ops->take(sl, p, &u, &dg), WEIR_OK);
			for (uint32_t r = 0; r < u->count; r++, results++) {
				char got[1200];
				uint32_t i = 0;
				snprintf(got, sizeof got, "%.*s", (int)u->records[r].value_bytes,
					 (const char *)u->records[r].value);
				assert_int_equal(sscanf(got, "{\"v\":%" SCNu32, &i), 1);
				assert_true(i < ROWS && expected(i, outer, condition, text, sizeof text));
				assert_string_equal(got, text);
				assert_int_equal(u->records[r].timestamp, START + 1000 + i / 2);
				assert_false(seen[i]);
				seen[i] = true;
				if (i % 97 != 5) {
					uint32_t *before = &last[key_at(i)][i % PARTITIONS];
					assert_true(*before <= i);
					*before = i;
				}
			}
			sl->ops->release(sl, u);
		}
	}
	sl->ops->close(sl);
	for (uint32_t i = 0; i < ROWS; i++)
		wanted += expected(i, outer, condition, text, sizeof text);
	assert_int_equal(results, wanted);
}

static void test_against_a_twin(void **state)
{
	(void)state;
	static const struct {
		const char *join;
		bool outer, condition;
	} forms[] = {{"LEFT JOIN t ON s.k = t.k", true, false},
		     {"JOIN t ON s.k = t.k", false, false},
		     {"LEFT JOIN t ON s.k = t.k AND t.w < MOD(s.v, 700)", true, true}};
	char *in = tmpdir_make();
	make_topics(in);
	for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++) {
		uint64_t digest[3], records[3];
		/* The last: too little memory for a copy. */
		static const char *const set[3][2] = {{"1", "1GiB"}, {"3", "1GiB"}, {"1", "48MiB"}};
		for (size_t i = 0; i < 3; i++) {
			char *out = tmpdir_make();
			run(in, out, forms[f].join, set[i][0], set[i][1]);
			check(out, forms[f].outer, forms[f].condition);
			digest[i] = topic_digest(out, "out", &records[i]);
			assert_true(digest[i] == digest[0] && records[i] == records[0]);
			tmpdir_remove(out);
		}
	}
	tmpdir_remove(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_twin)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
