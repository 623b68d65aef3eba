/* kernel_time.c: arithmetic and parts of dates and times. @thread worker (kernels), init (rules, prepare).
 *
 * Any date or time is taken apart into a day and the microseconds of that day, floored, so that nothing overflows and
 * times before 1970 behave as later ones. TIMESTAMP_LTZ is read in UTC. FLOOR(t TO WEEK) goes to Sunday, as in Flink;
 * WEEK(t) is ISO's. */
#include "hotpath/expr/kernel.h"

#include "hotpath/time/civil.h"

#define DAY_US (WEIR_DAY_MS * 1000)

struct moment {
	int64_t day;
	int64_t us; /* of the day */
};

static bool is_temporal(enum weir_kind k)
{
	return k >= WEIR_KIND_DATE && k <= WEIR_KIND_TIMESTAMP_LTZ;
}

static struct moment moment_of(const struct weir_type *t, int64_t v)
{
	if (t->kind == WEIR_KIND_DATE)
		return (struct moment){v, 0};
	if (t->kind == WEIR_KIND_TIME)
		return (struct moment){0, v * 1000};
	int64_t per_ms = weir_ticks_per_ms(t), day = weir_floor_div(v, WEIR_DAY_MS * per_ms);
	return (struct moment){day, (v - day * (WEIR_DAY_MS * per_ms)) * (1000 / per_ms)};
}

/* The value of m as a t; false when it does not fit. us may lie outside of the day. */
static bool moment_value(const struct weir_type *t, struct moment m, int64_t *out)
{
	int64_t extra = weir_floor_div(m.us, DAY_US);
	m.day += extra;
	m.us -= extra * DAY_US;
	if (t->kind == WEIR_KIND_DATE) {
		*out = m.day;
		return m.day >= -WEIR_CIVIL_DAYS_MAX && m.day <= WEIR_CIVIL_DAYS_MAX;
	}
	if (t->kind == WEIR_KIND_TIME) {
		*out = m.us / 1000;
		return true;
	}
	int64_t per_ms = weir_ticks_per_ms(t);
	return !__builtin_mul_overflow(m.day, WEIR_DAY_MS * per_ms, out) &&
	       !__builtin_add_overflow(*out, m.us / (1000 / per_ms), out);
}

static struct moment arg_moment(const struct weir_kernel *k, uint32_t i, uint32_t r)
{
	return moment_of(&k->expr->args[i]->type, weir_arg_i64(k, i, r));
}

static void out_moment(struct weir_kernel *k, uint32_t r, bool ok, struct moment m)
{
	if (!ok || !moment_value(&k->expr->type, m, &k->out->i64[r]))
		weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "date or time out of range");
}

/* Far more than any calendar needs, far less than what overflows. */
static bool add_months(struct moment *m, int64_t months)
{
	if (months > INT64_C(120000000) || months < -INT64_C(120000000))
		return false;
	m->day = weir_civil_add_months(m->day, months);
	return true;
}

/* -- units -- */

static const struct {
	const char *name;
	enum weir_unit unit;
} units[] = {
	{"MICROSECOND", WEIR_UNIT_MICROSECOND},
	{"MILLISECOND", WEIR_UNIT_MILLISECOND},
	{"SECOND", WEIR_UNIT_SECOND},
	{"MINUTE", WEIR_UNIT_MINUTE},
	{"HOUR", WEIR_UNIT_HOUR},
	{"DAY", WEIR_UNIT_DAY},
	{"WEEK", WEIR_UNIT_WEEK},
	{"MONTH", WEIR_UNIT_MONTH},
	{"QUARTER", WEIR_UNIT_QUARTER},
	{"YEAR", WEIR_UNIT_YEAR},
	{"DECADE", WEIR_UNIT_DECADE},
	{"CENTURY", WEIR_UNIT_CENTURY},
	{"MILLENNIUM", WEIR_UNIT_MILLENNIUM},
	{"DOW", WEIR_UNIT_DOW},
	{"ISODOW", WEIR_UNIT_ISODOW},
	{"DOY", WEIR_UNIT_DOY},
	{"ISOYEAR", WEIR_UNIT_ISOYEAR},
	{"EPOCH", WEIR_UNIT_EPOCH},
};

