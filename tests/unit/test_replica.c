/* test_replica.c: the newest record of each key against a naive twin: values that grow, shrink and are deleted, gaps of
 * offsets, the order of what is replayed, the count of bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/kafka/replica.h"

enum { KEYS = 300, OPERATIONS = 20000 };

struct twin {
	int64_t offset[KEYS]; /* -1: not there */
	uint32_t bytes[KEYS];
	uint8_t fill[KEYS];
};
struct seen {
	const struct twin *tw;
	uint32_t count;
	int64_t last;
	uint32_t stop_after;
};

static uint64_t rng = 88172645463325252;
static uint32_t random_below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 33) % n;
}

static enum weir_err check(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct seen *sn = ctx;
	(void)dg;
	assert_int_equal(r->key_bytes % 7, 0);
	uint32_t k = r->key_bytes / 7;
	for (uint32_t i = 0; i < r->key_bytes; i++)
		assert_int_equal(r->key[i], 'k');
	assert_true(r->offset > sn->last);
	sn->last = r->offset;
	assert_int_equal(r->offset, sn->tw->offset[k]);
	assert_int_equal(r->value_bytes, sn->tw->bytes[k]);
	assert_non_null(r->value);
	for (uint32_t i = 0; i < r->value_bytes; i++)
		assert_int_equal(r->value[i], sn->tw->fill[k]);
	sn->count++;
	return sn->stop_after != 0 && sn->count == sn->stop_after ? WEIR_E_STOPPED : WEIR_OK;
}

static void compare(const struct weir_replica *rp, const struct twin *tw)
{
	struct seen sn = {.tw = tw, .last = -1};
	uint32_t live = 0;
	uint64_t payload = 0;
	for (uint32_t k = 0; k < KEYS; k++)
		if (tw->offset[k] >= 0) {
			live++;
			payload += 7 * k + tw->bytes[k];
		}
	assert_int_equal(weir_replica_each(rp, check, &sn, NULL), WEIR_OK);
	assert_int_equal(sn.count, live);
	assert_int_equal(rp->count, live);
	assert_int_equal(weir_replica_payload(rp), payload);
	assert_true(rp->bytes >= payload);
}

static void test_twin(void **state)
{
	(void)state;
	static uint8_t key[7 * KEYS], value[4096];
	static struct twin tw;
	struct weir_replica rp = {0};
	int64_t offset = 5;
	memset(key, 'k', sizeof key);
	memset(tw.offset, -1, sizeof tw.offset);
	compare(&rp, &tw);
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		uint32_t k = random_below(KEYS);
		bool out = random_below(3) == 0;
		uint32_t bytes = random_below(10) == 0 ? 0 : random_below(1 + random_below(sizeof value));
		uint8_t fill = (uint8_t)random_below(256);
		offset += 1 + random_below(4);
		memset(value, fill, bytes);
		const struct weir_record r = {.key = k == 0 ? NULL : key,
					      .key_bytes = 7 * k,
					      .value = out ? NULL : value,
					      .value_bytes = out ? 0 : bytes,
					      .offset = offset};
		weir_replica_put(&rp, &r);
		tw.offset[k] = out ? -1 : offset;
		tw.bytes[k] = bytes;
		tw.fill[k] = fill;
		assert_int_equal(rp.position, offset + 1);
		if (i % 1000 == 0)
			compare(&rp, &tw);
	}
	compare(&rp, &tw);
	struct seen sn = {.tw = &tw, .last = -1, .stop_after = 3};
	assert_int_equal(weir_replica_each(&rp, check, &sn, NULL), WEIR_E_STOPPED);
	assert_int_equal(sn.count, 3);
	/* What is gone takes no memory but its places. */
	for (uint32_t k = 0; k < KEYS; k++) {
		const struct weir_record r = {
			.key = k == 0 ? NULL : key, .key_bytes = 7 * k, .value = NULL, .offset = ++offset};
		weir_replica_put(&rp, &r);
		tw.offset[k] = -1;
	}
	compare(&rp, &tw);
	assert_int_equal(rp.bytes, rp.capacity * sizeof *rp.slot);
	weir_replica_fini(&rp);
	assert_int_equal(rp.bytes, 0);
	assert_int_equal(rp.position, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_twin)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
