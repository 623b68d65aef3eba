/* test_json.c: random and mutated documents through the JSON decoder and through jansson; and streams of mixed layouts
 * through every instruction set with speculation, against the general parser alone. The seed is printed on failure:
 * WEIR_SEED=N repeats it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/json_rig.h"
#include "tests/support/json_twin.h"

enum { DOC_MAX = 4096, DOCUMENTS = 20000 };

struct maker {
	uint64_t state;
	char doc[DOC_MAX + 256];
	size_t bytes;
	int spaces; /* per cent of places with white space */
};

static uint64_t seed_get(void)
{
	const char *s = getenv("WEIR_SEED");
	return s != NULL ? strtoull(s, NULL, 10) : 20260101;
}

static uint32_t pick(struct maker *m, uint32_t below)
{
	uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) >> 11) % below;
}

static void put(struct maker *m, const char *s)
{
	size_t bytes = strlen(s);
	if (m->bytes + bytes < DOC_MAX) {
		memcpy(m->doc + m->bytes, s, bytes);
		m->bytes += bytes;
	}
}

static void space(struct maker *m)
{
	static const char *const kinds[] = {" ", "\n", "\t", "\r\n", "    "};
	if (m->spaces != 0 && pick(m, 100) < (uint32_t)m->spaces)
		put(m, kinds[pick(m, WEIR_COUNT_OF(kinds))]);
}

static void make_string(struct maker *m)
{
	static const char *const parts[] = {"a",
					    "bc",
					    "0123456789",
					    "the quick brown fox jumps over",
					    "\\n",
					    "\\\"",
					    "\\\\",
					    "\\u0041",
					    "\\ud83d\\ude39",
					    "\xc3\xa9",
					    "\xe2\x82\xac",
					    "\xf0\x9f\x98\x80",
					    " ",
					    "}",
					    "{",
					    ",",
					    ":",
					    "[",
					    "\\/",
					    "\\u0000",
					    "\x7f",
					    "123",
					    "-",
					    "true"};
	put(m, "\"");
	for (uint32_t n = pick(m, 5); n > 0; n--)
		put(m, parts[pick(m, WEIR_COUNT_OF(parts))]);
	put(m, "\"");
}

static void make_number(struct maker *m)
{
	char text[64];
	uint32_t kind = pick(m, 8);
	uint64_t digits = (uint64_t)pick(m, 1u << 30) << 32 | pick(m, 1u << 31);
	digits >>= pick(m, 62);
	const char *sign = pick(m, 4) == 0 ? "-" : "";
	if (kind < 4)
		snprintf(text, sizeof text, "%s%" PRIu64, sign, digits);
	else if (kind < 6)
		snprintf(text, sizeof text, "%s%" PRIu64 ".%u", sign, digits >> 40, pick(m, 1000));
	else
		snprintf(text, sizeof text, "%s%u.%u%s%u", sign, pick(m, 1000), pick(m, 100000),
			 pick(m, 2) ? "e" : "E-", pick(m, 280));
	put(m, text);
}

static void make_value(struct maker *m, int depth);

static void make_object(struct maker *m, int depth)
{
	static const char *const names[] = {"s", "i", "f", "b",       "o",       "l", "x",        "other",
					    "d", "n", "t", "\\u0073", "\\u0069", "",  "\xc3\xa9", "i "};
	put(m, "{");
	space(m);
	for (uint32_t n = pick(m, 8), first = 1; n > 0; n--, first = 0) {
		if (!first) {
			put(m, ",");
			space(m);
		}
		put(m, "\"");
		put(m, names[pick(m, pick(m, 3) == 0 ? WEIR_COUNT_OF(names) : 7)]);
		put(m, "\"");
		space(m);
		put(m, ":");
		space(m);
		make_value(m, depth + 1);
		space(m);
	}
	put(m, "}");
}

static void make_value(struct maker *m, int depth)
{
	switch (pick(m, depth > 3 ? 6 : 8)) {
	case 0:
	case 1:
		make_string(m);
		break;
	case 2:
	case 3:
		make_number(m);
		break;
	case 4:
		put(m, pick(m, 2) ? "true" : "false");
		break;
	case 5:
		put(m, "null");
		break;
	case 6:
		put(m, "[");
		space(m);
		for (uint32_t n = pick(m, 5), first = 1; n > 0; n--, first = 0) {
			if (!first)
				put(m, ",");
			space(m);
			make_value(m, depth + 1);
			space(m);
		}
		put(m, "]");
		break;
	default:
		make_object(m, depth);
		break;
	}
}

