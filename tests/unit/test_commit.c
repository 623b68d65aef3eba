/* test_commit.c: the commit file: there and back, sections kept apart, damage named, replaced whole or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "hotpath/core/mem.h"
#include "io/recorded/commit.h"
#include "io/recorded/sys.h"
#include "tests/support/tmpdir.h"

static void store(const char *dir, const char *app, uint64_t epoch, const char *file, uint64_t length)
{
	struct weir_diag *dg = NULL;
	struct weir_commit_section s = {.app = weir_xstrdup(app), .epoch = epoch};
	weir_commit_add_topic(&s, NULL, "r", WEIR_TOPIC_RESULT, 2);
	weir_commit_add_topic(&s, "/other/place", "d", WEIR_TOPIC_DEAD_LETTER, 1);
	weir_commit_add_topic(&s, NULL, "c", WEIR_TOPIC_CHANGELOG, 3);
	weir_commit_add_file(&s, NULL, file, length, (int64_t)length * 2);
	weir_commit_add_file(&s, "/other/place", "d-0/00000000000000000000.log", INT64_MAX, INT64_MAX);
	assert_int_equal(weir_commit_store(dir, &s, false, &dg), WEIR_OK);
	weir_commit_section_fini(&s);
}

static void test_there_and_back(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_commit c;
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK); /* absent: empty */
	assert_int_equal(c.section_count, 0);
	weir_commit_fini(&c);
	store(dir, "a", 3, "r-0/00000000000000000000.log", 100);
	store(dir, "b", 9, "r-0/00000000000000000007.2.log", 200);
	store(dir, "a", 4, "r-1/00000000000000000000.log", 101);
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
	assert_int_equal(c.section_count, 2);
	const struct weir_commit_section *a = weir_commit_find(&c, "a"), *b = weir_commit_find(&c, "b");
	assert_non_null(a);
	assert_non_null(b);
	assert_null(weir_commit_find(&c, "c"));
	assert_int_equal(a->epoch, 4);
	assert_int_equal(b->epoch, 9);
	assert_int_equal(a->topic_count, 3);
	assert_string_equal(a->topics[1].path, "/other/place");
	assert_int_equal(a->topics[1].kind, WEIR_TOPIC_DEAD_LETTER);
	assert_int_equal(a->topics[2].kind, WEIR_TOPIC_CHANGELOG);
	assert_int_equal(a->topics[2].partitions, 3);
	assert_int_equal(a->file_count, 2);
	assert_string_equal(a->files[0].name, "r-1/00000000000000000000.log");
	assert_null(a->files[0].path);
	assert_int_equal(a->files[0].length, 101);
	assert_int_equal(a->files[0].next, 202);
	assert_int_equal(a->files[1].length, INT64_MAX);
	assert_string_equal(b->files[0].name, "r-0/00000000000000000007.2.log");
	assert_int_equal(weir_commit_store(dir, a, true, &dg), WEIR_OK);
	weir_commit_fini(&c);
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
	assert_int_equal(c.section_count, 1);
	assert_string_equal(c.sections[0].app, "b");
	weir_commit_fini(&c);
	tmpdir_remove(dir);
}

static void test_damage_is_named(void **state)
{
	static const struct {
		const char *text;
		enum weir_err err;
	} cases[] = {
		{"", WEIR_E_CORRUPT},
		{"{", WEIR_E_CORRUPT},
		{"[]", WEIR_E_CORRUPT},
		{"{\"version\":1}", WEIR_E_CORRUPT},
		{"{\"version\":3,\"applications\":{}}", WEIR_E_STATE},
		{"{\"version\":2,\"applications\":{}}", WEIR_E_CORRUPT},
		{"{\"version\":1,\"applications\":{\"a\":{}}}", WEIR_E_CORRUPT},
		{"{\"version\":1,\"applications\":{\"a\":{\"epoch\":-1,\"topics\":[],\"files\":[]}}}", WEIR_E_CORRUPT},
		{"{\"version\":1,\"applications\":{\"a\":{\"epoch\":1,\"topics\":[{\"name\":\"x\"}],\"files\":[]}}}",
		 WEIR_E_CORRUPT},
		{"{\"version\":1,\"applications\":{\"a\":{\"epoch\":1,\"topics\":[],\"files\":[{\"file\":\"../x/"
		 "1.log\",\"length\":1,"
		 "\"next\":1}]}}}",
		 WEIR_E_CORRUPT},
		{"{\"version\":1,\"applications\":{\"a\":{\"epoch\":1,\"topics\":[],\"files\":[{\"file\":\"x-0/"
		 "1.log\",\"length\":-1,"
		 "\"next\":1}]}}}",
		 WEIR_E_CORRUPT},
	};
	(void)state;
	char *dir = tmpdir_make();
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_diag *dg = NULL;
		struct weir_commit c;
		const char *file = tmpdir_path(dir, "weir.commit");
		tmpdir_file_write(file, cases[i].text, strlen(cases[i].text));
		assert_int_equal(weir_commit_load(dir, &c, &dg), cases[i].err);
		assert_non_null(strstr(weir_diag_text(dg), file));
		weir_diag_destroy(dg);
		weir_commit_fini(&c);
	}
	tmpdir_remove(dir);
}

