/* test_source.c: recorded topics as a stream: a broker's files, places to start and end, damage, transactions, growth.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "io/recorded/crc32c.h"
#include "io/recorded/reader.h"
#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"
#include "io/recorded/topic.h"
#include "tests/support/tmpdir.h"

static void ok_at(int line, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK) {
		print_error("line %d: %s\n", line, weir_diag_text(*dg));
		fail();
	}
}
#define OK(call) ok_at(__LINE__, (call), &dg)

/* ---- helpers ---- */

static struct weir_stream_log *open_spec(const char *dir, const char *topic, struct weir_recorded_source_spec spec)
{
	struct weir_diag *dg = NULL;
	struct weir_stream_log *sl;
	spec.path = dir;
	if (spec.topics == NULL && spec.topic_pattern == NULL) {
		spec.topics = &topic;
		spec.topic_count = 1;
	}
	if (spec.bounded == WEIR_STARTUP_EARLIEST)
		spec.bounded = WEIR_STARTUP_LATEST;
	OK(weir_recorded_source_open(&sl, &spec, &dg));
	return sl;
}
#define OPEN(dir, topic, ...) open_spec(dir, topic, (struct weir_recorded_source_spec){__VA_ARGS__})

static struct weir_buf text;

static void add_headers(const struct weir_record *r)
{
	const uint8_t *p = r->headers;
	for (uint32_t i = 0; i < r->header_count; i++)
		for (int part = 0; part < 2; part++) {
			int bytes = *p++ >> 1; /* short ones only */
			weir_buf_printf(&text, "%s%.*s", part ? "=" : i != 0 ? "," : "", bytes, (const char *)p);
			p += bytes;
		}
}

/* Everything partition p gives until it is empty or at its bound, as lines; *last is what peek said then. */
static const char *drain(struct weir_stream_log *sl, uint32_t p, enum weir_poll *last, struct weir_diag **dg)
{
	int64_t ts, next = -1;
	text.bytes = 0;
	while ((*last = sl->ops->peek(sl, p, &ts, dg)) == WEIR_POLL_UNIT) {
		struct weir_unit *u;
		if (sl->ops->take(sl, p, &u, dg) != WEIR_OK) {
			*last = WEIR_POLL_ERROR;
			break;
		}
		assert_int_equal(u->partition, p);
		assert_true(u->next_offset > next);
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < u->count; i++) {
			const struct weir_record *r = &u->records[i];
			assert_true(r->offset < u->next_offset && r->offset > next - 1);
			weir_buf_printf(&text, "%u|%lld|%lld|%.*s|%.*s|", p, (long long)r->offset,
					(long long)r->timestamp, (int)r->key_bytes, (const char *)r->key,
					(int)r->value_bytes, (const char *)r->value);
			add_headers(r);
			weir_buf_puts(&text, "\n");
			bytes += r->key_bytes + r->value_bytes + r->headers_bytes;
		}
		assert_int_equal(bytes, u->bytes);
		next = u->next_offset;
		sl->ops->release(sl, u);
	}
	weir_buf_put_byte(&text, 0);
	return (const char *)text.data;
}

/* The offsets only, as "0 1 2". */
static const char *offsets_of(const char *lines)
{
	static char out[8192];
	char *to = out;
	*out = '\0';
	for (const char *p = lines; *p != '\0'; p = strchr(p, '\n') + 1)
		to += sprintf(to, "%s%lld", to == out ? "" : " ", atoll(strchr(p, '|') + 1));
	return out;
}

static const char *drain_offsets(struct weir_stream_log *sl, uint32_t p, enum weir_poll want)
{
	struct weir_diag *dg = NULL;
	enum weir_poll last;
	const char *lines = drain(sl, p, &last, &dg);
	if (last != want)
		print_error("%s\n", weir_diag_text(dg));
	assert_int_equal(last, want);
	return offsets_of(lines);
}

/* A topic of one partition with batches of `per` records, offsets 0 to count - 1, timestamp 1000 + 10 * offset. */
static void make_topic(const char *dir, const char *topic, int count, int per, enum weir_codec codec)
{
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	OK(weir_topic_writer_open(&w, dir, topic, 1, codec, &dg));
	for (int i = 0; i < count; i++) {
		char value[64];
		snprintf(value, sizeof value, "value %d", i);
		OK(weir_topic_writer_put(w, 0,
					 &(struct weir_out){.key = {"k", 1},
							    .value = {value, strlen(value)},
							    .timestamp = 1000 + 10 * i},
					 &dg));
		if ((i + 1) % per == 0)
			OK(weir_topic_writer_cut(w, &dg));
	}
	OK(weir_topic_writer_close(w, &dg));
}

/* Byte position of batch number n of a segment. */
static uint64_t batch_at(const char *file, int n, struct weir_stored *sb)
{
	size_t bytes;
	const char *why;
	uint8_t *data = tmpdir_file_read(file, &bytes);
	uint64_t at = 0;
	for (;; n--) {
		assert_int_equal(weir_stored_header(data + at, bytes - at, sb, &why), WEIR_HEADER_OK);
		if (n == 0)
			break;
		at += sb->bytes;
	}
	free(data);
	return at;
}