/* A document whose members have the types that the fields want, so that most are accepted. */
static void make_record(struct maker *m, uint32_t layout)
{
	char text[64];
	put(m, "{");
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t member = (i * (layout % 2 ? 5 : 1) + layout) % 6;
		if (layout >> (2 + member) & 1)
			continue;
		if (m->doc[m->bytes - 1] != '{')
			put(m, layout & 256 ? ", " : ",");
		switch (member) {
		case 0:
			put(m, "\"t\":");
			if (pick(m, 4) == 0)
				put(m, "null");
			else
				make_string(m);
			put(m, ",\"s\":");
			if (pick(m, 4) == 0)
				put(m, "null");
			else
				make_string(m);
			break;
		case 1:
			snprintf(text, sizeof text, "\"i\":%" PRId64,
				 (int64_t)((uint64_t)pick(m, 1u << 31) << 31 >> pick(m, 60)));
			put(m, text);
			break;
		case 2:
			put(m, "\"f\":");
			make_number(m);
			snprintf(text, sizeof text, ",\"d\":%u.%02u,\"n\":%u", pick(m, pick(m, 2) ? 100000 : 10),
				 pick(m, 100), pick(m, 100000) >> pick(m, 17));
			put(m, text);
			break;
		case 3:
			put(m, pick(m, 3) == 0 ? "\"b\":null" : pick(m, 2) ? "\"b\":true" : "\"b\":false");
			break;
		case 4:
			snprintf(text, sizeof text, "\"o\":{\"z\":\"q\",\"x\":%u}", pick(m, 100000));
			put(m, text);
			break;
		default:
			snprintf(text, sizeof text, "\"l\":[%u,%u]", pick(m, 10), pick(m, 1000));
			put(m, text);
			break;
		}
	}
	put(m, "}");
}

static void mutate(struct maker *m)
{
	static const char bytes[] = "\"\\{}[],:0123456789.eE+-truefalsn \n\t\x01\x80\xc3\xff";
	for (uint32_t n = 1 + pick(m, 3); n > 0 && m->bytes > 0; n--) {
		uint32_t at = pick(m, (uint32_t)m->bytes);
		switch (pick(m, 4)) {
		case 0: /* another byte */
			m->doc[at] = pick(m, 4) ? bytes[pick(m, sizeof bytes - 1)] : (char)pick(m, 256);
			break;
		case 1: /* one less */
			memmove(m->doc + at, m->doc + at + 1, m->bytes - at - 1);
			m->bytes--;
			break;
		case 2: /* one more */
			memmove(m->doc + at + 1, m->doc + at, m->bytes - at);
			m->doc[at] = bytes[pick(m, sizeof bytes - 1)];
			m->bytes++;
			break;
		default: /* cut off */
			m->bytes = pick(m, 8) == 0 ? at : m->bytes;
			break;
		}
	}
}

static void make(struct maker *m)
{
	m->bytes = 0;
	m->spaces = pick(m, 3) == 0 ? 20 : 0;
	if (pick(m, 4) == 0) {
		m->spaces = 0;
		make_record(m, pick(m, 512));
	} else if (pick(m, 10) == 0) {
		make_value(m, 0);
	} else {
		make_object(m, 0);
	}
	if (pick(m, 3) == 0)
		mutate(m);
}

static void test_against_jansson(void **state)
{
	(void)state;
	static struct json_rig rig;
	static struct maker m;
	json_rig_init(&rig);
	json_twin_fields(&rig);
	for (const char *const *v = json_rig_variants; *v != NULL; v++) {
		for (int speculate = 0; speculate < 2; speculate++) {
			if (!json_rig_open(&rig, *v, speculate != 0))
				continue;
			m.state = seed_get();
			uint32_t accepted = 0;
			for (uint32_t i = 0; i < DOCUMENTS; i++) {
				make(&m);
				rig.misalign = pick(&m, 64);
				const char *text = json_rig_one(&rig, m.doc, m.bytes);
				const char *differs = json_twin_compare(&rig, 0, m.doc, m.bytes);
				if (differs != NULL)
					fail_msg("seed %" PRIu64 ", %s, document %u: %s: `%.*s` gave `%s`", seed_get(),
						 *v, i, differs, (int)m.bytes, m.doc, text);
				accepted += json_rig_reason(&rig, 0) == WEIR_REASON_NONE;
			}
			/* The documents must be worth something. */
			assert_in_range(accepted, DOCUMENTS / 10, DOCUMENTS * 9 / 10);
		}
	}
	json_rig_fini(&rig);
}

