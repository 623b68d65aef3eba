/* test_foreign.c: rows of a left table that hang on a foreign key: against a naive twin, through restarts; and links
 * that cannot be are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/foreign.h"

enum { BODIES = 512 };

static const struct weir_type key_types[2] = {{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
					      {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}};

struct rig {
	struct weir_state_def def;
	struct weir_state_side side[2];
	struct weir_agg row;
	struct weir_arena *ar;
	struct weir_slot *sl;
	struct weir_buf packs[BODIES], pages[BODIES]; /* the changelog, by number */
	struct weir_buf order;                        /* u32: as they were written; a page: BODIES + number */
	uint64_t epoch;
	struct weir_buf room;
};

static void rig_init(struct rig *rg)
{
	memset(rg, 0, sizeof *rg);
	rg->side[0] = rg->side[1] = (struct weir_state_side){.table = true};
	weir_state_row_agg(&rg->row);
	rg->def = (struct weir_state_def){.name = "f-keys",
					  .kind = WEIR_STATE_JOIN,
					  .key_count = 2,
					  .key_types = key_types,
					  .side_count = 2,
					  .sides = rg->side,
					  .agg_count = 1,
					  .aggs = &rg->row,
					  .foreign = 1};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
}

static void rig_fini(struct rig *rg)
{
	weir_slot_destroy(rg->sl);
	weir_arena_destroy(rg->ar);
	for (int i = 0; i < BODIES; i++) {
		weir_buf_fini(&rg->packs[i]);
		weir_buf_fini(&rg->pages[i]);
	}
	weir_buf_fini(&rg->order);
	weir_buf_fini(&rg->room);
}

static uint32_t put_text(uint8_t *to, const char *prefix, uint32_t n)
{
	to[0] = 1;
	uint32_t bytes = (uint32_t)sprintf((char *)to + 1, "%s%u", prefix, n);
	to[bytes + 1] = 0;
	return bytes + 2;
}

/* The left row `own` that refers to `key`; own UINT32_MAX: the right row. Its bytes are its version. Lives until the
 * next call. */
static struct weir_join_row row_of(uint32_t key, uint32_t own, uint64_t version)
{
	static uint8_t bytes[64], data[8];
	memset(bytes, 0, sizeof bytes);
	uint32_t n = put_text(bytes, "f", key);
	if (own != UINT32_MAX)
		n += put_text(bytes + n, "own-", own);
	else
		bytes[n++] = 0;
	weir_store_le64(data, version);
	return (struct weir_join_row){.hash = weir_hash(bytes, n & 63), /* it never is more */
				      .time = (int64_t)version,
				      .key = bytes,
				      .key_bytes = n,
				      .row = data,
				      .row_bytes = 8};
}

static void put(struct rig *rg, uint32_t key, uint32_t own, uint64_t version)
{
	struct weir_join_row r = row_of(key, own, version), at;
	weir_foreign_key(&rg->def, &r, &rg->room, &at);
	weir_foreign_put(rg->sl, &r, &at);
}

static bool take(struct rig *rg, uint32_t key, uint32_t own)
{
	struct weir_join_row r = row_of(key, own, 0), at;
	weir_foreign_key(&rg->def, &r, &rg->room, &at);
	return weir_foreign_remove(rg->sl, &r, &at);
}

/* Versions of the rows that hang on key, newest link first. */
static const char *chain(struct rig *rg, uint32_t key)
{
	static char text[8192];
	size_t at = 0;
	struct weir_join_row right = row_of(key, UINT32_MAX, 0), left;
	text[0] = 0;
	for (uint32_t ref = weir_foreign_first(rg->sl, &right); ref != 0;) {
		ref = weir_foreign_get(rg->sl, ref, &left);
		assert_int_equal(left.row_bytes, 8);
		assert_int_equal(left.time, weir_load_le64(left.row));
		at += (size_t)snprintf(text + at, sizeof text - at, "%" PRIu64 " ", weir_load_le64(left.row));
	}
	return text;
}

static void log_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	struct rig *rg = ctx;
	(void)slot;
	assert_true(k < BODIES);
	rg->packs[k].bytes = 0;
	weir_buf_put(&rg->packs[k], body, body ? bytes : 0);
	weir_buf_put(&rg->order, &k, sizeof k);
}

