/* test_log.c: a log of results and changelogs in recorded topics: committed or not there, and a stop at every system
 * call. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "io/recorded/log.h"
#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"
#include "tests/support/tmpdir.h"

/* ---- helpers ---- */

static void ok_at(int line, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK) {
		print_error("line %d: %s\n", line, weir_diag_text(*dg));
		fail();
	}
}
#define OK(call) ok_at(__LINE__, (call), &dg)

static void put(struct weir_log *lg, uint32_t topic, uint32_t partition, const char *key, const char *value)
{
	struct weir_diag *dg = NULL;
	struct weir_out r = {
		.key = {key, strlen(key)}, .value = {value, value == NULL ? 0 : strlen(value)}, .timestamp = 7};
	OK(lg->ops->append(lg, topic, partition, &r, &dg));
}

struct text {
	char all[65536];
	size_t bytes;
};

static void text_add(struct text *t, const struct weir_record *r)
{
	int n = snprintf(t->all + t->bytes, sizeof t->all - t->bytes, "%lld:%.*s=%.*s ", (long long)r->offset,
			 (int)r->key_bytes, (const char *)r->key, r->value == NULL ? 4 : (int)r->value_bytes,
			 r->value == NULL ? "null" : (const char *)r->value);
	assert_true(n > 0 && (size_t)n < sizeof t->all - t->bytes);
	t->bytes += (size_t)n;
}

static enum weir_err each_text(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	(void)dg;
	text_add(ctx, r);
	return WEIR_OK;
}

static const char *log_text(struct weir_log *lg, uint32_t topic, uint32_t partition)
{
	static struct text t;
	struct weir_diag *dg = NULL;
	t.bytes = 0;
	t.all[0] = '\0';
	OK(lg->ops->read(lg, topic, partition, each_text, &t, &dg));
	return t.all;
}

/* What a reader without any handle sees of a topic, partition by partition. */
static const char *reader_text(const char *dir, const char *topic, bool uncommitted)
{
	static struct text t;
	struct weir_diag *dg = NULL;
	struct weir_stream_log *sl;
	struct weir_recorded_source_spec spec = {.path = dir,
						 .topics = &topic,
						 .topic_count = 1,
						 .bounded = WEIR_STARTUP_LATEST,
						 .ignore_commit_file = uncommitted};
	t.bytes = 0;
	t.all[0] = '\0';
	if (weir_recorded_source_open(&sl, &spec, &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		return "(none)";
	}
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		enum weir_poll poll;
		t.bytes += (size_t)sprintf(t.all + t.bytes, "[%u] ", p);
		while ((poll = sl->ops->peek(sl, p, &ts, &dg)) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			OK(sl->ops->take(sl, p, &u, &dg));
			for (uint32_t i = 0; i < u->count; i++)
				text_add(&t, &u->records[i]);
			sl->ops->release(sl, u);
		}
		assert_int_equal(poll, WEIR_POLL_BOUND);
	}
	sl->ops->close(sl);
	return t.all;
}

static struct weir_log *log_open(const char *dir, const char *app)
{
	struct weir_diag *dg = NULL;
	struct weir_log *lg;
	OK(weir_recorded_log_open(&lg, dir, app, &dg));
	return lg;
}

static uint32_t topic(struct weir_log *lg, const char *name, enum weir_topic_kind kind, const char *path,
		      uint32_t partitions)
{
	struct weir_diag *dg = NULL;
	uint32_t number, count;
	struct weir_topic_spec spec = {.name = name, .kind = kind, .path = path, .partitions = partitions};
	OK(lg->ops->topic(lg, &spec, &number, &count, &dg));
	OK(lg->ops->make(lg, &dg));
	assert_int_equal(count, partitions);
	return number;
}

/* ---- tests ---- */