/* DAY, DAYS and SQL_TSI_DAY alike. */
static enum weir_unit unit_of(const struct weir_expr *e)
{
	if (e == NULL || weir_type_phys(&e->type) != WEIR_PHYS_STR)
		return WEIR_UNIT_NONE;
	struct weir_expr word = *e;
	struct weir_str *s = &word.value.str;
	if (s->bytes > 8 && strncasecmp((const char *)s->data, "SQL_TSI_", 8) == 0)
		s->data += 8, s->bytes -= 8;
	for (int plural = 0; plural < 2; plural++) {
		for (uint32_t i = 0; i < WEIR_COUNT_OF(units); i++)
			if (weir_const_is(&word, units[i].name))
				return units[i].unit;
		if (s->bytes < 2 || (s->data[s->bytes - 1] | 0x20) != 's')
			break;
		s->bytes--;
	}
	return WEIR_UNIT_NONE;
}

static const uint8_t unit_values[WEIR_UNIT_NONE + 1] = {0,  1,  2,  3,  4,  5,  6,  7,  8, 9,
							10, 11, 12, 13, 14, 15, 16, 17, 18};

static enum weir_err prepare_unit(const struct weir_expr *e, enum weir_unit last, const char *what, const void **data,
				  struct weir_diag **dg)
{
	enum weir_unit u = unit_of(e);
	if (u == WEIR_UNIT_NONE || u > last)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "%s: unknown unit; expected MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, "
				     "QUARTER or YEAR%s",
				     what, last == WEIR_UNIT_EPOCH ? ", DOW, DOY, ISODOW, ISOYEAR or EPOCH" : "");
	*data = &unit_values[u];
	return WEIR_OK;
}

static enum weir_unit unit_data(const struct weir_kernel *k)
{
	return (enum weir_unit) * (const uint8_t *)k->expr->fn_data;
}

static int64_t unit_us(enum weir_unit u)
{
	switch (u) {
	case WEIR_UNIT_MICROSECOND:
		return 1;
	case WEIR_UNIT_MILLISECOND:
		return 1000;
	case WEIR_UNIT_SECOND:
		return 1000000;
	case WEIR_UNIT_MINUTE:
		return 60000000;
	case WEIR_UNIT_HOUR:
		return INT64_C(3600000000);
	default:
		return 0;
	}
}

static int64_t unit_months(enum weir_unit u)
{
	switch (u) {
	case WEIR_UNIT_MONTH:
		return 1;
	case WEIR_UNIT_QUARTER:
		return 3;
	case WEIR_UNIT_YEAR:
		return 12;
	case WEIR_UNIT_DECADE:
		return 120;
	case WEIR_UNIT_CENTURY:
		return 1200;
	case WEIR_UNIT_MILLENNIUM:
		return 12000;
	default:
		return 0;
	}
}

/* -- parts -- */

static int64_t extract(struct moment m, enum weir_unit u)
{
	int64_t year = 0;
	int month = 1, day = 1;
	if (u >= WEIR_UNIT_DAY)
		weir_civil_from_days(m.day, &year, &month, &day);
	switch (u) {
	case WEIR_UNIT_MICROSECOND: /* of the second, as Flink; the standard and PostgreSQL have those of the minute */
		return m.us % 1000000;
	case WEIR_UNIT_MILLISECOND:
		return m.us % 1000000 / 1000;
	case WEIR_UNIT_SECOND:
		return m.us / 1000000 % 60;
	case WEIR_UNIT_MINUTE:
		return m.us / 60000000 % 60;
	case WEIR_UNIT_HOUR:
		return m.us / INT64_C(3600000000);
	case WEIR_UNIT_DAY:
		return day;
	case WEIR_UNIT_WEEK:
		return weir_civil_iso_week(m.day, NULL);
	case WEIR_UNIT_MONTH:
		return month;
	case WEIR_UNIT_QUARTER:
		return (month + 2) / 3;
	case WEIR_UNIT_YEAR:
		return year;
	case WEIR_UNIT_DECADE:
		return weir_floor_div(year, 10);
	case WEIR_UNIT_CENTURY:
		return year > 0 ? (year + 99) / 100 : year / 100 - 1;
	case WEIR_UNIT_MILLENNIUM:
		return year > 0 ? (year + 999) / 1000 : year / 1000 - 1;
	case WEIR_UNIT_DOW: /* 1 Sunday .. 7 Saturday */
		return weir_civil_weekday(m.day) % 7 + 1;
	case WEIR_UNIT_ISODOW:
		return weir_civil_weekday(m.day);
	case WEIR_UNIT_DOY:
		return weir_civil_day_of_year(m.day);
	case WEIR_UNIT_ISOYEAR:
		weir_civil_iso_week(m.day, &year);
		return year;
	default:
		return m.day * 86400 + m.us / 1000000;
	}
}

