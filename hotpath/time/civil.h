/* civil.h: days and milliseconds to the civil calendar and back; text of dates and times. Proleptic Gregorian, UTC,
 * year 0 is 1 BC, no leap seconds, no locale, no time zone tables. Pure functions, @thread any.
 *
 * Days and milliseconds count from 1970-01-01 00:00:00. The text forms reach years 0000 to 9999, the arithmetic any
 * year whose day number is within WEIR_CIVIL_DAYS_MAX of 1970. */
#ifndef WEIR_TIME_CIVIL_H
#define WEIR_TIME_CIVIL_H

#include "hotpath/core/base.h"

#define WEIR_DAY_MS         INT64_C(86400000)
#define WEIR_CIVIL_DAYS_MAX INT64_C(700000000000)
/* 0000-01-01 and 9999-12-31: what text can say. */
#define WEIR_CIVIL_DAY_FIRST INT64_C(-719528)
#define WEIR_CIVIL_DAY_LAST  INT64_C(2932896)

/* Day number of a civil date; month 1..12; day may lie outside the month and is simply added. */
WEIR_INLINE int64_t weir_days_from_civil(int64_t year, int month, int day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t yoe = year - era * 400;                               /* 0..399 */
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5; /* days before the month, years start in March */
	int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
	return era * 146097 + doe - 719468 + day - 1;
}

/* The civil date of a day number. */
WEIR_INLINE void weir_civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t doe = z - era * 146097;                                      /* 0..146096 */
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365; /* 0..399 */
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);               /* 0..365, from 1 March */
	int64_t mp = (5 * doy + 2) / 153;                                    /* 0..11, March is 0 */
	*day = (int)(doy - (153 * mp + 2) / 5 + 1);
	*month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*year = yoe + era * 400 + (*month <= 2);
}

WEIR_INLINE bool weir_civil_is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}
/* 28..31; month 1..12. */
int weir_civil_month_days(int64_t year, int month);
/* 1 Monday .. 7 Sunday (ISO 8601). */
int weir_civil_weekday(int64_t days);
/* 1..366. */
int weir_civil_day_of_year(int64_t days);
/* ISO 8601 week 1..53, and the year it belongs to (iso_year may be NULL). */
int weir_civil_iso_week(int64_t days, int64_t *iso_year);
/* days plus a number of months; the day is cut to the last of the month (31 January + 1 month is 28 or 29 February). */
int64_t weir_civil_add_months(int64_t days, int64_t months);

/* Date and time of day, taken apart. */
struct weir_civil {
	int64_t year;
	int month, day;           /* 1..12, 1..31 */
	int hour, minute, second; /* 0..23, 0..59, 0..59 */
	int micro;                /* 0..999999 */
};
/* ticks since 1970 at ticks_per_ms (1 or 1000) a millisecond. */
void weir_civil_split(int64_t ticks, int64_t ticks_per_ms, struct weir_civil *c);
/* The ticks of c; false when they do not fit an int64. Fields must be within their ranges. */
bool weir_civil_join(const struct weir_civil *c, int64_t ticks_per_ms, int64_t *ticks);

enum weir_civil_result {
	WEIR_CIVIL_OK,
	WEIR_CIVIL_MALFORMED, /* not of the form */
	WEIR_CIVIL_RANGE      /* of the form, but no such date or time (month 13, 30 February, hour 24) */
};
/* What SQL takes from text is more than what is stored so: one digit for a month, day, hour, minute or second (2026-1-2
 * 3:04:05). Returns the length of the text with those padded, *text then points at padded; a text that is fine stays.
 */
#define WEIR_CIVIL_PADDED_MAX 64
size_t weir_civil_pad(const char **text, size_t bytes, char padded[WEIR_CIVIL_PADDED_MAX]);

/* `2026-01-01`, exactly: four digits of year, two of month and day. */
enum weir_civil_result weir_civil_parse_date(const char *s, size_t bytes, int64_t *days);
/* `00:00[:00[.f]]`, 1 to 9 digits of f; digits beyond precision round half up and may carry to 24:00, which is RANGE.
 */
enum weir_civil_result weir_civil_parse_time(const char *s, size_t bytes, int precision, int64_t *ms_of_day);
/* `2026-01-01 00:00[:00[.f]]`, a `T` or `t` in place of the space, then nothing, `Z`, `+hh:mm`, `+hhmm` or `+hh` (also
 * after a space); a date alone is midnight. An offset is taken off, so that ticks are UTC; *had_zone (may be NULL) says
 * whether there was one. Digits beyond precision round half up and carry. */
enum weir_civil_result weir_civil_parse_timestamp(const char *s, size_t bytes, int precision, int64_t ticks_per_ms,
						  int64_t *ticks, bool *had_zone);

#define WEIR_CIVIL_TEXT_MAX 48 /* room for the longest text of the printers below */
/* Each writes at most WEIR_CIVIL_TEXT_MAX bytes without a terminator and returns their number. */
size_t weir_civil_print_date(int64_t days, char *to);                     /* 2026-01-01 */
size_t weir_civil_print_time(int64_t ms_of_day, int precision, char *to); /* 00:00:00[.f] */
/* `2026-01-01 00:00:00[.f]`; separator ' ' or 'T'; zulu appends Z. The fraction is printed without trailing zeros, so
 * at full seconds there is none; never more than six digits. */
size_t weir_civil_print_timestamp(int64_t ticks, int64_t ticks_per_ms, char separator, bool zulu, char *to);

#endif
