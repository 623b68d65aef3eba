/* test_frames.c: kept records: bytes, nulls and order survive, addresses do not move, the bound holds, memory is used
 * again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/frames.h"

struct seen {
	uint64_t count;
	size_t big;
};

static void nth(uint64_t i, char *key, struct weir_out *r)
{
	int bytes = snprintf(key, 32, "key %llu", (unsigned long long)i);
	*r = (struct weir_out){.key = {i % 5 == 0 ? NULL : key, i % 5 == 0 ? 0 : (size_t)bytes},
			       .value = {i % 7 == 0 ? NULL : key, i % 7 == 0 || i % 7 == 1 ? 0 : (size_t)bytes},
			       .headers = i % 3 == 0 ? (const uint8_t *)key : NULL,
			       .headers_bytes = i % 3 == 0 ? 3 : 0,
			       .header_count = i % 3 == 0,
			       .timestamp = (int64_t)i};
}

static void same(struct weir_slice a, struct weir_slice b)
{
	assert_int_equal(a.data == NULL, b.data == NULL);
	assert_int_equal(a.bytes, b.bytes);
	if (a.bytes)
		assert_memory_equal(a.data, b.data, a.bytes);
}

static enum weir_err check(void *ctx, struct weir_frame *f, struct weir_diag **dg)
{
	struct seen *s = ctx;
	char key[32];
	struct weir_out want;
	(void)dg;
	nth(s->count, key, &want);
	assert_int_equal(f->topic, s->count % 4);
	assert_int_equal(f->partition, s->count % 9);
	assert_int_equal(f->r.timestamp, want.timestamp);
	assert_int_equal(f->r.header_count, want.header_count);
	same(f->r.key, want.key);
	same(f->r.value, want.value);
	same((struct weir_slice){f->r.headers, f->r.headers_bytes},
	     (struct weir_slice){want.headers, want.headers_bytes});
	s->count++;
	return s->count == s->big ? WEIR_E_IO : WEIR_OK;
}

static void add(struct weir_frames *fs, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		char key[32];
		struct weir_out r;
		nth(i, key, &r);
		assert_non_null(weir_frames_add(fs, i % 4, i % 9, &r));
	}
}

static void test_round(void **state)
{
	(void)state;
	struct weir_frames fs = {0};
	uint64_t bytes = 0;
	for (int round = 0; round < 3; round++) {
		struct seen s = {0};
		add(&fs, 20000);
		assert_int_equal(fs.count, 20000);
		assert_int_equal(weir_frames_each(&fs, check, &s, NULL), WEIR_OK);
		assert_int_equal(s.count, 20000);
		s = (struct seen){.big = 77};
		assert_int_equal(weir_frames_each(&fs, check, &s, NULL), WEIR_E_IO);
		assert_int_equal(s.count, 77);
		weir_frames_reset(&fs);
		assert_int_equal(fs.count, 0);
		assert_true(round == 0 || fs.bytes == bytes); /* the same memory again */
		bytes = fs.bytes;
	}
	weir_frames_fini(&fs);
}

static void test_bound(void **state)
{
	(void)state;
	struct weir_frames fs = {.bytes_max = 4 << 20};
	struct weir_out r = {.value = {weir_xcalloc(1, 600000), 600000}};
	uint32_t taken = 0;
	while (weir_frames_add(&fs, 0, 0, &r) != NULL)
		taken++;
	assert_in_range(taken, 3, 6);
	assert_true(fs.bytes <= fs.bytes_max);
	weir_frames_reset(&fs);
	assert_non_null(weir_frames_add(&fs, 0, 0, &r));
	weir_frames_fini(&fs);
	free((void *)(uintptr_t)r.value.data);
}

/* Larger than a chunk, then small ones, then large ones again where a small chunk waits. */
static void test_large(void **state)
{
	(void)state;
	struct weir_frames fs = {0};
	uint8_t *big = weir_xcalloc(1, 3 << 20);
	memset(big, 'x', 3 << 20);
	for (int round = 0; round < 3; round++) {
		struct weir_out large = {.value = {big, 3 << 20}};
		add(&fs, 5000);
		struct weir_frame *a = weir_frames_add(&fs, 1, 2, &large);
		add(&fs, 5000);
		struct weir_frame *b = weir_frames_add(&fs, 3, 4, &large);
		assert_int_equal(a->r.value.bytes, 3 << 20);
		assert_memory_equal(a->r.value.data, big, 3 << 20);
		assert_memory_equal(b->r.value.data, big, 3 << 20);
		assert_int_equal(fs.count, 10002);
		weir_frames_reset(&fs);
	}
	assert_true(fs.bytes <= 3u << 20); /* the large chunks are given back */
	weir_frames_fini(&fs);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round), cmocka_unit_test(test_bound),
					   cmocka_unit_test(test_large)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
