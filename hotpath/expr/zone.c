/* zone.c: reads zone files (TZif, RFC 8536) and answers offsets; see zone.h. @thread init (load), any (the rest) */
#include "hotpath/expr/zone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/time/civil.h"

#define ZONE_FOLDER    "/usr/share/zoneinfo/"
#define ZONE_BYTES_MAX (1u << 20)

/* One change of a POSIX rule: M month.week.day, Jn (1..365, no leap day) or n (0..365), and the second of the day. */
struct rule {
	char form; /* 'M', 'J', 'N' */
	int month, week, day;
	int64_t second;
};

struct weir_zone {
	uint32_t count;
	const int64_t *at;     /* count instants, ascending */
	const int64_t *offset; /* the offset from at[i] on */
	int64_t first;         /* the offset before at[0] */
	bool has_rule;         /* after at[count - 1]: */
	bool has_summer;
	int64_t winter, summer;
	struct rule start, end; /* summer time is between them */
};

/* -- the rule at the end of a file: "CET-1CEST,M3.5.0,M10.5.0/3" -- */

static bool skip_name(const char **s)
{
	const char *p = *s;
	if (*p == '<') {
		p = strchr(p, '>');
		if (p == NULL)
			return false;
		*s = p + 1;
		return true;
	}
	while ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z'))
		p++;
	bool any = p != *s;
	*s = p;
	return any;
}

