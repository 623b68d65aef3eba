/* recorded_read.c: prints the records of a recorded topic as kcat does with -f '%p|%o|%T|%k|%s|%h\n' (a null is empty),
 * for the interop tests. recorded_read DIR TOPIC [uncommitted] [abort] Warnings go to stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/recorded/recorded.h"

/* The headers as name=value,... */
static void print_headers(const struct weir_record *r)
{
	const uint8_t *p = r->headers;
	for (uint32_t i = 0; i < r->header_count; i++) {
		for (int part = 0; part < 2; part++) {
			uint64_t v = 0;
			for (int shift = 0;; shift += 7) {
				v |= (uint64_t)(*p & 0x7f) << shift;
				if (*p++ < 0x80)
					break;
			}
			int64_t bytes = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
			printf("%s%.*s",
			       part != 0 ? "="
			       : i != 0  ? ","
					 : "",
			       bytes < 0 ? 0 : (int)bytes, (const char *)p);
			p += bytes < 0 ? 0 : bytes;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: recorded_read DIR TOPIC [uncommitted] [abort]\n");
		return 2;
	}
	const char *topic = argv[2];
	struct weir_recorded_source_spec spec = {
		.path = argv[1], .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	for (int i = 3; i < argc; i++) {
		spec.read_uncommitted |= strcmp(argv[i], "uncommitted") == 0;
		spec.open_transaction_abort |= strcmp(argv[i], "abort") == 0;
	}
	struct weir_stream_log *sl;
	struct weir_diag *dg = NULL;
	if (weir_recorded_source_open(&sl, &spec, &dg) != WEIR_OK)
		goto failed;
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		enum weir_poll poll;
		while ((poll = sl->ops->peek(sl, p, &ts, &dg)) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			if (sl->ops->take(sl, p, &u, &dg) != WEIR_OK)
				goto failed;
			for (uint32_t i = 0; i < u->count; i++) {
				const struct weir_record *r = &u->records[i];
				printf("%u|%" PRId64 "|%" PRId64 "|%.*s|%.*s|", p, r->offset, r->timestamp,
				       (int)r->key_bytes, (const char *)r->key, (int)r->value_bytes,
				       (const char *)r->value);
				print_headers(r);
				putchar('\n');
			}
			sl->ops->release(sl, u);
		}
		if (poll == WEIR_POLL_ERROR)
			goto failed;
	}
	for (uint32_t i = 0; weir_recorded_source_warning(sl, i) != NULL; i++)
		fprintf(stderr, "%s\n", weir_recorded_source_warning(sl, i));
	sl->ops->close(sl);
	return 0;
failed:
	fprintf(stderr, "%s\n", weir_diag_report(dg));
	return 1;
}
