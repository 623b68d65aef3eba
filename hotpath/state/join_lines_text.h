/* join_lines_text.h: rows of sheets enter an index and look into it. Included by join_lines.c and join_lines_<set>.c,
 * each of which says before what its instruction set does with a line:
 *
 *   vectors_init     constants; code: of the generation whose rows look or enter
 *   line_others      a bit for each place that holds this hash and is of the other side, in whatever order; of an empty
 *                    one it may be said, too
 *   place_of         the place that has the lowest of those bits
 *   line_own         not 0: one holds this hash and is of the row's generation; *empty: how many are, the last ones
 *   same_short_key   whether two keys of n bytes, SHORT_KEY at most, are the same; both may be read so far
 *
 * @thread worker */
#ifndef LINES_FN
#error "include this from join_lines.c or join_lines_<set>.c"
#endif

_Static_assert(SHORT_KEY <= WEIR_SHEET_SLACK, "keys of sheets may be read so far");

/* Rows have their lines asked for block by block, so many rows ahead. Of a step's rows those that they may meet are
 * asked for, then their keys, and then they are looked at. */
enum { BLOCK = 32, AHEAD = BLOCK, STEP = 2 * BLOCK, CANDIDATES_MOST = 4 /* of a row */ };
enum { STUBS_MOST = WEIR_PAGE_BYTES_MAX / sizeof(struct weir_stub) };

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Where lines lie: weir_join_index_line. */
struct view {
	uint64_t *const *segment;
	uint32_t shift, mask;
};
LINES_INLINE struct view view_of(const struct weir_join_index *ix)
{
	_Static_assert(WEIR_JOIN_LINE * sizeof(uint64_t) == 1 << 6,
		       "the number of a line stands where its offset does");
	return (struct view){ix->segment, ix->shift, ix->line_mask << 6};
}
LINES_INLINE uint64_t *line_at(const struct view *vw, uint32_t hash)
{
	return (uint64_t *)((uintptr_t)vw->segment[(uint64_t)hash >> vw->shift] + (hash & vw->mask));
}

/* The lines of a sheet's rows. */
struct lines {
	struct view vw;
	uint32_t asked; /* up to this row */
	uint64_t *line[STUBS_MOST];
};
LINES_INLINE void ask_lines(struct lines *ls, const struct weir_sheet *sh, uint32_t to)
{
	const struct view vw = ls->vw;
	const struct weir_stub *st = sh->stub + ls->asked, *end = sh->stub + to;
	for (uint64_t **at = ls->line + ls->asked; st < end; st++) {
		uint64_t *line = line_at(&vw, st->older);
		*at++ = line;
		__builtin_prefetch(line, 1, 3);
	}
	ls->asked = to;
}

/* ---- entering ---- */

struct entering {
	struct weir_slot *sl;
	struct weir_join_index *ix;
	struct weir_gen *gen;
	struct vectors k;
	struct lines lines;
};

/* One whose line is full, or holds its hash. Returns how many places it took. */
LINES_FN WEIR_NOINLINE uint32_t enter_closer(const struct entering *en, struct weir_stub *st, uint32_t hash,
					     uint64_t *line, uint64_t place)
{
	for (uint32_t step = 1;; step++) {
		uint64_t empty;
		if (line_own(&en->k, line, hash, &empty) != 0) {
			weir_join_list_add(en->sl, en->gen, weir_stub_buffered(st), true);
			return 0;
		}
		if (empty != 0) {
			*(line + WEIR_JOIN_LINE - empty) = place;
			return 1;
		}
		line = weir_join_index_next(en->ix, hash, step);
	}
}

/* Cost: about 40 instructions a record. */
LINES_FN void enter(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	struct weir_gen *g = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen;
	const uint32_t code = g->code, ref = weir_entry_ref((const struct weir_entry *)(const void *)sh->stub);
	struct entering en; /* clearing it would cost more than a row */
	uint64_t low = weir_join_place_value(0, code, ref + from * (uint32_t)(sizeof *sh->stub / 8));
	uint32_t put = 0;
	en.sl = sl;
	en.ix = sl->joined;
	en.gen = g;
	en.lines.vw = view_of(en.ix);
	en.lines.asked = from;
	vectors_init(&en.k, code);
	for (uint32_t i = from; i < to;) {
		const uint32_t end = least(i + BLOCK, to);
		struct weir_stub *st = &sh->stub[i], *until = &sh->stub[end];
		uint64_t *const *at = &en.lines.line[i];
		ask_lines(&en.lines, sh, least(end + AHEAD, to));
		put += end - i;
		i = end;
		do {
			const uint32_t hash = st->older;
			const uint64_t place = (uint64_t)(hash & ~(uint32_t)WEIR_JOIN_LOW_BITS) << 32 | low;
			uint64_t *line = *at++;
			uint64_t empty;
			st->older = 0;
			if (WEIR_UNLIKELY(line_own(&en.k, line, hash, &empty) != 0 || empty == 0))
				put -= 1 - enter_closer(&en, st, hash, line, place);
			else
				*(line + WEIR_JOIN_LINE - empty) = place;
			low += sizeof *st / 8;
		} while (++st != until);
	}
	en.ix->used += put;
	en.ix->held[code] += put;
}

