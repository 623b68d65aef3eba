/* recorded_write.c: writes recorded topics for Kafka's own tools to look at.
 *   recorded_write DIR       topics t-none, t-gzip, ... outside any application, and application "interop" with results
 * "out", a changelog "interop-changelog" that has been rewritten, and rolled segments Records have every shape: no key,
 * null value, empty ones, headers, large ones, times that go back. */
#include <stdio.h>
#include <stdlib.h>

#include "io/recorded/codec.h"
#include "io/recorded/log.h"
#include "io/recorded/recorded.h"

static char large[300000];
static const uint8_t headers[] = {2, 'a', 6, 'o', 'n', 'e', 2, 'b', 1, 2, 'c', 0};

static struct weir_out record(int i)
{
	static char key[32], value[64];
	snprintf(key, sizeof key, "key-%d", i % 50);
	snprintf(value, sizeof value, "{\"n\":%d,\"text\":\"some text that repeats\"}", i);
	struct weir_out r = {.timestamp = 1700000000000 + i * 10 - i % 13 * 500};
	if (i % 7 != 0)
		r.key = (struct weir_slice){i % 8 == 0 ? "" : key, i % 8 == 0 ? 0 : strlen(key)};
	if (i % 501 == 0)
		r.value = (struct weir_slice){large, sizeof large};
	else if (i % 11 != 0)
		r.value = (struct weir_slice){i % 12 == 0 ? "" : value, i % 12 == 0 ? 0 : strlen(value)};
	if (i % 5 == 0) {
		r.headers = headers;
		r.headers_bytes = sizeof headers;
		r.header_count = 3;
	}
	return r;
}

static void must(enum weir_err err, struct weir_diag *dg)
{
	if (err == WEIR_OK)
		return;
	fprintf(stderr, "recorded_write: %s\n", weir_diag_report(dg));
	exit(1);
}

static void write_application(const char *dir)
{
	struct weir_diag *dg = NULL;
	struct weir_log *lg;
	uint32_t out, changelog, n;
	must(weir_recorded_log_open(&lg, dir, "interop", &dg), dg);
	weir_recorded_log_set_segment_bytes(lg, 20000);
	weir_recorded_log_set_compact_slack(lg, 30000);
	must(lg->ops->topic(lg, &(struct weir_topic_spec){.name = "out", .partitions = 2, .compression = "lz4"}, &out,
			    &n, &dg),
	     dg);
	must(lg->ops->topic(lg,
			    &(struct weir_topic_spec){.name = "interop-changelog",
						      .kind = WEIR_TOPIC_CHANGELOG,
						      .partitions = 1,
						      .compression = "zstd"},
			    &changelog, &n, &dg),
	     dg);
	must(lg->ops->make(lg, &dg), dg);
	for (int i = 1; i < 5000; i++) {
		struct weir_out r = record(i);
		if (i % 501 == 0)
			continue;
		must(lg->ops->append(lg, out, (uint32_t)i % 2, &r, &dg), dg);
		must(lg->ops->append(lg, changelog, 0, &r, &dg), dg);
		if (i % 100 == 0)
			must(lg->ops->cut(lg, &dg), dg);
		if (i % 500 == 0)
			must(lg->ops->commit(lg, (uint64_t)i / 500, &dg), dg);
	}
	must(lg->ops->commit(lg, 10, &dg), dg);
	lg->ops->close(lg);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: recorded_write DIR\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof large; i++)
		large[i] = (char)(i * 31 % 251);
	struct weir_diag *dg = NULL;
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		struct weir_topic_writer *w;
		char topic[32];
		snprintf(topic, sizeof topic, "t-%s", weir_codec_name(codec));
		must(weir_topic_writer_open(&w, argv[1], topic, 1, codec, &dg), dg);
		for (int i = 0; i < 3000; i++) {
			struct weir_out r = record(i);
			must(weir_topic_writer_put(w, 0, &r, &dg), dg);
		}
		must(weir_topic_writer_close(w, &dg), dg);
	}
	write_application(argv[1]);
	return 0;
}
