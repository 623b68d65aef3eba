/* bench_number.c: numbers as text, both ways, against libc's strtod and snprintf; UTF-8 checking per byte; then the
 * ratios.
 * @thread init */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/shim/shim.h"
#include "hotpath/core/utf8.h"
#include "hotpath/format/number.h"

enum { NUMBERS = 4096, TEXT_BYTES = 65536 };

/* Numbers of one kind, as values and as text. */
struct numbers {
	double value[NUMBERS];
	char text[NUMBERS][32];
	size_t bytes[NUMBERS];
};
static struct numbers amounts, random_bits;
static uint8_t ascii[TEXT_BYTES], mixed[TEXT_BYTES];

static void numbers_make(void)
{
	uint64_t x = 88172645463325252u;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		amounts.value[i] = (double)(x % 1000000) / 100;
		uint64_t bits = (x & ~(UINT64_C(0x7ff) << 52)) | (900 + x % 200) << 52;
		memcpy(&random_bits.value[i], &bits, sizeof bits);
		struct numbers *both[] = {&amounts, &random_bits};
		for (int k = 0; k < 2; k++) {
			both[k]->bytes[i] = weir_print_double(both[k]->value[i], both[k]->text[i]);
			both[k]->text[i][both[k]->bytes[i]] = '\0';
		}
	}
	for (uint32_t i = 0; i < TEXT_BYTES; i++)
		ascii[i] = 'a' + i % 26;
	for (uint32_t i = 0; i + 5 <= TEXT_BYTES; i += 5)
		memcpy(mixed + i, "\xc3\xbc\xe2\x82\xac", 5);
	mixed[TEXT_BYTES - 1] = 'x';
}

static void run_parse(struct weir_bench_state *st, void *arg)
{
	const struct numbers *n = arg;
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < NUMBERS; i++) {
			double d;
			if (weir_parse_double(n->text[i], n->bytes[i], &d) != WEIR_NUMBER_OK)
				weir_bench_fail(st, "refused");
			weir_bench_keep(&d);
		}
	}
	weir_bench_set_items(st, NUMBERS);
}

static void run_strtod(struct weir_bench_state *st, void *arg)
{
	const struct numbers *n = arg;
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < NUMBERS; i++) {
			double d = strtod(n->text[i], NULL);
			weir_bench_keep(&d);
		}
	}
	weir_bench_set_items(st, NUMBERS);
}

static void run_parse_decimal(struct weir_bench_state *st, void *arg)
{
	(void)arg;
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < NUMBERS; i++) {
			weir_i128 v;
			if (weir_parse_decimal(amounts.text[i], amounts.bytes[i], 12, 2, &v) != WEIR_NUMBER_OK)
				weir_bench_fail(st, "refused");
			weir_bench_keep(&v);
		}
	}
	weir_bench_set_items(st, NUMBERS);
}

static void run_print(struct weir_bench_state *st, void *arg)
{
	const struct numbers *n = arg;
	char text[WEIR_NUMBER_TEXT_MAX];
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < NUMBERS; i++) {
			(void)weir_print_double(n->value[i], text);
			weir_bench_keep(text);
		}
	}
	weir_bench_set_items(st, NUMBERS);
}

/* 17 digits always read back, though they are rarely the fewest. */
static void run_snprintf(struct weir_bench_state *st, void *arg)
{
	const struct numbers *n = arg;
	char text[WEIR_NUMBER_TEXT_MAX];
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < NUMBERS; i++) {
			(void)snprintf(text, sizeof text, "%.17g", n->value[i]);
			weir_bench_keep(text);
		}
	}
	weir_bench_set_items(st, NUMBERS);
}

static void run_utf8(struct weir_bench_state *st, void *arg)
{
	while (weir_bench_keep_running(st)) {
		if (!weir_utf8_check(arg, TEXT_BYTES, NULL))
			weir_bench_fail(st, "refused");
	}
	weir_bench_set_items(st, 1);
	weir_bench_set_bytes(st, TEXT_BYTES);
}

int main(int argc, char **argv)
{
	weir_bench_init(&argc, argv);
	numbers_make();
	weir_bench_register("parse/amount", run_parse, &amounts);
	weir_bench_register("parse/amount/strtod", run_strtod, &amounts);
	weir_bench_register("parse/17 digits", run_parse, &random_bits);
	weir_bench_register("parse/17 digits/strtod", run_strtod, &random_bits);
	weir_bench_register("parse/decimal", run_parse_decimal, NULL);
	weir_bench_register("print/amount", run_print, &amounts);
	weir_bench_register("print/amount/snprintf", run_snprintf, &amounts);
	weir_bench_register("print/17 digits", run_print, &random_bits);
	weir_bench_register("print/17 digits/snprintf", run_snprintf, &random_bits);
	weir_bench_register("utf8/ascii", run_utf8, ascii);
	weir_bench_register("utf8/mixed", run_utf8, mixed);
	int rc = weir_bench_run();
	(void)weir_bench_print_ratio("amount read over strtod", "parse/amount", "parse/amount/strtod", 2.0);
	(void)weir_bench_print_ratio("17 digits read over strtod", "parse/17 digits", "parse/17 digits/strtod", 2.0);
	(void)weir_bench_print_ratio("amount printed over snprintf", "print/amount", "print/amount/snprintf", 4.0);
	(void)weir_bench_print_ratio("17 digits printed over snprintf", "print/17 digits", "print/17 digits/snprintf",
				     4.0);
	return rc;
}