WEIR_RESOLVE(extract)
{
	(void)args, (void)count;
	if (!weir_kind_is_string(want[0].kind) || (!is_temporal(want[1].kind) && want[1].kind != WEIR_KIND_NULL))
		return false;
	if (want[1].kind == WEIR_KIND_NULL)
		want[1] = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
	*result = weir_type_of(WEIR_KIND_BIGINT);
	result->not_null = want[1].not_null;
	return true;
}

WEIR_PREPARE(extract)
{
	(void)m;
	return prepare_unit(weir_const_arg(args, count, 0), WEIR_UNIT_EPOCH, "EXTRACT", data, dg);
}

WEIR_KERNEL(extract)
{
	enum weir_unit u = unit_data(k);
	WEIR_FOR_ROWS(k, r)
	k->out->i64[r] = extract(arg_moment(k, 1, r), u);
}

#define PART(name, unit)                                                                                               \
	WEIR_KERNEL(name)                                                                                              \
	{                                                                                                              \
		WEIR_FOR_ROWS(k, r)                                                                                    \
		k->out->i64[r] = extract(arg_moment(k, 0, r), unit);                                                   \
	}
PART(year, WEIR_UNIT_YEAR)
PART(quarter, WEIR_UNIT_QUARTER)
PART(month, WEIR_UNIT_MONTH)
PART(week, WEIR_UNIT_WEEK)
PART(day_of_year, WEIR_UNIT_DOY)
PART(day_of_month, WEIR_UNIT_DAY)
PART(day_of_week, WEIR_UNIT_DOW)
PART(hour, WEIR_UNIT_HOUR)
PART(minute, WEIR_UNIT_MINUTE)
PART(second, WEIR_UNIT_SECOND)

/* -- FLOOR and CEIL to a unit -- */

WEIR_RESOLVE(floor_time)
{
	(void)args, (void)count;
	if (!is_temporal(want[0].kind) || !weir_kind_is_string(want[1].kind))
		return false;
	*result = want[0];
	return true;
}

WEIR_PREPARE(floor_time)
{
	(void)m;
	return prepare_unit(weir_const_arg(args, count, 1), WEIR_UNIT_MILLENNIUM, "FLOOR and CEIL", data, dg);
}

static struct moment floor_to(struct moment m, enum weir_unit u)
{
	int64_t us = unit_us(u), months = unit_months(u), year;
	int month, day;
	if (us != 0)
		return (struct moment){m.day, m.us / us * us};
	if (u == WEIR_UNIT_DAY)
		return (struct moment){m.day, 0};
	if (u == WEIR_UNIT_WEEK)
		return (struct moment){m.day - weir_civil_weekday(m.day) % 7, 0};
	weir_civil_from_days(m.day, &year, &month, &day);
	if (months > 12) { /* centuries begin with a year 1 */
		int64_t years = months / 12, first = years == 10 ? 0 : 1;
		return (struct moment){weir_days_from_civil(weir_floor_div(year - first, years) * years + first, 1, 1),
				       0};
	}
	month = (month - 1) / (int)months * (int)months + 1;
	return (struct moment){weir_days_from_civil(year, month, 1), 0};
}

static struct moment next_unit(struct moment m, enum weir_unit u)
{
	int64_t us = unit_us(u), months = unit_months(u);
	if (us != 0)
		m.us += us;
	else if (months != 0)
		m.day = weir_civil_add_months(m.day, months);
	else
		m.day += u == WEIR_UNIT_WEEK ? 7 : 1;
	return m;
}

/* Units of fixed length need no calendar; neighbours share one, so it divides only when one is left. */
static void floor_fixed(struct weir_kernel *k, int64_t ticks)
{
	int64_t start = 0, end = 0;
	WEIR_FOR_ROWS(k, r)
	{
		int64_t v = weir_arg_i64(k, 0, r), rest;
		if (v < start || v >= end) {
			rest = v % ticks;
			if (__builtin_sub_overflow(v, rest < 0 ? rest + ticks : rest, &start) ||
			    __builtin_add_overflow(start, ticks, &end)) {
				start = end = 0;
				weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "date or time out of range");
				continue;
			}
		}
		k->out->i64[r] = start;
	}
}

