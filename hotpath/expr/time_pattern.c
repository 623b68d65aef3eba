/* time_pattern.c: Java's date patterns; see time_pattern.h. @thread any */
#include "hotpath/expr/time_pattern.h"

#include <strings.h>

#include "hotpath/time/civil.h"

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
				     "July",    "August",   "September", "October", "November", "December"};
static const char *const weekdays[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

static bool add(struct weir_time_pattern *p, char letter, uint8_t count, uint8_t literal, const char **problem)
{
	if (p->count == WEIR_TIME_PATTERN_ITEMS) {
		*problem = "the pattern is too long";
		return false;
	}
	p->item[p->count++] = (struct weir_time_item){letter, count, literal};
	return true;
}

bool weir_time_pattern_compile(const char *s, size_t bytes, struct weir_time_pattern *p, const char **problem)
{
	p->count = 0;
	for (size_t i = 0; i < bytes;) {
		char c = s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (c == '\'') {
			if (i + 1 < bytes && s[i + 1] == '\'') {
				if (!add(p, 0, 1, '\'', problem))
					return false;
				i += 2;
				continue;
			}
			for (i++;; i++) {
				if (i >= bytes) {
					*problem = "a quote is not closed";
					return false;
				}
				if (s[i] == '\'' && i + 1 < bytes && s[i + 1] == '\'')
					i++;
				else if (s[i] == '\'')
					break;
				if (!add(p, 0, 1, (uint8_t)s[i], problem))
					return false;
			}
			i++;
			continue;
		}
		size_t n = 1;
		if (letter) {
			if (strchr("yuQMdDEaHkKhmsSXxZz", c) == NULL) {
				*problem = "unknown pattern letter; text goes between '...' (letters: "
					   "yuQMdDEaHkKhmsSXxZz)";
				return false;
			}
			while (i + n < bytes && s[i + n] == c)
				n++;
			if (n > 9) {
				*problem = "a pattern letter is repeated too often";
				return false;
			}
		}
		if (!add(p, letter ? c : 0, (uint8_t)n, (uint8_t)c, problem))
			return false;
		i += n;
	}
	return true;
}

struct text {
	char *to;
	size_t bytes, room;
};

static void put(struct text *t, const char *s, size_t bytes)
{
	if (t->room - t->bytes < bytes)
		bytes = t->room - t->bytes;
	memcpy(t->to + t->bytes, s, bytes);
	t->bytes += bytes;
}

static void put_number(struct text *t, int64_t v, int width)
{
	char digits[32];
	int at = sizeof digits;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	do {
		digits[--at] = (char)('0' + u % 10);
		u /= 10;
		width--;
	} while (u != 0 || width > 0);
	if (v < 0)
		digits[--at] = '-';
	put(t, digits + at, sizeof digits - (size_t)at);
}

static void put_name(struct text *t, const char *name, uint8_t count)
{
	put(t, name, count >= 4 ? strlen(name) : 3);
}

static void put_field(struct text *t, struct weir_time_item it, const struct weir_civil *c, int64_t days)
{
	int width = it.count;
	switch (it.letter) {
	case 0:
		put(t, (const char *)&it.literal, 1);
		break;
	case 'y':
	case 'u':
		put_number(t, it.count == 2 ? (c->year % 100 + 100) % 100 : c->year, width);
		break;
	case 'Q':
		put_number(t, (c->month + 2) / 3, width);
		break;
	case 'M':
		if (it.count >= 3)
			put_name(t, months[c->month - 1], it.count);
		else
			put_number(t, c->month, width);
		break;
	case 'd':
		put_number(t, c->day, width);
		break;
	case 'D':
		put_number(t, weir_civil_day_of_year(days), width);
		break;
	case 'E':
		put_name(t, weekdays[weir_civil_weekday(days) - 1], it.count);
		break;
	case 'a':
		put(t, c->hour < 12 ? "AM" : "PM", 2);
		break;
	case 'H':
		put_number(t, c->hour, width);
		break;
	case 'k':
		put_number(t, c->hour == 0 ? 24 : c->hour, width);
		break;
	case 'K':
		put_number(t, c->hour % 12, width);
		break;
	case 'h':
		put_number(t, c->hour % 12 == 0 ? 12 : c->hour % 12, width);
		break;
	case 'm':
		put_number(t, c->minute, width);
		break;
	case 's':
		put_number(t, c->second, width);
		break;
	case 'S': {
		int64_t nano = (int64_t)c->micro * 1000;
		for (int i = it.count; i < 9; i++)
			nano /= 10;
		put_number(t, nano, width);
		break;
	}
	case 'X':
		put(t, "Z", 1);
		break;
	case 'x':
		put(t, "+00:00", it.count == 1 ? 3 : 6);
		if (it.count == 2 || it.count == 4) {
			t->bytes -= 3;
			put(t, "00", 2);
		}
		break;
	case 'Z':
		put(t, "+0000", 5);
		break;
	default: /* z */
		put(t, "UTC", 3);
		break;
	}
}

size_t weir_time_pattern_print(const struct weir_time_pattern *p, int64_t micros, char *to, size_t room)
{
	struct weir_civil c;
	struct text t = {to, 0, room};
	weir_civil_split(micros, 1000, &c);
	int64_t days = weir_floor_div(micros, WEIR_DAY_MS * 1000);
	for (uint32_t i = 0; i < p->count; i++)
		put_field(&t, p->item[i], &c, days);
	return t.bytes;
}

/* -- parsing -- */

struct scan {
	const char *s;
	size_t bytes, at;
	int64_t year, month, day, day_of_year, hour, hour12, minute, second, micro, offset;
	bool pm, has_half;
};

static bool digits(struct scan *sc, int min, int max, int64_t *out)
{
	int n = 0;
	int64_t v = 0;
	while (n < max && sc->at < sc->bytes && sc->s[sc->at] >= '0' && sc->s[sc->at] <= '9') {
		v = v * 10 + (sc->s[sc->at++] - '0');
		n++;
	}
	*out = v;
	return n >= min;
}

static bool name(struct scan *sc, const char *const *names, int count, uint8_t letters, int64_t *out)
{
	for (int i = 0; i < count; i++) {
		size_t n = letters >= 4 ? strlen(names[i]) : 3;
		if (sc->bytes - sc->at >= n && strncasecmp(sc->s + sc->at, names[i], n) == 0) {
			sc->at += n;
			*out = i + 1;
			return true;
		}
	}
	return false;
}

static bool offset(struct scan *sc)
{
	if (sc->at < sc->bytes && (sc->s[sc->at] == 'Z' || sc->s[sc->at] == 'z')) {
		sc->at++;
		return true;
	}
	if (sc->at >= sc->bytes || (sc->s[sc->at] != '+' && sc->s[sc->at] != '-'))
		return false;
	int64_t sign = sc->s[sc->at++] == '-' ? -1 : 1, h, m = 0;
	if (!digits(sc, 2, 2, &h))
		return false;
	if (sc->at < sc->bytes && sc->s[sc->at] == ':') {
		sc->at++;
		if (!digits(sc, 2, 2, &m))
			return false;
	} else if (sc->at < sc->bytes && sc->s[sc->at] >= '0' && sc->s[sc->at] <= '9' && !digits(sc, 2, 2, &m)) {
		return false;
	}
	sc->offset = sign * (h * 3600 + m * 60);
	return h <= 18 && m < 60;
}

static bool fraction(struct scan *sc, int count)
{
	int64_t v;
	size_t from = sc->at;
	if (!digits(sc, 1, count, &v))
		return false;
	for (size_t n = sc->at - from; n != 6; n += n < 6 ? 1 : (size_t)-1)
		v = n < 6 ? v * 10 : v / 10;
	sc->micro = v;
	return true;
}

/* alone: the next item is no number, so that this one may be longer than its letters. */
static bool scan_field(struct scan *sc, struct weir_time_item it, bool alone)
{
	int min = it.count, max = alone ? 19 : it.count;
	int64_t ignored;
	if (it.count <= 2 && it.letter != 'y' && it.letter != 'u')
		max = alone ? 2 : it.count;
	switch (it.letter) {
	case 0:
		return sc->at < sc->bytes && (uint8_t)sc->s[sc->at++] == it.literal;
	case 'y':
	case 'u':
		if (it.count == 2) {
			bool ok = digits(sc, 2, 2, &sc->year);
			sc->year += 2000;
			return ok;
		}
		return digits(sc, min, max > 9 ? 9 : max, &sc->year);
	case 'Q':
		return digits(sc, min, max, &ignored);
	case 'M':
		return it.count >= 3 ? name(sc, months, 12, it.count, &sc->month) : digits(sc, min, max, &sc->month);
	case 'd':
		return digits(sc, min, max, &sc->day);
	case 'D':
		return digits(sc, min, 3, &sc->day_of_year);
	case 'E':
		return name(sc, weekdays, 7, it.count, &ignored);
	case 'a': {
		static const char *const halves[] = {"AM ", "PM "};
		for (int i = 0; i < 2; i++)
			if (sc->bytes - sc->at >= 2 && strncasecmp(sc->s + sc->at, halves[i], 2) == 0) {
				sc->at += 2;
				sc->pm = i == 1;
				sc->has_half = true;
				return true;
			}
		return false;
	}
	case 'H':
		return digits(sc, min, max, &sc->hour);
	case 'k': {
		bool ok = digits(sc, min, max, &sc->hour);
		sc->hour = sc->hour == 24 ? 0 : sc->hour;
		return ok;
	}
	case 'K':
	case 'h': {
		bool ok = digits(sc, min, max, &sc->hour12);
		return ok && sc->hour12 <= 12;
	}
	case 'm':
		return digits(sc, min, max, &sc->minute);
	case 's':
		return digits(sc, min, max, &sc->second);
	case 'S':
		return fraction(sc, it.count);
	case 'z': {
		bool utc = sc->bytes - sc->at >= 3 &&
			   (memcmp(sc->s + sc->at, "UTC", 3) == 0 || memcmp(sc->s + sc->at, "GMT", 3) == 0);
		sc->at += utc ? 3 : 0;
		return utc || offset(sc);
	}
	default:
		return offset(sc);
	}
}

static bool is_number(struct weir_time_item it)
{
	return it.letter != 0 && strchr("yuQdDHkKhmsS", it.letter) != NULL ? true : it.letter == 'M' && it.count < 3;
}

bool weir_time_pattern_parse(const struct weir_time_pattern *p, const char *s, size_t bytes, int64_t *micros)
{
	struct scan sc = {.s = s, .bytes = bytes, .year = 1970, .month = 1, .day = 1, .day_of_year = -1, .hour12 = -1};
	for (uint32_t i = 0; i < p->count; i++) {
		bool alone = i + 1 == p->count || !is_number(p->item[i + 1]);
		if (!scan_field(&sc, p->item[i], alone))
			return false;
	}
	if (sc.hour12 >= 0)
		sc.hour = sc.hour12 % 12 + (sc.pm ? 12 : 0);
	if (sc.at != bytes || sc.year > 9999 || sc.month < 1 || sc.month > 12 || sc.day < 1 || sc.hour > 23 ||
	    sc.minute > 59 || sc.second > 59 || sc.day > weir_civil_month_days(sc.year, (int)sc.month))
		return false;
	int64_t days = weir_days_from_civil(sc.year, (int)sc.month, (int)sc.day);
	if (sc.day_of_year >= 0) {
		if (sc.day_of_year < 1 || sc.day_of_year > 365 + weir_civil_is_leap(sc.year))
			return false;
		days = weir_days_from_civil(sc.year, 1, 1) + sc.day_of_year - 1;
	}
	*micros = (days * 86400 + sc.hour * 3600 + sc.minute * 60 + sc.second - sc.offset) * 1000000 + sc.micro;
	return true;
}
