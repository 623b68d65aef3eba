/* batch.h: records in columns. A batch is up to WEIR_BATCH_ROWS records of one partition; its columns are written by
 * the worker that decodes it and read-only afterwards.
 *
 * Three layers:
 *   struct weir_record   one record as slices into the log's memory: what io hands to a worker
 *   struct weir_col      one typed column of a batch with a null bitmap
 *   struct weir_scratch  bump memory of one batch for values that are computed (strings, keys); reset per batch
 */
#ifndef WEIR_CORE_BATCH_H
#define WEIR_CORE_BATCH_H

#include "hotpath/core/base.h"
#include "hotpath/core/type.h"

#define WEIR_BATCH_ROWS 1024
#define WEIR_NULL_WORDS (WEIR_BATCH_ROWS / 64)
/* Payload slices are readable for this many bytes beyond their end, so that SIMD code may over-read (never use). */
#define WEIR_PAYLOAD_PAD 64

/* Borrowed bytes of a value in a column. data is never NULL for a non-null value. */
struct weir_str {
	const uint8_t *data;
	uint32_t bytes;
	uint32_t pad;
};

/* One record as the log gives it. key/value NULL pointer: a Kafka null; an empty value has a non-NULL pointer. */
struct weir_record {
	const uint8_t *key;
	const uint8_t *value;
	uint32_t key_bytes;
	uint32_t value_bytes;
	const uint8_t *headers; /* Kafka's v2 header bytes after the count: [varint klen, key, varint vlen, value]* */
	uint32_t headers_bytes;
	uint32_t header_count;
	int64_t offset;
	int64_t timestamp; /* ms; -1 where there is none */
};

/* One column of up to WEIR_BATCH_ROWS values. Values of null rows are unspecified but initialised (0). */
struct weir_col {
	enum weir_phys phys;
	bool has_null; /* false: no bit in nulls is set (nulls need not be looked at) */
	bool is_const; /* only row 0 is written; it stands for every row */
	union {
		void *data;
		uint8_t *u8;
		int64_t *i64;
		double *f64;
		weir_i128 *i128;
		struct weir_str *str;
	};
	uint64_t *nulls; /* WEIR_NULL_WORDS words; bit set: null */
};

WEIR_INLINE bool weir_col_is_null(const struct weir_col *c, uint32_t row)
{
	if (!c->has_null)
		return false;
	row = c->is_const ? 0 : row;
	return (c->nulls[row >> 6] >> (row & 63)) & 1;
}
WEIR_INLINE void weir_col_set_null(struct weir_col *c, uint32_t row)
{
	c->has_null = true;
	c->nulls[row >> 6] |= UINT64_C(1) << (row & 63);
}
/* Makes every row non-null. Call before filling a column again. */
WEIR_INLINE void weir_col_clear_nulls(struct weir_col *c)
{
	if (c->has_null)
		memset(c->nulls, 0, WEIR_NULL_WORDS * sizeof *c->nulls);
	c->has_null = false;
}

/* Storage for a column of WEIR_BATCH_ROWS rows, zeroed, 64-byte aligned, freed by weir_col_fini. @thread init */
void weir_col_init(struct weir_col *c, enum weir_phys phys);
void weir_col_fini(struct weir_col *c);

/* Bump memory for one batch: grows by chunks that are kept, so that a warmed-up batch allocates nothing. */
struct weir_scratch_chunk;
struct weir_scratch {
	uint8_t *at;
	uint8_t *end;
	struct weir_scratch_chunk *first;
	struct weir_scratch_chunk *current;
	size_t bytes_total; /* of all chunks, for memory accounting */
};
void weir_scratch_init(struct weir_scratch *s);
void weir_scratch_fini(struct weir_scratch *s);
/* Forgets everything taken; keeps chunks up to keep_bytes (so one giant record does not stay for ever). */
void weir_scratch_reset(struct weir_scratch *s);
void *weir_scratch_take_slow(struct weir_scratch *s, size_t bytes);
/* bytes of memory valid until the next reset, 8-byte aligned; readable WEIR_PAYLOAD_PAD beyond its end. Never NULL, for
 * 0 bytes neither: an empty value is not a null one. */
