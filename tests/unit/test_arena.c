/* test_arena.c: blocks by size, alignment, reuse, accounting. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#ifdef WEIR_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "hotpath/core/arena.h"

static void test_blocks_are_aligned_and_apart(void **state)
{
	(void)state;
	enum { COUNT = 3000 };
	static uint8_t *p[COUNT];
	static uint32_t n[COUNT];
	struct weir_arena *ar = weir_arena_create();
	struct weir_blocks bl;
	weir_blocks_init(&bl, ar);
	uint64_t used = 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		n[i] = 1u << (WEIR_BLOCK_LOG2_MIN + i % 9);
		p[i] = weir_blocks_take(&bl, n[i] - i % 3);
		assert_int_equal((uintptr_t)p[i] % n[i], 0);
		memset(p[i], (int)i, n[i]);
		used += n[i];
	}
	assert_int_equal(bl.bytes_used, used);
	assert_true(weir_arena_bytes(ar) >= used);
	for (uint32_t i = 0; i < COUNT; i++)
		for (uint32_t j = 0; j < n[i]; j++)
			assert_int_equal(p[i][j], (uint8_t)i);
	for (uint32_t i = 0; i < COUNT; i++)
		weir_blocks_give(&bl, p[i], n[i] - i % 3);
	assert_int_equal(bl.bytes_used, 0);
	/* All of it again: nothing new is asked for. */
	uint64_t takes = bl.takes_slow, bytes = weir_arena_bytes(ar);
	for (uint32_t i = 0; i < COUNT; i++)
		p[i] = weir_blocks_take(&bl, n[i]);
	assert_int_equal(bl.takes_slow, takes);
	assert_int_equal(weir_arena_bytes(ar), bytes);
	weir_blocks_fini(&bl);
	assert_int_equal(weir_arena_bytes(ar), 0);
	weir_arena_destroy(ar);
}

static void test_large_blocks(void **state)
{
	(void)state;
	struct weir_arena *ar = weir_arena_create();
	struct weir_blocks bl;
	weir_blocks_init(&bl, ar);
	size_t big = (size_t)4 << 20;
	uint8_t *p = weir_blocks_take(&bl, big);
	assert_int_equal((uintptr_t)p % WEIR_HUGE_BYTES, 0);
	memset(p, 1, big);
	assert_int_equal(weir_arena_bytes(ar), big);
	weir_blocks_give(&bl, p, big);
	/* Beyond a quarter of the most ever used it goes back. */
	assert_int_equal(weir_arena_bytes(ar), 0);
	size_t rest = 15 << 20;
	void *other = weir_blocks_take(&bl, rest);
	p = weir_blocks_take(&bl, big);
	/* Within it a power of two is kept, once; any other size goes back. */
	weir_blocks_give(&bl, p, big);
	assert_int_equal(weir_arena_bytes(ar), rest + big);
	assert_ptr_equal(weir_blocks_take(&bl, big), p);
	uint8_t *q = weir_blocks_take(&bl, big);
	weir_blocks_give(&bl, p, big);
	weir_blocks_give(&bl, q, big);
	assert_int_equal(weir_arena_bytes(ar), rest + big);
	p = weir_blocks_take(&bl, 100000);
	assert_int_equal(weir_arena_bytes(ar), rest + big + 100000);
	weir_blocks_give(&bl, p, 100000);
	assert_int_equal(weir_arena_bytes(ar), rest + big);
	weir_blocks_give(&bl, other, rest);
	assert_int_equal(bl.bytes_used, 0);
	weir_blocks_fini(&bl);
	assert_int_equal(weir_arena_bytes(ar), 0);
	weir_arena_destroy(ar);
}

static void test_extents_start_small_and_grow(void **state)
{
	(void)state;
	struct weir_arena *ar = weir_arena_create();
	struct weir_blocks bl;
	weir_blocks_init(&bl, ar);
	assert_int_equal(weir_arena_bytes(ar), 0);
	weir_blocks_take(&bl, 512);
	assert_int_equal(weir_arena_bytes(ar), WEIR_EXTENT_BYTES_MIN);
	for (int i = 0; i < 32; i++)
		weir_blocks_take(&bl, 512);
	assert_int_equal(weir_arena_bytes(ar), 2 * WEIR_EXTENT_BYTES_MIN);
	uint64_t used = 33 * 512;
	while (weir_arena_bytes(ar) < 64u << 20) {
		weir_blocks_take(&bl, 8192);
		used += 8192;
	}
	/* Little more than what is used: a quarter while it is small, one extent once it is large. */
	assert_true(weir_arena_bytes(ar) - used <= WEIR_HUGE_BYTES);
	weir_blocks_fini(&bl);
	weir_arena_destroy(ar);
}

