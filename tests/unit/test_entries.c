/* test_entries.c: what a changelog holds, as JSON: rows of packs and images, entries cut in two, texts, damaged bodies.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "checkpoint/record.h"
#include "tests/support/state_rig.h"
#include "tools/weir/entries.h"

/* One barrier of a rig, record by record through entries. */
struct dumped {
	struct weir_entries *en;
	struct weir_buf out; /* a line each */
	uint32_t mutate;     /* not 0: seed of changes to every body */
};

static void dump(struct dumped *d, enum weir_record_kind kind, uint32_t slot, uint32_t number, uint32_t part,
		 const uint8_t *body, uint32_t bytes)
{
	uint8_t key[WEIR_RECORD_KEY_BYTES], *copy = weir_xmalloc(bytes + 1);
	struct weir_buf frame = {0}, text = {0};
	size_t n = weir_record_key(key, kind, slot, number, part);
	memcpy(copy, body, bytes);
	if (d->mutate != 0) {
		for (int i = 0; i < 3; i++) {
			d->mutate = d->mutate * 1664525u + 1013904223u;
			copy[(d->mutate >> 8) % bytes] = (uint8_t)(d->mutate >> 3);
		}
		bytes = d->mutate % 5 == 0 ? (d->mutate >> 9) % bytes : bytes;
	}
	weir_record_frame(&frame, key, n, 1, copy, bytes);
	struct weir_record r = {
		.key = key, .key_bytes = (uint32_t)n, .value = frame.data, .value_bytes = (uint32_t)frame.bytes};
	weir_record_describe(&r, &text);
	weir_entries_add(d->en, &r, &text);
	weir_buf_put(&d->out, text.data, text.bytes);
	weir_buf_puts(&d->out, "\n");
	weir_buf_fini(&text);
	weir_buf_fini(&frame);
	free(copy);
}
static void dump_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	dump(ctx, WEIR_RECORD_PACK, slot, k, 0, body, bytes);
}
static void dump_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	dump(ctx, WEIR_RECORD_PAGE, slot, page, part, body, bytes);
}

static void learn(struct dumped *d, const char *layout)
{
	uint8_t key[WEIR_RECORD_KEY_BYTES];
	struct weir_buf text = {0};
	size_t n = weir_record_key(key, WEIR_RECORD_SCHEMA, 0, 0, 0);
	weir_buf_printf(&text, "{\"weir\":1,\"fingerprint\":\"x\",\"layout\":%s}", layout);
	struct weir_record r = {
		.key = key, .key_bytes = (uint32_t)n, .value = text.data, .value_bytes = (uint32_t)text.bytes};
	weir_entries_learn(d->en, &r);
	weir_buf_fini(&text);
}

static const char *barrier(struct dumped *d, struct rig *rg)
{
	const struct weir_delta_sink sink = {d, dump_pack, dump_page, NULL};
	d->out.bytes = 0;
	for (uint32_t s = 0; s < rg->slot_count; s++)
		(void)weir_slot_barrier(rg->slots[s], 1, &sink);
	weir_buf_put_byte(&d->out, 0);
	return (const char *)d->out.data;
}

static void fini(struct dumped *d)
{
	weir_entries_destroy(d->en);
	weir_buf_fini(&d->out);
}

static const char window_layout[] =
	"{\"kind\":\"window\",\"size\":100,\"advance\":100,\"gap\":0,\"changes\":false,\"keys\":[{\"type\":\"STRING\","
	"\"of\":\"k\"}],"
	"\"aggregates\":[{\"function\":\"COUNT_STAR\"},{\"function\":\"SUM\",\"type\":\"BIGINT\",\"of\":\"v\"},"
	"{\"function\":\"MAX\",\"type\":\"STRING\",\"of\":\"t\",\"where\":\"ok\"}]}";

static void fill(struct rig *rg)
{
	const struct weir_state_def def = {.kind = WEIR_STATE_WINDOW, .size_ms = 100, .advance_ms = 100};
	rig_init(rg, &def, "COUNT(*) SUM:0 MAX:2", 1);
	rig_put(rg, 1, 5, 7);
	rig_put(rg, 1, 6, 8);
	rig_put(rg, 2, 105, 9);
}

