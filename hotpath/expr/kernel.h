/* kernel.h: what the files of kernels (kernel_*.c) share: loops over selected rows, errors, string helpers; and the
 * names that the table in function.c refers to. Internal to hotpath/expr. @thread worker for kernels, init for resolve
 * rules.
 *
 * A loop comes in forms: dense (all rows up to the last, no index), with either side constant; and sparse. Kernels that
 * cannot fail and follow no pointer (total) run dense over rows nobody asked for, which is cheaper than skipping them:
 * whatever stands there is initialised. */
#ifndef WEIR_EXPR_KERNEL_H
#define WEIR_EXPR_KERNEL_H

#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"
#include "hotpath/expr/function.h"

/* gcc's -O2 leaves most of these loops scalar. */
#if defined(__GNUC__) && !defined(__clang__)
#define WEIR_KERNEL_LOOPS __attribute__((optimize("O3")))
#else
#define WEIR_KERNEL_LOOPS
#endif

/* Sets *n to the rows 0..*n to run over without looking at row[]; false: too sparse, use row[]. */
WEIR_INLINE bool weir_kernel_dense(const struct weir_kernel *k, uint32_t *n)
{
	*n = k->count == 0 ? 0 : (uint32_t)k->row[k->count - 1] + 1;
	return k->count * 2 >= *n;
}

/* Runs STMT for every row r with x and y the values of both columns; o is the output array. */
#define WEIR_BINARY_LOOPS(k, TA, pa, ca, TB, pb, cb, STMT)                                                             \
	do {                                                                                                           \
		const TA *restrict pa_ = (pa);                                                                         \
		const TB *restrict pb_ = (pb);                                                                         \
		uint32_t n_;                                                                                           \
		if (!weir_kernel_dense(k, &n_) || ((ca) && (cb))) {                                                    \
			uint32_t ma_ = (ca) ? 0 : UINT32_MAX, mb_ = (cb) ? 0 : UINT32_MAX;                             \
			for (uint32_t i_ = 0; i_ < (k)->count; i_++) {                                                 \
				uint32_t r = (k)->row[i_];                                                             \
				TA x = pa_[r & ma_];                                                                   \
				TB y = pb_[r & mb_];                                                                   \
				STMT;                                                                                  \
			}                                                                                              \
		} else if (cb) {                                                                                       \
			TB y = pb_[0];                                                                                 \
			for (uint32_t r = 0; r < n_; r++) {                                                            \
				TA x = pa_[r];                                                                         \
				STMT;                                                                                  \
			}                                                                                              \
		} else if (ca) {                                                                                       \
			TA x = pa_[0];                                                                                 \
			for (uint32_t r = 0; r < n_; r++) {                                                            \
				TB y = pb_[r];                                                                         \
				STMT;                                                                                  \
			}                                                                                              \
		} else {                                                                                               \
			for (uint32_t r = 0; r < n_; r++) {                                                            \
				TA x = pa_[r];                                                                         \
				TB y = pb_[r];                                                                         \
				STMT;                                                                                  \
			}                                                                                              \
		}                                                                                                      \
	} while (0)

/* The same for one column. */
#define WEIR_UNARY_LOOPS(k, TA, pa, ca, STMT)                                                                          \
	do {                                                                                                           \
		const TA *restrict pa_ = (pa);                                                                         \
		uint32_t n_;                                                                                           \
		if (!weir_kernel_dense(k, &n_) || (ca)) {                                                              \
			uint32_t ma_ = (ca) ? 0 : UINT32_MAX;                                                          \
			for (uint32_t i_ = 0; i_ < (k)->count; i_++) {                                                 \
				uint32_t r = (k)->row[i_];                                                             \
				TA x = pa_[r & ma_];                                                                   \
				STMT;                                                                                  \
			}                                                                                              \
		} else {                                                                                               \
			for (uint32_t r = 0; r < n_; r++) {                                                            \
				TA x = pa_[r];                                                                         \
				STMT;                                                                                  \
			}                                                                                              \
		}                                                                                                      \
	} while (0)

