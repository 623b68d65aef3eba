/* test_conf.c: properties: values, aliases, origins, files, dumps, the machine's limits, and what a source overrides.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/conf.h"

static void set(struct weir_conf *cf, const char *name, const char *value)
{
	struct weir_diag *dg = NULL;
	if (weir_conf_set(cf, name, value, &dg) != WEIR_OK)
		fail_msg("%s = %s: %s", name, value, weir_diag_text(dg));
}

static void refuse(const char *name, const char *value, const char *part)
{
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_conf_set(cf, name, value, &dg), WEIR_E_CONF);
	if (strstr(weir_diag_text(dg), part) == NULL)
		fail_msg("'%s' is not in '%s'", part, weir_diag_text(dg));
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

static void test_defaults(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings s;
	assert_int_equal(weir_conf_settings(cf, &s, NULL), WEIR_OK);
	assert_null(s.application_id);
	assert_int_equal(s.guarantee, WEIR_AT_LEAST_ONCE);
	assert_int_equal(s.exchange, WEIR_EXCHANGE_SETTING_AUTO);
	assert_true(s.memory_max >= 16 << 20);
	assert_true(s.workers >= 1);
	assert_true(s.cpu_count >= 1);
	assert_int_equal(s.workers, s.cpu_count > 1 ? s.cpu_count - 1 : 1);
	assert_false(s.worker_cpus_set);
	assert_int_equal(CPU_COUNT(&s.worker_cpus), s.cpu_count);
	assert_int_equal(s.slots, 64);
	assert_int_equal(s.commit_records, 1000000);
	assert_int_equal(s.commit_ms, 1000);
	assert_int_equal(s.emit_ms, 100);
	assert_int_equal(s.idle_ms, 30000);
	assert_false(s.idle_advance_wall);
	assert_false(s.task_time_max);
	assert_false(s.end_of_input_keep);
	assert_true(s.emit_coalesce);
	assert_false(s.allow_negative_time);
	assert_int_equal(s.time_future_max_ms, -1);
	assert_int_equal(s.record_bytes_max, 16 << 20);
	assert_int_equal(s.batch_bytes_max, 64 << 20);
	assert_int_equal(s.json_depth_max, 128);
	assert_int_equal(s.sql_bytes_max, 64 << 10);
	assert_int_equal(s.sql_depth_max, 200);
	assert_int_equal(s.errors_policy, WEIR_ERRORS_DEFAULT);
	assert_int_equal(s.epochs_in_flight, 4);
	assert_int_equal(s.scan_rate, 0);
	assert_true(s.topics_create);
	assert_int_equal(s.order_point_records, 65536);
	assert_int_equal(s.order_point_bytes, 16 << 20);
	assert_string_equal(weir_conf_get(cf, "workers"), "auto");
	assert_null(weir_conf_get(cf, "no.such"));
	assert_false(weir_conf_is_set(cf, "workers"));
	weir_conf_destroy(cf);
	weir_conf_destroy(NULL);
}

/* Every default is a value of its own property, and no name stands twice. */
static void test_table(void **state)
{
	(void)state;
	const char *name, *value, *range, *doc, *other;
	struct weir_conf *cf = weir_conf_create();
	unsigned n = 0;
	for (; weir_conf_describe(n, &name, &value, &range, &doc); n++) {
		assert_true(range[0] != '\0' && doc[0] != '\0');
		if (value[0] != '\0')
			set(cf, name, value);
		for (unsigned j = 0; j < n; j++) {
			assert_int_equal(weir_conf_describe(j, &other, NULL, NULL, NULL), 1);
			assert_string_not_equal(name, other);
		}
	}
	assert_true(n > 30);
	weir_conf_destroy(cf);
}

