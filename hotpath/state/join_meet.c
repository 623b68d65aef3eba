/* join_meet.c: rows of an inner join of two streams enter the index of their slot and meet the other side's
 * (join_state.h). @thread worker
 *
 *   a block of rows   enter   each one's line says who may match it, and takes its place: nothing but lines is touched
 *                     pair    who may match is looked at: keys and times
 *
 * Between the two what is to be looked at is on its way into the cache. Rows of a block that pair finds to ask for a
 * closer look are taken out of the index again, with those behind them.
 *
 * Where records of one side are deferred (join_index.h), its rows only look and the other's only enter: first those
 * enter, then these look. What enters is too young for a row that came before it in the block: the block ends where it
 * might not be. */
#include "hotpath/state/join_lines.h"

#define BLOCK 32
#define AHEAD 48
_Static_assert(WEIR_JOIN_AHEAD >= AHEAD, "as far as is looked ahead");

/* Who may match a row of the block. */
struct candidate {
	uint64_t other;
	uint32_t row;
};

struct block {
	const struct weir_join_turn *t;
	uint32_t count;   /* of rows */
	uint32_t entered; /* of them */
	uint32_t candidates;
	uint64_t *at[BLOCK]; /* the places of those that entered */
	struct candidate candidate[BLOCK + 1];
	/* where one side is deferred: rows of the other one, which enter, and its own */
	uint32_t entering, looking;
	uint8_t enters[BLOCK + 1], looks[BLOCK + 1];
};

/* What all rows have in common. */
struct terms {
	const struct weir_state_def *def;
	int64_t oldest;
	int64_t back[2], ahead[2]; /* by side */
};

static void terms_init(struct terms *tm, const struct weir_state_def *def)
{
	for (uint32_t side = 0; side < 2; side++) {
		tm->back[side] = weir_join_back_ms(def, side);
		tm->ahead[side] = weir_join_ahead_ms(def, side);
	}
}

/* Always inline: gcc takes a function that does nothing but ask for one without an effect, and drops its calls. */
WEIR_INLINE void ask_line(const struct weir_join_index *ix, const struct weir_join_turn *t)
{
	__builtin_prefetch(weir_join_index_line(ix, t->hash), 1, 3);
}

WEIR_INLINE void ask_record(const struct weir_pages *pg, uint64_t place)
{
	const uint8_t *p = (const uint8_t *)weir_join_place_record(pg, place);
	__builtin_prefetch(p, 0, 3);
	__builtin_prefetch(p + WEIR_CACHE_LINE, 0, 3);
}

/* A row whose line is full, the only place of which that fits, if any, is *other: the search goes on. False: it asks
 * for a closer look. */
static WEIR_NOINLINE bool enter_beyond(const struct weir_join_index *ix, const struct weir_join_turn *t,
				       uint64_t **free_place, uint64_t *other)
{
	for (uint32_t step = 1;; step++) {
		uint64_t *line = weir_join_index_next(ix, t->hash, step);
		struct weir_join_look lk = weir_join_line_look(line, t->row);
		if (WEIR_UNLIKELY((lk.own | lk.others) != 0)) {
			if (lk.own != 0 || *other != 0 || (lk.others & (lk.others - 1)) != 0)
				return false;
			uint64_t v = line[__builtin_ctz(lk.others)];
			if (weir_join_place_lives(ix, v))
				*other = v;
		}
		if (WEIR_LIKELY(lk.empty != 0)) {
			*free_place = line + __builtin_ctz(lk.empty);
			return (*other >> 32 & WEIR_JOIN_LIST) == 0;
		}
	}
}

