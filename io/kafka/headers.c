/* headers.c: Kafka's header bytes to librdkafka's list and back (headers.h). */
#include "io/kafka/headers.h"

#include "hotpath/core/varint.h"

static void put_varint(struct weir_buf *b, int64_t n)
{
	for (uint64_t v = ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);; v >>= 7) {
		weir_buf_put_byte(b, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		if (v <= 0x7f)
			return;
	}
}

void weir_kafka_headers_encode(const rd_kafka_message_t *m, struct weir_buf *out, struct weir_record *r)
{
	rd_kafka_headers_t *hs;
	const char *name;
	const void *value;
	size_t bytes;
	out->bytes = 0;
	if (rd_kafka_message_headers(m, &hs) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	for (size_t i = 0; rd_kafka_header_get_all(hs, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
		put_varint(out, (int64_t)strlen(name));
		weir_buf_put(out, name, strlen(name));
		put_varint(out, value != NULL ? (int64_t)bytes : -1);
		if (value != NULL)
			weir_buf_put(out, value, bytes);
		r->header_count++;
	}
	r->headers = out->data;
	r->headers_bytes = (uint32_t)out->bytes;
}

rd_kafka_headers_t *weir_kafka_headers_decode(const struct weir_out *r)
{
	const uint8_t *p = r->headers, *end = p + r->headers_bytes;
	rd_kafka_headers_t *hs = rd_kafka_headers_new(r->header_count);
	for (uint32_t i = 0; i < r->header_count; i++) {
		int64_t name_bytes, bytes;
		bool ok = weir_varint_take(&p, end, &name_bytes) && name_bytes >= 0 && name_bytes <= end - p;
		const uint8_t *name = p;
		p += ok ? name_bytes : 0;
		ok = ok && weir_varint_take(&p, end, &bytes) && bytes >= -1 && bytes <= end - p;
		if (!ok) {
			rd_kafka_headers_destroy(hs);
			return NULL;
		}
		(void)rd_kafka_header_add(hs, (const char *)name, name_bytes, bytes < 0 ? NULL : p,
					  bytes < 0 ? 0 : bytes);
		p += bytes < 0 ? 0 : bytes;
	}
	return hs;
}