static void test_commit_and_resume(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(dir, "app");
	assert_int_equal(lg->ops->epoch(lg), 0);
	uint32_t out = topic(lg, "revenue", WEIR_TOPIC_RESULT, NULL, 2);
	uint32_t cl = topic(lg, "app-totals-changelog", WEIR_TOPIC_CHANGELOG, NULL, 1);
	assert_string_equal(reader_text(dir, "revenue", false), "[0] [1] ");
	put(lg, out, 0, "a", "1");
	put(lg, out, 1, "b", "2");
	put(lg, cl, 0, "k", "state1");
	OK(lg->ops->cut(lg, &dg));
	assert_string_equal(reader_text(dir, "revenue", false), "[0] [1] "); /* nothing before the commit */
	assert_string_equal(reader_text(dir, "revenue", true), "[0] 0:a=1 [1] 0:b=2 ");
	OK(lg->ops->commit(lg, 1, &dg));
	assert_string_equal(reader_text(dir, "revenue", false), "[0] 0:a=1 [1] 0:b=2 ");
	put(lg, out, 0, "a", "uncommitted");
	put(lg, cl, 0, "k", "state2");
	OK(lg->ops->cut(lg, &dg));
	assert_string_equal(reader_text(dir, "revenue", false), "[0] 0:a=1 [1] 0:b=2 ");
	assert_string_equal(log_text(lg, cl, 0), "0:k=state1 ");
	lg->ops->close(lg);

	lg = log_open(dir, "app");
	assert_int_equal(lg->ops->epoch(lg), 1);
	assert_string_equal(reader_text(dir, "revenue", true), "[0] 0:a=1 [1] 0:b=2 "); /* truncated */
	out = topic(lg, "revenue", WEIR_TOPIC_RESULT, NULL, 2);
	cl = topic(lg, "app-totals-changelog", WEIR_TOPIC_CHANGELOG, NULL, 1);
	assert_string_equal(log_text(lg, cl, 0), "0:k=state1 ");
	put(lg, out, 0, "a", "3");
	put(lg, cl, 0, "k", NULL);
	OK(lg->ops->cut(lg, &dg));
	OK(lg->ops->commit(lg, 2, &dg));
	assert_string_equal(log_text(lg, cl, 0), "0:k=state1 1:k=null ");
	lg->ops->close(lg);
	assert_string_equal(reader_text(dir, "revenue", false), "[0] 0:a=1 1:a=3 [1] 0:b=2 ");
	tmpdir_remove(dir);
}

/* A commit does not end the batches of result topics by itself; order points (cut) do: same bytes however often
 * committed. */
static void test_result_bytes_do_not_depend_on_commits(void **state)
{
	(void)state;
	uint8_t *bytes[2];
	size_t sizes[2];
	for (int k = 0; k < 2; k++) {
		char *dir = tmpdir_make();
		struct weir_diag *dg = NULL;
		struct weir_log *lg = log_open(dir, "app");
		uint32_t out = topic(lg, "r", WEIR_TOPIC_RESULT, NULL, 1);
		for (int point = 0; point < 6; point++) {
			for (int i = 0; i < 50; i++)
				put(lg, out, 0, "key", "some value");
			OK(lg->ops->cut(lg, &dg));
			if (k == 0 || point == 5)
				OK(lg->ops->commit(lg, (uint64_t)point + 1, &dg));
		}
		lg->ops->close(lg);
		bytes[k] = tmpdir_file_read(tmpdir_path(dir, "r-0/00000000000000000000.log"), &sizes[k]);
		tmpdir_remove(dir);
	}
	assert_int_equal(sizes[0], sizes[1]);
	assert_memory_equal(bytes[0], bytes[1], sizes[0]);
	free(bytes[0]);
	free(bytes[1]);
}

static void test_one_engine_at_a_time(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(dir, "app"), *second;
	assert_int_equal(weir_recorded_log_open(&second, dir, "app", &dg), WEIR_E_UNAVAILABLE);
	assert_non_null(strstr(weir_diag_text(dg), "weir.app.lock"));
	weir_diag_destroy(dg);
	dg = NULL;
	second = log_open(dir, "other"); /* another application may share the folder */
	uint32_t a = topic(lg, "a", WEIR_TOPIC_RESULT, NULL, 1), b = topic(second, "b", WEIR_TOPIC_RESULT, NULL, 1);
	put(lg, a, 0, "k", "1");
	put(second, b, 0, "k", "2");
	OK(lg->ops->commit(lg, 1, &dg));
	OK(second->ops->commit(second, 1, &dg));
	put(lg, a, 0, "k", "3");
	OK(lg->ops->commit(lg, 2, &dg));
	assert_string_equal(reader_text(dir, "a", false), "[0] 0:k=1 1:k=3 ");
	assert_string_equal(reader_text(dir, "b", false), "[0] 0:k=2 ");
	uint32_t number, count;
	struct weir_topic_spec spec = {.name = "b", .kind = WEIR_TOPIC_RESULT, .partitions = 1};
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "belongs to application other"));
	weir_diag_destroy(dg);
	lg->ops->close(lg);
	second->ops->close(second);
	tmpdir_remove(dir);
}

