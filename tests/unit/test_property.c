/* test_property.c: librdkafka's properties inside weir's configuration: names, prefixes, secrets in files, no clash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/conf.h"
#include "io/kafka/property.h"

static void test_names(void **state)
{
	bool user = false, topic = false;
	(void)state;
	for (size_t i = 0; weir_kafka_property_name(i) != NULL; i++) {
		const char *name = weir_kafka_property_name(i);
		assert_int_not_equal(weir_kafka_property_check(name, NULL, NULL, 0), WEIR_PROPERTY_UNKNOWN);
		user = user || strcmp(name, "sasl.username") == 0;
		topic = topic || strcmp(name, "compression.codec") == 0;
	}
	assert_true(user && topic);
	assert_int_equal(weir_kafka_property_check("no.such.name", NULL, NULL, 0), WEIR_PROPERTY_UNKNOWN);
	char why[256];
	assert_int_equal(weir_kafka_property_check("socket.timeout.ms", "x", why, sizeof why), WEIR_PROPERTY_BAD);
	assert_non_null(strstr(why, "socket.timeout.ms"));
	assert_int_equal(weir_kafka_property_check("consumer.fetch.min.bytes", "7", NULL, 0), WEIR_PROPERTY_OK);
	assert_int_equal(weir_kafka_property_check("topic.acks", "all", NULL, 0), WEIR_PROPERTY_OK);
}

static void test_prefixes(void **state)
{
	char role;
	(void)state;
	assert_string_equal(weir_kafka_property_bare("consumer.client.id", &role), "client.id");
	assert_int_equal(role, 'c');
	assert_string_equal(weir_kafka_property_bare("producer.linger.ms", &role), "linger.ms");
	assert_int_equal(role, 'p');
	assert_string_equal(weir_kafka_property_bare("topic.acks", &role), "acks");
	assert_int_equal(role, 0);
	assert_string_equal(weir_kafka_property_bare("topic.metadata.refresh.interval.ms", &role),
			    "topic.metadata.refresh.interval.ms");
}

/* Only what names the brokers is a name of both. */
static void test_no_clash(void **state)
{
	const char *name;
	(void)state;
	for (unsigned i = 0; weir_conf_describe(i, &name, NULL, NULL, NULL); i++)
		if (strcmp(name, "bootstrap.servers") != 0)
			assert_int_equal(weir_kafka_property_check(name, NULL, NULL, 0), WEIR_PROPERTY_UNKNOWN);
}

static void test_conf(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	const char *name;
	const char *value;
	assert_int_equal(weir_conf_set(cf, "properties.sasl.username", "me", &dg), WEIR_OK);
	assert_int_equal(weir_conf_set_from(cf, "sasl.username", "file's", WEIR_ORIGIN_FILE, "a:1", &dg), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "sasl.username"), "me"); /* stronger */
	assert_true(weir_conf_is_set(cf, "sasl.username"));
	assert_false(weir_conf_is_set(cf, "sasl.mechanisms"));
	assert_true(weir_conf_kafka(cf, 0, &name, &value));
	assert_string_equal(name, "sasl.username");
	assert_string_equal(value, "me");
	assert_false(weir_conf_kafka(cf, 1, &name, &value));
	assert_int_equal(weir_conf_set(cf, "properties.bootstrap.servers", "h:1", &dg), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "bootstrap.servers"), "h:1");
	assert_string_equal(weir_conf_name_of_env("WEIR_SASL_USERNAME"), "sasl.username");
	assert_null(weir_conf_name_of_env("WEIR_SASL_USERNAM"));
	weir_conf_destroy(cf);
}

static void test_refused(void **state)
{
	static const struct {
		const char *name;
		const char *value;
		const char *part;
	} table[] = {{"sasl.usernme", "x", "did you mean 'sasl.username'"},
		     {"properties.sasl.usernme", "x", "did you mean 'sasl.username'"},
		     {"queued.min.mesages", "1", "did you mean 'queued.min.messages'"},
		     {"socket.timeout.ms", "soon", "socket.timeout.ms"},
		     {"key.serializer", "x", "for Java programs"},
		     {"sasl.password", "@/nothing/there", "cannot read the file '/nothing/there'"}};
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		struct weir_diag *dg = NULL;
		assert_int_equal(weir_conf_set(cf, table[i].name, table[i].value, &dg), WEIR_E_CONF);
		if (strstr(weir_diag_text(dg), table[i].part) == NULL)
			fail_msg("'%s' is not in '%s'", table[i].part, weir_diag_text(dg));
		weir_diag_destroy(dg);
	}
	weir_conf_destroy(cf);
}

static void test_secret_in_a_file(void **state)
{
	char path[] = "/tmp/weir-secret-XXXXXX", at[64];
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "s3cret # it is\n", 15), 15);
	close(fd);
	snprintf(at, sizeof at, "@%s", path);
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "sasl.password", at, NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "client.id", "@x", NULL), WEIR_OK); /* no secret: as it is */
	assert_string_equal(weir_conf_get(cf, "sasl.password"), "s3cret # it is");
	assert_string_equal(weir_conf_get(cf, "client.id"), "@x");
	char *text = weir_conf_dump(cf);
	assert_null(strstr(text, "s3cret"));
	assert_non_null(strstr(text, "sasl.password = ****  # property"));
	weir_free(text);
	weir_conf_destroy(cf);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_prefixes), cmocka_unit_test(test_no_clash),
		cmocka_unit_test(test_conf),  cmocka_unit_test(test_refused),  cmocka_unit_test(test_secret_in_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