/* for (r of the selected rows) */
#define WEIR_FOR_ROWS(k, r)                                                                                            \
	for (uint32_t i_##r = 0, r = 0; i_##r < (k)->count && ((r = (k)->row[i_##r]), true); i_##r++)

WEIR_INLINE void weir_kernel_fail(struct weir_kernel *k, uint32_t row, enum weir_reason reason, const char *detail)
{
	weir_row_errors_add(k->errors, row, reason, UINT32_MAX, k->expr->text, detail);
}
WEIR_INLINE int64_t weir_arg_i64(const struct weir_kernel *k, uint32_t arg, uint32_t row)
{
	return k->in[arg]->i64[weir_row(k->in[arg], row)];
}
WEIR_INLINE double weir_arg_f64(const struct weir_kernel *k, uint32_t arg, uint32_t row)
{
	return k->in[arg]->f64[weir_row(k->in[arg], row)];
}
WEIR_INLINE struct weir_str weir_arg_str(const struct weir_kernel *k, uint32_t arg, uint32_t row)
{
	return k->in[arg]->str[weir_row(k->in[arg], row)];
}
/* A decimal or integer of either width. */
WEIR_INLINE weir_i128 weir_col_i128(const struct weir_col *c, uint32_t row)
{
	row = weir_row(c, row);
	return c->phys == WEIR_PHYS_I128 ? c->i128[row] : (weir_i128)c->i64[row];
}
WEIR_INLINE void weir_col_put_i128(struct weir_col *c, uint32_t row, weir_i128 v)
{
	if (c->phys == WEIR_PHYS_I128)
		c->i128[row] = v;
	else
		c->i64[row] = (int64_t)v;
}
WEIR_INLINE void weir_out_str(const struct weir_kernel *k, uint32_t row, const void *data, size_t bytes)
{
	k->out->str[row] = (struct weir_str){data, (uint32_t)bytes, 0};
}
/* Room for a result; never NULL, also for none. */
WEIR_INLINE void *weir_kernel_take(const struct weir_kernel *k, size_t bytes)
{
	return weir_scratch_take(k->scratch, bytes + (bytes == 0));
}
/* A copy in scratch. */
WEIR_INLINE void weir_out_copy(const struct weir_kernel *k, uint32_t row, const void *data, size_t bytes)
{
	uint8_t *to = weir_kernel_take(k, bytes);
	if (bytes != 0)
		memcpy(to, data, bytes);
	weir_out_str(k, row, to, bytes);
}
WEIR_INLINE bool weir_str_equal(struct weir_str a, struct weir_str b)
{
	return a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0;
}
WEIR_INLINE int weir_str_compare(struct weir_str a, struct weir_str b)
{
	int c = memcmp(a.data, b.data, a.bytes < b.bytes ? a.bytes : b.bytes);
	return c != 0 ? c : a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}
/* Bytes of the UTF-8 sequence that starts with c (valid text: 1 for anything else). */
WEIR_INLINE uint32_t weir_utf8_width(uint8_t c)
{
	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}
/* Longest string an expression may make: what REPEAT, LPAD and || refuse beyond. */
#define WEIR_EXPR_STRING_BYTES_MAX (16u << 20)

/* A constant, non-null argument; NULL where it is not one. */
const struct weir_expr *weir_const_arg(const struct weir_expr *const *args, uint32_t count, uint32_t i);
/* Whether a constant string argument equals word in any case. */
bool weir_const_is(const struct weir_expr *e, const char *word);

struct weir_type weir_type_of(enum weir_kind kind);
struct weir_type weir_type_string(void);
struct weir_type weir_type_timestamp(enum weir_kind kind, int precision);

/* Units of EXTRACT, FLOOR(t TO u), TIMESTAMPADD, TIMESTAMPDIFF. */
enum weir_unit {
	WEIR_UNIT_MICROSECOND,
	WEIR_UNIT_MILLISECOND,
	WEIR_UNIT_SECOND,
	WEIR_UNIT_MINUTE,
	WEIR_UNIT_HOUR,
	WEIR_UNIT_DAY,
	WEIR_UNIT_WEEK,
	WEIR_UNIT_MONTH,
	WEIR_UNIT_QUARTER,
	WEIR_UNIT_YEAR,
	WEIR_UNIT_DECADE,
	WEIR_UNIT_CENTURY,
	WEIR_UNIT_MILLENNIUM,
	WEIR_UNIT_DOW,
	WEIR_UNIT_ISODOW,
	WEIR_UNIT_DOY,
	WEIR_UNIT_ISOYEAR,
	WEIR_UNIT_EPOCH,
	WEIR_UNIT_NONE
};

#define WEIR_RESOLVE(name)                                                                                             \
	bool weir_resolve_##name(const struct weir_expr *const *args, uint32_t count, struct weir_type *want,          \
				 struct weir_type *result)
