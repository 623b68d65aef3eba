/* test_growth.c: topics whose partitions are counted: the same, another number, brokers that do
 * not answer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "io/kafka/growth.h"
#include "tests/support/kafka_mock.h"

enum { WAIT_MS = 10000, SHORT_MS = 200 };

static void test_count(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), "one", 3, 1), 0);
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), "two", 5, 1), 0);
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
			 0);
	struct weir_kafka_client *kc;
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, NULL, &dg), WEIR_OK);
	struct weir_kafka_growth *gr = weir_kafka_growth_create(kc, "app");
	assert_int_equal(weir_kafka_growth_check(gr, 0, &dg), WEIR_OK); /* nothing to ask for */
	weir_kafka_growth_add(gr, "one", 3);
	assert_int_equal(weir_kafka_growth_check(gr, WAIT_MS, &dg), WEIR_OK);
	/* What is called unknown is no error by itself, but known. */
	assert_false(weir_kafka_growth_missing(gr));
	rd_kafka_mock_topic_set_error(mock_cluster(), "one", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(weir_kafka_growth_check(gr, WAIT_MS, &dg), WEIR_OK);
	assert_true(weir_kafka_growth_missing(gr));
	rd_kafka_mock_topic_set_error(mock_cluster(), "one", RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(weir_kafka_growth_check(gr, WAIT_MS, &dg), WEIR_OK);
	assert_false(weir_kafka_growth_missing(gr));
	weir_kafka_growth_add(gr, "two", 4);
	assert_int_equal(weir_kafka_growth_check(gr, WAIT_MS, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "topic two had 4 partitions when reading began and has 5 now"));
	assert_non_null(strstr(weir_diag_report(dg), "weir reset app"));
	weir_diag_destroy(dg);
	dg = NULL;
	/* Nobody to ask. */
	rd_kafka_mock_broker_set_down(mock_cluster(), 1);
	assert_int_equal(weir_kafka_growth_check(gr, SHORT_MS, &dg), WEIR_OK);
	rd_kafka_mock_broker_set_up(mock_cluster(), 1);
	enum weir_err err = WEIR_OK;
	for (int i = 0; i < 60 && err == WEIR_OK; i++)
		err = weir_kafka_growth_check(gr, 1000, &dg);
	assert_int_equal(err, WEIR_E_CONF);
	weir_diag_destroy(dg);
	weir_kafka_growth_destroy(gr);
	weir_kafka_client_destroy(kc);
	weir_conf_destroy(cf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_count)};
	return cmocka_run_group_tests(tests, mock_setup, mock_teardown);
}
