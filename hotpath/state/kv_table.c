/* kv_table.c: an unwindowed GROUP BY: one generation that never closes, every row counts. @thread worker. */
#include "hotpath/state/slot.h"

void weir_kv_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		   const uint16_t *rows, uint32_t count, struct weir_applied *out)
{
	struct weir_probe pr;
	for (uint32_t from = 0; from < count; from += WEIR_LANES) {
		uint32_t n = count - from < WEIR_LANES ? count - from : WEIR_LANES;
		for (uint32_t i = 0; i < n; i++) {
			uint16_t row = rows[from + i];
			struct weir_slot *sl = slots[in->slot[row]];
			weir_probe_set(&pr, i, in, row, weir_slot_only_gen(sl), ++sl->records);
		}
		pr.ln.count = n;
		weir_apply_lanes(def, &pr, in);
	}
	out->applied = count;
}
