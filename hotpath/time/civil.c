/* civil.c: the civil calendar's less frequent questions, and text of dates and times. Pure functions, @thread any. */
#include "hotpath/time/civil.h"

int weir_civil_month_days(int64_t year, int month)
{
	static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	WEIR_ASSERT(month >= 1 && month <= 12);
	return days[month - 1] + (month == 2 && weir_civil_is_leap(year));
}

int weir_civil_weekday(int64_t days)
{
	int64_t r = (days + 3) % 7; /* 1970-01-01 was a Thursday */
	return (int)(r < 0 ? r + 8 : r + 1);
}

int weir_civil_day_of_year(int64_t days)
{
	int64_t year;
	int month, day;
	weir_civil_from_days(days, &year, &month, &day);
	return (int)(days - weir_days_from_civil(year, 1, 1)) + 1;
}

/* The week belongs to the year of its Thursday. */
int weir_civil_iso_week(int64_t days, int64_t *iso_year)
{
	int64_t thursday = days + 4 - weir_civil_weekday(days), year;
	int month, day;
	weir_civil_from_days(thursday, &year, &month, &day);
	if (iso_year != NULL)
		*iso_year = year;
	return (int)((thursday - weir_days_from_civil(year, 1, 1)) / 7) + 1;
}

int64_t weir_civil_add_months(int64_t days, int64_t months)
{
	int64_t year;
	int month, day;
	weir_civil_from_days(days, &year, &month, &day);
	int64_t m = year * 12 + month - 1 + months;
	year = weir_floor_div(m, 12);
	month = (int)(m - year * 12) + 1;
	int last = weir_civil_month_days(year, month);
	return weir_days_from_civil(year, month, day < last ? day : last);
}

void weir_civil_split(int64_t ticks, int64_t ticks_per_ms, struct weir_civil *c)
{
	int64_t day_ticks = WEIR_DAY_MS * ticks_per_ms;
	int64_t days = ticks / day_ticks, rest = ticks % day_ticks;
	if (rest < 0) {
		days--;
		rest += day_ticks;
	}
	weir_civil_from_days(days, &c->year, &c->month, &c->day);
	int64_t second_ticks = 1000 * ticks_per_ms;
	int64_t seconds = rest / second_ticks;
	c->micro = (int)(rest % second_ticks * (1000 / ticks_per_ms));
	c->hour = (int)(seconds / 3600);
	c->minute = (int)(seconds / 60 % 60);
	c->second = (int)(seconds % 60);
}

bool weir_civil_join(const struct weir_civil *c, int64_t ticks_per_ms, int64_t *ticks)
{
	int64_t days = weir_days_from_civil(c->year, c->month, c->day);
	int64_t of_day = ((int64_t)(c->hour * 3600 + c->minute * 60 + c->second)) * 1000 * ticks_per_ms +
			 c->micro / (1000 / ticks_per_ms);
	int64_t t;
	/* Before 1970 the day's start may not fit although the sum does: count from the next midnight instead. */
	if (days < 0) {
		days++;
		of_day -= WEIR_DAY_MS * ticks_per_ms;
	}
	if (__builtin_mul_overflow(days, WEIR_DAY_MS * ticks_per_ms, &t) || __builtin_add_overflow(t, of_day, &t))
		return false;
	*ticks = t;
	return true;
}

/* n digits at s as a number, -1 if one is none. */
static int digits(const char *s, int n)
{
	int v = 0;
	for (int i = 0; i < n; i++) {
		unsigned d = (unsigned)(unsigned char)s[i] - '0';
		if (d > 9)
			return -1;
		v = v * 10 + (int)d;
	}
	return v;
}

enum weir_civil_result weir_civil_parse_date(const char *s, size_t bytes, int64_t *days)
{
	if (bytes != 10 || s[4] != '-' || s[7] != '-')
		return WEIR_CIVIL_MALFORMED;
	int year = digits(s, 4), month = digits(s + 5, 2), day = digits(s + 8, 2);
	if ((year | month | day) < 0)
		return WEIR_CIVIL_MALFORMED;
	if (month < 1 || month > 12 || day < 1 || (day > 28 && day > weir_civil_month_days(year, month)))
		return WEIR_CIVIL_RANGE;
	*days = weir_days_from_civil(year, month, day);
	return WEIR_CIVIL_OK;
}

