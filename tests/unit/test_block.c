/* test_block.c: recorded topics read where the page cache has them: the same records as by reading, at every place that
 * a file can end at; files that are deleted or cut meanwhile. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/recorded/block.h"
#include "io/recorded/reader.h"
#include "io/recorded/recorded.h"
#include "tests/support/tmpdir.h"

static void ok_at(int line, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK) {
		print_error("line %d: %s\n", line, weir_diag_text(*dg));
		fail();
	}
}
#define OK(call) ok_at(__LINE__, (call), &dg)

static const char *log_of(const char *dir)
{
	return tmpdir_path(dir, "t-0/00000000000000000000.log");
}

static struct weir_stream_log *open_topic(const char *dir, bool unbounded)
{
	static const char *const topic = "t";
	struct weir_diag *dg = NULL;
	struct weir_stream_log *sl;
	struct weir_recorded_source_spec spec = {.path = dir,
						 .topics = &topic,
						 .topic_count = 1,
						 .bounded = WEIR_STARTUP_LATEST,
						 .unbounded = unbounded,
						 .map_bytes = 64 << 20};
	OK(weir_recorded_source_open(&sl, &spec, &dg));
	return sl;
}

/* count records, the i-th of value_bytes or, the last, last_bytes; a batch of ten each. */
static void make_topic(const char *dir, int count, size_t value_bytes, size_t last_bytes)
{
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	uint8_t *value = malloc(value_bytes + last_bytes);
	assert_non_null(value);
	OK(weir_topic_writer_open(&w, dir, "t", 1, WEIR_CODEC_NONE, &dg));
	for (int i = 0; i < count; i++) {
		size_t bytes = i + 1 == count ? last_bytes : value_bytes;
		memset(value, 'a' + i % 26, bytes);
		OK(weir_topic_writer_put(
			w, 0, &(struct weir_out){.key = {"k", 1}, .value = {value, bytes}, .timestamp = i}, &dg));
		if (i % 10 == 9)
			OK(weir_topic_writer_cut(w, &dg));
	}
	OK(weir_topic_writer_close(w, &dg));
	free(value);
}

/* Takes up to most units (those held stay held until the end) and checks each record; the number of records. *last:
 * what peek said at the end. */
static int take(struct weir_stream_log *sl, int from, int most, size_t value_bytes, enum weir_poll *last,
		struct weir_diag **dg)
{
	struct weir_unit *held[512];
	int64_t ts;
	int units = 0, records = 0;
	while (units < most && (*last = sl->ops->peek(sl, 0, &ts, dg)) == WEIR_POLL_UNIT) {
		assert_true(units < (int)WEIR_COUNT_OF(held));
		if (sl->ops->take(sl, 0, &held[units], dg) != WEIR_OK) {
			*last = WEIR_POLL_ERROR;
			break;
		}
		units++;
	}
	for (int i = 0; i < units; i++) {
		for (uint32_t r = 0; r < held[i]->count; r++, records++) {
			const struct weir_record *rc = &held[i]->records[r];
			assert_int_equal(rc->offset, from + records);
			assert_true(rc->value_bytes == value_bytes || held[i]->next_offset == rc->offset + 1);
			for (uint32_t b = 0; b < rc->value_bytes; b += 61)
				assert_int_equal(rc->value[b], 'a' + rc->offset % 26);
		}
		sl->ops->release(sl, held[i]);
	}
	return records;
}

/* Where the file ends just before, at and behind the end of a page, and where the pad does. */
static void test_ends_of_files(void **state)
{
	(void)state;
	static const int ends[] = {
		-WEIR_PAYLOAD_PAD - 1, -WEIR_PAYLOAD_PAD, 1 - WEIR_PAYLOAD_PAD, -1, 0, 1, WEIR_PAYLOAD_PAD, 2000};
	const int64_t page = (int64_t)weir_page_bytes();
	enum { COUNT = 95, VALUE = 700 };
	struct weir_diag *dg = NULL;
	for (size_t e = 0; e < WEIR_COUNT_OF(ends); e++) {
		char *dir = tmpdir_make();
		make_topic(dir, COUNT, VALUE, VALUE);
		int64_t bytes = tmpdir_file_bytes(log_of(dir));
		int64_t more = (ends[e] - bytes % page + 2 * page) % page;
		tmpdir_remove(dir);
		dir = tmpdir_make();
		make_topic(dir, COUNT, VALUE, VALUE + (size_t)more);
		assert_int_equal((tmpdir_file_bytes(log_of(dir)) - ends[e]) % page, 0);
		for (int unbounded = 0; unbounded < 2; unbounded++) {
			enum weir_poll last;
			struct weir_stream_log *sl = open_topic(dir, unbounded != 0);
			assert_int_equal(take(sl, 0, INT32_MAX, VALUE, &last, &dg), COUNT);
			assert_int_equal(last, unbounded ? WEIR_POLL_EMPTY : WEIR_POLL_BOUND);
			sl->ops->close(sl);
		}
		tmpdir_remove(dir);
	}
}