/* A run that is refused after its topics were looked at leaves none behind. */
static void test_nothing_is_made_before_it_is_asked_for(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	const char *home = tmpdir_path(dir, "home"), *other = tmpdir_path(dir, "other");
	struct weir_log *lg = log_open(home, "app");
	uint32_t r, c, count;
	struct weir_topic_spec spec = {.name = "r", .kind = WEIR_TOPIC_RESULT, .partitions = 3, .path = other};
	OK(lg->ops->topic(lg, &spec, &r, &count, &dg));
	assert_int_equal(count, 3);
	spec = (struct weir_topic_spec){.name = "c", .kind = WEIR_TOPIC_CHANGELOG, .partitions = 2};
	OK(lg->ops->topic(lg, &spec, &c, &count, &dg));
	assert_string_equal(log_text(lg, c, 0), "");
	for (int made = 0; made < 2; made++) {
		assert_int_equal(weir_recorded_partitions(other, "r"), made ? 3 : 0);
		assert_int_equal(weir_recorded_partitions(home, "c"), made ? 2 : 0);
		assert_int_equal(tmpdir_file_bytes(tmpdir_path(home, WEIR_COMMIT_NAME)) >= 0, made);
		assert_int_equal(access(tmpdir_path(other, "r-2"), F_OK) == 0, made);
		OK(lg->ops->make(lg, &dg));
	}
	put(lg, r, 2, "k", "1");
	OK(lg->ops->commit(lg, 1, &dg));
	lg->ops->close(lg);
	assert_string_equal(reader_text(other, "r", false), "[0] [1] [2] 0:k=1 ");
	tmpdir_remove(dir);
}

static void test_partition_counts(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(dir, "app");
	topic(lg, "r", WEIR_TOPIC_RESULT, NULL, 3);
	topic(lg, "c", WEIR_TOPIC_CHANGELOG, NULL, 3);
	lg->ops->close(lg);
	lg = log_open(dir, "app");
	uint32_t number, count;
	struct weir_topic_spec spec = {.name = "r", .kind = WEIR_TOPIC_RESULT, .partitions = 5};
	OK(lg->ops->topic(lg, &spec, &number, &count, &dg));
	assert_int_equal(count, 3); /* what is there is kept */
	spec.name = "c";
	spec.kind = WEIR_TOPIC_CHANGELOG;
	OK(lg->ops->topic(lg, &spec, &number, &count, &dg));
	assert_int_equal(count, 3);
	lg->ops->close(lg);
	lg = log_open(dir, "app");
	spec.partitions_fixed = true;
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "has 3 partitions, wanted are 5"));
	weir_diag_destroy(dg);
	dg = NULL;
	lg->ops->close(lg);
	lg = log_open(dir, "app");
	spec = (struct weir_topic_spec){.name = "new", .kind = WEIR_TOPIC_RESULT, .partitions = 5, .must_exist = true};
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "has no topic new"));
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(mkdir(tmpdir_path(dir, "new-99999999"), 0700), 0);
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "there is a partition 99999999"));
	weir_diag_destroy(dg);
	dg = NULL;
	spec = (struct weir_topic_spec){
		.name = "r", .kind = WEIR_TOPIC_RESULT, .partitions = 5, .partitions_fixed = true};
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	weir_diag_destroy(dg);
	lg->ops->close(lg);
	tmpdir_remove(dir);
}