static void poke(const char *file, uint64_t at, uint8_t x)
{
	int fd = open(file, O_RDWR);
	uint8_t byte;
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= x;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

/* ---- a broker's own files ---- */

static void test_broker_segments(void **state)
{
	static const char *const topics[] = {"f-none", "f-gzip",         "f-snappy",      "f-lz4",
					     "f-zstd", "f-transactions", "f-append-time", "f-compacted"};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(topics); i++) {
		size_t bytes;
		struct weir_diag *dg = NULL;
		enum weir_poll last;
		uint8_t *want = tmpdir_file_read(tmpdir_path("tests/support/segments", "%s.txt", topics[i]), &bytes);
		want[bytes] = '\0';
		struct weir_stream_log *sl = OPEN("tests/support/segments", topics[i], 0);
		assert_string_equal(drain(sl, 0, &last, &dg), (const char *)want);
		assert_int_equal(last, WEIR_POLL_BOUND);
		assert_true(bytes > 500);
		sl->ops->close(sl);
		free(want);
	}
}

static void test_transactions_with_and_without_txnindex(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	tmpdir_copy("tests/support/segments/f-transactions-0", tmpdir_path(dir, "f-transactions-0"));
	const char *committed =
		"0 1 2 3 4 5 6 7 8 9 17 18 19 20 21 22 23 24 25 26"; /* 10, 16, 27: markers; 11..15: aborted */
	for (int with = 1; with >= 0; with--) {
		if (!with)
			assert_int_equal(unlink(tmpdir_path(dir, "f-transactions-0/00000000000000000010.txnindex")), 0);
		struct weir_stream_log *sl = OPEN(dir, "f-transactions", 0);
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), committed);
		assert_non_null(strstr(weir_recorded_source_warning(sl, 0), "offset 28 on is a transaction"));
		assert_null(weir_recorded_source_warning(sl, 1));
		sl->ops->close(sl);
		/* abort: the open one is left out, what follows it is read */
		sl = OPEN(dir, "f-transactions", .open_transaction_abort = true);
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND),
				    "0 1 2 3 4 5 6 7 8 9 17 18 19 20 21 22 23 24 25 26 31 32 33");
		assert_null(weir_recorded_source_warning(sl, 0));
		sl->ops->close(sl);
		sl = OPEN(dir, "f-transactions", .read_uncommitted = true);
		assert_string_equal(
			drain_offsets(sl, 0, WEIR_POLL_BOUND),
			"0 1 2 3 4 5 6 7 8 9 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 28 29 30 31 32 33");
		sl->ops->close(sl);
		/* from every offset: what is behind it decides, not what was read before */
		for (int64_t from = 0; from < 28; from++) {
			struct weir_diag *dg = NULL;
			char want[32];
			sl = OPEN(dir, "f-transactions", 0);
			OK(sl->ops->seek(sl, 0, from, &dg));
			const char *got = drain_offsets(sl, 0, WEIR_POLL_BOUND);
			snprintf(want, sizeof want, "%lld ",
				 (long long)(from == 10                 ? 11
					     : from >= 11 && from <= 16 ? 17
									: from));
			if (from == 10)
				snprintf(want, sizeof want, "17 ");
			if (from < 26)
				assert_memory_equal(got, want, strlen(want));
			else
				assert_string_equal(got, from == 26 ? "26" : "");
			sl->ops->close(sl);
		}
	}
	tmpdir_remove(dir);
}

/* Following: an open transaction holds its partition until its end is written. */
static void test_open_transaction_waits(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	const char *to = tmpdir_path(dir, "f-transactions-0");
	tmpdir_copy("tests/support/segments/f-transactions-0", to);
	char *file = strdup(tmpdir_path(dir, "f-transactions-0/00000000000000000010.log"));
	size_t bytes;
	uint8_t *data = tmpdir_file_read(file, &bytes);
	/* cut the file before the second commit marker (offset 27): 22..26 are undecided then */
	uint64_t at = 0;
	struct weir_stored sb;
	const char *why;
	while (weir_stored_header(data + at, bytes - at, &sb, &why) == WEIR_HEADER_OK && sb.base_offset != 27)
		at += sb.bytes;
	assert_int_equal(sb.base_offset, 27);
	assert_int_equal(truncate(file, (off_t)at), 0);
	struct weir_stream_log *sl = OPEN(dir, "f-transactions", .unbounded = true);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "0 1 2 3 4 5 6 7 8 9 17 18 19 20 21");
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "");
	tmpdir_file_write(file, data, at + sb.bytes); /* the marker arrives */
	const char *got = "";
	for (int i = 0; i < 200 && *got == '\0'; i++) {
		usleep(5000);
		got = drain_offsets(sl, 0, WEIR_POLL_EMPTY);
	}
	assert_string_equal(got, "22 23 24 25 26");
	sl->ops->close(sl);
	free(data);
	free(file);
	tmpdir_remove(dir);
}

/* ---- starts and bounds ---- */

