/* property.c: asks librdkafka which properties it knows, by setting them on a scratch configuration. @thread any */
#include "io/kafka/property.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"

static const char **names;
static size_t name_count;
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

/* Out of the table "name | C/P | range | default | importance | meaning": a dump leaves out what has no default. */
static void read_names(void)
{
	char *table = weir_kafka_property_table();
	size_t lines = 1;
	for (const char *c = table; *c != '\0'; c++)
		lines += *c == '\n';
	names = weir_xcalloc(lines, sizeof *names);
	for (char *line = table, *next; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		size_t bytes = strcspn(line, " |\n");
		const char *bar = line + bytes + strspn(line + bytes, " ");
		if (*bar != '|' || memchr(line, '.', bytes) == NULL) /* a heading, or callbacks: dr_cb */
			continue;
		line[bytes] = '\0';
		bool known = false; /* some are of topics and of clients */
		for (size_t i = 0; i < name_count && !known; i++)
			known = strcmp(names[i], line) == 0;
		if (!known)
			names[name_count++] = weir_xstrdup(line);
	}
	weir_free(table);
}

const char *weir_kafka_property_name(size_t i)
{
	(void)pthread_once(&names_once, read_names);
	return i < name_count ? names[i] : NULL;
}

const char *weir_kafka_property_bare(const char *name, char *role)
{
	static const struct {
		const char *prefix;
		char role;
	} prefixes[] = {{"consumer.", 'c'}, {"producer.", 'p'}, {"topic.", 0}};
	*role = 0;
	/* topic.metadata.refresh.interval.ms and its like are names of their own. */
	for (size_t i = 0; weir_kafka_property_name(i) != NULL; i++)
		if (strcmp(weir_kafka_property_name(i), name) == 0)
			return name;
	for (size_t i = 0; i < WEIR_COUNT_OF(prefixes); i++) {
		size_t bytes = strlen(prefixes[i].prefix);
		if (strncmp(name, prefixes[i].prefix, bytes) == 0) {
			*role = prefixes[i].role;
			return name + bytes;
		}
	}
	return name;
}

enum weir_property_answer weir_kafka_property_check(const char *name, const char *value, char *why, size_t why_bytes)
{
	char role;
	const char *bare = weir_kafka_property_bare(name, &role);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[512] = "";
	/* An unknown name is told from a bad value whatever the value is. */
	rd_kafka_conf_res_t res = rd_kafka_conf_set(conf, bare, value != NULL ? value : "", text, sizeof text);
	rd_kafka_conf_destroy(conf);
	if (why_bytes != 0)
		snprintf(why, why_bytes, "%s", text);
	if (res == RD_KAFKA_CONF_UNKNOWN)
		return WEIR_PROPERTY_UNKNOWN;
	return res == RD_KAFKA_CONF_OK || value == NULL ? WEIR_PROPERTY_OK : WEIR_PROPERTY_BAD;
}

char *weir_kafka_property_table(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (f == NULL)
		return weir_xstrdup("");
	rd_kafka_conf_properties_show(f);
	(void)fclose(f);
	return text;
}

const char *weir_kafka_library_version(void)
{
	return rd_kafka_version_str();
}
