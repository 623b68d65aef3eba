/* test_dirty.c: packs, images, numbers and restore: what is written, what may be lost to compaction, what is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "hotpath/core/arena.h"
#include "hotpath/core/diag.h"
#include "hotpath/state/blob.h"
#include "hotpath/state/dirty.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

/* A compacted topic: the newest body of each key, and what was written in all. */
struct topic {
	struct weir_buf packs[4096];
	struct weir_buf pages[4096][8];
	bool pack_there[4096], page_there[4096][8];
	uint64_t pack_bytes, page_bytes;
	uint32_t pack_count, page_count, tombstones;
	uint32_t order[65536]; /* pack: k; page: 0x10000 + no * 8 + part; oldest first */
	uint32_t order_count;
};
static struct topic tp;

static void topic_put(struct weir_buf *b, bool *there, const uint8_t *body, uint32_t bytes, uint32_t id)
{
	b->bytes = 0;
	*there = body != NULL;
	if (body != NULL)
		weir_buf_put(b, body, bytes);
	else
		tp.tombstones++;
	tp.order[tp.order_count++] = id;
}
static void topic_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	(void)ctx;
	assert_int_equal(slot, 0);
	assert_true(bytes <= WEIR_PACK_MAX && k < 4096);
	topic_put(&tp.packs[k], &tp.pack_there[k], body, bytes, k);
	tp.pack_bytes += bytes;
	tp.pack_count++;
}
static void topic_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	(void)ctx;
	assert_int_equal(slot, 0);
	assert_true(bytes <= WEIR_PACK_MAX && page < 4096 && part < 8);
	topic_put(&tp.pages[page][part], &tp.page_there[page][part], body, bytes, 0x10000 + page * 8 + part);
	tp.page_bytes += bytes;
	tp.page_count++;
}
static const struct weir_delta_sink sink = {NULL, topic_pack, topic_page, NULL};

static void topic_clear(void)
{
	for (int i = 0; i < 4096; i++) {
		weir_buf_fini(&tp.packs[i]);
		for (int p = 0; p < 8; p++)
			weir_buf_fini(&tp.pages[i][p]);
	}
	memset(&tp, 0, sizeof tp);
}

/* Bodies of one key that a compacted topic holds. */
static uint64_t topic_live_bytes(void)
{
	uint64_t n = 0;
	for (int i = 0; i < 4096; i++) {
		n += tp.packs[i].bytes;
		for (int p = 0; p < 8; p++)
			n += tp.pages[i][p].bytes;
	}
	return n;
}

static bool barrier(struct rig *rg, uint64_t epoch)
{
	bool changed = weir_slot_barrier(rg->slots[0], epoch, &sink);
	weir_slot_committed(rg->slots[0], epoch);
	return changed;
}

/* A new slot out of the topic, newest bodies only, in log order. */
static void restore(struct rig *rg)
{
	struct weir_buf saved = {0};
	struct weir_diag *dg = NULL;
	weir_slot_save(rg->slots[0], &saved);
	rig_destroy_slots(rg);
	rig_create_slots(rg);
	struct weir_slot *sl = rg->slots[0];
	assert_int_equal(weir_slot_load(sl, saved.data, saved.bytes, &dg), WEIR_OK);
	for (uint32_t i = 0; i < tp.order_count; i++) {
		uint32_t id = tp.order[i];
		bool last = true;
		for (uint32_t j = i + 1; j < tp.order_count && last; j++)
			last = tp.order[j] != id;
		if (!last)
			continue;
		enum weir_err err;
		if (id < 0x10000) {
			struct weir_buf *b = &tp.packs[id];
			err = weir_slot_restore_pack(sl, id, tp.pack_there[id] ? b->data : NULL, b->bytes, &dg);
		} else {
			uint32_t no = (id - 0x10000) / 8, part = id % 8;
			struct weir_buf *b = &tp.pages[no][part];
			err = weir_slot_restore_page(sl, no, part, tp.page_there[no][part] ? b->data : NULL, b->bytes,
						     &dg);
		}
		if (err != WEIR_OK)
			print_error("%s\n", weir_diag_text(dg));
		assert_int_equal(err, WEIR_OK);
	}
	enum weir_err finish = weir_slot_restore_finish(sl, &dg);
	if (finish != WEIR_OK)
		print_error("%s\n", weir_diag_text(dg));
	assert_int_equal(finish, WEIR_OK);
	weir_buf_fini(&saved);
}