/* More than one mapping, and batches that are larger than one. */
static void test_several_mappings(void **state)
{
	(void)state;
	enum { COUNT = 400, VALUE = 9000 /* 90,000 bytes a batch */ };
	static const size_t maps[] = {8192, 65536, 250000, 0};
	struct weir_diag *dg = NULL;
	char *dir = tmpdir_make();
	make_topic(dir, COUNT, VALUE, VALUE);
	for (size_t m = 0; m < WEIR_COUNT_OF(maps); m++) {
		struct weir_reader_env env;
		struct weir_reader rd;
		struct weir_segs ss;
		struct weir_commit none = {0};
		weir_reader_env_init(&env);
		env.block_bytes = 16384;
		env.map_bytes = maps[m];
		OK(weir_segs_list(&ss, dir, "t", 0, &none, false, &dg));
		OK(weir_reader_open(&rd, &env, dir, "t", 0, &ss, &dg));
		int64_t ts, want = 0, mapped = 0;
		struct weir_unit *u, *before = NULL;
		while (weir_reader_peek(&rd, &ts, &dg) == WEIR_POLL_UNIT) {
			OK(weir_reader_take(&rd, &u, &dg));
			mapped += rd.block->map != NULL ? u->count : 0;
			for (uint32_t i = 0; i < u->count; i++, want++) {
				assert_int_equal(u->records[i].offset, want);
				assert_int_equal(u->records[i].value_bytes, VALUE);
				assert_int_equal(u->records[i].value[VALUE - 1], 'a' + want % 26);
			}
			/* The one before is still there, although the reader has gone on to another mapping. */
			if (before) {
				assert_int_equal(before->records[0].value[0], 'a' + before->records[0].offset % 26);
				weir_reader_release(&env, before);
			}
			before = u;
		}
		assert_int_equal(want, COUNT);
		assert_true(maps[m] != 0 ? mapped >= COUNT - 10 : mapped == 0);
		weir_reader_release(&env, before);
		weir_reader_close(&rd);
		weir_reader_env_fini(&env);
	}
	tmpdir_remove(dir);
}