/* Pieces of huge pages: shared by slots, aligned, given back as a whole, whoever has the arena by then. */
static void test_pieces_of_huge_pages(void **state)
{
	(void)state;
	enum { PIECES = 300 };
	struct weir_arena *ar = weir_arena_create(), *to = weir_arena_create();
	struct weir_blocks bl[2];
	uint8_t *p[PIECES];
	for (uint32_t i = 0; i < 2; i++)
		weir_blocks_init(&bl[i], ar);
	for (uint32_t i = 0; i < PIECES; i++) {
		p[i] = weir_blocks_take_piece(&bl[i % 2]);
		assert_int_equal((uintptr_t)p[i] % WEIR_BLOCK_CARVED, 0);
		memset(p[i], (int)i, WEIR_BLOCK_CARVED);
	}
	assert_int_equal(bl[0].bytes_used, PIECES / 2 * (uint64_t)WEIR_BLOCK_CARVED);
	assert_int_equal(weir_arena_bytes(ar), 3 * WEIR_HUGE_BYTES);
	for (uint32_t i = 0; i < PIECES; i += 2) { /* every other one: no huge page is free */
		assert_int_equal(p[i][WEIR_BLOCK_CARVED - 1], (uint8_t)i);
		weir_blocks_give_piece(&bl[0], p[i]);
	}
	for (uint32_t i = 0; i < PIECES; i += 2)
		p[i] = weir_blocks_take_piece(&bl[0]);
	assert_int_equal(weir_arena_bytes(ar), 3 * WEIR_HUGE_BYTES);
	weir_arena_absorb(to, ar);
	bl[0].ar = bl[1].ar = to;
	for (uint32_t i = 0; i < PIECES; i++) {
		assert_true(i % 2 == 0 || p[i][WEIR_BLOCK_CARVED - 1] == (uint8_t)i);
		weir_blocks_give_piece(&bl[i % 2], p[i]);
	}
	assert_int_equal(weir_arena_bytes(to), 0);
	assert_int_equal(bl[0].bytes_used + bl[1].bytes_used, 0);
	for (uint32_t i = 0; i < 2; i++)
		weir_blocks_fini(&bl[i]);
	weir_arena_destroy(ar);
	weir_arena_destroy(to);
}

#ifdef WEIR_JEMALLOC
static unsigned jemalloc_arenas(void)
{
	unsigned n = 0;
	size_t bytes = sizeof n;
	assert_int_equal(mallctl("arenas.narenas", &n, &bytes, NULL, 0), 0);
	return n;
}

static unsigned jemalloc_arena_of(void *p)
{
	unsigned n = 0;
	size_t bytes = sizeof n;
	assert_int_equal(mallctl("arenas.lookup", &n, &bytes, &p, sizeof p), 0);
	return n;
}

/* jemalloc has about 4,000 numbers for arenas and never takes one back: engines that come and go share them. */
static void test_jemalloc_arenas_are_used_again(void **state)
{
	(void)state;
	struct weir_arena *a = weir_arena_create(), *b = weir_arena_create();
	void *p = weir_arena_take(a, 8192, 4096), *q = weir_arena_take(b, 8192, 4096);
	assert_int_not_equal(jemalloc_arena_of(p), jemalloc_arena_of(q));
	unsigned before = jemalloc_arenas();
	weir_arena_give(b, q, 8192, 4096);
	weir_arena_destroy(b);
	for (uint32_t i = 0; i < 5000; i++) {
		b = weir_arena_create();
		q = weir_arena_take(b, 8192, 4096);
		memset(q, 1, 8192);
		assert_int_not_equal(jemalloc_arena_of(p), jemalloc_arena_of(q));
		weir_arena_give(b, q, 8192, 4096);
		weir_arena_destroy(b);
	}
	assert_int_equal(jemalloc_arenas(), before);
	weir_arena_give(a, p, 8192, 4096);
	weir_arena_destroy(a);
}
#endif

/* Slots that change hands: their blocks are given back to whom they belong by then. */
static uint32_t resident(const struct weir_extent *ex)
{
	static unsigned char in[1 << 20 >> 12];
	uint32_t pages = ex->bytes / 4096, count = 0;
	assert_true(pages <= sizeof in);
	assert_int_equal(mincore(ex->base, ex->bytes, in), 0);
	for (uint32_t i = 0; i < pages; i++)
		count += in[i] & 1;
	return count;
}

