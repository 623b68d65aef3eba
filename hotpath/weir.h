/* weir.h: build a topology: sources, filters, windows, aggregates, sinks. Public, installed as <weir/weir.h>.
 *
 * The builder is sticky: no call needs a NULL check. A call on a broken topology does nothing; the first error comes
 * out of weir_topology_check or weir_engine_create. Where a topology, stream, table or split is NULL, a call returns
 * NULL, or WEIR_E_PLAN, and the topology of its other stream or table is broken. A text that is NULL is missing: an
 * error where the call does not say otherwise. Expressions are SQL text, compiled once. Option strings use the names of
 * SQL's WITH: "topic=order.placed format=json key.format=raw key.fields=merchant_id"; values with spaces stand in
 * '...'. Names and texts are copied. One thread builds; @thread init for everything here.
 *
 * Streams and tables belong to their topology and live until weir_topology_destroy. */
#ifndef WEIR_H
#define WEIR_H

#include "weir/weir_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_topology;
struct weir_stream;
struct weir_table;
struct weir_split;
struct weir_batch;

enum weir_join_kind { WEIR_JOIN_INNER, WEIR_JOIN_LEFT, WEIR_JOIN_RIGHT, WEIR_JOIN_FULL };
enum weir_emit { WEIR_EMIT_FINAL, WEIR_EMIT_CHANGES };
enum weir_describe { WEIR_DESCRIBE_TEXT, WEIR_DESCRIBE_DOT, WEIR_DESCRIBE_JSON };

/* An empty topology; NULL only when there is no memory. */
WEIR_API struct weir_topology *weir_topology_create(void);
/* Frees it with all its streams. NULL is fine. Not after it was given to weir_engine_create. */
WEIR_API void weir_topology_destroy(struct weir_topology *tp);
/* Reports the first error of any call so far, or what keeps the whole from being planned (no sink, ...). */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_topology_check(struct weir_topology *tp, struct weir_diag **out);
/* The topology as text (Kafka Streams' form), DOT or JSON; of a broken one the error. Give back with weir_free. NULL
 * only when there is no memory. States that nobody named (of a table that is read, of a second reader) are made by
 * planning: weir_engine_explain shows them, too. */
WEIR_API char *weir_topology_describe(const struct weir_topology *tp, enum weir_describe form);

/* A stream of records: columns as in CREATE TABLE ("order_id STRING, amount DECIMAL(12,2), ts BIGINT"). */
WEIR_API struct weir_stream *weir_source(struct weir_topology *tp, const char *name, const char *columns,
					 const char *options);
/* Takes event time from `column` (TIMESTAMP, TIMESTAMP_LTZ, or BIGINT in ms); records may be grace_ms (>= 0) late. */
WEIR_API struct weir_stream *weir_event_time(struct weir_stream *st, const char *column, int64_t grace_ms);
/* Keeps records where expr is TRUE. */
WEIR_API struct weir_stream *weir_filter(struct weir_stream *st, const char *expr);
/* New columns: "merchant_id, amount * 2 AS twice". Event time is kept. */
WEIR_API struct weir_stream *weir_select(struct weir_stream *st, const char *exprs);
/* Groups by columns ("a, b"). A record whose key columns are all NULL is rejected by aggregates (reason null_key), as
 * by Kafka Streams; in a join it has no match, and stays where its side is kept. */
WEIR_API struct weir_stream *weir_key_by(struct weir_stream *st, const char *columns);
/* Records of both, columns of equal types and names of a. */
WEIR_API struct weir_stream *weir_merge(struct weir_stream *a, struct weir_stream *b);
/* ---- more operators without state ----
 * None of them moves a record. What decides whether a later aggregate or join needs its rows re-keyed is whether its
 * key columns are still the source's own (key.fields), unchanged: filters, branches, peeks and added columns leave them
 * so; weir_select does where it passes them on by name. weir_engine_explain shows which exchange each stage has and
 * why. */