/* Results in another folder outlive a home that was removed: they are not begun again behind themselves. */
static void test_lost_home(void **state)
{
	(void)state;
	char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
	     *other = strdup(tmpdir_path(base, "other")), command[600];
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(home, "app");
	uint32_t number = topic(lg, "r", WEIR_TOPIC_RESULT, other, 1), count;
	(void)topic(lg, "r-2", WEIR_TOPIC_RESULT, other, 1);
	put(lg, number, 0, "k", "1");
	OK(lg->ops->commit(lg, 1, &dg));
	lg->ops->close(lg);
	struct weir_topic_spec spec = {.name = "r", .kind = WEIR_TOPIC_RESULT, .partitions = 1, .path = other};
	lg = log_open(tmpdir_path(base, "elsewhere"), "app");
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "the state of application app lives in"));
	weir_diag_destroy(dg);
	dg = NULL;
	lg->ops->close(lg);
	snprintf(command, sizeof command, "rm -r '%s'", home);
	assert_int_equal(system(command), 0);
	lg = log_open(home, "app");
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_STATE);
	assert_non_null(strstr(weir_diag_text(dg), "whose state is not in"));
	weir_diag_destroy(dg);
	dg = NULL;
	spec.name = "r-2"; /* has nothing yet, but its folder's section would forget the other */
	assert_int_equal(lg->ops->topic(lg, &spec, &number, &count, &dg), WEIR_E_STATE);
	weir_diag_destroy(dg);
	lg->ops->close(lg);
	free(home);
	free(other);
	tmpdir_remove(base);
}

/* Results behind files of nobody: those stay, and are read before ours. */
static void test_behind_foreign_files(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	OK(weir_topic_writer_open(&w, dir, "r", 1, WEIR_CODEC_NONE, &dg));
	for (int i = 0; i < 3; i++)
		OK(weir_topic_writer_put(w, 0, &(struct weir_out){.key = {"g", 1}, .value = {"gen", 3}}, &dg));
	OK(weir_topic_writer_close(w, &dg));
	for (int round = 0; round < 3; round++) {
		struct weir_log *lg = log_open(dir, "app");
		uint32_t out = topic(lg, "r", WEIR_TOPIC_RESULT, NULL, 1);
		put(lg, out, 0, "k", "v");
		OK(lg->ops->cut(lg, &dg));
		if (round == 1)
			OK(lg->ops->commit(lg, 1, &dg));
		lg->ops->close(lg);
		assert_string_equal(reader_text(dir, "r", false),
				    round == 0 ? "[0] 0:g=gen 1:g=gen 2:g=gen " : "[0] 0:g=gen 1:g=gen 2:g=gen 3:k=v ");
	}
	assert_int_equal(weir_topic_writer_open(&w, dir, "r", 1, WEIR_CODEC_NONE, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "belongs to application app"));
	weir_diag_destroy(dg);
	tmpdir_remove(dir);
}

static void test_committed_file_too_short(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(dir, "app");
	uint32_t out = topic(lg, "r", WEIR_TOPIC_RESULT, NULL, 1);
	put(lg, out, 0, "k", "v");
	OK(lg->ops->commit(lg, 1, &dg));
	lg->ops->close(lg);
	const char *file = tmpdir_path(dir, "r-0/00000000000000000000.log");
	assert_int_equal(truncate(file, 10), 0);
	assert_int_equal(weir_recorded_log_open(&lg, dir, "app", &dg), WEIR_E_CORRUPT);
	assert_non_null(strstr(weir_diag_text(dg), "00000000000000000000.log has 10 bytes"));
	assert_non_null(strstr(weir_diag_report(dg), "weir reset app"));
	weir_diag_destroy(dg);
	tmpdir_remove(dir);
}

/* ---- a stop at every system call ---- */

/* Between the stops: thousands of syncs would only make the disk busy. */
static int no_sync(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)path;
	(void)bytes;
	return op == WEIR_SYS_SYNC || op == WEIR_SYS_SYNC_FS ? WEIR_SYS_SKIP : 0;
}

static long stop_at, stop_seen;
static bool stop_half; /* the write at which it stops is done in half */

static int stop_hook(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)path;
	stop_seen++;
	if (stop_seen < stop_at)
		return op == WEIR_SYS_SYNC || op == WEIR_SYS_SYNC_FS ? WEIR_SYS_SKIP : 0;
	if (op == WEIR_SYS_WRITE)
		*bytes = stop_half && stop_seen == stop_at ? *bytes / 2 : 0;
	return EIO; /* from here on nothing has an effect: as if the process were gone */
}

enum { EPOCHS = 4 };

/* Writes epochs to two folders with rolled segments and a rewritten changelog. Returns the last epoch whose commit said
 * OK. */
