/* kernel_time_text.c: times from and to numbers and text. @thread worker (kernels), init (rules, prepare).
 *
 * Patterns are Java's (time_pattern.h). A constant one is compiled and checked when the plan is made; a pattern that is
 * a column is compiled row by row, and a bad one gives NULL. Text that does not match gives NULL, as in Flink; a number
 * beyond the years 0 to 9999 is a row error (range). No zone but UTC is ever assumed: the process's TZ is not read. */
#include "hotpath/expr/kernel.h"

#include <math.h>

#include "hotpath/expr/decimal.h"
#include "hotpath/expr/time_pattern.h"
#include "hotpath/expr/zone.h"
#include "hotpath/time/civil.h"

/* Made by prepare from constant arguments. */
struct text_data {
	bool has_pattern;
	struct weir_time_pattern pattern;
	const struct weir_zone *from, *to;
};

static enum weir_err prepare_pattern(const struct weir_expr *const *args, uint32_t count, uint32_t at,
				     struct weir_mem *m, struct text_data **out, struct weir_diag **dg)
{
	struct text_data *d = weir_mem_take(m, sizeof *d);
	*out = d;
	const struct weir_expr *e = weir_const_arg(args, count, at);
	const char *problem = NULL;
	if (e == NULL)
		return WEIR_OK;
	if (!weir_time_pattern_compile((const char *)e->value.str.data, e->value.str.bytes, &d->pattern, &problem))
		return weir_diag_set(dg, WEIR_E_PLAN, "bad date pattern '%.*s': %s", (int)e->value.str.bytes,
				     (const char *)e->value.str.data, problem);
	d->has_pattern = true;
	return WEIR_OK;
}

WEIR_PREPARE(pattern_1)
{
	struct text_data *d = NULL;
	enum weir_err err = prepare_pattern(args, count, 1, m, &d, dg);
	*data = d;
	return err;
}

static enum weir_err prepare_zone(const struct weir_expr *const *args, uint32_t count, uint32_t at, struct weir_mem *m,
				  const struct weir_zone **out, struct weir_diag **dg)
{
	const struct weir_expr *e = weir_const_arg(args, count, at);
	if (e == NULL)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "the time zone must be a constant: zone files are read when the plan is made");
	return weir_zone_load((const char *)e->value.str.data, e->value.str.bytes, m, out, dg);
}

WEIR_PREPARE(ltz_text)
{
	struct text_data *d = NULL;
	enum weir_err err = prepare_pattern(args, count, 1, m, &d, dg);
	if (err == WEIR_OK && count > 2)
		err = prepare_zone(args, count, 2, m, &d->from, dg);
	*data = d;
	return err;
}

WEIR_PREPARE(convert_tz)
{
	struct text_data *d = weir_mem_take(m, sizeof *d);
	*data = d;
	enum weir_err err = prepare_zone(args, count, 1, m, &d->from, dg);
	return err == WEIR_OK ? prepare_zone(args, count, 2, m, &d->to, dg) : err;
}

/* The pattern of row r: the prepared one or spare, filled; NULL: a bad one. */
static const struct weir_time_pattern *pattern_of(const struct weir_kernel *k, uint32_t arg, uint32_t r,
						  struct weir_time_pattern *spare)
{
	const struct text_data *d = k->expr->fn_data;
	const char *problem;
	if (d != NULL && d->has_pattern)
		return &d->pattern;
	struct weir_str s = weir_arg_str(k, arg, r);
	return weir_time_pattern_compile((const char *)s.data, s.bytes, spare, &problem) ? spare : NULL;
}

/* Text of argument 0 as microseconds, by the pattern in argument 1 if there is one. */
static bool text_micros(const struct weir_kernel *k, uint32_t r, int64_t *micros)
{
	struct weir_str s = weir_arg_str(k, 0, r);
	struct weir_time_pattern spare;
	if (k->expr->arg_count < 2) {
		char padded[WEIR_CIVIL_PADDED_MAX];
		const char *text = (const char *)s.data;
		size_t bytes = weir_civil_pad(&text, s.bytes, padded);
		return weir_civil_parse_timestamp(text, bytes, 6, 1000, micros, NULL) == WEIR_CIVIL_OK;
	}
	const struct weir_time_pattern *p = pattern_of(k, 1, r, &spare);
	return p != NULL && weir_time_pattern_parse(p, (const char *)s.data, s.bytes, micros);
}

