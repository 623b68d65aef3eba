/* type.c: how SQL types stand in memory, and their text in Flink's spelling. @thread any. */
#include "hotpath/core/batch.h" /* struct weir_str, with type.h */

#include <stdarg.h>
#include <stdio.h>

enum weir_phys weir_type_phys(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		return WEIR_PHYS_U8;
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE:
		return WEIR_PHYS_F64;
	case WEIR_KIND_DECIMAL:
		return t->precision <= 18 ? WEIR_PHYS_I64 : WEIR_PHYS_I128;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
	case WEIR_KIND_BYTES:
	case WEIR_KIND_ARRAY:
	case WEIR_KIND_MAP:
	case WEIR_KIND_ROW:
		return WEIR_PHYS_STR;
	case WEIR_KIND_NULL:
	case WEIR_KIND_TINYINT:
	case WEIR_KIND_SMALLINT:
	case WEIR_KIND_INT:
	case WEIR_KIND_BIGINT:
	case WEIR_KIND_DATE:
	case WEIR_KIND_TIME:
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
	case WEIR_KIND_INTERVAL_MS:
	case WEIR_KIND_INTERVAL_MONTH:
		return WEIR_PHYS_I64;
	}
	WEIR_ASSERT(!"a known kind");
	return WEIR_PHYS_I64;
}

size_t weir_phys_bytes(enum weir_phys phys)
{
	switch (phys) {
	case WEIR_PHYS_U8:
		return 1;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		return 8;
	case WEIR_PHYS_I128:
		return 16;
	case WEIR_PHYS_STR:
		return sizeof(struct weir_str);
	}
	WEIR_ASSERT(!"a known phys");
	return 0;
}

bool weir_type_equal(const struct weir_type *a, const struct weir_type *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case WEIR_KIND_DECIMAL:
		return a->precision == b->precision && a->scale == b->scale;
	case WEIR_KIND_TIME:
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		return a->precision == b->precision;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
		return a->length == b->length;
	case WEIR_KIND_ARRAY:
	case WEIR_KIND_MAP:
	case WEIR_KIND_ROW:
		if (a->field_count != b->field_count)
			return false;
		for (uint32_t i = 0; i < a->field_count; i++) {
			if (!weir_type_equal(&a->fields[i], &b->fields[i]))
				return false;
			if (a->kind == WEIR_KIND_ROW && strcmp(a->field_names[i], b->field_names[i]) != 0)
				return false;
		}
		return true;
	default:
		return true;
	}
}

/* A text that is cut at its end rather than overrun; always terminated. */
struct cut_text {
	char *buf;
	size_t bytes;
	size_t at;
};

static void put(struct cut_text *ct, const char *fmt, ...) WEIR_PRINTF(2, 3);
static void put(struct cut_text *ct, const char *fmt, ...)
{
	if (ct->at + 1 >= ct->bytes)
		return;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(ct->buf + ct->at, ct->bytes - ct->at, fmt, ap);
	va_end(ap);
	if (n > 0)
		ct->at = (size_t)n < ct->bytes - ct->at ? ct->at + (size_t)n : ct->bytes - 1;
}

static void put_type(struct cut_text *ct, const struct weir_type *t)
{
	static const char *const plain[] = {
		[WEIR_KIND_NULL] = "NULL",
		[WEIR_KIND_BOOLEAN] = "BOOLEAN",
		[WEIR_KIND_TINYINT] = "TINYINT",
		[WEIR_KIND_SMALLINT] = "SMALLINT",
		[WEIR_KIND_INT] = "INT",
		[WEIR_KIND_BIGINT] = "BIGINT",
		[WEIR_KIND_FLOAT] = "FLOAT",
		[WEIR_KIND_DOUBLE] = "DOUBLE",
		[WEIR_KIND_DECIMAL] = "DECIMAL",
		[WEIR_KIND_CHAR] = "CHAR",
		[WEIR_KIND_VARCHAR] = "VARCHAR",
		[WEIR_KIND_BYTES] = "BYTES",
		[WEIR_KIND_DATE] = "DATE",
		[WEIR_KIND_TIME] = "TIME",
		[WEIR_KIND_TIMESTAMP] = "TIMESTAMP",
		[WEIR_KIND_TIMESTAMP_LTZ] = "TIMESTAMP_LTZ",
		[WEIR_KIND_INTERVAL_MS] = "INTERVAL DAY TO SECOND",
		[WEIR_KIND_INTERVAL_MONTH] = "INTERVAL YEAR TO MONTH",
		[WEIR_KIND_ARRAY] = "ARRAY",
		[WEIR_KIND_MAP] = "MAP",
		[WEIR_KIND_ROW] = "ROW",
	};
	WEIR_ASSERT((unsigned)t->kind < WEIR_COUNT_OF(plain));
	if (t->kind == WEIR_KIND_VARCHAR && t->length == INT32_MAX)
		put(ct, "STRING");
	else
		put(ct, "%s", plain[t->kind]);
	switch (t->kind) {
	case WEIR_KIND_DECIMAL:
		put(ct, "(%d, %d)", t->precision, t->scale);
		break;
	case WEIR_KIND_TIME:
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		put(ct, "(%d)", t->precision);
		break;
	case WEIR_KIND_CHAR:
		put(ct, "(%d)", (int)t->length);
		break;
	case WEIR_KIND_VARCHAR:
		if (t->length != INT32_MAX)
			put(ct, "(%d)", (int)t->length);
		break;
	case WEIR_KIND_ARRAY:
	case WEIR_KIND_MAP:
	case WEIR_KIND_ROW:
		put(ct, "<");
		for (uint32_t i = 0; i < t->field_count; i++) {
			if (i > 0)
				put(ct, ", ");
			if (t->kind == WEIR_KIND_ROW)
				put(ct, "%s ", t->field_names[i]);
			put_type(ct, &t->fields[i]);
		}
		put(ct, ">");
		break;
	default:
		break;
	}
	if (t->not_null)
		put(ct, " NOT NULL");
}

char *weir_type_text(const struct weir_type *t, char *buf, size_t bytes)
{
	WEIR_ASSERT(bytes > 0);
	struct cut_text ct = {buf, bytes, 0};
	buf[0] = '\0';
	put_type(&ct, t);
	return buf;
}
