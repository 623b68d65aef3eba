/* join_lines.c: the choice of an instruction set for an index's lines (join_lines.h), and what every machine can do.
 * @thread init to choose, worker */
#include "hotpath/state/join_lines.h"

#define LINES_FN     static
#define LINES_INLINE WEIR_INLINE

#define SHORT_KEY 8

struct vectors {
	uint32_t code;
};
LINES_INLINE void vectors_init(struct vectors *k, uint32_t code)
{
	k->code = code;
}

LINES_INLINE uint32_t line_others(const struct vectors *k, const uint64_t *line, const uint32_t *hash)
{
	return weir_join_line_look(line, weir_join_place_value(*hash, k->code, 0)).others;
}

LINES_INLINE uint32_t place_of(uint32_t others)
{
	return (uint32_t)__builtin_ctz(others);
}

LINES_INLINE uint32_t line_own(const struct vectors *k, const uint64_t *line, uint32_t hash, uint64_t *empty)
{
	struct weir_join_look lk = weir_join_line_look(line, weir_join_place_value(hash, k->code, 0));
	*empty = lk.empty != 0 ? WEIR_JOIN_LINE - (uint64_t)__builtin_ctz(lk.empty) : 0;
	return lk.own;
}

LINES_INLINE bool same_short_key(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	return weir_key_equal(a, b, n);
}

/* Cost: about 12 instructions a place. */
static void split(uint64_t *segment, uint64_t *second, const struct weir_join_parting *pt, struct weir_join_beyond *by)
{
	uint32_t full = pt->full;
	uint64_t home = pt->home, none[WEIR_JOIN_LINE];
	by->count = 0;
	for (uint32_t l = 0; l < WEIR_JOIN_LINES; l++, home += WEIR_JOIN_LINE_STEP) {
		uint64_t v[WEIR_JOIN_LINE], *line = segment + (size_t)l * WEIR_JOIN_LINE;
		uint64_t *to[2] = {line, pt->bit != 0 ? second + (size_t)l * WEIR_JOIN_LINE : none};
		bool doubt = (full & WEIR_JOIN_LINES_FULL) == WEIR_JOIN_LINES_FULL;
		full = full << 1 | (line[WEIR_JOIN_LINE - 1] != 0);
		memcpy(v, line, sizeof v);
		memset(to[0], 0, sizeof v);
		memset(to[1], 0, sizeof v);
		for (uint32_t i = 0; i < WEIR_JOIN_LINE && v[i] != 0; i++) {
			uint32_t b = (v[i] & pt->bit) != 0;
			if ((pt->dead >> weir_join_place_code(v[i]) & 1) != 0)
				continue;
			if (((v[i] ^ home) & pt->fits) == 0 && !doubt) {
				*to[b]++ = v[i];
				continue;
			}
			by->line[by->count] = (uint16_t)(l | (doubt ? WEIR_JOIN_DOUBT : 0));
			by->place[by->count++] = v[i];
		}
	}
}

#include "hotpath/state/join_lines_text.h"

static bool available(void)
{
	return true;
}

const struct weir_join_lines weir_join_lines_plain = {"plain", available, enter, look, split};

/* Best first. */
static const struct weir_join_lines *const variants[] = {
#if defined(__x86_64__)
	&weir_join_lines_avx512,
	&weir_join_lines_avx2,
#endif
	&weir_join_lines_plain,
};

const struct weir_join_lines *weir_join_lines_best(void)
{
	uint32_t i = 0;
	while (!variants[i]->available())
		i++;
	return variants[i];
}

const struct weir_join_lines *weir_join_lines_named(const char *name)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(variants); i++)
		if (strcmp(variants[i]->name, name) == 0 && variants[i]->available())
			return variants[i];
	return NULL;
}