static void floor_ceil(struct weir_kernel *k, bool up)
{
	enum weir_unit u = unit_data(k);
	const struct weir_type *t = &k->expr->type;
	int64_t us = u == WEIR_UNIT_DAY ? DAY_US : unit_us(u), ticks = us / (1000 / weir_ticks_per_ms(t));
	if (weir_kind_is_timestamp(t->kind) && ticks > 0 && !up) {
		floor_fixed(k, ticks);
		return;
	}
	WEIR_FOR_ROWS(k, r)
	{
		struct moment m = arg_moment(k, 0, r), low = floor_to(m, u);
		if (up && (low.day != m.day || low.us != m.us))
			low = next_unit(low, u);
		out_moment(k, r, true, low);
	}
}

WEIR_KERNEL(floor_time)
{
	floor_ceil(k, false);
}

WEIR_KERNEL(ceil_time)
{
	floor_ceil(k, true);
}

/* -- TIMESTAMPADD, TIMESTAMPDIFF -- */

WEIR_RESOLVE(timestamp_add)
{
	if (!weir_kind_is_string(want[0].kind) ||
	    (!weir_kind_is_integer(want[1].kind) && want[1].kind != WEIR_KIND_NULL) || !is_temporal(want[2].kind))
		return false;
	enum weir_unit u = unit_of(weir_const_arg(args, count, 0));
	bool not_null = want[1].not_null && want[2].not_null, had = want[1].not_null;
	want[1] = weir_type_of(WEIR_KIND_BIGINT);
	want[1].not_null = had;
	*result = want[2];
	if (want[2].kind == WEIR_KIND_DATE && u < WEIR_UNIT_DAY)
		*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP, u == WEIR_UNIT_MICROSECOND ? 6 : 3);
	else if (weir_kind_is_timestamp(want[2].kind) && u == WEIR_UNIT_MICROSECOND)
		result->precision = 6;
	result->not_null = not_null;
	return true;
}

WEIR_PREPARE(timestamp_add)
{
	(void)m;
	return prepare_unit(weir_const_arg(args, count, 0), WEIR_UNIT_MILLENNIUM, "TIMESTAMPADD and TIMESTAMPDIFF",
			    data, dg);
}

WEIR_KERNEL(timestamp_add)
{
	enum weir_unit u = unit_data(k);
	int64_t us = unit_us(u), months = unit_months(u), days = u == WEIR_UNIT_WEEK ? 7 : 1;
	WEIR_FOR_ROWS(k, r)
	{
		struct moment m = arg_moment(k, 2, r);
		int64_t n = weir_arg_i64(k, 1, r), step;
		bool ok;
		if (us != 0) {
			weir_i128 sum = (weir_i128)n * us + m.us, extra = sum / DAY_US - (sum % DAY_US < 0);
			ok = extra < WEIR_CIVIL_DAYS_MAX && extra > -WEIR_CIVIL_DAYS_MAX;
			m.day += ok ? (int64_t)extra : 0;
			m.us = (int64_t)(sum - extra * DAY_US);
		} else {
			ok = !__builtin_mul_overflow(n, months != 0 ? months : days, &step);
			if (months != 0)
				ok = ok && add_months(&m, step);
			else
				ok = ok && step > -WEIR_CIVIL_DAYS_MAX && step < WEIR_CIVIL_DAYS_MAX;
			if (ok && months == 0)
				m.day += step;
		}
		out_moment(k, r, ok, m);
	}
}

/* INT as in Flink; below the second BIGINT. */
WEIR_RESOLVE(timestamp_diff)
{
	if (!weir_kind_is_string(want[0].kind))
		return false;
	for (uint32_t i = 1; i < 3; i++) {
		if (weir_kind_is_string(want[i].kind) || want[i].kind == WEIR_KIND_NULL)
			want[i] = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
		if (!is_temporal(want[i].kind))
			return false;
	}
	enum weir_unit u = unit_of(weir_const_arg(args, count, 0));
	*result = weir_type_of(u < WEIR_UNIT_SECOND ? WEIR_KIND_BIGINT : WEIR_KIND_INT);
	result->not_null = want[1].not_null && want[2].not_null;
	return true;
}

/* The most months that can be added to the earlier time without passing the later one, where a day that a month does
 * not have is its last: from 31 January to 29 February is a month, as in Flink; backwards it is minus as many. */
