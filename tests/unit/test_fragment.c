/* test_fragment.c: batches of a scan against the rules row by row: event times, running maxima, what is refused, keys
 * and slots, whichever of the ways for whole batches a batch takes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/hash.h"
#include "hotpath/run/fragment.h"
#include "hotpath/time/civil.h"
#include "hotpath/topology/plan.h"
#include "hotpath/weir.h"

enum { PARTITION = 3, PARTITIONS = 6, VALUE_BYTES = 64 };
static const int64_t highest = INT64_C(1) << 53;

struct rig {
	struct weir_topology *tp;
	struct weir_plan *pl;
	struct weir_routes routes;
	struct weir_fragment_conf cf;
	struct weir_fragment *fr;
	struct weir_input in;
	struct weir_record records[WEIR_BATCH_ROWS];
	int64_t ts[WEIR_BATCH_ROWS];
	bool bare;
	bool keyless[WEIR_BATCH_ROWS];
	uint8_t values[WEIR_BATCH_ROWS * VALUE_BYTES + WEIR_PAYLOAD_PAD];
	struct weir_row_errors errors;
};

static uint64_t random_word(void)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return x;
}
static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_word() >> 33) % n;
}

/* bare: event time is the number itself, so that only the rules of event times hold, not those of TO_TIMESTAMP_LTZ. */
static struct rig *rig_create(bool direct, bool negative, bool bare)
{
	static const char keyed[] = "connector=recorded path=x topic=in format=json key.fields=k key.format=raw "
				    "value.fields-include=EXCEPT_KEY";
	static const char unkeyed[] = "connector=recorded path=x topic=in format=json";
	struct rig *rg = weir_xcalloc(1, sizeof *rg);
	struct weir_plan_settings ps = {.emit_coalesce = true, .app = "app"};
	struct weir_diag *dg = NULL;
	uint32_t partitions[] = {PARTITIONS};
	rg->tp = weir_topology_create();
	struct weir_stream *st = weir_source(rg->tp, "s", "k STRING, ts BIGINT", direct ? keyed : unkeyed);
	st = weir_tumble(weir_key_by(weir_event_time(st, "ts", 5), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", "connector=blackhole");
	if (weir_topology_check(rg->tp, &dg) != WEIR_OK || weir_plan_create(&rg->pl, rg->tp, &ps, &dg) != WEIR_OK ||
	    weir_plan_bind(rg->pl, partitions, 64, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	assert_int_equal(rg->pl->stages[0].exchange, direct ? WEIR_EXCHANGE_DIRECT : WEIR_EXCHANGE_LOCAL);
	rg->pl->scans[0].allow_negative_time = negative;
	assert_int_equal(rg->pl->scans[0].time->op, WEIR_EXPR_CALL);
	if (bare)
		rg->pl->scans[0].time = rg->pl->scans[0].time->args[0];
	rg->bare = bare;
	rg->pl->branches[0].reject_null_value = true; /* as into a join */
	rg->pl->scans[0].value_format.record_bytes_max = 1 << 20;
	rg->pl->scans[0].value_format.depth_max = 16;
	weir_routes_init(&rg->routes, rg->pl->stages[0].slot_count, 1);
	rg->cf = (struct weir_fragment_conf){rg->pl, 1, &rg->routes};
	if (weir_fragment_create_scan(&rg->fr, &rg->cf, 0, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	rg->in = (struct weir_input){.kind = WEIR_INPUT_RECORDS,
				     .partition = PARTITION,
				     .records = rg->records,
				     .topic = "in",
				     .topic_partition = PARTITION};
	rg->fr->input = &rg->in;
	return rg;
}

static void rig_destroy(struct rig *rg)
{
	weir_fragment_destroy(rg->fr);
	weir_routes_fini(&rg->routes);
	weir_topology_destroy(rg->tp);
	free(rg);
}

/* A batch whose times ascend, or not, or are odd here and there; some records without a key or a value. */
static void fill(struct rig *rg, uint32_t round)
{
	static const int64_t odd[] = {-1,
				      0,
				      INT64_MIN,
				      INT64_MAX,
				      WEIR_CIVIL_DAY_FIRST * WEIR_DAY_MS,
				      WEIR_CIVIL_DAY_FIRST * WEIR_DAY_MS - 1,
				      (WEIR_CIVIL_DAY_LAST + 1) * WEIR_DAY_MS - 1,
				      (WEIR_CIVIL_DAY_LAST + 1) * WEIR_DAY_MS};
	int64_t t = INT64_C(1700000000000) - (round % 2 ? INT64_C(1700000000100) : 0);
	rg->in.count = round % 50 == 0 ? WEIR_BATCH_ROWS : 1 + random_below(14);
	for (uint32_t i = 0; i < rg->in.count; i++) {
		struct weir_record *r = &rg->records[i];
		uint8_t *value = rg->values + (size_t)i * VALUE_BYTES;
		int64_t *ts = &rg->ts[i];
		t += random_below(50);
		*ts = round % 3 == 0 && random_below(4) == 0 ? t - random_below(200) : t;
		if (round % 5 == 0 && random_below(5) == 0)
			*ts = random_below(2) ? odd[random_below(8)]
					      : (random_below(2) ? highest : -highest) + random_below(3) - 1;
		rg->keyless[i] = round % 7 == 0 && random_below(5) == 0;
		int n = rg->keyless[i] ? snprintf((char *)value, VALUE_BYTES, "{\"ts\":%lld}", (long long)*ts)
				       : snprintf((char *)value, VALUE_BYTES, "{\"k\":\"key-%u\",\"ts\":%lld}",
						  random_below(100000), (long long)*ts);
		*r = (struct weir_record){.key = (const uint8_t *)"k", .key_bytes = 1, .value = value, .timestamp = -1};
		r->value_bytes = (uint32_t)n;
		if (round % 11 == 0 && random_below(5) == 0) {
			r->value = NULL;
			r->value_bytes = 0;
			r->timestamp = *ts;
		}
	}
}

static void check_times(const struct rig *rg, int64_t lowest)
{
	const struct weir_fragment *fr = rg->fr;
	int64_t max = WEIR_TIME_UNSET;
	uint8_t reason[WEIR_BATCH_ROWS] = {0};
	uint32_t kept = 0, refused = 0;
	for (uint32_t e = 0; e < fr->errors.count; e++)
		reason[fr->errors.e[e].row] = fr->errors.e[e].reason;
	for (uint32_t i = 0; i < rg->in.count; i++) {
		int64_t t = rg->ts[i];
		enum weir_reason want = WEIR_REASON_NONE;
		if (t < lowest || t > highest)
			want = WEIR_REASON_TIMESTAMP;
		if (!rg->bare && rg->records[i].value != NULL &&
		    (t < WEIR_CIVIL_DAY_FIRST * WEIR_DAY_MS || t >= (WEIR_CIVIL_DAY_LAST + 1) * WEIR_DAY_MS))
			want = WEIR_REASON_RANGE;
		assert_int_equal(reason[i], want);
		refused += want != WEIR_REASON_NONE;
		if (want != WEIR_REASON_NONE)
			continue;
		max = t > max ? t : max;
		assert_true(kept < fr->sel.count && fr->sel.row[kept++] == i);
		assert_true(fr->time[i] == t);
		assert_true(fr->run[i] == max);
	}
	assert_int_equal(fr->sel.count, kept);
	assert_int_equal(fr->errors.count, refused);
	assert_true(fr->time_max == max);
}

static void check_branch(const struct rig *rg, bool direct)
{
	const struct weir_fragment *fr = rg->fr;
	const struct weir_fragment_branch *fb = &fr->branches[0];
	uint32_t kept = 0, values = 0, keys = 0;
	for (uint32_t i = 0; i < fr->sel.count; i++) {
		uint32_t row = fr->sel.row[i];
		if (rg->records[row].value == NULL)
			values++;
		else if (!direct && rg->keyless[row])
			keys++;
		else {
			assert_true(kept < fb->sel.count && fb->sel.row[kept] == row && fb->rows[kept] == row);
			kept++;
			assert_true(fb->keyed.time[row] == fr->time[row] && fb->keyed.run[row] == fr->run[row]);
			assert_int_equal(fb->keyed.slot[row],
					 direct ? PARTITION : weir_hash_slot(fb->keyed.hash[row], 64));
			assert_true(fb->keyed.hash[row] == weir_hash(fb->keyed.key[row], fb->keyed.key_bytes[row]));
		}
	}
	assert_int_equal(fb->sel.count, kept);
	assert_int_equal(fb->start[1], kept);
	for (uint32_t e = 0; e < rg->errors.count; e++) {
		bool null = rg->records[rg->errors.e[e].row].value == NULL;
		assert_int_equal(rg->errors.e[e].reason, null ? WEIR_REASON_NULL : WEIR_REASON_NULL_KEY);
		values -= null;
		keys -= !null;
	}
	assert_true(values == 0 && keys == 0);
}

static void test_batches(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 8; kind++) {
		bool direct = kind & 1, negative = kind & 2;
		struct rig *rg = rig_create(direct, negative, kind & 4);
		for (uint32_t round = 0; round < 1000; round++) {
			fill(rg, round);
			weir_fragment_decode(rg->fr, rg->pl);
			check_times(rg, negative ? -highest : 0);
			rg->errors.count = 0;
			assert_int_equal(weir_fragment_run(rg->fr, &rg->cf, 0, &rg->errors), 0);
			check_branch(rg, direct);
			/* Of what a sink takes without a stage, those that have a value. */
			struct weir_sel sel;
			rg->errors.count = 0;
			weir_fragment_valued(rg->fr, &sel, &rg->errors);
			uint32_t kept = 0;
			for (uint32_t i = 0; i < rg->fr->sel.count; i++)
				if (rg->records[rg->fr->sel.row[i]].value != NULL)
					assert_true(kept < sel.count && sel.row[kept++] == rg->fr->sel.row[i]);
			assert_int_equal(sel.count, kept);
			assert_int_equal(rg->errors.count, rg->fr->sel.count - kept);
		}
		rig_destroy(rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
