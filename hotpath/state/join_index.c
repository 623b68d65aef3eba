/* join_index.c: the index of a slot's join buffers (join_index.h). @thread worker */
#include "hotpath/state/join_lines.h"

#include "hotpath/core/hash.h"

/* Of a segment. At the most all bits of a hash that a place holds count. */
enum { LINES_MIN = 4, LINES_MAX = WEIR_JOIN_LINES, SEGMENTS_MAX = 1 << 18 };

/* Five eighths of the places: eight of a hundred lines are full then. */
static uint32_t limit_of(uint32_t segments, uint32_t lines)
{
	return segments * lines * (WEIR_JOIN_LINE * 5 / 8);
}

static size_t segment_bytes(uint32_t lines)
{
	return lines * WEIR_JOIN_LINE * sizeof(uint64_t);
}

_Static_assert(LINES_MAX *WEIR_JOIN_LINE * sizeof(uint64_t) == WEIR_BLOCK_CARVED, "a segment is a piece");
static uint64_t *segment_take(struct weir_blocks *bl, uint32_t lines)
{
	uint64_t *segment =
		lines == LINES_MAX ? weir_blocks_take_piece(bl) : weir_blocks_take(bl, segment_bytes(lines));
	memset(segment, 0, segment_bytes(lines));
	return segment;
}

static void segment_give(struct weir_blocks *bl, uint64_t *segment, uint32_t lines)
{
	if (lines == LINES_MAX)
		weir_blocks_give_piece(bl, segment);
	else
		weir_blocks_give(bl, segment, segment_bytes(lines));
}

static void set_size(struct weir_join_index *ix, struct weir_blocks *bl, uint32_t segments, uint32_t lines)
{
	WEIR_ASSERT(segments <= SEGMENTS_MAX);
	ix->segment = weir_blocks_take(bl, segments * sizeof *ix->segment);
	ix->segments = segments;
	ix->shift = 32 - (uint32_t)__builtin_ctz(segments);
	ix->line_mask = lines - 1;
	ix->spread = lines == LINES_MAX ? WEIR_JOIN_SPREAD : 1;
	ix->limit = limit_of(segments, lines);
}

/* The first empty place from the line of this hash on. */
static inline uint64_t *find_empty(const struct weir_join_index *ix, uint32_t hash)
{
	uint64_t *line = weir_join_index_line(ix, hash);
	for (uint32_t step = 1; WEIR_UNLIKELY(line[WEIR_JOIN_LINE - 1] != 0); step++)
		line = weir_join_index_next(ix, hash, step);
	return line + __builtin_ctz(weir_join_line_look(line, 0).empty);
}

/* ---- the whole hash of a place ---- */

static uint32_t hash_of_record(const struct weir_slot *sl, uint64_t place)
{
	const struct weir_buffered *bf = weir_join_place_record(&sl->pages, place);
	uint32_t n;
	if (!weir_buffered_is_stub(bf))
		return bf->e.hash;
	const uint8_t *key = weir_buffered_key(sl->def, bf, &n);
	return weir_hash_index(weir_hash(key, n));
}

/* Of a place in that line of a segment of the largest size; line may have WEIR_JOIN_DOUBT. */
static uint32_t hash_of_place(const struct weir_slot *sl, uint64_t place, uint32_t line)
{
	if (WEIR_UNLIKELY((line & WEIR_JOIN_DOUBT) != 0))
		return hash_of_record(sl, place);
	uint32_t known = (uint32_t)(place >> 32) & ~(uint32_t)WEIR_JOIN_LOW_BITS;
	uint32_t home = line - ((line - (known >> 6)) & 3); /* modulo lines: it may be in the segment before */
	return known | (((home >> 2) - (known >> 8)) & WEIR_JOIN_LOW_BITS);
}

/* A bit for each of the last four lines of a segment that is full, the last one's the lowest. */
static uint32_t full_at_end(const uint64_t *segment)
{
	uint32_t full = 0;
	_Static_assert(WEIR_JOIN_LINES_FULL >> 4 == 0, "four count");
	for (uint32_t l = LINES_MAX - 4; l < LINES_MAX; l++)
		full = full << 1 | (segment[(size_t)l * WEIR_JOIN_LINE + WEIR_JOIN_LINE - 1] != 0);
	return full;
}

/* ---- sweeps ---- */

/* One segment that is not of the largest size before, or is not after. To become so large it takes more of a hash than
 * its places say. */
static void rewrite_small(struct weir_slot *sl, const uint64_t *place, uint32_t count)
{
	struct weir_join_index *ix = sl->joined;
	const bool whole = ix->line_mask + 1 == LINES_MAX;
	uint32_t dead = ix->dead;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t v = place[i];
		if (v != 0 && (dead >> weir_join_place_code(v) & 1) == 0)
			*find_empty(ix, whole ? hash_of_record(sl, v) : (uint32_t)(v >> 32)) = v;
	}
}

struct moving {
	uint64_t place;
	uint32_t hash; /* all of it */
};