static void test_starts_and_bounds(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	make_topic(dir, "t", 20, 6, WEIR_CODEC_LZ4);
	struct weir_stream_log *sl = OPEN(dir, "t", .startup = WEIR_STARTUP_TIMESTAMP, .startup_ts = 1075);
	int64_t first, end;
	sl->ops->range(sl, 0, &first, &end);
	assert_int_equal(first, 8);
	assert_int_equal(end, 20);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "8 9 10 11 12 13 14 15 16 17 18 19");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .startup = WEIR_STARTUP_OFFSETS,
		  .startup_offsets = "partition:1,offset:3;partition:0,offset:17");
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "17 18 19");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .startup = WEIR_STARTUP_LATEST);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .bounded = WEIR_STARTUP_TIMESTAMP, .bounded_ts = 1080);
	sl->ops->range(sl, 0, &first, &end);
	assert_int_equal(first, 0);
	assert_int_equal(end, 8);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2 3 4 5 6 7");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .bounded = WEIR_STARTUP_OFFSETS, .bounded_offsets = "partition:0,offset:6");
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2 3 4 5");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .startup = WEIR_STARTUP_TIMESTAMP, .startup_ts = 99999);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "");
	sl->ops->close(sl);
	for (int64_t from = 0; from <= 22; from++) {
		char want[256];
		int n = 0;
		want[0] = '\0';
		for (int64_t k = from; k < 20; k++)
			n += sprintf(want + n, "%s%lld", n == 0 ? "" : " ", (long long)k);
		sl = OPEN(dir, "t", 0);
		if (from <= 20) {
			OK(sl->ops->seek(sl, 0, from, &dg));
			assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), want);
		} else {
			assert_int_equal(sl->ops->seek(sl, 0, from, &dg), WEIR_E_IO);
			assert_non_null(strstr(weir_diag_text(dg), "t-0 ends at offset 20"));
			weir_diag_destroy(dg);
			dg = NULL;
		}
		sl->ops->close(sl);
	}
	const char *name = "t", *wrong[] = {"partition:0", "partition:x,offset:1", "partition:0,offset:1,", "0:1"};
	for (size_t i = 0; i < WEIR_COUNT_OF(wrong); i++) {
		struct weir_recorded_source_spec spec = {.path = dir,
							 .topics = &name,
							 .topic_count = 1,
							 .startup = WEIR_STARTUP_OFFSETS,
							 .startup_offsets = wrong[i]};
		assert_int_equal(weir_recorded_source_open(&sl, &spec, &dg), WEIR_E_CONF);
		weir_diag_destroy(dg);
		dg = NULL;
	}
	tmpdir_remove(dir);
}

/* A seek in a large segment goes by the index and gives the same as without one. */
static void test_seek_by_index(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	make_topic(dir, "t", 20000, 40, WEIR_CODEC_NONE);
	assert_true(tmpdir_file_bytes(tmpdir_path(dir, "t-0/00000000000000000000.index")) > 8 * 50);
	for (int round = 0; round < 3; round++) {
		if (round == 1) { /* an index that lies is not believed */
			uint8_t lie[16];
			weir_store_be64(lie, (uint64_t)10 << 32 | 50);
			weir_store_be64(lie + 8, (uint64_t)20 << 32 | 61);
			tmpdir_file_write(tmpdir_path(dir, "t-0/00000000000000000000.index"), lie, sizeof lie);
		} else if (round == 2) {
			assert_int_equal(unlink(tmpdir_path(dir, "t-0/00000000000000000000.index")), 0);
		}
		for (int64_t from = 0; from < 20000; from += 777) {
			struct weir_stream_log *sl = OPEN(dir, "t", 0);
			struct weir_unit *u;
			int64_t ts;
			OK(sl->ops->seek(sl, 0, from, &dg));
			assert_int_equal(sl->ops->peek(sl, 0, &ts, &dg), WEIR_POLL_UNIT);
			assert_int_equal(
				ts, 1000 + 10 * (from / 40 * 40)); /* the stored batch's, wherever one starts in it */
			OK(sl->ops->take(sl, 0, &u, &dg));
			assert_int_equal(u->records[0].offset, from);
			sl->ops->release(sl, u);
			sl->ops->close(sl);
		}
	}
	tmpdir_remove(dir);
}