static struct weir_state_def tumbling(int64_t size, int64_t grace)
{
	return (struct weir_state_def){
		.kind = WEIR_STATE_WINDOW, .size_ms = size, .advance_ms = size, .grace_ms = grace};
}

static void test_nothing_changed_writes_nothing(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	assert_false(barrier(&rg, 1));
	assert_int_equal(tp.order_count, 0);
	rig_put(&rg, 1, 5, 0);
	assert_true(barrier(&rg, 2));
	assert_int_equal(tp.pack_count, 1);
	uint32_t written = tp.order_count;
	assert_false(barrier(&rg, 3));
	assert_int_equal(tp.order_count, written);
	/* A window that closes changes the list of live windows. */
	rig_close(&rg, 10, false);
	assert_true(barrier(&rg, 4));
	assert_int_equal(tp.order_count, written);
	rig_fini(&rg);
	topic_clear();
}

static void test_vector_15_restart(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
	rig_put(&rg, 1, 5, 3);
	rig_put(&rg, 2, 25, 4);
	rig_close(&rg, rg.task_time, false);
	rig_text(&rg);
	barrier(&rg, 1);
	restore(&rg);
	/* Task time comes back with the marker: 9 is as late as it was. */
	rig_put(&rg, 1, 9, 0);
	assert_int_equal(rg.applied.late, 1);
	rig_put(&rg, 2, 26, 1);
	rig_close(&rg, 30, false);
	assert_string_equal(rig_text(&rg), "+I k2 [20,30) 2 5 @29\n");
	rig_fini(&rg);
	topic_clear();
}

static void test_insertions_of_a_window_are_few_items(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	for (int64_t k = 0; k < 1000; k++)
		rig_add(&rg, &(struct rig_row){.key = k, .ts = 1});
	rig_apply(&rg);
	barrier(&rg, 1);
	/* Entries that follow each other in a page are one range: hardly more is written than the entries. */
	assert_true(tp.pack_bytes < 1000 * 24 + 1000);
	assert_true(tp.page_bytes <= tp.pack_bytes);
	rig_fini(&rg);
	topic_clear();
}

static void test_packs_are_8_to_64_kib_and_follow_windows(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000);
	rig_init(&rg, &def, "COUNT(*)", 1);
	for (int64_t w = 0; w < 40; w++) {
		for (int64_t k = 0; k < 500; k++)
			rig_add(&rg, &(struct rig_row){.key = k, .ts = w * 10});
		rig_apply(&rg);
	}
	barrier(&rg, 1);
	assert_true(tp.pack_count > 20);
	for (uint32_t k = 0; k + 1 < tp.pack_count; k++) {
		assert_in_range(tp.packs[k].bytes, WEIR_PACK_MIN, WEIR_PACK_MAX);
		/* 500 entries of 24 bytes: a pack of one window. */
		const struct weir_pack_run *run = (const void *)(tp.packs[k].data + sizeof(struct weir_pack_head));
		assert_int_equal(run->window, k * 10);
	}
	rig_fini(&rg);
	topic_clear();
}

/* Updates go round: live packs never outnumber pages for long, written bytes stay at twice the changes, and what a
 * compacted topic holds at twice the state. */
