/* closed.c: closed generations on their way out: detached whole (tumbling), or built anew (panes, sessions, sliding);
 * sorted by window end and key bytes, read as rows. Sorting and reading are for whoever holds it; making and releasing
 * are for the owner of the slot. */
#include "hotpath/state/row.h"
#include "hotpath/state/slot.h"
#include "hotpath/core/mem.h"

#include <stdlib.h>

struct weir_closed *weir_closed_create(struct weir_slot *sl)
{
	struct weir_closed *cl = weir_blocks_take(&sl->blocks, sizeof *cl);
	memset(cl, 0, sizeof *cl);
	cl->def = sl->def;
	return cl;
}

/* The index becomes the list of entries: same memory, without the holes. */
static void closed_take_index(struct weir_closed *cl, struct weir_gen *g)
{
	uint64_t slots = (uint64_t)g->ix.mask + 1, n = 0;
	uint64_t *slot = g->ix.slot;
	for (uint64_t i = 0; i < slots; i++)
		if (slot[i] > WEIR_INDEX_REMOVED)
			slot[n++] = slot[i] & WEIR_INDEX_POINTER;
	cl->count = (uint32_t)n;
	cl->entry = slot;
	cl->entry_bytes = slots * sizeof *slot;
	g->ix = (struct weir_index){0};
}

static int page_no_compare(const void *a, const void *b)
{
	uint32_t x = ((const struct weir_page *)a)->no, y = ((const struct weir_page *)b)->no;
	return (x > y) - (x < y);
}

struct weir_closed *weir_closed_detach(struct weir_slot *sl, uint32_t at)
{
	struct weir_closed *cl = weir_closed_create(sl);
	struct weir_gen *g = sl->gens[at].g;
	struct weir_pages *view = &cl->pages;
	view->bl = &sl->blocks;
	view->sorted = true;
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next)
		view->capacity += sl->pages.page[no].state == WEIR_PAGE_LIVE;
	if (view->capacity != 0)
		view->page = weir_blocks_take(&sl->blocks, view->capacity * sizeof *view->page);
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE)
			continue;
		view->page[view->count++] = *p;
		cl->bytes += p->bytes;
		/* The memory goes with the view, the number back to the slot. */
		p->state = WEIR_PAGE_GIVEN;
		p->base = sl->pages.base[no] = NULL;
		sl->pages.live--;
	}
	if (cl->def->has_blobs)
		qsort(view->page, view->count, sizeof *view->page, page_no_compare);
	closed_take_index(cl, g);
	cl->bytes += cl->entry_bytes;
	weir_slot_drop_gen(sl, at);
	return cl;
}

struct weir_closed *weir_closed_begin(struct weir_slot *sl, uint64_t entries_expected)
{
	struct weir_closed *cl = weir_closed_create(sl);
	cl->private = true;
	weir_pages_init(&cl->pages, &sl->blocks);
	weir_gen_init(&cl->gen, &cl->pages, NULL, 0, entries_expected);
	return cl;
}

void weir_closed_seal(struct weir_slot *sl, struct weir_closed *cl)
{
	(void)sl;
	closed_take_index(cl, &cl->gen);
	cl->bytes = cl->entry_bytes;
	for (uint32_t no = cl->gen.page_first; no != 0; no = cl->pages.page[no].next)
		cl->bytes += cl->pages.page[no].bytes;
}

void weir_closed_release(struct weir_slot *sl, struct weir_closed *cl)
{
	if (cl == NULL)
		return;
	struct weir_blocks *bl = &sl->blocks;
	if (cl->private) {
		weir_gen_fini(&cl->gen);
		weir_pages_fini(&cl->pages);
	} else {
		for (uint32_t i = 0; i < cl->pages.count; i++)
			weir_blocks_give(bl, cl->pages.page[i].base, cl->pages.page[i].bytes);
		if (cl->pages.page != NULL)
			weir_blocks_give(bl, cl->pages.page, cl->pages.capacity * sizeof *cl->pages.page);
	}
	if (cl->entry != NULL)
		weir_blocks_give(bl, cl->entry, cl->entry_bytes);
	weir_blocks_give(bl, cl, sizeof *cl);
}