static void test_topics_and_patterns(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	make_topic(dir, "order.placed", 3, 1, WEIR_CODEC_NONE);
	make_topic(dir, "order.paid", 2, 1, WEIR_CODEC_NONE);
	make_topic(dir, "other", 1, 1, WEIR_CODEC_NONE);
	OK(weir_topic_writer_open(&w, dir, "order-2", 3, WEIR_CODEC_NONE, &dg));
	OK(weir_topic_writer_close(w, &dg));
	assert_int_equal(weir_recorded_partitions(dir, "order-2"), 3);
	assert_int_equal(weir_recorded_partitions(dir, "order"), 0);
	const char *two[] = {"order.placed", "order-2"};
	struct weir_stream_log *sl = OPEN(dir, NULL, .topics = two, .topic_count = 2);
	uint32_t n;
	assert_int_equal(sl->ops->partitions(sl), 4);
	assert_string_equal(sl->ops->topic(sl, 0, &n), "order.placed");
	assert_string_equal(sl->ops->topic(sl, 3, &n), "order-2");
	assert_int_equal(n, 2);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2");
	assert_string_equal(drain_offsets(sl, 3, WEIR_POLL_BOUND), "");
	sl->ops->close(sl);
	sl = OPEN(dir, NULL, .topic_pattern = "order\\.p.*|nothing");
	assert_int_equal(sl->ops->partitions(sl), 2);
	assert_string_equal(sl->ops->topic(sl, 0, &n), "order.paid");
	assert_string_equal(sl->ops->topic(sl, 1, &n), "order.placed");
	sl->ops->close(sl);
	const char *wrong = "order.plaecd";
	struct weir_recorded_source_spec spec = {.path = dir, .topics = &wrong, .topic_count = 1};
	assert_int_equal(weir_recorded_source_open(&sl, &spec, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_report(dg), "did you mean 'order.placed'"));
	weir_diag_destroy(dg);
	char **names;
	uint32_t count;
	dg = NULL;
	OK(weir_recorded_topics(dir, &names, &count, &dg));
	assert_int_equal(count, 4);
	assert_string_equal(names[0], "order-2");
	for (uint32_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	tmpdir_remove(dir);
}

/* Part of a topic is no topic: a broker's folder holds only what that broker has, a copy may have been cut off. */
static void test_a_partition_that_is_not_there(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_stream_log *sl;
	const char *name = "t";
	struct weir_recorded_source_spec spec = {.path = dir, .topics = &name, .topic_count = 1};
	struct weir_topic_writer *w;
	OK(weir_topic_writer_open(&w, dir, name, 3, WEIR_CODEC_NONE, &dg));
	OK(weir_topic_writer_close(w, &dg));
	OK(weir_recorded_source_open(&sl, &spec, &dg)); /* empty folders are empty partitions */
	assert_int_equal(sl->ops->partitions(sl), 3);
	sl->ops->close(sl);
	assert_int_equal(rmdir(tmpdir_path(dir, "t-1")), 0);
	assert_int_equal(weir_recorded_check(dir, name, &dg), WEIR_E_CONF);
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_recorded_source_open(&sl, &spec, &dg), WEIR_E_CONF);
	const char *said = weir_diag_report(dg);
	assert_non_null(strstr(said, tmpdir_path(dir, "t-1: that partition's records are missing")));
	assert_non_null(strstr(said, "if it never held a record: mkdir "));
	weir_diag_destroy(dg);
	dg = NULL;
	/* What a commit file lists with nothing in it has nothing in it. */
	struct weir_commit_section s = {.app = strdup("app")};
	for (uint32_t p = 0; p < 3; p++) {
		char file[64];
		snprintf(file, sizeof file, "t-%u/00000000000000000000.log", p);
		weir_commit_add_file(&s, NULL, file, 0, 0);
	}
	weir_commit_add_topic(&s, NULL, name, WEIR_TOPIC_RESULT, 3);
	OK(weir_commit_store(dir, &s, false, &dg));
	weir_commit_section_fini(&s);
	OK(weir_recorded_check(dir, name, &dg));
	OK(weir_recorded_source_open(&sl, &spec, &dg));
	assert_int_equal(sl->ops->partitions(sl), 3);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* ---- damage ---- */

static void test_damage_stops_or_is_skipped(void **state)
{
	/* In batch 2 (offsets 10 to 14): a byte of the records, the CRC, the length (two ways), the magic, the offset.
	 */
	static const struct {
		int at;
		uint8_t x;
	} cases[] = {{70, 0x10}, {18, 1}, {11, 0x20}, {9, 0x01}, {16, 0x40}, {2, 0x01}, {59, 3}};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		char *dir = tmpdir_make();
		struct weir_diag *dg = NULL;
		enum weir_poll last;
		struct weir_stored sb;
		uint64_t batches, records;
		make_topic(dir, "t", 30, 5, WEIR_CODEC_NONE);
		char *file = strdup(tmpdir_path(dir, "t-0/00000000000000000000.log"));
		uint64_t at = batch_at(file, 2, &sb);
		poke(file, at + (uint64_t)cases[i].at, cases[i].x);
		struct weir_stream_log *sl = OPEN(dir, "t", 0);
		const char *got = offsets_of(drain(sl, 0, &last, &dg));
		assert_string_equal(got, "0 1 2 3 4 5 6 7 8 9");
		assert_int_equal(last, WEIR_POLL_ERROR);
		assert_int_equal(weir_diag_code(dg), WEIR_E_CORRUPT);
		char where[64];
		snprintf(where, sizeof where, "byte %llu", (unsigned long long)at);
		assert_non_null(strstr(weir_diag_text(dg), where));
		assert_non_null(strstr(weir_diag_text(dg), "t-0/00000000000000000000.log"));
		sl->ops->close(sl);
		weir_diag_destroy(dg);
		sl = OPEN(dir, "t", .damaged_skip = true);
		got = drain_offsets(sl, 0, WEIR_POLL_BOUND);
		assert_string_equal(got, "0 1 2 3 4 5 6 7 8 9 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29");
		weir_recorded_source_damaged(sl, &batches, &records);
		assert_int_equal(batches, 1);
		if (cases[i].at != 59)
			assert_int_equal(records, 5);
		assert_non_null(strstr(weir_recorded_source_warning(sl, 0), "skipped bytes"));
		sl->ops->close(sl);
		free(file);
		tmpdir_remove(dir);
	}
}

/* The compressed bytes are wrong and the CRC was made anew: never silently empty (BL-136). */
static void test_undecodable_batch_with_right_crc(void **state)
{
	(void)state;
	for (int codec = WEIR_CODEC_GZIP; codec <= WEIR_CODEC_ZSTD; codec++) {
		char *dir = tmpdir_make();
		struct weir_diag *dg = NULL;
		enum weir_poll last;
		struct weir_stored sb;
		size_t bytes;
		uint64_t batches, records;
		make_topic(dir, "t", 30, 10, codec);
		char *file = strdup(tmpdir_path(dir, "t-0/00000000000000000000.log"));
		uint64_t at = batch_at(file, 1, &sb);
		uint8_t *data = tmpdir_file_read(file, &bytes);
		memset(data + at + 75, 0xee, 20);
		weir_store_be32(data + at + 17, weir_crc32c(0, data + at + 21, sb.bytes - 21));
		tmpdir_file_write(file, data, bytes);
		struct weir_stream_log *sl = OPEN(dir, "t", 0);
		assert_string_equal(offsets_of(drain(sl, 0, &last, &dg)), "0 1 2 3 4 5 6 7 8 9");
		assert_int_equal(last, WEIR_POLL_ERROR);
		assert_non_null(strstr(weir_diag_text(dg), "offsets 10 to 19"));
		weir_diag_destroy(dg);
		sl->ops->close(sl);
		sl = OPEN(dir, "t", .damaged_skip = true);
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND),
				    "0 1 2 3 4 5 6 7 8 9 20 21 22 23 24 25 26 27 28 29");
		weir_recorded_source_damaged(sl, &batches, &records);
		assert_int_equal(batches, 1);
		assert_int_equal(records, 10);
		sl->ops->close(sl);
		free(data);
		free(file);
		tmpdir_remove(dir);
	}
}