/* Keeps records where expr is not TRUE: FALSE or NULL. */
WEIR_API struct weir_stream *weir_filter_not(struct weir_stream *st, const char *expr);
/* New columns behind those of weir_key_by, which stay as they are: "amount * 2 AS twice". Never needs a new exchange.
 */
WEIR_API struct weir_stream *weir_map_values(struct weir_stream *st, const char *exprs);
/* Groups by expressions: "UPPER(city) AS city_key" adds that column and is the key, a bare column is it as it stands.
 */
WEIR_API struct weir_stream *weir_select_key(struct weir_stream *st, const char *exprs);
/* As weir_key_by, and the next aggregate or join takes these rows through an exchange even if the source's own key
 * would do: for a topic whose records are not where its key says. */
WEIR_API struct weir_stream *weir_repartition(struct weir_stream *st, const char *columns);
/* Splits a stream: a record goes to the first branch whose expr is TRUE, in the order of the calls, and to the rest if
 * there is none. */
WEIR_API struct weir_split *weir_split(struct weir_stream *st);
/* The records for which expr is TRUE and that no earlier branch of sp has taken. */
WEIR_API struct weir_stream *weir_branch(struct weir_split *sp, const char *expr);
/* The records that no branch has taken, and no further branch takes: the last call on sp. */
WEIR_API struct weir_stream *weir_branch_rest(struct weir_split *sp);
/* Writes the stream's rows to where weir_engine_set_output says. */
WEIR_API enum weir_err weir_print(struct weir_stream *st, const char *name);

/* ---- functions of yours, over batches ----
 * A function gets the rows of a batch that are still in, column by column, and writes its results for the same rows. It
 * is called with in-columns ("amount, ts": any expressions) and result columns ("bonus DECIMAL(12,2), vip BOOLEAN").
 *
 *   static void bonus(struct weir_batch *b, void *ctx)
 *   {
 *           const int64_t *amount = weir_batch_integers(b, 0);
 *           int64_t *bonus = weir_batch_put_integers(b, 0);
 *           const uint16_t *row = weir_batch_rows(b);
 *           for (uint32_t i = 0; i < weir_batch_count(b); i++)
 *                   bonus[row[i]] = weir_batch_is_null(b, 0, row[i]) ? 0 : amount[row[i]] / 10;
 *   }
 *   orders = weir_map_batch(orders, "bonus", "amount", "bonus DECIMAL(12,2)", bonus, NULL, NULL);
 *
 * Threads: it runs on the engine's threads (workers; for the results of closed windows the snapshotter), on several at
 * once for different batches: what ctx points at must be constant or the function's to guard. Never wait in it.
 * Ownership: b, its columns and strings are the engine's, valid until the function returns; strings that are put are
 * copied. ctx must live until the topology is destroyed, when `destroy` (NULL: nothing) is called with it; where the
 * stream is NULL, at once.
 * Exactness: results must depend on the row's own in-columns alone: not on a clock, on random numbers, on earlier calls
 * or on which rows share a batch. After a crash, and where several branches read a stream, the same rows are computed
 * again; replay, equal results on any number of workers and exactly-once hold because the same comes out. `name`
 * identifies the function in explain and in the fingerprint of states behind it: give it a new one when what it
 * computes changes. */

/* How many rows, at least 1. */
WEIR_API uint32_t weir_batch_count(const struct weir_batch *b);
/* Their numbers, ascending, all below 1024: the index into every column. Other elements of a column mean nothing. */
WEIR_API const uint16_t *weir_batch_rows(const struct weir_batch *b);
/* In-columns by type and number; NULL where the column is of another type. Elements of NULLs are unspecified. Here:
 * BOOLEAN, 0 or 1. */
WEIR_API const uint8_t *weir_batch_booleans(const struct weir_batch *b, uint32_t column);
/* TINYINT to BIGINT, DATE (days), TIME (ms), TIMESTAMP and TIMESTAMP_LTZ (units of their precision: ms for up to 3
 * digits, else us), and DECIMAL of up to 18 digits, unscaled: 12.30 is 1230. */