#define MICROS_DAY (WEIR_DAY_MS * 1000)

WEIR_KERNEL(to_timestamp)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t us;
		if (text_micros(k, r, &us))
			k->out->i64[r] = weir_floor_div(us, 1000);
		else
			weir_col_set_null(k->out, r);
	}
}

WEIR_KERNEL(ltz_text)
{
	const struct text_data *d = k->expr->fn_data;
	WEIR_FOR_ROWS(k, r)
	{
		int64_t us;
		if (!text_micros(k, r, &us)) {
			weir_col_set_null(k->out, r);
			continue;
		}
		int64_t ms = weir_floor_div(us, 1000);
		if (d != NULL && d->from != NULL) {
			int64_t second = weir_floor_div(ms, 1000);
			ms += (weir_zone_to_utc(d->from, second) - second) * 1000;
		}
		k->out->i64[r] = ms;
	}
}

WEIR_KERNEL(to_date)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t us;
		if (text_micros(k, r, &us))
			k->out->i64[r] = weir_floor_div(us, MICROS_DAY);
		else
			weir_col_set_null(k->out, r);
	}
}

WEIR_KERNEL(unix_timestamp)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t us;
		if (text_micros(k, r, &us))
			k->out->i64[r] = weir_floor_div(us, 1000000);
		else
			weir_col_set_null(k->out, r);
	}
}

/* -- from numbers -- */

/* TO_TIMESTAMP_LTZ(n[, p]): n counts 10^-p seconds; p 0, 3 (default), 6 or 9. */
WEIR_RESOLVE(ltz_number)
{
	if (!weir_kind_is_numeric(want[0].kind) && want[0].kind != WEIR_KIND_NULL)
		return false;
	bool not_null = want[0].not_null;
	if (want[0].kind == WEIR_KIND_FLOAT)
		want[0] = weir_type_of(WEIR_KIND_DOUBLE);
	else if (want[0].kind != WEIR_KIND_DECIMAL && want[0].kind != WEIR_KIND_DOUBLE)
		want[0] = weir_type_of(WEIR_KIND_BIGINT);
	want[0].not_null = not_null;
	const struct weir_expr *p = weir_const_arg(args, count, 1);
	if (count > 1 && !weir_kind_is_integer(want[1].kind))
		return false;
	if (count > 1)
		want[1] = weir_type_of(WEIR_KIND_BIGINT);
	*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP_LTZ, p != NULL && p->value.i64 > 3 ? 6 : 3);
	result->not_null = not_null;
	return true;
}

WEIR_PREPARE(ltz_number)
{
	(void)m, (void)data;
	const struct weir_expr *p = weir_const_arg(args, count, 1);
	if (count < 2 ||
	    (p != NULL && (p->value.i64 == 0 || p->value.i64 == 3 || p->value.i64 == 6 || p->value.i64 == 9)))
		return WEIR_OK;
	return weir_diag_set(
		dg, WEIR_E_PLAN,
		"TO_TIMESTAMP_LTZ: the second argument is 0 (seconds), 3 (ms), 6 (us) or 9 (ns), a constant");
}

/* Copies n numbers; the sign of the result says that some are below first or above last (no range is near where the
 * differences would wrap). */
