/* fuzz_changelog.c: libFuzzer target of restore: bodies of a changelog, whatever they hold, end in a slot that works or
 * in WEIR_E_CORRUPT.
 *
 *   u8 which definition | { u8 tag (0 marker part, 1 pack, 2 page), u8 number, u8 part, u16 bytes, body }*
 *
 * Numbers and sizes of pages inside bodies are kept small: a large one costs a directory or a page of its size, and
 * nothing else. */
#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/state/dirty.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct {
	struct weir_state_def def;
	const char *aggs;
} kinds[] = {
	{{.kind = WEIR_STATE_WINDOW, .size_ms = 10, .advance_ms = 10, .grace_ms = 5}, "COUNT(*) SUM:0"},
	{{.kind = WEIR_STATE_WINDOW, .size_ms = 10, .advance_ms = 10, .grace_ms = 5},
	 "LAST_VALUE:2 COUNT_DISTINCT:0 MIN:2 COUNT_DISTINCT:2"},
	{{.kind = WEIR_STATE_WINDOW, .size_ms = 10, .advance_ms = 4, .grace_ms = 5},
	 "COUNT_DISTINCT:2 FIRST_VALUE:2 SUM:3"},
	{{.kind = WEIR_STATE_SESSION, .gap_ms = 10, .changes = true}, "COUNT(*) COUNT_DISTINCT:0 MAX:2"},
	{{.kind = WEIR_STATE_TABLE}, "COUNT(*) AVG:1 LAST_VALUE:2"},
	{{.kind = WEIR_STATE_SESSION, .gap_ms = 10, .shared = true}, "COUNT(*) SUM:0 MAX:2"},
};

enum { PAGES = 300, BEGUN_BYTES_MAX = 512 << 10 };
static uint64_t begun_bytes; /* of pages that the bodies of this input begin */

static bool page_is_small(uint32_t bytes)
{
	if (bytes != WEIR_PACK_GIVEN)
		begun_bytes += bytes;
	return begun_bytes <= BEGUN_BYTES_MAX;
}

static bool image_is_small(const uint8_t *body, size_t bytes)
{
	struct weir_image_head head;
	if (bytes < sizeof head)
		return true;
	memcpy(&head, body, sizeof head);
	return page_is_small(head.page_bytes);
}

static bool pack_is_small(const uint8_t *body, size_t bytes)
{
	struct weir_pack_run run;
	struct weir_pack_item it;
	size_t at = sizeof(struct weir_pack_head);
	while (at + sizeof run <= bytes) {
		memcpy(&run, body + at, sizeof run);
		at += sizeof run;
		for (uint32_t i = 0; i < run.items && at + sizeof it <= bytes; i++) {
			memcpy(&it, body + at, sizeof it);
			if (it.page > PAGES || !page_is_small(it.page_bytes))
				return false;
			at += sizeof it + it.bytes;
		}
	}
	return true;
}

static enum weir_err feed(struct weir_slot *sl, const uint8_t **at, const uint8_t *end, bool *loaded,
			  struct weir_diag **dg)
{
	uint8_t tag = (*at)[0], number = (*at)[1], part = (*at)[2];
	size_t n = (size_t)(*at)[3] | (size_t)(*at)[4] << 8;
	*at += 5;
	if (n > (size_t)(end - *at))
		n = (size_t)(end - *at);
	/* Bodies are 8-byte aligned as the log's are not: copied, so that a read beyond one is seen. */
	uint8_t *body = weir_xmalloc(n != 0 ? n : 1);
	memcpy(body, *at, n);
	*at += n;
	enum weir_err err = WEIR_OK;
	if (tag % 3 == 0 && !*loaded) {
		err = weir_slot_load(sl, body, n, dg);
		*loaded = err == WEIR_OK;
	} else if (tag % 3 == 1 && *loaded && pack_is_small(body, n)) {
		err = weir_slot_restore_pack(sl, number, n != 0 ? body : NULL, n, dg);
	} else if (tag % 3 == 2 && *loaded && image_is_small(body, n)) {
		err = weir_slot_restore_page(sl, number, part, n != 0 ? body : NULL, n, dg);
	}
	free(body);
	return err;
}

/* The slot goes on: rows, order points, barriers, all windows closed. */
static void use(struct rig *rg)
{
	for (int round = 0; round < 3; round++) {
		for (int64_t i = 0; i < 40; i++)
			rig_add(rg, &(struct rig_row){.key = i % 7,
						      .ts = 1 + i * 3 + round * 50,
						      .value = i,
						      .text = i % 2 ? "a" : "some longer text"});
		rig_apply(rg);
		rig_changes(rg);
		rig_close(rg, rg->task_time, round == 2);
		rig_changes(rg);
		rg->out.bytes = 0;
		uint64_t epoch = rg->slots[0]->d.epoch + 1;
		if (epoch == 0 || epoch >= UINT64_MAX - 2)
			return;
		weir_slot_barrier(rg->slots[0], epoch, &(struct weir_delta_sink){0});
		weir_slot_committed(rg->slots[0], epoch);
	}
}

/* Rigs live on between inputs, their slots do not: columns and arenas cost more than most restores. */
static struct rig *rig_of(uint32_t kind)
{
	static struct rig rigs[WEIR_COUNT_OF(kinds)];
	static bool made[WEIR_COUNT_OF(kinds)];
	struct rig *rg = &rigs[kind];
	if (!made[kind])
		rig_init(rg, &kinds[kind].def, kinds[kind].aggs, 0);
	made[kind] = true;
	rg->slot_count = 1;
	rg->task_time = WEIR_TIME_UNSET;
	rg->end_max = INT64_MIN;
	begun_bytes = 0;
	rig_create_slots(rg);
	return rg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes < 1)
		return 0;
	struct rig *rg = rig_of(data[0] % WEIR_COUNT_OF(kinds));
	const uint8_t *at = data + 1, *end = data + bytes;
	struct weir_diag *dg = NULL;
	enum weir_err err = WEIR_OK;
	bool loaded = false;
	while (err == WEIR_OK && end - at >= 5)
		err = feed(rg->slots[0], &at, end, &loaded, &dg);
	if (err == WEIR_OK && loaded) {
		err = weir_slot_restore_finish(rg->slots[0], &dg);
		if (err == WEIR_OK)
			use(rg);
	}
	if (err != WEIR_OK && err != WEIR_E_CORRUPT)
		abort();
	weir_diag_destroy(dg);
	rig_destroy_slots(rg);
	return 0;
}