/* A file cut anywhere in its last batch: read up to there, with a warning; following, it waits for the rest. */
static void test_torn_end(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_stored sb;
	size_t bytes;
	make_topic(dir, "t", 12, 4, WEIR_CODEC_NONE);
	char *file = strdup(tmpdir_path(dir, "t-0/00000000000000000000.log"));
	uint64_t at = batch_at(file, 2, &sb);
	uint8_t *data = tmpdir_file_read(file, &bytes);
	for (uint64_t cut = at; cut < bytes; cut++) {
		tmpdir_file_write(file, data, cut);
		struct weir_stream_log *sl = OPEN(dir, "t", 0);
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2 3 4 5 6 7");
		assert_int_equal(weir_recorded_source_warning(sl, 0) != NULL, cut != at);
		sl->ops->close(sl);
	}
	/* zeros behind the last batch: a file that was made long in advance */
	memset(data + at, 0, bytes - at);
	tmpdir_file_write(file, data, bytes);
	struct weir_stream_log *sl = OPEN(dir, "t", 0);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2 3 4 5 6 7");
	sl->ops->close(sl);
	free(data);
	free(file);
	tmpdir_remove(dir);
}

static void test_old_format_is_named(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	enum weir_poll last;
	make_topic(dir, "t", 3, 1, WEIR_CODEC_NONE);
	poke(tmpdir_path(dir, "t-0/00000000000000000000.log"), 16, 3); /* 2 becomes 1 */
	struct weir_stream_log *sl = OPEN(dir, "t", 0);
	drain(sl, 0, &last, &dg);
	assert_int_equal(last, WEIR_POLL_ERROR);
	assert_non_null(strstr(weir_diag_text(dg), "version 0 or 1"));
	weir_diag_destroy(dg);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* Inflating stops at the bound, in steps of one batch, whatever batches claim (BL-025); a large record is read
 * (BL-133). */
static void test_inflation_is_bounded(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	enum weir_poll last;
	size_t bytes = 20u << 20;
	char *large = calloc(1, bytes);
	OK(weir_topic_writer_open(&w, dir, "t", 1, WEIR_CODEC_GZIP, &dg));
	for (int i = 0; i < 3; i++)
		OK(weir_topic_writer_put(w, 0, &(struct weir_out){.value = {large, i == 1 ? bytes : 10}}, &dg));
	OK(weir_topic_writer_close(w, &dg));
	struct weir_stream_log *sl = OPEN(dir, "t", 0);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 1 2");
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .batch_bytes_max = 1 << 20);
	assert_string_equal(offsets_of(drain(sl, 0, &last, &dg)), "0");
	assert_int_equal(last, WEIR_POLL_ERROR);
	assert_int_equal(weir_diag_code(dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "batch.bytes.max"));
	weir_diag_destroy(dg);
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .batch_bytes_max = 1 << 20, .damaged_skip = true);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "0 2");
	sl->ops->close(sl);
	free(large);
	tmpdir_remove(dir);
}