static void test_bounds_under_updates(void **state)
{
	(void)state;
	for (int pattern = 0; pattern < 3; pattern++) {
		struct rig rg;
		struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
		rig_init(&rg, &def, "COUNT(*) SUM:0 MAX:2", 1);
		uint64_t epoch = 0;
		for (int64_t k = 0; k < 5000; k++) {
			rig_add(&rg, &(struct rig_row){.key = k, .ts = 1, .text = "a value"});
			if (rg.count == 1000)
				rig_apply(&rg);
		}
		rig_changes(&rg);
		rig_text(&rg);
		barrier(&rg, ++epoch);
		uint32_t rounds = pattern == 0 ? 2000 : 300;
		uint64_t seed = 1;
		for (uint32_t r = 0; r < rounds; r++) {
			uint32_t n = pattern == 0 ? 1 : pattern == 1 ? 50 : 1000;
			for (uint32_t i = 0; i < n; i++) {
				seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
				int64_t key = (int64_t)((seed >> 33) % (pattern == 1 ? 40 : 5000));
				rig_add(&rg, &(struct rig_row){.key = key, .ts = 1, .value = r, .text = "a value"});
			}
			rig_apply(&rg);
			rig_changes(&rg);
			rig_text(&rg);
			barrier(&rg, ++epoch);
			const struct weir_dirty *d = &rg.slots[0]->d;
			uint32_t live = d->live_packs.count - d->live_from;
			assert_true(live <= rg.slots[0]->pages.live + 8);
			assert_true(d->pack_high <= 2 * live + 200);
		}
		assert_true(tp.page_bytes <= tp.pack_bytes + rounds * (uint64_t)(WEIR_PAGE_BYTES_MAX + 64));
		assert_true(topic_live_bytes() <= 2 * weir_slot_bytes(rg.slots[0]));
		/* And all of it comes back. */
		rig_put(&rg, 77, 1, 0);
		rig_changes(&rg);
		rig_text(&rg);
		barrier(&rg, ++epoch);
		uint64_t entries = weir_slot_entries(rg.slots[0]);
		restore(&rg);
		assert_int_equal(weir_slot_entries(rg.slots[0]), entries);
		barrier(&rg, ++epoch);
		rig_fini(&rg);
		topic_clear();
	}
}

static void test_dead_pack_numbers_are_used_again(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	for (int64_t w = 0; w < 200; w++) {
		for (int64_t k = 0; k < 100; k++)
			rig_add(&rg, &(struct rig_row){.key = k, .ts = w * 10});
		rig_apply(&rg);
		rig_close(&rg, rg.task_time, false);
		rig_text(&rg);
		barrier(&rg, (uint64_t)w + 1);
	}
	/* Windows closed, their packs and pages died: a handful of numbers serves for ever, without tombstones. */
	assert_int_equal(tp.pack_count, 200);
	assert_true(rg.slots[0]->d.pack_high <= 4);
	assert_true(rg.slots[0]->pages.numbers.high <= 20);
	assert_int_equal(tp.tombstones, 0);
	rig_fini(&rg);
	topic_clear();
}

static void test_uncommitted_images_keep_packs_alive(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000);
	rig_init(&rg, &def, "COUNT(*)", 1);
	struct weir_slot *sl = rg.slots[0];
	rig_put(&rg, 1, 1, 0);
	weir_slot_barrier(sl, 1, &sink);
	for (uint64_t e = 2; e < 8; e++) {
		rig_put(&rg, 1, 1, 0);
		weir_slot_barrier(sl, e, &sink);
	}
	/* Nothing is committed: no number may be used twice. */
	assert_int_equal(tp.pack_count, 7);
	assert_int_equal(sl->d.pack_high, 7);
	weir_slot_committed(sl, 7);
	rig_put(&rg, 1, 1, 0);
	weir_slot_barrier(sl, 8, &sink);
	assert_int_equal(sl->d.pack_high, 7);
	weir_slot_committed(sl, 8);
	restore(&rg);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 8 @9\n");
	rig_fini(&rg);
	topic_clear();
}

