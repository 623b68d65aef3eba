/* state_def.c: checks a state's definition, lays out its entries and writes its fingerprint. @thread init. */
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/over.h"
#include "hotpath/time/window.h"

/* Bounds on what one record, or one closing window, may cost. */
#define PANES_MAX     10000 /* panes of a window; above it windows are kept whole */
#define WINDOWS_MAX   10000 /* windows of a record */
#define AGG_BYTES_MAX 4096

static enum weir_err check_span(const char *name, int64_t ms, int64_t min, struct weir_diag **dg)
{
	if (ms < min || ms > WEIR_SPAN_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN, "%s must be between %lld and %lld ms, not %lld", name,
				     (long long)min, (long long)WEIR_SPAN_MAX, (long long)ms);
	return WEIR_OK;
}

static enum weir_err init_window(struct weir_state_def *def, struct weir_diag **dg)
{
	enum weir_err err = check_span("the window's size", def->size_ms, 1, dg);
	if (err == WEIR_OK)
		err = check_span("the window's advance", def->advance_ms, 1, dg);
	if (err == WEIR_OK && def->advance_ms > def->size_ms)
		err = weir_diag_set(dg, WEIR_E_PLAN, "the window's advance (%lld ms) is larger than its size (%lld ms)",
				    (long long)def->advance_ms, (long long)def->size_ms);
	if (err == WEIR_OK && (def->offset_ms > WEIR_SPAN_MAX || def->offset_ms < -WEIR_SPAN_MAX))
		err = weir_diag_set(dg, WEIR_E_PLAN, "the window's offset is out of range");
	if (err != WEIR_OK)
		return err;
	if (def->cumulative && def->size_ms % def->advance_ms != 0)
		return weir_diag_set(
			dg, WEIR_E_PLAN,
			"the largest size of cumulating windows (%lld ms) is no multiple of the step (%lld ms)",
			(long long)def->size_ms, (long long)def->advance_ms);
	def->cumulative = def->cumulative && def->advance_ms != def->size_ms;
	def->offset_ms = weir_window_offset(def->offset_ms, def->cumulative ? def->size_ms : def->advance_ms);
	def->pane_ms = def->cumulative ? def->advance_ms : def->size_ms;
	/* Panes do not straddle 0 either: below it other windows count. */
	if (def->advance_ms != def->size_ms && !def->cumulative)
		def->pane_ms = weir_gcd(weir_gcd(def->size_ms, def->advance_ms), def->offset_ms);
	if (def->changes || def->size_ms / def->pane_ms > PANES_MAX)
		def->pane_ms = def->size_ms;
	if (!weir_def_panes(def) && def->size_ms / def->advance_ms > WINDOWS_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "every record would fall into %lld windows; at most %d are allowed",
				     (long long)(def->size_ms / def->advance_ms), WINDOWS_MAX);
	return WEIR_OK;
}

/* A stream of records is kept while a timely one of the other side may come. Generations cover a power of two of an
 * eighth to a quarter of that: what is kept too long is bounded by it, and the index of a slot holds more of them than
 * live at once. Below a second there would be too many of them. */
static enum weir_err init_join(struct weir_state_def *def, struct weir_diag **dg)
{
	enum { LOG2_MIN = 10, LOG2_WAIT = 14, LOG2_MAX = 31 }; /* a record's place in one is a 32-bit number */
	def->buffers = (!def->sides[0].table && !def->sides[1].table) || def->versioned;
	WEIR_ASSERT(!def->versioned || (def->sides[1].table && !def->sides[0].table && !def->within));
	if (def->versioned) {
		def->bucket_log2 = LOG2_WAIT;
		return WEIR_OK;
	}
	if (def->buffers != def->within)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "state %s: a join of two streams, and no other, needs bounds in time", def->name);
	if (!def->within)
		return WEIR_OK;
	if (def->size_ms > 0) {
		WEIR_ASSERT(def->before_ms == 0 && def->after_ms == 0);
		def->bucket_log2 = LOG2_MIN;
		return init_window(def, dg);
	}
	if (def->before_ms < -WEIR_SPAN_MAX || def->before_ms > WEIR_SPAN_MAX || def->after_ms < -WEIR_SPAN_MAX ||
	    def->after_ms > WEIR_SPAN_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN, "the join's bounds are out of range");
	if (def->before_ms + def->after_ms < 0)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "the join's bounds leave no time: %lld ms before and %lld ms after",
				     (long long)def->before_ms, (long long)def->after_ms);
	def->bucket_log2 = LOG2_MIN;
	while (def->bucket_log2 < LOG2_MAX && INT64_C(1) << def->bucket_log2 <= weir_join_keep_ms(def) / 8)
		def->bucket_log2++;
	return WEIR_OK;
}

