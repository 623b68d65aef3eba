/* bench_key.c: group columns to key bytes and their hashes: one string of 8 bytes (two words a key), one of 30, a
 * BIGINT, and two columns, over batches of 1,024 rows; the first against copying and hashing row by row. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/shim/shim.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/state.h"

struct load {
	struct weir_type types[2];
	uint32_t key_count;
	uint32_t text_bytes;
	bool by_hand;
};

static struct weir_keyed keyed;
static struct weir_scratch scratch;
static struct weir_col text, number;
static char texts[WEIR_BATCH_ROWS][64];
static const struct weir_col *cols[2];

static void fill(const struct load *ld)
{
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		snprintf(texts[i], sizeof texts[i], "m-%0*u", (int)ld->text_bytes - 2, i * 7919u % 100000u);
		text.str[i] = (struct weir_str){(const uint8_t *)texts[i], ld->text_bytes, 0};
		number.i64[i] = i * 7919u % 100000u;
	}
	cols[0] = ld->types[0].kind == WEIR_KIND_BIGINT ? &number : &text;
	cols[1] = &number;
}

/* What the key of one string is, without the table's layout: 01, the bytes, 00. */
static void encode_by_hand(const struct weir_sel *sel)
{
	for (uint32_t i = 0; i < sel->count; i++) {
		const struct weir_str *s = &text.str[sel->row[i]];
		uint8_t *p = weir_scratch_take(&scratch, s->bytes + 2);
		p[0] = 1;
		memcpy(p + 1, s->data, s->bytes);
		p[s->bytes + 1] = 0;
		keyed.key[sel->row[i]] = p;
		keyed.key_bytes[sel->row[i]] = s->bytes + 2;
		keyed.hash[sel->row[i]] = weir_hash(p, s->bytes + 2);
	}
}

static void run(struct weir_bench_state *st, void *arg)
{
	const struct load *ld = arg;
	static struct weir_sel sel;
	fill(ld);
	weir_sel_all(&sel, WEIR_BATCH_ROWS);
	while (weir_bench_keep_running(st)) {
		weir_scratch_reset(&scratch);
		if (ld->by_hand)
			encode_by_hand(&sel);
		else
			weir_key_encode(cols, ld->types, ld->key_count, &sel, &scratch, &keyed);
		weir_bench_keep(&keyed);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	const struct weir_type string = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
			       bigint = {.kind = WEIR_KIND_BIGINT};
	static struct load loads[5];
	loads[0] = (struct load){{string}, 1, 8, false};
	loads[1] = (struct load){{string}, 1, 8, true};
	loads[2] = (struct load){{string}, 1, 30, false};
	loads[3] = (struct load){{bigint}, 1, 8, false};
	loads[4] = (struct load){{string, bigint}, 2, 8, false};
	weir_scratch_init(&scratch);
	weir_col_init(&text, WEIR_PHYS_STR);
	weir_col_init(&number, WEIR_PHYS_I64);
	weir_bench_init(&argc, argv);
	weir_bench_register("key/string_8", run, &loads[0]);
	weir_bench_register("key/string_8_by_hand", run, &loads[1]);
	weir_bench_register("key/string_30", run, &loads[2]);
	weir_bench_register("key/bigint", run, &loads[3]);
	weir_bench_register("key/string_8_and_bigint", run, &loads[4]);
	int rc = weir_bench_run();
	weir_bench_print_ratio("keys of 8 bytes over copying row by row", "key/string_8", "key/string_8_by_hand", 1.0);
	return rc;
}