static int64_t months_between(struct moment a, struct moment b)
{
	int64_t ya, yb;
	int ma, mb, da, db;
	if (b.day < a.day || (b.day == a.day && b.us < a.us))
		return -months_between(b, a);
	weir_civil_from_days(a.day, &ya, &ma, &da);
	weir_civil_from_days(b.day, &yb, &mb, &db);
	int last = weir_civil_month_days(yb, mb);
	int day = da < last ? da : last;
	bool passed = day > db || (day == db && b.us < a.us);
	return (yb - ya) * 12 + mb - ma - (passed ? 1 : 0);
}

WEIR_KERNEL(timestamp_diff)
{
	enum weir_unit u = unit_data(k);
	int64_t us = unit_us(u), months = unit_months(u);
	if (us == 0)
		us = u == WEIR_UNIT_WEEK ? 7 * DAY_US : DAY_US;
	WEIR_FOR_ROWS(k, r)
	{
		struct moment a = arg_moment(k, 1, r), b = arg_moment(k, 2, r);
		weir_i128 v;
		if (months != 0)
			v = months_between(a, b) / months;
		else
			v = ((weir_i128)(b.day - a.day) * DAY_US + (b.us - a.us)) / us;
		if (v != (k->expr->type.kind == WEIR_KIND_INT ? (int32_t)v : (int64_t)v))
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "the difference does not fit");
		else
			k->out->i64[r] = (int64_t)v;
	}
}

/* -- + and - with intervals -- */

static bool is_interval(enum weir_kind k)
{
	return k == WEIR_KIND_INTERVAL_MS || k == WEIR_KIND_INTERVAL_MONTH;
}

static struct weir_type shifted_type(const struct weir_type *t, const struct weir_type *by,
				     const struct weir_expr *value)
{
	/* A DATE stays one unless the interval is known not to be whole days. */
	if (t->kind == WEIR_KIND_DATE && by->kind == WEIR_KIND_INTERVAL_MS && value != NULL &&
	    value->op == WEIR_EXPR_CONST && !value->is_null && value->value.i64 % WEIR_DAY_MS != 0)
		return weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
	return *t;
}

/* time + interval, interval + time, interval + interval. */
WEIR_RESOLVE(time_add)
{
	(void)count;
	bool not_null = want[0].not_null && want[1].not_null;
	if (is_temporal(want[0].kind) && is_interval(want[1].kind))
		*result = shifted_type(&want[0], &want[1], args[1]);
	else if (is_interval(want[0].kind) && is_temporal(want[1].kind))
		*result = shifted_type(&want[1], &want[0], args[0]);
	else if (is_interval(want[0].kind) && want[0].kind == want[1].kind)
		*result = want[0];
	else
		return false;
	result->not_null = not_null;
	return true;
}

/* time - interval, interval - interval, time - time. */
WEIR_RESOLVE(time_sub)
{
	(void)count;
	bool not_null = want[0].not_null && want[1].not_null;
	if (is_temporal(want[0].kind) && is_interval(want[1].kind))
		*result = shifted_type(&want[0], &want[1], args[1]);
	else if (is_interval(want[0].kind) && want[0].kind == want[1].kind)
		*result = want[0];
	else if (is_temporal(want[0].kind) && is_temporal(want[1].kind) &&
		 (want[0].kind == WEIR_KIND_TIME) == (want[1].kind == WEIR_KIND_TIME))
		*result = weir_type_of(WEIR_KIND_INTERVAL_MS);
	else
		return false;
	result->not_null = not_null;
	return true;
}

static void shift(struct weir_kernel *k, uint32_t r, uint32_t time_arg, int64_t by, enum weir_kind kind)
{
	struct moment m = arg_moment(k, time_arg, r);
	bool ok = true;
	if (kind == WEIR_KIND_INTERVAL_MONTH) {
		ok = add_months(&m, by);
	} else {
		int64_t day = weir_floor_div(by, WEIR_DAY_MS);
		m.day += day;
		m.us += (by - day * WEIR_DAY_MS) * 1000;
	}
	out_moment(k, r, ok, m);
}

