/* test_budget.c: what of memory.max is spoken for before the first record. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/weir.h"
#include "io/budget.h"

#define KEYED   "connector=recorded path=x topic=in format=json key.fields=k key.format=raw "
#define COLUMNS "k STRING, j STRING, v BIGINT, ts TIMESTAMP_LTZ(3)"

static struct weir_stream *source(struct weir_topology *tp, const char *name)
{
	return weir_event_time(weir_source(tp, name, COLUMNS, KEYED), "ts", 5);
}

/* A join of two sources of so many partitions, or (join false) a projection of one. */
static struct weir_budget budget(bool join, uint32_t partitions, uint32_t workers, const char *records, const char *max)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_plan_settings ps = {.emit_coalesce = true, .app = "app"};
	struct weir_conf *cf = weir_conf_create();
	struct weir_settings st;
	struct weir_plan *pl = NULL;
	struct weir_diag *dg = NULL;
	struct weir_budget bg;
	uint32_t counts[] = {partitions, partitions};
	struct weir_stream *s = source(tp, "a");
	if (join)
		s = weir_join_within(weir_key_by(s, "j"), weir_key_by(source(tp, "b"), "j"), "js", WEIR_JOIN_INNER,
				     1000, 1000);
	(void)weir_sink(s, "out", "connector=recorded path=x topic=out format=json");
	assert_int_equal(weir_conf_set(cf, "order.point.records", records, &dg), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "memory.max", max, &dg), WEIR_OK);
	if (weir_conf_settings(cf, &st, &dg) != WEIR_OK || weir_topology_check(tp, &dg) != WEIR_OK ||
	    weir_plan_create(&pl, tp, &ps, &dg) != WEIR_OK || weir_plan_bind(pl, counts, 64, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_budget_make(&bg, pl, &st, workers);
	weir_topology_destroy(tp);
	weir_conf_destroy(cf);
	return bg;
}

static void test_fragments_by_memory(void **state)
{
	(void)state;
	assert_int_equal(budget(true, 4, 2, "65536", "64MiB").fragments, 2);
	assert_int_equal(budget(true, 4, 2, "65536", "128MiB").fragments, 4);
	assert_int_equal(budget(true, 4, 2, "65536", "1GiB").fragments, 8);
	assert_int_equal(budget(true, 4, 64, "65536", "1GiB").fragments, 2);
	/* One worker decodes and applies at once: of each scan there is one, whatever there could be. */
	assert_int_equal(budget(true, 4, 1, "65536", "48MiB").fixed_bytes, 1 << 20);
	assert_int_equal(budget(true, 4, 1, "65536", "1GiB").fixed_bytes, 1 << 20);
	assert_int_equal(budget(true, 4, 2, "65536", "64MiB").fixed_bytes, 2 << 20);
}

static void test_least(void **state)
{
	(void)state;
	uint64_t one = budget(true, 4, 1, "65536", "64MiB").least;
	assert_in_range(one, 50 << 20, 64 << 20);
	/* Each worker takes as much more; nothing depends on what there is. */
	uint64_t two = budget(true, 4, 2, "65536", "64MiB").least, four = budget(true, 4, 4, "65536", "64MiB").least;
	assert_in_range(two, one + (6 << 20), 64 << 20);
	assert_in_range(four, two + (12 << 20), two + (32 << 20));
	assert_int_equal(budget(true, 4, 2, "65536", "4GiB").least, two);
	/* Partitions are written to, and an order point of fewer records takes less; of more, no more than its bytes.
	 */
	assert_true(budget(true, 64, 1, "65536", "64MiB").least > one + (16 << 20));
	assert_in_range(budget(true, 4, 1, "1500", "64MiB").least, 32 << 20, 40 << 20);
	assert_in_range(budget(true, 4, 1, "1000000000", "64MiB").least, 256 << 20, 512 << 20);
	/* What has no state can do with what memory.max is at least. */
	assert_in_range(budget(false, 16, 4, "65536", "48MiB").least, 1, 48 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fragments_by_memory),
		cmocka_unit_test(test_least),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