static void log_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	struct rig *rg = ctx;
	(void)slot;
	assert_true(page < BODIES && part == 0);
	rg->pages[page].bytes = 0;
	weir_buf_put(&rg->pages[page], body, body ? bytes : 0);
	page += BODIES;
	weir_buf_put(&rg->order, &page, sizeof page);
}

static void barrier(struct rig *rg)
{
	struct weir_delta_sink sink = {.ctx = rg, .pack = log_pack, .page = log_page};
	(void)weir_slot_barrier(rg->sl, ++rg->epoch, &sink);
	weir_slot_committed(rg->sl, rg->epoch);
}

/* The slot again, from the newest body of each number, in the order of the log. */
static enum weir_err restore(struct rig *rg)
{
	struct weir_buf saved = {0};
	uint32_t last[2 * BODIES] = {0}, count = (uint32_t)(rg->order.bytes / sizeof(uint32_t));
	const uint32_t *order = (const uint32_t *)(const void *)rg->order.data;
	weir_slot_save(rg->sl, &saved);
	weir_slot_destroy(rg->sl);
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
	enum weir_err err = weir_slot_load(rg->sl, saved.data, saved.bytes, NULL);
	weir_buf_fini(&saved);
	for (uint32_t i = 0; i < count; i++)
		last[order[i]] = i;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		uint32_t id = order[i] % BODIES;
		const struct weir_buf *b = order[i] < BODIES ? &rg->packs[id] : &rg->pages[id];
		if (last[order[i]] != i || b->bytes == 0)
			continue;
		err = order[i] < BODIES ? weir_slot_restore_pack(rg->sl, id, b->data, b->bytes, NULL)
					: weir_slot_restore_page(rg->sl, id, 0, b->data, b->bytes, NULL);
	}
	return err == WEIR_OK ? weir_slot_restore_finish(rg->sl, NULL) : err;
}

static void test_rows_hang_on_what_they_refer_to(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg);
	assert_string_equal(chain(&rg, 1), "");
	assert_false(take(&rg, 1, 1));
	put(&rg, 1, 1, 10);
	put(&rg, 1, 2, 11);
	put(&rg, 2, 3, 12);
	put(&rg, 1, 4, 13);
	assert_string_equal(chain(&rg, 1), "13 11 10 ");
	assert_string_equal(chain(&rg, 2), "12 ");
	put(&rg, 1, 2, 14); /* stays where it hangs */
	assert_string_equal(chain(&rg, 1), "13 14 10 ");
	assert_true(take(&rg, 1, 2)); /* in between, then first, then last */
	assert_string_equal(chain(&rg, 1), "13 10 ");
	assert_true(take(&rg, 1, 4));
	assert_string_equal(chain(&rg, 1), "10 ");
	assert_false(take(&rg, 1, 3)); /* of another key */
	assert_true(take(&rg, 1, 1));
	assert_string_equal(chain(&rg, 1), "");
	assert_string_equal(chain(&rg, 2), "12 ");
	assert_true(take(&rg, 2, 3));
	/* The heads have gone with the last of their rows. */
	assert_int_equal(weir_slot_entries(rg.sl), 0);
	rig_fini(&rg);
}

/* The key of the right row is that of the left one with NULLs in the place of its own. */
static void test_the_key_is_the_foreign_part(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg);
	struct weir_join_row left = row_of(7, 3, 1), at;
	weir_foreign_key(&rg.def, &left, &rg.room, &at);
	struct weir_join_row right = row_of(7, UINT32_MAX, 1);
	assert_int_equal(at.key_bytes, right.key_bytes);
	assert_memory_equal(at.key, right.key, right.key_bytes);
	assert_int_equal(at.hash, right.hash);
	rig_fini(&rg);
}

static uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

enum { KEYS = 12, OWN = 60, ROWS = 9 };

/* By key: rows, newest first. */
struct twin {
	uint32_t own[KEYS][OWN];
	uint64_t version[KEYS][OWN];
	uint32_t count[KEYS];
};

static uint32_t twin_find(const struct twin *tw, uint32_t key, uint32_t own)
{
	uint32_t i = 0;
	while (i < tw->count[key] && tw->own[key][i] != own)
		i++;
	return i;
}