void weir_state_row_agg(struct weir_agg *out)
{
	/* Bytes in a blob, as a text's maximum has them. */
	*out = (struct weir_agg){.kind = WEIR_AGG_MAX,
				 .arg = -1,
				 .filter = -1,
				 .arg_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
				 .result_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
				 .text = "row"};
}

static bool has_table(const struct weir_state_def *def)
{
	for (uint32_t i = 0; i < def->side_count; i++)
		if (def->sides[i].table)
			return true;
	return false;
}

enum weir_err weir_state_def_init(struct weir_state_def *def, struct weir_diag **dg)
{
	enum weir_err err = check_span("the grace period", def->grace_ms, 0, dg);
	if (err == WEIR_OK && def->kind == WEIR_STATE_WINDOW)
		err = init_window(def, dg);
	if (err == WEIR_OK && def->kind == WEIR_STATE_SESSION)
		err = check_span("the session's gap", def->gap_ms, 1, dg);
	if (err == WEIR_OK && def->kind == WEIR_STATE_SLIDING)
		err = check_span("the length of sliding windows", def->size_ms, 0, dg);
	if (err == WEIR_OK && def->kind == WEIR_STATE_JOIN)
		err = init_join(def, dg);
	if (err == WEIR_OK && def->kind == WEIR_STATE_OVER)
		err = weir_over_def_init(def, dg);
	if (err != WEIR_OK)
		return err;
	/* Each record that moves a session's bounds would take back and repeat the row of every key in it. */
	if (def->shared && def->changes)
		return weir_diag_set(
			dg, WEIR_E_PLAN,
			"not supported yet: EMIT CHANGES of sessions that span keys; partition the sessions "
			"by all group columns, or leave EMIT CHANGES out");
	WEIR_ASSERT(!def->retracts || (def->kind == WEIR_STATE_TABLE && def->agg_count > 0 &&
				       def->aggs[def->agg_count - 1].kind == WEIR_AGG_COUNT_STAR));
	WEIR_ASSERT(!has_table(def) || def->versioned || (def->agg_count == 1 && weir_agg_has_blob(&def->aggs[0])));
	if (def->kind == WEIR_STATE_TABLE || def->kind == WEIR_STATE_ROWS)
		def->changes = true; /* a table is what its changes say */
	/* The aggregates are borrowed and their layout is ours to set: nobody else has seen them yet. */
	def->agg_bytes = weir_agg_layout((struct weir_agg *)(uintptr_t)def->aggs, def->agg_count);
	if (def->agg_bytes > AGG_BYTES_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "too many aggregates: %u bytes of state per key, at most %d are allowed",
				     def->agg_bytes, AGG_BYTES_MAX);
	def->has_blobs = false;
	for (uint32_t i = 0; i < def->agg_count; i++)
		def->has_blobs |= weir_agg_has_blob(&def->aggs[i]);
	def->stamped =
		def->kind == WEIR_STATE_TABLE || has_table(def) || (def->kind == WEIR_STATE_WINDOW && def->changes);
	def->head_bytes = sizeof(struct weir_entry);
	if (def->kind == WEIR_STATE_SESSION || def->kind == WEIR_STATE_SLIDING)
		def->head_bytes = sizeof(struct weir_session);
	else if (def->buffers)
		def->head_bytes = sizeof(struct weir_buffered);
	else if (def->foreign != 0)
		def->head_bytes = sizeof(struct weir_linked);
	else if (def->stamped)
		def->head_bytes = sizeof(struct weir_stamped);
	return WEIR_OK;
}

