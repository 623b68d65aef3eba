/* growth.c: counts the partitions of a few topics (growth.h). @thread: one owner */
#include "io/kafka/growth.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"

struct counted {
	rd_kafka_topic_t *rkt; /* makes the topic one that the handle knows and asks for */
	uint32_t partitions;
};
struct weir_kafka_growth {
	struct weir_kafka_client *kc;
	char *app;
	struct counted *topics;
	uint32_t count;
	bool missing; /* a topic was called unknown when last looked */
};

struct weir_kafka_growth *weir_kafka_growth_create(struct weir_kafka_client *kc, const char *app)
{
	struct weir_kafka_growth *gr = weir_xcalloc(1, sizeof *gr);
	gr->kc = kc;
	gr->app = weir_xstrdup(app);
	return gr;
}

void weir_kafka_growth_destroy(struct weir_kafka_growth *gr)
{
	if (gr == NULL)
		return;
	for (uint32_t i = 0; i < gr->count; i++)
		rd_kafka_topic_destroy(gr->topics[i].rkt);
	free(gr->topics);
	free(gr->app);
	free(gr);
}

void weir_kafka_growth_add(struct weir_kafka_growth *gr, const char *topic, uint32_t partitions)
{
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(weir_kafka_client_handle(gr->kc), topic, NULL);
	if (rkt == NULL)
		return;
	gr->topics = weir_xrealloc(gr->topics, (gr->count + 1) * sizeof *gr->topics);
	gr->topics[gr->count++] = (struct counted){rkt, partitions};
}

static enum weir_err check_topic(struct weir_kafka_growth *gr, const struct rd_kafka_metadata_topic *mt,
				 struct weir_diag **dg)
{
	for (uint32_t i = 0; i < gr->count; i++) {
		gr->missing |= weir_kafka_err_is_unknown(mt->err) &&
			       strcmp(mt->topic, rd_kafka_topic_name(gr->topics[i].rkt)) == 0;
		if (mt->err != 0 || mt->partition_cnt <= 0 || (uint32_t)mt->partition_cnt == gr->topics[i].partitions ||
		    strcmp(mt->topic, rd_kafka_topic_name(gr->topics[i].rkt)) != 0)
			continue;
		enum weir_err err = weir_diag_set(dg, WEIR_E_CONF,
						  "topic %s had %u partitions when reading began and has %d now: its "
						  "keys lie in other partitions than before",
						  mt->topic, gr->topics[i].partitions, mt->partition_cnt);
		if (dg != NULL && *dg != NULL)
			weir_diag_add_hint(*dg,
					   "start again; state that is kept by source partition has to start over "
					   "(weir reset %s -b BROKERS --execute)",
					   gr->app);
		return err;
	}
	return WEIR_OK;
}

enum weir_err weir_kafka_growth_check(struct weir_kafka_growth *gr, int timeout_ms, struct weir_diag **dg)
{
	const struct rd_kafka_metadata *md;
	enum weir_err err = WEIR_OK;
	if (gr->count == 0 || rd_kafka_metadata(weir_kafka_client_handle(gr->kc), 0, NULL, &md, timeout_ms) != 0)
		return WEIR_OK;
	gr->missing = false;
	for (int t = 0; t < md->topic_cnt && err == WEIR_OK; t++)
		err = check_topic(gr, &md->topics[t], dg);
	rd_kafka_metadata_destroy(md);
	return err;
}

bool weir_kafka_growth_missing(const struct weir_kafka_growth *gr)
{
	return gr->missing;
}
