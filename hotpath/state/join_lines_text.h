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

/* Lines are asked for AHEAD rows before they are needed. What stands behind full ones is asked for, and looked at when
 * LATE_MOST rows need it, or at the end of a step. Of a step's rows those that they may meet are asked for, then their
 * keys, and then they are looked at. */
enum { AHEAD = 32, STEP = 64, LATE_MOST = 16, CANDIDATES_MOST = 4 /* of a row */ };
enum { STUBS_MOST = WEIR_PAGE_BYTES_MAX / sizeof(struct weir_stub) };

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Where lines lie: weir_join_index_line. */
struct view {
	uint64_t *const *segment;
	uint32_t shift, mask, spread;
};
LINES_INLINE struct view view_of(const struct weir_join_index *ix)
{
	_Static_assert(WEIR_JOIN_LINE * sizeof(uint64_t) == 1 << 6,
		       "the number of a line stands where its offset does");
	return (struct view){ix->segment, ix->shift, ix->line_mask << 6, ix->spread};
}
LINES_INLINE uint64_t *line_at(const struct view *vw, uint32_t hash)
{
	return (uint64_t *)((uintptr_t)vw->segment[(uint64_t)hash >> vw->shift] + (hash * vw->spread & vw->mask));
}

/* The lines of a sheet's rows that have been asked for, and as many behind the last one. */
struct lines {
	struct view vw;
	uint64_t *line[STUBS_MOST + AHEAD];
};
LINES_INLINE uint64_t *ask_line(const struct view *vw, const struct weir_stub *st)
{
	uint64_t *line = line_at(vw, st->older);
	__builtin_prefetch(line, 1, 3);
	return line;
}
/* The first ones of rows [from, to); the others follow one by one. */
LINES_INLINE void ask_first(struct lines *ls, const struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to && i < from + AHEAD; i++)
		ls->line[i] = ask_line(&ls->vw, &sh->stub[i]);
}

/* ---- entering ---- */

struct late {
	struct weir_stub *stub;
	uint64_t *line;
	uint64_t place;
	uint32_t hash;
};
struct entering {
	struct weir_slot *sl;
	struct weir_join_index *ix;
	struct weir_gen *gen;
	struct vectors k;
	uint32_t put, late_count;
	struct late late[LATE_MOST]; /* whose lines are full */
	struct lines lines;
};

/* One whose line holds its hash, or is full. */
LINES_FN WEIR_NOINLINE void enter_closer(struct entering *en, struct weir_stub *st, uint64_t *line, uint32_t hash,
					 uint64_t place)
{
	for (uint32_t step = 1;; step++) {
		uint64_t empty;
		if (line_own(&en->k, line, hash, &empty) != 0) {
			weir_join_list_add(en->sl, en->gen, weir_stub_buffered(st), true);
			return;
		}
		if (empty != 0) {
			*(line + WEIR_JOIN_LINE - empty) = place;
			en->put++;
			return;
		}
		line = weir_join_index_next(en->ix, hash, step);
	}
}

/* Those of one key have one line: they keep their order. */
LINES_FN WEIR_NOINLINE void enter_late(struct entering *en)
{
	for (uint32_t i = 0; i < en->late_count; i++)
		enter_closer(en, en->late[i].stub, en->late[i].line, en->late[i].hash, en->late[i].place);
	en->late_count = 0;
}

LINES_FN WEIR_NOINLINE void enter_full(struct entering *en, struct weir_stub *st, uint64_t *line, uint32_t hash,
				       uint64_t place)
{
	en->late[en->late_count++] = (struct late){st, line, place, hash};
	__builtin_prefetch(weir_join_index_next(en->ix, hash, 1), 1, 3);
	if (en->late_count == LATE_MOST)
		enter_late(en);
}

