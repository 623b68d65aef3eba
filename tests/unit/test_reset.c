/* test_reset.c: weir reset on recorded topics: says first, removes what is the application's and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "hotpath/core/mem.h"
#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"
#include "tests/support/tmpdir.h"

static void ok_at(int line, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK) {
		print_error("line %d: %s\n", line, weir_diag_text(*dg));
		fail();
	}
}
#define OK(call) ok_at(__LINE__, (call), &dg)

static void say(void *ctx, const char *line)
{
	weir_buf_puts(ctx, line);
	weir_buf_puts(ctx, "\n");
}

static void run_app(const char *home, const char *other, const char *app, const char *results, const char *foreign)
{
	struct weir_diag *dg = NULL;
	struct weir_log *lg;
	char changelog[64] = "";
	uint32_t r, f, c, n;
	OK(weir_recorded_log_open(&lg, home, app, &dg));
	strcat(strcpy(changelog, app), "-changelog");
	OK(lg->ops->topic(lg, &(struct weir_topic_spec){.name = results, .partitions = 2}, &r, &n, &dg));
	OK(lg->ops->topic(lg, &(struct weir_topic_spec){.name = foreign, .partitions = 1, .path = other}, &f, &n, &dg));
	OK(lg->ops->topic(lg,
			  &(struct weir_topic_spec){.name = changelog, .kind = WEIR_TOPIC_CHANGELOG, .partitions = 2},
			  &c, &n, &dg));
	OK(lg->ops->make(lg, &dg));
	struct weir_out o = {.key = {"k", 1}, .value = {"v", 1}};
	for (uint32_t p = 0; p < 2; p++) {
		OK(lg->ops->append(lg, r, p, &o, &dg));
		OK(lg->ops->append(lg, c, p, &o, &dg));
	}
	OK(lg->ops->append(lg, f, 0, &o, &dg));
	OK(lg->ops->commit(lg, 1, &dg));
	lg->ops->close(lg);
}

static void test_reset(void **state)
{
	(void)state;
	char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
	     *other = strdup(tmpdir_path(base, "other"));
	struct weir_diag *dg = NULL;
	struct weir_buf said = {0};
	run_app(home, other, "one", "r1", "f1");
	run_app(home, other, "two", "r2", "f2");
	uint64_t before = tmpdir_bytes(base);
	OK(weir_recorded_reset(home, "one", false, say, &said, &dg));
	weir_buf_put_byte(&said, 0);
	assert_non_null(strstr((char *)said.data, "would remove results r1"));
	assert_non_null(strstr((char *)said.data, "would remove results f1"));
	assert_non_null(strstr((char *)said.data, "would remove changelog one-changelog"));
	assert_null(strstr((char *)said.data, "r2"));
	assert_int_equal(tmpdir_bytes(base), before);
	OK(weir_recorded_reset(home, "one", true, say, &said, &dg));
	assert_int_equal(weir_recorded_partitions(home, "r1"), 0);
	assert_int_equal(weir_recorded_partitions(home, "one-changelog"), 0);
	assert_int_equal(weir_recorded_partitions(other, "f1"), 0);
	assert_int_equal(weir_recorded_partitions(home, "r2"), 2);
	assert_int_equal(weir_recorded_partitions(other, "f2"), 1);
	/* starting over works, and so does the other application */
	run_app(home, other, "one", "r1", "f1");
	struct weir_log *lg;
	OK(weir_recorded_log_open(&lg, home, "two", &dg));
	assert_int_equal(lg->ops->epoch(lg), 1);
	assert_int_equal(weir_recorded_reset(home, "two", true, say, &said, &dg), WEIR_E_UNAVAILABLE); /* it runs */
	weir_diag_destroy(dg);
	dg = NULL;
	lg->ops->close(lg);
	assert_int_equal(weir_recorded_reset(other, "two", true, say, &said, &dg), WEIR_E_CONF); /* not its home */
	assert_non_null(strstr(weir_diag_text(dg), home));
	weir_diag_destroy(dg);
	dg = NULL;
	said.bytes = 0;
	OK(weir_recorded_reset(home, "nobody", true, say, &said, &dg));
	weir_buf_put_byte(&said, 0);
	assert_non_null(strstr((char *)said.data, "has nothing in"));
	weir_buf_fini(&said);
	free(home);
	free(other);
	tmpdir_remove(base);
}

