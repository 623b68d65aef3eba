/* test_topics.c: topics that a job both reads and writes, and topics that two sinks write. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hotpath/weir.h"
#include "io/topics.h"
#include "tests/support/tmpdir.h"

#define COLUMNS    "k STRING, v BIGINT"
#define IN(topic)  "connector=kafka format=json topic=" topic " "
#define OUT(topic) "connector=kafka format=json topic=" topic " "
#define REC(path)  "connector=recorded format=json path=" path " topic=t "

/* "name=value name=value" into cf. */
static void set_all(struct weir_conf *cf, const char *properties)
{
	struct weir_diag *dg = NULL;
	struct weir_mem m = {0};
	struct weir_option *o;
	uint32_t n;
	assert_int_equal(weir_option_string_split(properties, &m, &o, &n, &dg), WEIR_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(weir_conf_set(cf, o[i].name, o[i].value, &dg), WEIR_OK);
	weir_mem_fini(&m);
}

/* The plan of tp (which is freed) under properties; refused NULL: it is fine. */
static void expect_plan(struct weir_topology *tp, const char *properties, const char *refused)
{
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings st;
	struct weir_diag *dg = NULL;
	struct weir_plan *pl = NULL;
	set_all(cf, properties);
	assert_int_equal(weir_conf_settings(cf, &st, &dg), WEIR_OK);
	struct weir_plan_settings ps = {.exchange = st.exchange == WEIR_EXCHANGE_SETTING_TOPIC
							    ? WEIR_PLAN_EXCHANGE_TOPIC
							    : WEIR_PLAN_EXCHANGE_AUTO,
					.emit_coalesce = true,
					.app = "app"};
	enum weir_err err = weir_topology_check(tp, &dg);
	if (err == WEIR_OK)
		err = weir_plan_create(&pl, tp, &ps, &dg);
	if (err != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	err = weir_topics_check(pl, &st, &dg);
	if (refused == NULL && err != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	if (refused != NULL) {
		assert_int_equal(err, WEIR_E_CONF);
		if (strstr(weir_diag_report(dg), refused) == NULL)
			fail_msg("not said: %s, but: %s", refused, weir_diag_report(dg));
	}
	weir_diag_destroy(dg);
	weir_topology_destroy(tp);
	weir_conf_destroy(cf);
}

/* A table that is read into one that is written. */
static void expect_loop(const char *source, const char *sink, const char *properties, bool refused)
{
	struct weir_topology *tp = weir_topology_create();
	(void)weir_sink(weir_source(tp, "src", COLUMNS, source), "dst", sink);
	expect_plan(tp, properties,
		    refused ? "which table src reads in the same job: what is written would be read "
			      "again"
			    : NULL);
}

static void test_what_a_query_reads_it_does_not_write(void **state)
{
	(void)state;
	expect_loop(IN("t"), OUT("t"), "", true);
	expect_loop(IN("t"), OUT("u"), "", false);
	expect_loop(IN("t"), OUT("tt"), "", false);
	expect_loop(IN("'a;t;b'"), OUT("t"), "", true);
	expect_loop(IN("'a;tt;b'"), OUT("t"), "", false);
	expect_loop("connector=kafka format=json topic-pattern=o.* ", OUT("orders"), "", true);
	expect_loop("connector=kafka format=json topic-pattern=o ", OUT("orders"), "", false);
}

static void test_brokers_that_are_one_cluster(void **state)
{
	(void)state;
	static const char on[] = "properties.bootstrap.servers=";
	char source[256], sink[256];
	static const struct {
		const char *source, *sink, *properties;
		bool refused;
	} cases[] = {{"a:1", "a:1", "", true},
		     {"a:1", "b:2", "", false},
		     {"a:1", "b:2", "bootstrap.servers=c:3", true}, /* which is for all tables */
		     {"a:1,b:2", "c:3,b:2", "", true},
		     {"a:1,b:2", "c:3,b:22", "", false},
		     {"file:rec", "a:1", "", false},
		     {"file:rec", "file:./rec/", "", true},
		     {"file:rec", "file:rec2", "", false}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		snprintf(source, sizeof source, "%s%s%s", IN("t"), on, cases[i].source);
		snprintf(sink, sizeof sink, "%s%s%s", OUT("t"), on, cases[i].sink);
		expect_loop(source, sink, cases[i].properties, cases[i].refused);
	}
	snprintf(sink, sizeof sink, "%s%s%s", OUT("t"), on, "a:1");
	expect_loop(IN("t"), sink, "", true); /* one cluster is named, and it is for both */
}

static void test_folders_that_are_one(void **state)
{
	(void)state;
	expect_loop(REC("rec"), REC("rec"), "", true);
	expect_loop(REC("rec"), REC("out"), "", false);
	expect_loop(REC("/x/rec"), REC("/x//./rec/."), "", true);
	expect_loop(REC("x/rec"), REC("/x/rec"), "", false);
	expect_loop(REC("rec"), "connector=kafka format=json topic=t ", "bootstrap.servers=file:rec/", true);
	char *dir = tmpdir_make(), source[512], sink[512];
	snprintf(source, sizeof source, "%s/rec", dir);
	snprintf(sink, sizeof sink, "%s/link", dir);
	assert_int_equal(mkdir(source, 0700), 0);
	assert_int_equal(symlink("rec", sink), 0);
	snprintf(source, sizeof source, "connector=recorded format=json path=%s/rec topic=t", dir);
	snprintf(sink, sizeof sink, "connector=recorded format=json path=%s/link topic=t", dir);
	expect_loop(source, sink, "", true);
	tmpdir_remove(dir);
}

static struct weir_topology *two(const char *one, const char *to, const char *other, const char *last)
{
	struct weir_topology *tp = weir_topology_create();
	(void)weir_sink(weir_source(tp, "src", COLUMNS, one), "dst", to);
	(void)weir_sink(weir_source(tp, "next", COLUMNS, other), "last", last);
	return tp;
}

/* Followed, the second sees what the first writes; read to its end, a topic shows what an earlier run has left. */
static void test_one_query_reads_what_another_writes(void **state)
{
	(void)state;
	const char *end = "which table next reads in the same job: read to its end, it would be seen as an earlier run "
			  "has left it";
	expect_plan(two(IN("t"), OUT("u"), IN("u"), OUT("v")), "", NULL);
	expect_plan(two(IN("t"), OUT("u"), IN("u scan.bounded.mode=latest-offset"), OUT("v")), "", end);
	expect_plan(two(REC("rec"), "connector=recorded format=json path=rec topic=u",
			"connector=recorded format=json path=rec topic=u",
			"connector=recorded format=json path=rec topic=v"),
		    "", end);
	expect_plan(two(IN("t"), OUT("u"), IN("u"), OUT("v")), "bootstrap.servers=file:rec", end);
	expect_plan(two(REC("rec"), "connector=recorded format=json path=rec topic=u",
			"connector=recorded format=json path=rec topic=u scan.bounded.mode=unbounded",
			"connector=recorded format=json path=rec topic=v"),
		    "", NULL);
	/* All the same, round and round is without end. */
	expect_plan(two(IN("t"), OUT("u"), IN("u"), OUT("t")), "", "would be read again, without end");
	expect_plan(two(IN("t"), OUT("v"), IN("u"), OUT("t")), "", NULL);
}

/* Through a stage and a repartition topic it is still the query's own. */
static void test_a_loop_through_states(void **state)
{
	(void)state;
	for (int topic = 0; topic < 2; topic++) {
		struct weir_topology *tp = weir_topology_create();
		struct weir_stream *st = weir_key_by(
			weir_event_time(weir_source(tp, "src", COLUMNS ", ts BIGINT", IN("t")), "ts", WEIR_SECONDS(5)),
			"v");
		st = weir_aggregate(weir_tumble(st, WEIR_MINUTES(1)), "n", "window_start, v, COUNT(*) AS n");
		(void)weir_sink(st, "dst", OUT("t"));
		expect_plan(tp, topic ? "exchange=topic" : "", "would be read again, without end");
	}
}

static void test_bad_and_late_records_go_elsewhere(void **state)
{
	(void)state;
	static const struct {
		const char *properties, *refused;
	} cases[] = {{"errors.deadletterqueue.topic.name=bad late.topic=bad", NULL},
		     {"errors.deadletterqueue.topic.name=t", "errors.deadletterqueue.topic.name of table src writes "
							     "topic t on Kafka, which table src reads"},
		     {"late.topic=t", "late.topic of table src writes topic t"},
		     {"late.topic=u", "table dst and late.topic of table src are one topic, u on Kafka"},
		     {"errors.deadletterqueue.topic.name=t errors.policy=skip", NULL}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_topology *tp = weir_topology_create();
		(void)weir_sink(weir_source(tp, "src", COLUMNS, IN("t")), "dst", OUT("u"));
		expect_plan(tp, cases[i].properties, cases[i].refused);
	}
	/* Results lie in another folder than what is read, and bad records with them. */
	struct weir_topology *tp = weir_topology_create();
	(void)weir_sink(weir_source(tp, "src", COLUMNS, REC("rec")), "dst", REC("out"));
	expect_plan(tp, "late.topic=x", NULL);
	tp = weir_topology_create();
	(void)weir_sink(weir_source(tp, "src", COLUMNS, REC("rec")), "dst",
			"connector=recorded format=json path=out "
			"topic=u");
	expect_plan(tp, "late.topic=t state.home=rec", "late.topic of table src writes topic t in rec");
}

/* Two sinks of one source into one topic. */
static void expect_both(const char *one, const char *other, const char *refused)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_source(tp, "src", COLUMNS, IN("t"));
	(void)weir_sink(st, "one", one);
	(void)weir_sink(weir_select(st, "v, k"), "other", other);
	expect_plan(tp, "", refused);
}

static void test_two_sinks_of_one_topic_write_alike(void **state)
{
	(void)state;
	static const char to[] = "connector=kafka topic=u ";
	static const struct {
		const char *one, *other, *refused;
	} cases[] = {
		{"format=json", "format=json", NULL},
		{"format=json json.encode.ignore-null-fields=true", "format=json", NULL},
		{"format=json", "format=csv",
		 "table one and table other both write topic u on Kafka, but not "
		 "alike, so that nobody could read it: format (json, csv)"},
		{"format=json json.timestamp-format.standard=ISO-8601", "format=json", "timestamp-format.standard"},
		{"format=csv", "format=csv", "columns"}, /* k, v and v, k */
		{"format=csv csv.field-delimiter='|'", "format=csv", "field-delimiter"},
		{"format=csv csv.field-delimiter='|'", "format=csv csv.field-delimiter=','", "field-delimiter"},
		{"format=csv csv.disable-quote-character=true", "format=csv", "quoting"},
		{"format=csv csv.null-literal=NULL", "format=csv", "null-literal"},
		{"format=json key.format=raw key.fields=k", "format=json key.format=raw key.fields=k", NULL},
		{"format=json key.format=raw key.fields=k", "format=json key.format=json key.fields=k",
		 "key.format (raw, json)"},
		{"format=json key.format=raw key.fields=k", "format=json", "key.format (raw, none)"},
		{"format=json key.format=raw key.fields=k", "format=json key.format=raw key.fields=v", "key"},
		{"format=json key.format=json key.fields=k", "format=json key.format=json key.fields=v", NULL}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		char one[256], other[256];
		snprintf(one, sizeof one, "%s%s", to, cases[i].one);
		snprintf(other, sizeof other, "%s%s", to, cases[i].other);
		expect_both(one, other, cases[i].refused);
	}
	expect_both(OUT("u") "properties.bootstrap.servers=file:a",
		    "connector=kafka topic=u format=csv "
		    "properties.bootstrap.servers=file:b",
		    NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_query_reads_it_does_not_write),
		cmocka_unit_test(test_brokers_that_are_one_cluster),
		cmocka_unit_test(test_folders_that_are_one),
		cmocka_unit_test(test_one_query_reads_what_another_writes),
		cmocka_unit_test(test_a_loop_through_states),
		cmocka_unit_test(test_bad_and_late_records_go_elsewhere),
		cmocka_unit_test(test_two_sinks_of_one_topic_write_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
