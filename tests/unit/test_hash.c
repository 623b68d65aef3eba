/* test_owner.c: hash bits, counters and the owner of an object. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hotpath/core/counters.h"
#include "hotpath/core/hash.h"
#include "hotpath/core/owner.h"

/* Durable state depends on these values: they must never change. */
static void test_hash_is_xxh3(void **state)
{
	(void)state;
	assert_true(weir_hash("", 0) == UINT64_C(0x2d06800538d394c2));
	assert_true(weir_hash("a", 1) == UINT64_C(0xe6c632b61e964e1f));
}

/* The hash of words in registers is that of the bytes. */
static void test_hash_of_words(void **state)
{
	(void)state;
	uint8_t key[16];
	for (uint32_t round = 0; round < 1000; round++)
		for (uint32_t n = 9; n <= 16; n++) {
			uint64_t head, last;
			for (uint32_t i = 0; i < n; i++)
				key[i] = round == 0 ? 0 : round == 1 ? 0xff : (uint8_t)(weir_hash(&i, 4) >> round % 56);
			key[round % n] ^= (uint8_t)round;
			memcpy(&head, key, 8);
			memcpy(&last, key + n - 8, 8);
			assert_true(weir_hash_words(head, last, n) == weir_hash(key, n));
		}
}

static void test_slots_are_even_and_within_range(void **state)
{
	(void)state;
	for (uint32_t slots = 1; slots <= 64; slots++) {
		uint32_t seen[64] = {0};
		for (uint64_t k = 0; k < 6400; k++)
			seen[weir_hash_slot(weir_hash(&k, sizeof k), slots)]++;
		for (uint32_t s = 0; s < slots; s++)
			assert_in_range(seen[s], 6400 / slots / 2, 6400 / slots * 3 / 2 + 2);
	}
	assert_int_equal(weir_hash_slot(UINT64_MAX, 65536), 65535);
	assert_int_equal(weir_hash_slot(UINT64_MAX, 3), 2);
	assert_int_equal(weir_hash_slot(0, 3), 0);
}

/* The keys of one slot use the whole index and all tags. */
static void test_parts_are_disjoint(void **state)
{
	(void)state;
	uint64_t h = UINT64_C(0xffff000000000000);
	assert_int_equal(weir_hash_tag(h), 0);
	assert_int_equal(weir_hash_index(h), 0);
	assert_int_equal(weir_hash_tag(UINT64_C(0x0000abcd00000000)), 0xabcd);
	assert_int_equal(weir_hash_slot(UINT64_C(0x0000ffffffffffff), 65536), 0);
	assert_int_equal(weir_hash_index(UINT64_C(0x1234567889abcdef)), 0x89abcdef);
}

static void test_counters(void **state)
{
	(void)state;
	struct weir_counter ct = {0};
	weir_counter_add(&ct, 5);
	weir_counter_add(&ct, 7);
	assert_int_equal(weir_counter_read(&ct), 12);
	weir_counter_max(&ct, 3);
	assert_int_equal(weir_counter_read(&ct), 12);
	weir_counter_max(&ct, 30);
	assert_int_equal(weir_counter_read(&ct), 30);
	weir_counter_set(&ct, 1);
	assert_int_equal(weir_counter_read(&ct), 1);
}

static void test_owner_hand_over(void **state)
{
	(void)state;
	struct weir_owner ow;
	weir_owner_init(&ow);
	weir_owner_check(&ow);
	weir_owner_check(&ow);
	weir_owner_give(&ow);
	weir_owner_check(&ow);
	assert_true(weir_owner_self() != 0);
	assert_true(weir_owner_self() == weir_owner_self());
}

/* Debug builds stop when a stranger enters; the stop is seen from outside, in a child. */
static void test_stranger_stops_a_debug_build(void **state)
{
	(void)state;
	struct weir_owner ow;
	weir_owner_init(&ow);
	atomic_store(&ow.thread, weir_owner_self() + 1);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)close(STDERR_FILENO);
		weir_owner_check(&ow);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
#ifdef WEIR_DEBUG
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), 6);
#else
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_is_xxh3),
		cmocka_unit_test(test_hash_of_words),
		cmocka_unit_test(test_slots_are_even_and_within_range),
		cmocka_unit_test(test_parts_are_disjoint),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_owner_hand_over),
		cmocka_unit_test(test_stranger_stops_a_debug_build),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
