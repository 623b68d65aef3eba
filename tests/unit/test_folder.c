/* test_folder.c: names of topics, partitions and segments; which files of a partition a reader sees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "io/recorded/folder.h"
#include "tests/support/tmpdir.h"

static void test_segment_names(void **state)
{
	static const char *const wrong[] = {"0.log",
					    "00000000000000000000.log.deleted",
					    "00000000000000000000.log.swap",
					    "00000000000000000000.index",
					    "00000000000000000000.txnindex",
					    "0000000000000000000x.log",
					    "00000000000000000000.01.log",
					    "00000000000000000000.4294967296.log",
					    "99999999999999999999.log",
					    "000000000000000000000.log",
					    "leader-epoch-checkpoint",
					    ""};
	(void)state;
	struct weir_seg s;
	char name[WEIR_SEG_NAME_BYTES];
	for (size_t i = 0; i < WEIR_COUNT_OF(wrong); i++)
		assert_false(weir_seg_parse(wrong[i], &s));
	assert_true(weir_seg_parse("00000000000000000042.log", &s));
	assert_int_equal(s.base, 42);
	assert_int_equal(s.generation, 0);
	assert_true(weir_seg_parse("09223372036854775807.4294967295.log", &s));
	assert_int_equal(s.base, INT64_MAX);
	assert_int_equal(s.generation, UINT32_MAX);
	assert_string_equal(weir_seg_name(name, INT64_MAX, UINT32_MAX, "log"), "09223372036854775807.4294967295.log");
	assert_string_equal(weir_seg_name(name, 7, 0, "index"), "00000000000000000007.index");
}

static void test_partition_names(void **state)
{
	static const struct {
		const char *name;
		size_t topic_bytes;
		uint32_t partition;
	} right[] = {{"orders-0", 6, 0},
		     {"order-placed-12", 12, 12},
		     {"__consumer_offsets-49", 18, 49},
		     {"a.b_c-999999999", 5, 999999999}};
	static const char *const wrong[] = {"orders",      "orders-",          "-0",
					    "orders-01",   "orders-x",         "orders-0.4f3a-delete",
					    "weir.commit", "orders-1234567890"};
	(void)state;
	size_t bytes;
	uint32_t partition;
	for (size_t i = 0; i < WEIR_COUNT_OF(right); i++) {
		assert_true(weir_partition_parse(right[i].name, &bytes, &partition));
		assert_int_equal(bytes, right[i].topic_bytes);
		assert_int_equal(partition, right[i].partition);
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(wrong); i++)
		assert_false(weir_partition_parse(wrong[i], &bytes, &partition));
	assert_true(weir_topic_name_ok("order.placed_by-Merchant1"));
	assert_false(weir_topic_name_ok(""));
	assert_false(weir_topic_name_ok(".."));
	assert_false(weir_topic_name_ok("a/b"));
	assert_false(weir_topic_name_ok("a b"));
}

static void list(const char *dir, const struct weir_commit *c, bool uncommitted, char *out)
{
	struct weir_segs ss;
	struct weir_diag *dg = NULL;
	*out = '\0';
	assert_int_equal(weir_segs_list(&ss, dir, "t", 0, c, uncommitted, &dg), WEIR_OK);
	for (uint32_t i = 0; i < ss.count; i++)
		out += sprintf(out, "%lld.%u:%lld ", (long long)ss.seg[i].base, ss.seg[i].generation,
			       ss.seg[i].limit == UINT64_MAX ? -1LL : (long long)ss.seg[i].limit);
	weir_segs_fini(&ss);
}

static void test_what_a_reader_sees(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	char got[512];
	mkdir(tmpdir_path(dir, "t-0"), 0755);
	static const char *const files[] = {"00000000000000000000.log",   "00000000000000000010.log",
					    "00000000000000000010.1.log", "00000000000000000020.log",
					    "00000000000000000030.1.log", "00000000000000000030.index"};
	for (size_t i = 0; i < WEIR_COUNT_OF(files); i++)
		tmpdir_file_write(tmpdir_path(dir, "t-0/%s", files[i]), "x", 1);
	list(dir, NULL, false, got);
	assert_string_equal(got, "0.0:-1 10.0:-1 10.1:-1 20.0:-1 30.1:-1 ");
	struct weir_commit_section s = {.app = strdup("a")};
	weir_commit_add_file(&s, NULL, "t-0/00000000000000000010.1.log", 100, 20);
	weir_commit_add_file(&s, NULL, "t-00/00000000000000000050.log", 100, 20);
	weir_commit_add_file(&s, "/elsewhere", "t-0/00000000000000000060.log", 100, 20);
	weir_commit_add_file(&s, NULL, "t-0/00000000000000000025.1.log", 0, 25);
	struct weir_commit c = {&s, 1};
	/* 0 is nobody's and lies before ours; 10 and 20 were rewritten; 30 is not committed */
	list(dir, &c, false, got);
	assert_string_equal(got, "0.0:-1 10.1:100 25.1:0 ");
	list(dir, &c, true, got);
	assert_string_equal(got, "0.0:-1 10.1:-1 25.1:-1 30.1:-1 ");
	list(tmpdir_path(dir, "absent"), NULL, false, got);
	assert_string_equal(got, "");
	weir_commit_section_fini(&s);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_segment_names), cmocka_unit_test(test_partition_names),
					   cmocka_unit_test(test_what_a_reader_sees)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