/* Streams of a few layouts, now steady, now in no order, with bad records among them: text by text the same as from the
 * general scalar parser. */
static void test_mixed_layouts(void **state)
{
	(void)state;
	static struct json_rig rig, plain;
	static struct maker m;
	uint64_t fast_total = 0;
	json_rig_init(&rig);
	json_twin_fields(&rig);
	json_rig_init(&plain);
	json_twin_fields(&plain);
	assert_true(json_rig_open(&plain, "scalar", false));
	for (const char *const *v = json_rig_variants; *v != NULL; v++) {
		if (!json_rig_open(&rig, *v, true))
			continue;
		m.state = seed_get() + 1;
		for (uint32_t batch = 0; batch < 60; batch++) {
			uint32_t layouts[6], count = 1 + pick(&m, 6), rows = 1 + pick(&m, WEIR_BATCH_ROWS),
					     bad = pick(&m, 20);
			for (uint32_t i = 0; i < 6; i++)
				layouts[i] = pick(&m, 512);
			for (uint32_t i = 0; i < rows; i++) {
				m.bytes = 0;
				m.spaces = 0;
				make_record(&m, layouts[batch % 2 ? pick(&m, count) : i / 200 % count]);
				if (pick(&m, 100) < bad)
					mutate(&m);
				rig.misalign = plain.misalign = pick(&m, 64);
				rig.pad_byte = (uint8_t)pick(&m, 256);
				json_rig_add(&rig, m.doc, m.bytes);
				json_rig_add(&plain, m.doc, m.bytes);
			}
			json_rig_run(&rig);
			json_rig_run(&plain);
			for (uint32_t i = 0; i < rows; i++) {
				const char *a = json_rig_text(&rig, i), *b = json_rig_text(&plain, i);
				if (strcmp(a, b) != 0)
					fail_msg("seed %" PRIu64
						 ", %s, batch %u row %u: `%.*s` gave `%s`, the general parser `%s`",
						 seed_get(), *v, batch, i, (int)rig.records[i].value_bytes,
						 (const char *)rig.records[i].value, a, b);
			}
		}
		uint64_t fast, general;
		weir_json_counts(rig.d, &fast, &general);
		assert_true(fast > general); /* most of it was speculated */
		fast_total += fast;
	}
	assert_true(fast_total > 0);
	json_rig_fini(&rig);
	json_rig_fini(&plain);
}

/* Every byte of a record, replaced by every other byte, behind the record itself: all ways agree, and agree with
 * jansson. */
static void test_every_byte_replaced(void **state)
{
	(void)state;
	static struct json_rig rig, plain;
	static const char good[] = "{\"s\":\"ab\\u0041\xc3\xa9\",\"i\":12345,\"f\":-1.25e3,\"b\":true,\"o\":{\"x\":7},"
				   "\"l\":[1,2],\"z\":{\"y\":[null]}}";
	json_rig_init(&rig);
	json_twin_fields(&rig);
	json_rig_init(&plain);
	json_twin_fields(&plain);
	assert_true(json_rig_open(&plain, "scalar", false));
	for (const char *const *v = json_rig_variants; *v != NULL; v++) {
		if (!json_rig_open(&rig, *v, true))
			continue;
		for (size_t at = 0; at < sizeof good - 1; at++) {
			char doc[sizeof good];
			memcpy(doc, good, sizeof good);
			for (int byte = 0; byte < 256; byte++) {
				json_rig_add(&rig, good, sizeof good - 1);
				doc[at] = (char)byte;
				json_rig_add(&rig, doc, sizeof good - 1);
				json_rig_run(&rig);
				const char *a = json_rig_text(&rig, 1), *b = json_rig_one(&plain, doc, sizeof good - 1);
				const char *differs = json_twin_compare(&rig, 1, doc, sizeof good - 1);
				if (strcmp(a, b) != 0 || differs != NULL)
					fail_msg("%s, byte %d at %d: `%s`, general `%s`, %s", *v, byte, (int)at, a, b,
						 differs != NULL ? differs : "the twin agrees");
			}
		}
	}
	json_rig_fini(&rig);
	json_rig_fini(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_jansson),
		cmocka_unit_test(test_mixed_layouts),
		cmocka_unit_test(test_every_byte_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