static uint64_t write_epochs(const char *home, const char *other)
{
	struct weir_log *lg;
	struct weir_diag *dg = NULL;
	uint64_t done = 0;
	uint32_t r = 0, f = 0, c = 0, n;
	if (weir_recorded_log_open(&lg, home, "app", &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		return 0;
	}
	weir_recorded_log_set_segment_bytes(lg, 250);
	weir_recorded_log_set_compact_slack(lg, 100);
	done = lg->ops->epoch(lg);
	struct weir_topic_spec specs[3] = {{.name = "r", .kind = WEIR_TOPIC_RESULT, .partitions = 2},
					   {.name = "f", .kind = WEIR_TOPIC_RESULT, .partitions = 1, .path = other},
					   {.name = "c", .kind = WEIR_TOPIC_CHANGELOG, .partitions = 1}};
	enum weir_err err = lg->ops->topic(lg, &specs[0], &r, &n, &dg);
	if (err == WEIR_OK)
		err = lg->ops->topic(lg, &specs[1], &f, &n, &dg);
	if (err == WEIR_OK)
		err = lg->ops->topic(lg, &specs[2], &c, &n, &dg);
	if (err == WEIR_OK)
		err = lg->ops->make(lg, &dg);
	for (uint64_t epoch = done + 1; err == WEIR_OK && epoch <= EPOCHS; epoch++) {
		char text[64];
		for (int i = 0; i < 3 && err == WEIR_OK; i++) {
			snprintf(text, sizeof text, "e%llu.%d", (unsigned long long)epoch, i);
			struct weir_out o = {.key = {"k", 1}, .value = {text, strlen(text)}};
			err = lg->ops->append(lg, r, (uint32_t)i % 2, &o, &dg);
			if (err == WEIR_OK)
				err = lg->ops->append(lg, f, 0, &o, &dg);
			if (err == WEIR_OK)
				err = lg->ops->append(lg, c, 0, &o, &dg);
			if (err == WEIR_OK)
				err = lg->ops->cut(lg, &dg);
		}
		if (err == WEIR_OK)
			err = lg->ops->commit(lg, epoch, &dg);
		if (err == WEIR_OK)
			done = epoch;
	}
	lg->ops->close(lg);
	weir_diag_destroy(dg);
	return done;
}

static void expected_results(char *text, uint64_t epochs, int partition, int step)
{
	int offset = 0;
	*text = '\0';
	for (uint64_t e = 1; e <= epochs; e++)
		for (int i = partition; i < 3; i += step)
			text += sprintf(text, "%d:k=e%llu.%d ", offset++, (unsigned long long)e, i);
}

static void check_epochs(const char *home, const char *other, uint64_t epochs)
{
	char a[2000], b[2000], want[4100];
	expected_results(a, epochs, 0, 2);
	expected_results(b, epochs, 1, 2);
	snprintf(want, sizeof want, "[0] %s[1] %s", a, b);
	assert_string_equal(reader_text(home, "r", false), want);
	expected_results(a, epochs, 0, 1);
	snprintf(want, sizeof want, "[0] %s", a);
	assert_string_equal(reader_text(other, "f", false), want);
}

static void test_stop_at_every_call(void **state)
{
	(void)state;
	stop_at = INT64_MAX;
	stop_seen = 0;
	char *base = tmpdir_make(), *home = strdup(tmpdir_path(base, "home")),
	     *other = strdup(tmpdir_path(base, "other"));
	weir_sys_hook = stop_hook;
	assert_int_equal(write_epochs(home, other), EPOCHS);
	weir_sys_hook = no_sync;
	long calls = stop_seen;
	assert_true(calls > 60);
	check_epochs(home, other, EPOCHS);
	tmpdir_remove(base);
	free(home);
	free(other);
	unsigned old = 0, new = 0;
	for (int half = 0; half < 2; half++)
		for (long at = 1; at <= calls; at++) {
			base = tmpdir_make();
			home = strdup(tmpdir_path(base, "home"));
			other = strdup(tmpdir_path(base, "other"));
			stop_at = at;
			stop_seen = 0;
			stop_half = half == 1;
			weir_sys_hook = stop_hook;
			uint64_t said = write_epochs(home, other);
			weir_sys_hook = no_sync;
			/* Readers before any recovery: a whole epoch, the said one or the one after. The foreign folder
			 * may lag. */
			const char *seen = reader_text(home, "r", false);
			char a[2000], b[2000], want[2][4100];
			for (int k = 0; k < 2; k++) {
				expected_results(a, said + (uint64_t)k, 0, 2);
				expected_results(b, said + (uint64_t)k, 1, 2);
				snprintf(want[k], sizeof want[k], "[0] %s[1] %s", a, b);
			}
			if (strcmp(seen, "(none)") != 0 && strcmp(seen, want[0]) != 0)
				assert_string_equal(seen, want[1]);
			/* Reopened: exactly that epoch everywhere. */
			struct weir_diag *dg = NULL;
			struct weir_log *lg;
			OK(weir_recorded_log_open(&lg, home, "app", &dg));
			uint64_t epoch = lg->ops->epoch(lg);
			assert_true(epoch == said || epoch == said + 1);
			old += epoch == said;
			new += epoch != said;
			uint32_t c = topic(lg, "c", WEIR_TOPIC_CHANGELOG, NULL, 1);
			if (epoch != 0) {
				char last[64];
				snprintf(last, sizeof last, "k=e%llu.2 ", (unsigned long long)epoch);
				const char *text = log_text(lg, c, 0);
				assert_true(strlen(text) > strlen(last));
				assert_string_equal(text + strlen(text) - strlen(last), last);
			}
			lg->ops->close(lg);
			if (epoch != 0)
				check_epochs(home, other, epoch);
			/* And it goes on to the same end. */
			assert_int_equal(write_epochs(home, other), EPOCHS);
			check_epochs(home, other, EPOCHS);
			tmpdir_remove(base);
			free(home);
			free(other);
		}
	weir_sys_hook = NULL;
	assert_true(old > 0 && new > 0);
}

/* Order of durability: when a commit file is renamed, every file written before has been synced since. */
static char written[256][512];
static int written_count;
static bool order_broken;

static int order_hook(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)bytes;
	if (op == WEIR_SYS_WRITE && strstr(path, ".index") == NULL && written_count < 256)
		snprintf(written[written_count++], sizeof written[0], "%s", path);
	if (op == WEIR_SYS_SYNC_FS)
		for (int i = 0; i < written_count; i++)
			written[i][0] = '\1';
	if (op == WEIR_SYS_SYNC)
		for (int i = 0; i < written_count; i++)
			if (strncmp(written[i], path, strlen(written[i])) == 0)
				written[i][0] = '\1'; /* matches nothing */
	if (op == WEIR_SYS_RENAME)
		for (int i = 0; i < written_count; i++)
			order_broken |= written[i][0] != '\1';
	return 0;
}