static void test_values_and_aliases(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings s;
	set(cf, "pipeline.name", "revenue");
	set(cf, "num.stream.threads", "3");
	set(cf, "execution.checkpointing.interval", "10 s");
	set(cf, "table.exec.source.idle-timeout", "PT1M");
	set(cf, "processing.guarantee", "exactly_once_v2");
	set(cf, "max.task.idle.ms", "-1");
	set(cf, "memory.max", "512MiB");
	set(cf, "exchange", "LOCAL");
	set(cf, "task.time", "max");
	set(cf, "end.of.input", "keep");
	set(cf, "emit.coalesce", "False");
	set(cf, "time.future.max.ms", "1h");
	set(cf, "errors.policy", "dead-letter");
	set(cf, "table.local-time-zone", "Etc/UTC");
	set(cf, "worker.cpus", "auto");
	assert_int_equal(weir_conf_settings(cf, &s, NULL), WEIR_OK);
	assert_string_equal(s.application_id, "revenue");
	assert_int_equal(s.workers, 3);
	assert_int_equal(s.commit_ms, 10000);
	assert_int_equal(s.idle_ms, 60000);
	assert_int_equal(s.join_wait_ms, 0);
	assert_int_equal(s.guarantee, WEIR_EXACTLY_ONCE);
	assert_int_equal(s.memory_max, 512 << 20);
	assert_int_equal(s.exchange, WEIR_EXCHANGE_SETTING_LOCAL);
	assert_true(s.task_time_max && s.end_of_input_keep && !s.emit_coalesce);
	assert_int_equal(s.time_future_max_ms, 3600000);
	assert_int_equal(s.errors_policy, WEIR_ERRORS_DEAD_LETTER);
	assert_string_equal(weir_conf_get(cf, "pipeline.name"), "revenue");
	set(cf, "pipeline.name", "My revenue");
	assert_string_equal(weir_conf_get(cf, "application.id"), "My-revenue");
	set(cf, "pipeline.name", "revenue");
	assert_true(weir_conf_is_set(cf, "application.id"));
	weir_conf_destroy(cf);
	cf = weir_conf_create();
	set(cf, "processing.guarantee", "exactly_once");
	assert_int_equal(weir_conf_settings(cf, &s, NULL), WEIR_OK);
	assert_int_equal(s.commit_ms, 100);
	assert_string_equal(weir_conf_get(cf, "commit.interval.ms"), "100");
	weir_conf_destroy(cf);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("worker", "3", "did you mean 'workers'?");
	refuse("workers", "0", "takes 1..1024, auto, not '0'");
	refuse("workers", "two", "not 'two'");
	refuse("workers", "2,slots=8", "give 'slots' on its own");
	refuse("memory.max", "47MiB", "48MiB");
	refuse("bootstrap.servers", "file:", "file:DIR");
	refuse("processing.guarantee", "twice", "at_least_once, exactly_once, at_most_once");
	refuse("commit.interval.ms", "-5", "a duration");
	refuse("commit.interval.ms", "0", "a duration from 1ms");
	refuse("slots", "65536", "1..65535");
	refuse("application.id", "a/b", "letters, digits");
	refuse("application.id", "..", "letters, digits");
	refuse("table.local-time-zone", "Europe/Paris", "UTC only, not in 'Europe/Paris'");
	refuse("table.local-time-zone", "PDT", "UTC only");
	refuse("sasl.jaas.config", "x", "use sasl.username and sasl.password");
	refuse("properties.key.deserializer", "x", "not needed");
	refuse("consumer.max.poll.records", "5", "not needed");
	refuse("producer.buffer.memory", "5", "use queue.buffering.max.kbytes");
	refuse("main.consumer.fetch.min.bytes", "5", "use consumer.NAME");
	refuse("restore.consumer.fetch.min.bytes", "5", "use consumer.NAME");
	refuse("admin.retries", "5", "leave out admin.");
	refuse("processing.exception.handler", "x", "use errors.policy");
	refuse("deserialization.exception.handler", "x", "use errors.policy");
	refuse("acceptable.recovery.lag", "5", "use standby.replicas");
	refuse("task.timeout.ms", "5", "not needed");
	refuse("max.task.idle.ms", "-2", "a duration");
	refuse("join.wait.ms", "-1", "a duration");
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings s;
	struct weir_diag *dg = NULL;
	set(cf, "worker.cpus", "1023");
	assert_int_equal(weir_conf_settings(cf, &s, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "may not use"));
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

static void test_flink_settings_warn(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	set(cf, "table.exec.mini-batch.enabled", "true");
	set(cf, "table.exec.mini-batch.enabled", "true");
	set(cf, "execution.runtime-mode", "streaming");
	set(cf, "table.exec.state.ttl", "1 h");
	assert_int_equal(weir_conf_warning_count(cf), 2);
	assert_string_equal(weir_conf_warning(cf, 0), "property table.exec.mini-batch.enabled has no effect in weir");
	assert_null(weir_conf_warning(cf, 2));
	for (int i = 0; i < 300; i++) { /* bounded */
		char name[32];
		snprintf(name, sizeof name, "table.x%d", i);
		set(cf, name, "1");
	}
	assert_int_equal(weir_conf_warning_count(cf), 100);
	weir_conf_destroy(cf);
}

/* A copy holds what was set, and lives on by itself. */
static void test_commits_fall_on_order_points(void **state)
{
	static const struct {
		const char *commit, *point, *said;
	} cases[] = {{"1000000", "65536", NULL},
		     {"0", "65536", NULL}, /* only at the end */
		     {"65536", "65536", NULL},
		     {"65535", "65536", "commit.interval.records = 65535 has the effect of 65536:"},
		     {"1", "1", NULL},
		     {"9", "10", "commit.interval.records = 9 has the effect of 10:"}};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_conf *cf = weir_conf_create();
		struct weir_settings s;
		struct weir_diag *dg = NULL;
		struct weir_buf text = {0};
		set(cf, "commit.interval.records", cases[i].commit);
		set(cf, "order.point.records", cases[i].point);
		assert_int_equal(weir_conf_settings(cf, &s, &dg), WEIR_OK);
		assert_int_equal(weir_settings_commits_late(&s, &text), cases[i].said != NULL);
		if (cases[i].said)
			assert_memory_equal(text.data, cases[i].said, strlen(cases[i].said));
		weir_buf_fini(&text);
		weir_conf_destroy(cf);
	}
}

