/* bench_segment.c: recorded topics per record: CRC, walking the framing, the whole way from file to units for every
 * codec, and writing. Orders in JSON of about 160 bytes with an 8-byte key, in batches of 64 KiB as weir writes them;
 * files in memory if TMPDIR says so.
 * @thread init */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/shim/shim.h"
#include "io/recorded/crc32c.h"
#include "io/recorded/recorded.h"
#include "io/recorded/segment.h"

enum { RECORDS = 200000, PARTITIONS = 4, BATCH_RECORDS = 300 };

static char folder[4096];
static const char *const topics[] = {"none", "gzip", "snappy", "lz4", "zstd"};
static uint8_t *batch; /* one stored batch, padded */
static size_t batch_bytes;
static uint8_t block[64 * 1024];

static struct weir_out order(int i, char *key, char *value)
{
	int key_bytes = sprintf(key, "m%07d", i * 7919 % 100000);
	int bytes = sprintf(
		value,
		"{\"order_id\":\"o%09d\",\"merchant_id\":\"m%07d\",\"customer_id\":\"c%07d\",\"amount\":\"%d.%02d\","
		"\"currency\":\"EUR\",\"ts\":%lld}",
		i, i * 7919 % 100000, i * 31 % 1000000, i % 900 + 1, i % 100, 1700000000000LL + i);
	return (struct weir_out){.key = {key, (size_t)key_bytes},
				 .value = {value, (size_t)bytes},
				 .timestamp = 1700000000000LL + i - i % 17 * 100};
}

static bool make(void)
{
	struct weir_diag *dg = NULL;
	struct weir_builder bb;
	struct weir_codec_ctx *cc = weir_codec_create();
	const uint8_t *data;
	char key[32], value[512];
	weir_builder_init(&bb);
	for (int i = 0; i < BATCH_RECORDS; i++) {
		struct weir_out r = order(i, key, value);
		weir_builder_put(&bb, i, &r);
	}
	if (!weir_builder_finish(&bb, cc, WEIR_CODEC_NONE, &data, &batch_bytes))
		return false;
	batch = calloc(1, batch_bytes + WEIR_PAYLOAD_PAD);
	memcpy(batch, data, batch_bytes);
	weir_builder_fini(&bb);
	weir_codec_destroy(cc);
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (uint8_t)(i * 7);
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/weir-bench-XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(folder) == NULL)
		return false;
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		struct weir_topic_writer *w;
		if (weir_topic_writer_open(&w, folder, topics[codec], PARTITIONS, codec, &dg) != WEIR_OK)
			return false;
		for (int i = 0; i < RECORDS; i++) {
			struct weir_out r = order(i, key, value);
			if (weir_topic_writer_put(w, (uint32_t)i % PARTITIONS, &r, &dg) != WEIR_OK)
				return false;
		}
		if (weir_topic_writer_close(w, &dg) != WEIR_OK)
			return false;
	}
	return true;
}

static void run_crc(struct weir_bench_state *st, void *arg)
{
	uint32_t (*fn)(uint32_t, const void *, size_t) = *(uint32_t(**)(uint32_t, const void *, size_t))arg;
	uint32_t crc = 0;
	while (weir_bench_keep_running(st))
		crc = fn(crc, block, sizeof block);
	weir_bench_keep(&crc);
	weir_bench_set_items(st, sizeof block);
}

static void run_walk(struct weir_bench_state *st, void *arg)
{
	static struct weir_record records[BATCH_RECORDS];
	struct weir_stored sb;
	struct weir_walk wk;
	const char *why;
	uint32_t count;
	uint64_t payload = 0;
	(void)arg;
	while (weir_bench_keep_running(st)) {
		if (weir_stored_header(batch, batch_bytes, &sb, &why) != WEIR_HEADER_OK)
			weir_bench_fail(st, "header");
		weir_walk_init(&wk, &sb, batch + WEIR_STORED_HEADER_BYTES, batch_bytes - WEIR_STORED_HEADER_BYTES);
		if (weir_walk_records(&wk, &sb, records, BATCH_RECORDS, &count, &payload) != NULL ||
		    count != BATCH_RECORDS)
			weir_bench_fail(st, "walk");
		weir_bench_keep(records);
	}
	weir_bench_set_items(st, BATCH_RECORDS);
}