static void test_tombstones_when_state_shrinks(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_SESSION, .gap_ms = 10};
	rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2", 1);
	uint64_t epoch = 0;
	for (int64_t k = 0; k < 12000; k++) {
		rig_add(&rg, &(struct rig_row){.key = k, .ts = 1, .text = "some text that is not short"});
		if (rg.count == 1000) {
			rig_apply(&rg);
			barrier(&rg, ++epoch);
		}
	}
	uint32_t high = rg.slots[0]->d.logged_pages;
	assert_true(high > 80);
	for (int64_t t = 0; t < 300; t++) {
		rig_put(&rg, -1, 100 + t * 5, 0);
		rig_close(&rg, rg.task_time, false);
		rig_text(&rg);
		barrier(&rg, ++epoch);
	}
	assert_true(tp.tombstones > 0);
	assert_true(rg.slots[0]->d.logged_pages < high / 2);
	assert_true(topic_live_bytes() < 200000);
	restore(&rg);
	assert_int_equal(weir_slot_entries(rg.slots[0]), 1);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k-1 [100,1605) 300 x @1595\n");
	rig_fini(&rg);
	topic_clear();
}

static void test_large_entries_in_parts(void **state)
{
	(void)state;
	static char large[200001];
	memset(large, 'L', 200000);
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
	rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2", 1);
	for (uint64_t e = 1; e < 6; e++) {
		large[e] = (char)('a' + e);
		rig_add(&rg, &(struct rig_row){.key = 1, .ts = 1, .text = large});
		rig_apply(&rg);
		rig_changes(&rg);
		rig_text(&rg);
		barrier(&rg, e);
	}
	assert_true(tp.page_count >= 4);
	restore(&rg);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 1, .null = true});
	rig_apply(&rg);
	assert_int_equal(weir_slot_changes(rg.slots[0], &rg.rows), 1);
	assert_int_equal(rg.rows.cols[1].i64[0], 6);
	assert_int_equal(rg.rows.cols[2].str[0].bytes, 200000);
	assert_memory_equal(rg.rows.cols[2].str[0].data, large, 200000);
	rig_fini(&rg);
	topic_clear();
}

static void check_refused(struct rig *rg, const struct weir_buf *saved, const uint8_t *body, size_t bytes, bool page,
			  uint32_t number, enum weir_err as, const char *want)
{
	struct weir_diag *dg = NULL;
	rig_destroy_slots(rg);
	rig_create_slots(rg);
	struct weir_slot *sl = rg->slots[0];
	enum weir_err err = weir_slot_load(sl, saved->data, saved->bytes, &dg);
	if (err == WEIR_OK)
		err = page ? weir_slot_restore_page(sl, number, 0, body, bytes, &dg)
			   : weir_slot_restore_pack(sl, number, body, bytes, &dg);
	if (err == WEIR_OK)
		err = weir_slot_restore_finish(sl, &dg);
	if (want == NULL) {
		assert_int_equal(err, WEIR_OK);
	} else {
		assert_int_equal(err, as);
		assert_non_null(strstr(weir_diag_text(dg), want));
	}
	weir_diag_destroy(dg);
}

static void check_corrupt(struct rig *rg, const struct weir_buf *saved, const uint8_t *body, size_t bytes, bool page,
			  uint32_t number, const char *want)
{
	check_refused(rg, saved, body, bytes, page, number, WEIR_E_CORRUPT, want);
}

static void test_damage_is_named(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000);
	struct weir_buf saved = {0};
	rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2", 1);
	rig_put(&rg, 1, 1, 0);
	rig_put(&rg, 2, 1, 0);
	weir_slot_barrier(rg.slots[0], 1, &sink);
	weir_slot_save(rg.slots[0], &saved);
	uint8_t body[4096];
	uint32_t bytes = (uint32_t)tp.packs[0].bytes;
	assert_true(bytes <= sizeof body);