uint32_t weir_closed_count(const struct weir_closed *cl)
{
	return cl->count;
}

uint64_t weir_closed_bytes(const struct weir_closed *cl)
{
	return cl->bytes;
}

/* ---- sorting ----
 * By 8 bytes of key at a time: radix passes over that word (skipping bytes in which all agree), then runs of equal
 * words go on with the next 8. Small runs are sorted by insertion. Every word is loaded once per level: a cache miss
 * per entry, not one per comparison. */

struct sort_item {
	uint64_t word;
	const struct weir_entry *e;
};

/* The key word at `from`, big-endian, zero-padded. Shorter keys sort first through the length check in sort_less. */
static uint64_t key_word(const struct weir_state_def *def, const struct weir_entry *e, uint32_t from)
{
	uint32_t n;
	uint8_t part[8] = {0};
	const uint8_t *key = weir_entry_key(def, e, &n);
	if (from < n)
		memcpy(part, key + from, n - from < 8 ? n - from : 8);
	return weir_load_be64(part);
}

/* Whether entries of several windows close together: sessions, sliding windows. */
static bool has_bounds(const struct weir_state_def *def)
{
	return def->kind == WEIR_STATE_SESSION || def->kind == WEIR_STATE_SLIDING;
}

/* What these are sorted by: their ends, less what is equal in all. */
static int64_t sort_time(const struct weir_state_def *def, const struct weir_entry *e)
{
	const struct weir_session *s = (const struct weir_session *)(const void *)e;
	return def->kind == WEIR_STATE_SESSION ? s->last : s->start;
}

/* Before everything else: level 0 of their order. */
static uint64_t sort_word(const struct weir_state_def *def, const struct weir_entry *e, uint32_t level)
{
	if (has_bounds(def)) {
		if (level == 0)
			return (uint64_t)sort_time(def, e) ^ (UINT64_C(1) << 63);
		level--;
	}
	return key_word(def, e, level * 8);
}

static int entry_compare(const struct weir_state_def *def, const struct weir_entry *a, const struct weir_entry *b)
{
	uint32_t an, bn;
	if (has_bounds(def)) {
		int64_t x = sort_time(def, a), y = sort_time(def, b);
		if (x != y)
			return x < y ? -1 : 1;
	}
	const uint8_t *ak = weir_entry_key(def, a, &an), *bk = weir_entry_key(def, b, &bn);
	int c = memcmp(ak, bk, an < bn ? an : bn);
	return c != 0 ? c : (an > bn) - (an < bn);
}

#define SORT_SMALL 24

static int item_compare(const void *a, const void *b, void *def)
{
	return entry_compare(def, ((const struct sort_item *)a)->e, ((const struct sort_item *)b)->e);
}

static void sort_small(const struct weir_state_def *def, struct sort_item *it, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct sort_item x = it[i];
		uint32_t j = i;
		while (j > 0 && (it[j - 1].word > x.word ||
				 (it[j - 1].word == x.word && entry_compare(def, it[j - 1].e, x.e) > 0))) {
			it[j] = it[j - 1];
			j--;
		}
		it[j] = x;
	}
}