static void test_data_is_durable_before_the_commit_file(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	written_count = 0;
	order_broken = false;
	weir_sys_hook = order_hook;
	assert_int_equal(write_epochs(tmpdir_path(dir, "home"), tmpdir_path(dir, "other")), EPOCHS);
	weir_sys_hook = NULL;
	assert_true(written_count > 20);
	assert_false(order_broken);
	tmpdir_remove(dir);
}

static void test_errors_stick(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_log *lg = log_open(dir, "app");
	uint32_t r = topic(lg, "r", WEIR_TOPIC_RESULT, NULL, 1);
	put(lg, r, 0, "k", "1");
	stop_at = 1;
	stop_seen = 0;
	weir_sys_hook = stop_hook;
	assert_int_equal(lg->ops->commit(lg, 1, &dg), WEIR_E_IO);
	weir_sys_hook = NULL;
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(lg->ops->commit(lg, 1, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "failed before"));
	weir_diag_destroy(dg);
	lg->ops->close(lg);
	assert_string_equal(reader_text(dir, "r", false), "[0] ");
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commit_and_resume),
		cmocka_unit_test(test_result_bytes_do_not_depend_on_commits),
		cmocka_unit_test(test_one_engine_at_a_time),
		cmocka_unit_test(test_nothing_is_made_before_it_is_asked_for),
		cmocka_unit_test(test_partition_counts),
		cmocka_unit_test(test_lost_home),
		cmocka_unit_test(test_behind_foreign_files),
		cmocka_unit_test(test_committed_file_too_short),
		cmocka_unit_test(test_stop_at_every_call),
		cmocka_unit_test(test_data_is_durable_before_the_commit_file),
		cmocka_unit_test(test_errors_stick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
