/* state_rig.h: one stage's state under test: a definition, slots, rows going in by hand and rows coming out as text
 * lines "op key [start,end) aggregates @time". One thread. */
#ifndef WEIR_TESTS_STATE_RIG_H
#define WEIR_TESTS_STATE_RIG_H

#include "hotpath/core/mem.h"
#include "hotpath/state/state.h"

#define RIG_SLOTS 4
/* Argument columns of every rig. */
enum rig_col { RIG_BIGINT, RIG_DOUBLE, RIG_STRING, RIG_DECIMAL38, RIG_BOOLEAN, RIG_DECIMAL12, RIG_INT, RIG_COLS };

struct rig_row {
	int64_t key; /* printed as text key "k<key>", or as it is with bigint keys */
	int64_t ts;
	uint32_t slot;
	bool null;     /* every argument is NULL */
	int64_t value; /* RIG_BIGINT, RIG_INT, RIG_DECIMAL12; the others follow from it unless given */
	double real;
	const char *text;
	weir_i128 wide;
	bool flag;
};

struct rig {
	struct weir_state_def def;
	struct weir_type key_type;
	struct weir_agg aggs[16];
	struct weir_arena *ar;
	struct weir_slot *slots[RIG_SLOTS];
	uint32_t slot_count;
	struct weir_keyed keyed;
	struct weir_col cols[RIG_COLS];
	const struct weir_col *col_of[RIG_COLS];
	struct weir_col key_col;
	struct weir_scratch scratch;
	struct weir_rows rows;
	struct weir_applied applied;
	struct weir_buf out;
	uint64_t agg_errors;
	int64_t task_time;
	int64_t end_max;
	uint32_t count;
	bool bigint_key;
};

/* aggs: "COUNT(*) SUM:0 MIN:2 COUNT_DISTINCT:2 SUM:0:4" - name, argument column, filter column. */
void rig_init(struct rig *rg, const struct weir_state_def *def, const char *aggs, uint32_t slot_count);
void rig_fini(struct rig *rg);
void rig_create_slots(struct rig *rg);
void rig_destroy_slots(struct rig *rg);
struct weir_type rig_type(enum rig_col c);
void rig_add(struct rig *rg, const struct rig_row *r);
/* Applies what was added, as one fragment of a lone source partition; task time goes on. */
void rig_apply(struct rig *rg);
/* The same with a clock and running times given. run NULL: computed. */
void rig_apply_clock(struct rig *rg, const struct weir_clock *clock);
/* One row: add and apply. */
void rig_put(struct rig *rg, int64_t key, int64_t ts, int64_t value);
/* Takes everything closed at task time t out of every slot; appends lines. */
void rig_close(struct rig *rg, int64_t t, bool all);
/* Drains changes; every row counts as emitted. */
void rig_changes(struct rig *rg);
/* Appends the rows in rg->rows as lines. */
void rig_print(struct rig *rg);
/* Text gathered since the last call; the buffer starts again. Terminated. */
const char *rig_text(struct rig *rg);

#endif