static void test_rows(void **state)
{
	(void)state;
	struct rig rg;
	struct dumped d = {.en = weir_entries_create()};
	fill(&rg);
	learn(&d, window_layout);
	assert_true(weir_entries_knows(d.en));
	const char *text = barrier(&d, &rg);
	assert_non_null(strstr(text, "{\"kind\":\"pack\",\"slot\":0,\"k\":0,\"epoch\":1,"));
	assert_non_null(
		strstr(text, "{\"window\":0,\"entries\":[{\"page\":1,\"offset\":8,\"row\":{\"k\":\"k1\",\"COUNT(*)\":2,"
			     "\"SUM(v)\":15,\"MAX(t) FILTER (WHERE ok)\":\"x\"},"
			     "\"blobs\":{\"MAX(t) FILTER (WHERE ok)\":{\"page\":2,\"offset\":8}}},"
			     "{\"page\":2,\"offset\":8,\"blob\":"));
	assert_non_null(strstr(text, "{\"window\":100,\"entries\":["));
	assert_non_null(strstr(text, "{\"k\":\"k2\",\"COUNT(*)\":1,\"SUM(v)\":9,"));
	assert_non_null(strstr(text, "{\"kind\":\"page\",\"slot\":0,\"page\":1,\"part\":0,\"epoch\":1,"));
	fini(&d);
	rig_fini(&rg);
}

static void test_sliding_windows_have_bounds(void **state)
{
	(void)state;
	struct rig rg;
	struct dumped d = {.en = weir_entries_create()};
	rig_init(&rg, &(struct weir_state_def){.kind = WEIR_STATE_SLIDING, .size_ms = 10}, "COUNT(*)", 1);
	rig_put(&rg, 1, 12, 0);
	learn(&d, "{\"kind\":\"sliding\",\"size\":10,\"keys\":[{\"type\":\"STRING\",\"of\":\"k\"}],"
		  "\"aggregates\":[{\"function\":\"COUNT_STAR\"}]}");
	assert_true(weir_entries_knows(d.en));
	assert_non_null(
		strstr(barrier(&d, &rg), "\"start\":2,\"end\":12,\"last\":12,\"row\":{\"k\":\"k1\",\"COUNT(*)\":1}"));
	fini(&d);
	rig_fini(&rg);
}

/* Without a layout, or with one that this weir does not know, there are still places and sizes. */
static void test_without_layout(void **state)
{
	(void)state;
	static const char *const layouts[] = {
		NULL, "{\"kind\":\"join\"}",
		"{\"kind\":\"window\",\"keys\":[{\"type\":\"NO TYPE\",\"of\":\"k\"}],\"aggregates\":[]}",
		"{\"kind\":\"table\",\"keys\":[],\"aggregates\":[{\"function\":\"WHAT\",\"type\":\"INT\",\"of\":\"v\"}]"
		"}",
		"17"};
	for (size_t i = 0; i < WEIR_COUNT_OF(layouts); i++) {
		struct rig rg;
		struct dumped d = {.en = weir_entries_create()};
		fill(&rg);
		learn(&d, window_layout);
		if (layouts[i] != NULL)
			learn(&d, layouts[i]);
		assert_true(weir_entries_knows(d.en) == (layouts[i] == NULL));
		const char *text = barrier(&d, &rg);
		assert_true((strstr(text, "\"row\":") != NULL) == (layouts[i] == NULL));
		if (layouts[i] != NULL)
			assert_non_null(strstr(text, "{\"page\":1,\"offset\":8,\"bytes\":"));
		fini(&d);
		rig_fini(&rg);
	}
}

/* A value larger than a record: where it begins and where it goes on. */
static void test_cut(void **state)
{
	(void)state;
	struct rig rg;
	struct dumped d = {.en = weir_entries_create()};
	const struct weir_state_def def = {.kind = WEIR_STATE_WINDOW, .size_ms = 100, .advance_ms = 100};
	char *giant = weir_xcalloc(1, 150001);
	memset(giant, 'g', 150000);
	rig_init(&rg, &def, "COUNT(*) SUM:0 MAX:2", 1);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 5, .value = 7, .text = giant});
	rig_apply(&rg);
	learn(&d, window_layout);
	const char *text = barrier(&d, &rg);
	assert_non_null(strstr(text, "\"MAX(t) FILTER (WHERE ok)\":null"));
	const char *cut = strstr(text, "\"cut\":true");
	assert_non_null(cut);
	assert_non_null(strstr(cut, "\"continues\":true"));
	free(giant);
	fini(&d);
	rig_fini(&rg);
}

/* Whatever a body holds under a good checksum, it is read within its bounds. */
static void test_damaged(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 3000; seed++) {
		static struct rig rg;
		static bool filled;
		struct dumped d = {.en = weir_entries_create(), .mutate = seed};
		if (!filled || seed % 50 == 0) {
			if (filled)
				rig_fini(&rg);
			fill(&rg);
			filled = true;
		}
		learn(&d, window_layout);
		const struct weir_delta_sink sink = {&d, dump_pack, dump_page, NULL};
		rig_put(&rg, seed % 7, 205, seed);
		(void)weir_slot_barrier(rg.slots[0], seed, &sink);
		assert_true(d.out.bytes != 0);
		fini(&d);
		if (seed == 3000)
			rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_sliding_windows_have_bounds),
		cmocka_unit_test(test_without_layout), cmocka_unit_test(test_cut), cmocka_unit_test(test_damaged)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
