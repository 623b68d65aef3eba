/* compact.c: rewriting a changelog partition so that it holds the newest record of each key. @thread snap, inside a
 * commit. Offsets are kept, so gaps appear, as in a topic that a broker has compacted. */
#include "io/recorded/log.h"

#include "io/recorded/reader.h"

#include <stdlib.h>
#include <xxhash.h>

/* ---- how much is live ---- */

void weir_live_fini(struct weir_live *lv)
{
	free(lv->entries);
	memset(lv, 0, sizeof *lv);
}

void weir_live_reset(struct weir_live *lv)
{
	weir_live_fini(lv);
	lv->known = true;
}

static struct weir_live_entry *live_find(struct weir_live *lv, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash & lv->mask;; i = (i + 1) & lv->mask)
		if (lv->entries[i].hash == hash || lv->entries[i].hash == 0)
			return &lv->entries[i];
}

static void live_grow(struct weir_live *lv)
{
	struct weir_live old = *lv;
	uint32_t capacity = old.entries == NULL ? 64 : 2 * (old.mask + 1);
	lv->entries = weir_xcalloc(capacity, sizeof *lv->entries);
	lv->mask = capacity - 1;
	lv->entry_count = 0;
	for (uint32_t i = 0; old.entries != NULL && i <= old.mask; i++)
		if (old.entries[i].hash != 0 && old.entries[i].bytes != 0) {
			*live_find(lv, old.entries[i].hash) = old.entries[i];
			lv->entry_count++;
		}
	free(old.entries);
}

void weir_live_put(struct weir_live *lv, const void *key, size_t key_bytes, bool tombstone, size_t value_bytes)
{
	uint64_t hash = XXH3_64bits(key, key_bytes);
	uint64_t bytes = key_bytes + value_bytes + WEIR_LIVE_RECORD_BYTES;
	hash += hash == 0;
	if (lv->entries == NULL || lv->entry_count * 4 >= (lv->mask + 1) * 3)
		live_grow(lv);
	struct weir_live_entry *e = live_find(lv, hash);
	lv->entry_count += e->hash == 0;
	e->hash = hash;
	lv->bytes_all += bytes;
	lv->bytes_live += (tombstone ? 0 : bytes) - e->bytes;
	e->bytes = tombstone ? 0 : bytes;
}

/* ---- reading the partition as written so far ---- */

/* Calls each for every record; a batch at a time is in memory. */
static enum weir_err each_record(const struct weir_appender *ap, const char *folder, const char *topic,
				 uint32_t partition,
				 enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
				 void *ctx, struct weir_diag **dg)
{
	struct weir_reader_env env;
	struct weir_reader rd;
	struct weir_segs ss = {0};
	for (uint32_t i = 0; i < ap->ss.count; i++)
		weir_segs_add(&ss, &ap->ss.seg[i]);
	weir_reader_env_init(&env);
	env.read_uncommitted = true;
	env.batch_bytes_max = SIZE_MAX / 4; /* our own batches: whatever was written is read */
	enum weir_err err = weir_reader_open(&rd, &env, folder, topic, partition, &ss, dg);
	int64_t ts;
	enum weir_poll poll = WEIR_POLL_BOUND;
	while (err == WEIR_OK && (poll = weir_reader_peek(&rd, &ts, dg)) == WEIR_POLL_UNIT) {
		struct weir_unit *u;
		err = weir_reader_take(&rd, &u, dg);
		for (uint32_t i = 0; err == WEIR_OK && i < u->count; i++)
			err = each(ctx, &u->records[i], dg);
		if (err == WEIR_OK)
			weir_reader_release(&env, u);
	}
	if (err == WEIR_OK && poll == WEIR_POLL_ERROR)
		err = weir_diag_set(dg, WEIR_E_CORRUPT, "%s cannot be read", rd.dir);
	weir_reader_close(&rd);
	weir_reader_env_fini(&env);
	return err;
}

static enum weir_err live_record(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	(void)dg;
	weir_live_put(ctx, r->key, r->key_bytes, r->value == NULL, r->value_bytes);
	return WEIR_OK;
}

enum weir_err weir_live_scan(const struct weir_appender *ap, const char *folder, const char *topic, uint32_t partition,
			     struct weir_live *lv, struct weir_diag **dg)
{
	weir_live_reset(lv);
	enum weir_err err = each_record(ap, folder, topic, partition, live_record, lv, dg);
	lv->known = err == WEIR_OK;
	return err;
}

/* ---- rewriting ---- */