/* A batch of many small records comes in parts cut at fixed places, also after a start in its middle. */
static void test_large_batch_in_parts(void **state)
{
	enum { COUNT = 50000 };
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	struct weir_builder bb;
	struct weir_codec_ctx *cc = weir_codec_create();
	const uint8_t *data;
	size_t bytes;
	weir_builder_init(&bb);
	for (int i = 0; i < COUNT; i++)
		weir_builder_put(&bb, i, &(struct weir_out){.timestamp = 5});
	assert_true(weir_builder_finish(&bb, cc, WEIR_CODEC_ZSTD, &data, &bytes));
	make_topic(dir, "t", 1, 1, WEIR_CODEC_NONE);
	tmpdir_file_write(tmpdir_path(dir, "t-0/00000000000000000000.log"), data, bytes);
	weir_builder_fini(&bb);
	weir_codec_destroy(cc);
	for (int64_t from = 0; from < COUNT; from += 7001) {
		struct weir_stream_log *sl = OPEN(dir, "t", 0);
		int64_t ts, want = from;
		OK(sl->ops->seek(sl, 0, from, &dg));
		struct weir_unit *held[8];
		uint32_t n = 0;
		while (sl->ops->peek(sl, 0, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			assert_int_equal(ts, 5);
			OK(sl->ops->take(sl, 0, &u, &dg));
			for (uint32_t i = 0; i < u->count; i++)
				assert_int_equal(u->records[i].offset, want++);
			assert_true(u->next_offset % WEIR_UNIT_RECORDS_MAX == 0 || u->next_offset == COUNT ||
				    u->count == 0);
			held[n++] = u;
		}
		assert_int_equal(want, COUNT);
		while (n-- > 0)
			sl->ops->release(sl, held[n]);
		sl->ops->close(sl);
	}
	tmpdir_remove(dir);
}

/* Batches of all sizes around what is read at once, and some much larger, between small ones. */
static void test_batches_and_blocks(void **state)
{
	(void)state;
	enum { COUNT = 400, PARTITIONS = 64 /* a block of 16 KiB each */ };
	static const size_t sizes[] = {0, 10, 900, 8000, 16100, 16200, 16330, 16384, 33000, 70000, 300000};
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	char *dir = tmpdir_make();
	static uint8_t value[300000];
	for (size_t i = 0; i < sizeof value; i++)
		value[i] = (uint8_t)(i * 31 + i / 251);
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_SNAPPY; codec += WEIR_CODEC_SNAPPY) {
		const char *topic = codec == WEIR_CODEC_NONE ? "plain" : "packed";
		OK(weir_topic_writer_open(&w, dir, topic, PARTITIONS, (enum weir_codec)codec, &dg));
		for (int i = 0; i < COUNT; i++) {
			size_t bytes = sizes[i * 37 / 5 % (int)WEIR_COUNT_OF(sizes)] + (size_t)i % 7;
			OK(weir_topic_writer_put(
				w, 5, &(struct weir_out){.value = {value, bytes % sizeof value}, .timestamp = i}, &dg));
			if (i % 3 != 0)
				OK(weir_topic_writer_cut(w, &dg));
		}
		OK(weir_topic_writer_close(w, &dg));
		struct weir_stream_log *sl = OPEN(dir, topic);
		int64_t ts, want = 0;
		while (sl->ops->peek(sl, 5, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			OK(sl->ops->take(sl, 5, &u, &dg));
			for (uint32_t i = 0; i < u->count; i++, want++) {
				size_t bytes = sizes[want * 37 / 5 % (int64_t)WEIR_COUNT_OF(sizes)] + (size_t)want % 7;
				assert_int_equal(u->records[i].offset, want);
				assert_int_equal(u->records[i].value_bytes, bytes % sizeof value);
				assert_memory_equal(u->records[i].value, value, u->records[i].value_bytes);
			}
			sl->ops->release(sl, u);
		}
		assert_int_equal(want, COUNT);
		sl->ops->close(sl);
	}
	tmpdir_remove(dir);
}

/* What stands in place of a segment and is no file that can be read at any place: said, not taken as empty. */
static void test_segments_that_are_no_files(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	make_topic(dir, "t", 1, 1, WEIR_CODEC_NONE);
	char *file = strdup(tmpdir_path(dir, "t-0/00000000000000000000.log"));
	for (int i = 0; i < 4; i++) {
		const char *topic = "t";
		struct weir_recorded_source_spec spec = {.path = dir, .topics = &topic, .topic_count = 1};
		struct weir_stream_log *sl = NULL;
		struct weir_diag *dg = NULL;
		assert_int_equal(i == 3 ? rmdir(file) : unlink(file), 0);
		int rc = i == 0   ? symlink("/nowhere/at/all", file)
			 : i == 1 ? mkfifo(file, 0600)
			 : i == 2 ? mkdir(file, 0700)
				  : symlink("/dev/zero", file);
		assert_int_equal(rc, 0);
		assert_int_equal(weir_recorded_source_open(&sl, &spec, &dg), WEIR_E_IO);
		assert_non_null(strstr(weir_diag_text(dg), "t-0/00000000000000000000.log"));
		assert_non_null(strstr(weir_diag_text(dg), i == 0 ? "cannot read" : "is no regular file"));
		weir_diag_destroy(dg);
	}
	free(file);
	tmpdir_remove(dir);
}

/* ---- many segments, gaps, growth ---- */

static void append_batch(const char *dir, int64_t segment, int64_t first, int count)
{
	struct weir_builder bb;
	struct weir_codec_ctx *cc = weir_codec_create();
	const uint8_t *data;
	size_t bytes;
	weir_builder_init(&bb);
	for (int i = 0; i < count; i++)
		weir_builder_put(&bb, first + i, &(struct weir_out){.value = {"v", 1}, .timestamp = first + i});
	assert_true(weir_builder_finish(&bb, cc, WEIR_CODEC_SNAPPY, &data, &bytes));
	FILE *f = fopen(tmpdir_path(dir, "t-0/%020lld.log", (long long)segment), "ab");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	fclose(f);
	weir_builder_fini(&bb);
	weir_codec_destroy(cc);
}

/* The log starts at 5,000 and has gaps between batches and segments (BL-080). */
static void test_trimmed_start_and_gaps(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	make_topic(dir, "t", 1, 1, WEIR_CODEC_NONE);
	assert_int_equal(unlink(tmpdir_path(dir, "t-0/00000000000000000000.log")), 0);
	append_batch(dir, 5000, 5000, 2);
	append_batch(dir, 5000, 5010, 1);
	append_batch(dir, 5020, 5100, 2);
	append_batch(dir, 6000, 6000, 1);
	int64_t first, end;
	struct weir_stream_log *sl = OPEN(dir, "t", 0);
	sl->ops->range(sl, 0, &first, &end);
	assert_int_equal(first, 5000);
	assert_int_equal(end, 6001);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), "5000 5001 5010 5100 5101 6000");
	sl->ops->close(sl);
	static const struct {
		int64_t from;
		const char *want;
	} cases[] = {{5001, "5001 5010 5100 5101 6000"},
		     {5002, "5010 5100 5101 6000"},
		     {5011, "5100 5101 6000"},
		     {5025, "5100 5101 6000"},
		     {5101, "5101 6000"},
		     {5999, "6000"},
		     {6001, ""}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		sl = OPEN(dir, "t", 0);
		OK(sl->ops->seek(sl, 0, cases[i].from, &dg));
		assert_null(weir_recorded_source_warning(sl, 0));
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_BOUND), cases[i].want);
		sl->ops->close(sl);
	}
	sl = OPEN(dir, "t", 0);
	assert_int_equal(sl->ops->seek(sl, 0, 4998, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "2 offsets were removed before they were read"));
	weir_diag_destroy(dg);
	dg = NULL;
	sl->ops->close(sl);
	sl = OPEN(dir, "t", .damaged_skip = true, .startup = WEIR_STARTUP_LATEST);
	OK(sl->ops->seek(sl, 0, WEIR_START_FIRST, &dg));
	sl->ops->range(sl, 0, &first, &end);
	assert_int_equal(first, 5000);
	OK(sl->ops->seek(sl, 0, 4998, &dg));
	assert_non_null(strstr(weir_recorded_source_warning(sl, 0), "offsets 4998 to 4999 were removed"));
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* What grows after the start is beyond a bounded run, and comes in an unbounded one: in the same file, in a new
 * segment, and when a segment in front has gone. */