WEIR_INLINE uint64_t copy_within_inline(int64_t *restrict to, const int64_t *restrict from, uint32_t n, uint64_t first,
					uint64_t last)
{
	typedef uint64_t four __attribute__((vector_size(32), aligned(8), may_alias));
	four bits = {0}, low = {0}, high = {0};
	uint32_t i = 0;
	low += first;
	high += last;
	for (; i + 4 <= n; i += 4) {
		four x = *(const four *)(const void *)(from + i);
		*(four *)(void *)(to + i) = x;
		bits |= (x - low) | (high - x);
	}
	uint64_t outside = bits[0] | bits[1] | bits[2] | bits[3];
	for (; i < n; i++) {
		to[i] = from[i];
		outside |= ((uint64_t)from[i] - first) | (last - (uint64_t)from[i]);
	}
	return outside;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static WEIR_NOINLINE uint64_t copy_within_avx2(int64_t *restrict to,
									       const int64_t *restrict from, uint32_t n,
									       uint64_t first, uint64_t last)
{
	return copy_within_inline(to, from, n, first, last);
}
#endif

static uint64_t copy_within(int64_t *restrict to, const int64_t *restrict from, uint32_t n, uint64_t first,
			    uint64_t last)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return copy_within_avx2(to, from, n, first, last);
#endif
	return copy_within_inline(to, from, n, first, last);
}

/* A BIGINT that counts the ticks of the result already, the usual case: 2 instructions a row with AVX2. False: some row
 * may be out of range (or one that nobody asked for), so that the general way must look. */
static bool ltz_same_unit(struct weir_kernel *k, int64_t per_day)
{
	int64_t *restrict o = k->out->i64;
	const int64_t *restrict from = k->in[0]->i64;
	uint64_t first = (uint64_t)WEIR_CIVIL_DAY_FIRST * (uint64_t)per_day, outside = 0;
	uint64_t last = (uint64_t)(WEIR_CIVIL_DAY_LAST + 1) * (uint64_t)per_day - 1;
	uint32_t n, mask = k->in[0]->is_const ? 0 : UINT32_MAX;
	if (weir_kernel_dense(k, &n) && mask != 0) {
		outside = copy_within(o, from, n, first, last);
	} else {
		WEIR_FOR_ROWS(k, r)
		{
			int64_t x = from[r & mask];
			outside |= ((uint64_t)x - first) | (last - (uint64_t)x);
			o[r] = x;
		}
	}
	return outside >> 63 == 0;
}

WEIR_KERNEL(ltz_number)
{
	int p = k->expr->arg_count > 1 ? (int)k->expr->args[1]->value.i64 : 3;
	int ticks = k->expr->type.precision > 3 ? 6 : 3,
	    scale = k->expr->args[0]->type.kind == WEIR_KIND_DECIMAL ? k->expr->args[0]->type.scale : 0;
	int64_t per_day = ticks == 6 ? MICROS_DAY : WEIR_DAY_MS;
	if (k->in[0]->phys == WEIR_PHYS_I64 && scale + p == ticks && ltz_same_unit(k, per_day))
		return;
	WEIR_FOR_ROWS(k, r)
	{
		weir_i128 v = 0;
		bool ok = true;
		if (k->in[0]->phys == WEIR_PHYS_F64) {
			double d = floor(weir_arg_f64(k, 0, r) * (p > ticks              ? 1e-3
								  : p == ticks           ? 1
								  : p == 0 && ticks == 3 ? 1e3
											 : 1));
			ok = fabs(d) < 0x1p62;
			v = ok ? (weir_i128)d : 0;
		} else {
			v = weir_col_i128(k->in[0], r);
			/* n * 10^(ticks - p), floored */
			int down = scale + p - ticks;
			if (down >= 0) {
				weir_i128 unit = weir_decimal_pow10[down > 38 ? 38 : down];
				v = v / unit - (v % unit < 0);
			} else {
				ok = weir_decimal_rescale(v, 0, -down, &v);
			}
		}
		if (!ok || v < (weir_i128)WEIR_CIVIL_DAY_FIRST * per_day ||
		    v >= (weir_i128)(WEIR_CIVIL_DAY_LAST + 1) * per_day)
			weir_kernel_fail(k, r, WEIR_REASON_RANGE, "the time is outside of the years 0000 to 9999");
		else
			k->out->i64[r] = (int64_t)v;
	}
}

/* -- to text -- */

static void out_pattern(struct weir_kernel *k, uint32_t r, const struct weir_time_pattern *p, int64_t micros)
{
	char text[WEIR_TIME_PATTERN_TEXT_MAX];
	if (p == NULL)
		weir_col_set_null(k->out, r);
	else
		weir_out_copy(k, r, text, weir_time_pattern_print(p, micros, text, sizeof text));
}