/* Rows from the first on enter, up to one that asks for a closer look. Cost: about 60 instructions a row. */
static inline void enter(struct weir_slot *sl, struct weir_join_index *ix, struct block *bk, int64_t oldest)
{
	uint32_t found = 0, i;
	for (i = 0; i < bk->count; i++) {
		const struct weir_join_turn *t = &bk->t[i];
		ask_line(ix, &t[AHEAD]);
		uint64_t *line = weir_join_index_line(ix, t->hash);
		struct weir_join_look lk = weir_join_line_look(line, t->row);
		uint64_t other = line[__builtin_ctz(lk.others | 1u << (WEIR_JOIN_LINE - 1))];
		uint64_t *free_place = line + __builtin_ctz(lk.empty | 1u << (WEIR_JOIN_LINE - 1));
		bool may = lk.others != 0 && weir_join_place_lives(ix, other);
		bool closer = (lk.others & (lk.others - 1)) != 0 || lk.own != 0 ||
			      (may && (other >> 32 & WEIR_JOIN_LIST) != 0);
		if (WEIR_UNLIKELY(t->row < WEIR_JOIN_NO_ROWS || t->time < oldest))
			break;
		if (WEIR_UNLIKELY(lk.empty == 0) && !closer) {
			other = may ? other : 0;
			closer = !enter_beyond(ix, t, &free_place, &other);
			may = other != 0;
		}
		if (WEIR_UNLIKELY(closer))
			break;
		*free_place = t->row;
		bk->at[i] = free_place;
		bk->candidate[found] = (struct candidate){other, i};
		if (may)
			ask_record(&sl->pages, other);
		found += may;
		ix->held[weir_join_place_code(t->row)]++;
	}
	ix->used += i;
	bk->entered = i;
	bk->candidates = found;
}

/* Takes rows from `from` on out again, the last one first: their places are the last of their lines. */
static void leave(struct weir_join_index *ix, struct block *bk, uint32_t from)
{
	while (bk->entered > from) {
		uint32_t i = --bk->entered;
		*bk->at[i] = 0;
		ix->held[weir_join_place_code(bk->t[i].row)]--;
		ix->used--;
	}
}

/* Rows of `side` that entered although it is deferred elsewhere: those of sheets, which do not look, are to know. */
static inline void note_entered(struct weir_join_index *ix, const struct block *bk, uint32_t side)
{
	int64_t high = ix->deferred_high[side];
	for (uint32_t i = 0; i < bk->entered; i++)
		if (weir_join_turn_side(&bk->t[i]) == side)
			high = weir_max_i64(high, bk->t[i].time);
	ix->deferred_high[side] = high;
}

static inline bool same_key(const struct weir_state_def *def, const struct weir_buffered *a,
			    const struct weir_buffered *b)
{
	uint32_t an, bn;
	if (WEIR_UNLIKELY(a->e.key_bytes != b->e.key_bytes))
		return false;
	const uint8_t *ak = weir_buffered_key(def, a, &an), *bk = weir_buffered_key(def, b, &bn);
	return an == bn && weir_key_equal(ak, bk, an);
}

/* Writes the pairs. Returns the first row that asks for a closer look after all, or how many have entered. */
static inline uint32_t pair(const struct weir_slot *sl, const struct weir_join_index *ix, const struct terms *tm,
			    const struct block *bk, struct weir_join_meeting *mt)
{
	for (uint32_t c = 0; c < bk->candidates; c++) {
		const struct candidate *cd = &bk->candidate[c];
		const struct weir_join_turn *t = &bk->t[cd->row];
		struct weir_buffered *own = weir_join_turn_record(sl, t);
		struct weir_buffered *other = weir_join_place_record(&sl->pages, cd->other);
		uint32_t side = weir_join_turn_side(t);
		int64_t time = ix->start[weir_join_place_code(cd->other)] + other->delta;
		if (WEIR_UNLIKELY(!same_key(tm->def, own, other)))
			continue;
		if (WEIR_UNLIKELY(time < tm->oldest))
			return cd->row;
		if (time < t->time - tm->back[side] || time > t->time + tm->ahead[side])
			continue;
		mt->pairs[mt->count++] = (struct weir_join_pair){own, other, weir_max_i64(time, t->time), side};
	}
	return bk->entered;
}

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- one side is deferred ---- */

/* Which side it is, all of its records; 2: none. As long as some had to be entered, those of generations that have come
 * since are entered too. */
