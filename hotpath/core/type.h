/* type.h: SQL types, and how each stands in memory (struct weir_type, enum weir_phys). @thread any.
 *
 *   kind                                 phys       unit or form
 *   BOOLEAN                              U8         0, 1
 *   TINYINT SMALLINT INT BIGINT          I64        sign-extended; the kind bounds the range
 *   FLOAT DOUBLE                         F64        FLOAT values are exactly representable as float
 *   DECIMAL(p, s), p <= 18               I64        unscaled
 *   DECIMAL(p, s), p <= 38               I128       unscaled
 *   CHAR VARCHAR STRING BYTES            STR        struct weir_str, not terminated; strings are valid UTF-8
 *   DATE                                 I64        days since 1970-01-01
 *   TIME(p)                              I64        milliseconds of the day (p <= 3)
 *   TIMESTAMP(p) TIMESTAMP_LTZ(p)        I64        p <= 3: ms since 1970-01-01 00:00:00; p 4..6: us
 *   INTERVAL DAY TO SECOND               I64        milliseconds (literals and arithmetic only)
 *   INTERVAL YEAR TO MONTH               I64        months (literals and arithmetic only)
 *   ARRAY<T> MAP<STRING, T> ROW<...>     STR        the value's compact JSON text (read access only)
 *   NULL                                 I64        the type of a bare NULL before coercion; every row is null
 */
#ifndef WEIR_CORE_TYPE_H
#define WEIR_CORE_TYPE_H

#include "hotpath/core/base.h"

enum weir_kind {
	WEIR_KIND_NULL,
	WEIR_KIND_BOOLEAN,
	WEIR_KIND_TINYINT,
	WEIR_KIND_SMALLINT,
	WEIR_KIND_INT,
	WEIR_KIND_BIGINT,
	WEIR_KIND_FLOAT,
	WEIR_KIND_DOUBLE,
	WEIR_KIND_DECIMAL,
	WEIR_KIND_CHAR,    /* CHAR(n): padded? no, like Flink's codec: stored as given, at most n characters */
	WEIR_KIND_VARCHAR, /* STRING is VARCHAR(2147483647): length INT32_MAX */
	WEIR_KIND_BYTES,
	WEIR_KIND_DATE,
	WEIR_KIND_TIME,
	WEIR_KIND_TIMESTAMP,
	WEIR_KIND_TIMESTAMP_LTZ,
	WEIR_KIND_INTERVAL_MS,
	WEIR_KIND_INTERVAL_MONTH,
	WEIR_KIND_ARRAY,
	WEIR_KIND_MAP,
	WEIR_KIND_ROW
};

enum weir_phys { WEIR_PHYS_U8, WEIR_PHYS_I64, WEIR_PHYS_F64, WEIR_PHYS_I128, WEIR_PHYS_STR };

/* Immutable once made; nested types are borrowed from the arena (struct weir_mem) that the outer one came from. */
struct weir_type {
	enum weir_kind kind;
	uint8_t precision; /* DECIMAL: p 1..38; TIME, TIMESTAMP*: p 0..6 */
	uint8_t scale;     /* DECIMAL: s 0..p */
	bool not_null;
	int32_t length;                 /* CHAR, VARCHAR: characters, INT32_MAX for STRING */
	uint16_t field_count;           /* ROW: fields; ARRAY: 1; MAP: 2 (key, value) */
	const struct weir_type *fields; /* element types, field_count of them */
	const char *const *field_names; /* ROW only */
};

enum weir_phys weir_type_phys(const struct weir_type *t);
/* Bytes of one value in a column: 1, 8, 8, 16 or sizeof(struct weir_str). */
size_t weir_phys_bytes(enum weir_phys phys);
bool weir_type_equal(const struct weir_type *a, const struct weir_type *b); /* not_null is ignored */
/* "DECIMAL(12, 2)" in Flink's spelling; writes at most bytes including the terminator, returns buf. */
char *weir_type_text(const struct weir_type *t, char *buf, size_t bytes);

WEIR_INLINE bool weir_kind_is_integer(enum weir_kind k)
{
	return k >= WEIR_KIND_TINYINT && k <= WEIR_KIND_BIGINT;
}
WEIR_INLINE bool weir_kind_is_numeric(enum weir_kind k)
{
	return k >= WEIR_KIND_TINYINT && k <= WEIR_KIND_DECIMAL;
}
WEIR_INLINE bool weir_kind_is_string(enum weir_kind k)
{
	return k == WEIR_KIND_CHAR || k == WEIR_KIND_VARCHAR;
}
WEIR_INLINE bool weir_kind_is_timestamp(enum weir_kind k)
{
	return k == WEIR_KIND_TIMESTAMP || k == WEIR_KIND_TIMESTAMP_LTZ;
}
/* Ticks of a TIMESTAMP*(p) per millisecond: 1 or 1000. */
WEIR_INLINE int64_t weir_ticks_per_ms(const struct weir_type *t)
{
	return t->precision > 3 ? 1000 : 1;
}

#endif
