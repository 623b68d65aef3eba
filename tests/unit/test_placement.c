/* test_placement.c: samples of keys against partitions: what is wrong where a source is alone in a state, and where it
 * meets another one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/placement.h"
#include "io/recorded/recorded.h"

enum { PARTITIONS = 3, KEYS = 50 };

/* Two sources, alone in states "a" and "b", or (joined) both in "j". */
struct fixture {
	struct weir_plan pl;
	struct weir_plan_scan scans[2];
	struct weir_plan_branch branches[2];
	struct weir_plan_stage stages[2];
	uint32_t inputs[2];
	struct weir_placement *pc;
	struct weir_buf out;
};

static void make(struct fixture *fx, bool joined)
{
	memset(fx, 0, sizeof *fx);
	fx->pl = (struct weir_plan){.scans = fx->scans,
				    .scan_count = 2,
				    .branches = fx->branches,
				    .branch_count = 2,
				    .stages = fx->stages,
				    .stage_count = joined ? 1 : 2};
	for (uint32_t i = 0; i < 2; i++) {
		fx->scans[i] = (struct weir_plan_scan){
			.name = i == 0 ? "orders" : "payments", .partition_count = PARTITIONS, .repartition = -1};
		fx->branches[i] = (struct weir_plan_branch){.from = WEIR_FROM_SCAN, .origin = i};
		fx->inputs[i] = i;
		fx->stages[i] = (struct weir_plan_stage){.name = joined   ? "j"
								 : i == 0 ? "a"
									  : "b",
							 .exchange = WEIR_EXCHANGE_DIRECT,
							 .inputs = joined ? fx->inputs : &fx->inputs[i],
							 .input_count = joined ? 2 : 1};
	}
}

enum how { BY_MURMUR2, BY_LENGTH, ROUND_ROBIN };

/* `count` records of a scan, in units of one. */
static void feed(struct fixture *fx, uint32_t scan, uint32_t count, enum how how, uint32_t wrong)
{
	for (uint32_t i = 0; i < count; i++) {
		char key[16];
		int n = snprintf(key, sizeof key, "key-%u", i * i % KEYS);
		struct weir_record r = {.key = (const uint8_t *)key, .key_bytes = (uint32_t)n};
		uint32_t p = (weir_murmur2(key, (size_t)n) & 0x7fffffff) % PARTITIONS;
		if (how == BY_LENGTH)
			p = (uint32_t)n % PARTITIONS;
		if (how == ROUND_ROBIN)
			p = i % PARTITIONS;
		if (i < wrong)
			p = (p + 1) % PARTITIONS;
		struct weir_unit u = {.partition = p, .count = 1, .records = &r};
		weir_placement_unit(fx->pc, scan, &u);
	}
}

static const char *say(struct fixture *fx, uint32_t scan, bool end)
{
	fx->out.bytes = 0;
	return weir_placement_say(fx->pc, scan, end, &fx->out) ? (const char *)fx->out.data : NULL;
}

static void done(struct fixture *fx)
{
	weir_placement_destroy(fx->pc);
	weir_buf_fini(&fx->out);
}

static void test_alone_any_partitioner_will_do(void **state)
{
	(void)state;
	struct fixture fx;
	make(&fx, false);
	fx.pc = weir_placement_create(&fx.pl);
	feed(&fx, 0, 5000, BY_LENGTH, 0);
	feed(&fx, 1, 5000, ROUND_ROBIN, 0);
	assert_null(say(&fx, 0, false));
	const char *text = say(&fx, 1, false);
	assert_non_null(text);
	assert_non_null(strstr(text, "source payments: "));
	assert_non_null(strstr(text, "are in more than one partition, but state b"));
	/* A way out that is one: keys that are taken for the record's are not moved through a topic, either. */
	assert_non_null(strstr(text, "let rows move within one process: exchange=local"));
	assert_null(strstr(text, "exchange=topic"));
	assert_null(say(&fx, 1, true)); /* once */
	feed(&fx, 1, 5000, ROUND_ROBIN, 0);
	assert_null(say(&fx, 1, true));
	done(&fx);
}

static void test_joined_keys_lie_where_murmur2_says(void **state)
{
	(void)state;
	struct fixture fx;
	make(&fx, true);
	fx.pc = weir_placement_create(&fx.pl);
	feed(&fx, 0, 5000, BY_MURMUR2, 0);
	feed(&fx, 1, 1000, BY_MURMUR2, 37);
	assert_null(say(&fx, 0, false));
	assert_null(say(&fx, 1, false)); /* the sample is not full */
	const char *text = say(&fx, 1, true);
	assert_non_null(text);
	assert_non_null(strstr(text, "source payments: 37 of 1000 sampled keys (3.7 %) are not in the partition"));
	assert_non_null(strstr(text, "state j expects them where orders has them"));
	done(&fx);
}