static void test_copy(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	const char *name, *value;
	set(cf, "workers", "3");
	set(cf, "fetch.min.bytes", "7");
	set(cf, "client.rack", "a");
	struct weir_conf *copy = weir_conf_copy(cf);
	set(cf, "client.rack", "b");
	weir_conf_destroy(cf);
	assert_string_equal(weir_conf_get(copy, "workers"), "3");
	assert_true(weir_conf_kafka(copy, 0, &name, &value));
	assert_string_equal(name, "fetch.min.bytes");
	assert_string_equal(value, "7");
	assert_true(weir_conf_kafka(copy, 1, &name, &value));
	assert_string_equal(value, "a");
	assert_false(weir_conf_kafka(copy, 2, &name, &value));
	set(copy, "client.id", "me");
	weir_conf_destroy(copy);
}

static void test_origins(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set_from(cf, "slots", "1", WEIR_ORIGIN_FILE, "a.conf:1", NULL), WEIR_OK);
	assert_int_equal(weir_conf_set_from(cf, "slots", "2", WEIR_ORIGIN_FILE, "a.conf:2", NULL), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "slots"), "2");
	assert_int_equal(weir_conf_set_from(cf, "slots", "3", WEIR_ORIGIN_FLAG, NULL, NULL), WEIR_OK);
	assert_int_equal(weir_conf_set_from(cf, "slots", "4", WEIR_ORIGIN_ENV, NULL, NULL), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "slots"), "3");
	assert_int_equal(weir_conf_set_from(cf, "slots", "x", WEIR_ORIGIN_ENV, NULL, NULL), WEIR_E_CONF);
	assert_int_equal(weir_conf_set_from(cf, "workers", "7", WEIR_ORIGIN_FILE, "a.conf:9", NULL), WEIR_OK);
	char *dump = weir_conf_dump(cf);
	assert_non_null(strstr(dump, "slots = 3  # flag\n"));
	assert_non_null(strstr(dump, "workers = 7  # file a.conf:9\n"));
	assert_non_null(strstr(dump, "exchange = auto  # default\n"));
	assert_null(strstr(dump, "memory.max = auto")); /* the number in force */
	free(dump);
	weir_conf_destroy(cf);
}

static const char *write_file(const char *dir, const char *name, const char *text)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
	return path;
}

