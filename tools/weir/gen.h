/* gen.h: the parts of `weir gen`: numbers that depend on the arguments alone, the kinds of events, the command itself.
 * Integer arithmetic only, so that every machine and compiler writes the same bytes. Main thread. */
#ifndef WEIR_TOOLS_WEIR_GEN_H
#define WEIR_TOOLS_WEIR_GEN_H

#include "hotpath/core/base.h"

#define WEIR_GEN_START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

enum { WEIR_GEN_KEYS_MAX = 1 << 24, WEIR_GEN_VALUE_MAX = 1024, WEIR_GEN_ID_MAX = 32, WEIR_GEN_IDS = 3 };

/* ---- gen_random.c ---- */

/* A stream of numbers that belongs to (seed, purpose, index): any event can be made again without those before it. */
struct weir_gen_rng {
	uint64_t state;
};
WEIR_INLINE uint64_t weir_gen_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
WEIR_INLINE struct weir_gen_rng weir_gen_rng_at(uint64_t seed, uint64_t purpose, uint64_t index)
{
	return (struct weir_gen_rng){weir_gen_mix(weir_gen_mix(seed * UINT64_C(0x9e3779b97f4a7c15) + purpose) + index)};
}
WEIR_INLINE uint64_t weir_gen_u64(struct weir_gen_rng *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	return weir_gen_mix(r->state);
}
/* 0 <= result < n; n > 0. */
WEIR_INLINE uint64_t weir_gen_below(struct weir_gen_rng *r, uint64_t n)
{
	return (uint64_t)(((weir_u128)weir_gen_u64(r) * n) >> 64);
}
/* Exponentially distributed with the given mean, by a fixed-point logarithm. */
uint64_t weir_gen_exponential(struct weir_gen_rng *r, uint64_t mean);
/* log2(x) with 32 fractional bits; x > 0. */
uint64_t weir_gen_log2(uint64_t x);

/* Which of count subjects an event is about: all alike, or number k with weight (k + 1)^-z. */
struct weir_gen_zipf {
	uint32_t count;
	uint32_t *keep;  /* NULL: all alike. Alias method: stay at a slot when a 32-bit draw is below keep */
	uint32_t *other; /* else go here */
};
void weir_gen_zipf_init(struct weir_gen_zipf *zf, uint32_t count, uint64_t z_micro);
void weir_gen_zipf_fini(struct weir_gen_zipf *zf);
WEIR_INLINE uint32_t weir_gen_zipf_draw(const struct weir_gen_zipf *zf, struct weir_gen_rng *r)
{
	uint32_t slot = (uint32_t)weir_gen_below(r, zf->count);
	if (zf->keep == NULL || (uint32_t)weir_gen_u64(r) < zf->keep[slot])
		return slot;
	return zf->other[slot];
}

/* ---- gen_kind.c ---- */

struct weir_gen_id {
	uint8_t text[WEIR_GEN_ID_MAX];
	uint32_t bytes;
};
/* One event, as its kind makes it. The value ends in `,"ts":N}`: gen.c writes that part. */
struct weir_gen_event {
	struct weir_gen_id id[WEIR_GEN_IDS]; /* the columns that can be the key, in the kind's order */
	uint8_t value[WEIR_GEN_VALUE_MAX];   /* without the last member */
	uint32_t value_bytes;
	bool value_null;
	int64_t ts; /* when it happened: arrival less disorder; the kind may move it */
};
struct weir_gen {
	uint64_t seed;
	uint64_t records;
	uint64_t rate; /* records a second of event time */
	uint32_t keys;
	int64_t disorder_ms;
	struct weir_gen_zipf zipf;
	bool sequential;                  /* subjects in turn: at the start, so that every partition has records */
	int32_t *price;                   /* prices: the last one of each product, in cents */
	struct weir_gen_payment *payment; /* payments: in order of arrival */
};
struct weir_gen_payment {
	int64_t arrival;
	uint32_t order;
};
struct weir_gen_kind {
	const char *name;
	const char *topic;
	const char *columns[WEIR_GEN_IDS + 1]; /* id columns, the default key first */
	bool (*begin)(struct weir_gen *g);     /* may be NULL; false: too many records. May change g->records */
	/* Makes event number i, whose arrival is at ev->ts on entry; the value without its ts. */
	void (*make)(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev);
};
extern const struct weir_gen_kind weir_gen_kinds[]; /* ends with a NULL name */
void weir_gen_end(struct weir_gen *g);

/* Event time of record i before disorder. */
WEIR_INLINE int64_t weir_gen_time(const struct weir_gen *g, uint64_t i)
{
	return WEIR_GEN_START_MS + (int64_t)((weir_u128)i * 1000 / g->rate);
}
/* v in decimal, at least width digits; returns the end. */
uint8_t *weir_gen_digits(uint8_t *to, uint64_t v, uint32_t width);

#endif
