/* test_options.c: table options: names per connector, values, hints, and the splitting of option strings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/topology/options.h"

struct fixture {
	struct weir_mem m;
	struct weir_table_options o;
	struct weir_diag *dg;
	uint32_t bad;
	enum weir_err err;
};

/* Parses an option string, as weir.h and WITH both end here. */
static void parse(struct fixture *fx, const char *text)
{
	struct weir_option *options = NULL;
	uint32_t count = 0;
	memset(fx, 0, sizeof *fx);
	weir_mem_init(&fx->m, 0);
	assert_int_equal(weir_option_string_split(text, &fx->m, &options, &count, NULL), WEIR_OK);
	fx->err = weir_table_options_parse(&fx->o, options, count, &fx->m, &fx->bad, &fx->dg);
	assert_int_equal(weir_diag_code(fx->dg), fx->err);
}

static void done(struct fixture *fx)
{
	weir_diag_destroy(fx->dg);
	weir_mem_fini(&fx->m);
}

/* Parses what must fail, and checks a part of the report and which option is pointed at. */
static void refuse(const char *text, const char *part, uint32_t bad)
{
	struct fixture fx;
	parse(&fx, text);
	assert_int_equal(fx.err, WEIR_E_CONF);
	if (strstr(weir_diag_report(fx.dg), part) == NULL)
		fail_msg("'%s' is not in '%s'", part, weir_diag_report(fx.dg));
	assert_int_equal(fx.bad, bad);
	done(&fx);
}

static void test_recorded(void **state)
{
	(void)state;
	struct fixture fx;
	parse(&fx,
	      "connector=recorded path=/tmp/rec topic=order.placed format=json json.ignore-parse-errors=true "
	      "key.fields=k_merchant_id;k_window_start key.format=windowed value.fields-include=except_key "
	      "key.fields-prefix=k_ "
	      "scan.startup.mode=timestamp scan.startup.timestamp-millis=1700000000000 "
	      "scan.bounded.mode=specific-offsets "
	      "scan.bounded.specific-offsets=partition:0,offset:42;partition:1,offset:300 scan.damaged=skip "
	      "scan.end-of-file=abort properties.isolation.level=read_uncommitted properties.group.id=g "
	      "sink.partitions=8 "
	      "sink.compression=zstd errors.policy=dead-letter errors.deadletterqueue.topic.name=dlq late.topic=late "
	      "end.of.input=keep");
	assert_int_equal(fx.err, WEIR_OK);
	assert_int_equal(fx.bad, UINT32_MAX);
	assert_int_equal(fx.o.connector, WEIR_CONNECTOR_RECORDED);
	assert_string_equal(fx.o.path, "/tmp/rec");
	assert_string_equal(fx.o.topic, "order.placed");
	assert_true(fx.o.has_value_format && fx.o.has_key_format);
	assert_int_equal(fx.o.value_format.kind, WEIR_FORMAT_JSON);
	assert_true(fx.o.value_format.ignore_parse_errors);
	assert_int_equal(fx.o.key_format.kind, WEIR_FORMAT_WINDOWED);
	assert_string_equal(fx.o.key_fields, "k_merchant_id;k_window_start");
	assert_string_equal(fx.o.key_fields_prefix, "k_");
	assert_true(fx.o.value_except_key);
	assert_string_equal(fx.o.scan_startup_mode, "timestamp");
	assert_string_equal(fx.o.scan_startup_timestamp, "1700000000000");
	assert_string_equal(fx.o.scan_bounded_offsets, "partition:0,offset:42;partition:1,offset:300");
	assert_string_equal(fx.o.scan_damaged, "skip");
	assert_string_equal(fx.o.scan_end_of_file, "abort");
	assert_string_equal(fx.o.isolation_level, "read_uncommitted");
	assert_string_equal(fx.o.group_id, "g");
	assert_int_equal(fx.o.sink_partitions, 8);
	assert_string_equal(fx.o.sink_compression, "zstd");
	assert_int_equal(fx.o.errors_policy, WEIR_ERRORS_DEAD_LETTER);
	assert_string_equal(fx.o.dead_letter_topic, "dlq");
	assert_string_equal(fx.o.late_topic, "late");
	assert_int_equal(fx.o.end_of_input, WEIR_END_KEEP);
	done(&fx);
}

