/* test_compact.c: rewritten changelog partitions hold exactly the newest record of each key, keep their offsets and
 * their bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "io/recorded/log.h"
#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"
#include "tests/support/tmpdir.h"

enum { KEYS = 200, VALUE_BYTES_MAX = 400 };

/* The naive twin: what each key's newest record says. */
struct twin {
	int64_t offset[KEYS]; /* -1: no record, or deleted */
	uint32_t stamp[KEYS];
	int64_t next;
};

static void ok_at(int line, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK) {
		print_error("line %d: %s\n", line, weir_diag_text(*dg));
		fail();
	}
}
#define OK(call) ok_at(__LINE__, (call), &dg)

static struct weir_log *log_open(const char *dir, uint64_t slack, uint64_t segment_bytes, uint32_t *topic)
{
	struct weir_diag *dg = NULL;
	struct weir_log *lg;
	uint32_t n;
	OK(weir_recorded_log_open(&lg, dir, "app", &dg));
	weir_recorded_log_set_compact_slack(lg, slack);
	weir_recorded_log_set_segment_bytes(lg, segment_bytes);
	OK(lg->ops->topic(lg, &(struct weir_topic_spec){.name = "c", .kind = WEIR_TOPIC_CHANGELOG, .partitions = 1},
			  topic, &n, &dg));
	OK(lg->ops->make(lg, &dg));
	return lg;
}

static void put(struct weir_log *lg, uint32_t topic, struct twin *tw, int key, bool tombstone, uint32_t stamp)
{
	static uint8_t value[VALUE_BYTES_MAX];
	struct weir_diag *dg = NULL;
	memcpy(value, &stamp, sizeof stamp);
	struct weir_out r = {.key = {&key, sizeof key}, .timestamp = stamp};
	if (!tombstone)
		r.value = (struct weir_slice){value, sizeof stamp + stamp % (VALUE_BYTES_MAX - sizeof stamp)};
	OK(lg->ops->append(lg, topic, 0, &r, &dg));
	tw->offset[key] = tombstone ? -1 : tw->next;
	tw->stamp[key] = stamp;
	tw->next++;
}

struct seen {
	struct twin tw;
	uint32_t records;
};

static enum weir_err see(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct seen *sn = ctx;
	int key;
	(void)dg;
	memcpy(&key, r->key, sizeof key);
	assert_true(r->offset >= sn->tw.next); /* ascending */
	sn->tw.next = r->offset + 1;
	sn->records++;
	sn->tw.offset[key] = r->value == NULL ? -1 : r->offset;
	if (r->value != NULL) {
		memcpy(&sn->tw.stamp[key], r->value, sizeof(uint32_t));
		assert_int_equal(r->timestamp, sn->tw.stamp[key]);
		assert_int_equal(r->value_bytes, 4 + sn->tw.stamp[key] % (VALUE_BYTES_MAX - 4));
	}
	return WEIR_OK;
}

static uint32_t check(struct weir_log *lg, uint32_t topic, const struct twin *tw)
{
	struct weir_diag *dg = NULL;
	struct seen sn = {0};
	for (int k = 0; k < KEYS; k++)
		sn.tw.offset[k] = -1;
	OK(lg->ops->read(lg, topic, 0, see, &sn, &dg));
	for (int k = 0; k < KEYS; k++) {
		assert_int_equal(sn.tw.offset[k], tw->offset[k]);
		if (tw->offset[k] >= 0)
			assert_int_equal(sn.tw.stamp[k], tw->stamp[k]);
	}
	return sn.records;
}

static void twin_init(struct twin *tw)
{
	memset(tw, 0, sizeof *tw);
	for (int k = 0; k < KEYS; k++)
		tw->offset[k] = -1;
}

