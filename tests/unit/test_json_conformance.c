/* test_json_conformance.c: what is JSON and what is not, as a table of documents in the manner of public conformance
 * corpora: y must be accepted, n refused, i is left to the implementation by RFC 8259 and is settled here (I refused, i
 * accepted). Every document runs through every instruction set, alone, nested, behind a record of the same layout, at
 * every alignment and cut off at every byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/json_rig.h"

struct sample {
	char verdict;
	const char *doc;
	size_t bytes;
};
#define Y(doc)                                                                                                         \
	{                                                                                                              \
		'y', doc, sizeof(doc) - 1                                                                              \
	}
#define N(doc)                                                                                                         \
	{                                                                                                              \
		'n', doc, sizeof(doc) - 1                                                                              \
	}
#define ACCEPTED(doc)                                                                                                  \
	{                                                                                                              \
		'i', doc, sizeof(doc) - 1                                                                              \
	}
#define REFUSED(doc)                                                                                                   \
	{                                                                                                              \
		'I', doc, sizeof(doc) - 1                                                                              \
	}

static const struct sample samples[] = {
	/* arrays */
	Y("[]"),
	Y("[[]   ]"),
	Y("[ ]"),
	Y("[\"\"]"),
	Y("[\"a\"]"),
	Y("[false]"),
	Y("[null, 1, \"1\", {}]"),
	Y("[null]"),
	Y("[1\n]"),
	Y(" [1]"),
	Y("[1,null,null,null,2]"),
	Y("[2] "),
	Y("[[[[[]]]]]"),
	Y("[\t]"),
	Y("[\r\n]"),
	Y("[[],[],[]]"),
	Y("[{},{}]"),
	Y("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]"),
	N("[1 true]"),
	N("[a\xe5]"),
	N("[\"\": 1]"),
	N("[\"\"],"),
	N("[,1]"),
	N("[1,,2]"),
	N("[\"x\",,]"),
	N("[\"x\"]]"),
	N("[\"\",]"),
	N("[\"x\""),
	N("[x"),
	N("[3[4]]"),
	N("[\xff]"),
	N("[1:2]"),
	N("[,]"),
	N("[-]"),
	N("[   , \"\"]"),
	N("[\"a\",\n4\n,1,"),
	N("[1,]"),
	N("[1,,]"),
	N("[\"\x0b"
	  "a\"\\f]"),
	N("[*]"),
	N("[\"\""),
	N("[1,"),
	N("[1,\n1\n,1"),
	N("[{}"),
	N("[fals]"),
	N("[nul]"),
	N("[tru]"),
	N("[\"a\" \"b\"]"),
	N("[1 2]"),
	N("[}"),
	N("[)"),
	N("[1;2]"),
	N("["),
	N("]"),
	N("[[]"),
	N("[]]"),
	N("[\\n]"),
	N("[\x0c]"),
	N("[\xc2\xa0]"),
	N("[\xe2\x81\xa0]"),
	N("[(1)]"),
	/* objects */
	Y("{}"),
	Y("{ }"),
	Y("{\"\":0}"),
	Y("{\"a\":[]}"),
	Y("{\"asd\":\"sdf\", \"dfg\":\"fgh\"}"),
	Y("{\"asd\":\"sdf\"}"),
	Y("{\"a\":\"b\",\"a\":\"c\"}"),
	Y("{\"a\":\"b\",\"a\":\"b\"}"),
	Y("{\"foo\\u0000bar\": 42}"),
	Y("{ \"min\": -1.0e+28, \"max\": 1.0e+28 }"),
	Y("{\"x\":[{\"id\": \"xxxx\"}], \"id\": \"yyyy\"}"),
	Y("{\"title\":\"\\u041f\\u043e\\u043b\\u0442\\u043e\\u0440\\u0430\" }"),
	Y("{\n\"a\": \"b\"\n}"),
	Y("{\"a\":{}}"),
	Y("{\"a\":{\"b\":{\"c\":{\"d\":null}}}}"),
	Y("{\"\\\"\":1}"),
	Y("{\"\\\\\":1}"),
	Y("\n{\n}\n"),
	Y("{\"a\"\t:\r1 }"),
	Y("{\"\xc3\xa9\":1}"),
	Y("{\"@type\":1,\"a.b\":2,\"a b\":3,\"a-b\":4}"),
	N("[\"x\", truth]"),
	N("{[: \"x\"}\n"),
	N("{\"x\", null}"),
	N("{\"x\"::\"b\"}"),
	N("{\"a\":\"a\" 123}"),
	N("{key: 'value'}"),
	N("{\"\xb9\":\"0\",}"),
	N("{\"a\" b}"),
	N("{:\"b\"}"),
	N("{\"a\" \"b\"}"),
	N("{\"a\":"),
	N("{\"a\""),
	N("{1:1}"),
	N("{9999E9999:1}"),
	N("{null:null,null:null}"),
	N("{\"id\":0,,,,,}"),
	N("{'a':0}"),
	N("{\"id\":0,}"),
	N("{\"a\":\"b\"}/**/"),
	N("{\"a\":\"b\"}/**//"),
	N("{\"a\":\"b\"}//"),
	N("{\"a\":\"b\"}/"),
	N("{\"a\":\"b\",,\"c\":\"d\"}"),
	N("{a: \"b\"}"),
	N("{\"a\":\"a"),
	N("{ \"foo\" : \"bar\", \"a\" }"),
	N("{\"a\":\"b\"}#"),
	N("{"),
	N("}"),
	N("{]"),
	N("{,}"),
	N("{\"a\":1,\"b\"}"),
	N("{\"a\":1 \"b\":2}"),
	N("{\"a\":1;\"b\":2}"),
	N("{\"a\"=1}"),
	N("{\"a\":1]"),
	N("{\"a\":1}}"),
	N("{\"a\":1,}"),
	N("{,\"a\":1}"),
	N("{\"a\":}"),
	N("{\"a\":,\"b\":1}"),
	N("{true:1}"),
	N("{\"a\":1}{\"b\":2}"),
	N("{\"a\":1}x"),
	N("{\"a\":1},"),
	N("{\"a\":1}\x00"),
	N("{\"a\":1}\"\""),
	N("{\"a\" :"),
	N("{\"a\\x\":1}"),
	N("{\"a\n\":1}"),
	N("{[]:1}"),
	N("{{}:1}"),
	N("{\"a\":1 ,, \"b\":1}"),
	N("{\"a\":{}"),
	N("{\"a\":[}"),
	N("{\"a\":{]}"),
	N("{\"a\":1\x0b}"),
	/* numbers */
	Y("[123e65]"),
	Y("[0e+1]"),
	Y("[0e1]"),
	Y("[ 4]"),
	Y("[-0.000000000000000000000000000000000000000000000000000001]\n"),
	Y("[20e1]"),
	Y("[-0]"),
	Y("[-123]"),
	Y("[-1]"),
	Y("[1E22]"),
	Y("[1E-2]"),
	Y("[1E+2]"),
	Y("[123e45]"),
	Y("[123.456e78]"),
	Y("[1e-2]"),
	Y("[1e+2]"),
	Y("[123]"),
	Y("[123.456789]"),
	Y("[0]"),
	Y("[0.0]"),
	Y("[-0.0]"),
	Y("[0.5]"),
	Y("[0E0]"),
	Y("[0.0e-0]"),
	Y("[1.0]"),
	Y("[10]"),
	Y("[100000000000000000000000000000]"),
	Y("[1234567890123456]"),
	Y("[12345678901234567]"),
	Y("[123456789012345678]"),
	Y("[1.23456789012345678901234567890]"),
	Y("[1e007]"),
	Y("[1E0]"),
	Y("[9223372036854775807]"),
	Y("[-9223372036854775808]"),
	Y("[99999999999999999999]"),
	N("[++1234]"),
	N("[+1]"),
	N("[+Inf]"),
	N("[-01]"),
	N("[-1.0.]"),
	N("[-2.]"),
	N("[.-1]"),
	N("[.2e-3]"),
	N("[0.1.2]"),
	N("[0.3e+]"),
	N("[0.3e]"),
	N("[0.e1]"),
	N("[0E+]"),
	N("[0E]"),
	N("[0e+]"),
	N("[0e]"),
	N("[1.0e+]"),
	N("[1.0e-]"),
	N("[1.0e]"),
	N("[1eE2]"),
	N("[1 000.0]"),
	N("[2.e+3]"),
	N("[2.e-3]"),
	N("[2.e3]"),
	N("[9.e+]"),
	N("[Inf]"),
	N("[NaN]"),
	N("[\xef\xbc\x91]"),
	N("[1+2]"),
	N("[0x1]"),
	N("[0x42]"),
	N("[Infinity]"),
	N("[0e+-1]"),
	N("[-123.123foo]"),
	N("[123\xe5]"),
	N("[1e1\xe5]"),
	N("[0\xe5]"),
	N("[-Infinity]"),
	N("[-foo]"),
	N("[- 1]"),
	N("[-012]"),
	N("[-.123]"),
	N("[-1x]"),
	N("[1ea]"),
	N("[1.]"),
	N("[.123]"),
	N("[1.2a-3]"),
	N("[1.8011670033376514H-308]"),
	N("[012]"),
	N("[00]"),
	N("[01.5]"),
	N("[-00]"),
	N("[--1]"),
	N("[1e]"),
	N("[1e+]"),
	N("[1e.5]"),
	N("[1.e1]"),
	N("[1_000]"),
	N("[1,000.5.]"),
	N("[0123456789012345678]"),
	N("[1e1.5]"),
	N("[1'000]"),
	N("[1d]"),
	N("[1f]"),
	N("[1L]"),
	N("[0b1]"),
	N("[0o7]"),
	N("[.]"),
	N("[-.]"),
	N("[e1]"),
	N("[\xd9\xa1]"),
	N("[1/2]"),
	N("[+]"),
	N("[1-]"),
	N("[1+]"),
	N("[12345678901234567890x]"),
	N("[774e4.32]"),
	N("[1.5.25]"),
	N("[12e3e4]"),
	N("[1e5.25]"),
	N("[1.25e]"),
	N("[1.25e1.5]"),
	N("[-1.25.]"),
	N("[1-2]"),
	N("[1.25-]"),
	N("[12.50.]"),
	N("[1e2-3]"),
	N("[12-34]"),
	N("[1.25+2]"),
	N("[1e5-]"),
	N("[774.3e2.]"),
	N("[12e]"),
	N("[12.e5]"),
	N("[774.32e+]"),
	N("[7e4e.32]"),
	N("[null1]"),
	N("[1null]"),
	N("[true1]"),
	N("[1true]"),
	/* numbers beyond what can be held are numbers none the less */
	ACCEPTED("[123.456e-789]"),
	ACCEPTED("[0.4e00669999999999999999999999999999999999999999999999999999999999999]"),
	ACCEPTED("[-1e+9999]"),
	ACCEPTED("[1.5e+9999]"),
	ACCEPTED("[-123123e100000]"),
	ACCEPTED("[123123e100000]"),
	ACCEPTED("[123e-10000000]"),
	ACCEPTED("[-123123123123123123123123123123]"),
	ACCEPTED("[100000000000000000000]"),
	ACCEPTED("[-237462374673276894279832749832423479823246327846]"),
	ACCEPTED("[1e-99999999999999999999]"),
	/* literals */
	Y("[true]"),
	Y("[false]"),
	Y("[null]"),
	Y("[true,false,null]"),
	Y("{\"a\":true,\"b\":false,\"c\":null}"),
	N("[True]"),
	N("[FALSE]"),
	N("[Null]"),
	N("[nil]"),
	N("[undefined]"),
	N("[truee]"),
	N("[falsee]"),
	N("[nulll]"),
	N("[tr ue]"),
	N("[t]"),
	N("[f]"),
	N("[n]"),
	N("[fal"),
	N("[nu"),
	N("[true"),
	N("[trux]"),
	N("[falsx]"),
	N("[nulx]"),
	N("[truefalse]"),
	/* strings */
	Y("[\"\\u0060\\u012a\\u12AB\"]"),
	Y("[\"\\uD801\\udc37\"]"),
	Y("[\"\\ud83d\\ude39\\ud83d\\udc8d\"]"),
	Y("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
	Y("[\"\\\\u0000\"]"),
	Y("[\"\\\"\"]"),
	Y("[\"a/*b*/c/*d//e\"]"),
	Y("[\"\\\\a\"]"),
	Y("[\"\\\\n\"]"),
	Y("[\"\\u0012\"]"),
	Y("[\"\\uFFFF\"]"),
	Y("[\"asd\"]"),
	Y("[ \"asd\"]"),
	Y("[\"\\uDBFF\\uDFFF\"]"),
	Y("[\"new\\u00A0line\"]"),
	Y("[\"\xf4\x8f\xbf\xbf\"]"),
	Y("[\"\xef\xbf\xbf\"]"),
	Y("[\"\\u0000\"]"),
	Y("[\"\\u002c\"]"),
	Y("[\"\xcf\x80\"]"),
	Y("[\"\xf0\x9b\xbf\xbf\"]"),
	Y("[\"asd \"]"),
	Y("\" \""),
	Y("[\"\\uD834\\uDd1e\"]"),
	Y("[\"\\u0821\"]"),
	Y("[\"\\u0123\"]"),
	Y("[\"\xe2\x80\xa8\"]"),
	Y("[\"\xe2\x80\xa9\"]"),
	Y("[\"\\u0061\\u30af\\u30EA\\u30b9\"]"),
	Y("[\"new\\u000Aline\"]"),
	Y("[\"\x7f\"]"),
	Y("[\"\\uA66D\"]"),
	Y("[\"\\u005C\"]"),
	Y("[\"\xe2\x8d\x82\xe3\x88\xb4\xe2\x8d\x82\"]"),
	Y("[\"\\u200B\"]"),
	Y("[\"\\u2064\"]"),
	Y("[\"\\uFDD0\"]"),
	Y("[\"\\uFFFE\"]"),
	Y("[\"\\u0022\"]"),
	Y("[\"\xc3\xa9\xed\x9f\xbf\"]"),
	Y("[\"a\x7f"
	  "a\"]"),
	Y("[\"\xe0\xa0\x80\"]"),
	Y("[\"\xf0\x90\x80\x80\"]"),
	Y("[\"\xee\x80\x80\"]"),
	Y("[\"\xc2\x80\"]"),
	Y("[\"0123456789012345678901234567890123456789012345678901234567890123456789\"]"),
	N("[\"\\uD800\\\"]"),
	N("[\"\\uD800\\u\"]"),
	N("[\"\\uD800\\u1\"]"),
	N("[\"\\uD800\\u1x\"]"),
	N("[\xc3\xa9]"),
	N("[\"\\x00\"]"),
	N("[\"\\\\\\\"]"),
	N("[\"\\\t\"]"),
	N("[\"\\\xf0\x9f\x8c\x80\"]"),
	N("[\"\\\"]"),
	N("[\"\\u00A\"]"),
	N("[\"\\uD834\\uDd\"]"),
	N("[\"\\uD800\\uD800\\x\"]"),
	N("[\"\\u\xe5\"]"),
	N("[\"\\a\"]"),
	N("[\"\\uqqqq\"]"),
	N("[\"\\\xe5\"]"),
	N("[\\u0020\"asd\"]"),
	N("[\\n]"),
	N("\""),
	N("['single quote']"),
	N("abc"),
	N("[\"\\"),
	N("[\"a\x00"
	  "a\"]"),
	N("[\"new\nline\"]"),
	N("[\"\t\"]"),
	N("[\"\x1f\"]"),
	N("[\"\x01\"]"),
	N("\"\\UA66D\""),
	N("[\"\\u 123\"]"),
	N("[\"\\u12\"]"),
	N("[\"\\u123g\"]"),
	N("[\"\\'\"]"),
	N("[\"\\0\"]"),
	N("[\"\\e\"]"),
	N("[\"\\v\"]"),
	N("[\"asd]"),
	N("[\"\r\"]"),
	N("[\"\\\n\"]"),
	N("[\"\\u-123\"]"),
	N("[`a`]"),
	/* encodings: neither surrogates nor anything else that is not UTF-8 */
	REFUSED("[\"\\uDADA\"]"),
	REFUSED("[\"\\uD888\\u1234\"]"),
	REFUSED("[\"\xe6\x97\xa5\xd1\x88\xfa\"]"),
	REFUSED("[\"\\uD800\\n\"]"),
	REFUSED("[\"\\uDd1ea\"]"),
	REFUSED("[\"\\uD800\\uD800\"]"),
	REFUSED("[\"\\ud800\"]"),
	REFUSED("[\"\\ud800abc\"]"),
	REFUSED("[\"\xff\"]"),
	REFUSED("[\"\\uDd1e\\uD834\"]"),
	REFUSED("[\"\xe9\"]"),
	REFUSED("[\"\\uDFAA\"]"),
	REFUSED("[\"\x81\"]"),
	REFUSED("[\"\xf4\xbf\xbf\xbf\"]"),
	REFUSED("[\"\xc0\xaf\"]"),
	REFUSED("[\"\xfc\x83\xbf\xbf\xbf\xbf\"]"),
	REFUSED("[\"\xfc\x80\x80\x80\x80\x80\"]"),
	REFUSED("[\"\xe0\xff\"]"),
	REFUSED("[\"\xed\xa0\x80\"]"),
	REFUSED("[\"\xed\xbf\xbf\"]"),
	REFUSED("[\"\xe0\x80\x80\"]"),
	REFUSED("[\"\xf0\x80\x80\x80\"]"),
	REFUSED("[\"\xf4\x90\x80\x80\"]"),
	REFUSED("[\"\xc3\"]"),
	REFUSED("[\"\xe2\x82\"]"),
	REFUSED("[\"\xf0\x9f\x98\"]"),
	REFUSED("[\"\xc3(\"]"),
	REFUSED("[\"\x80\"]"),
	REFUSED("[\"\xc1\xbf\"]"),
	REFUSED("[\"\xe2\x28\xa1\"]"),
	REFUSED("[\"\xf5\x80\x80\x80\"]"),
	REFUSED("[\"abcdefghijklmnopqrstuvwxyzabcdefghi\xff\"]"),
	REFUSED("\xef\xbb\xbf{}"),
	REFUSED("{\"\\uDFAA\":0}"),
	REFUSED("{\"\xff\":0}"),
	REFUSED("\xfe\xff\x00[\x00]"),
	REFUSED("[\x00\"\x00\xe9\x00\"\x00]\x00"),
	/* structure */
	Y("false"),
	Y("42"),
	Y("-0.1"),
	Y("null"),
	Y("\"asd\""),
	Y("true"),
	Y("\"\""),
	Y("[\"a\"]\n"),
	Y("[true]"),
	Y(" [] "),
	Y("\t\r\n {\"a\" : [ 1 , 2 ] } \t\r\n"),
	N(""),
	N(" "),
	N("\n"),
	N("<.>"),
	N("[<null>]"),
	N("[1]x"),
	N("[1]]"),
	N("[\"asd]"),
	N("a\xc3\xa5"),
	N("[True]"),
	N("1]"),
	N("{\"x\": true,"),
	N("[][]"),
	N("{}}"),
	N("{\"\":"),
	N("{\"a\":/*comment*/\"b\"}"),
	N("{\"a\": true} \"x\""),
	N("['"),
	N("[,"),
	N("[{"),
	N("[\"a"),
	N("[\"a\""),
	N("{{"),
	N("{["),
	N("{\"a"),
	N("{'a'"),
	N("[\"\\{[\"\\{[\"\\{[\"\\{"),
	N("\xe9"),
	N("*"),
	N("{\"a\":\"b\"}#{}"),
	N("[\\u000A\"\"]"),
	N("[1"),
	N("[ false, nul"),
	N("[ true, fals"),
	N("[ false, tru"),
	N("{\"asd\":\"asd\""),
	N("\xc3\xa5"),
	N("[\xe2\x81\xa0]"),
	N("\xef\xbb\xbf"),
	N("[\x0c]"),
	N("123\x00"),
	N("2@"),
	N("{}x"),
	N("nul"),
	N("tru"),
	N("-"),
	N("{\"a\":1}\xef\xbb\xbf"),
	N("\x00{}"),
	N("{}\x00"),
	N("// a\n{}"),
	N("/* a */{}"),
	N("{\"a\":1}\n{\"a\":2}"),
	N("\x1f{}"),
	N("\x0b[]"),
	N("{\"a\":\"b\"}\x1a"),
	N("]["),
	N("}{"),
	N(":"),
	N(","),
	N("\\"),
	N("'a'"),
	N("(1)"),
	N("[1}"),
	N("{\"a\":1)"),
};