static void test_files(void **state)
{
	(void)state;
	char dir[] = "/tmp/weir-test-conf-XXXXXX";
	assert_non_null(mkdtemp(dir));
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	const char *path = write_file(dir, "a.conf",
				      "\xef\xbb\xbf# a remark\r\n\n  slots=8\r\nworkers = 5  # default\n"
				      "late.topic =\tlate.orders");
	assert_int_equal(weir_conf_load(cf, path, &dg), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "slots"), "8");
	assert_string_equal(weir_conf_get(cf, "workers"), "5");
	assert_string_equal(weir_conf_get(cf, "late.topic"), "late.orders");
	/* What dump writes, load reads. */
	char *dump = weir_conf_dump(cf);
	struct weir_conf *again = weir_conf_create();
	assert_int_equal(weir_conf_load(again, write_file(dir, "b.conf", dump), &dg), WEIR_OK);
	assert_string_equal(weir_conf_get(again, "late.topic"), "late.orders");
	assert_string_equal(weir_conf_get(again, "slots"), "8");
	weir_conf_destroy(again);
	free(dump);
	assert_int_equal(weir_conf_load(cf, write_file(dir, "c.conf", "slots = 4\nslot = 3\n"), &dg), WEIR_E_CONF);
	assert_int_equal(weir_diag_line(dg), 2);
	assert_non_null(
		strstr(weir_diag_report(dg), "c.conf:2:1: error: unknown property 'slot': did you mean 'slots'?"));
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_conf_load(cf, write_file(dir, "d.conf", "just words\n"), &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "expected name = value"));
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_conf_load(cf, "/nonexistent/x.conf", &dg), WEIR_E_CONF);
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
	const char *const names[] = {"a.conf", "b.conf", "c.conf", "d.conf"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++) {
		char file[512];
		snprintf(file, sizeof file, "%s/%s", dir, names[i]);
		assert_int_equal(unlink(file), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void test_durations_and_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} durations[] = {
		{"5m", 300000},
		{"300s", 300000},
		{"PT5M", 300000},
		{"250", 250},
		{"0", 0},
		{"10 s", 10000},
		{"1h30m", 5400000},
		{"2 days", 172800000},
		{"1d 2h", 93600000},
		{"P1DT2H3M4.5S", 93784500},
		{"PT0.25S", 250},
		{"pt1h", 3600000},
		{"", -1},
		{"5x", -1},
		{"-5", -1},
		{"5m 3", -1},
		{"30m1h", -1},
		{"P", -1},
		{"PT", -1},
		{"PT1.5M", -1},
		{"PT5M1H", -1},
		{"P1H", -1},
		{"99999999999999999999", -1},
		{"9223372036854775807d", -1},
		{"5 m!", -1},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(durations); i++) {
		int64_t ms = -1;
		bool ok = weir_duration_parse(durations[i].text, &ms);
		if (ok != (durations[i].ms >= 0) || (ok && ms != durations[i].ms))
			fail_msg("duration '%s': %d, %lld", durations[i].text, ok, (long long)ms);
	}
	static const struct {
		const char *text;
		int64_t bytes;
	} sizes[] = {
		{"64MiB", 64 << 20},
		{"64mb", 64 << 20},
		{"64m", 64 << 20},
		{"1 g", 1 << 30},
		{"2TiB", INT64_C(2) << 40},
		{"1000", 1000},
		{"12 bytes", 12},
		{"7b", 7},
		{"3k", 3072},
		{"", -1},
		{"MiB", -1},
		{"1.5g", -1},
		{"5q", -1},
		{"5mibs", -1},
		{"9223372036854775807k", -1},
		{"-1", -1},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(sizes); i++) {
		uint64_t bytes = 0;
		bool ok = weir_size_parse(sizes[i].text, &bytes);
		if (ok != (sizes[i].bytes >= 0) || (ok && bytes != (uint64_t)sizes[i].bytes))
			fail_msg("size '%s': %d, %llu", sizes[i].text, ok, (unsigned long long)bytes);
	}
	cpu_set_t cpus;
	assert_true(weir_cpus_parse("0-3, 5", &cpus));
	assert_int_equal(CPU_COUNT(&cpus), 5);
	assert_true(CPU_ISSET(5, &cpus) && !CPU_ISSET(4, &cpus));
	assert_false(weir_cpus_parse("3-1", &cpus));
	assert_false(weir_cpus_parse("1,", &cpus));
	assert_false(weir_cpus_parse("", &cpus));
	assert_false(weir_cpus_parse("99999", &cpus));
}

