/* test_api_stateless.c: weir.h's operators without state, by what comes out of them: short forms, branches, keys and
 * what they need of an exchange, functions of the program over batches, and what the calls refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"
#include "io/weir_engine.h"

#define COLUMNS "id STRING, city STRING, amount DECIMAL(12,2), n BIGINT, ts BIGINT"

static struct weir_stream *source(struct weir_topology *tp)
{
	return weir_event_time(weir_source(tp, "in", COLUMNS, "topic=in format=json key.format=raw key.fields=id"),
			       "ts", 0);
}

static void sink(struct weir_stream *st, const char *topic)
{
	char options[120];
	(void)snprintf(options, sizeof options, "topic=%s format=json", topic);
	(void)weir_sink(st, topic, options);
}

/* Four records through tp (which it takes). */
static struct weir_driver *run(struct weir_topology *tp)
{
	static const char *const values[] = {
		"{\"id\":\"a\",\"city\":\"Rome\",\"amount\":10.50,\"n\":1,\"ts\":1000}",
		"{\"id\":\"b\",\"city\":\"rome\",\"amount\":200.00,\"n\":2,\"ts\":2000}",
		"{\"id\":\"a\",\"city\":null,\"amount\":7.25,\"n\":null,\"ts\":3000}",
		"{\"id\":\"c\",\"city\":\"Oslo\",\"amount\":null,\"n\":4,\"ts\":4000}",
	};
	struct weir_diag *dg = NULL;
	struct weir_driver *dr = NULL;
	if (weir_driver_create(&dr, tp, weir_conf_create(), &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	for (uint32_t i = 0; i < 4; i++) {
		struct weir_slice value = {values[i], strlen(values[i])};
		struct weir_slice key = {values[i] + 7, 1};
		if (weir_driver_push(dr, "in", key, value, 1000 * (i + 1), &dg) != WEIR_OK)
			fail_msg("%s", weir_diag_report(dg));
	}
	if (weir_driver_end(dr, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	return dr;
}

/* What came out of a topic, a value a line. */
static void expect(struct weir_driver *dr, const char *topic, const char *want)
{
	char got[2000] = "";
	struct weir_driver_record r;
	while (weir_driver_pop(dr, topic, &r))
		(void)snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s\n", (int)r.value.bytes,
			       (const char *)r.value.data);
	assert_string_equal(got, want);
}

static void test_short_forms(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = source(tp);
	sink(weir_select(weir_filter_not(st, "n > 1"), "id, n"), "not"); /* FALSE and NULL stay */
	sink(weir_map_values(weir_key_by(st, "id"), "amount * 2 AS twice"), "values");
	sink(weir_select(weir_select_key(st, "UPPER(city) AS place, id"), "place, id"), "keys");
	struct weir_driver *dr = run(tp);
	expect(dr, "not", "{\"id\":\"a\",\"n\":1}\n{\"id\":\"a\",\"n\":null}\n");
	expect(dr, "values",
	       "{\"id\":\"a\",\"twice\":21.00}\n{\"id\":\"b\",\"twice\":400.00}\n{\"id\":\"a\",\"twice\":14.50}\n"
	       "{\"id\":\"c\",\"twice\":null}\n");
	expect(dr, "keys",
	       "{\"place\":\"ROME\",\"id\":\"a\"}\n{\"place\":\"ROME\",\"id\":\"b\"}\n{\"place\":null,\"id\":\"a\"}\n"
	       "{\"place\":\"OSLO\",\"id\":\"c\"}\n");
	weir_driver_destroy(dr);
}

/* The first branch that is TRUE takes a record; what is FALSE or NULL in all of them is the rest. */
static void test_branches(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_split *sp = weir_split(weir_select(source(tp), "id, n"));
	sink(weir_branch(sp, "n >= 4"), "four");
	sink(weir_branch(sp, "n >= 2"), "two");
	sink(weir_branch_rest(sp), "rest");
	struct weir_split *all = weir_split(weir_select(source(tp), "n")); /* another scan of the same topic */
	(void)all;
	struct weir_driver *dr = run(tp);
	expect(dr, "four", "{\"id\":\"c\",\"n\":4}\n");
	expect(dr, "two", "{\"id\":\"b\",\"n\":2}\n");
	expect(dr, "rest", "{\"id\":\"a\",\"n\":1}\n{\"id\":\"a\",\"n\":null}\n");
	weir_driver_destroy(dr);

	tp = weir_topology_create();
	sp = weir_split(weir_select(source(tp), "n"));
	sink(weir_branch_rest(sp), "all"); /* of no branch at all */
	dr = run(tp);
	expect(dr, "all", "{\"n\":1}\n{\"n\":2}\n{\"n\":null}\n{\"n\":4}\n");
	weir_driver_destroy(dr);
}

static const char *explained(struct weir_topology *tp)
{
	static char text[20000];
	char *out = NULL;
	struct weir_diag *dg = NULL;
	struct weir_conf *cf = weir_conf_create();
	if (weir_engine_explain(tp, cf, WEIR_DESCRIBE_TEXT, &out, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	weir_conf_destroy(cf);
	weir_topology_destroy(tp);
	(void)snprintf(text, sizeof text, "%s", out);
	weir_free(out);
	return text;
}

/* What leaves the source's key alone needs no exchange; a computed key does, and weir_repartition wants one. */
static void test_what_needs_an_exchange(void **state)
{
	(void)state;
	static const char count[] = "id, COUNT(*) AS n";
	for (uint32_t i = 0; i < 4; i++) {
		struct weir_topology *tp = weir_topology_create();
		struct weir_stream *st = weir_filter_not(source(tp), "amount < 0");
		if (i == 0)
			st = weir_map_values(weir_key_by(st, "id"), "amount, UPPER(city) AS city");
		else if (i == 1)
			st = weir_branch_rest(weir_split(weir_select_key(st, "id")));
		else if (i == 2)
			st = weir_select_key(st, "UPPER(id) AS big");
		else
			st = weir_repartition(st, "id");
		assert_int_equal(weir_print(weir_aggregate(st, "counts", i == 2 ? "big, COUNT(*) AS n" : count), "p"),
				 WEIR_OK);
		const char *text = explained(tp);
		if (i < 2)
			assert_non_null(strstr(text, "exchange: direct"));
		else
			assert_non_null(strstr(text, i == 3 ? "slots (asked for)" : "exchange: local"));
	}
}

/* ---- functions ---- */

struct log {
	char text[1000];
	uint32_t destroyed;
};

static void tenth(struct weir_batch *b, void *ctx)
{
	const int64_t *amount = weir_batch_integers(b, 0);
	int64_t *out = weir_batch_put_integers(b, 0);
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		struct weir_slice city = weir_batch_string(b, 1, row[i]);
		if (weir_batch_is_null(b, 0, row[i])) {
			weir_batch_refuse(b, row[i], "no amount");
			continue;
		}
		out[row[i]] = amount[row[i]] / 10; /* DECIMAL(12,2), unscaled */
		if (city.data == NULL)
			weir_batch_put_null(b, 1, row[i]);
		else
			weir_batch_put_string(b, 1, row[i], city.data, 1);
	}
}

static void small(struct weir_batch *b, void *ctx)
{
	const int64_t *v = weir_batch_integers(b, 0);
	uint8_t *pass = weir_batch_put_booleans(b, 0);
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++)
		pass[row[i]] = !weir_batch_is_null(b, 0, row[i]) && v[row[i]] < 2000;
}

static void note(struct weir_batch *b, void *ctx)
{
	struct log *lg = ctx;
	const uint16_t *row = weir_batch_rows(b);
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		struct weir_slice id = weir_batch_string(b, 0, row[i]);
		(void)snprintf(lg->text + strlen(lg->text), sizeof lg->text - strlen(lg->text), "%.*s ", (int)id.bytes,
			       (const char *)id.data);
	}
}

static void destroy(void *ctx)
{
	((struct log *)ctx)->destroyed++;
}

static void test_functions(void **state)
{
	(void)state;
	struct log peeked = {{0}, 0}, last = {{0}, 0};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_map_batch(source(tp), "tenth", "amount, city",
						"tenth DECIMAL(12,2), initial STRING", tenth, NULL, NULL);
	st = weir_select(st, "id, tenth, initial");
	st = weir_filter_batch(st, "small", "tenth", small, NULL, NULL);
	st = weir_peek(st, "peek", "id", note, &peeked, destroy);
	st = weir_filter(st, "tenth < 1");
	sink(st, "out");
	assert_int_equal(weir_foreach(weir_filter(source(tp), "n > 1"), "each", "id", note, &last, destroy), WEIR_OK);
	struct weir_driver *dr = run(tp);
	expect(dr, "out", "{\"id\":\"a\",\"tenth\":0.72,\"initial\":null}\n");
	assert_string_equal(peeked.text, "a a "); /* 1.05 and 0.72; 20.00 was dropped before, c refused */
	assert_string_equal(last.text, "b c ");
	struct weir_stats stats;
	weir_driver_stats(dr, &stats);
	assert_int_equal(stats.records_rejected, 1);
	weir_driver_destroy(dr);
	assert_int_equal(peeked.destroyed, 1);
	assert_int_equal(last.destroyed, 1);
}

/* Behind an aggregate, whose closed windows another thread turns into results; and before one, as its key. */
static void test_functions_around_a_window(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_map_batch(source(tp), "tenth", "COALESCE(amount, 5.00), city",
						"tenth DECIMAL(12,2), initial STRING", tenth, NULL, NULL);
	st = weir_tumble(weir_select_key(st, "LOWER(initial) AS k"), WEIR_MINUTES(1));
	st = weir_aggregate(st, "by-initial", "k, SUM(tenth) AS total, COUNT(*) AS n");
	st = weir_map_batch(st, "again", "CAST(total AS DECIMAL(12,2)), k", "hundredth DECIMAL(12,2), c STRING", tenth,
			    NULL, NULL);
	sink(weir_filter(st, "hundredth > 1"), "out");
	struct weir_driver *dr = run(tp);
	expect(dr, "out", "{\"k\":\"r\",\"total\":21.05,\"n\":2,\"hundredth\":2.10,\"c\":\"r\"}\n");
	weir_driver_destroy(dr);
}

/* Each letter of city, with its place; none where city is NULL. */
static void letters(struct weir_batch *b, void *ctx)
{
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		struct weir_slice city = weir_batch_string(b, 0, row[i]);
		for (size_t k = 0; k < city.bytes; k++) {
			uint32_t at = weir_batch_emit(b, row[i]);
			weir_batch_put_string(b, 0, at, (const char *)city.data + k, 1);
			weir_batch_put_integers(b, 1)[at] = (int64_t)k;
			weir_batch_put_integers(b, 2)[at] = 5 * (int64_t)k; /* 0.05 each */
		}
	}
}

/* Any number of rows for each, into a sink, and grouped by what is new. */
static void test_flat_map(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st =
		weir_flat_map_batch(weir_select(source(tp), "id, city"), "letters", "city",
				    "letter STRING, place INT, worth DECIMAL(5,2)", letters, NULL, NULL);
	sink(weir_filter(st, "place > 1"), "out");
	/* With a key that does not stand first: the columns stay as they are. */
	struct weir_stream *keyed = weir_key_by(weir_select(source(tp), "n, city, id"), "id");
	keyed = weir_flat_map_batch(keyed, "again", "city", "letter STRING, place INT, worth DECIMAL(5,2)", letters,
				    NULL, NULL);
	sink(weir_filter(keyed, "place = 0 AND n > 1"), "keyed");
	struct weir_stream *by = weir_tumble(weir_select_key(st, "LOWER(letter) AS l"), WEIR_MINUTES(1));
	by = weir_aggregate(by, "by-letter", "l, COUNT(*) AS n, SUM(worth) AS worth, MIN(id) AS first");
	sink(weir_filter(by, "n > 2"), "grouped");
	struct weir_driver *dr = run(tp);
	expect(dr, "out",
	       "{\"id\":\"a\",\"city\":\"Rome\",\"letter\":\"m\",\"place\":2,\"worth\":0.10}\n"
	       "{\"id\":\"a\",\"city\":\"Rome\",\"letter\":\"e\",\"place\":3,\"worth\":0.15}\n"
	       "{\"id\":\"b\",\"city\":\"rome\",\"letter\":\"m\",\"place\":2,\"worth\":0.10}\n"
	       "{\"id\":\"b\",\"city\":\"rome\",\"letter\":\"e\",\"place\":3,\"worth\":0.15}\n"
	       "{\"id\":\"c\",\"city\":\"Oslo\",\"letter\":\"l\",\"place\":2,\"worth\":0.10}\n"
	       "{\"id\":\"c\",\"city\":\"Oslo\",\"letter\":\"o\",\"place\":3,\"worth\":0.15}\n");
	expect(dr, "keyed",
	       "{\"n\":2,\"city\":\"rome\",\"id\":\"b\",\"letter\":\"r\",\"place\":0,\"worth\":0.00}\n"
	       "{\"n\":4,\"city\":\"Oslo\",\"id\":\"c\",\"letter\":\"O\",\"place\":0,\"worth\":0.00}\n");
	expect(dr, "grouped", "{\"l\":\"o\",\"n\":4,\"worth\":0.25,\"first\":\"a\"}\n");
	struct weir_stats stats;
	weir_driver_stats(dr, &stats);
	assert_int_equal(stats.records_rejected + stats.records_late, 0);
	weir_driver_destroy(dr);
}

/* What a filter does not find TRUE, a later one never sees: not even where the first is NULL. */
static void test_filters_in_order(void **state)
{
	(void)state;
	struct weir_stats stats;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st =
		weir_filter(source(tp), "n > 0"); /* NULL for one record, which the division would refuse */
	sink(weir_select(weir_filter(st, "10 / COALESCE(n, 0) >= 5"), "n"), "out");
	struct weir_driver *dr = run(tp);
	expect(dr, "out", "{\"n\":1}\n{\"n\":2}\n");
	weir_driver_stats(dr, &stats);
	assert_int_equal(stats.records_rejected, 0);
	weir_driver_destroy(dr);
}

/* ---- what is refused ---- */

static void expect_error(struct weir_topology *tp, const char *want)
{
	const struct weir_diag *dg = weir_topology_error(tp);
	assert_non_null(dg);
	if (strstr(weir_diag_report(dg), want) == NULL)
		fail_msg("'%s' is not in '%s'", want, weir_diag_report(dg));
	weir_topology_destroy(tp);
}

static void test_errors(void **state)
{
	(void)state;
	struct log lg = {{0}, 0};
	struct weir_topology *tp = weir_topology_create();
	(void)weir_filter_not(source(tp), "amount");
	expect_error(tp, "weir_filter_not:1:1: error: a filter must be BOOLEAN");
	tp = weir_topology_create();
	(void)weir_map_values(source(tp), "n");
	expect_error(tp, "weir_map_values: the stream has no key");
	tp = weir_topology_create();
	(void)weir_map_values(weir_key_by(source(tp), "id"), "n AS id");
	expect_error(tp, "there is a column 'id' already");
	tp = weir_topology_create();
	(void)weir_select_key(source(tp), "n + 1 AS city");
	expect_error(tp, "there is a column 'city' already");
	tp = weir_topology_create();
	struct weir_split *sp = weir_split(source(tp));
	(void)weir_branch_rest(sp);
	(void)weir_branch(sp, "n > 0");
	expect_error(tp, "the rest of this split has been taken");
	tp = weir_topology_create();
	(void)weir_branch(weir_split(source(tp)), "nobody > 0");
	expect_error(tp, "nobody");
	tp = weir_topology_create();
	(void)weir_map_batch(source(tp), "", "n", "m BIGINT", tenth, &lg, destroy);
	assert_int_equal(lg.destroyed, 0);
	expect_error(tp, "weir_map_batch: needs a name and a function");
	assert_int_equal(lg.destroyed, 1); /* also of a call that failed */
	tp = weir_topology_create();
	(void)weir_map_batch(source(tp), "f", "n", "m DECIMAL(20,2)", tenth, NULL, NULL);
	expect_error(tp, "no DECIMAL beyond 18 digits");
	tp = weir_topology_create();
	(void)weir_map_batch(source(tp), "f", "CAST(amount AS DECIMAL(30,2))", "m BIGINT", tenth, NULL, NULL);
	expect_error(tp, "functions take DECIMAL of up to 18 digits");
	tp = weir_topology_create();
	(void)weir_map_batch(source(tp), "f", "n", "city STRING", tenth, NULL, NULL);
	expect_error(tp, "there is a column 'city' already");
	tp = weir_topology_create();
	(void)weir_map_batch(source(tp), "f", "n", NULL, tenth, NULL, NULL);
	expect_error(tp, "weir_map_batch");
	tp = weir_topology_create();
	(void)weir_peek(weir_tumble(weir_key_by(source(tp), "id"), 10), "f", "n", note, NULL, NULL);
	expect_error(tp, "belongs before the window");
	tp = weir_topology_create();
	(void)weir_flat_map_batch(source(tp), "f", "n", "city STRING", letters, NULL, NULL);
	expect_error(tp, "there is a column 'city' already");
	tp = weir_topology_create();
	(void)weir_flat_map_batch(weir_to_stream(weir_table(tp, "t", "k STRING, v STRING", "k", "topic=t format=json")),
				  "f", "v", "w STRING", letters, NULL, NULL);
	expect_error(tp, "is for a stream, not for a table");
	tp = weir_topology_create();
	(void)weir_repartition(source(tp), "nobody");
	expect_error(tp, "there is no column 'nobody'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_forms),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_what_needs_an_exchange),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_functions_around_a_window),
		cmocka_unit_test(test_flat_map),
		cmocka_unit_test(test_filters_in_order),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
