/* rig.c: the main job on workers fed from memory (rig.h) */
#include "bench/pipelines/rig.h"

#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>
#include <weir/weir_sql.h>

enum { RIG_POINT_BATCHES = 64 /* 65,536 records, as the engine's order points */ };

static const char job_text[] =
	"CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency "
	"STRING,\n"
	"  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' "
	"SECOND)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');\n"
	"CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING,\n"
	"  revenue DECIMAL(38,2), orders BIGINT) WITH (${sink});\n"
	"INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders\n"
	"FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))\n"
	"GROUP BY window_start, window_end, merchant_id;\n";

struct weir_topology *weir_rig_topology(const char *in, const char *out, struct weir_diag **dg)
{
	struct weir_buf sink = {0};
	if (out)
		weir_buf_printf(
			&sink,
			"'connector' = 'recorded', 'path' = '%s', 'topic' = 'revenue.by-merchant', 'format' = 'json', "
			"'key.format' = 'raw', 'key.fields' = 'merchant_id'",
			out);
	else
		weir_buf_puts(&sink, "'connector' = 'blackhole'");
	weir_buf_put_byte(&sink, 0);
	const struct weir_sql_variable variables[] = {{"in", in}, {"sink", (const char *)sink.data}};
	struct weir_topology *tp = NULL;
	char *text = NULL;
	size_t bytes = 0;
	if (weir_sql_expand("job", job_text, sizeof job_text - 1, variables, WEIR_COUNT_OF(variables), &text, &bytes,
			    dg) == WEIR_OK) {
		if (weir_sql_compile(&tp, NULL, "job", text, bytes, dg) != WEIR_OK)
			tp = NULL;
		weir_free(text);
	}
	weir_buf_fini(&sink);
	return tp;
}

static enum weir_err plan(struct weir_rig *rig, const char *in, struct weir_diag **dg)
{
	struct weir_core *co = &rig->core;
	struct weir_topology *tp = weir_rig_topology(in, NULL, dg);
	if (!tp)
		return *dg ? weir_diag_code(*dg) : WEIR_E_PLAN;
	enum weir_err err = weir_core_plan(co, tp, weir_conf_create(), dg);
	if (err != WEIR_OK)
		return err;
	bool live;
	co->streams = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->streams);
	err = weir_source_open(&co->streams[0], co, 0, &live, dg);
	if (err != WEIR_OK)
		return err;
	uint32_t partitions = co->streams[0]->ops->partitions(co->streams[0]);
	co->plan->scans[0].value_format.record_bytes_max = (uint32_t)co->settings.record_bytes_max;
	co->plan->scans[0].value_format.depth_max = co->settings.json_depth_max;
	return weir_plan_bind(co->plan, &partitions, co->settings.slots, dg);
}

static enum weir_err workers_create(struct weir_rig *rig, uint32_t workers, struct weir_diag **dg)
{
	struct weir_core *co = &rig->core;
	co->outputs = weir_xcalloc(1, sizeof *co->outputs);
	co->outputs[0].kind = WEIR_OUTPUT_BLACKHOLE;
	co->outputs[0].partitions = 1;
	co->policies = weir_xcalloc(1, sizeof *co->policies);
	co->policies[0] = (struct weir_scan_policy){WEIR_ERRORS_SKIP, -1, -1};
	co->worker_count = workers;
	co->workers = weir_xcalloc(workers, sizeof *co->workers);
	co->begun = true; /* weir_core_fini takes what is made here */
	weir_routes_init(&co->routes, co->plan->stages[0].slot_count, workers);
	for (uint32_t i = 0; i < workers; i++) {
		struct weir_worker_conf wc = {.plan = co->plan,
					      .id = i,
					      .count = workers,
					      .routes = &co->routes,
					      .outputs = co->outputs,
					      .policies = co->policies,
					      .emit_coalesce = true,
					      .future_max_ms = co->settings.time_future_max_ms,
					      .input_capacity = 32,
					      .fragments = 8,
					      .bundles = 8,
					      .bundle_bytes_max = 16 << 20};
		enum weir_err err = weir_worker_create(&co->workers[i], &wc, dg);
		if (err != WEIR_OK)
			return err;
	}
	for (uint32_t i = 0; i < workers; i++)
		co->workers[i]->peers = co->workers;
	rig->w = co->workers[0];
	return WEIR_OK;
}

/* The next WEIR_BATCH_ROWS records of partition p; *u and *at: the unit in hand. Units are kept: records lie in them.
 */