static void test_kafka(void **state)
{
	(void)state;
	struct fixture fx;
	parse(&fx,
	      "connector=kafka topic=a;b properties.bootstrap.servers=h:9092 properties.group.id=g value.format=csv "
	      "value.csv.field-delimiter=| key.format=csv key.csv.field-delimiter=; properties.sasl.username=me "
	      "scan.startup.mode=group-offsets scan.topic-partition-discovery.interval=5min sink.parallelism=3");
	assert_int_equal(fx.err, WEIR_OK);
	assert_string_equal(fx.o.bootstrap_servers, "h:9092");
	assert_int_equal(fx.o.value_format.csv_delimiter, '|');
	assert_int_equal(fx.o.key_format.csv_delimiter, ';');
	assert_int_equal(fx.o.other_count, 2);
	assert_string_equal(fx.o.other[0].name, "properties.sasl.username");
	assert_string_equal(fx.o.other[0].value, "me");
	assert_string_equal(fx.o.other[1].name, "scan.topic-partition-discovery.interval");
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_table_options_check_use(&fx.o, false, "t", &dg), WEIR_OK);
	assert_int_equal(weir_table_options_check_use(&fx.o, true, "t", &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), "several topics"));
	weir_diag_destroy(dg);
	done(&fx);
}

static void test_changelog_formats(void **state)
{
	(void)state;
	struct fixture fx;
	struct weir_diag *dg = NULL;
	parse(&fx, "connector=kafka topic=a properties.bootstrap.servers=h:9092 format=debezium-json "
		   "debezium-json.timestamp-format.standard=ISO-8601");
	assert_int_equal(fx.err, WEIR_OK);
	assert_true(fx.o.value_format.timestamp_iso8601);
	assert_int_equal(weir_table_options_check_use(&fx.o, true, "t", &dg), WEIR_OK);
	assert_int_equal(weir_table_options_check_use(&fx.o, false, "t", &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), "for sinks alone"));
	weir_diag_destroy(dg);
	done(&fx);
	parse(&fx, "connector=upsert-kafka topic=a key.format=raw value.format=changelog-json");
	assert_int_equal(fx.err, WEIR_E_CONF);
	done(&fx);
	parse(&fx, "connector=recorded path=x topic=a key.fields=k key.format=changelog-json value.format=json");
	assert_int_equal(fx.err, WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_report(fx.dg), "'changelog-json' is for values only: use it as value.format"));
	done(&fx);
	/* Errors name the option as it is written, and what they propose fits. */
	parse(&fx, "connector=recorded path=x topic=a format=changelog-json changelog-json.ignore-null-fields=true");
	assert_int_equal(fx.err, WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_report(fx.dg), "option 'changelog-json.ignore-null-fields'"));
	assert_non_null(strstr(weir_diag_report(fx.dg), "mean 'changelog-json.encode.ignore-null-fields'?"));
	done(&fx);
	parse(&fx, "connector=recorded path=x topic=a value.format=debezium-json "
		   "value.debezium-json.encode.ignore-null-fields=yes");
	assert_non_null(strstr(weir_diag_report(fx.dg),
			       "'value.debezium-json.encode.ignore-null-fields' cannot be 'yes': it takes true"));
	done(&fx);
	parse(&fx, "connector=recorded path=x topic=a format=debezium-json debezium-json.schema-include=true");
	assert_non_null(strstr(weir_diag_report(fx.dg), "there are debezium-json."));
	done(&fx);
}

static void test_datagen_print_blackhole_filesystem(void **state)
{
	(void)state;
	struct fixture fx;
	parse(&fx,
	      "connector=datagen number-of-rows=100 rows-per-second=0 seed=7 fields.a.kind=sequence fields.a.start=1 "
	      "fields.a.end=10 fields.b.c.min=2");
	assert_int_equal(fx.err, WEIR_OK);
	assert_int_equal(fx.o.datagen_rows, 100);
	assert_int_equal(fx.o.datagen_rate, 0);
	assert_int_equal(fx.o.datagen_seed, 7);
	assert_int_equal(fx.o.other_count, 4);
	assert_string_equal(fx.o.other[3].name, "fields.b.c.min");
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_table_options_check_use(&fx.o, true, "gen", &dg), WEIR_E_PLAN);
	assert_string_equal(weir_diag_text(dg),
			    "table 'gen' cannot be written to: connector 'datagen' is a source only");
	weir_diag_destroy(dg);
	done(&fx);
	parse(&fx, "connector=datagen");
	assert_int_equal(fx.err, WEIR_OK);
	assert_int_equal(fx.o.datagen_rows, -1);
	assert_int_equal(fx.o.datagen_rate, -1);
	assert_int_equal(fx.o.value_format.kind, WEIR_FORMAT_PACKED);
	assert_true(fx.o.has_value_format);
	done(&fx);
	parse(&fx, "connector=print print-identifier='it''s mine' standard-error=TRUE");
	assert_int_equal(fx.err, WEIR_OK);
	assert_string_equal(fx.o.print_identifier, "it's mine");
	assert_true(fx.o.print_standard_error);
	dg = NULL;
	assert_int_equal(weir_table_options_check_use(&fx.o, false, "p", &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), "is a sink only"));
	weir_diag_destroy(dg);
	done(&fx);
	parse(&fx, "connector=blackhole");
	assert_int_equal(fx.err, WEIR_OK);
	done(&fx);
	parse(&fx, "connector=filesystem path=in.jsonl format=json");
	assert_int_equal(fx.err, WEIR_OK);
	assert_string_equal(fx.o.path, "in.jsonl");
	done(&fx);
}