/* ---- looking ---- */

struct candidate {
	struct weir_stub *own;
	const uint8_t *key; /* the other's, if it is a stub, from when it has been asked for */
	struct weir_buffered *other;
	int64_t start; /* of the other's generation */
};

struct looking {
	const struct weir_slot *sl;
	const struct weir_join_index *ix;
	struct weir_sheet *sh;
	struct vectors k;
	uint64_t odd; /* by the lowest six bits of the upper half of a place: it is dead, or a list */
	uint32_t side;
	bool mixed;    /* not all that were met in this step are stubs */
	int64_t start; /* of the sheet's generation */
	int64_t oldest, back;
	uint64_t span; /* matches are not older than a row's time - back, nor younger by more than that */
	struct candidate candidate[STEP * CANDIDATES_MOST];
	struct lines lines;
};

LINES_INLINE struct candidate *meet(const struct weir_page *page, const struct weir_join_index *ix, struct candidate *c,
				    struct weir_stub *own, uint64_t v)
{
	const uint32_t ref = (uint32_t)v;
	c->own = own;
	c->other = (struct weir_buffered *)(void *)(page[ref >> WEIR_REF_SHIFT].base +
						    (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8);
	c->start = ix->start[weir_join_place_code(v)];
	__builtin_prefetch(c->other, 0, 3);
	return c + 1;
}

/* Whom a row meets that may not be just one, or none, in a line that is not full. Returns behind the last, or NULL:
 * that asks for a closer look. */
LINES_FN WEIR_NOINLINE struct candidate *look_closer(const struct looking *lo, struct candidate *c,
						     struct weir_stub *own, const uint64_t *line)
{
	const struct candidate *most = c + CANDIDATES_MOST;
	for (uint32_t step = 1;; step++) {
		for (uint32_t others = line_others(&lo->k, line, &own->older); others != 0; others &= others - 1) {
			const uint64_t v = line[place_of(others)];
			if (v == 0 || !weir_join_place_lives(lo->ix, v))
				continue;
			if ((v >> 32 & WEIR_JOIN_LIST) != 0 || c == most)
				return NULL;
			c = meet(lo->sl->pages.page, lo->ix, c, own, v);
		}
		if (line[WEIR_JOIN_LINE - 1] == 0)
			return c;
		line = weir_join_index_next(lo->ix, own->older, step);
	}
}

/* Finds whom rows [i, end) meet, in lines that have been asked for. Returns behind the last of them; *row: up to one
 * that asks for a closer look. */
LINES_INLINE struct candidate *look_block(struct looking *lo, struct candidate *c, uint32_t i, uint32_t end,
					  uint32_t *row)
{
	const struct vectors k = lo->k;
	const uint64_t odd = lo->odd;
	const struct weir_page *page = lo->sl->pages.page;
	const struct weir_join_index *ix = lo->ix;
	struct weir_stub *own = &lo->sh->stub[i], *until = &lo->sh->stub[end];
	uint64_t *const *at = &lo->lines.line[i];
	do {
		const uint64_t *line = *at++;
		uint32_t others = line_others(&k, line, &own->older);
		if (WEIR_LIKELY(line[WEIR_JOIN_LINE - 1] == 0)) {
			if (others == 0)
				continue;
			uint64_t v = line[place_of(others)];
			if (WEIR_LIKELY((others & (others - 1)) == 0 && (odd >> (v >> 32 & 63) & 1) == 0)) {
				c = meet(page, ix, c, own, v);
				continue;
			}
		}
		struct candidate *end_of = look_closer(lo, c, own, line);
		if (end_of == NULL)
			break;
		c = end_of;
	} while (++own != until);
	*row = (uint32_t)(own - lo->sh->stub);
	return c;
}

LINES_INLINE void ask_keys(struct looking *lo, const struct candidate *end)
{
	lo->mixed = false;
	for (struct candidate *c = lo->candidate; c != end; c++) {
		if (WEIR_UNLIKELY(!weir_buffered_is_stub(c->other))) {
			__builtin_prefetch((const uint8_t *)c->other + WEIR_CACHE_LINE, 0, 3);
			lo->mixed = true;
			continue;
		}
		c->key = weir_stub_key(weir_buffered_stub(c->other));
		__builtin_prefetch(c->key, 0, 3);
	}
}

static WEIR_NOINLINE bool same_key_mixed(const struct looking *lo, const struct candidate *c)
{
	uint32_t n;
	const uint8_t *key = weir_buffered_key(lo->sl->def, c->other, &n);
	return weir_buffered_is(lo->sl->def, weir_stub_buffered(c->own), 0, key, n);
}

/* Writes pairs. Returns the first row that asks for a closer look after all, or NULL. */
LINES_INLINE const struct weir_stub *pair(const struct looking *lo, const struct candidate *end, const bool mixed,
					  struct weir_join_meeting *mt)
{
	struct weir_join_pair *pr = mt->pairs + mt->count;
	const struct weir_buffered *last = mt->count != 0 ? pr[-1].own : NULL;
	const struct weir_stub *closer = NULL;
	for (const struct candidate *c = lo->candidate; c != end; c++) {
		struct weir_buffered *own = weir_stub_buffered(c->own), *other = c->other;
		const uint8_t *own_key = (const uint8_t *)lo->sh + c->own->at;
		const uint32_t n = own->e.key_bytes;
		if (WEIR_UNLIKELY(n != other->e.key_bytes))
			continue;
		if (mixed) {
			if (!same_key_mixed(lo, c))
				continue;
		} else if (WEIR_UNLIKELY(n > SHORT_KEY)) {
			if (!weir_key_equal(own_key, c->key, n))
				continue;
		} else if (WEIR_UNLIKELY(!same_short_key(own_key, c->key, n))) {
			continue;
		}
		int64_t own_time = lo->start + own->delta, time = c->start + other->delta;
		if (WEIR_UNLIKELY(time < lo->oldest)) {
			pr -= last == own;
			closer = c->own;
			break;
		}
		if (WEIR_UNLIKELY((uint64_t)(time - own_time + lo->back) > lo->span))
			continue;
		if (WEIR_UNLIKELY(last == own)) { /* they have an order */
			pr--;
			closer = c->own;
			break;
		}
		last = own;
		*pr++ = (struct weir_join_pair){own, other, weir_max_i64(time, own_time), lo->side};
	}
	mt->count = (uint32_t)(pr - mt->pairs);
	return closer;
}

/* Cost: about 40 instructions a row, 55 more where it has a match. */
LINES_FN bool look(const struct weir_slot *sl, struct weir_sheet *sh, uint32_t *from, uint32_t to,
		   struct weir_join_meeting *mt)
{
	const struct weir_join_index *ix = sl->joined;
	const uint32_t code = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen->code;
	struct looking lo; /* clearing it would cost more than a row */
	uint32_t i = *from;
	bool closer = false;
	lo.sl = sl;
	lo.ix = ix;
	lo.sh = sh;
	/* An empty place is of code 0. */
	lo.odd = ix->dead | 1 | (((UINT64_C(1) << WEIR_JOIN_LIST) - 1) << WEIR_JOIN_LIST);
	lo.side = mt->side;
	lo.start = ix->start[code];
	lo.oldest = mt->task_max - weir_join_keep_ms(sl->def);
	lo.back = weir_join_back_ms(sl->def, mt->side);
	lo.span = (uint64_t)(lo.back + weir_join_ahead_ms(sl->def, mt->side));
	lo.lines.vw = view_of(ix);
	lo.lines.asked = i;
	vectors_init(&lo.k, code);
	to = i + least(to - i, mt->room - mt->count);
	if (WEIR_UNLIKELY((int64_t)lo.span < 0)) /* nothing matches */
		i = to;
	while (i < to && !closer) {
		struct candidate *c = lo.candidate;
		for (const uint32_t until = least(i + STEP, to); i < until && !closer;) {
			uint32_t end = least(i + BLOCK, until);
			ask_lines(&lo.lines, sh, least(end + AHEAD, to));
			c = look_block(&lo, c, i, end, &i);
			closer = i != end;
		}
		ask_keys(&lo, c);
		const struct weir_stub *row =
			WEIR_UNLIKELY(lo.mixed) ? pair(&lo, c, true, mt) : pair(&lo, c, false, mt);
		if (WEIR_UNLIKELY(row != NULL)) {
			*from = (uint32_t)(row - sh->stub);
			return true;
		}
	}
	*from = i;
	return closer;
}