/* Both topics by one partitioner that is not Kafka's own: matches are found, nothing is said. */
static void test_joined_by_another_partitioner(void **state)
{
	(void)state;
	struct fixture fx;
	make(&fx, true);
	fx.pc = weir_placement_create(&fx.pl);
	feed(&fx, 0, 1000, BY_LENGTH, 0);
	feed(&fx, 1, 1000, BY_LENGTH, 0);
	assert_null(say(&fx, 0, true));
	assert_null(say(&fx, 1, true));
	done(&fx);
	/* One of them with keys in several partitions, or only one by that partitioner: matches are missed. */
	for (int other = 0; other < 2; other++) {
		make(&fx, true);
		fx.pc = weir_placement_create(&fx.pl);
		feed(&fx, 0, 1000, BY_LENGTH, 0);
		feed(&fx, 1, 1000, other == 0 ? ROUND_ROBIN : BY_MURMUR2, 0);
		assert_non_null(say(&fx, 0, true));
		assert_true((say(&fx, 1, true) != NULL) == (other == 0));
		done(&fx);
	}
}

/* Records without a key lie anywhere, and so does what they are grouped by or joined with. */
static void test_records_without_a_key(void **state)
{
	(void)state;
	struct fixture fx;
	struct weir_record r = {0};
	/* Alone: in one partition nothing is wrong, in two there is. Those of a table are rejected, whatever lies
	 * where. */
	for (uint32_t partitions = 1; partitions <= 2; partitions++) {
		make(&fx, false);
		fx.scans[1].is_table = true;
		fx.pc = weir_placement_create(&fx.pl);
		feed(&fx, 0, 1000, BY_MURMUR2, 0);
		for (uint32_t i = 0; i < 6; i++) {
			struct weir_unit u = {.partition = i % partitions, .count = 1, .records = &r};
			weir_placement_unit(fx.pc, 0, &u);
			weir_placement_unit(fx.pc, 1, &u);
		}
		const char *text = say(&fx, 0, true);
		assert_true((text != NULL) == (partitions == 2));
		assert_true(text == NULL ||
			    strstr(text, "source orders: 6 of 1006 sampled records have no key") != NULL);
		assert_true(text == NULL || strstr(text, "Take key.fields out of the table") != NULL);
		assert_null(say(&fx, 0, true));
		assert_null(say(&fx, 1, true));
		done(&fx);
	}
	/* A join: some without a key meet nothing; a topic that is not keyed at all misses its matches. */
	for (uint32_t keyed = 0; keyed < 2; keyed++) {
		make(&fx, true);
		fx.pc = weir_placement_create(&fx.pl);
		feed(&fx, 0, 1000, BY_MURMUR2, 0);
		feed(&fx, 1, keyed * 100, BY_MURMUR2, 0);
		for (uint32_t i = 0; i < 50; i++) {
			struct weir_unit u = {.partition = i % 2, .count = 1, .records = &r};
			weir_placement_unit(fx.pc, 1, &u);
		}
		assert_null(say(&fx, 0, true));
		const char *text = say(&fx, 1, true);
		assert_true((text != NULL) == (keyed == 0));
		assert_true(text == NULL || strstr(text, "50 of 50 sampled records have no key") != NULL);
		assert_true(text == NULL || strstr(text, "state j expects them where orders has them") != NULL);
		done(&fx);
	}
}

static void test_the_sample_is_bounded(void **state)
{
	(void)state;
	struct fixture fx;
	make(&fx, true);
	fx.pc = weir_placement_create(&fx.pl);
	feed(&fx, 0, 4096, BY_MURMUR2, 0);
	feed(&fx, 0, 1000, ROUND_ROBIN, 0); /* nobody looks any more */
	assert_null(say(&fx, 0, true));
	/* Of a large unit some 64 records, from all over it; records without a key are no keys. */
	static struct weir_record many[1000];
	for (uint32_t i = 0; i < 1000; i++)
		many[i] = (struct weir_record){.key = i % 2 == 0 ? (const uint8_t *)"k" : NULL, .key_bytes = 1};
	struct weir_unit u = {
		.partition = ((weir_murmur2("k", 1) & 0x7fffffff) + 1) % PARTITIONS, .count = 1000, .records = many};
	weir_placement_unit(fx.pc, 1, &u);
	const char *text = say(&fx, 1, true);
	unsigned wrong = 0, seen = 0;
	assert_non_null(text);
	assert_int_equal(sscanf(text, "source payments: %u of %u", &wrong, &seen), 2);
	assert_true(seen > 20 && seen <= 70 && wrong == seen);
	done(&fx);
}

static void test_nothing_relies_on_it(void **state)
{
	(void)state;
	struct fixture fx;
	make(&fx, true);
	fx.stages[0].exchange = WEIR_EXCHANGE_LOCAL;
	assert_null(weir_placement_create(&fx.pl));
	make(&fx, true);
	fx.stages[0].broadcast = true;
	assert_null(weir_placement_create(&fx.pl));
	make(&fx, true);
	fx.scans[0].partition_count = fx.scans[1].partition_count = 1;
	assert_null(weir_placement_create(&fx.pl));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_any_partitioner_will_do),
		cmocka_unit_test(test_joined_keys_lie_where_murmur2_says),
		cmocka_unit_test(test_joined_by_another_partitioner),
		cmocka_unit_test(test_records_without_a_key),
		cmocka_unit_test(test_the_sample_is_bounded),
		cmocka_unit_test(test_nothing_relies_on_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
