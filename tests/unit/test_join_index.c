/* test_join_index.c: the index of a slot's join buffers against a list of what it was given: it grows, shrinks, forgets
 * generations that went, and runs out of codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/arena.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/join_state.h"

struct rig {
	struct weir_arena *ar;
	struct weir_state_def def;
	struct weir_slot *sl;
};

static const struct weir_type text = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
static const struct weir_state_side sides[2];

/* Records are kept for `keep` ms. */
static void rig_init(struct rig *rg, int64_t keep)
{
	rg->def = (struct weir_state_def){.name = "j",
					  .kind = WEIR_STATE_JOIN,
					  .within = true,
					  .after_ms = keep,
					  .key_count = 1,
					  .key_types = &text,
					  .side_count = 2,
					  .sides = sides};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
}

static void rig_fini(struct rig *rg)
{
	weir_slot_destroy(rg->sl);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
}

/* Key k as bytes, and a row of 8 that says `number`. */
static struct weir_join_row row_of(uint32_t k, int64_t time, uint64_t number, uint8_t data[32])
{
	memset(data, 0, 32);
	int n = snprintf((char *)data, 20, "key-%u", (unsigned)k);
	memcpy(data + n, &number, sizeof number);
	return (struct weir_join_row){weir_hash(data, (size_t)n), time, data, (uint32_t)n, 8, data + n};
}

static void put(struct rig *rg, uint32_t side, uint32_t k, int64_t time, uint64_t number)
{
	uint8_t data[32];
	struct weir_join_row r = row_of(k, time, number, data);
	weir_join_buffer_put(rg->sl, side, &r, false);
}

/* How many records of the other side a row of `side` meets; *sum: of their numbers. */
static uint32_t look(struct rig *rg, uint32_t side, uint32_t k, int64_t time, int64_t task, uint64_t *sum)
{
	uint8_t data[32];
	struct weir_join_row r = row_of(k, time, 0, data);
	struct weir_buf list = {0};
	weir_join_buffer_find_matches(rg->sl, side, &r, task, &list);
	const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
	uint32_t n = (uint32_t)(list.bytes / sizeof *f);
	*sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct weir_join_row got;
		uint64_t number;
		weir_join_buffer_get(&rg->def, &f[i], &got);
		assert_true(i == 0 || f[i].time >= f[i - 1].time);
		memcpy(&number, got.row, sizeof number);
		*sum += number;
	}
	weir_buf_fini(&list);
	return n;
}

static void test_a_line_says_who_is_there(void **state)
{
	(void)state;
	uint64_t line[WEIR_JOIN_LINE] __attribute__((aligned(64))) = {0};
	uint32_t hash = 0xdeadbeef;
	struct weir_join_look lk = weir_join_line_look(line, weir_join_place_value(hash, 4, 77));
	assert_int_equal(lk.others, 0);
	assert_int_equal(lk.own, 0);
	assert_int_equal(lk.empty, 255);
	line[0] = weir_join_place_value(hash, 4, 1);                  /* side 0 */
	line[1] = weir_join_place_value(hash, 6 | WEIR_JOIN_LIST, 2); /* side 0, another generation, a list */
	line[2] = weir_join_place_value(hash, 5, 3);                  /* side 1 */
	line[3] = weir_join_place_value(hash, 5 | WEIR_JOIN_LIST, 4); /* a list */
	line[4] = weir_join_place_value(hash ^ 1u << 6, 4, 5);        /* another hash by its lowest bit that counts */
	line[5] = weir_join_place_value(hash ^ 1u << 31, 5, 6);       /* by its highest */
	line[6] = weir_join_place_value(hash ^ 1u << 5, 7, 7);        /* by one that does not count */
	lk = weir_join_line_look(line, weir_join_place_value(hash, 4, 77));
	assert_int_equal(lk.own, 1);
	assert_int_equal(lk.others, 1 << 2 | 1 << 3 | 1 << 6);
	assert_int_equal(lk.empty, 1 << 7);
	lk = weir_join_line_look(line, weir_join_place_value(hash, 5, 77));
	assert_int_equal(lk.own, 1 << 2 | 1 << 3);
}