/* Any digit that is changed by hand is noticed; white space is not; a file of version 1 has no checksum. */
static void test_checksum(void **state)
{
	(void)state;
	char *dir = tmpdir_make(), *file = strdup(tmpdir_path(dir, "weir.commit"));
	struct weir_diag *dg = NULL;
	struct weir_commit c;
	struct weir_commit_section s = {.app = strdup("a"), .epoch = 7};
	weir_commit_add_topic(&s, NULL, "t", WEIR_TOPIC_RESULT, 1);
	weir_commit_add_file(&s, NULL, "t-0/00000000000000000000.log", 400, 5);
	assert_int_equal(weir_commit_store(dir, &s, false, &dg), WEIR_OK);
	size_t bytes, noticed = 0;
	char *text = (char *)tmpdir_file_read(file, &bytes);
	for (size_t i = 20; i < bytes; i++) { /* behind the version */
		if (text[i] < '1' || text[i] > '9')
			continue;
		text[i]--;
		tmpdir_file_write(file, text, bytes);
		text[i]++;
		assert_int_not_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
		assert_non_null(strstr(weir_diag_text(dg), file));
		noticed += strstr(weir_diag_text(dg), "it has been changed") != NULL;
		weir_diag_destroy(dg);
		dg = NULL;
		weir_commit_fini(&c);
	}
	assert_true(noticed > 5);
	for (size_t i = 0; i < bytes; i++)
		text[i] = text[i] == '\n' ? ' ' : text[i];
	tmpdir_file_write(file, text, bytes);
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
	assert_int_equal(c.sections[0].epoch, 7);
	weir_commit_fini(&c);
	static const char old[] = "{\"version\":1,\"applications\":{\"a\":{\"epoch\":3,\"topics\":[],\"files\":[]}}}";
	tmpdir_file_write(file, old, sizeof old - 1);
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
	assert_int_equal(c.sections[0].epoch, 3);
	weir_commit_fini(&c);
	weir_commit_section_fini(&s);
	free(text);
	free(file);
	tmpdir_remove(dir);
}

static long fail_at, calls;

static int fail_hook(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)path;
	if (++calls != fail_at)
		return 0;
	if (op == WEIR_SYS_WRITE)
		*bytes /= 2;
	return ENOSPC;
}

/* A failed call at any place leaves the old file or the new one, and says so. */
static void test_old_or_new(void **state)
{
	(void)state;
	for (fail_at = 1; fail_at <= 8; fail_at++) {
		char *dir = tmpdir_make();
		struct weir_diag *dg = NULL;
		struct weir_commit c;
		struct weir_commit_section s = {.app = weir_xstrdup("a"), .epoch = 2};
		store(dir, "a", 1, "r-0/00000000000000000000.log", 1);
		calls = 0;
		weir_sys_hook = fail_hook;
		enum weir_err err = weir_commit_store(dir, &s, false, &dg);
		weir_sys_hook = NULL;
		assert_int_equal(err,
				 fail_at <= 6 ? WEIR_E_IO : WEIR_OK); /* create, truncate, write, sync, rename, sync */
		if (err != WEIR_OK)
			assert_non_null(strstr(weir_diag_text(dg), "No space left"));
		weir_diag_destroy(dg);
		dg = NULL;
		assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
		assert_int_equal(c.sections[0].epoch, fail_at <= 5 ? 1 : 2);
		weir_commit_fini(&c);
		/* what was left behind does not disturb the next one */
		assert_int_equal(weir_commit_store(dir, &s, false, &dg), WEIR_OK);
		weir_commit_section_fini(&s);
		tmpdir_remove(dir);
	}
}

/* Applications that write at the same time do not lose each other's sections; readers without a lock see whole files.
 */
static void test_many_writers(void **state)
{
	enum { WRITERS = 4, EPOCHS = 40 };
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_commit c;
	pid_t pid[WRITERS];
	for (int w = 0; w < WRITERS; w++) {
		pid[w] = fork();
		if (pid[w] == 0) {
			for (int e = 1; e <= EPOCHS; e++) {
				char app[2] = {(char)('a' + w), 0};
				store(dir, app, (uint64_t)e, "r-0/00000000000000000000.log", 1);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < 200; i++) {
		assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
		weir_commit_fini(&c);
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;
		assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(weir_commit_load(dir, &c, &dg), WEIR_OK);
	assert_int_equal(c.section_count, WRITERS);
	for (uint32_t i = 0; i < c.section_count; i++)
		assert_int_equal(c.sections[i].epoch, EPOCHS);
	weir_commit_fini(&c);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back),
					   cmocka_unit_test(test_damage_is_named), cmocka_unit_test(test_checksum),
					   cmocka_unit_test(test_old_or_new), cmocka_unit_test(test_many_writers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