WEIR_API const int64_t *weir_batch_integers(const struct weir_batch *b, uint32_t column);
/* FLOAT and DOUBLE. */
WEIR_API const double *weir_batch_doubles(const struct weir_batch *b, uint32_t column);
/* CHAR, VARCHAR, STRING, BYTES; ARRAY, MAP and ROW as JSON. data NULL: the value is NULL, or the type another one. */
WEIR_API struct weir_slice weir_batch_string(const struct weir_batch *b, uint32_t column, uint32_t row);
/* 1 where the in-column is NULL. */
WEIR_API int weir_batch_is_null(const struct weir_batch *b, uint32_t column, uint32_t row);
/* Result columns by type and number, to be written at the numbers of weir_batch_rows; NULL where the result is of
 * another type. What is not written is 0, FALSE or ''. A value that its type cannot hold refuses the record. Here:
 * BOOLEAN. */
WEIR_API uint8_t *weir_batch_put_booleans(struct weir_batch *b, uint32_t result);
/* The types of weir_batch_integers, in the same units. */
WEIR_API int64_t *weir_batch_put_integers(struct weir_batch *b, uint32_t result);
/* FLOAT and DOUBLE. */
WEIR_API double *weir_batch_put_doubles(struct weir_batch *b, uint32_t result);
/* A string or BYTES; data is copied. */
WEIR_API void weir_batch_put_string(struct weir_batch *b, uint32_t result, uint32_t row, const void *data,
				    size_t bytes);
/* NULL, of a result of any type. */
WEIR_API void weir_batch_put_null(struct weir_batch *b, uint32_t result, uint32_t row);
/* Refuses a record: it is counted as rejected (reason expr) and goes the way of errors.policy. `why` must live as long
 * as the topology. */
WEIR_API void weir_batch_refuse(struct weir_batch *b, uint32_t row, const char *why);

/* The stream's columns and behind them the results (NULL for "of_columns": no in-columns). */
WEIR_API struct weir_stream *weir_map_batch(struct weir_stream *st, const char *name, const char *of_columns,
					    const char *results, void (*run)(struct weir_batch *b, void *ctx),
					    void *ctx, void (*destroy)(void *ctx));
/* The stream's columns and behind them the results, once for each row of results that run emits for a record
 * (weir_batch_emit), in that order; a record for which it emits none is gone. Records of a source's partition keep
 * their order, behind a state those with equal keys (weir_key_by's first column; without a key the stream's first
 * column). `name` is also that of a stage, which holds rows no longer than to the next order point: a job of such
 * stages alone has no changelog. Of a stream, not of a table. */
WEIR_API struct weir_stream *weir_flat_map_batch(struct weir_stream *st, const char *name, const char *of_columns,
						 const char *results, void (*run)(struct weir_batch *b, void *ctx),
						 void *ctx, void (*destroy)(void *ctx));
/* In a function of weir_flat_map_batch: one more row of results for `row` of the batch, 0, FALSE and '' so far. Returns
 * the number that results are put at, instead of row: valid until the next emit. Rows in the batch's order. */
WEIR_API uint32_t weir_batch_emit(struct weir_batch *b, uint32_t row);
/* Keeps the rows for which run puts TRUE into result 0, a BOOLEAN. */
WEIR_API struct weir_stream *weir_filter_batch(struct weir_stream *st, const char *name, const char *of_columns,
					       void (*run)(struct weir_batch *b, void *ctx), void *ctx,
					       void (*destroy)(void *ctx));
/* Shows the rows that pass here to run, which puts nothing: once for each branch that reads the stream, and again after
 * a crash what had not been committed. */
WEIR_API struct weir_stream *weir_peek(struct weir_stream *st, const char *name, const char *of_columns,
				       void (*run)(struct weir_batch *b, void *ctx), void *ctx,
				       void (*destroy)(void *ctx));