/* What a slot has begun has memory behind it once it was asked for, and holds what was written to it. */
static void test_extents_are_backed(void **state)
{
	(void)state;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(page, 4096, MADV_POPULATE_WRITE) != 0)
		skip(); /* Linux before 5.14 */
	munmap(page, 4096);
	struct weir_arena *ar = weir_arena_create();
	struct weir_blocks bl;
	weir_blocks_init(&bl, ar);
	bl.plain = true;
	weir_arena_back(ar); /* nothing was begun */
	uint32_t large = 0, missing = 0;
	while (large < 4) {
		uint32_t extents = bl.extent_count;
		uint8_t *p = weir_blocks_take(&bl, WEIR_BLOCK_CARVED);
		p[100] = 7;
		const struct weir_extent *ex = &bl.extents[bl.extent_count - 1];
		if (bl.extent_count == extents || ex->bytes < 256 << 10)
			continue;
		large++;
		missing += ex->bytes / 4096 - resident(ex);
		weir_arena_back(ar);
		assert_int_equal(resident(ex), ex->bytes / 4096);
		assert_int_equal(p[100], 7);
		weir_arena_back(ar);
	}
	assert_true(missing != 0); /* this test runs first: the allocator has nothing from before */
	/* One that has gone meanwhile is no error. */
	while (bl.extents[bl.extent_count - 1].bytes < 256 << 10 || large == 4) {
		uint32_t extents = bl.extent_count;
		(void)weir_blocks_take(&bl, WEIR_BLOCK_CARVED);
		large += bl.extent_count != extents;
	}
	weir_blocks_fini(&bl);
	weir_arena_back(ar);
	weir_arena_destroy(ar);
}

static void test_absorb(void **state)
{
	(void)state;
	struct weir_arena *to = weir_arena_create(), *from = weir_arena_create();
	struct weir_blocks mine, moved;
	weir_blocks_init(&mine, to);
	weir_blocks_init(&moved, from);
	void *a = weir_blocks_take(&mine, 100), *b = weir_blocks_take(&moved, 300);
	void *large = weir_blocks_take(&moved, 100000);
	memset(b, 7, 300);
	uint64_t held = weir_arena_bytes(to), more = weir_arena_bytes(from);
	assert_true(held > 0 && more > 100000);
	moved.ar = to;
	weir_arena_absorb(to, from);
	assert_int_equal(weir_arena_bytes(from), 0);
	assert_int_equal(weir_arena_bytes(to), held + more);
	weir_arena_destroy(from);
	assert_int_equal(((uint8_t *)b)[299], 7);
	weir_blocks_give(&moved, b, 300);
	weir_blocks_give(&moved, large, 100000);
	weir_blocks_give(&mine, a, 100);
	weir_blocks_fini(&moved);
	assert_int_equal(weir_arena_bytes(to), held);
	weir_blocks_fini(&mine);
	assert_int_equal(weir_arena_bytes(to), 0);
	weir_arena_destroy(to);
}

#ifdef WEIR_JEMALLOC
static size_t kept_bytes(void)
{
	uint64_t epoch = 1;
	size_t pages = 0, bytes = sizeof pages;
	assert_int_equal(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch), 0);
	assert_int_equal(mallctl("stats.arenas.4096.pdirty", &pages, &bytes, NULL, 0), 0);
	return pages * 4096;
}

/* What was freed is kept as long as there is room for it. */
static void test_trim(void **state)
{
	(void)state;
	enum { BIG = 64 << 20 };
	uint8_t *p = mallocx(BIG, MALLOCX_TCACHE_NONE);
	assert_non_null(p);
	memset(p, 1, BIG);
	sdallocx(p, BIG, MALLOCX_TCACHE_NONE);
	size_t kept = kept_bytes();
	assert_true(kept >= BIG / 2);
	weir_memory_trim(BIG, 16 * (uint64_t)BIG);
	weir_memory_trim(BIG, BIG + 4 * (uint64_t)BIG);
	assert_true(kept_bytes() >= BIG / 2);
	weir_memory_trim(BIG, BIG + (uint64_t)BIG / 2);
	assert_true(kept_bytes() < BIG / 16);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extents_are_backed),
		cmocka_unit_test(test_pieces_of_huge_pages),
		cmocka_unit_test(test_blocks_are_aligned_and_apart),
		cmocka_unit_test(test_large_blocks),
		cmocka_unit_test(test_extents_start_small_and_grow),
		cmocka_unit_test(test_absorb),
#ifdef WEIR_JEMALLOC
		cmocka_unit_test(test_jemalloc_arenas_are_used_again),
		cmocka_unit_test(test_trim),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