static enum weir_err fill(struct weir_rig *rig, uint32_t p, struct weir_unit **u, uint32_t *at,
			  struct weir_record *records, struct weir_diag **dg)
{
	struct weir_stream_log *sl = rig->core.streams[0];
	for (uint32_t count = 0; count < WEIR_BATCH_ROWS;) {
		int64_t first_ts;
		if (!*u || *at == (*u)->count) {
			if (sl->ops->peek(sl, p, &first_ts, dg) != WEIR_POLL_UNIT)
				return *dg ? weir_diag_code(*dg)
					   : weir_diag_set(dg, WEIR_E_CONF,
							   "the topic is too short for this many batches");
			enum weir_err err = sl->ops->take(sl, p, u, dg);
			if (err != WEIR_OK)
				return err;
			rig->units = weir_xrealloc(rig->units, (rig->unit_count + 1) * sizeof(struct weir_unit *));
			rig->units[rig->unit_count++] = *u;
			*at = 0;
		}
		uint32_t n = (*u)->count - *at < WEIR_BATCH_ROWS - count ? (*u)->count - *at : WEIR_BATCH_ROWS - count;
		memcpy(records + count, (*u)->records + *at, n * sizeof *records);
		*at += n;
		count += n;
	}
	return WEIR_OK;
}

/* Batches of the partitions in turn. */
static enum weir_err load(struct weir_rig *rig, struct weir_diag **dg)
{
	struct weir_stream_log *sl = rig->core.streams[0];
	uint32_t partitions = sl->ops->partitions(sl);
	struct weir_unit **unit = weir_xcalloc(partitions, sizeof *unit);
	uint32_t *at = weir_xcalloc(partitions, sizeof *at);
	enum weir_err err = WEIR_OK;
	rig->inputs = weir_xcalloc(rig->batch_count, sizeof *rig->inputs);
	for (uint32_t b = 0; b < rig->batch_count && err == WEIR_OK; b++) {
		uint32_t p = b % partitions;
		struct weir_record *records = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *records);
		rig->inputs[b] = (struct weir_input){.kind = WEIR_INPUT_RECORDS,
						     .partition = p,
						     .part = p,
						     .count = WEIR_BATCH_ROWS,
						     .records = records,
						     .topic = "order.placed",
						     .topic_partition = p,
						     .advance_to = WEIR_TIME_UNSET};
		err = fill(rig, p, &unit[p], &at[p], records, dg);
	}
	free(unit);
	free(at);
	return err;
}

static enum weir_err halves(struct weir_rig *rig, struct weir_diag **dg)
{
	const struct weir_plan *pl = rig->core.plan;
	const struct weir_plan_scan *sc = &pl->scans[0];
	struct weir_fragment_conf fc = {pl, 1, &rig->core.routes};
	rig->fragments = weir_xcalloc(rig->batch_count, sizeof *rig->fragments);
	for (uint32_t b = 0; b < rig->batch_count; b++) {
		enum weir_err err = weir_fragment_create_scan(&rig->fragments[b], &fc, 0, dg);
		if (err != WEIR_OK)
			return err;
		struct weir_fragment *fr = rig->fragments[b];
		fr->input = &rig->inputs[b];
		fr->part = rig->inputs[b].part;
		rig->errors.count = 0;
		weir_fragment_decode(fr, pl);
		weir_fragment_run(fr, &fc, 0, &rig->errors);
		WEIR_ASSERT(fr->errors.count == 0 && rig->errors.count == 0);
	}
	rig->cols = weir_xcalloc(sc->column_count, sizeof *rig->cols);
	for (uint32_t c = 0; c < sc->column_count; c++)
		weir_col_init(&rig->cols[c], weir_type_phys(&sc->column_types[c]));
	weir_scratch_init(&rig->scratch);
	return weir_decoder_create(&rig->decoder, &sc->value_format, sc->value_fields, sc->value_count, sc->all_fields,
				   sc->all_count, false, dg);
}

enum weir_err weir_rig_create(struct weir_rig **out, const char *in, uint32_t batch_count, uint32_t workers,
			      struct weir_diag **dg)
{
	struct weir_rig *rig = aligned_alloc(WEIR_CACHE_LINE, weir_align_up(sizeof *rig, WEIR_CACHE_LINE));
	if (!rig)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory");
	memset(rig, 0, sizeof *rig);
	rig->batch_count = batch_count;
	enum weir_err err = plan(rig, in, dg);
	if (err == WEIR_OK)
		err = workers_create(rig, workers, dg);
	if (err == WEIR_OK)
		err = load(rig, dg);
	if (err == WEIR_OK && workers == 1)
		err = halves(rig, dg);
	if (err != WEIR_OK) {
		weir_rig_destroy(rig);
		return err;
	}
	uint32_t batches = (batch_count + RIG_POINT_BATCHES - 1) / RIG_POINT_BATCHES * RIG_POINT_BATCHES;
	weir_rig_run(rig, batches);
	if (rig->applied != (uint64_t)batches * WEIR_BATCH_ROWS) {
		weir_rig_destroy(rig);
		return weir_diag_set(dg, WEIR_E_CONF,
				     "some of the recorded orders were refused: figures would mean nothing");
	}
	*out = rig;
	return WEIR_OK;
}

