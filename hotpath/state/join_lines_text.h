/* join_lines_text.h: rows of sheets enter an index and look into it. Included by join_lines.c and join_lines_<set>.c,
 * each of which says before what its instruction set does with a line:
 *
 *   vectors_init   constants; code: of the generation whose rows look or enter
 *   line_others    which places hold this hash and are of the other side; of an empty one it may be said, too
 *   line_own       which hold this place's hash and are of its generation; *empty: which are empty
 *   same_key       whether two keys of n bytes are the same; both may be read WEIR_SHEET_SLACK bytes beyond
 *   lowest         the number of the lowest bit that is set
 *
 * @thread worker */
#ifndef LINES_FN
#error "include this from join_lines.c or join_lines_<set>.c"
#endif

/* Lines are asked for FAR rows ahead. Rows look step by step: what a step's rows may meet is on its way into the cache
 * during the two steps that follow, first their stubs, then their keys. */
enum { FAR = 24, STEP = 16, CANDIDATES_MOST = 4 /* of a row, and more where they come together */ };

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

/* Asks for the lines of rows [from, to), as many of them as a sheet has. */
LINES_INLINE void ask_lines(const struct view *vw, const struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	const struct weir_stub *st = sh->stub + least(from, sh->count), *end = sh->stub + least(to, sh->count);
	for (; st != end; st++)
		__builtin_prefetch(line_at(vw, st->older), 1, 3);
}

/* ---- entering ---- */

/* Cost: about 35 instructions a record. */
LINES_FN void enter(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	struct weir_join_index *ix = sl->joined;
	struct weir_gen *g = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen;
	const uint32_t code = g->code, ref = weir_entry_ref((const struct weir_entry *)(const void *)sh->stub);
	const struct view vw = view_of(ix);
	struct vectors k;
	uint32_t put = 0;
	vectors_init(&k, code);
	if (from == 0)
		ask_lines(&vw, sh, 0, FAR);
	for (uint32_t i = from; i < to;) {
		const uint32_t end = i + least(STEP, to - i);
		uint64_t low = weir_join_place_value(0, code, ref + i * (uint32_t)(sizeof *sh->stub / 8));
		ask_lines(&vw, sh, i + FAR, end + FAR);
		for (; i != end; i++, low += sizeof *sh->stub / 8) {
			uint32_t hash = sh->stub[i].older, empty;
			uint64_t place = (uint64_t)(hash & ~(uint32_t)WEIR_JOIN_LOW_BITS) << 32 | low;
			uint64_t *line = line_at(&vw, hash);
			sh->stub[i].older = 0;
			uint32_t own = line_own(&k, line, place, &empty);
			for (uint32_t step = 1; WEIR_UNLIKELY(empty == 0) && own == 0; step++) {
				line = weir_join_index_next(ix, hash, step);
				own = line_own(&k, line, place, &empty);
			}
			if (WEIR_UNLIKELY(own != 0)) {
				weir_join_list_add(sl, g, weir_stub_buffered(&sh->stub[i]), true);
				continue;
			}
			line[lowest(empty)] = place;
			put++;
		}
	}
	ix->used += put;
	ix->held[code] += put;
}

/* ---- looking ---- */

struct candidate {
	struct weir_stub *own;
	struct weir_buffered *other;
	const uint8_t *key; /* the other's, if it is a stub, from when it has been asked for */
	int64_t start;      /* of the other's generation */
};
struct step {
	struct candidate *end;
	bool mixed; /* not all are stubs */
	struct candidate candidate[STEP * CANDIDATES_MOST];
};

struct looking {
	const struct weir_slot *sl;
	const struct weir_join_index *ix;
	const struct weir_page *page;
	struct weir_sheet *sh;
	struct view vw;
	struct vectors k;
	uint32_t dead, side;
	int64_t start; /* of the sheet's generation */
	int64_t oldest, back, ahead;
};