/* The same as the end of a stream. */
WEIR_API enum weir_err weir_foreach(struct weir_stream *st, const char *name, const char *of_columns,
				    void (*run)(struct weir_batch *b, void *ctx), void *ctx,
				    void (*destroy)(void *ctx));

/* ---- windows, emission, aggregates ---- */

/* Tumbling windows of size_ms > 0. */
WEIR_API struct weir_stream *weir_tumble(struct weir_stream *st, int64_t size_ms);
/* Hopping windows of size_ms every advance_ms, 0 < advance_ms <= size_ms. */
WEIR_API struct weir_stream *weir_hop(struct weir_stream *st, int64_t size_ms, int64_t advance_ms);
/* Cumulating windows: every size_ms they begin anew, and one ends at each step_ms: of a day by the hour, the first
 * hour, the first two, and so on. size_ms is a multiple of step_ms > 0. */
WEIR_API struct weir_stream *weir_cumulate(struct weir_stream *st, int64_t size_ms, int64_t step_ms);
/* Sessions: records of a key at most gap_ms apart. */
WEIR_API struct weir_stream *weir_session(struct weir_stream *st, int64_t gap_ms);
/* Sliding windows, as Kafka Streams has them: of a length, with both ends in the window, and only those that differ in
 * what they hold: of a record at t there are [t - length_ms, t] and, if a later one of its key falls into it,
 * [t + 1, t + 1 + length_ms]; no window starts below 0. One closes when task time has passed its end by more than the
 * grace. Every record is folded into about two windows for each record of its key within the length: for long ones of
 * busy keys weir_hop costs less. A record later than its own window enters those that are there and hold it. */
WEIR_API struct weir_stream *weir_sliding(struct weir_stream *st, int64_t length_ms);
/* How the next aggregate emits; windows default to FINAL, plain aggregates are always CHANGES. */
WEIR_API struct weir_stream *weir_emit(struct weir_stream *st, enum weir_emit mode);
/* Aggregates the keyed, perhaps windowed stream: "window_start, merchant_id, COUNT(*) AS orders, SUM(amount) AS
 * revenue". state_name is the contract: it names the changelog, and renaming it starts from nothing. */
WEIR_API struct weir_stream *weir_aggregate(struct weir_stream *st, const char *state_name, const char *exprs);
/* New columns for each record, among them functions over the records of its key so far, by event time: "price,
 * LAG(price) OVER () AS old_price, COUNT(*) OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS lately". There are LAG(x [, n
 * [, default]]), ROW_NUMBER, COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE and LAST_VALUE; a frame is ROWS n PRECEDING, RANGE
 * INTERVAL .. PRECEDING or all records so far; PARTITION BY (the columns of weir_key_by) and ORDER BY (event time) may
 * be left out. A record leaves when task time has passed it by its grace, in order of time; one that comes later than
 * that is late. */
WEIR_API struct weir_stream *weir_over(struct weir_stream *st, const char *state_name, const char *exprs);
/* One record for each element of `array`, an expression of type ARRAY, with the element as a new column `name` behind
 * the others. keep: a record without elements stays, the column NULL. */
WEIR_API struct weir_stream *weir_unnest(struct weir_stream *st, const char *state_name, const char *array,
					 const char *name, int keep);
/* ---- joins ----
 * Of a join's columns, `l.name` is one of the left input and `r.name` one of the right (or the table); a name that only
 * one of them has needs no letter. */

/* A table: the latest row of each key of a topic; a record without a value deletes its key. primary_key: its columns
 * ("a, b"), which are read from the record's key. */
WEIR_API struct weir_table *weir_table(struct weir_topology *tp, const char *name, const char *columns,
				       const char *primary_key, const char *options);
/* A table that is whole before the first record of a stream is read, and whose later changes count as soon as they are
 * read (Kafka Streams' GlobalKTable): for weir_join_table, by any expression, and holding no time back. */
WEIR_API struct weir_table *weir_table_global(struct weir_topology *tp, const char *name, const char *columns,
					      const char *primary_key, const char *options);
