/* fuzz_json.c: libFuzzer target of the JSON decoder. The input is a stream of documents, separated by 0x1e: every
 * instruction set, with speculation, must say what the scalar general parser says to each, and jansson the same where
 * both follow the same rules. A hash of the input says who is asked: one instruction set or, of every fourth input,
 * all; jansson of every second. Decoders live on between inputs, so that layouts of one meet documents of the next. */
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "tests/support/json_rig.h"
#include "tests/support/json_twin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { DOCUMENTS_MAX = 16 };

static struct json_rig reference, rigs[8];
static uint32_t rig_count;

static void rigs_open(void)
{
	json_rig_init(&reference);
	json_twin_fields(&reference);
	json_rig_open(&reference, "scalar", false);
	for (const char *const *v = json_rig_variants; *v != NULL; v++) {
		struct json_rig *rig = &rigs[rig_count];
		json_rig_init(rig);
		json_twin_fields(rig);
		/* Documents that no layout fits go through this variant's general parser. */
		if (json_rig_open(rig, *v, true))
			rig_count++;
		else
			json_rig_fini(rig);
	}
}

static void complain(const char *what, uint32_t row, const char *a, const char *b)
{
	fprintf(stderr, "document %u: %s: `%s` and `%s`\n", row, what, a, b);
	abort();
}

static void compare_twin(uint32_t count, const uint8_t *const *docs, const size_t *lengths)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *differs = json_twin_compare(&reference, i, docs[i], lengths[i]);
		if (differs != NULL)
			complain(differs, i, json_rig_text(&reference, i), "jansson");
	}
}

static void compare_variant(struct json_rig *rig, uint32_t count)
{
	json_rig_run_shared(rig, &reference);
	for (uint32_t i = 0; i < count; i++)
		if (!json_rig_equal(&reference, rig, i))
			complain(((struct weir_json *)(void *)rig->d)->variant->name, i, json_rig_text(&reference, i),
				 json_rig_text(rig, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (rig_count == 0)
		rigs_open();
	const uint8_t *docs[DOCUMENTS_MAX];
	size_t lengths[DOCUMENTS_MAX];
	uint32_t count = 0;
	for (size_t at = 0; count < DOCUMENTS_MAX;) {
		const uint8_t *cut = bytes > at ? memchr(data + at, 0x1e, bytes - at) : NULL;
		docs[count] = data + at;
		lengths[count++] = cut != NULL ? (size_t)(cut - data) - at : bytes - at;
		if (cut == NULL)
			break;
		at = (size_t)(cut - data) + 1;
	}
	for (uint32_t i = 0; i < count; i++)
		json_rig_add(&reference, docs[i], lengths[i]);
	json_rig_run(&reference);
	uint64_t hash = weir_hash(data, bytes);
	if (hash & 1)
		compare_twin(count, docs, lengths);
	bool all = (hash >> 1) % 4 == 0;
	for (uint32_t r = 0; r < rig_count; r++)
		if (all || r == (hash >> 3) % rig_count)
			compare_variant(&rigs[r], count);
	return 0;
}
