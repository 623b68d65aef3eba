/* test_page.c: the index of a generation against a list: keys that fall into the same group of places with the same
 * tag, removed ones among them, groups that run over into the next and around the end, growth; where entries lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "hotpath/core/arena.h"
#include "hotpath/state/page.h"

enum { KEYS = 600 };

struct table {
	struct weir_arena *ar;
	struct weir_blocks blocks;
	struct weir_pages pages;
	struct weir_gen gen;
	struct weir_state_def def;
	struct weir_agg agg;
	struct weir_type type;
	uint64_t hash[KEYS];
	struct weir_entry *entry[KEYS]; /* what the list says; NULL: not in the table */
};

static void table_init(struct table *tb, uint32_t places, uint32_t tags)
{
	memset(tb, 0, sizeof *tb);
	tb->type = (struct weir_type){.kind = WEIR_KIND_BIGINT};
	assert_int_equal(weir_agg_resolve(&tb->agg, "COUNT", false, NULL, NULL), WEIR_OK);
	tb->def = (struct weir_state_def){.name = "t",
					  .kind = WEIR_STATE_TABLE,
					  .key_count = 1,
					  .key_types = &tb->type,
					  .agg_count = 1,
					  .aggs = &tb->agg};
	assert_int_equal(weir_state_def_init(&tb->def, NULL), WEIR_OK);
	tb->ar = weir_arena_create();
	weir_blocks_init(&tb->blocks, tb->ar);
	weir_pages_init(&tb->pages, &tb->blocks);
	weir_gen_init(&tb->gen, &tb->pages, NULL, 0, 0);
	for (uint32_t k = 0; k < KEYS; k++)
		tb->hash[k] = (uint64_t)((uint32_t)rand() % tags) << 32 | (uint32_t)rand() % places;
}

static void table_fini(struct table *tb)
{
	weir_gen_fini(&tb->gen);
	weir_pages_fini(&tb->pages);
	weir_blocks_fini(&tb->blocks);
	weir_arena_destroy(tb->ar);
}

static uint64_t *find(struct table *tb, uint32_t k, uint64_t **free_slot)
{
	const uint64_t key[2] = {k, 0};
	return weir_index_find(&tb->gen.ix, &tb->def, tb->hash[k], (const uint8_t *)key, 8, free_slot);
}

static void put(struct table *tb, uint32_t k)
{
	const uint64_t key[2] = {k, 0};
	struct weir_entry *e = weir_gen_find_or_create(&tb->gen, &tb->def, tb->hash[k], (const uint8_t *)key, 8);
	if (tb->entry[k] != NULL)
		assert_ptr_equal(e, tb->entry[k]);
	tb->entry[k] = e;
}

static void take_out(struct table *tb, uint32_t k)
{
	uint64_t *free_slot, *slot = find(tb, k, &free_slot);
	assert_non_null(slot);
	weir_index_store(slot, WEIR_INDEX_REMOVED);
	tb->entry[k] = NULL;
}

static void check(struct table *tb)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		uint64_t *free_slot = NULL, *slot = find(tb, k, &free_slot);
		struct weir_entry *guess = weir_index_guess(&tb->gen.ix, tb->hash[k]);
		if (tb->entry[k] == NULL) {
			assert_null(slot);
			assert_true(*free_slot <= WEIR_INDEX_REMOVED);
			continue;
		}
		assert_non_null(slot);
		assert_ptr_equal(weir_index_entry(*slot), tb->entry[k]);
		/* A guess is the key itself, or one that hash bits cannot tell from it, never nothing. */
		assert_non_null(guess);
		uint32_t other = (uint32_t)weir_load_le64((const uint8_t *)guess + weir_def_key_at(&tb->def));
		assert_true(other < KEYS);
		assert_int_equal(weir_index_tag(tb->hash[other]), weir_index_tag(tb->hash[k]));
		assert_ptr_equal(tb->entry[other], guess);
	}
}

static void run(uint32_t places, uint32_t tags, uint32_t keys)
{
	struct table tb;
	table_init(&tb, places, tags);
	for (int step = 0; step < 4000; step++) {
		uint32_t k = (uint32_t)rand() % keys;
		if (tb.entry[k] == NULL || rand() % 3 == 0)
			put(&tb, k);
		else
			take_out(&tb, k);
		if (step % 100 == 0)
			check(&tb);
	}
	check(&tb);
	table_fini(&tb);
}