static void sort_radix(struct sort_item *it, struct sort_item *tmp, uint32_t n)
{
	uint64_t any = 0, all = UINT64_MAX;
	struct sort_item *from = it, *to = tmp;
	for (uint32_t i = 0; i < n; i++) {
		any |= it[i].word;
		all &= it[i].word;
	}
	for (uint32_t shift = 0; shift < 64; shift += 8) {
		uint32_t at[256] = {0};
		if (((any ^ all) >> shift & 0xff) == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			at[from[i].word >> shift & 0xff]++;
		for (uint32_t b = 0, sum = 0; b < 256; b++) {
			uint32_t c = at[b];
			at[b] = sum;
			sum += c;
		}
		for (uint32_t i = 0; i < n; i++)
			to[at[from[i].word >> shift & 0xff]++] = from[i];
		struct sort_item *swap = from;
		from = to;
		to = swap;
	}
	if (from != it)
		memcpy(it, from, n * sizeof *it);
}

static void sort_level(const struct weir_state_def *def, struct sort_item *it, struct sort_item *tmp, uint32_t n,
		       uint32_t level)
{
	enum { AHEAD = 16, LEVELS = 256 };
	while (n > 1) {
		for (uint32_t i = 0; i < n; i++) {
			if (i + AHEAD < n)
				__builtin_prefetch((const uint8_t *)it[i + AHEAD].e + weir_def_key_at(def), 0, 3);
			it[i].word = sort_word(def, it[i].e, level);
		}
		if (n <= SORT_SMALL) {
			sort_small(def, it, n);
			return;
		}
		/* Keys that share 2 KiB are compared one with another: depth must not follow the length of a key. */
		if (level == LEVELS) {
			qsort_r(it, n, sizeof *it, item_compare, (void *)(uintptr_t)def);
			return;
		}
		sort_radix(it, tmp, n);
		level++;
		/* Runs of equal words recurse; a single run of everything goes on here. */
		uint32_t from = 0;
		if (it[0].word == it[n - 1].word)
			continue;
		for (uint32_t i = 1; i <= n; i++) {
			if (i < n && it[i].word == it[from].word)
				continue;
			sort_level(def, it + from, tmp, i - from, level);
			from = i;
		}
		return;
	}
}

void weir_closed_sort(struct weir_closed *cl)
{
	struct sort_item small[2 * SORT_SMALL];
	uint32_t n = cl->count;
	struct sort_item *it = n <= SORT_SMALL ? small : weir_xmalloc((size_t)n * 2 * sizeof *it);
	for (uint32_t i = 0; i < n; i++)
		it[i] = (struct sort_item){0, (const struct weir_entry *)(uintptr_t)cl->entry[i]};
	sort_level(cl->def, it, it + n, n, 0);
	for (uint32_t i = 0; i < n; i++)
		cl->entry[i] = (uint64_t)(uintptr_t)it[i].e;
	if (it != small)
		free(it);
}

/* ---- reading ---- */

static bool is_windowed(const struct weir_state_def *def)
{
	return def->kind == WEIR_STATE_WINDOW || has_bounds(def);
}

uint32_t weir_state_columns(const struct weir_state_def *def)
{
	uint32_t n = def->key_count;
	if (def->side_count == 0)
		return n + def->agg_count + (is_windowed(def) ? 2 : 0);
	for (uint32_t i = 0; i < def->side_count; i++)
		n += def->sides[i].col_count;
	return n + (weir_join_in_windows(def) ? 4 : 0) + (def->kind == WEIR_STATE_JOIN && def->numbered);
}

void weir_rows_reset(struct weir_rows *r)
{
	r->count = 0;
	r->agg_errors = 0;
	weir_scratch_reset(&r->scratch);
	for (uint32_t i = 0; i < r->col_count; i++)
		weir_col_clear_nulls(&r->cols[i]);
}

void weir_rows_init(struct weir_rows *r, const struct weir_state_def *def)
{
	memset(r, 0, sizeof *r);
	r->col_count = weir_state_columns(def);
	r->cols = weir_xcalloc(r->col_count != 0 ? r->col_count : 1, sizeof *r->cols);
	uint32_t n = 0;
	for (uint32_t i = 0; i < def->key_count; i++)
		weir_col_init(&r->cols[n++], weir_type_phys(&def->key_types[i]));
	for (uint32_t i = 0; i < def->agg_count && def->side_count == 0; i++)
		weir_col_init(&r->cols[n++], weir_type_phys(&def->aggs[i].result_type));
	for (uint32_t s = 0; s < def->side_count; s++)
		for (uint32_t i = 0; i < def->sides[s].col_count; i++)
			weir_col_init(&r->cols[n++], weir_type_phys(&def->sides[s].types[i]));
	while (n < r->col_count)
		weir_col_init(&r->cols[n++], WEIR_PHYS_I64);
	weir_scratch_init(&r->scratch);
}

void weir_rows_fini(struct weir_rows *r)
{
	for (uint32_t i = 0; i < r->col_count; i++)
		weir_col_fini(&r->cols[i]);
	free(r->cols);
	weir_scratch_fini(&r->scratch);
	memset(r, 0, sizeof *r);
}

/* Strings of row `row` move into the rows' own memory: they go to other threads, while the pages they stood in go on.
 */
static uint64_t row_own(struct weir_rows *r, uint32_t row, uint32_t col_count)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < col_count; i++) {
		struct weir_col *c = &r->cols[i];
		if (c->phys != WEIR_PHYS_STR || weir_col_is_null(c, row) || c->str[row].bytes == 0)
			continue;
		struct weir_str *s = &c->str[row];
		uint8_t *own = weir_scratch_take(&r->scratch, s->bytes);
		memcpy(own, s->data, s->bytes);
		s->data = own;
		bytes += s->bytes;
	}
	return bytes;
}