size_t weir_civil_pad(const char **text, size_t bytes, char padded[WEIR_CIVIL_PADDED_MAX])
{
	const char *s = *text;
	size_t n = 0, run = 0; /* run: digits since the last separator */
	int field = 0;         /* 0 year, 1 month, 2 day, 3 hour, 4 minute, 5 second */
	bool changed = false;
	if (bytes > WEIR_CIVIL_PADDED_MAX - 5)
		return bytes;
	for (size_t i = 0; i <= bytes; i++) {
		bool digit = i < bytes && s[i] >= '0' && s[i] <= '9';
		if (!digit && field <= 5) {
			if (field >= 1 && run == 1) {
				padded[n] = padded[n - 1];
				padded[n++ - 1] = '0';
				changed = true;
			}
			/* Behind the second nothing is changed: a fraction, a zone. */
			field = i < bytes && (s[i] == '.' || s[i] == '+' || (field > 2 && s[i] == '-')) ? 6 : field + 1;
			run = 0;
		}
		run += digit;
		if (i < bytes)
			padded[n++] = s[i];
	}
	if (!changed)
		return bytes;
	*text = padded;
	return n;
}

static const int32_t POWER10[10] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* `hh:mm[:ss[.f]]` at the start of s: *used bytes of it, as nanoseconds of the day rounded half up to precision digits
 * (so the result may be a full day). */
static enum weir_civil_result parse_clock(const char *s, size_t bytes, int precision, int64_t *nanos, size_t *used)
{
	if (bytes < 5 || s[2] != ':')
		return WEIR_CIVIL_MALFORMED;
	int hour = digits(s, 2), minute = digits(s + 3, 2), second = 0;
	int64_t fraction = 0;
	size_t at = 5;
	if ((hour | minute) < 0)
		return WEIR_CIVIL_MALFORMED;
	if (at < bytes && s[at] == ':') {
		if (bytes < 8 || (second = digits(s + 6, 2)) < 0)
			return WEIR_CIVIL_MALFORMED;
		at = 8;
		if (at < bytes && s[at] == '.') {
			size_t from = ++at;
			while (at < bytes && at - from < 9 && (unsigned char)s[at] - (unsigned)'0' <= 9)
				fraction = fraction * 10 + (s[at++] - '0');
			if (at == from)
				return WEIR_CIVIL_MALFORMED;
			fraction *= POWER10[9 - (at - from)];
			int64_t unit = POWER10[9 - precision];
			fraction = (fraction + unit / 2) / unit * unit;
		}
	}
	if (hour > 23 || minute > 59 || second > 59)
		return WEIR_CIVIL_RANGE;
	*nanos = (int64_t)(hour * 3600 + minute * 60 + second) * 1000000000 + fraction;
	*used = at;
	return WEIR_CIVIL_OK;
}

enum weir_civil_result weir_civil_parse_time(const char *s, size_t bytes, int precision, int64_t *ms_of_day)
{
	int64_t nanos;
	size_t used;
	enum weir_civil_result r = parse_clock(s, bytes, precision < 3 ? precision : 3, &nanos, &used);
	if (r != WEIR_CIVIL_OK)
		return r;
	if (used != bytes)
		return WEIR_CIVIL_MALFORMED;
	if (nanos >= WEIR_DAY_MS * 1000000)
		return WEIR_CIVIL_RANGE;
	*ms_of_day = nanos / 1000000;
	return WEIR_CIVIL_OK;
}

/* `Z`, `+hh`, `+hhmm`, `+hh:mm` as seconds east of UTC, up to 18 hours (the most that ISO 8601 users write). */
static enum weir_civil_result parse_zone(const char *s, size_t bytes, int *seconds)
{
	if (bytes == 1 && (s[0] == 'Z' || s[0] == 'z')) {
		*seconds = 0;
		return WEIR_CIVIL_OK;
	}
	if (bytes < 3 || (s[0] != '+' && s[0] != '-'))
		return WEIR_CIVIL_MALFORMED;
	int hour = digits(s + 1, 2), minute = 0;
	if (bytes == 5)
		minute = digits(s + 3, 2);
	else if (bytes == 6 && s[3] == ':')
		minute = digits(s + 4, 2);
	else if (bytes != 3)
		return WEIR_CIVIL_MALFORMED;
	if ((hour | minute) < 0)
		return WEIR_CIVIL_MALFORMED;
	if (minute > 59 || hour * 60 + minute > 18 * 60)
		return WEIR_CIVIL_RANGE;
	*seconds = (hour * 60 + minute) * (s[0] == '-' ? -60 : 60);
	return WEIR_CIVIL_OK;
}