/* The last offset of each key, keys by 128 bits of hash. */
struct newest_entry {
	XXH128_hash_t hash;
	int64_t offset; /* -1: free */
};
struct rewrite {
	struct newest_entry *entries;
	uint32_t count;
	uint32_t mask;
	struct weir_appender *to;
	struct weir_live live;
};

static struct newest_entry *newest_find(struct rewrite *rw, XXH128_hash_t hash)
{
	for (uint32_t i = (uint32_t)hash.low64 & rw->mask;; i = (i + 1) & rw->mask)
		if (rw->entries[i].offset < 0 || XXH128_isEqual(rw->entries[i].hash, hash))
			return &rw->entries[i];
}

static void newest_grow(struct rewrite *rw)
{
	struct newest_entry *old = rw->entries;
	uint32_t old_capacity = old == NULL ? 0 : rw->mask + 1, capacity = old == NULL ? 1024 : 2 * old_capacity;
	rw->entries = weir_xmalloc(capacity * sizeof *rw->entries);
	rw->mask = capacity - 1;
	for (uint32_t i = 0; i < capacity; i++)
		rw->entries[i].offset = -1;
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i].offset >= 0)
			*newest_find(rw, old[i].hash) = old[i];
	free(old);
}

static enum weir_err newest_record(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct rewrite *rw = ctx;
	(void)dg;
	if (rw->entries == NULL || (uint64_t)rw->count * 4 >= ((uint64_t)rw->mask + 1) * 3)
		newest_grow(rw);
	struct newest_entry *e = newest_find(rw, XXH3_128bits(r->key, r->key_bytes));
	if (e->offset < 0) {
		e->hash = XXH3_128bits(r->key, r->key_bytes);
		rw->count++;
	}
	e->offset = r->offset;
	return WEIR_OK;
}

static enum weir_err copy_record(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct rewrite *rw = ctx;
	if (r->value == NULL || newest_find(rw, XXH3_128bits(r->key, r->key_bytes))->offset != r->offset)
		return WEIR_OK;
	struct weir_out out = {.key = {r->key, r->key_bytes},
			       .value = {r->value, r->value_bytes},
			       .headers = r->headers,
			       .headers_bytes = r->headers_bytes,
			       .header_count = r->header_count,
			       .timestamp = r->timestamp};
	weir_live_put(&rw->live, r->key, r->key_bytes, false, r->value_bytes);
	return weir_appender_put_at(rw->to, r->offset, &out, dg);
}

enum weir_err weir_compact_partition(struct weir_appender *ap, const char *folder, const char *topic,
				     uint32_t partition, struct weir_live *lv, struct weir_segs *old,
				     struct weir_diag **dg)
{
	WEIR_ASSERT(ap->bb.count == 0 && ap->ss.count != 0);
	struct rewrite rw = {0};
	struct weir_appender to;
	struct weir_segs first = {0};
	uint32_t generation = 0;
	for (uint32_t i = 0; i < ap->ss.count; i++)
		if (ap->ss.seg[i].generation > generation)
			generation = ap->ss.seg[i].generation;
	/* The first new file takes the base of the first old one: files of nobody below it keep their meaning. */
	struct weir_seg s = {.base = ap->ss.seg[0].base, .generation = generation + 1, .next = ap->ss.seg[0].base};
	weir_segs_add(&first, &s);
	weir_appender_init(&to, folder, topic, partition, &first, s.base, ap->codec, ap->cc);
	to.generation = generation + 1;
	to.segment_bytes = ap->segment_bytes;
	rw.to = &to;
	rw.live.known = true;

	enum weir_err err = each_record(ap, folder, topic, partition, newest_record, &rw, dg);
	if (err == WEIR_OK)
		err = each_record(ap, folder, topic, partition, copy_record, &rw, dg);
	if (err == WEIR_OK)
		err = weir_appender_cut(&to, dg);
	if (err == WEIR_OK)
		err = weir_appender_sync(&to, dg);
	free(rw.entries);
	if (err != WEIR_OK) {
		weir_live_fini(&rw.live);
		weir_appender_fini(&to);
		return err;
	}
	to.next_offset = ap->next_offset;
	to.ss.seg[to.ss.count - 1].next = ap->next_offset;
	*old = ap->ss;
	memset(&ap->ss, 0, sizeof ap->ss);
	weir_appender_fini(ap);
	*ap = to;
	weir_live_fini(lv);
	*lv = rw.live;
	return WEIR_OK;
}