/* Random puts, deletes, commits and restarts against the twin, with segments of a few KiB. */
static void test_random_against_twin(void **state)
{
	(void)state;
	unsigned seed = 20250;
	print_message("seed %u\n", seed);
	srand(seed);
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct twin tw;
	uint32_t topic, live = 0;
	twin_init(&tw);
	struct weir_log *lg = log_open(dir, 20000, 8000, &topic);
	uint64_t epoch = 0, bytes_max = 0;
	uint32_t stamp = 0;
	for (int round = 0; round < 400; round++) {
		for (int n = rand() % 60; n >= 0; n--)
			put(lg, topic, &tw, rand() % KEYS, rand() % 8 == 0, ++stamp);
		OK(lg->ops->commit(lg, ++epoch, &dg));
		uint64_t bytes = tmpdir_bytes(tmpdir_path(dir, "c-0"));
		bytes_max = bytes > bytes_max ? bytes : bytes_max;
		if (rand() % 10 == 0) {
			check(lg, topic, &tw);
			lg->ops->close(lg);
			lg = log_open(dir, 20000, 8000, &topic);
			assert_int_equal(lg->ops->epoch(lg), epoch);
			if (rand() % 2) /* with and without reading first: either way the bound holds */
				check(lg, topic, &tw);
		}
	}
	live = check(lg, topic, &tw);
	assert_true(live < 1000); /* of about 12,000 written */
	/* live: at most 200 keys of about 230 bytes; dead: at most as much + 20,000 + one round's; framing */
	assert_true(bytes_max < 2 * 60000 + 20000 + 30000);
	lg->ops->close(lg);
	tmpdir_remove(dir);
}

static int no_sync(enum weir_sys_op op, const char *path, size_t *bytes)
{
	(void)path;
	(void)bytes;
	return op == WEIR_SYS_SYNC || op == WEIR_SYS_SYNC_FS ? WEIR_SYS_SKIP : 0;
}

/* Numbers that are used again, as packs and markers are: 10,000 epochs stay within live + slack. */
static void test_ten_thousand_epochs(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct twin tw;
	uint32_t topic;
	twin_init(&tw);
	struct weir_log *lg = log_open(dir, 64 * 1024, 0, &topic);
	uint64_t bytes_max = 0;
	for (uint64_t epoch = 1; epoch <= 10000; epoch++) {
		put(lg, topic, &tw, (int)(epoch % 16), false, (uint32_t)epoch);
		put(lg, topic, &tw, 100, false, (uint32_t)epoch);
		OK(lg->ops->commit(lg, epoch, &dg));
		if (epoch % 50 == 0) {
			uint64_t bytes = tmpdir_bytes(tmpdir_path(dir, "c-0"));
			bytes_max = bytes > bytes_max ? bytes : bytes_max;
		}
	}
	assert_true(bytes_max > 64 * 1024 && bytes_max < 192 * 1024);
	assert_true(check(lg, topic, &tw) < 1200);
	lg->ops->close(lg);
	tmpdir_remove(dir);
}

/* Everything deleted: nothing is left but the next offset, which a restart goes on from (BL-081, BL-083, BL-084). */
static void test_all_deleted(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct twin tw;
	uint32_t topic;
	twin_init(&tw);
	struct weir_log *lg = log_open(dir, 100, 0, &topic);
	for (int k = 0; k < 50; k++)
		put(lg, topic, &tw, k, false, 5);
	OK(lg->ops->commit(lg, 1, &dg));
	for (int k = 0; k < 50; k++)
		put(lg, topic, &tw, k, true, 6);
	OK(lg->ops->commit(lg, 2, &dg));
	assert_int_equal(check(lg, topic, &tw), 0);
	lg->ops->close(lg);
	lg = log_open(dir, 100, 0, &topic);
	assert_int_equal(lg->ops->epoch(lg), 2);
	assert_int_equal(check(lg, topic, &tw), 0);
	put(lg, topic, &tw, 7, false, 9);
	assert_int_equal(tw.offset[7], 100);
	OK(lg->ops->commit(lg, 3, &dg));
	assert_int_equal(check(lg, topic, &tw), 1);
	lg->ops->close(lg);
	tmpdir_remove(dir);
}

/* A tombstone stays as long as what it hides: only a rewriting drops both, and only together. */
static void test_deleted_key_stays_deleted(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct twin tw;
	uint32_t topic;
	twin_init(&tw);
	struct weir_log *lg = log_open(dir, 3000, 500, &topic);
	put(lg, topic, &tw, 1, false, 5);
	put(lg, topic, &tw, 2, false, 6);
	put(lg, topic, &tw, 1, true, 7);
	OK(lg->ops->commit(lg, 1, &dg));
	for (uint64_t epoch = 2; epoch < 40; epoch++) {
		put(lg, topic, &tw, 3, false, (uint32_t)epoch * 7);
		OK(lg->ops->commit(lg, epoch, &dg));
		check(lg, topic, &tw);
		lg->ops->close(lg);
		lg = log_open(dir, 3000, 500, &topic);
		check(lg, topic, &tw);
	}
	lg->ops->close(lg);
	tmpdir_remove(dir);
}

