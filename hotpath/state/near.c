/* near.c: making copies of tables for look-ups (near.h). @thread worker */
#include "hotpath/state/near.h"

#include "hotpath/state/join_state.h"

/* Of ten places seven are taken, so that nearly every key stands in its home group. */
static uint64_t groups_for(uint64_t rows)
{
	return rows * 10 / (7 * (uint64_t)WEIR_NEAR_GROUP) + 1;
}

size_t weir_near_bytes(uint64_t rows)
{
	return groups_for(rows) * WEIR_NEAR_GROUP * (sizeof(struct weir_near_line) + sizeof(uint16_t));
}

static size_t memory_align(size_t bytes)
{
	return bytes >= WEIR_HUGE_BYTES ? WEIR_HUGE_BYTES : 4096;
}

static void put_line(struct weir_near *nr, const struct weir_slot *sl, const struct weir_entry *e, uint32_t tag)
{
	uint32_t key_bytes;
	const uint8_t *key = weir_entry_key(sl->def, e, &key_bytes);
	if (key_bytes > WEIR_NEAR_KEY_MAX)
		return;
	uint32_t group = weir_near_home(nr, e->hash, sl->number);
	while (nr->tag[group * WEIR_NEAR_GROUP + WEIR_NEAR_GROUP - 1] != 0)
		group = group + 1 == nr->groups ? 0 : group + 1;
	uint32_t at = group * WEIR_NEAR_GROUP;
	while (nr->tag[at] != 0)
		at++;
	nr->tag[at] = (uint16_t)tag;
	struct weir_near_line *ln = &nr->line[at];
	const struct weir_text *text = weir_table_text(sl->def, e);
	const uint8_t *row = weir_text_data(&sl->pages, text);
	uint32_t row_at = (key_bytes + 7) & ~7u;
	memset(ln, 0, sizeof *ln);
	ln->row_bytes = text->bytes;
	ln->key_bytes = (uint16_t)key_bytes;
	ln->slot = (uint16_t)sl->number;
	memcpy(ln->data, key, key_bytes);
	if (text->bytes <= WEIR_NEAR_BYTES - row_at)
		memcpy(ln->data + row_at, row, text->bytes);
	else
		memcpy(ln->data + row_at, &row, sizeof row);
}

void weir_near_make(struct weir_near *nr, struct weir_arena *ar, struct weir_slot *const *slots, uint32_t count,
		    uint32_t side)
{
	uint64_t rows = 0;
	WEIR_ASSERT(nr->groups == 0);
	for (uint32_t s = 0; s < count; s++)
		rows += slots[s] ? weir_join_table_index(slots[s], side)->used : 0; /* or a few more */
	uint64_t groups = groups_for(rows);
	WEIR_ASSERT(groups * WEIR_NEAR_GROUP <= UINT32_MAX);
	nr->ar = ar;
	nr->groups = (uint32_t)groups;
	nr->bytes = weir_near_bytes(rows);
	nr->memory = weir_arena_take(ar, nr->bytes, memory_align(nr->bytes));
	nr->line = (struct weir_near_line *)(void *)nr->memory;
	nr->tag = (uint16_t *)(void *)(nr->line + groups * WEIR_NEAR_GROUP);
	memset(nr->tag, 0, groups * WEIR_NEAR_GROUP * sizeof *nr->tag);
	for (uint32_t s = 0; s < count; s++) {
		if (slots[s] == NULL)
			continue;
		const struct weir_index *ix = weir_join_table_index(slots[s], side);
		for (uint32_t i = 0; ix->slot != NULL && i <= ix->mask; i++)
			if (ix->slot[i] > WEIR_INDEX_REMOVED)
				put_line(nr, slots[s], weir_index_entry(ix->slot[i]), (uint32_t)(ix->slot[i] >> 48));
	}
}

void weir_near_drop(struct weir_near *nr)
{
	if (nr->groups != 0)
		weir_arena_give(nr->ar, nr->memory, nr->bytes, memory_align(nr->bytes));
	*nr = (struct weir_near){0};
}

const struct weir_near_line *weir_near_find(const struct weir_near *nr, uint64_t hash, uint32_t slot,
					    const uint8_t *key, uint32_t key_bytes)
{
	uint32_t tag = weir_index_tag(hash), group = weir_near_home(nr, hash, slot);
	for (uint32_t seen = 0; seen < nr->groups; seen++) {
		const uint16_t *tags = &nr->tag[group * WEIR_NEAR_GROUP];
		for (uint32_t fits = weir_near_match(tags, tag); fits != 0; fits &= fits - 1) {
			const struct weir_near_line *ln =
				&nr->line[group * WEIR_NEAR_GROUP + (uint32_t)__builtin_ctz(fits) / 2];
			if (weir_near_is(ln, slot, key, key_bytes))
				return ln;
			fits &= fits - 1; /* the second bit of its tag */
		}
		if (tags[WEIR_NEAR_GROUP - 1] == 0)
			return NULL;
		group = group + 1 == nr->groups ? 0 : group + 1;
	}
	return NULL;
}
