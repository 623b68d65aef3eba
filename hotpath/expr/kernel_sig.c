/* kernel_sig.c: type rules of ordinary functions, written as signatures. Cold path, @thread init.
 *
 * "s=si*": a STRING of a STRING and any number of integers. Letters: s STRING, a anything that has a text, y BYTES, i
 * an integer (wanted as BIGINT; as a result I is INT, i is BIGINT), d DOUBLE (any number), n any number as it is, b
 * BOOLEAN, t any date or time, x STRING or BYTES, j nested (ARRAY, MAP, ROW) or STRING. The result '0' is the type of
 * the first argument. A '?' behind the result: NULL may come of arguments that are not. A '*' at the end repeats the
 * last letter. */
#include "hotpath/expr/kernel.h"

const struct weir_expr *weir_const_arg(const struct weir_expr *const *args, uint32_t count, uint32_t i)
{
	return i < count && args[i]->op == WEIR_EXPR_CONST && !args[i]->is_null ? args[i] : NULL;
}

bool weir_const_is(const struct weir_expr *e, const char *word)
{
	if (e == NULL || weir_type_phys(&e->type) != WEIR_PHYS_STR || e->value.str.bytes != strlen(word))
		return false;
	for (uint32_t i = 0; i < e->value.str.bytes; i++) {
		uint8_t c = e->value.str.data[i];
		if ((c >= 'a' && c <= 'z' ? c - 32 : c) != (uint8_t)word[i])
			return false;
	}
	return true;
}

static bool is_temporal(enum weir_kind k)
{
	return k >= WEIR_KIND_DATE && k <= WEIR_KIND_TIMESTAMP_LTZ;
}

static bool take(char letter, struct weir_type *want)
{
	enum weir_kind k = want->kind;
	bool null = k == WEIR_KIND_NULL, not_null = want->not_null, ok;
	struct weir_type t = *want;
	switch (letter) {
	case 's':
		ok = weir_kind_is_string(k) || null;
		t = weir_type_string();
		break;
	case 'a':
		ok = k != WEIR_KIND_BYTES;
		t = weir_type_string();
		break;
	case 'y':
		ok = k == WEIR_KIND_BYTES || null;
		t.kind = WEIR_KIND_BYTES;
		break;
	case 'x':
		ok = k == WEIR_KIND_BYTES || weir_kind_is_string(k) || null;
		if (k != WEIR_KIND_BYTES)
			t = weir_type_string();
		break;
	case 'i':
		ok = weir_kind_is_integer(k) || null;
		t = weir_type_of(WEIR_KIND_BIGINT);
		break;
	case 'd':
		ok = weir_kind_is_numeric(k) || null;
		t = weir_type_of(WEIR_KIND_DOUBLE);
		break;
	case 'n':
		ok = weir_kind_is_numeric(k) || null;
		if (null)
			t = weir_type_of(WEIR_KIND_BIGINT);
		break;
	case 'b':
		ok = k == WEIR_KIND_BOOLEAN || null;
		t = weir_type_of(WEIR_KIND_BOOLEAN);
		break;
	case 't':
		ok = is_temporal(k) || null;
		if (null)
			t = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
		break;
	default: /* j */
		ok = k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW || weir_kind_is_string(k);
		break;
	}
	if (ok) {
		*want = t;
		want->not_null = not_null;
	}
	return ok;
}

static bool resolve(const char *spec, uint32_t count, struct weir_type *want, struct weir_type *result)
{
	char letter = spec[0];
	bool may_be_null = spec[1] == '?', all = true;
	const char *at = spec + (may_be_null ? 3 : 2);
	for (uint32_t i = 0; i < count; i++) {
		if (*at == 0 || !take(*at, &want[i]))
			return false;
		all = all && want[i].not_null;
		if (at[1] != '*')
			at++;
	}
	switch (letter) {
	case 's':
		*result = weir_type_string();
		break;
	case 'y':
		*result = (struct weir_type){.kind = WEIR_KIND_BYTES, .length = INT32_MAX};
		break;
	case 'I':
		*result = weir_type_of(WEIR_KIND_INT);
		break;
	case 'i':
		*result = weir_type_of(WEIR_KIND_BIGINT);
		break;
	case 'd':
		*result = weir_type_of(WEIR_KIND_DOUBLE);
		break;
	case 'b':
		*result = weir_type_of(WEIR_KIND_BOOLEAN);
		break;
	case 'D':
		*result = weir_type_of(WEIR_KIND_DATE);
		break;
	case 'T':
		*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
		break;
	case 'L':
		*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP_LTZ, 3);
		break;
	default: /* 0 */
		*result = want[0];
		break;
	}
	result->not_null = all && !may_be_null;
	return true;
}

#define SIG(name, spec)                                                                                                \
	WEIR_RESOLVE(name)                                                                                             \
	{                                                                                                              \
		(void)args;                                                                                            \
		return resolve(spec, count, want, result);                                                             \
	}
SIG(s_s, "s=s")
SIG(s_ss, "s=ss")
SIG(s_sss, "s=sss")
SIG(s_si, "s?=sii")
SIG(s_a, "s=aa*")
SIG(s_as, "s?=sa*")
SIG(y_yy, "y=yy")
SIG(int_x, "I=x")
SIG(int_ssi, "I=ssi")
SIG(s_ssi, "s?=ssi")
SIG(s_ssii, "s=ssii")
SIG(s_sis, "s?=sis")
SIG(s_i, "s=i")
SIG(s_x, "s=x")
SIG(y_ss, "y=ss")
SIG(s_ys, "s=ys")
SIG(bool_ss, "b=sss")
SIG(d_none, "d=")
SIG(d_d, "d=d")
SIG(d_dd, "d=dd")
SIG(i_t, "i=t")
SIG(s_ts, "s=ts")
SIG(s_is, "s=is")
SIG(timestamp_s, "T?=ss")
SIG(ltz_s, "L?=sss")
SIG(date_s, "D?=ss")
SIG(i_ss, "i?=ss")
SIG(s_sss_null, "s?=sss")
SIG(s_ss_null, "s?=ss")
SIG(int_s, "I=s")
SIG(bool_s, "b=ss")
SIG(int_j, "I?=j")
SIG(y_s, "y?=s")