void weir_rig_destroy(struct weir_rig *rig)
{
	if (!rig)
		return;
	for (uint32_t b = 0; rig->fragments && b < rig->batch_count; b++)
		weir_fragment_destroy(rig->fragments[b]);
	free(rig->fragments);
	for (uint32_t b = 0; rig->inputs && b < rig->batch_count; b++)
		free((void *)(uintptr_t)rig->inputs[b].records);
	free(rig->inputs);
	for (uint32_t i = 0; i < rig->unit_count; i++)
		rig->core.streams[0]->ops->release(rig->core.streams[0], rig->units[i]);
	free(rig->units);
	if (rig->decoder)
		rig->decoder->destroy(rig->decoder);
	for (uint32_t c = 0; rig->cols && c < rig->core.plan->scans[0].column_count; c++)
		weir_col_fini(&rig->cols[c]);
	free(rig->cols);
	if (rig->scratch.first)
		weir_scratch_fini(&rig->scratch);
	weir_core_fini(&rig->core);
	free(rig);
}

static void step_all(struct weir_rig *rig)
{
	for (uint32_t i = 0; i < rig->core.worker_count; i++)
		weir_worker_step(rig->core.workers[i]);
}

static void push(struct weir_worker *w, struct weir_input *in)
{
	bool pushed = weir_ring_push(&w->input, in);
	WEIR_ASSERT(pushed);
	weir_ring_publish(&w->input);
}

static void push_records(struct weir_rig *rig, struct weir_input *in)
{
	in->seq = rig->seq++;
	struct weir_worker *w = rig->core.workers[in->seq % rig->core.worker_count];
	push(w, in);
	while (!weir_ring_pop(&w->input_back))
		step_all(rig);
}

/* An order point; bundles go straight back, as from a snapshotter that has nothing to write. */
static void point(struct weir_rig *rig)
{
	enum { WORKERS_MAX = 16 };
	struct weir_input in[WORKERS_MAX];
	uint32_t count = rig->core.worker_count;
	uint64_t seq = rig->seq++;
	WEIR_ASSERT(count <= WORKERS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		in[i] = (struct weir_input){.kind = WEIR_INPUT_POINT, .seq = seq, .advance_to = WEIR_TIME_UNSET};
		push(rig->core.workers[i], &in[i]);
	}
	rig->applied = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_worker *w = rig->core.workers[i];
		while (!weir_ring_pop(&w->input_back))
			step_all(rig);
		struct weir_bundle *b = weir_ring_pop(&w->bundle);
		WEIR_ASSERT(b && b->closed_count == 0);
		rig->applied += b->counters.applied;
		bool pushed = weir_ring_push(&w->bundle_back, b);
		WEIR_ASSERT(pushed);
		weir_ring_publish(&w->bundle_back);
	}
}

void weir_rig_run(struct weir_rig *rig, uint32_t batches)
{
	for (uint32_t b = 0; b < batches; b++) {
		push_records(rig, &rig->inputs[b % rig->batch_count]);
		if ((b + 1) % RIG_POINT_BATCHES == 0)
			point(rig);
	}
}

void weir_rig_decode(struct weir_rig *rig, uint32_t batches)
{
	struct weir_sel sel;
	for (uint32_t b = 0; b < batches; b++) {
		weir_scratch_reset(&rig->scratch);
		rig->errors.count = 0;
		weir_sel_all(&sel, WEIR_BATCH_ROWS);
		rig->decoder->decode(rig->decoder, rig->inputs[b % rig->batch_count].records, &sel, rig->cols,
				     &rig->scratch, &rig->errors);
	}
}

void weir_rig_fold(struct weir_rig *rig, uint32_t batches)
{
	const struct weir_state_def *def = &rig->core.plan->stages[0].def;
	for (uint32_t b = 0; b < batches; b++) {
		const struct weir_fragment *fr = rig->fragments[b % rig->batch_count];
		struct weir_clock clock = weir_times_clock(rig->w->times, 0, 0, fr->part);
		weir_state_apply(def, rig->w->slots[0], &fr->branches[0].keyed, fr->branches[0].rows,
				 fr->branches[0].start[1], &clock, &rig->out);
	}
}

double weir_rig_cpu(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