#define WEIR_PREPARE(name)                                                                                             \
	enum weir_err weir_prepare_##name(const struct weir_expr *const *args, uint32_t count, struct weir_mem *m,     \
					  const void **data, struct weir_diag **dg)
#define WEIR_KERNEL(name) void weir_kernel_##name(struct weir_kernel *k)

/* kernel_arith.c, kernel_decimal.c */
WEIR_RESOLVE(int_arith);
WEIR_RESOLVE(mod_int);
WEIR_RESOLVE(double_arith);
WEIR_RESOLVE(decimal_add);
WEIR_RESOLVE(decimal_mul);
WEIR_RESOLVE(decimal_div);
WEIR_RESOLVE(decimal_mod);
WEIR_RESOLVE(int_unary);
WEIR_RESOLVE(double_unary);
WEIR_RESOLVE(decimal_unary);
WEIR_KERNEL(add_int);
WEIR_KERNEL(sub_int);
WEIR_KERNEL(mul_int);
WEIR_KERNEL(div_int);
WEIR_KERNEL(mod_int);
WEIR_KERNEL(neg_int);
WEIR_KERNEL(abs_int);
WEIR_KERNEL(sign_int);
WEIR_KERNEL(add_double);
WEIR_KERNEL(sub_double);
WEIR_KERNEL(mul_double);
WEIR_KERNEL(div_double);
WEIR_KERNEL(mod_double);
WEIR_KERNEL(neg_double);
WEIR_KERNEL(abs_double);
WEIR_KERNEL(sign_double);
WEIR_KERNEL(add_decimal);
WEIR_KERNEL(sub_decimal);
WEIR_KERNEL(mul_decimal);
WEIR_KERNEL(div_decimal);
WEIR_KERNEL(mod_decimal);
WEIR_KERNEL(neg_decimal);
WEIR_KERNEL(abs_decimal);
WEIR_KERNEL(sign_decimal);

/* kernel_compare.c */
WEIR_RESOLVE(equal);
WEIR_RESOLVE(equal_text);
WEIR_RESOLVE(order_text);
WEIR_RESOLVE(distinct);
WEIR_RESOLVE(logical_not);
WEIR_RESOLVE(is_null);
WEIR_RESOLVE(is_truth);
WEIR_RESOLVE(in);
WEIR_RESOLVE(if);
WEIR_RESOLVE(nullif);
WEIR_RESOLVE(greatest);
WEIR_PREPARE(in);
WEIR_KERNEL(eq);
WEIR_KERNEL(ne);
WEIR_KERNEL(lt);
WEIR_KERNEL(le);
WEIR_KERNEL(gt);
WEIR_KERNEL(ge);
WEIR_KERNEL(eq_text);
WEIR_KERNEL(ne_text);
WEIR_KERNEL(distinct);
WEIR_KERNEL(not_distinct);
WEIR_KERNEL(logical_not);
WEIR_KERNEL(is_null);
WEIR_KERNEL(is_not_null);
WEIR_KERNEL(is_true);
WEIR_KERNEL(is_not_true);
WEIR_KERNEL(is_false);
WEIR_KERNEL(is_not_false);
WEIR_KERNEL(in);
WEIR_KERNEL(if);
WEIR_KERNEL(nullif);
WEIR_KERNEL(greatest);
WEIR_KERNEL(least);
/* -1, 0, 1 of two non-null values of the argument types of a comparison. */
int weir_compare_values(const struct weir_type *ta, const struct weir_col *a, uint32_t ra, const struct weir_type *tb,
			const struct weir_col *b, uint32_t rb);