/* While some segments are not written anew yet: what would not stand in one of [first, first + segments), from its own
 * line on, goes to later. */
static void put_near(struct weir_join_index *ix, const struct moving *mv, uint32_t first, uint32_t segments,
		     struct weir_buf *later)
{
	uint32_t segment = (uint32_t)((uint64_t)mv->hash >> ix->shift);
	if (segment - first < segments) {
		uint64_t *line = weir_join_index_line(ix, mv->hash),
			 *end = ix->segment[segment] + (size_t)LINES_MAX * WEIR_JOIN_LINE;
		while (line < end && line[WEIR_JOIN_LINE - 1] != 0)
			line += WEIR_JOIN_LINE;
		if (line < end) {
			line[__builtin_ctz(weir_join_line_look(line, 0).empty)] = mv->place;
			return;
		}
	}
	weir_buf_put(later, mv, sizeof *mv);
}

/* What had to wait until all segments are. */
static void put_later(struct weir_join_index *ix, struct weir_buf *later)
{
	const struct moving *mv = (const struct moving *)(const void *)later->data;
	for (size_t i = 0; i < later->bytes / sizeof *mv; i++)
		*find_empty(ix, mv[i].hash) = mv[i].place;
	weir_buf_fini(later);
}

/* Segments of the largest size into as many or twice as many: places of a line go into the same one, or into one of
 * two by the bit of the hash that names a segment from now on. */
static void rewrite(struct weir_slot *sl, uint64_t *const *old, uint32_t old_count)
{
	struct weir_join_index *ix = sl->joined;
	struct weir_join_beyond by;
	struct weir_buf later = {0};
	const bool twice = ix->segments > old_count;
	/* Above the bits that say which line are those of the old segment; there may be none. */
	const uint32_t shift = 32 + ix->shift + (twice ? 1 : 0);
	struct weir_join_parting pt = {.bit = twice ? UINT64_C(1) << (shift - 1) : 0, .dead = ix->dead};
	uint32_t full = full_at_end(old[old_count - 1]);
	pt.fits = 3 * WEIR_JOIN_LINE_STEP | (shift < 64 ? UINT64_MAX << shift : 0);
	for (uint32_t s = 0; s < old_count; s++) {
		uint64_t *second = twice ? weir_blocks_take_piece(&sl->blocks) : NULL;
		uint32_t first = twice ? 2 * s : s;
		ix->segment[first] = old[s];
		if (second != NULL)
			ix->segment[first + 1] = second;
		pt.home = shift < 64 ? (uint64_t)s << shift : 0;
		pt.full = full;
		full = full_at_end(old[s]);
		ix->lines->split(old[s], second, &pt, &by);
		for (uint32_t i = 0; i < by.count; i++) {
			struct moving mv = {by.place[i], hash_of_place(sl, by.place[i], by.line[i])};
			put_near(ix, &mv, first, twice ? 2 : 1, &later);
		}
	}
	put_later(ix, &later);
}

/* Segments of the largest size into half as many. */
static void unite(struct weir_slot *sl, uint64_t *const *old, uint32_t old_count)
{
	struct weir_join_index *ix = sl->joined;
	struct weir_buf later = {0};
	uint32_t full = full_at_end(old[old_count - 1]);
	for (uint32_t s = 0; s < old_count; s++) {
		if (s % 2 == 0)
			ix->segment[s / 2] = segment_take(&sl->blocks, LINES_MAX);
		for (uint32_t l = 0; l < LINES_MAX; l++) {
			const uint64_t *line = old[s] + (size_t)l * WEIR_JOIN_LINE;
			uint32_t at = l | ((full & WEIR_JOIN_LINES_FULL) == WEIR_JOIN_LINES_FULL ? WEIR_JOIN_DOUBT : 0);
			full = full << 1 | (line[WEIR_JOIN_LINE - 1] != 0);
			for (uint32_t i = 0; i < WEIR_JOIN_LINE && line[i] != 0; i++) {
				struct moving mv = {.place = line[i]};
				if (!weir_join_place_lives(ix, line[i]))
					continue;
				mv.hash = hash_of_place(sl, line[i], at);
				put_near(ix, &mv, s / 2, 1, &later);
			}
		}
		segment_give(&sl->blocks, old[s], LINES_MAX);
	}
	put_later(ix, &later);
}