/* As weir_event_time: a row takes its time from `column`, a delete from its record. */
WEIR_API struct weir_table *weir_table_event_time(struct weir_table *tb, const char *column, int64_t grace_ms);
/* A keyed stream's aggregate without a window as a table to join with. Its key are the columns of weir_key_by. */
WEIR_API struct weir_table *weir_to_table(struct weir_stream *st);
/* The latest record of each key of weir_key_by, by event time, as a table of that key; of equal times the later
 * arrival. weir_join_table_as_of knows its history where st is a source, with no weir_filter behind it. */
WEIR_API struct weir_table *weir_latest(struct weir_stream *st, const char *state_name);
/* What changes in a table, for weir_filter, weir_select and weir_sink: a sink with the table's key gets its rows, and a
 * null value where one is deleted or stops passing the filter. */
WEIR_API struct weir_stream *weir_to_stream(struct weir_table *tb);
/* Records of l and r with equal keys (weir_key_by, of equal types in order) whose event times have
 * l - before_ms <= r <= l + after_ms. The result's event time is the later one of the two; a record of a side that is
 * kept (LEFT: l, RIGHT: r, FULL: both) and has no match stands alone as soon as none can come any more. */
WEIR_API struct weir_stream *weir_join_within(struct weir_stream *l, struct weir_stream *r, const char *state_name,
					      enum weir_join_kind kind, int64_t before_ms, int64_t after_ms);
/* Records of l and r with equal keys in equal windows (weir_key_by, then weir_tumble or weir_hop, the same for both):
 * a window's pairs, and the records of a kept side without one, leave when it closes, at its last millisecond. Beside
 * the columns of l and r stand window_start, window_end and window_time of each (l.window_start, ...). */
WEIR_API struct weir_stream *weir_join_windows(struct weir_stream *l, struct weir_stream *r, const char *state_name,
					       enum weir_join_kind kind);
/* Each record of st with the row of tb as it stands at the record's turn by event time: `on` are expressions over st
 * ("product_id"), one for each column of the table's key. INNER, or LEFT to keep records without a row. */
WEIR_API struct weir_stream *weir_join_table(struct weir_stream *st, struct weir_table *tb, const char *state_name,
					     const char *on, enum weir_join_kind kind);
/* The same with the table's row as of the record's event time: the record waits until the table's own time (weir_table
 * with weir_table_event_time) has passed it by more than the larger grace of the two, and rows of the table that come
 * late are put in their place. Of a table of a topic, or of weir_latest of one; one made otherwise is taken as it
 * stands. */
WEIR_API struct weir_stream *weir_join_table_as_of(struct weir_stream *st, struct weir_table *tb,
						   const char *state_name, const char *on, enum weir_join_kind kind);
/* Rows of two tables with equal keys (column by column of their keys), as a table of that key: inner, or keeping the
 * rows of l, r or both. Every change of either side is one of the result. */
WEIR_API struct weir_table *weir_join_tables(struct weir_table *l, struct weir_table *r, const char *state_name,
					     enum weir_join_kind kind);
/* Rows of l with the row of r that they refer to: `on` are expressions over l ("customer_id"), one for each column of
 * r's key. INNER, or LEFT to keep rows of l that refer to none (a NULL refers to none). A table by l's key: a row of r
 * that changes or goes changes every row that refers to it, a row of l may refer to another one at any time. */
WEIR_API struct weir_table *weir_join_tables_by(struct weir_table *l, struct weir_table *r, const char *state_name,
						const char *on, enum weir_join_kind kind);
/* Writes the stream to a topic; columns by name of its own. Rows that change need a key (key.fields), or a format that
 * says what happens to each: changelog-json, debezium-json. Several may write one topic, if alike; none one that the
 * job reads. */
WEIR_API enum weir_err weir_sink(struct weir_stream *st, const char *name, const char *options);

#ifdef __cplusplus
}
#endif
#endif