/* A hash that leaves nothing but zeros in a place: an empty one does not fit it. */
static void test_an_empty_place_fits_no_hash(void **state)
{
	(void)state;
	uint64_t line[WEIR_JOIN_LINE] __attribute__((aligned(64))) = {0}, sum;
	line[0] = weir_join_place_value(5, 2, 1);
	struct weir_join_look lk = weir_join_line_look(line, weir_join_place_value(5, 3, 0));
	assert_int_equal(lk.others, 1);
	assert_int_equal(lk.own, 0);
	assert_int_equal(lk.empty, 254);
	struct rig rg;
	rig_init(&rg, 3600000);
	for (uint32_t k = 0; k < 3; k++) {
		uint8_t data[32];
		struct weir_join_row r = row_of(k, 1000, k, data);
		r.hash = k; /* instead of its own */
		struct weir_buf list = {0};
		if (k != 2)
			weir_join_buffer_put(rg.sl, 0, &r, false);
		for (uint32_t side = 0; side < 2; side++) {
			weir_join_buffer_find_matches(rg.sl, side, &r, 0, &list);
			assert_int_equal(list.bytes, side == 1 && k != 2 ? sizeof(struct weir_join_found) : 0);
			weir_buf_fini(&list);
		}
	}
	assert_int_equal(look(&rg, 1, 7, 2000, 0, &sum), 0);
	rig_fini(&rg);
}

/* Many keys of both sides: every one is found, whatever size the index has. */
static void test_it_grows_and_shrinks(void **state)
{
	(void)state;
	enum { KEYS = 60000 };
	struct rig rg;
	uint64_t sum;
	rig_init(&rg, 3600000);
	for (uint32_t k = 0; k < KEYS; k++) {
		put(&rg, k % 2, k, 1000 + k, k);
		if ((k & (k - 1)) == 0 || k % 9973 == 0)
			for (uint32_t i = 0; i <= k; i += 1 + k / 500) {
				assert_int_equal(look(&rg, 1 - i % 2, i, i % 2 == 0 ? 1000 + KEYS : 0, 0, &sum), 1);
				assert_int_equal(sum, i);
				assert_int_equal(look(&rg, i % 2, i, i % 2 == 0 ? 0 : 1000 + KEYS, 0, &sum), 0);
			}
	}
	uint64_t most = weir_join_index_bytes(rg.sl);
	assert_true(most <= KEYS * 26);
	/* Two hours later nothing of it is left; what comes then is far less, and lies in far less. */
	for (uint32_t k = 0; k < 200000; k++) {
		int64_t time = 7200000 + (int64_t)k * 1000;
		weir_join_drop(rg.sl, time);
		put(&rg, k % 2, k, time, k);
		if (k % 1000 != 0)
			continue;
		assert_int_equal(look(&rg, 1 - k % 2, k, time, time, &sum), 1);
		assert_int_equal(sum, k);
		assert_int_equal(look(&rg, 1, k % KEYS, time, time, &sum), k % 2 == 0 && k < KEYS ? 1 : 0);
	}
	assert_true(weir_join_index_bytes(rg.sl) <= most / 4);
	rig_fini(&rg);
}

/* More generations live than there are codes: those without one are found all the same, and nothing of them is left
 * when they go. */
