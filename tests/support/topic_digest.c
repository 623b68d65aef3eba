/* topic_digest.c: reads a recorded topic whole (topic_digest.h). */
#include "tests/support/topic_digest.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "io/recorded/recorded.h"

static void require(enum weir_err err, struct weir_diag *dg)
{
	if (err == WEIR_OK)
		return;
	fprintf(stderr, "topic_digest: %s\n", weir_diag_text(dg));
	abort();
}

uint64_t topic_digest(const char *dir, const char *topic, uint64_t *records)
{
	struct weir_stream_log *sl;
	struct weir_diag *dg = NULL;
	struct weir_recorded_source_spec spec = {
		.path = dir, .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	enum weir_err err = weir_recorded_source_open(&sl, &spec, &dg);
	require(err, dg);
	uint64_t h = 0;
	*records = 0;
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		while (sl->ops->peek(sl, p, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			err = sl->ops->take(sl, p, &u, &dg);
			require(err, dg);
			for (uint32_t i = 0; i < u->count; i++) {
				const struct weir_record *r = &u->records[i];
				h = h * 31 + XXH3_64bits_withSeed(r->key, r->key_bytes, p);
				h = h * 31 + (r->value ? XXH3_64bits(r->value, r->value_bytes) : 7);
				h = h * 31 + (uint64_t)r->offset * 3 + (uint64_t)r->timestamp;
			}
			*records += u->count;
			sl->ops->release(sl, u);
		}
	}
	sl->ops->close(sl);
	return h;
}