/* Retention takes a segment away: whoever reads it reads on. */
static void test_deleted_while_read(void **state)
{
	(void)state;
	enum { COUNT = 4000, VALUE = 1000 };
	struct weir_diag *dg = NULL;
	char *dir = tmpdir_make();
	make_topic(dir, COUNT, VALUE, VALUE);
	enum weir_poll last;
	struct weir_stream_log *sl = open_topic(dir, false);
	assert_int_equal(take(sl, 0, 3, VALUE, &last, &dg), 30);
	assert_int_equal(unlink(log_of(dir)), 0);
	assert_int_equal(take(sl, 30, INT32_MAX, VALUE, &last, &dg), COUNT - 30);
	assert_int_equal(last, WEIR_POLL_BOUND);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* Cut while it is read: an error that says so. A broker's newest segment may be cut anywhere, other files are not cut
 * by anybody who knows them; of those it is noticed before the next pages are asked for. */
static void test_cut_while_read(void **state)
{
	(void)state;
	enum { COUNT = 4000, VALUE = 1000 };
	for (int broker = 0; broker < 2; broker++) {
		struct weir_diag *dg = NULL;
		char *dir = tmpdir_make();
		make_topic(dir, COUNT, VALUE, VALUE);
		if (broker)
			tmpdir_file_write(tmpdir_path(dir, "t-0/00000000000000000000.timeindex"), "", 0);
		enum weir_poll last;
		struct weir_stream_log *sl = open_topic(dir, false);
		assert_int_equal(take(sl, 0, 3, VALUE, &last, &dg), 30);
		assert_int_equal(truncate(log_of(dir), broker ? 20 * VALUE : 3500 * VALUE), 0);
		int more = take(sl, 30, INT32_MAX, VALUE, &last, &dg);
		assert_true(more < 3500);
		assert_int_equal(last, WEIR_POLL_ERROR);
		assert_non_null(strstr(weir_diag_text(dg), "has become shorter while it was read"));
		weir_diag_destroy(dg);
		sl->ops->close(sl);
		tmpdir_remove(dir);
	}
}

/* What a source holds is counted, goes back where little may be kept, and is kept where more may be. */
static void test_memory(void **state)
{
	(void)state;
	enum { RECORDS = 4000, VALUE = 1000 };
	static const char *const topic = "t";
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	make_topic(dir, RECORDS, VALUE, VALUE);
	for (int kept = 0; kept < 2; kept++) {
		struct weir_stream_log *sl;
		struct weir_recorded_source_spec spec = {.path = dir,
							 .topics = &topic,
							 .topic_count = 1,
							 .bounded = WEIR_STARTUP_LATEST,
							 .idle_bytes_max = kept ? 0 : 100000};
		struct weir_unit *held[RECORDS / 10];
		int64_t ts;
		uint32_t n = 0;
		OK(weir_recorded_source_open(&sl, &spec, &dg));
		assert_int_equal(sl->ops->memory(sl), 0);
		while (sl->ops->peek(sl, 0, &ts, &dg) == WEIR_POLL_UNIT)
			OK(sl->ops->take(sl, 0, &held[n++], &dg));
		assert_int_equal(n, RECORDS / 10);
		uint64_t all = sl->ops->memory(sl);
		assert_in_range(all, RECORDS * VALUE, 24 * RECORDS * VALUE);
		while (n != 0)
			sl->ops->release(sl, held[--n]);
		if (kept)
			assert_int_equal(sl->ops->memory(sl), all);
		else
			assert_in_range(sl->ops->memory(sl), 0,
					(2 << 20) + 2 * 100000); /* a block is still read from */
		sl->ops->close(sl);
	}
	tmpdir_remove(dir);
}

/* A batch that has no room is no damage: it is not passed over, and nothing of it is delivered. */
static void test_no_room(void **state)
{
	(void)state;
	enum { RECORDS = 40, VALUE = 10000 };
	static const char *const topic = "t";
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		uint8_t value[VALUE] = {0};
		struct weir_topic_writer *w;
		char *path = strdup(tmpdir_path(dir, "%d", codec));
		OK(weir_topic_writer_open(&w, path, topic, 1, (enum weir_codec)codec, &dg));
		for (int i = 0; i < RECORDS; i++) { /* batches of one record, then one of five */
			struct weir_out r = {.key = {"k", 1}, .value = {value, VALUE}, .timestamp = i};
			OK(weir_topic_writer_put(w, 0, &r, &dg));
			if (i < RECORDS - 5)
				OK(weir_topic_writer_cut(w, &dg));
		}
		OK(weir_topic_writer_close(w, &dg));
		for (int enough = 0; enough < 2; enough++) {
			struct weir_stream_log *sl;
			struct weir_recorded_source_spec spec = {.path = path,
								 .topics = &topic,
								 .topic_count = 1,
								 .bounded = WEIR_STARTUP_LATEST,
								 .damaged_skip = true,
								 .batch_memory_max = enough ? 6 * VALUE : 4 * VALUE};
			struct weir_unit *u;
			enum weir_poll poll;
			enum weir_err err = WEIR_OK;
			int64_t ts, records = 0;
			OK(weir_recorded_source_open(&sl, &spec, &dg));
			while ((poll = sl->ops->peek(sl, 0, &ts, &dg)) == WEIR_POLL_UNIT &&
			       (err = sl->ops->take(sl, 0, &u, &dg)) == WEIR_OK) {
				records += u->count;
				sl->ops->release(sl, u);
			}
			assert_int_equal(records, enough ? RECORDS : RECORDS - 5);
			if (enough) {
				assert_int_equal(poll, WEIR_POLL_BOUND);
			} else {
				assert_true(poll == WEIR_POLL_ERROR || err == WEIR_E_STATE);
				assert_int_equal(weir_diag_code(dg), WEIR_E_STATE);
				assert_non_null(strstr(weir_diag_text(dg), "has no room"));
				weir_diag_destroy(dg);
				dg = NULL;
			}
			sl->ops->close(sl);
		}
		free(path);
	}
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_of_files),
		cmocka_unit_test(test_several_mappings),
		cmocka_unit_test(test_deleted_while_read),
		cmocka_unit_test(test_cut_while_read),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
