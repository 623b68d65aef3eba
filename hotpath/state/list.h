/* list.h: an aggregate's values, one by one: what ARRAY_AGG makes an array of, and what MIN, MAX, FIRST_VALUE,
 * LAST_VALUE and COUNT(DISTINCT) over a table are computed from, where values come and go.
 *
 *   state    struct agg_list: its blob, bytes used of it, values
 *   blob     u32 bytes, value; ...   in order of arrival. A value: u8 1: NULL | or u8 0 and the value's bytes (words
 * and doubles 8, wide DECIMAL 16, little-endian; BOOLEAN 1; strings as they are)
 *
 * Beyond elements_max values, or WEIR_LIST_BYTES_MAX bytes, nothing is kept but their number: the result is NULL, and
 * counted as one that does not fit, until all have gone. @thread worker */
#ifndef WEIR_STATE_LIST_H
#define WEIR_STATE_LIST_H

#include "hotpath/state/agg_state.h"

#define WEIR_LIST_BYTES_MAX (4u << 20)

/* Adds value `row` of c, which may be NULL. */
void weir_list_add(const struct weir_agg *a, struct weir_gen *g, struct agg_list *s, const struct weir_col *c,
		   uint32_t row);
/* Takes the first equal one out. */
void weir_list_remove(const struct weir_agg *a, struct weir_gen *g, struct agg_list *s, const struct weir_col *c,
		      uint32_t row);
/* Adds what from (in pages of from_pages) has. */
void weir_list_merge(const struct weir_agg *a, struct weir_gen *g, struct agg_list *to,
		     const struct weir_pages *from_pages, const struct agg_list *from);
/* The result as row `row` of c; false if there were too many values. ARRAY_AGG: JSON in scratch. */
bool weir_list_final(const struct weir_agg *a, const struct agg_list *s, const struct weir_pages *pages,
		     struct weir_col *c, uint32_t row, struct weir_scratch *scratch);
bool weir_list_check(const struct agg_list *s, const uint8_t *payload, uint32_t capacity);

#endif