/* kernel_sig.c */
WEIR_RESOLVE(s_s);
WEIR_RESOLVE(s_ss);
WEIR_RESOLVE(s_sss);
WEIR_RESOLVE(s_si);
WEIR_RESOLVE(s_a);
WEIR_RESOLVE(s_as);
WEIR_RESOLVE(y_yy);
WEIR_RESOLVE(int_x);
WEIR_RESOLVE(int_ssi);
WEIR_RESOLVE(s_ssi);
WEIR_RESOLVE(s_ssii);
WEIR_RESOLVE(s_sis);
WEIR_RESOLVE(s_i);
WEIR_RESOLVE(s_x);
WEIR_RESOLVE(y_ss);
WEIR_RESOLVE(s_ys);
WEIR_RESOLVE(bool_ss);
WEIR_RESOLVE(d_none);
WEIR_RESOLVE(d_d);
WEIR_RESOLVE(d_dd);
WEIR_RESOLVE(i_t);
WEIR_RESOLVE(s_ts);
WEIR_RESOLVE(s_is);
WEIR_RESOLVE(timestamp_s);
WEIR_RESOLVE(ltz_s);
WEIR_RESOLVE(date_s);
WEIR_RESOLVE(i_ss);
WEIR_RESOLVE(s_sss_null);
WEIR_RESOLVE(s_ss_null);
WEIR_RESOLVE(int_s);
WEIR_RESOLVE(bool_s);
WEIR_RESOLVE(int_j);
WEIR_RESOLVE(y_s);

/* kernel_math.c */
WEIR_KERNEL(pi);
WEIR_KERNEL(e);
WEIR_RESOLVE(round_int);
WEIR_RESOLVE(round_decimal);
WEIR_RESOLVE(round_double);
WEIR_RESOLVE(floor_decimal);
WEIR_KERNEL(round_int);
WEIR_KERNEL(round_decimal);
WEIR_KERNEL(round_double);
WEIR_KERNEL(truncate_int);
WEIR_KERNEL(truncate_decimal);
WEIR_KERNEL(truncate_double);
WEIR_KERNEL(floor_decimal);
WEIR_KERNEL(ceil_decimal);
WEIR_KERNEL(sqrt);
WEIR_KERNEL(exp);
WEIR_KERNEL(ln);
WEIR_KERNEL(log10);
WEIR_KERNEL(log2);
WEIR_KERNEL(sin);
WEIR_KERNEL(cos);
WEIR_KERNEL(tan);
WEIR_KERNEL(cot);
WEIR_KERNEL(asin);
WEIR_KERNEL(acos);
WEIR_KERNEL(atan);
WEIR_KERNEL(sinh);
WEIR_KERNEL(cosh);
WEIR_KERNEL(tanh);
WEIR_KERNEL(degrees);
WEIR_KERNEL(radians);
WEIR_KERNEL(power);
WEIR_KERNEL(atan2);
WEIR_KERNEL(log_base);
WEIR_KERNEL(floor_double);
WEIR_KERNEL(ceil_double);

/* kernel_string.c */
WEIR_KERNEL(upper);
WEIR_KERNEL(lower);
WEIR_KERNEL(initcap);
WEIR_KERNEL(btrim);
WEIR_KERNEL(ltrim);
WEIR_KERNEL(rtrim);
WEIR_PREPARE(trim);
WEIR_KERNEL(trim);
WEIR_KERNEL(substring);
WEIR_KERNEL(left);
WEIR_KERNEL(right);
WEIR_KERNEL(position);
WEIR_KERNEL(instr);
WEIR_KERNEL(starts_with);
WEIR_KERNEL(ends_with);
WEIR_KERNEL(split_index);
WEIR_KERNEL(char_length);
WEIR_KERNEL(octet_length);
WEIR_KERNEL(ascii);
WEIR_KERNEL(concat);
WEIR_KERNEL(concat_ws);
WEIR_KERNEL(replace);
WEIR_KERNEL(overlay);
WEIR_KERNEL(lpad);
WEIR_KERNEL(rpad);
WEIR_KERNEL(repeat);
WEIR_KERNEL(reverse);
WEIR_KERNEL(chr);
WEIR_KERNEL(bin);
WEIR_KERNEL(hex_int);
WEIR_KERNEL(hex_text);
WEIR_KERNEL(unhex);
WEIR_KERNEL(to_base64);
WEIR_KERNEL(from_base64);
WEIR_PREPARE(charset);
WEIR_KERNEL(encode);
WEIR_KERNEL(decode);
WEIR_KERNEL(digest);