static void test_growth(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	make_topic(dir, "t", 1, 1, WEIR_CODEC_NONE);
	struct weir_stream_log *bounded = OPEN(dir, "t", 0);
	struct weir_stream_log *sl = OPEN(dir, "t", .unbounded = true);
	assert_true(sl->ops->event_fd(sl) >= 0);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "0");
	static const struct {
		int64_t segment, first;
	} steps[] = {{0, 1}, {0, 2}, {3, 3}, {3, 4}, {9, 9}};
	for (size_t i = 0; i < WEIR_COUNT_OF(steps); i++) {
		append_batch(dir, steps[i].segment, steps[i].first, 1);
		if (i == 3) {
			assert_string_equal(drain_offsets(bounded, 0, WEIR_POLL_BOUND), "0");
			assert_int_equal(unlink(tmpdir_path(dir, "t-0/00000000000000000000.log")), 0);
		}
		struct pollfd pf = {sl->ops->event_fd(sl), POLLIN, 0};
		assert_int_equal(poll(&pf, 1, 5000), 1);
		char want[32];
		snprintf(want, sizeof want, "%lld", (long long)steps[i].first);
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), want);
	}
	bounded->ops->close(bounded);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* A batch that is being written is not looked at before it is whole. */
/* A file that is there before what it holds: zeros are no data yet, and are looked at again. */
static void test_growth_within_zeros(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	make_topic(dir, "t", 30, 5, WEIR_CODEC_NONE);
	char *file = weir_path_join(dir, "t-0/00000000000000000000.log");
	struct weir_stored sb;
	size_t bytes;
	uint64_t two = batch_at(file, 2, &sb), four = batch_at(file, 4, &sb);
	uint8_t *data = tmpdir_file_read(file, &bytes);
	int fd = open(file, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)two), 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes + 20000), 0);
	struct weir_stream_log *sl = OPEN(dir, "t", .unbounded = true);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "0 1 2 3 4 5 6 7 8 9");
	assert_int_equal(pwrite(fd, data + two, four - two, (off_t)two), four - two);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "10 11 12 13 14 15 16 17 18 19");
	assert_int_equal(pwrite(fd, data + four, bytes - four, (off_t)four), bytes - four);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "20 21 22 23 24 25 26 27 28 29");
	sl->ops->close(sl);
	close(fd);
	free(data);
	free(file);
	tmpdir_remove(dir);
}

static void test_growth_byte_by_byte(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	size_t bytes;
	make_topic(dir, "t", 4, 2, WEIR_CODEC_NONE);
	char *file = strdup(tmpdir_path(dir, "t-0/00000000000000000000.log"));
	uint8_t *data = tmpdir_file_read(file, &bytes);
	struct weir_stored sb;
	uint64_t at = batch_at(file, 1, &sb);
	assert_int_equal(truncate(file, (off_t)at), 0);
	struct weir_stream_log *sl = OPEN(dir, "t", .unbounded = true);
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "0 1");
	int fd = open(file, O_WRONLY);
	for (uint64_t n = at; n < bytes; n++) {
		assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "");
		assert_int_equal(pwrite(fd, data + n, 1, (off_t)n), 1);
	}
	assert_string_equal(drain_offsets(sl, 0, WEIR_POLL_EMPTY), "2 3");
	close(fd);
	sl->ops->close(sl);
	free(file);
	free(data);
	tmpdir_remove(dir);
}