static bool take_number(const char **s, int64_t *out)
{
	const char *p = *s;
	int64_t v = 0;
	while (*p >= '0' && *p <= '9' && v < 100000)
		v = v * 10 + (*p++ - '0');
	bool any = p != *s;
	*s = p;
	*out = v;
	return any;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(const char **s, int64_t *out)
{
	int64_t sign = 1, part, total;
	if (**s == '-' || **s == '+')
		sign = *(*s)++ == '-' ? -1 : 1;
	if (!take_number(s, &total))
		return false;
	total *= 3600;
	for (int64_t unit = 60; unit >= 1 && **s == ':'; unit /= 60) {
		(*s)++;
		if (!take_number(s, &part))
			return false;
		total += part * unit;
	}
	*out = sign * total;
	return true;
}

static bool take_rule(const char **s, struct rule *r)
{
	int64_t a, b = 0, c = 0;
	if (**s != ',')
		return false;
	(*s)++;
	r->form = 'N';
	if (**s == 'M' || **s == 'J')
		r->form = *(*s)++;
	if (!take_number(s, &a))
		return false;
	if (r->form == 'M') {
		if (*(*s)++ != '.' || !take_number(s, &b) || *(*s)++ != '.' || !take_number(s, &c))
			return false;
		if (a < 1 || a > 12 || b < 1 || b > 5 || c > 6)
			return false;
		r->month = (int)a;
	}
	r->week = (int)b;
	r->day = r->form == 'M' ? (int)c : (int)a;
	r->second = 7200;
	if (**s == '/') {
		(*s)++;
		return take_time(s, &r->second);
	}
	return true;
}

static bool parse_rule(const char *s, struct weir_zone *z)
{
	if (!skip_name(&s) || !take_time(&s, &z->winter))
		return false;
	z->winter = -z->winter; /* POSIX counts west as positive */
	z->has_rule = true;
	if (*s == 0)
		return true;
	if (!skip_name(&s))
		return false;
	z->summer = z->winter + 3600;
	if (*s != ',' && *s != 0) {
		if (!take_time(&s, &z->summer))
			return false;
		z->summer = -z->summer;
	}
	z->has_summer = true;
	return take_rule(&s, &z->start) && take_rule(&s, &z->end) && *s == 0;
}

/* Local second since 1970 at which the rule changes in a year. */
static int64_t rule_at(const struct rule *r, int64_t year)
{
	int64_t day;
	if (r->form == 'M') {
		int64_t first = weir_days_from_civil(year, r->month, 1);
		int want = r->day == 0 ? 7 : r->day, have = weir_civil_weekday(first);
		day = first + (want - have + 7) % 7 + (r->week - 1) * 7;
		if (day >= first + weir_civil_month_days(year, r->month))
			day -= 7;
	} else {
		day = weir_days_from_civil(year, 1, 1) + r->day;
		if (r->form == 'J')
			day += (weir_civil_is_leap(year) && r->day >= 60) - 1;
	}
	return day * 86400 + r->second;
}

static int64_t rule_offset(const struct weir_zone *z, int64_t utc)
{
	if (!z->has_summer)
		return z->winter;
	int64_t year;
	int month, day;
	weir_civil_from_days(weir_floor_div(utc + z->winter, 86400), &year, &month, &day);
	int64_t start = rule_at(&z->start, year) - z->winter, end = rule_at(&z->end, year) - z->summer;
	bool summer = start < end ? utc >= start && utc < end : utc >= start || utc < end;
	return summer ? z->summer : z->winter;
}

/* -- files -- */

static bool read_file(const char *path, struct weir_buf *b)
{
	FILE *f = fopen(path, "rb");
	if (f == NULL)
		return false;
	size_t n;
	while (b->bytes < ZONE_BYTES_MAX && (n = fread(weir_buf_room(b, 4096), 1, 4096, f)) > 0)
		b->bytes += n;
	bool ok = ferror(f) == 0;
	fclose(f);
	return ok;
}

struct counts {
	uint32_t isutc, isstd, leap, time, type, chars;
};

static bool header(const uint8_t *p, size_t left, struct counts *c)
{
	if (left < 44 || memcmp(p, "TZif", 4) != 0)
		return false;
	c->isutc = weir_load_be32(p + 20);
	c->isstd = weir_load_be32(p + 24);
	c->leap = weir_load_be32(p + 28);
	c->time = weir_load_be32(p + 32);
	c->type = weir_load_be32(p + 36);
	c->chars = weir_load_be32(p + 40);
	return (c->isutc | c->isstd | c->leap | c->time | c->type | c->chars) < 100000 && c->type > 0;
}

static size_t body_bytes(const struct counts *c, size_t width)
{
	return c->time * (width + 1) + c->type * 6 + c->chars + c->leap * (width + 4) + c->isstd + c->isutc;
}

static bool parse_file(const struct weir_buf *b, struct weir_mem *m, struct weir_zone *z)
{
	struct counts c;
	const uint8_t *p = b->data, *end = b->data + b->bytes;
	if (!header(p, b->bytes, &c) || p[4] < '2')
		return false;
	size_t skip = 44 + body_bytes(&c, 4); /* the 32-bit copy */
	if (skip > b->bytes || !header(p + skip, b->bytes - skip, &c))
		return false;
	p += skip + 44;
	size_t body = body_bytes(&c, 8);
	if (body > (size_t)(end - p))
		return false;
	const uint8_t *index = p + (size_t)c.time * 8, *type = index + c.time, *footer = p + body;
	int64_t *at = weir_mem_take(m, (c.time + 1) * sizeof *at),
		*offset = weir_mem_take(m, (c.time + 1) * sizeof *offset);
	for (uint32_t i = 0; i < c.time; i++) {
		at[i] = (int64_t)weir_load_be64(p + (size_t)i * 8);
		if (index[i] >= c.type || (i > 0 && at[i] <= at[i - 1]))
			return false;
		offset[i] = (int32_t)weir_load_be32(type + (size_t)index[i] * 6);
	}
	z->count = c.time;
	z->at = at;
	z->offset = offset;
	z->first = (int32_t)weir_load_be32(type);
	char rule[128];
	size_t n = 0;
	for (footer++; footer < end && *footer != '\n' && n < sizeof rule - 1; footer++)
		rule[n++] = (char)*footer;
	rule[n] = 0;
	return n == 0 || parse_rule(rule, z);
}

/* Letters, digits and - + _ in parts with a slash between: never out of the folder. */
static bool is_plain_name(const char *s, size_t bytes)
{
	if (bytes == 0 || bytes > 64 || s[0] == '/' || s[bytes - 1] == '/')
		return false;
	for (size_t i = 0; i < bytes; i++) {
		char c = s[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
			  c == '+' || c == '_' || (c == '/' && s[i - 1] != '/');
		if (!ok)
			return false;
	}
	return true;
}

/* [UTC|GMT](+|-)h[h][:mm] */
static bool fixed_offset(const char *s, size_t bytes, int64_t *out)
{
	if (bytes >= 3 && (memcmp(s, "UTC", 3) == 0 || memcmp(s, "GMT", 3) == 0))
		s += 3, bytes -= 3;
	if (bytes < 2 || bytes > 6 || (s[0] != '+' && s[0] != '-'))
		return false;
	char text[8] = {0};
	memcpy(text, s + 1, bytes - 1);
	const char *p = text;
	int64_t hours, minutes = 0;
	if (!take_number(&p, &hours))
		return false;
	if (p - text == 4) { /* +0530 */
		minutes = hours % 100;
		hours /= 100;
	} else if (p - text > 2) {
		return false;
	} else if (*p == ':') {
		p++;
		if (!take_number(&p, &minutes))
			return false;
	}
	if (*p != 0 || hours > 18 || minutes > 59)
		return false;
	*out = (hours * 3600 + minutes * 60) * (s[0] == '-' ? -1 : 1);
	return true;
}

enum weir_err weir_zone_load(const char *name, size_t bytes, struct weir_mem *m, const struct weir_zone **out,
			     struct weir_diag **dg)
{
	struct weir_zone *z = weir_mem_take(m, sizeof *z);
	*out = z;
	if ((bytes == 3 && (memcmp(name, "UTC", 3) == 0 || memcmp(name, "GMT", 3) == 0)) ||
	    (bytes == 1 && name[0] == 'Z'))
		return WEIR_OK;
	if (fixed_offset(name, bytes, &z->first))
		return WEIR_OK;
	struct weir_buf b = {0};
	bool ok = false;
	if (is_plain_name(name, bytes)) {
		char path[sizeof ZONE_FOLDER + 64];
		snprintf(path, sizeof path, ZONE_FOLDER "%.*s", (int)bytes, name);
		ok = read_file(path, &b) && parse_file(&b, m, z);
	}
	weir_buf_fini(&b);
	if (ok)
		return WEIR_OK;
	return weir_diag_set(
		dg, WEIR_E_PLAN,
		"unknown time zone '%.*s': expected UTC, an offset like +08:00, or a name like Europe/Berlin "
		"of the zone files in " ZONE_FOLDER,
		(int)(bytes > 64 ? 64 : bytes), name);
}

int64_t weir_zone_offset(const struct weir_zone *z, int64_t utc)
{
	if (z->count == 0 || utc < z->at[0])
		return z->count == 0 && z->has_rule ? rule_offset(z, utc) : z->first;
	if (utc >= z->at[z->count - 1] && z->has_rule)
		return rule_offset(z, utc);
	uint32_t low = 0, high = z->count; /* at[low] <= utc < at[high] */
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		if (z->at[mid] <= utc)
			low = mid;
		else
			high = mid;
	}
	return z->offset[low];
}

int64_t weir_zone_to_utc(const struct weir_zone *z, int64_t local)
{
	int64_t before = weir_zone_offset(z, local - 86400), after = weir_zone_offset(z, local + 86400);
	if (weir_zone_offset(z, local - before) == before || before == after)
		return local - before;
	if (weir_zone_offset(z, local - after) == after)
		return local - after;
	return local - before;
}
