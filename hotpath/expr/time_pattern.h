/* time_pattern.h: Java's date patterns ('yyyy-MM-dd HH:mm:ss.SSS'), compiled to a short list, for printing and parsing.
 * @thread any
 *
 *   y u year (yy: two digits of 2000..2099) · Q quarter · M month (MMM Jan, MMMM January) · d day · D day of the year ·
 * E weekday (EEE Mon, EEEE Monday) · a AM/PM · H hour 0-23 · k 1-24 · K 0-11 · h 1-12 · m minute · s second · S digits
 * of the fraction · X x Z offset (XXX +01:00 or Z, xx +0100, Z +0000) · z UTC · 'text' literal, '' a quote */
#ifndef WEIR_EXPR_TIME_PATTERN_H
#define WEIR_EXPR_TIME_PATTERN_H

#include "hotpath/core/base.h"

#define WEIR_TIME_PATTERN_ITEMS 48

struct weir_time_item {
	char letter; /* 0: a literal byte */
	uint8_t count;
	uint8_t literal;
};
struct weir_time_pattern {
	uint32_t count;
	struct weir_time_item item[WEIR_TIME_PATTERN_ITEMS];
};

/* False: an unknown letter, an open quote or too long; *problem is a static text. */
bool weir_time_pattern_compile(const char *s, size_t bytes, struct weir_time_pattern *p, const char **problem);
/* Prints micros since 1970 (UTC); at most `room` bytes, returns how many. */
size_t weir_time_pattern_print(const struct weir_time_pattern *p, int64_t micros, char *to, size_t room);
#define WEIR_TIME_PATTERN_TEXT_MAX 512 /* room for any pattern */
/* The whole of s must match. Absent fields are 1970-01-01 00:00:00; an offset is taken off. */
bool weir_time_pattern_parse(const struct weir_time_pattern *p, const char *s, size_t bytes, int64_t *micros);

#endif