void weir_join_index_sweep(struct weir_slot *sl)
{
	struct weir_join_index *ix = sl->joined;
	struct weir_blocks *bl = &sl->blocks;
	const struct weir_join_index old = *ix;
	uint32_t old_lines = old.line_mask + 1, segments = old.segments, lines = old_lines, live = 0;
	for (uint32_t c = 0; c < WEIR_JOIN_CODES; c++) {
		if ((ix->dead >> c & 1) != 0)
			ix->held[c] = 0;
		live += ix->held[c];
	}
	/* As many places become free as are taken, or more, so that the next sweep is that far away. */
	if (live > old.limit / 2) {
		*(lines < LINES_MAX ? &lines : &segments) *= 2;
	} else if (live < old.limit / 8) {
		if (segments > 1)
			segments /= 2;
		else if (lines > LINES_MIN)
			lines /= 2;
	}
	set_size(ix, bl, segments, lines);
	if (old_lines == LINES_MAX && lines == LINES_MAX) {
		if (segments < old.segments)
			unite(sl, old.segment, old.segments);
		else
			rewrite(sl, old.segment, old.segments);
	} else {
		ix->segment[0] = segment_take(bl, lines);
		rewrite_small(sl, old.segment[0], old_lines * WEIR_JOIN_LINE);
		segment_give(bl, old.segment[0], old_lines);
	}
	weir_blocks_give(bl, old.segment, old.segments * sizeof *old.segment);
	ix->used = live;
	ix->taken &= ~ix->dead;
	ix->dead = 0;
}

static uint32_t free_codes(const struct weir_join_index *ix, uint32_t side)
{
	return ~ix->taken & (side != 0 ? 0xaaaaaaa8u : 0x55555554u); /* without 0 and 1 */
}

uint8_t weir_join_index_begin(struct weir_slot *sl, int64_t start)
{
	struct weir_join_index *ix = sl->joined;
	uint32_t side = (uint32_t)(start & 1);
	if (ix == NULL) {
		ix = sl->joined = weir_blocks_take(&sl->blocks, sizeof *ix);
		memset(ix, 0, sizeof *ix);
		ix->deferred_high[0] = ix->deferred_high[1] = WEIR_TIME_UNSET;
		ix->lines = weir_join_lines_best();
		set_size(ix, &sl->blocks, 1, LINES_MIN);
		ix->segment[0] = segment_take(&sl->blocks, LINES_MIN);
	}
	if (free_codes(ix, side) == 0 && ix->dead != 0)
		weir_join_index_sweep(sl);
	if (free_codes(ix, side) == 0) {
		ix->uncoded++;
		return 0;
	}
	uint32_t code = (uint32_t)__builtin_ctz(free_codes(ix, side));
	ix->taken |= 1u << code;
	ix->held[code] = 0;
	ix->start[code] = (start >> 1) * (INT64_C(1) << sl->def->bucket_log2);
	if (weir_join_defers(sl->def, side))
		ix->deferring |= 1u << code;
	return (uint8_t)code;
}

void weir_join_index_end(struct weir_slot *sl, uint8_t code)
{
	struct weir_join_index *ix = sl->joined;
	if (code == 0) {
		ix->uncoded--;
	} else {
		ix->dead |= 1u << code;
		weir_join_deferred_free(sl, code);
	}
	if (ix->dead == ix->taken && ix->uncoded == 0)
		weir_join_index_free(sl); /* it was the last one */
}

void weir_join_index_free(struct weir_slot *sl)
{
	struct weir_join_index *ix = sl->joined;
	if (ix == NULL)
		return;
	weir_join_deferred_end(sl);
	for (uint32_t s = 0; s < ix->segments; s++)
		segment_give(&sl->blocks, ix->segment[s], ix->line_mask + 1);
	weir_blocks_give(&sl->blocks, ix->segment, ix->segments * sizeof *ix->segment);
	weir_blocks_give(&sl->blocks, ix, sizeof *ix);
	sl->joined = NULL;
}

uint64_t weir_join_index_bytes(const struct weir_slot *sl)
{
	const struct weir_join_index *ix = sl->joined;
	if (ix == NULL)
		return 0;
	return ix->segments * (uint64_t)segment_bytes(ix->line_mask + 1) +
	       ix->blocks * (uint64_t)sizeof(struct weir_join_block);
}

uint64_t *weir_join_index_find(const struct weir_slot *sl, uint32_t hash, uint32_t code, const uint8_t *key,
			       uint32_t key_bytes)
{
	const struct weir_join_index *ix = sl->joined;
	const uint64_t own = weir_join_place_value(hash, code, 0);
	uint64_t *line = weir_join_index_line(ix, hash);
	for (uint32_t step = 1;; step++) {
		struct weir_join_look lk = weir_join_line_look(line, own);
		for (uint32_t fits = lk.own; fits != 0; fits &= fits - 1) {
			uint64_t *at = &line[__builtin_ctz(fits)];
			if (weir_buffered_is(sl->def, weir_join_place_record(&sl->pages, *at), hash, key, key_bytes))
				return at;
		}
		if (lk.empty != 0)
			return NULL;
		line = weir_join_index_next(ix, hash, step);
	}
}

void weir_join_index_add(struct weir_slot *sl, uint32_t hash, uint64_t place)
{
	struct weir_join_index *ix = sl->joined;
	if (WEIR_UNLIKELY(ix->used >= ix->limit))
		weir_join_index_sweep(sl);
	*find_empty(ix, hash) = place;
	ix->held[weir_join_place_code(place)]++;
	ix->used++;
}