static void test_more_generations_than_codes(void **state)
{
	(void)state;
	enum { SECONDS = 100 };
	struct rig rg;
	uint64_t sum;
	rig_init(&rg, 1000000); /* no bucket shorter than 131 s: far apart, so that each is one */
	int64_t step = INT64_C(1) << rg.def.bucket_log2;
	for (uint32_t round = 0; round < 3; round++) {
		int64_t base = step * 1000 * (round + 1);
		for (uint32_t i = 0; i < SECONDS; i++) {
			put(&rg, 0, 7, base + i * step, i);
			put(&rg, 1, 8, base + i * step, i);
		}
		assert_true(rg.sl->joined->uncoded != 0);
		for (uint32_t i = 0; i < SECONDS; i++) {
			/* A row of side 1 meets those of the last million ms. */
			uint32_t back = (uint32_t)(1000000 / step), n = i < back ? i + 1 : back + 1;
			assert_int_equal(look(&rg, 1, 7, base + i * step, 0, &sum), n);
			uint64_t expected = 0;
			for (uint32_t k = 0; k < n; k++)
				expected += i - k;
			assert_int_equal(sum, expected);
		}
		weir_join_drop(rg.sl, base + (SECONDS + 1) * step * 2);
		assert_int_equal(weir_slot_entries(rg.sl), 0);
		assert_null(rg.sl->joined);
		assert_int_equal(look(&rg, 1, 7, base, 0, &sum), 0);
	}
	rig_fini(&rg);
}

/* Codes come again when what had them has been swept out; a place that was left behind is never taken for a new one. */
static void test_codes_come_again(void **state)
{
	(void)state;
	struct rig rg;
	uint64_t sum;
	rig_init(&rg, 8000);
	int64_t step = INT64_C(1) << rg.def.bucket_log2;
	for (uint32_t i = 0; i < 500; i++) {
		int64_t time = i * step;
		for (uint32_t k = 0; k < 20; k++)
			put(&rg, k % 2, k, time + k, i);
		weir_join_drop(rg.sl, time);
		/* Of each key there is one a generation, of those that still count at this time. */
		int64_t oldest = time - 8000;
		uint32_t n = 0;
		uint64_t expected = 0;
		for (uint32_t g = 0; g <= i; g++) {
			int64_t at = g * step + 4;
			n += at >= oldest && at <= time + 100 && at >= time + 100 - 8000;
			expected += at >= oldest && at <= time + 100 && at >= time + 100 - 8000 ? g : 0;
		}
		assert_int_equal(look(&rg, 1, 4, time + 100, time, &sum), n);
		assert_int_equal(sum, expected);
		assert_int_equal(rg.sl->joined->uncoded, 0);
	}
	rig_fini(&rg);
}

/* More keys than a segment has places, and all of them belong into the same one, however often the index grows. */
static void test_a_segment_too_small_for_its_keys(void **state)
{
	(void)state;
	enum { KEYS = 9000, BITS = 5 };
	static uint32_t key[KEYS];
	struct rig rg;
	uint64_t sum;
	rig_init(&rg, 3600000);
	for (uint32_t k = 0, n = 0; n < KEYS; k++) {
		uint8_t data[32];
		struct weir_join_row r = row_of(k, 0, 0, data);
		if (weir_hash_index(r.hash) >> (32 - BITS) == (1u << BITS) - 1)
			key[n++] = k;
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		put(&rg, i % 2, key[i], 1000 + i, i);
		if (i % 997 != 0 && i + 1 != KEYS)
			continue;
		for (uint32_t k = 0; k <= i; k += 1 + i / 500) {
			assert_int_equal(look(&rg, 1 - k % 2, key[k], k % 2 == 0 ? 1000 + KEYS : 0, 0, &sum), 1);
			assert_int_equal(sum, k);
			assert_int_equal(look(&rg, k % 2, key[k], k % 2 == 0 ? 0 : 1000 + KEYS, 0, &sum), 0);
		}
	}
	/* Most go; what stays is found where it moves to. */
	for (uint32_t k = 0; k < 3 * KEYS; k++) {
		int64_t time = 3000000 + (int64_t)k * 401;
		weir_join_drop(rg.sl, time);
		put(&rg, k % 2, key[k % KEYS], time, k);
		if (k % 500 == 0) {
			assert_int_equal(look(&rg, 1 - k % 2, key[k % KEYS], time, time, &sum),
					 k < KEYS && time <= 1000 + k + 3600000 ? (k % 2 == 0 ? 2 : 1) : 1);
		}
	}
	rig_fini(&rg);
}