/* Looking leaves nothing behind, and neither does an application that is not there. */
static void test_without_traces(void **state)
{
	(void)state;
	char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
	     *other = strdup(tmpdir_path(base, "other"));
	struct weir_diag *dg = NULL;
	run_app(home, other, "one", "r1", "f1");
	OK(weir_recorded_reset(home, "nobody", false, NULL, NULL, &dg));
	OK(weir_recorded_reset(home, "nobody", true, NULL, NULL, &dg));
	assert_int_not_equal(access(tmpdir_path(home, "weir.nobody.lock"), F_OK), 0);
	struct weir_log *lg;
	OK(weir_recorded_log_open(&lg, home, "one", &dg)); /* while it runs, too */
	OK(weir_recorded_reset(home, "one", false, NULL, NULL, &dg));
	lg->ops->close(lg);
	free(home);
	free(other);
	tmpdir_remove(base);
}

/* Without its commit file an application's changelog is in the way of a new start: it goes, that of others stays. */
static void test_lost_commit_file(void **state)
{
	(void)state;
	char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
	     *other = strdup(tmpdir_path(base, "other"));
	struct weir_diag *dg = NULL;
	struct weir_log *lg;
	uint32_t c, n;
	run_app(home, other, "one", "r1", "f1");
	assert_int_equal(rename(tmpdir_path(home, "one-changelog-0"), tmpdir_path(home, "one-s-changelog-0")), 0);
	assert_int_equal(unlink(tmpdir_path(home, "weir.commit")), 0);
	assert_int_equal(unlink(tmpdir_path(other, "weir.commit")), 0);
	run_app(home, other, "one-b", "r2", "f2");
	const struct weir_topic_spec spec = {.name = "one-s-changelog", .kind = WEIR_TOPIC_CHANGELOG, .partitions = 2};
	OK(weir_recorded_log_open(&lg, home, "one", &dg));
	assert_int_equal(lg->ops->topic(lg, &spec, &c, &n, &dg), WEIR_E_STATE);
	assert_non_null(strstr(weir_diag_text(dg), "weir reset one"));
	weir_diag_destroy(dg);
	dg = NULL;
	lg->ops->close(lg);
	OK(weir_recorded_reset(home, "one", true, NULL, NULL, &dg));
	assert_int_equal(weir_recorded_partitions(home, "one-s-changelog"), 0);
	assert_int_equal(weir_recorded_partitions(home, "one-b-changelog"), 2);
	OK(weir_recorded_log_open(&lg, home, "one", &dg));
	OK(lg->ops->topic(lg, &spec, &c, &n, &dg));
	lg->ops->close(lg);
	free(home);
	free(other);
	tmpdir_remove(base);
}

static long stop_at, calls;

static int stop_hook(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)path;
	(void)bytes;
	return ++calls >= stop_at ? EIO : op == WEIR_SYS_SYNC || op == WEIR_SYS_SYNC_FS ? WEIR_SYS_SKIP : 0;
}

/* Interrupted anywhere, it can be run again. */
static void test_interrupted(void **state)
{
	(void)state;
	bool whole = false;
	for (stop_at = 1; !whole; stop_at++) {
		char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
		     *other = strdup(tmpdir_path(base, "other"));
		struct weir_diag *dg = NULL;
		run_app(home, other, "one", "r1", "f1");
		calls = 0;
		weir_sys_hook = stop_hook;
		whole = weir_recorded_reset(home, "one", true, NULL, NULL, &dg) == WEIR_OK;
		weir_sys_hook = NULL;
		weir_diag_destroy(dg);
		dg = NULL;
		OK(weir_recorded_reset(home, "one", true, NULL, NULL, &dg));
		assert_int_equal(weir_recorded_partitions(home, "r1"), 0);
		run_app(home, other, "one", "r1", "f1");
		free(home);
		free(other);
		tmpdir_remove(base);
	}
	assert_true(stop_at > 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reset), cmocka_unit_test(test_without_traces),
					   cmocka_unit_test(test_lost_commit_file), cmocka_unit_test(test_interrupted)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