/* After warm-up, units and blocks come from their pools: no block is made anew. */
static void test_memory_is_reused(void **state)
{
	(void)state;
	char *dir = tmpdir_make();
	struct weir_diag *dg = NULL;
	make_topic(dir, "t", 20000, 200, WEIR_CODEC_LZ4);
	struct weir_stream_log *sl = OPEN(dir, "t", 0);
	struct weir_unit *u;
	int64_t ts;
	const void *seen[8] = {0};
	int distinct = 0, taken = 0;
	while (sl->ops->peek(sl, 0, &ts, &dg) == WEIR_POLL_UNIT) {
		OK(sl->ops->take(sl, 0, &u, &dg));
		assert_true(u->memory >= u->bytes);
		int known = 0;
		for (int i = 0; i < distinct; i++)
			known |= seen[i] == u;
		if (!known) {
			assert_true(distinct < 2);
			seen[distinct++] = u;
		}
		taken++;
		sl->ops->release(sl, u);
	}
	assert_int_equal(taken, 100);
	assert_int_equal(distinct, 1);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

static void put_many(struct weir_topic_writer *w, int from, int count)
{
	struct weir_diag *dg = NULL;
	static char value[5000];
	memset(value, 'v', sizeof value);
	for (int i = from; i < from + count; i++)
		OK(weir_topic_writer_put(w, 0,
					 &(struct weir_out){.key = {"k", 1},
							    .value = {value, (size_t)(i * 7919 % 5000)},
							    .timestamp = i},
					 &dg));
}

/* Batches that fill up leave whole pieces in the file; a cut leaves everything there. */
static void test_written_in_pieces(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	char *dir = tmpdir_make(), *path = weir_path_join(dir, "t-0/00000000000000000000.log");
	OK(weir_topic_writer_open(&w, dir, "t", 1, WEIR_CODEC_NONE, &dg));
	put_many(w, 0, 200);
	int64_t bytes = tmpdir_file_bytes(path);
	assert_true(bytes > 0 && bytes % WEIR_PIECE_BYTES == 0);
	OK(weir_topic_writer_cut(w, &dg));
	int64_t all = tmpdir_file_bytes(path);
	assert_true(all > bytes && all % WEIR_PIECE_BYTES != 0);
	struct weir_stream_log *sl = OPEN(dir, "t");
	enum weir_poll last;
	const char *lines = drain(sl, 0, &last, &dg);
	assert_non_null(strstr(lines, "0|199|199|k|"));
	sl->ops->close(sl);
	put_many(w, 200, 160);
	bytes = tmpdir_file_bytes(path);
	assert_true(bytes > all && bytes % WEIR_PIECE_BYTES == 0);
	OK(weir_topic_writer_close(w, &dg));
	assert_true(tmpdir_file_bytes(path) > bytes);
	sl = OPEN(dir, "t");
	assert_string_equal(strrchr(offsets_of(drain(sl, 0, &last, &dg)), ' '), " 359");
	assert_int_equal(last, WEIR_POLL_BOUND);
	sl->ops->close(sl);
	free(path);
	tmpdir_remove(dir);
}

/* Records of each of the batches of partition 0 of topic t, after count puts of value_bytes each. */
static void check_batches(size_t value_bytes, int count, uint32_t least, uint32_t most)
{
	struct weir_diag *dg = NULL;
	struct weir_topic_writer *w;
	char *dir = tmpdir_make();
	static char value[200000];
	OK(weir_topic_writer_open(&w, dir, "t", 1, WEIR_CODEC_NONE, &dg));
	for (int i = 0; i < count; i++)
		OK(weir_topic_writer_put(w, 0, &(struct weir_out){.value = {value, value_bytes}, .timestamp = i}, &dg));
	OK(weir_topic_writer_close(w, &dg));
	struct weir_stream_log *sl = OPEN(dir, "t");
	int64_t ts, left = count;
	while (sl->ops->peek(sl, 0, &ts, &dg) == WEIR_POLL_UNIT) {
		struct weir_unit *u;
		OK(sl->ops->take(sl, 0, &u, &dg));
		left -= u->count;
		assert_in_range(u->count, left == 0 ? 1 : least, most);
		sl->ops->release(sl, u);
	}
	assert_int_equal(left, 0);
	sl->ops->close(sl);
	tmpdir_remove(dir);
}

/* A recording's batches have 64 KiB, and as many records as the engine takes at once while that is below 256 KiB. */
static void test_batches_of_a_recording(void **state)
{
	(void)state;
	check_batches(10, 20000, 3000, 4096);
	check_batches(100, 5000, 1024, 1024);
	check_batches(240, 5000, 1024, 1024);
	check_batches(1000, 2000, 255, 262);
	check_batches(100000, 10, 2, 2);
	check_batches(200000, 5, 1, 1);
}

static int fini_text(void **state)
{
	(void)state;
	weir_buf_fini(&text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broker_segments),
		cmocka_unit_test(test_transactions_with_and_without_txnindex),
		cmocka_unit_test(test_open_transaction_waits),
		cmocka_unit_test(test_starts_and_bounds),
		cmocka_unit_test(test_seek_by_index),
		cmocka_unit_test(test_topics_and_patterns),
		cmocka_unit_test(test_a_partition_that_is_not_there),
		cmocka_unit_test(test_damage_stops_or_is_skipped),
		cmocka_unit_test(test_segments_that_are_no_files),
		cmocka_unit_test(test_undecodable_batch_with_right_crc),
		cmocka_unit_test(test_torn_end),
		cmocka_unit_test(test_old_format_is_named),
		cmocka_unit_test(test_inflation_is_bounded),
		cmocka_unit_test(test_large_batch_in_parts),
		cmocka_unit_test(test_batches_and_blocks),
		cmocka_unit_test(test_trimmed_start_and_gaps),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_growth_within_zeros),
		cmocka_unit_test(test_growth_byte_by_byte),
		cmocka_unit_test(test_memory_is_reused),
		cmocka_unit_test(test_written_in_pieces),
		cmocka_unit_test(test_batches_of_a_recording),
	};
	return cmocka_run_group_tests(tests, NULL, fini_text);
}
