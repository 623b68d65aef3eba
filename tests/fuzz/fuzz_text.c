/* fuzz_text.c: any text as a value of any type (the first byte says which); what was read is printed and must read back
 * as the same value. libFuzzer, or any driver that calls LLVMFuzzerTestOneInput. */
#include <stdlib.h>
#include <string.h>

#include "hotpath/format/base64.h"
#include "hotpath/format/format.h"
#include "hotpath/format/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct weir_type types[] = {
	{.kind = WEIR_KIND_BOOLEAN},
	{.kind = WEIR_KIND_TINYINT},
	{.kind = WEIR_KIND_INT},
	{.kind = WEIR_KIND_BIGINT},
	{.kind = WEIR_KIND_FLOAT},
	{.kind = WEIR_KIND_DOUBLE},
	{.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2},
	{.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = 20},
	{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
	{.kind = WEIR_KIND_VARCHAR, .length = 5},
	{.kind = WEIR_KIND_DATE},
	{.kind = WEIR_KIND_TIME, .precision = 3},
	{.kind = WEIR_KIND_TIMESTAMP, .precision = 3},
	{.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 6},
};

static void check_base64(const char *s, size_t bytes)
{
	uint8_t *to = malloc(weir_base64_data_bytes_max(bytes));
	size_t n;
	WEIR_ASSERT(to != NULL);
	if (weir_base64_decode(s, bytes, to, &n)) {
		char *text = malloc(weir_base64_text_bytes(n) + 1);
		WEIR_ASSERT(text != NULL);
		size_t again = weir_base64_encode(to, n, text);
		while (again > 0 && text[again - 1] == '=')
			again--;
		WEIR_ASSERT(again <= bytes && memcmp(text, s, again) == 0);
		free(text);
	}
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct weir_col col[WEIR_COUNT_OF(types)];
	if (bytes == 0 || bytes > 1 << 16)
		return 0;
	size_t which = data[0] % WEIR_COUNT_OF(types);
	const struct weir_type *t = &types[which];
	struct weir_col *c = &col[which];
	if (c->data == NULL)
		weir_col_init(c, weir_type_phys(t));
	char *s = malloc(bytes);
	WEIR_ASSERT(s != NULL);
	memcpy(s, data + 1, bytes - 1);
	check_base64(s, bytes - 1);
	if (weir_text_parse(t, s, bytes - 1, c, 0) == WEIR_REASON_NONE) {
		struct weir_buf out = {0};
		weir_text_print(t, c, 0, data[0] & 128, &out);
		weir_buf_put_byte(&out, 0);
		bool far =
			weir_kind_is_timestamp(t->kind) &&
			(c->i64[0] < -62167219200000 * weir_ticks_per_ms(t) ||
			 c->i64[0] >= 253402300800000 * weir_ticks_per_ms(t)); /* an offset can leave years 0 to 9999 */
		if (!far) {
			WEIR_ASSERT(weir_text_parse(t, (const char *)out.data, out.bytes - 1, c, 1) ==
				    WEIR_REASON_NONE);
			if (c->phys == WEIR_PHYS_STR)
				WEIR_ASSERT(c->str[0].bytes == c->str[1].bytes &&
					    memcmp(c->str[0].data, c->str[1].data, c->str[0].bytes) == 0);
			else
				WEIR_ASSERT(memcmp(c->u8, c->u8 + weir_phys_bytes(c->phys), weir_phys_bytes(c->phys)) ==
					    0);
		}
		weir_buf_fini(&out);
	}
	free(s);
	return 0;
}