static void test_names(void **state)
{
	(void)state;
	refuse("topic=t", "option 'connector' is missing", UINT32_MAX);
	refuse("topic=t connector=kafak", "did you mean 'kafka'?", 1);
	refuse("connector=zzz", "there are recorded, kafka", 0);
	refuse("connector=recorded path=p topic=t format=json scan.startup.mod=x", "did you mean 'scan.startup.mode'?",
	       4);
	refuse("connector=recorded path=p topic=t format=json topic=u", "'topic' is given twice", 4);
	refuse("connector=recorded path=p topic=a;b;a format=json", "'topic' names a twice", 2);
	refuse("connector=recorded path=p topic=a; format=json", "takes names of at most 249 letters", 2);
	refuse("connector=recorded path=p topic=a;.. format=json", "not 'a;..'", 2);
	refuse("connector=kafka topic=a/b format=json", "not 'a/b'", 1);
	refuse("connector=recorded path=p topic=t format=json late.topic=a;b", "takes a topic name, not 'a;b'", 4);
	refuse("connector=print topic=t", "it is an option of connector 'recorded'", 1);
	refuse("connector=upsert-kafka topic=t key.format=json value.format=json scan.startup.mode=earliest-offset",
	       "always read from the beginning", 4);
	refuse("connector=kafka topic=t format=json properties.sasl.jaas.config=x",
	       "use sasl.username and sasl.password", 3);
	refuse("connector=datagen fields.a.maxx=1", "did you mean 'max'?", 1);
	refuse("connector=datagen fields.max=1", "fields.<column>.<member>", 1);
}

static void test_values(void **state)
{
	(void)state;
	refuse("connector=recorded path=p topic=t format=json scan.startup.mode=group-offsets",
	       "takes earliest-offset, latest-offset, timestamp or specific-offsets, not 'group-offsets'", 4);
	refuse("connector=recorded path=p topic=t format=json sink.partitions=0", "a whole number from 1 to 10000", 4);
	refuse("connector=recorded path=p topic=t format=json sink.partitions=99999999999999999999", "a whole number",
	       4);
	refuse("connector=recorded path=p topic=t format=json sink.compression=lz5", "none, gzip, snappy, lz4 or zstd",
	       4);
	refuse("connector=recorded path=p topic='' format=json", "a text that is not empty", 2);
	refuse("connector=recorded path=p topic=t format=json key.fields=a,b key.format=raw",
	       "write ';' instead of ','", 4);
	refuse("connector=recorded path=p topic=t format=json key.fields=a;;b key.format=raw", "separated by ';'", 4);
	refuse("connector=recorded path=p topic=t format=json errors.policy=ignore", "fail, skip or dead-letter", 4);
	refuse("connector=recorded path=p topic=t format=json end.of.input=open", "close or keep", 4);
	refuse("connector=datagen number-of-rows=-1", "a whole number from 0", 1);
	refuse("connector=print standard-error=yes", "true or false", 1);
	refuse("connector=recorded path=p topic=t format=json scan.startup.mode=specific-offsets "
	       "scan.startup.specific-offsets=0:42",
	       "partition:0,offset:42", 5);
}