uint64_t weir_rows_put(struct weir_rows *r, uint32_t row, const struct weir_state_def *def,
		       const struct weir_pages *pages, const struct weir_entry *e, int64_t start, int64_t end)
{
	uint32_t key_bytes, n = def->key_count;
	const uint8_t *key = weir_entry_key(def, e, &key_bytes);
	weir_key_decode(key, key_bytes, def->key_types, def->key_count, r->cols, row, &r->scratch);
	if (def->kind == WEIR_STATE_ROWS) {
		const struct weir_text *t = weir_table_text(def, e);
		weir_row_unpack(weir_text_data(pages, t), t->bytes, r->cols + n, def->sides[0].col_count, row, NULL);
		return row_own(r, row, r->col_count);
	}
	for (uint32_t i = 0; i < def->agg_count; i++, n++) {
		const struct weir_agg *a = &def->aggs[i];
		const uint8_t *state = (const uint8_t *)e + def->head_bytes + a->state_at;
		r->agg_errors += !weir_agg_result(a, state, pages, &r->cols[n], row, &r->scratch);
	}
	if (is_windowed(def)) {
		r->cols[n].i64[row] = start;
		r->cols[n + 1].i64[row] = end;
	}
	return row_own(r, row, def->key_count + def->agg_count);
}

uint32_t weir_closed_read(const struct weir_closed *cl, uint32_t from, struct weir_rows *out)
{
	const struct weir_state_def *def = cl->def;
	uint32_t n = from < cl->count ? cl->count - from : 0;
	if (n > WEIR_BATCH_ROWS)
		n = WEIR_BATCH_ROWS;
	uint64_t bytes = 0;
	out->agg_errors = 0;
	weir_scratch_reset(&out->scratch);
	for (uint32_t i = 0; i < out->col_count; i++)
		weir_col_clear_nulls(&out->cols[i]);
	for (uint32_t i = 0; i < n; i++) {
		enum { AHEAD = 8 };
		if (i + AHEAD < n) {
			const uint8_t *ahead = (const uint8_t *)(uintptr_t)cl->entry[from + i + AHEAD];
			__builtin_prefetch(ahead, 0, 3);
			__builtin_prefetch(ahead + 64, 0, 3);
		}
		const struct weir_entry *e = (const struct weir_entry *)(uintptr_t)cl->entry[from + i];
		int64_t start = cl->start, end = cl->end;
		out->time[i] = end - 1;
		if (def->kind == WEIR_STATE_SESSION) {
			const struct weir_session *s = (const struct weir_session *)(const void *)e;
			start = s->start;
			end = s->last + def->gap_ms;
			out->time[i] = s->last;
		} else if (def->kind == WEIR_STATE_SLIDING) {
			start = ((const struct weir_session *)(const void *)e)->start;
			end = out->time[i] = start + def->size_ms;
		}
		bytes += weir_rows_put(out, i, def, &cl->pages, e, start, end);
		out->op[i] = WEIR_OP_INSERT;
		out->entry[i] = NULL;
		if (bytes >= WEIR_ROWS_BYTES)
			n = i + 1;
	}
	out->count = n;
	return n;
}