static const struct weir_time_pattern *default_pattern(struct weir_time_pattern *spare)
{
	static const char text[] = "yyyy-MM-dd HH:mm:ss";
	const char *problem;
	return weir_time_pattern_compile(text, sizeof text - 1, spare, &problem) ? spare : NULL;
}

/* FROM_UNIXTIME(seconds[, pattern]) */
WEIR_KERNEL(from_unixtime)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_time_pattern spare;
		const struct weir_time_pattern *p =
			k->expr->arg_count > 1 ? pattern_of(k, 1, r, &spare) : default_pattern(&spare);
		int64_t seconds = weir_arg_i64(k, 0, r);
		if (seconds < WEIR_CIVIL_DAY_FIRST * 86400 || seconds >= (WEIR_CIVIL_DAY_LAST + 1) * 86400)
			weir_kernel_fail(k, r, WEIR_REASON_RANGE, "the time is outside of the years 0000 to 9999");
		else
			out_pattern(k, r, p, seconds * 1000000);
	}
}

/* DATE_FORMAT(t, pattern); text for t is read as a TIMESTAMP. */
WEIR_RESOLVE(date_format)
{
	(void)args, (void)count;
	bool ok = (want[0].kind >= WEIR_KIND_DATE && want[0].kind <= WEIR_KIND_TIMESTAMP_LTZ) ||
		  weir_kind_is_string(want[0].kind) || want[0].kind == WEIR_KIND_NULL;
	if (!ok || (!weir_kind_is_string(want[1].kind) && want[1].kind != WEIR_KIND_NULL))
		return false;
	bool not_null = want[0].not_null && want[1].not_null;
	if (weir_kind_is_string(want[0].kind) || want[0].kind == WEIR_KIND_NULL)
		want[0] = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
	want[1] = weir_type_string();
	*result = weir_type_string();
	result->not_null = not_null;
	return true;
}

WEIR_KERNEL(date_format)
{
	const struct weir_type *t = &k->expr->args[0]->type;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_time_pattern spare;
		int64_t v = weir_arg_i64(k, 0, r);
		int64_t factor = t->kind == WEIR_KIND_DATE   ? MICROS_DAY
				 : t->kind == WEIR_KIND_TIME ? 1000
							     : 1000 / weir_ticks_per_ms(t);
		if (__builtin_mul_overflow(v, factor, &v))
			weir_kernel_fail(k, r, WEIR_REASON_RANGE, "the time is outside of what a pattern can print");
		else
			out_pattern(k, r, pattern_of(k, 1, r, &spare), v);
	}
}

/* CONVERT_TZ('2026-01-01 00:00:00', from, to) */
WEIR_KERNEL(convert_tz)
{
	const struct text_data *d = k->expr->fn_data;
	struct weir_time_pattern spare;
	const struct weir_time_pattern *p = default_pattern(&spare);
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		int64_t us;
		if (weir_civil_parse_timestamp((const char *)s.data, s.bytes, 6, 1000, &us, NULL) != WEIR_CIVIL_OK) {
			weir_col_set_null(k->out, r);
			continue;
		}
		int64_t utc = weir_zone_to_utc(d->from, weir_floor_div(us, 1000000));
		out_pattern(k, r, p, (utc + weir_zone_offset(d->to, utc)) * 1000000);
	}
}

/* -- the clock -- */

WEIR_RESOLVE(clock)
{
	(void)args, (void)count, (void)want;
	*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP_LTZ, 3);
	return true;
}

WEIR_PREPARE(clock)
{
	(void)args, (void)count, (void)m, (void)data;
	return weir_diag_set(dg, WEIR_E_PLAN,
			     "this function reads the wall clock (or chance), which replay could not repeat; take the "
			     "record's own time or value");
}

/* Never runs: prepare refuses. */
WEIR_KERNEL(clock)
{
	WEIR_FOR_ROWS(k, r)
	weir_col_set_null(k->out, r);
}
