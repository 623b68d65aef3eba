/* test_clusters.c: on which brokers the tables of a job lie: one cluster, sources elsewhere, recordings, sinks on two,
 * what the job or its tables say of brokers and of their clients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/weir.h"
#include "io/core.h"

#define COLUMNS "k STRING, v BIGINT"
#define KAFKA   "connector=kafka format=json topic=t "
#define RESULT  "connector=kafka format=json topic=r "
#define ON_A    "properties.bootstrap.servers=a:1 "
#define ON_B    "properties.bootstrap.servers=b:2 "
#define ON_C    "properties.bootstrap.servers=c:3 "

/* Up to two sources and two sinks, NULL: none; given: bootstrap.servers of the job. */
static enum weir_err find(struct weir_core *co, const char *const sources[2], const char *const sinks[2],
			  const char *given, char *said, size_t bytes)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	struct weir_stream *st = weir_source(tp, "in", COLUMNS, sources[0]);
	bool any;
	*said = 0;
	if (sources[1])
		st = weir_merge(st, weir_source(tp, "more_in", COLUMNS, sources[1]));
	(void)weir_sink(st, "out", sinks[0]);
	if (sinks[1])
		(void)weir_sink(st, "more_out", sinks[1]);
	assert_int_equal(weir_conf_set(cf, "application.id", "app", &dg), WEIR_OK);
	if (given)
		assert_int_equal(weir_conf_set(cf, "bootstrap.servers", given, &dg), WEIR_OK);
	memset(co, 0, sizeof *co);
	enum weir_err err = weir_core_plan(co, tp, cf, &dg);
	if (err == WEIR_OK)
		err = weir_core_find_brokers(co, &any, &dg);
	if (err == WEIR_OK)
		err = weir_core_find_home(co, &dg);
	if (err != WEIR_OK)
		snprintf(said, bytes, "%s", weir_diag_text(dg));
	weir_diag_destroy(dg);
	return err;
}

static void expect(const char *source, const char *more_source, const char *sink, const char *more_sink,
		   const char *given, const char *home, bool apart, const char *refused)
{
	struct weir_core co;
	char said[1024];
	enum weir_err err = find(&co, (const char *const[2]){source, more_source},
				 (const char *const[2]){sink, more_sink}, given, said, sizeof said);
	if (refused) {
		assert_int_equal(err, WEIR_E_CONF);
		if (!strstr(said, refused))
			fail_msg("not said: %s, but: %s", refused, said);
	} else {
		if (err != WEIR_OK)
			fail_msg("%s", said);
		assert_string_equal(co.home, home);
		assert_int_equal(weir_core_is_apart(&co), apart);
	}
	weir_core_fini(&co);
}

static void test_one_cluster(void **state)
{
	(void)state;
	expect(KAFKA ON_A, NULL, RESULT ON_A, NULL, NULL, "a:1", false, NULL);
	expect(KAFKA, NULL, RESULT ON_A, NULL, NULL, "a:1", false, NULL);
	expect(KAFKA ON_A, NULL, RESULT, NULL, NULL, "a:1", false, NULL);
	expect(KAFKA, NULL, RESULT, NULL, "a:1", "a:1", false, NULL);
	/* What the job says is for all tables. */
	expect(KAFKA ON_A, KAFKA ON_B, RESULT ON_C, NULL, "d:4", "d:4", false, NULL);
	expect(KAFKA, NULL, RESULT, NULL, NULL, NULL, false, "which brokers?");
}

static void test_sources_elsewhere(void **state)
{
	(void)state;
	expect(KAFKA ON_A, NULL, RESULT ON_B, NULL, NULL, "b:2", true, NULL);
	expect(KAFKA ON_A, KAFKA ON_B, RESULT ON_B, NULL, NULL, "b:2", true, NULL);
	expect(KAFKA ON_A, KAFKA ON_B, RESULT ON_C, RESULT ON_C, NULL, "c:3", true, NULL);
	expect(KAFKA ON_A, KAFKA ON_B, "connector=recorded path=dir topic=r format=json", NULL, NULL, "dir", true,
	       NULL);
	expect(KAFKA, KAFKA ON_A, RESULT ON_B, NULL, NULL, NULL, false, "table in lies on which brokers?");
}

static void test_recordings(void **state)
{
	(void)state;
	expect("connector=recorded path=dir topic=t format=json", NULL, RESULT ON_B, NULL, NULL, "b:2", true, NULL);
	expect(KAFKA "properties.bootstrap.servers=file:dir", NULL, RESULT ON_B, NULL, NULL, "b:2", true, NULL);
	expect(KAFKA "properties.bootstrap.servers=file:dir", KAFKA ON_B, RESULT ON_B, NULL, NULL, "b:2", true, NULL);
	expect(KAFKA ON_B, NULL, RESULT "properties.bootstrap.servers=file:dir", NULL, NULL, "dir", false, NULL);
	expect(KAFKA ON_A, NULL, RESULT ON_B, NULL, "file:all", "all", false, NULL);
}

static void test_sinks_on_two(void **state)
{
	(void)state;
	expect(KAFKA ON_A, NULL, RESULT ON_A, RESULT ON_B, NULL, NULL, false,
	       "sink out lies on the brokers a:1, sink more_out on b:2");
	expect(KAFKA ON_A, NULL, RESULT ON_A, "connector=recorded path=dir topic=r format=json", NULL, NULL, false,
	       "sink out lies on brokers, another one in the folder dir");
}

static const char *client_id(const struct weir_core *co, const char *brokers)
{
	const char *name, *value, *found = "";
	for (uint32_t i = 0; weir_conf_kafka(weir_core_conf_of(co, brokers), i, &name, &value); i++)
		if (strcmp(name, "client.id") == 0)
			found = value;
	return found;
}

static void test_clients_of_each(void **state)
{
	(void)state;
	struct weir_core co;
	char said[1024];
	const char *const sources[2] = {KAFKA ON_A "properties.client.id=at-a", KAFKA ON_B "properties.client.id=at-b"};
	const char *const sinks[2] = {KAFKA ON_C};
	assert_int_equal(find(&co, sources, sinks, NULL, said, sizeof said), WEIR_OK);
	assert_int_equal(co.cluster_count, 2);
	assert_string_equal(client_id(&co, "a:1"), "at-a");
	assert_string_equal(client_id(&co, "b:2"), "at-b");
	assert_string_equal(client_id(&co, "c:3"), "");
	assert_string_equal(weir_conf_get(weir_core_conf_of(&co, "a:1"), "bootstrap.servers"), "a:1");
	assert_string_equal(weir_conf_get(weir_core_conf_of(&co, "c:3"), "bootstrap.servers"), "c:3");
	weir_core_fini(&co);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cluster),     cmocka_unit_test(test_sources_elsewhere),
		cmocka_unit_test(test_recordings),      cmocka_unit_test(test_sinks_on_two),
		cmocka_unit_test(test_clients_of_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
