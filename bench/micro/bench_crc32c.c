/* bench_crc32c.c: CRC-32C of stored batches by length, and against zlib's CRC-32 over the same 64 KiB. */
#include <stdio.h>
#include <zlib.h>

#include "bench/shim/shim.h"
#include "io/recorded/crc32c.h"

static uint8_t block[1 << 16];

static void run_weir(struct weir_bench_state *st, void *arg)
{
	uint32_t bytes = *(const uint32_t *)arg, crc = 0;
	while (weir_bench_keep_running(st))
		crc = weir_crc32c(crc, block, bytes);
	weir_bench_keep(&crc);
	weir_bench_set_items(st, bytes);
	weir_bench_set_bytes(st, bytes);
}

static void run_zlib(struct weir_bench_state *st, void *arg)
{
	uint32_t bytes = *(const uint32_t *)arg;
	uLong crc = 0;
	while (weir_bench_keep_running(st))
		crc = crc32(crc, block, bytes);
	weir_bench_keep(&crc);
	weir_bench_set_items(st, bytes);
	weir_bench_set_bytes(st, bytes);
}

int main(int argc, char **argv)
{
	static uint32_t bytes[] = {64, 1024, 8192, sizeof block};
	static char names[4][32];
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (uint8_t)(i * 31 >> 3);
	weir_bench_init(&argc, argv);
	for (size_t i = 0; i < 4; i++) {
		snprintf(names[i], sizeof names[i], "crc32c/%u", bytes[i]);
		weir_bench_register(names[i], run_weir, &bytes[i]);
	}
	weir_bench_register("zlib_crc32/65536", run_zlib, &bytes[3]);
	int rc = weir_bench_run();
	weir_bench_print_ratio("CRC-32C over zlib's CRC-32, 64 KiB", "crc32c/65536", "zlib_crc32/65536", 1.0);
	return rc;
}