static bool is_refused_as_json(enum weir_reason r)
{
	return r != WEIR_REASON_NONE && r != WEIR_REASON_TYPE;
}

static void rig_make(struct json_rig *rig)
{
	json_rig_init(rig);
	json_rig_field(rig, "v", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(rig, "a", NULL, WEIR_KIND_VARCHAR);
}

#define FOR_VARIANTS(rig, speculate)                                                                                   \
	for (int sp = 0; sp < 2; sp++)                                                                                 \
		for (const char *const *v = json_rig_variants; *v != NULL; v++)                                        \
			if (json_rig_open(rig, *v, speculate = sp != 0))

static void expect(struct json_rig *rig, const struct sample *s, const char *doc, size_t bytes, bool refused)
{
	const char *text = json_rig_one(rig, doc, bytes);
	if (is_refused_as_json(json_rig_reason(rig, rig->count - 1)) != refused)
		fail_msg("sample %d `%s`: %s", (int)(s - samples), s->doc, text);
}

static void test_verdicts(void **state)
{
	(void)state;
	static struct json_rig rig;
	bool speculate;
	rig_make(&rig);
	FOR_VARIANTS(&rig, speculate)
	{
		for (size_t i = 0; i < WEIR_COUNT_OF(samples); i++) {
			const struct sample *s = &samples[i];
			char nested[512];
			bool refused = s->verdict == 'n' || s->verdict == 'I';
			expect(&rig, s, s->doc, s->bytes, refused);
			expect(&rig, s, s->doc, s->bytes, refused); /* now perhaps by the layout of the first */
			if (refused)
				continue;
			/* A document is a value: as a member that is read, as one that is not, as an element. */
			static const char *const around[][2] = {{"{\"v\":", "}"},
								{"{\"w\": ", " }"},
								{"{\"v\":[", "]}"},
								{"{\"w\":[0,", "]}"},
								{"{\"w\":{\"x\":", "},\"v\":1}"}};
			for (size_t a = 0; a < WEIR_COUNT_OF(around); a++) {
				size_t before = strlen(around[a][0]), after = strlen(around[a][1]);
				memcpy(nested, around[a][0], before);
				memcpy(nested + before, s->doc, s->bytes);
				memcpy(nested + before + s->bytes, around[a][1], after + 1);
				for (int times = 0; times < 3; times++)
					expect(&rig, s, nested, before + s->bytes + after, false);
			}
		}
	}
	json_rig_fini(&rig);
}

static void refused_behind_layout(struct json_rig *rig, const struct sample *s)
{
	static const char *const good[] = {"{\"v\":\"x\",\"w\":\"y\"}", "{\"v\":12,\"w\":34}",
					   "{\"v\":774.32,\"w\":1.25}", "{\"v\":true,\"w\":false}",
					   "{\"v\":null,\"w\":null}",   "{\"v\":-1e5,\"w\":2.5e-3}"};
	for (size_t g = 0; g < WEIR_COUNT_OF(good); g++) {
		for (int member = 0; member < 2; member++) {
			char bad[512];
			int n = sprintf(bad, member == 0 ? "{\"v\":" : "{\"v\":1,\"w\":");
			memcpy(bad + n, s->doc + 1, s->bytes - 2);
			n += (int)s->bytes - 2;
			n += sprintf(bad + n, member == 0 ? ",\"w\":2}" : "}");
			for (int times = 0; times < 3; times++)
				json_rig_add(rig, good[g], strlen(good[g]));
			json_rig_add(rig, bad, (size_t)n);
			json_rig_add(rig, good[g], strlen(good[g]));
			json_rig_run(rig);
			for (uint32_t row = 0; row < 5; row++) {
				enum weir_reason r = json_rig_reason(rig, row);
				if ((r == WEIR_REASON_JSON || r == WEIR_REASON_UTF8) != (row == 3))
					fail_msg("sample %d row %u after %s: %s", (int)(s - samples), row, good[g],
						 json_rig_text(rig, row));
			}
		}
	}
}

/* A wrong value where records that were right have left a layout, for columns of every sort of step. */
static void test_refused_values_behind_a_layout(void **state)
{
	(void)state;
	static const enum weir_kind kinds[] = {WEIR_KIND_VARCHAR, WEIR_KIND_BIGINT, WEIR_KIND_INT,
					       WEIR_KIND_DECIMAL, WEIR_KIND_DOUBLE, WEIR_KIND_BYTES,
					       WEIR_KIND_BOOLEAN, WEIR_KIND_ARRAY};
	for (size_t kind = 0; kind < WEIR_COUNT_OF(kinds); kind++) {
		static struct json_rig rig;
		bool speculate;
		json_rig_init(&rig);
		for (int both = 0; both < 2; both++) {
			struct weir_type *t = json_rig_field(&rig, both ? "w" : "v", NULL, kinds[kind]);
			t->precision = 12;
			t->scale = 2;
			FOR_VARIANTS(&rig, speculate)
			{
				for (size_t i = 0; i < WEIR_COUNT_OF(samples); i++) {
					const struct sample *s = &samples[i];
					if (s->bytes < 2 || s->doc[0] != '[' || s->doc[s->bytes - 1] != ']' ||
					    s->verdict == 'i' || s->verdict == 'y')
						continue;
					/* The inside of [..] in place of a value; `1,` would make another document. */
					if (memchr(s->doc, ',', s->bytes) != NULL ||
					    memchr(s->doc, ':', s->bytes) != NULL ||
					    memchr(s->doc + 1, '[', s->bytes - 2) != NULL ||
					    memchr(s->doc + 1, ']', s->bytes - 2) != NULL)
						continue;
					refused_behind_layout(&rig, s);
				}
			}
		}
		json_rig_fini(&rig);
	}
}

static const char whole[] =
	"{\"order_id\":\"o-0000000120\",\"v\":\"m-\\u0041\\\"\xc3\xa9-038703\",\"n\": [1, -2.5e3 ,{}],\n"
	"\"o\":{\"a\":null,\"t\":true},\"amount\":101.70,\"currency\":\"EUR\",\"ts\":1767225600000}";

static const char wide[] = "{\"v\":\"a string of forty-five characters, always so\",\"w\":12345678901,\"x\":\"another "
			   "one of more than thirty-two characters\",\"y\":\"thirty-one characters are here!\"}";

/* What lies behind the end must not lend its quotes, digits or brackets to a document that was cut off. */
static void test_every_prefix_is_refused(void **state)
{
	(void)state;
	static struct json_rig rig;
	bool speculate;
	static const uint8_t pads[] = {'"', '}', '0', 'e', 0x80, ' ', 0};
	static const char *const docs[] = {whole, wide};
	rig_make(&rig);
	FOR_VARIANTS(&rig, speculate)
	{
		for (size_t pad = 0; pad < sizeof pads; pad++) {
			rig.pad_byte = pads[pad];
			for (size_t d = 0; d < WEIR_COUNT_OF(docs); d++) {
				size_t length = strlen(docs[d]);
				for (size_t bytes = 0; bytes <= length; bytes++) {
					json_rig_add(&rig, docs[d], length);
					json_rig_add(&rig, docs[d], bytes);
					json_rig_run(&rig);
					assert_int_equal(json_rig_reason(&rig, 0), WEIR_REASON_NONE);
					assert_int_equal(json_rig_reason(&rig, 1),
							 bytes == length ? WEIR_REASON_NONE : WEIR_REASON_JSON);
				}
			}
		}
	}
	json_rig_fini(&rig);
}

static void test_every_alignment(void **state)
{
	(void)state;
	static struct json_rig rig;
	bool speculate;
	rig_make(&rig);
	FOR_VARIANTS(&rig, speculate)
	{
		for (rig.misalign = 0; rig.misalign < 64; rig.misalign++)
			for (int times = 0; times < 2; times++)
				assert_string_equal(json_rig_one(&rig, whole, sizeof whole - 1),
						    "m-A\"\xc3\xa9-038703|NULL");
		rig.misalign = 0;
	}
	json_rig_fini(&rig);
}

/* Strings and numbers of every length around the vectors' sizes, each after one of another length. */
static void test_every_length(void **state)
{
	(void)state;
	static struct json_rig rig;
	bool speculate;
	char doc[1024], want[512], fill[256];
	json_rig_init(&rig);
	json_rig_field(&rig, "v", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "n", NULL, WEIR_KIND_BIGINT);
	static const char special[] = {'x', '\n', '"', '\\', 0x01, (char)0xff};
	FOR_VARIANTS(&rig, speculate)
	{
		for (int length = 0; length < 140; length++) {
			for (int i = 0; i < length; i++)
				fill[i] = (char)('a' + i % 26);
			fill[length] = 0;
			int digits = length % 19;
			int64_t number = 0;
			for (int i = 0; i < digits; i++)
				number = number * 10 + i % 9 + 1;
			int n = sprintf(doc, "{\"v\":\"%s\",\"w\":\"%s\",\"n\":%ld}", fill, fill, (long)number);
			sprintf(want, "%s|%ld", fill, (long)number);
			for (int times = 0; times < 2; times++)
				assert_string_equal(json_rig_one(&rig, doc, (size_t)n), want);
			/* And with something at its end that must not be there. */
			for (size_t s = 1; s < sizeof special && length > 0; s++) {
				doc[6 + length - 1] = special[s];
				(void)json_rig_one(&rig, doc, (size_t)n);
				assert_true(is_refused_as_json(json_rig_reason(&rig, 0)));
			}
		}
	}
	json_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_refused_values_behind_a_layout),
		cmocka_unit_test(test_every_prefix_is_refused),
		cmocka_unit_test(test_every_alignment),
		cmocka_unit_test(test_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