static void test_what_belongs_together(void **state)
{
	(void)state;
	refuse("connector=recorded path=p format=json", "needs the option 'topic'", UINT32_MAX);
	refuse("connector=recorded path=p topic=t", "needs the option 'format'", UINT32_MAX);
	refuse("connector=upsert-kafka topic=t value.format=json", "needs the option 'key.format'", UINT32_MAX);
	refuse("connector=filesystem format=json", "needs the option 'path'", UINT32_MAX);
	refuse("connector=filesystem path=p format=packed", "takes format json or csv", 2);
	refuse("connector=kafka topic=t topic-pattern=x.* format=json", "leave one out", 2);
	refuse("connector=kafka topic=t format=json value.format=json", "leave one out", 3);
	refuse("connector=kafka topic=t format=windowed", "for keys only", 2);
	refuse("connector=kafka topic=t format=json csv.field-delimiter=;", "the value format is 'json'", 3);
	refuse("connector=kafka topic=t format=json key.json.ignore-parse-errors=true", "needs 'key.format'", 3);
	refuse("connector=kafka topic=t format=json scan.startup.mode=timestamp",
	       "needs 'scan.startup.timestamp-millis'", 3);
	refuse("connector=kafka topic=t format=json scan.bounded.timestamp-millis=5",
	       "needs 'scan.bounded.mode' = 'timestamp'", 3);
	refuse("connector=kafka topic=t format=json key.fields-prefix=k_", "EXCEPT_KEY", 3);
	refuse("connector=recorded path=p topic=t format=json key.fields=a", "'key.fields' needs 'key.format'", 4);
	refuse("connector=kafka topic=t format=json key.fields=a key.format=json value.fields-include=EXCEPT_KEY "
	       "key.fields-prefix=k_",
	       "'a' of 'key.fields' does not begin with 'k_'", 6);
	refuse("connector=kafka topic=t;u format=json scan.startup.mode=specific-offsets "
	       "scan.startup.specific-offsets=partition:0,offset:42",
	       "needs a single topic", 4);
	refuse("connector=kafka topic-pattern=t.* format=json scan.bounded.mode=specific-offsets "
	       "scan.bounded.specific-offsets=partition:0,offset:42",
	       "needs a single topic", 4);
	struct fixture fx; /* options of the format may stand before it */
	parse(&fx, "json.ignore-parse-errors=true format=json topic=t connector=kafka");
	assert_int_equal(fx.err, WEIR_OK);
	assert_true(fx.o.value_format.ignore_parse_errors);
	done(&fx);
}

static void test_split(void **state)
{
	(void)state;
	struct weir_mem m;
	struct weir_option *o;
	uint32_t n;
	struct weir_diag *dg = NULL;
	weir_mem_init(&m, 0);
	assert_int_equal(weir_option_string_split(" a=1\tb='x = ''y'' z'\n c= d='' e=p=q ", &m, &o, &n, &dg), WEIR_OK);
	assert_int_equal(n, 5);
	assert_string_equal(o[0].name, "a");
	assert_string_equal(o[0].value, "1");
	assert_string_equal(o[1].value, "x = 'y' z");
	assert_string_equal(o[2].value, "");
	assert_string_equal(o[3].value, "");
	assert_string_equal(o[4].value, "p=q");
	assert_int_equal(weir_option_string_split(NULL, &m, &o, &n, &dg), WEIR_OK);
	assert_int_equal(n, 0);
	static const struct {
		const char *text;
		int column;
		const char *part;
	} bad[] = {
		{"a=1 b", 5, "expected name=value"}, {"=1", 1, "expected name=value"}, {"a='x", 3, "is not closed"},
		{"a='x'y", 6, "expected a space"},   {"a 'b'", 1, "expected name"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		dg = NULL;
		assert_int_equal(weir_option_string_split(bad[i].text, &m, &o, &n, &dg), WEIR_E_CONF);
		assert_int_equal(weir_diag_column(dg), bad[i].column);
		assert_non_null(strstr(weir_diag_text(dg), bad[i].part));
		weir_diag_destroy(dg);
	}
	weir_mem_fini(&m);
}

static void test_numbers(void **state)
{
	(void)state;
	int64_t v = 5;
	bool b;
	assert_true(weir_text_to_i64("9223372036854775807", &v));
	assert_true(v == INT64_MAX);
	assert_true(weir_text_to_i64("-9223372036854775808", &v));
	assert_true(v == INT64_MIN);
	assert_false(weir_text_to_i64("9223372036854775808", &v));
	assert_false(weir_text_to_i64("", &v));
	assert_false(weir_text_to_i64("-", &v));
	assert_false(weir_text_to_i64("1 ", &v));
	assert_true(weir_text_to_bool("True", &b) && b);
	assert_true(weir_text_to_bool("false", &b) && !b);
	assert_false(weir_text_to_bool("1", &b));
	assert_string_equal(weir_connector_name(WEIR_CONNECTOR_UPSERT_KAFKA), "upsert-kafka");
	assert_null(weir_java_property_hint("sasl.username"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_kafka),
		cmocka_unit_test(test_changelog_formats),
		cmocka_unit_test(test_datagen_print_blackhole_filesystem),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_what_belongs_together),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