static void run_build(struct weir_bench_state *st, void *arg)
{
	static struct weir_record records[BATCH_RECORDS];
	struct weir_builder bb;
	struct weir_stored sb;
	struct weir_walk wk;
	const char *why;
	const uint8_t *data;
	size_t bytes;
	uint32_t count = 0;
	uint64_t payload = 0;
	(void)arg;
	weir_builder_init(&bb);
	if (weir_stored_header(batch, batch_bytes, &sb, &why) == WEIR_HEADER_OK) {
		weir_walk_init(&wk, &sb, batch + WEIR_STORED_HEADER_BYTES, batch_bytes - WEIR_STORED_HEADER_BYTES);
		if (weir_walk_records(&wk, &sb, records, BATCH_RECORDS, &count, &payload) != NULL)
			count = 0;
	}
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < count; i++)
			weir_builder_put(&bb, i,
					 &(struct weir_out){.key = {records[i].key, records[i].key_bytes},
							    .value = {records[i].value, records[i].value_bytes},
							    .timestamp = records[i].timestamp});
		if (!weir_builder_finish(&bb, NULL, WEIR_CODEC_NONE, &data, &bytes))
			weir_bench_fail(st, "finish");
		weir_bench_keep(data);
	}
	weir_builder_fini(&bb);
	weir_bench_set_items(st, BATCH_RECORDS);
}

static void run_read(struct weir_bench_state *st, void *arg)
{
	const char *topic = arg;
	struct weir_diag *dg = NULL;
	while (weir_bench_keep_running(st)) {
		struct weir_recorded_source_spec spec = {
			.path = folder, .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
		struct weir_stream_log *sl;
		uint64_t records = 0;
		int64_t ts;
		if (weir_recorded_source_open(&sl, &spec, &dg) != WEIR_OK) {
			weir_bench_fail(st, weir_diag_text(dg));
			return;
		}
		for (uint32_t p = 0; p < PARTITIONS; p++)
			while (sl->ops->peek(sl, p, &ts, &dg) == WEIR_POLL_UNIT) {
				struct weir_unit *u;
				if (sl->ops->take(sl, p, &u, &dg) != WEIR_OK)
					weir_bench_fail(st, weir_diag_text(dg));
				records += u->count;
				weir_bench_keep(u->records);
				sl->ops->release(sl, u);
			}
		sl->ops->close(sl);
		if (records != RECORDS)
			weir_bench_fail(st, "records are missing");
	}
	weir_bench_set_items(st, RECORDS);
}

int main(int argc, char **argv)
{
	static uint32_t (*hardware)(uint32_t, const void *, size_t) = weir_crc32c;
	static uint32_t (*tables)(uint32_t, const void *, size_t) = weir_crc32c_portable;
	weir_bench_init(&argc, argv);
	if (!make()) {
		fprintf(stderr, "bench_segment: the recordings cannot be made\n");
		return 1;
	}
	weir_bench_register("crc32c/byte", run_crc, &hardware);
	weir_bench_register("crc32c/tables/byte", run_crc, &tables);
	weir_bench_register("walk", run_walk, NULL);
	weir_bench_register("build", run_build, NULL);
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		static char names[5][32];
		snprintf(names[codec], sizeof names[codec], "read/%s", topics[codec]);
		weir_bench_register(names[codec], run_read, (void *)(uintptr_t)topics[codec]);
	}
	int rc = weir_bench_run();
	char command[4200];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	if (system(command) != 0)
		rc = 1;
	weir_bench_print_ratio("CRC-32C by instruction over tables", "crc32c/byte", "crc32c/tables/byte", 5.0);
	printf("ns a record: walk %.1f, build with CRC %.1f, file to units uncompressed %.1f\n",
	       1e9 / weir_bench_items_per_second("walk"), 1e9 / weir_bench_items_per_second("build"),
	       1e9 / weir_bench_items_per_second("read/none"));
	return rc;
}