/* Adds whom a row meets. False: that asks for a closer look. */
LINES_INLINE bool look_for(const struct looking *lo, struct weir_stub *own, struct step *st)
{
	const uint32_t hash = own->older;
	const uint64_t *line = line_at(&lo->vw, hash);
	struct candidate *c = st->end, *most = c + CANDIDATES_MOST;
	for (uint32_t step = 1;; step++) {
		for (uint32_t others = line_others(&lo->k, line, &own->older); others != 0;) {
			const uint64_t v = line[lowest(others)];
			const uint32_t about = (uint32_t)(v >> 32), ref = (uint32_t)v;
			others &= others - 1;
			if (WEIR_UNLIKELY((lo->dead >> (about & WEIR_JOIN_CODE_BITS) & 1) != 0))
				continue;
			if (WEIR_UNLIKELY((about & WEIR_JOIN_LIST) != 0))
				return false;
			c->own = own;
			c->other = (struct weir_buffered *)(void *)(lo->page[ref >> WEIR_REF_SHIFT].base +
								    (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8);
			c->start = lo->ix->start[about & WEIR_JOIN_CODE_BITS];
			__builtin_prefetch(c->other, 0, 3);
			c++;
			if (WEIR_UNLIKELY(others != 0) && c == most)
				return false;
		}
		if (WEIR_LIKELY(line[WEIR_JOIN_LINE - 1] == 0))
			break;
		if (c == most)
			return false;
		line = weir_join_index_next(lo->ix, hash, step);
	}
	st->end = c;
	return true;
}

LINES_INLINE void ask_keys(struct step *st)
{
	for (struct candidate *c = st->candidate; c != st->end; c++) {
		if (WEIR_UNLIKELY(!weir_buffered_is_stub(c->other))) {
			__builtin_prefetch((const uint8_t *)c->other + WEIR_CACHE_LINE, 0, 3);
			st->mixed = true;
			continue;
		}
		c->key = weir_stub_key(weir_buffered_stub(c->other));
		__builtin_prefetch(c->key, 0, 3);
	}
}

static WEIR_NOINLINE bool same_key_mixed(const struct looking *lo, const struct candidate *c)
{
	struct weir_buffered *own = weir_stub_buffered(c->own);
	uint32_t n;
	const uint8_t *key = weir_buffered_key(lo->sl->def, c->other, &n);
	return weir_buffered_is(lo->sl->def, own, 0, key, n);
}

/* Writes pairs. Returns the first row that asks for a closer look after all, or NULL. */
LINES_INLINE const struct weir_stub *pair_step(const struct looking *lo, const struct step *st, const bool mixed,
					       struct weir_join_meeting *mt)
{
	struct weir_join_pair *pr = mt->pairs + mt->count;
	const struct weir_buffered *last = mt->count != 0 ? pr[-1].own : NULL;
	const struct weir_stub *closer = NULL;
	for (const struct candidate *c = st->candidate; c != st->end; c++) {
		struct weir_buffered *own = weir_stub_buffered(c->own), *other = c->other;
		const uint32_t n = own->e.key_bytes;
		if (WEIR_UNLIKELY(n != other->e.key_bytes))
			continue;
		if (WEIR_UNLIKELY(mixed ? !same_key_mixed(lo, c)
					: !same_key((const uint8_t *)lo->sh + c->own->at, c->key, n)))
			continue;
		int64_t own_time = lo->start + own->delta, time = c->start + other->delta;
		if (WEIR_UNLIKELY(time < lo->oldest)) {
			pr -= last == own;
			closer = c->own;
			break;
		}
		if (WEIR_UNLIKELY(time - own_time < -lo->back || time - own_time > lo->ahead))
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

/* Cost: about 60 instructions a row, 45 more where it has a match. */
LINES_FN bool look(const struct weir_slot *sl, struct weir_sheet *sh, uint32_t *from, uint32_t to,
		   struct weir_join_meeting *mt)
{
	const struct weir_join_index *ix = sl->joined;
	const uint32_t code = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen->code;
	struct looking lo = {.sl = sl,
			     .ix = ix,
			     .page = sl->pages.page,
			     .sh = sh,
			     .vw = view_of(ix),
			     .dead = ix->dead | 1, /* an empty place is of code 0 */
			     .side = mt->side,
			     .start = ix->start[code],
			     .oldest = mt->task_max - weir_join_keep_ms(sl->def),
			     .back = weir_join_back_ms(sl->def, mt->side),
			     .ahead = weir_join_ahead_ms(sl->def, mt->side)};
	struct step steps[3]; /* clearing them would cost more than a row */
	struct step *now = &steps[0], *asked = &steps[1], *before = &steps[2];
	uint32_t i = *from;
	bool closer = false;
	vectors_init(&lo.k, code);
	asked->end = asked->candidate;
	before->end = before->candidate;
	asked->mixed = before->mixed = false;
	to = i + least(to - i, mt->room - mt->count);
	if (i == 0)
		ask_lines(&lo.vw, sh, 0, FAR);
	for (uint32_t left = 2; left != 0;) {
		const uint32_t end = i + least(STEP, to - i);
		now->end = now->candidate;
		now->mixed = false;
		left -= i == to || closer;
		if (!closer)
			ask_lines(&lo.vw, sh, i + FAR, end + FAR);
		for (; i != end && !closer; i += !closer)
			closer = !look_for(&lo, &sh->stub[i], now);
		ask_keys(asked);
		const struct weir_stub *row = WEIR_UNLIKELY(before->mixed) ? pair_step(&lo, before, true, mt)
									   : pair_step(&lo, before, false, mt);
		if (WEIR_UNLIKELY(row != NULL)) {
			*from = (uint32_t)(row - sh->stub);
			return true;
		}
		struct step *next = before;
		before = asked;
		asked = now;
		now = next;
	}
	*from = i;
	return closer;
}
