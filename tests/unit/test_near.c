/* test_near.c: copies of tables: every key is found with its row, whatever its size, in its own slot; no other is; and
 * the memory goes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/join_state.h"
#include "hotpath/state/near.h"

enum { SLOTS = 5, ABSENT_SLOT = 3 };

static const struct weir_type text_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
static struct weir_state_side sides[2] = {{.table = true}, {.table = true}};

struct rig {
	struct weir_state_def def;
	struct weir_agg row;
	struct weir_arena *ar;
	struct weir_slot *sl[SLOTS];
};

static void rig_init(struct rig *rg)
{
	memset(rg, 0, sizeof *rg);
	weir_state_row_agg(&rg->row);
	rg->def = (struct weir_state_def){.name = "j",
					  .kind = WEIR_STATE_JOIN,
					  .key_count = 1,
					  .key_types = &text_type,
					  .side_count = 2,
					  .sides = sides,
					  .agg_count = 1,
					  .aggs = &rg->row};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	for (uint32_t s = 0; s < SLOTS; s++)
		rg->sl[s] = s == ABSENT_SLOT ? NULL : weir_slot_create(&rg->def, s, rg->ar);
}

static void rig_fini(struct rig *rg)
{
	for (uint32_t s = 0; s < SLOTS; s++)
		weir_slot_destroy(rg->sl[s]);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
}

/* Key and row of number n as of slot s; lengths differ by n. Lives until the next call. */
static struct weir_join_row row_of(uint32_t s, uint32_t n)
{
	static uint8_t key[512], row[512];
	uint32_t key_bytes = 9 + n % 60, row_bytes = n * 7 % 300;
	memset(key, 0, sizeof key);
	memset(key, 'k', key_bytes);
	key[0] = 1;
	snprintf((char *)key + 1, 8, "%07u", n);
	key[8] = 'k';
	for (uint32_t i = 0; i < row_bytes; i++)
		row[i] = (uint8_t)(n + s * 31 + i);
	return (struct weir_join_row){.hash = weir_hash(key, key_bytes),
				      .time = 1,
				      .key = key,
				      .key_bytes = key_bytes,
				      .row = row,
				      .row_bytes = row_bytes};
}

static const struct weir_near_line *find(const struct weir_near *nr, uint32_t s, const struct weir_join_row *r)
{
	const struct weir_near_line *ln = weir_near_find(nr, r->hash, s, r->key, r->key_bytes);
	bool absent;
	const struct weir_near_line *guess = weir_near_guess(nr, r->hash, s, &absent);
	/* What the guess says agrees with the whole search. */
	if (absent)
		assert_null(ln);
	if (guess != NULL && weir_near_is(guess, s, r->key, r->key_bytes))
		assert_ptr_equal(guess, ln);
	return ln;
}

static void check_copy(uint32_t rows)
{
	struct rig rg;
	struct weir_near nr = {0};
	uint32_t long_keys = 0, long_rows = 0;
	rig_init(&rg);
	/* Slot s has every number but those divisible by s + 2; the same keys are in several. */
	for (uint32_t n = 0; n < rows; n++)
		for (uint32_t s = 0; s < SLOTS; s++) {
			struct weir_join_row r = row_of(s, n);
			if (rg.sl[s] && n % (s + 2) != 0)
				weir_join_table_put(rg.sl[s], 1, &r);
		}
	uint64_t before = weir_arena_bytes(rg.ar);
	weir_near_make(&nr, rg.ar, rg.sl, SLOTS, 1);
	assert_int_equal(weir_arena_bytes(rg.ar), before + nr.bytes);
	for (uint32_t n = 0; n < rows + 100; n++)
		for (uint32_t s = 0; s < SLOTS; s++) {
			struct weir_join_row r = row_of(s, n);
			const struct weir_near_line *ln = find(&nr, s, &r);
			bool is = rg.sl[s] && n < rows && n % (s + 2) != 0;
			long_keys += is && r.key_bytes > WEIR_NEAR_KEY_MAX;
			if (!is || r.key_bytes > WEIR_NEAR_KEY_MAX) {
				assert_null(ln);
				continue;
			}
			assert_non_null(ln);
			struct weir_packed row = weir_near_row(ln);
			assert_int_equal(row.bytes, r.row_bytes);
			assert_memory_equal(row.data, r.row, r.row_bytes);
			bool here = row.data >= ln->data && row.data <= ln->data + sizeof ln->data;
			assert_int_equal(here, weir_align_up(r.key_bytes, 8) + r.row_bytes <= sizeof ln->data);
			long_rows += !here;
		}
	if (rows > 100) {
		assert_true(long_keys > 0);
		assert_true(long_rows > 0);
	}
	weir_near_drop(&nr);
	assert_int_equal(nr.groups, 0);
	weir_near_drop(&nr); /* nothing */
	assert_int_equal(weir_arena_bytes(rg.ar), before);
	rig_fini(&rg);
}

static void test_every_key_is_found(void **state)
{
	(void)state;
	static const uint32_t rows[] = {0, 1, 2, 7, 50, 1000, 20000};
	for (size_t i = 0; i < WEIR_COUNT_OF(rows); i++)
		check_copy(rows[i]);
}

/* Deleted keys are not copied; a copy made anew has what the table has now. */
static void test_a_copy_is_of_its_time(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_near nr = {0};
	rig_init(&rg);
	for (uint32_t n = 0; n < 500; n++) {
		struct weir_join_row r = row_of(0, n);
		weir_join_table_put(rg.sl[0], 1, &r);
	}
	for (uint32_t n = 0; n < 500; n += 2) {
		struct weir_join_row r = row_of(0, n);
		weir_join_table_delete(rg.sl[0], 1, &r);
	}
	weir_near_make(&nr, rg.ar, rg.sl, SLOTS, 1);
	for (uint32_t n = 0; n < 500; n++) {
		struct weir_join_row r = row_of(0, n);
		if (r.key_bytes <= WEIR_NEAR_KEY_MAX)
			assert_int_equal(find(&nr, 0, &r) != NULL, n % 2 == 1);
	}
	weir_near_drop(&nr);
	struct weir_join_row r = row_of(0, 0);
	weir_join_table_put(rg.sl[0], 1, &r);
	weir_near_make(&nr, rg.ar, rg.sl, SLOTS, 1);
	r = row_of(0, 0);
	assert_non_null(find(&nr, 0, &r));
	weir_near_drop(&nr);
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_is_found),
		cmocka_unit_test(test_a_copy_is_of_its_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