static uint32_t deferred_side(struct weir_slot *sl, const struct weir_join_index *ix)
{
	uint32_t live = ix->taken & ~ix->dead;
	for (uint32_t side = 0; side < 2; side++)
		if (weir_join_defers(sl->def, side) &&
		    (live & ~ix->deferring & (side != 0 ? 0xaaaaaaaau : 0x55555555u)) == 0)
			return side;
	while (ix->deferring != 0)
		weir_join_enter_code(sl, (uint32_t)__builtin_ctz(ix->deferring));
	return 2;
}

/* Parts the rows of a block, up to one that asks for a closer look or might meet a record of the block that is
 * deferred. Cost: about 20 instructions a row. */
static inline void part(const struct weir_slot *sl, struct block *bk, const struct terms *tm, uint32_t side)
{
	const struct weir_join_index *ix = sl->joined;
	uint32_t entering = 0, looking = 0, i;
	int64_t high = WEIR_TIME_UNSET, back = tm->back[1 - side];
	for (i = 0; i < bk->count; i++) {
		const struct weir_join_turn *t = &bk->t[i];
		bool looks = weir_join_turn_side(t) == side;
		int64_t from = t->time - back;
		ask_line(ix, &t[AHEAD]);
		if (WEIR_UNLIKELY(t->row < WEIR_JOIN_NO_ROWS || t->time < tm->oldest))
			break;
		if (WEIR_UNLIKELY(!looks && from <= high)) {
			bk->count = i;
			break;
		}
		if (WEIR_UNLIKELY(from <= ix->deferred_high[side]) && !looks &&
		    weir_join_may_meet_deferred(sl, side, t->hash, from, t->time + tm->ahead[1 - side]))
			break;
		high = looks && t->time > high ? t->time : high;
		bk->enters[entering] = (uint8_t)i;
		bk->looks[looking] = (uint8_t)i;
		entering += !looks;
		looking += looks;
	}
	bk->entered = i;
	bk->entering = entering;
	bk->looking = looking;
}

/* Those that enter do, up to one that asks for a closer look. Cost: about 35 instructions. */
static inline void enter_parted(struct weir_join_index *ix, struct block *bk)
{
	uint32_t n;
	for (n = 0; n < bk->entering; n++) {
		const struct weir_join_turn *t = &bk->t[bk->enters[n]];
		uint64_t *line = weir_join_index_line(ix, t->hash), none = 0;
		struct weir_join_look lk = weir_join_line_look(line, t->row);
		uint64_t *free_place = line + __builtin_ctz(lk.empty | 1u << (WEIR_JOIN_LINE - 1));
		bool closer = lk.own != 0;
		if (WEIR_UNLIKELY(lk.empty == 0) && !closer)
			closer = !enter_beyond(ix, t, &free_place, &none);
		if (WEIR_UNLIKELY(closer)) {
			bk->entered = bk->enters[n];
			break;
		}
		*free_place = t->row;
		bk->at[n] = free_place;
		ix->held[weir_join_place_code(t->row)]++;
	}
	ix->used += n;
	bk->entering = n;
}

/* Whom a row meets, *other; false: that asks for a closer look. */
static inline bool look(const struct weir_join_index *ix, const struct weir_join_turn *t, uint64_t *other)
{
	uint64_t *line = weir_join_index_line(ix, t->hash);
	*other = 0;
	for (uint32_t step = 1;; step++) {
		struct weir_join_look lk = weir_join_line_look(line, t->row);
		uint64_t v = line[__builtin_ctz(lk.others | 1u << (WEIR_JOIN_LINE - 1))];
		if (lk.others != 0 && weir_join_place_lives(ix, v)) {
			if (WEIR_UNLIKELY(*other != 0 || (v >> 32 & WEIR_JOIN_LIST) != 0))
				return false;
			*other = v;
		}
		if (WEIR_UNLIKELY((lk.others & (lk.others - 1)) != 0))
			return false;
		if (WEIR_LIKELY(lk.empty != 0))
			return true;
		line = weir_join_index_next(ix, t->hash, step);
	}
}