/* Cost: about 40 instructions a record. */
LINES_FN void enter(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	struct weir_gen *g = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen;
	const uint32_t code = g->code, ref = weir_entry_ref((const struct weir_entry *)(const void *)sh->stub);
	struct entering en; /* clearing it would cost more than a row */
	uint64_t low = weir_join_place_value(0, code, ref + from * (uint32_t)(sizeof *sh->stub / 8));
	struct weir_stub *st = &sh->stub[from], *const end = &sh->stub[to];
	uint64_t **at = &en.lines.line[from];
	en.sl = sl;
	en.ix = sl->joined;
	en.gen = g;
	en.put = en.late_count = 0;
	en.lines.vw = view_of(en.ix);
	vectors_init(&en.k, code);
	ask_first(&en.lines, sh, from, to);
	const struct vectors k = en.k;
	const struct view vw = en.lines.vw;
	uint32_t usual = 0;
	for (; st != end; st++, low += sizeof *st / 8) {
		const uint32_t hash = st->older;
		const uint64_t place = (uint64_t)(hash & ~(uint32_t)WEIR_JOIN_LOW_BITS) << 32 | low;
		const struct weir_stub *ahead = st + AHEAD < end ? st + AHEAD : st;
		uint64_t *line = *at, empty;
		at[AHEAD] = ask_line(&vw, ahead);
		at++;
		st->older = 0;
		if (WEIR_UNLIKELY(line_own(&k, line, hash, &empty) != 0)) {
			enter_closer(&en, st, line, hash, place);
			continue;
		}
		if (WEIR_UNLIKELY(empty == 0)) {
			enter_full(&en, st, line, hash, place);
			continue;
		}
		*(line + WEIR_JOIN_LINE - empty) = place;
		usual++;
	}
	enter_late(&en);
	en.ix->used += en.put + usual;
	en.ix->held[code] += en.put + usual;
}

/* ---- looking ---- */

struct candidate {
	struct weir_stub *own;
	const uint8_t *key; /* the other's, if it is a stub, from when it has been asked for */
	struct weir_buffered *other;
	int64_t start; /* of the other's generation */
};

/* A row whose line is full. */
struct look_late {
	struct weir_stub *own;
	struct candidate *end; /* of those that it met there, one at the most */
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
	uint32_t late_count;
	struct look_late late[STEP];
	struct candidate candidate[STEP * CANDIDATES_MOST];
	struct lines lines;
};