const char *weir_agg_kind_name(enum weir_agg_kind kind)
{
	static const char *const aggs[] = {"COUNT_STAR",  "COUNT",   "COUNT_DISTINCT", "SUM",        "MIN",
					   "MAX",         "AVG",     "FIRST_VALUE",    "LAST_VALUE", "STDDEV_POP",
					   "STDDEV_SAMP", "VAR_POP", "VAR_SAMP",       "ARRAY_AGG"};
	return aggs[kind];
}

void weir_state_def_fingerprint(const struct weir_state_def *def, struct weir_buf *out)
{
	static const char *const kinds[] = {"window", "session", "table", "rows", "join", "over", "sliding"};
	char text[256];
	weir_buf_printf(out, "%s %s", def->name, kinds[def->kind]);
	if (def->kind == WEIR_STATE_WINDOW)
		weir_buf_printf(out, " size=%lld advance=%lld offset=%lld pane=%lld", (long long)def->size_ms,
				(long long)def->advance_ms, (long long)def->offset_ms, (long long)def->pane_ms);
	if (def->cumulative)
		weir_buf_puts(out, " cumulative");
	if (def->kind == WEIR_STATE_SESSION)
		weir_buf_printf(out, " gap=%lld", (long long)def->gap_ms);
	if (def->kind == WEIR_STATE_SLIDING)
		weir_buf_printf(out, " size=%lld", (long long)def->size_ms);
	if (def->shared)
		weir_buf_printf(out, " shared=%u", def->shared_keys);
	if (def->retracts)
		weir_buf_puts(out, " retracts");
	weir_buf_printf(out, "%s keys(", def->stamped ? " stamped" : "");
	for (uint32_t i = 0; i < def->key_count; i++)
		weir_buf_printf(out, "%s%s%s%s", i != 0 ? ", " : "", def->key_texts != NULL ? def->key_texts[i] : "",
				def->key_texts != NULL ? " " : "",
				weir_type_text(&def->key_types[i], text, sizeof text));
	weir_buf_puts(out, ") aggregates(");
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		weir_buf_printf(out, "%s%s", i != 0 ? ", " : "", weir_agg_kind_name(a->kind));
		if (a->kind != WEIR_AGG_COUNT_STAR)
			weir_buf_printf(out, " %s", weir_type_text(&a->arg_type, text, sizeof text));
		if (def->agg_texts != NULL && def->agg_texts[i] != NULL)
			weir_buf_printf(out, " %s", def->agg_texts[i]);
		if (a->filter >= 0)
			weir_buf_printf(out, " where %s",
					def->filter_texts != NULL ? def->filter_texts[i] : "filtered");
	}
	weir_buf_puts(out, ")");
	if (def->foreign != 0)
		weir_buf_printf(out, " foreign=%u", def->foreign);
	if (def->numbered)
		weir_buf_puts(out, " numbered");
	if (def->versioned)
		weir_buf_puts(out, " versioned");
	if (def->over != NULL) {
		weir_buf_printf(out, " bucket=2^%u functions(", def->bucket_log2);
		weir_over_def_print(def->over, out);
		weir_buf_puts(out, ")");
	}
	if (weir_join_in_windows(def))
		weir_buf_printf(out, " size=%lld advance=%lld offset=%lld", (long long)def->size_ms,
				(long long)def->advance_ms, (long long)def->offset_ms);
	else if (def->within)
		weir_buf_printf(out, " before=%lld after=%lld bucket=2^%u", (long long)def->before_ms,
				(long long)def->after_ms, def->bucket_log2);
	for (uint32_t s = 0; s < def->side_count; s++) {
		const struct weir_state_side *sd = &def->sides[s];
		weir_buf_printf(out, " %s%s(", sd->outer ? "outer " : "", sd->table ? "table" : "stream");
		for (uint32_t i = 0; i < sd->col_count; i++)
			weir_buf_printf(out, "%s%s%s%s", i != 0 ? ", " : "", sd->texts != NULL ? sd->texts[i] : "",
					sd->texts != NULL ? " " : "", weir_type_text(&sd->types[i], text, sizeof text));
		weir_buf_puts(out, ")");
	}
}