enum weir_civil_result weir_civil_parse_timestamp(const char *s, size_t bytes, int precision, int64_t ticks_per_ms,
						  int64_t *ticks, bool *had_zone)
{
	int64_t days, nanos = 0;
	size_t used;
	int zone = 0;
	bool zoned = false;
	if (bytes < 10)
		return WEIR_CIVIL_MALFORMED;
	enum weir_civil_result r = weir_civil_parse_date(s, 10, &days);
	if (r != WEIR_CIVIL_OK)
		return r;
	if (bytes > 10) {
		if (s[10] != ' ' && s[10] != 'T' && s[10] != 't')
			return WEIR_CIVIL_MALFORMED;
		r = parse_clock(s + 11, bytes - 11, precision, &nanos, &used);
		if (r != WEIR_CIVIL_OK)
			return r;
		used += 11;
		if (used < bytes && s[used] == ' ')
			used++;
		if (used < bytes) {
			r = parse_zone(s + used, bytes - used, &zone);
			if (r != WEIR_CIVIL_OK)
				return r;
			zoned = true;
		} else if (s[bytes - 1] == ' ') {
			return WEIR_CIVIL_MALFORMED;
		}
	}
	/* Years 0 to 9999 in microseconds are far within an int64. */
	*ticks = days * WEIR_DAY_MS * ticks_per_ms + nanos / (1000000 / ticks_per_ms) -
		 (int64_t)zone * 1000 * ticks_per_ms;
	if (had_zone != NULL)
		*had_zone = zoned;
	return WEIR_CIVIL_OK;
}

static inline void put2(char *to, int v)
{
	to[0] = (char)('0' + v / 10);
	to[1] = (char)('0' + v % 10);
}

/* At least four digits; a sign outside 0..9999, as ISO 8601 has it. */
static size_t put_year(char *to, int64_t year)
{
	if (WEIR_LIKELY(year >= 0 && year <= 9999)) {
		put2(to, (int)year / 100);
		put2(to + 2, (int)year % 100);
		return 4;
	}
	char rev[20];
	size_t n = 0, at = 0;
	uint64_t u = year < 0 ? 0 - (uint64_t)year : (uint64_t)year;
	do {
		rev[n++] = (char)('0' + u % 10);
		u /= 10;
	} while (u != 0 || n < 4);
	to[at++] = year < 0 ? '-' : '+';
	while (n > 0)
		to[at++] = rev[--n];
	return at;
}

static size_t put_date(char *to, int64_t year, int month, int day)
{
	size_t at = put_year(to, year);
	to[at] = '-';
	put2(to + at + 1, month);
	to[at + 3] = '-';
	put2(to + at + 4, day);
	return at + 6;
}

/* hh:mm:ss and the fraction without trailing zeros. */
static size_t put_clock(char *to, int hour, int minute, int second, int micro)
{
	put2(to, hour);
	to[2] = ':';
	put2(to + 3, minute);
	to[5] = ':';
	put2(to + 6, second);
	if (micro == 0)
		return 8;
	to[8] = '.';
	size_t at = 9;
	for (int unit = 100000; micro > 0; unit /= 10) {
		to[at++] = (char)('0' + micro / unit);
		micro %= unit;
	}
	return at;
}

size_t weir_civil_print_date(int64_t days, char *to)
{
	int64_t year;
	int month, day;
	weir_civil_from_days(days, &year, &month, &day);
	return put_date(to, year, month, day);
}

size_t weir_civil_print_time(int64_t ms_of_day, int precision, char *to)
{
	int ms = (int)(ms_of_day % 1000), s = (int)(ms_of_day / 1000 % 86400);
	if (precision < 3)
		ms = ms / POWER10[3 - precision] * POWER10[3 - precision];
	return put_clock(to, s / 3600, s / 60 % 60, s % 60, ms * 1000);
}

size_t weir_civil_print_timestamp(int64_t ticks, int64_t ticks_per_ms, char separator, bool zulu, char *to)
{
	struct weir_civil c;
	weir_civil_split(ticks, ticks_per_ms, &c);
	size_t at = put_date(to, c.year, c.month, c.day);
	to[at++] = separator;
	at += put_clock(to + at, c.hour, c.minute, c.second, c.micro);
	if (zulu)
		to[at++] = 'Z';
	return at;
}