LINES_INLINE struct candidate *meet(uint8_t *const *base, const struct weir_join_index *ix, struct candidate *c,
				    struct weir_stub *own, uint64_t v)
{
	const uint32_t ref = (uint32_t)v;
	c->own = own;
	c->other = (struct weir_buffered *)(void *)(base[ref >> WEIR_REF_SHIFT] +
						    (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8);
	c->start = ix->start[weir_join_place_code(v)];
	__builtin_prefetch(c->other, 0, 3);
	return c + 1;
}

/* Whom a row meets in its line, if line is not NULL, and in those behind it. Returns behind the last, or NULL: that
 * asks for a closer look. */
LINES_FN WEIR_NOINLINE struct candidate *look_closer(const struct looking *lo, struct candidate *c,
						     const struct candidate *most, struct weir_stub *own,
						     const uint64_t *line)
{
	for (uint32_t step = 1;; step++) {
		line = line != NULL ? line : weir_join_index_next(lo->ix, own->older, step++);
		for (uint32_t others = line_others(&lo->k, line, &own->older); others != 0; others &= others - 1) {
			const uint64_t v = line[place_of(others)];
			if (v == 0 || !weir_join_place_lives(lo->ix, v))
				continue;
			if ((v >> 32 & WEIR_JOIN_LIST) != 0 || c == most)
				return NULL;
			c = meet(lo->sl->pages.base, lo->ix, c, own, v);
		}
		if (line[WEIR_JOIN_LINE - 1] == 0)
			return c;
		line = weir_join_index_next(lo->ix, own->older, step);
	}
}

/* Looks behind the full lines of rows, the last one first. Returns behind the last candidate, which is none of a row
 * that asks for a closer look, or of those behind that, *until. */
LINES_FN WEIR_NOINLINE struct candidate *look_late(struct looking *lo, struct candidate *c, struct weir_stub **until)
{
	while (lo->late_count != 0) {
		const struct look_late *lt = &lo->late[--lo->late_count];
		struct candidate more[CANDIDATES_MOST], *end = lt->end;
		const bool one = end != lo->candidate && end[-1].own == lt->own;
		const struct candidate *found = look_closer(lo, more, more + CANDIDATES_MOST - one, lt->own, NULL);
		if (found == NULL) {
			c = end - one;
			*until = lt->own;
		} else if (found != more) {
			memmove(end + (found - more), end, (size_t)(c - end) * sizeof *c);
			memcpy(end, more, (size_t)(found - more) * sizeof *c);
			c += found - more;
		}
	}
	return c;
}

LINES_FN WEIR_NOINLINE struct candidate *look_full(struct looking *lo, struct candidate *c, struct weir_stub *own,
						   uint32_t others, const uint64_t *line, struct weir_stub **until)
{
	if (others != 0) {
		const uint64_t v = line[place_of(others)];
		if ((others & (others - 1)) != 0 || (lo->odd >> (v >> 32 & 63) & 1) != 0) {
			struct candidate *end = look_closer(lo, c, c + CANDIDATES_MOST, own, line);
			if (end != NULL)
				return end;
			*until = own;
			return c;
		}
		c = meet(lo->sl->pages.base, lo->ix, c, own, v);
	}
	lo->late[lo->late_count++] = (struct look_late){own, c};
	__builtin_prefetch(weir_join_index_next(lo->ix, own->older, 1), 0, 3);
	return c;
}

/* Finds whom rows meet, from one on whose line has been asked for, up to *until; of a row that asks for a closer look,
 * and those behind it, nothing is said, and *until is that row. end: behind the last row that is asked for. Returns
 * behind the last of those met. */
LINES_INLINE struct candidate *look_step(struct looking *lo, struct weir_stub *own, struct weir_stub **until,
					 const struct weir_stub *end)
{
	const struct vectors k = lo->k;
	const struct view vw = lo->lines.vw;
	const uint64_t odd = lo->odd;
	uint8_t *const *base = lo->sl->pages.base;
	const struct weir_join_index *ix = lo->ix;
	uint64_t **at = &lo->lines.line[own - lo->sh->stub];
	struct candidate *c = lo->candidate;
	for (; own < *until; own++) {
		const uint64_t *line = *at;
		const struct weir_stub *ahead = own + AHEAD < end ? own + AHEAD : own;
		uint32_t others = line_others(&k, line, &own->older);
		at[AHEAD] = ask_line(&vw, ahead);
		at++;
		if (WEIR_UNLIKELY(line[WEIR_JOIN_LINE - 1] != 0)) {
			c = look_full(lo, c, own, others, line, until);
			continue;
		}
		if (others == 0)
			continue;
		uint64_t v = line[place_of(others)];
		if (WEIR_LIKELY((others & (others - 1)) == 0 && (odd >> (v >> 32 & 63) & 1) == 0)) {
			c = meet(base, ix, c, own, v);
			continue;
		}
		struct candidate *met = look_closer(lo, c, c + CANDIDATES_MOST, own, line);
		if (met == NULL)
			*until = own;
		else
			c = met;
	}
	return lo->late_count != 0 ? look_late(lo, c, until) : c;
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

/* Cost: about 40 instructions a row, 75 more where it has a match. */
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
	lo.late_count = 0;
	lo.lines.vw = view_of(ix);
	vectors_init(&lo.k, code);
	to = i + least(to - i, mt->room - mt->count);
	if (WEIR_UNLIKELY((int64_t)lo.span < 0)) /* nothing matches */
		i = to;
	ask_first(&lo.lines, sh, i, to);
	while (i < to && !closer) {
		struct weir_stub *const wanted = &sh->stub[least(i + STEP, to)], *until = wanted;
		struct candidate *c = look_step(&lo, &sh->stub[i], &until, &sh->stub[to]);
		closer = until != wanted;
		i = (uint32_t)(until - sh->stub);
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