static void twin_put(struct twin *tw, uint32_t key, uint32_t own, uint64_t version)
{
	uint32_t i = twin_find(tw, key, own);
	if (i == tw->count[key]) {
		memmove(&tw->own[key][1], &tw->own[key][0], i * sizeof tw->own[key][0]);
		memmove(&tw->version[key][1], &tw->version[key][0], i * sizeof tw->version[key][0]);
		tw->count[key]++;
		i = 0;
	}
	tw->own[key][i] = own;
	tw->version[key][i] = version;
}

static bool twin_take(struct twin *tw, uint32_t key, uint32_t own)
{
	uint32_t i = twin_find(tw, key, own), n = tw->count[key];
	if (i == n)
		return false;
	memmove(&tw->own[key][i], &tw->own[key][i + 1], (n - i - 1) * sizeof tw->own[key][0]);
	memmove(&tw->version[key][i], &tw->version[key][i + 1], (n - i - 1) * sizeof tw->version[key][0]);
	tw->count[key]--;
	return true;
}

static void compare(struct rig *rg, const struct twin *tw, uint64_t seed)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		char want[8192] = "";
		size_t at = 0;
		for (uint32_t i = 0; i < tw->count[key]; i++)
			at += (size_t)snprintf(want + at, sizeof want - at, "%" PRIu64 " ", tw->version[key][i]);
		if (strcmp(chain(rg, key), want) != 0)
			fail_msg("seed %" PRIu64 ", key %u: %s instead of %s", seed, key, chain(rg, key), want);
	}
}

static void test_against_a_naive_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		static struct rig rg;
		static struct twin tw;
		uint64_t rng = seed;
		rig_init(&rg);
		memset(&tw, 0, sizeof tw);
		for (uint64_t i = 1; i <= 1500; i++) {
			uint64_t r = rng_next(&rng);
			uint32_t key = (uint32_t)(r >> 8) % KEYS, own = (uint32_t)(r >> 20) % OWN;
			if (r % 3 != 0) {
				put(&rg, key, own, i);
				twin_put(&tw, key, own, i);
			} else {
				assert_int_equal(take(&rg, key, own), twin_take(&tw, key, own));
			}
			if (r % 41 == 0)
				barrier(&rg);
			if (i % 300 == 0) {
				barrier(&rg);
				assert_int_equal(restore(&rg), WEIR_OK);
				compare(&rg, &tw, seed);
			}
		}
		rig_fini(&rg);
	}
}

static uint32_t links(struct rig *rg, uint32_t key)
{
	uint32_t n = 0;
	struct weir_join_row right = row_of(key, UINT32_MAX, 0), left;
	for (uint32_t ref = weir_foreign_first(rg->sl, &right); ref != 0 && n <= ROWS; n++)
		ref = weir_foreign_get(rg->sl, ref, &left);
	return n;
}

/* Whatever bytes of a page change, a restore refuses it or leaves chains that end. */
static void test_damage_is_refused(void **state)
{
	(void)state;
	static struct rig rg;
	uint32_t refused = 0;
	rig_init(&rg);
	for (uint32_t i = 0; i < ROWS; i++)
		put(&rg, i % 2, i, i);
	barrier(&rg);
	static struct weir_buf saved;
	weir_slot_save(rg.sl, &saved);
	for (uint32_t no = 0, at = 0; no < BODIES; at++) {
		if (at >= rg.pages[no].bytes) {
			no++;
			at = UINT32_MAX;
			continue;
		}
		rg.pages[no].data[at] ^= 0x11;
		if (restore(&rg) == WEIR_OK) {
			assert_true(links(&rg, 0) + links(&rg, 1) <= ROWS);
		} else {
			refused++;
		}
		rg.pages[no].data[at] ^= 0x11;
		weir_slot_destroy(rg.sl);
		rg.sl = weir_slot_create(&rg.def, 0, rg.ar);
		assert_int_equal(weir_slot_load(rg.sl, saved.data, saved.bytes, NULL), WEIR_OK);
		assert_int_equal(restore(&rg), WEIR_OK);
	}
	weir_buf_fini(&saved);
	assert_true(refused != 0);
	assert_string_equal(chain(&rg, 0), "8 6 4 2 0 ");
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_hang_on_what_they_refer_to),
		cmocka_unit_test(test_the_key_is_the_foreign_part),
		cmocka_unit_test(test_against_a_naive_twin),
		cmocka_unit_test(test_damage_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