static void test_spread_keys(void **state)
{
	(void)state;
	run(1u << 30, 65536, KEYS);
}

static void test_one_group_one_tag(void **state)
{
	(void)state;
	run(4, 1, 40);
}

static void test_around_the_end(void **state)
{
	struct table tb;
	(void)state;
	table_init(&tb, 1, 3);
	for (uint32_t k = 0; k < 9; k++) {
		tb.hash[k] |= 12; /* the last group of sixteen places */
		put(&tb, k);
	}
	assert_int_equal(tb.gen.ix.mask, 15);
	assert_true(tb.gen.ix.slot[4] > WEIR_INDEX_REMOVED); /* the ninth went around the end */
	check(&tb);
	take_out(&tb, 0);
	take_out(&tb, 5);
	check(&tb);
	put(&tb, 5); /* in the first place that was left */
	assert_int_equal(tb.gen.ix.used, 9);
	check(&tb);
	table_fini(&tb);
}

static void test_few_tags_many_groups(void **state)
{
	(void)state;
	for (uint32_t places = 8; places <= 512; places *= 4)
		for (uint32_t tags = 1; tags <= 4; tags *= 2)
			run(places, tags, KEYS);
}

/* A key of 9 to 16 bytes, a SUM of a DECIMAL and a COUNT: 56 bytes, which lie in one line of the cache wherever they
 * are; and their pages read as entries one after the other. */
static void test_short_entries_lie_in_one_line(void **state)
{
	struct table tb;
	static const struct weir_type number = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2};
	struct weir_agg aggs[2];
	(void)state;
	table_init(&tb, 1u << 30, 65536);
	memset(aggs, 0, sizeof aggs);
	assert_int_equal(weir_agg_resolve(&aggs[0], "SUM", false, &number, NULL), WEIR_OK);
	assert_int_equal(weir_agg_resolve(&aggs[1], "COUNT", false, NULL, NULL), WEIR_OK);
	tb.def = (struct weir_state_def){.name = "w",
					 .kind = WEIR_STATE_WINDOW,
					 .size_ms = 1000,
					 .advance_ms = 1000,
					 .key_count = 1,
					 .key_types = &tb.type,
					 .agg_count = 2,
					 .aggs = aggs};
	assert_int_equal(weir_state_def_init(&tb.def, NULL), WEIR_OK);
	assert_int_equal(weir_def_key_at(&tb.def), 40);
	for (uint64_t k = 0; k < KEYS; k++) {
		const uint64_t key[2] = {k, 7};
		struct weir_entry *e =
			weir_gen_find_or_create(&tb.gen, &tb.def, tb.hash[k], (const uint8_t *)key, 9 + k % 8);
		assert_true((uintptr_t)e % WEIR_CACHE_LINE + 56 <= WEIR_CACHE_LINE);
		assert_int_equal(weir_entry_bytes(&tb.def, e), 64);
		assert_int_equal(weir_load_le64((const uint8_t *)e + 56), 0);
		tb.entry[k] = e;
	}
	uint64_t walked = 0;
	for (uint32_t no = tb.gen.page_first; no != 0; no = tb.pages.page[no].next) {
		const struct weir_page *p = &tb.pages.page[no];
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used; walked++) {
			struct weir_entry *e = (struct weir_entry *)(void *)(p->base + at);
			uint32_t n;
			const uint8_t *key = weir_entry_key(&tb.def, e, &n);
			assert_ptr_equal(tb.entry[weir_load_le64(key)], e);
			assert_int_equal(n, 9 + weir_load_le64(key) % 8);
			at += (uint32_t)weir_entry_bytes(&tb.def, e);
		}
	}
	assert_int_equal(walked, KEYS);
	/* What is far from filling lines is not padded. */
	assert_int_equal(weir_entry_bytes_for(&tb.def, 8), 48);
	assert_int_equal(weir_entry_bytes_for(&tb.def, 24), 64);
	assert_int_equal(weir_entry_bytes_for(&tb.def, 32), 72);
	assert_int_equal(weir_entry_bytes_for(&tb.def, 72), 128);
	assert_int_equal(weir_entry_bytes_for(&tb.def, 200), 240);
	table_fini(&tb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_entries_lie_in_one_line),
		cmocka_unit_test(test_spread_keys),
		cmocka_unit_test(test_one_group_one_tag),
		cmocka_unit_test(test_around_the_end),
		cmocka_unit_test(test_few_tags_many_groups),
	};
	srand(20261129);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