/* Those that look do. Cost: about 40 instructions. */
static inline void look_parted(const struct weir_slot *sl, const struct weir_join_index *ix, struct block *bk)
{
	uint32_t found = 0;
	for (uint32_t n = 0; n < bk->looking && bk->looks[n] < bk->entered; n++) {
		uint64_t other;
		if (WEIR_UNLIKELY(!look(ix, &bk->t[bk->looks[n]], &other))) {
			bk->entered = bk->looks[n];
			break;
		}
		bk->candidate[found] = (struct candidate){other, bk->looks[n]};
		if (other != 0)
			ask_record(&sl->pages, other);
		found += other != 0;
	}
	bk->candidates = found;
}

/* Takes rows from `from` on out again, and notes that those before it that are deferred have had their turn. */
static inline void settle(struct weir_slot *sl, struct weir_join_index *ix, struct block *bk, uint32_t from)
{
	bk->entered = least(bk->entered, from);
	while (bk->entering != 0 && bk->enters[bk->entering - 1] >= bk->entered) {
		uint32_t n = --bk->entering;
		*bk->at[n] = 0;
		ix->held[weir_join_place_code(bk->t[bk->enters[n]].row)]--;
		ix->used--;
	}
	for (uint32_t n = 0; n < bk->looking && bk->looks[n] < bk->entered; n++) {
		const struct weir_join_turn *t = &bk->t[bk->looks[n]];
		weir_join_defer(sl, t->row, t->time);
	}
}

/* Cost: about 80 instructions a row, 60 more where it has a match, and a line of memory that is not in the cache, asked
 * for early; what a match lies in is mostly young. */
bool weir_join_meet(struct weir_slot *sl, struct weir_join_meeting *mt)
{
	const struct weir_state_def *def = sl->def;
	struct weir_join_index *ix = sl->joined;
	struct terms tm = {.def = def, .oldest = mt->task_max - weir_join_keep_ms(def)}; /* from then on none is late */
	terms_init(&tm, def);
	if (ix == NULL || ix->uncoded != 0)
		return mt->next < mt->end;
	const uint32_t deferred = deferred_side(sl, ix);
	const uint32_t else_deferred = weir_join_defers(def, 0) ? 0 : weir_join_defers(def, 1) ? 1 : 2;
	for (uint32_t i = 0; i < AHEAD && mt->asked == NULL; i++)
		ask_line(ix, &mt->next[i]);
	mt->asked = mt->next;
	while (mt->next < mt->end && mt->count < mt->room) {
		struct block bk; /* clearing it would cost more than a row */
		bk.t = mt->next;
		if (ix->used >= ix->limit)
			weir_join_index_sweep(sl);
		bk.count = least(least(BLOCK, mt->room - mt->count), ix->limit - ix->used);
		if (bk.count > (size_t)(mt->end - mt->next))
			bk.count = (uint32_t)(mt->end - mt->next);
		if (deferred == 2) {
			enter(sl, ix, &bk, tm.oldest);
			leave(ix, &bk, pair(sl, ix, &tm, &bk, mt));
			if (else_deferred < 2)
				note_entered(ix, &bk, else_deferred);
		} else {
			part(sl, &bk, &tm, deferred);
			enter_parted(ix, &bk);
			look_parted(sl, ix, &bk);
			settle(sl, ix, &bk, pair(sl, ix, &tm, &bk, mt));
		}
		mt->next += bk.entered;
		if (bk.entered < bk.count)
			return true;
	}
	return false;
}

/* ---- sheets, of which one side's are deferred ---- */

void weir_join_enter_sheet(struct weir_slot *sl, struct weir_sheet *sh)
{
	struct weir_join_index *ix = sl->joined;
	for (uint32_t i = 0; i < sh->count;) {
		if (ix->used >= ix->limit)
			weir_join_index_sweep(sl);
		uint32_t to = i + least(sh->count - i, ix->limit - ix->used);
		ix->lines->enter(sl, sh, i, to);
		i = to;
	}
}

bool weir_join_look_sheet(struct weir_slot *sl, struct weir_sheet *sh, uint32_t *from, uint32_t to,
			  struct weir_join_meeting *mt)
{
	return sl->joined->lines->look(sl, sh, from, to, mt);
}