WEIR_INLINE void *weir_scratch_take(struct weir_scratch *s, size_t bytes)
{
	bytes = weir_align_up(bytes + !bytes, 8);
	if (WEIR_UNLIKELY((size_t)(s->end - s->at) < bytes))
		return weir_scratch_take_slow(s, bytes);
	void *p = s->at;
	s->at += bytes;
	return p;
}

/* Why a record was refused. The names are what `weir-error-reason` and the metrics say. */
enum weir_reason {
	WEIR_REASON_NONE,
	WEIR_REASON_JSON,      /* json: malformed document */
	WEIR_REASON_CSV,       /* csv */
	WEIR_REASON_KAFKA,     /* kafka: wrong length for a primitive */
	WEIR_REASON_PACKED,    /* packed */
	WEIR_REASON_FRAMING,   /* framing: looks schema-registry framed */
	WEIR_REASON_UTF8,      /* utf8: invalid UTF-8 or a lone surrogate */
	WEIR_REASON_DEPTH,     /* depth: nested beyond json.depth.max */
	WEIR_REASON_SIZE,      /* size: beyond record.bytes.max */
	WEIR_REASON_TYPE,      /* type: the field is of another type */
	WEIR_REASON_RANGE,     /* range: out of the type's range */
	WEIR_REASON_NULL,      /* null: NULL where NOT NULL is declared, or a null value on a stream */
	WEIR_REASON_TIMESTAMP, /* timestamp: negative, missing or out of range */
	WEIR_REASON_NULL_KEY,  /* null_key: weir_key_by and every key column NULL */
	WEIR_REASON_FUTURE,    /* future: beyond time.future.max.ms */
	WEIR_REASON_OVERFLOW,  /* overflow: arithmetic in an expression */
	WEIR_REASON_EXPR,      /* expr: any other run-time error of an expression (CAST, division by zero) */
	WEIR_REASON_LATE,      /* late: only as the reason of a late.topic record */
	WEIR_REASON_COUNT
};
const char *weir_reason_name(enum weir_reason r);

/* The errors of one batch, a slot per row; a row with reason != NONE is out of the selection. */
struct weir_row_error {
	uint16_t row;
	uint8_t reason;     /* enum weir_reason */
	uint32_t at;        /* byte offset in the value, UINT32_MAX where there is none */
	const char *field;  /* plan-lifetime name of the field or expression, or NULL */
	const char *detail; /* static text ("expected a number"), or NULL */
};
struct weir_row_errors {
	uint32_t count;
	struct weir_row_error e[WEIR_BATCH_ROWS];
};
/* Appends one error. The caller takes the row out of its selection. */
WEIR_INLINE void weir_row_errors_add(struct weir_row_errors *re, uint32_t row, enum weir_reason reason, uint32_t at,
				     const char *field, const char *detail)
{
	WEIR_DASSERT(re->count < WEIR_BATCH_ROWS);
	re->e[re->count++] = (struct weir_row_error){(uint16_t)row, (uint8_t)reason, at, field, detail};
}

/* Which rows of a batch are still in: ascending row numbers. */
struct weir_sel {
	uint32_t count;
	uint16_t row[WEIR_BATCH_ROWS];
};
WEIR_INLINE void weir_sel_all(struct weir_sel *s, uint32_t count)
{
	uint64_t rows = UINT64_C(0x0003000200010000);
	s->count = count;
	for (uint32_t i = 0; i < count; i += 4, rows += UINT64_C(0x0004000400040004)) /* up to 3 beyond have room */
		weir_store_le64(&s->row[i], rows);
}

#endif