/* kernel_pattern.c */
WEIR_PREPARE(like);
WEIR_KERNEL(like);
WEIR_PREPARE(regex);
WEIR_KERNEL(regexp);
WEIR_KERNEL(regexp_extract);
WEIR_KERNEL(regexp_replace);

/* kernel_time.c */
WEIR_RESOLVE(extract);
WEIR_PREPARE(extract);
WEIR_KERNEL(extract);
WEIR_RESOLVE(floor_time);
WEIR_PREPARE(floor_time);
WEIR_KERNEL(floor_time);
WEIR_KERNEL(ceil_time);
WEIR_RESOLVE(timestamp_add);
WEIR_PREPARE(timestamp_add);
WEIR_KERNEL(timestamp_add);
WEIR_RESOLVE(timestamp_diff);
WEIR_KERNEL(timestamp_diff);
WEIR_RESOLVE(time_add);
WEIR_RESOLVE(time_sub);
WEIR_KERNEL(time_add);
WEIR_KERNEL(time_sub);
WEIR_RESOLVE(interval_mul);
WEIR_RESOLVE(interval_unary);
WEIR_KERNEL(interval_mul);
WEIR_KERNEL(interval_neg);
WEIR_RESOLVE(tumble_start);
WEIR_KERNEL(tumble_start);
WEIR_KERNEL(year);
WEIR_KERNEL(quarter);
WEIR_KERNEL(month);
WEIR_KERNEL(week);
WEIR_KERNEL(day_of_year);
WEIR_KERNEL(day_of_month);
WEIR_KERNEL(day_of_week);
WEIR_KERNEL(hour);
WEIR_KERNEL(minute);
WEIR_KERNEL(second);

/* kernel_time_text.c */
WEIR_PREPARE(pattern_1);
WEIR_PREPARE(ltz_text);
WEIR_PREPARE(convert_tz);
WEIR_KERNEL(to_timestamp);
WEIR_KERNEL(ltz_text);
WEIR_KERNEL(to_date);
WEIR_KERNEL(unix_timestamp);
WEIR_RESOLVE(ltz_number);
WEIR_PREPARE(ltz_number);
WEIR_KERNEL(ltz_number);
WEIR_KERNEL(from_unixtime);
WEIR_RESOLVE(date_format);
WEIR_KERNEL(date_format);
WEIR_KERNEL(convert_tz);
WEIR_RESOLVE(clock);
WEIR_PREPARE(clock);
WEIR_KERNEL(clock);

/* kernel_json.c */
WEIR_PREPARE(json_path);
WEIR_KERNEL(json_value);
WEIR_KERNEL(json_query);
WEIR_KERNEL(json_exists);
WEIR_KERNEL(is_json);
WEIR_KERNEL(is_json_object);
WEIR_KERNEL(is_json_array);
WEIR_KERNEL(is_json_scalar);
WEIR_RESOLVE(item);
WEIR_KERNEL(item);
WEIR_RESOLVE(field);
WEIR_KERNEL(field);
WEIR_KERNEL(cardinality);
WEIR_RESOLVE(element);
WEIR_KERNEL(element);
WEIR_RESOLVE(array_contains);
WEIR_KERNEL(array_contains);

void *weir_open_digest(const struct weir_expr *e);
void weir_close_digest(void *state);
void *weir_open_regex(const struct weir_expr *e);
void weir_close_regex(void *state);

#endif