/* The usual case, TIMESTAMP and milliseconds, is one addition. */
static void add_sub(struct weir_kernel *k, bool minus)
{
	uint32_t time_arg = is_interval(k->expr->args[0]->type.kind), by_arg = 1 - time_arg;
	const struct weir_type *t = &k->expr->args[time_arg]->type, *by = &k->expr->args[by_arg]->type;
	bool plain = is_interval(t->kind) || (weir_kind_is_timestamp(t->kind) && by->kind == WEIR_KIND_INTERVAL_MS);
	if (is_interval(k->expr->args[0]->type.kind) && is_interval(k->expr->args[1]->type.kind))
		time_arg = 0, by_arg = 1, plain = true;
	int64_t factor = (minus ? -1 : 1) * (weir_kind_is_timestamp(t->kind) ? weir_ticks_per_ms(t) : 1);
	WEIR_FOR_ROWS(k, r)
	{
		int64_t v = weir_arg_i64(k, by_arg, r), step;
		if (__builtin_mul_overflow(v, plain ? factor : minus ? -1 : 1, &step))
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "interval out of range");
		else if (!plain)
			shift(k, r, time_arg, step, by->kind);
		else if (__builtin_add_overflow(weir_arg_i64(k, time_arg, r), step, &k->out->i64[r]))
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "date or time out of range");
	}
}

WEIR_KERNEL(time_add)
{
	add_sub(k, false);
}

WEIR_KERNEL(time_sub)
{
	if (is_interval(k->expr->args[1]->type.kind)) {
		add_sub(k, true);
		return;
	}
	WEIR_FOR_ROWS(k, r)
	{
		struct moment a = arg_moment(k, 0, r), b = arg_moment(k, 1, r);
		k->out->i64[r] = (a.day - b.day) * WEIR_DAY_MS + weir_floor_div(a.us - b.us, 1000);
	}
}

/* INTERVAL * n and n * INTERVAL. */
WEIR_RESOLVE(interval_mul)
{
	(void)args, (void)count;
	uint32_t i = is_interval(want[1].kind);
	if (!is_interval(want[i].kind) || !weir_kind_is_integer(want[1 - i].kind))
		return false;
	bool not_null = want[0].not_null && want[1].not_null;
	*result = want[i];
	result->not_null = not_null;
	want[1 - i].kind = WEIR_KIND_BIGINT;
	return true;
}

WEIR_RESOLVE(interval_unary)
{
	(void)args, (void)count;
	if (!is_interval(want[0].kind))
		return false;
	*result = want[0];
	return true;
}

WEIR_KERNEL(interval_mul)
{
	WEIR_FOR_ROWS(k, r)
	if (__builtin_mul_overflow(weir_arg_i64(k, 0, r), weir_arg_i64(k, 1, r), &k->out->i64[r]))
		weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "interval out of range");
}

WEIR_KERNEL(interval_neg)
{
	WEIR_FOR_ROWS(k, r)
	if (__builtin_sub_overflow(INT64_C(0), weir_arg_i64(k, 0, r), &k->out->i64[r]))
		weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "interval out of range");
}

/* -- windows -- */

/* $TUMBLE_START(t, size_ms, offset_ms): the start of the window t falls in; size > 0. */
WEIR_RESOLVE(tumble_start)
{
	(void)args, (void)count;
	if (!weir_kind_is_timestamp(want[0].kind) || !weir_kind_is_integer(want[1].kind) ||
	    !weir_kind_is_integer(want[2].kind))
		return false;
	*result = weir_type_timestamp(WEIR_KIND_TIMESTAMP, 3);
	result->not_null = want[0].not_null;
	want[1] = want[2] = weir_type_of(WEIR_KIND_BIGINT);
	return true;
}

/* Neighbours share a window: it divides only when one is left. */
WEIR_KERNEL(tumble_start)
{
	int64_t per_ms = weir_ticks_per_ms(&k->expr->args[0]->type), start = 0, end = 0;
	WEIR_FOR_ROWS(k, r)
	{
		int64_t ms = weir_arg_i64(k, 0, r), size = weir_arg_i64(k, 1, r), offset = weir_arg_i64(k, 2, r), at;
		if (per_ms != 1)
			ms = weir_floor_div(ms, per_ms);
		if (ms < start || ms >= end) {
			bool bad = size <= 0 || __builtin_sub_overflow(ms, offset, &at) ||
				   __builtin_mul_overflow(weir_floor_div(at, size), size, &at) ||
				   __builtin_add_overflow(at, offset, &start) ||
				   __builtin_add_overflow(start, size, &end);
			if (bad) {
				start = end = 0;
				weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "date or time out of range");
				continue;
			}
		}
		k->out->i64[r] = start;
		if (!k->in[1]->is_const || !k->in[2]->is_const)
			start = end = 0;
	}
}