static void test_memory_limit(void **state)
{
	(void)state;
	char dir[] = "/tmp/weir-test-cgroup-XXXXXX", path[512], proc[512], file[512];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/pod", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(file, sizeof file, "%s/pod/box", dir);
	assert_int_equal(mkdir(file, 0700), 0);
	snprintf(proc, sizeof proc, "%s", write_file(dir, "cgroup", "1:name=systemd:/x\n0::/pod/box\n"));
	uint64_t ram = weir_memory_limit("/nonexistent", "/nonexistent");
	assert_true(ram > 0 && ram < UINT64_MAX);
	assert_int_equal(weir_memory_limit(proc, dir), ram); /* no files: no limit */
	write_file(path, "memory.max", "4194304\n");
	write_file(file, "memory.max", "max\n");
	assert_int_equal(weir_memory_limit(proc, dir), 4194304); /* the group above counts */
	write_file(file, "memory.max", "2097152\n");
	assert_int_equal(weir_memory_limit(proc, dir), 2097152);
	/* Version 1: the memory controller has its own tree. */
	write_file(dir, "cgroup", "5:cpu,memory:/pod\n");
	snprintf(path, sizeof path, "%s/memory", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/memory/pod", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(path, "memory.limit_in_bytes", "8388608\n");
	assert_int_equal(weir_memory_limit(proc, dir), 8388608);
	snprintf(path, sizeof path, "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

static void test_sources_override(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings s;
	struct weir_source_settings o;
	struct weir_table_options with = {0};
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_conf_settings(cf, &s, NULL), WEIR_OK);
	assert_int_equal(weir_settings_for_source(&s, &with, "t", &o, NULL), WEIR_OK);
	assert_int_equal(o.policy, WEIR_ERRORS_SKIP);
	assert_null(o.late_topic);
	set(cf, "errors.deadletterqueue.topic.name", "dlq");
	set(cf, "late.topic", "late");
	set(cf, "end.of.input", "keep");
	assert_int_equal(weir_conf_settings(cf, &s, NULL), WEIR_OK);
	assert_int_equal(weir_settings_for_source(&s, &with, "t", &o, NULL), WEIR_OK);
	assert_int_equal(o.policy, WEIR_ERRORS_DEAD_LETTER);
	assert_string_equal(o.dead_letter_topic, "dlq");
	assert_string_equal(o.late_topic, "late");
	assert_true(o.end_of_input_keep);
	with.errors_policy = WEIR_ERRORS_FAIL;
	with.late_topic = "mine";
	with.end_of_input = WEIR_END_CLOSE;
	assert_int_equal(weir_settings_for_source(&s, &with, "t", &o, NULL), WEIR_OK);
	assert_int_equal(o.policy, WEIR_ERRORS_FAIL);
	assert_null(o.dead_letter_topic);
	assert_string_equal(o.late_topic, "mine");
	assert_false(o.end_of_input_keep);
	s.dead_letter_topic = NULL;
	with.errors_policy = WEIR_ERRORS_DEAD_LETTER;
	assert_int_equal(weir_settings_for_source(&s, &with, "t", &o, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "table 't'"));
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(weir_conf_name_of_env("WEIR_MEMORY_MAX"), "memory.max");
	assert_string_equal(weir_conf_name_of_env("WEIR_TABLE_LOCAL_TIME_ZONE"), "table.local-time-zone");
	assert_null(weir_conf_name_of_env("WEIR_MEMORY"));
	assert_null(weir_conf_name_of_env("MEMORY_MAX"));
	assert_true(weir_conf_is_secret("sasl.password"));
	assert_true(weir_conf_is_secret("ssl.key.password"));
	assert_true(weir_conf_is_secret("sasl.oauthbearer.client.secret"));
	assert_false(weir_conf_is_secret("sasl.username"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_values_and_aliases),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_flink_settings_warn),
		cmocka_unit_test(test_commits_fall_on_order_points),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_durations_and_sizes),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_sources_override),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