/* Files that a crash between the commit and their removal leaves behind are not read, and go at the next open. */
static void test_left_over_generation(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct twin tw;
	uint32_t topic;
	size_t bytes;
	twin_init(&tw);
	struct weir_log *lg = log_open(dir, 1000, 0, &topic);
	for (int i = 0; i < 4; i++)
		put(lg, topic, &tw, 1, false, 10);
	OK(lg->ops->commit(lg, 1, &dg));
	uint8_t *old = tmpdir_file_read(tmpdir_path(dir, "c-0/00000000000000000000.log"), &bytes);
	for (int i = 0; i < 100; i++)
		put(lg, topic, &tw, 1, false, 11);
	OK(lg->ops->commit(lg, 2, &dg));
	assert_int_equal(tmpdir_file_bytes(tmpdir_path(dir, "c-0/00000000000000000000.log")), -1);
	assert_true(tmpdir_file_bytes(tmpdir_path(dir, "c-0/00000000000000000000.1.log")) > 0);
	lg->ops->close(lg);
	tmpdir_file_write(tmpdir_path(dir, "c-0/00000000000000000000.log"), old, bytes);
	tmpdir_file_write(tmpdir_path(dir, "c-0/00000000000000000050.log"), old, bytes);
	const char *name = "c";
	struct weir_recorded_source_spec spec = {
		.path = dir, .topics = &name, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	struct weir_stream_log *sl;
	struct weir_unit *u;
	int64_t ts;
	OK(weir_recorded_source_open(&sl, &spec, &dg));
	assert_int_equal(sl->ops->peek(sl, 0, &ts, &dg), WEIR_POLL_UNIT);
	OK(sl->ops->take(sl, 0, &u, &dg));
	assert_int_equal(u->count, 1);
	assert_int_equal(u->records[0].offset, 103);
	sl->ops->release(sl, u);
	assert_int_equal(sl->ops->peek(sl, 0, &ts, &dg), WEIR_POLL_BOUND);
	sl->ops->close(sl);
	lg = log_open(dir, 1000, 0, &topic);
	assert_int_equal(check(lg, topic, &tw), 1);
	assert_int_equal(tmpdir_file_bytes(tmpdir_path(dir, "c-0/00000000000000000000.log")), -1);
	assert_int_equal(tmpdir_file_bytes(tmpdir_path(dir, "c-0/00000000000000000050.log")), -1);
	lg->ops->close(lg);
	free(old);
	tmpdir_remove(dir);
}

static void test_live_counts(void **state)
{
	(void)state;
	struct weir_live lv = {0};
	uint64_t live[500] = {0}, all = 0, sum = 0;
	weir_live_reset(&lv);
	srand(3);
	for (int i = 0; i < 20000; i++) {
		uint32_t key = (uint32_t)(rand() % 500), bytes = (uint32_t)(rand() % 1000);
		bool tombstone = rand() % 3 == 0;
		uint64_t record = sizeof key + (tombstone ? 0 : bytes) + WEIR_LIVE_RECORD_BYTES;
		weir_live_put(&lv, &key, sizeof key, tombstone, tombstone ? 0 : bytes);
		all += record;
		sum = sum - live[key] + (tombstone ? 0 : record);
		live[key] = tombstone ? 0 : record;
		assert_int_equal(lv.bytes_all, all);
		assert_int_equal(lv.bytes_live, sum);
	}
	weir_live_fini(&lv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_against_twin),  cmocka_unit_test(test_ten_thousand_epochs),
		cmocka_unit_test(test_all_deleted),          cmocka_unit_test(test_deleted_key_stays_deleted),
		cmocka_unit_test(test_left_over_generation), cmocka_unit_test(test_live_counts),
	};
	weir_sys_hook = no_sync; /* thousands of commits: what is durable is test_log's matter */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