/* A key that is not there but for its hash's lowest bits, or its highest, costs no look at a record: line and place
 * together hold all of a hash, behind full lines, too. */
static void test_no_chance_hits(void **state)
{
	(void)state;
	enum { KEYS = 100000 };
	struct rig rg;
	uint32_t met = 0, full = 0;
	rig_init(&rg, 3600000);
	for (uint32_t k = 0; k < KEYS; k++)
		put(&rg, 0, k, 1000, k);
	for (uint32_t k = KEYS; k < 2 * KEYS; k++) {
		uint8_t data[32];
		uint32_t hash = weir_hash_index(row_of(k, 0, 0, data).hash);
		const uint64_t *line = weir_join_index_line(rg.sl->joined, hash);
		for (uint32_t step = 1;; step++) {
			struct weir_join_look lk = weir_join_line_look(line, weir_join_place_value(hash, 3, 0));
			met += (uint32_t)__builtin_popcount(lk.others);
			if (lk.empty != 0)
				break;
			full++;
			line = weir_join_index_next(rg.sl->joined, hash, step);
		}
	}
	assert_true(full > KEYS / 100);
	assert_true(met < 20); /* by 32 bits there are 2 or 3; by 26 there would be a hundred and more */
	rig_fini(&rg);
}

/* Places lie four lines from where they belong, across the edge from the last segment to the first one, when the index
 * shrinks. */
static void test_it_shrinks_across_the_edge(void **state)
{
	(void)state;
	enum { LAST = 40, MANY = 20000, TIME = 6000000, LATER = 8000000 };
	static uint32_t last[LAST];
	struct rig rg;
	uint64_t sum;
	uint32_t k = 0;
	rig_init(&rg, 3600000);
	for (uint32_t n = 0, many = 0; n < LAST || many < MANY; k++) {
		uint8_t data[32];
		uint32_t hash = weir_hash_index(row_of(k, 0, 0, data).hash), line = hash * WEIR_JOIN_SPREAD >> 6 & 255;
		if (line == 252 && hash >> 27 == 31 && n < LAST)
			last[n++] = k;
		else if (line >= 16 && line < 236 && many++ < MANY)
			put(&rg, 0, k, 1000, k);
	}
	assert_int_equal(rg.sl->joined->line_mask, 255);
	uint32_t segments = rg.sl->joined->segments;
	assert_true(segments >= 16);
	for (uint32_t n = 0; n < LAST; n++)
		put(&rg, 0, last[n], n < LAST - 8 ? 1000 : TIME, n);
	assert_int_equal(rg.sl->joined->segments, segments);
	/* Those that stay fill the first line of all. */
	assert_int_not_equal(rg.sl->joined->segment[0][7], 0);
	assert_int_equal(rg.sl->joined->segment[0][8], 0);
	weir_join_drop(rg.sl, LATER);
	for (uint32_t i = 0; i < 12; i++) {
		for (uint32_t n = 0; n < LAST; n++)
			assert_int_equal(look(&rg, 1, last[n], TIME, LATER, &sum), n >= LAST - 8 ? 1 : 0);
		weir_join_index_sweep(rg.sl);
	}
	assert_int_equal(rg.sl->joined->segments, 1);
	assert_true(rg.sl->joined->line_mask < 16);
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_says_who_is_there),
		cmocka_unit_test(test_it_grows_and_shrinks),
		cmocka_unit_test(test_more_generations_than_codes),
		cmocka_unit_test(test_codes_come_again),
		cmocka_unit_test(test_a_segment_too_small_for_its_keys),
		cmocka_unit_test(test_an_empty_place_fits_no_hash),
		cmocka_unit_test(test_no_chance_hits),
		cmocka_unit_test(test_it_shrinks_across_the_edge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
