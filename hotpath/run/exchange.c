/* exchange.c: heads and time records of repartition topics (exchange.h). @thread worker; snap writes */
#include "hotpath/run/exchange.h"

enum { TIME_MARK = -1, TIME_HEAD = 8 };
static const uint32_t leaves_bit = UINT32_C(1) << 31;

static void put_le32(struct weir_buf *out, uint32_t v)
{
	uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
	weir_buf_put(out, b, sizeof b);
}

static void put_le64(struct weir_buf *out, uint64_t v)
{
	put_le32(out, (uint32_t)v);
	put_le32(out, (uint32_t)(v >> 32));
}

void weir_exchange_head(struct weir_buf *out, uint32_t upstream, int64_t time, int64_t event_time, bool leaves)
{
	put_le32(out, upstream | (leaves ? leaves_bit : 0));
	put_le64(out, (uint64_t)time);
	put_le64(out, (uint64_t)event_time);
}

void weir_exchange_time_begin(struct weir_buf *out)
{
	out->bytes = 0;
	put_le32(out, (uint32_t)TIME_MARK);
	put_le32(out, 0);
}

void weir_exchange_time_put(struct weir_buf *out, uint32_t upstream, int64_t time, uint32_t flags)
{
	put_le32(out, upstream);
	put_le64(out, (uint64_t)time);
	weir_buf_put_byte(out, (uint8_t)flags);
	uint32_t count = weir_load_le32(out->data + 4) + 1;
	for (int i = 0; i < 4; i++)
		out->data[4 + i] = (uint8_t)(count >> 8 * i);
}

/* False: it is not a whole time record. */
static bool take_times(const struct weir_record *r, uint32_t part, struct weir_times *tm, int64_t *now)
{
	if (r->value_bytes < TIME_HEAD)
		return false;
	uint32_t count = weir_load_le32(r->value + 4);
	if ((uint64_t)count * WEIR_EXCHANGE_TIME_BYTES != r->value_bytes - TIME_HEAD)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *at = r->value + TIME_HEAD + (size_t)i * WEIR_EXCHANGE_TIME_BYTES;
		*now = weir_times_upstream(tm, part, weir_load_le32(at), (int64_t)weir_load_le64(at + 4), at[12]);
	}
	return true;
}

void weir_exchange_unwrap(struct weir_fragment *fr, struct weir_times *tm)
{
	const struct weir_input *in = fr->input;
	int64_t now = weir_times_part(tm, fr->part);
	fr->sel.count = 0;
	for (uint32_t i = 0; i < in->count; i++) {
		const struct weir_record *r = &in->records[i];
		struct weir_record *u = &fr->unwrapped[i];
		*u = *r;
		bool head = r->value && r->value_bytes >= 4;
		if (head && weir_load_le32(r->value) == UINT32_MAX && take_times(r, fr->part, tm, &now))
			continue;
		fr->exchange_leaves[i] = 0;
		if (r->value && r->value_bytes >= WEIR_EXCHANGE_HEAD) {
			uint32_t upstream = weir_load_le32(r->value);
			now = weir_times_upstream(tm, fr->part, upstream & ~leaves_bit,
						  (int64_t)weir_load_le64(r->value + 4), 0);
			u->timestamp = (int64_t)weir_load_le64(r->value + 12);
			fr->exchange_leaves[i] = (upstream & leaves_bit) != 0;
			u->value += WEIR_EXCHANGE_HEAD;
			u->value_bytes -= WEIR_EXCHANGE_HEAD;
		}
		fr->exchange_run[i] = now;
		fr->sel.row[fr->sel.count++] = (uint16_t)i;
	}
	fr->exchange_time = now;
}

void weir_exchange_times(struct weir_fragment *fr)
{
	memcpy(fr->run, fr->exchange_run, fr->input->count * sizeof *fr->run);
	fr->time_max = fr->exchange_time;
}