#define FRESH() memcpy(body, tp.packs[0].data, bytes)
	FRESH();
	check_corrupt(&rg, &saved, body, bytes, false, 0, NULL);
	check_corrupt(&rg, &saved, body, bytes - 8, false, 0, "item is out of range");
	check_corrupt(&rg, &saved, body, 8, false, 0, "too short");
	check_corrupt(&rg, &saved, body, bytes, false, UINT32_MAX, "number is out of range");
	body[0] = 9;
	check_refused(&rg, &saved, body, bytes, false, 0, WEIR_E_STATE, "has format version 9, which is not known");
	FRESH();
	struct weir_pack_item *it = (void *)(body + sizeof(struct weir_pack_head) + sizeof(struct weir_pack_run));
	it->page_bytes = 1000;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "impossible size");
	it->page_bytes = 0;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "nothing to change");
	FRESH();
	/* A length alone makes no memory. */
	it->page_bytes = 1u << 30;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "longer than what came");
	it->page_bytes = WEIR_PAGE_BYTES_MAX + 64;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "longer than what came");
	FRESH();
	struct weir_entry *e = (void *)(it + 1);
	e->hash ^= 1;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	FRESH();
	e->key_bytes = 4000;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	FRESH();
	/* The string's ref leads into an entry, to another page, or is given twice. */
	struct weir_text *t = (void *)((uint8_t *)e + rg.def.head_bytes + rg.def.aggs[1].state_at);
	uint32_t ref = t->ref;
	t->ref = ref + 1;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	t->ref = 77u << WEIR_REF_SHIFT | 1;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	t->ref = ref;
	t->bytes = 100000;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	/* The marker's part. */
	FRESH();
	struct weir_buf odd = {0};
	weir_buf_put(&odd, saved.data, saved.bytes);
	odd.bytes--;
	check_corrupt(&rg, &odd, body, bytes, false, 0, "another length than its windows");
	odd.bytes = saved.bytes;
	odd.data[saved.bytes - 8] = 3;
	check_corrupt(&rg, &odd, body, bytes, false, 0, "a window that cannot be");
	odd.bytes = 3;
	check_corrupt(&rg, &odd, body, bytes, false, 0, "too short");
	weir_buf_fini(&odd);
	weir_buf_fini(&saved);
	rig_fini(&rg);
	topic_clear();
}

/* Blobs of two windows given to each other's entries: the earlier window would take the text of the later with it. */
static void test_texts_of_another_window_are_refused(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000);
	struct weir_buf saved = {0};
	rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2", 1);
	rig_put(&rg, 1, 1, 0);
	rig_put(&rg, 1, 11, 0);
	weir_slot_barrier(rg.slots[0], 1, &sink);
	weir_slot_save(rg.slots[0], &saved);
	uint8_t body[4096];
	uint32_t bytes = (uint32_t)tp.packs[0].bytes, found = 0;
	assert_true(bytes <= sizeof body);
	memcpy(body, tp.packs[0].data, bytes);
	struct weir_text *text[2];
	for (uint32_t at = sizeof(struct weir_pack_head); at < bytes;) {
		const struct weir_pack_run *run = (const void *)(body + at);
		at += sizeof *run;
		for (uint32_t i = 0; i < run->items; i++) {
			const struct weir_pack_item *it = (const void *)(body + at);
			struct weir_entry *e = (void *)(body + at + sizeof *it);
			at += (uint32_t)sizeof *it + it->bytes;
			if ((e->flags & WEIR_ENTRY_BLOB) != 0)
				continue;
			assert_true(found < 2);
			text[found++] = (void *)((uint8_t *)e + rg.def.head_bytes + rg.def.aggs[1].state_at);
		}
	}
	assert_int_equal(found, 2);
	check_corrupt(&rg, &saved, body, bytes, false, 0, NULL);
	uint32_t ref = text[0]->ref;
	text[0]->ref = text[1]->ref;
	text[1]->ref = ref;
	check_corrupt(&rg, &saved, body, bytes, false, 0, "entries that cannot be");
	weir_buf_fini(&saved);
	rig_fini(&rg);
	topic_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changed_writes_nothing),
		cmocka_unit_test(test_vector_15_restart),
		cmocka_unit_test(test_insertions_of_a_window_are_few_items),
		cmocka_unit_test(test_packs_are_8_to_64_kib_and_follow_windows),
		cmocka_unit_test(test_bounds_under_updates),
		cmocka_unit_test(test_dead_pack_numbers_are_used_again),
		cmocka_unit_test(test_uncommitted_images_keep_packs_alive),
		cmocka_unit_test(test_tombstones_when_state_shrinks),
		cmocka_unit_test(test_large_entries_in_parts),
		cmocka_unit_test(test_damage_is_named),
		cmocka_unit_test(test_texts_of_another_window_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
