/* gen_random.c: distributions for `weir gen` in integer arithmetic: no libm, whose last bits differ between machines.
 * Main thread. */
#include "tools/weir/gen.h"
#include "hotpath/core/mem.h"

#include <stdlib.h>

enum { LOG_BITS = 32, WEIGHT_BITS = 36 };

uint64_t weir_gen_log2(uint64_t x)
{
	uint32_t whole = 63 - (uint32_t)__builtin_clzll(x);
	uint64_t m = x << (63 - whole); /* mantissa in [1, 2), 63 fractional bits */
	uint64_t result = whole;
	for (uint32_t i = 0; i < LOG_BITS; i++) {
		weir_u128 square = (weir_u128)m * m; /* in [1, 4), 126 fractional bits */
		uint32_t bit = (uint32_t)(square >> 127);
		m = (uint64_t)(square >> (63 + bit));
		result = result << 1 | bit;
	}
	return result;
}

uint64_t weir_gen_exponential(struct weir_gen_rng *r, uint64_t mean)
{
	uint64_t u = weir_gen_u64(r) | 1;
	uint64_t minus_log2 = (UINT64_C(64) << LOG_BITS) - weir_gen_log2(u);
	weir_u128 ln = (weir_u128)minus_log2 * UINT64_C(2977044472) >> 32; /* times ln 2, 32 fractional bits */
	return (uint64_t)(ln * mean >> LOG_BITS);
}

static uint64_t square_root(weir_u128 v)
{
	weir_u128 low = 0;
	weir_u128 high = (weir_u128)1 << 64;
	while (high - low > 1) {
		weir_u128 middle = (low + high) / 2;
		if (middle * middle <= v)
			low = middle;
		else
			high = middle;
	}
	return (uint64_t)low;
}

/* 2^(-y / 2^32), WEIGHT_BITS fractional bits, at least 1. */
static uint64_t weight(weir_u128 y, const uint64_t *root)
{
	uint64_t whole = (uint64_t)(y >> LOG_BITS);
	uint64_t product = UINT64_C(1) << 62;
	for (uint32_t b = 0; b < LOG_BITS; b++)
		if (y >> (LOG_BITS - 1 - b) & 1)
			product = (uint64_t)((weir_u128)product * root[b] >> 62);
	product = whole < 63 ? product >> (62 - WEIGHT_BITS) >> whole : 0;
	return product == 0 ? 1 : product;
}

/* Vose's alias tables: small slots are topped up from large ones. mass[k] is w[k] * count, total is the sum of w. */
static void build_alias(struct weir_gen_zipf *zf, uint64_t *mass, uint64_t total)
{
	uint32_t *small = weir_xmalloc(zf->count * sizeof *small);
	uint32_t *large = weir_xmalloc(zf->count * sizeof *large);
	uint32_t small_count = 0;
	uint32_t large_count = 0;
	for (uint32_t k = 0; k < zf->count; k++) {
		zf->keep[k] = UINT32_MAX;
		zf->other[k] = k;
		if (mass[k] < total)
			small[small_count++] = k;
		else
			large[large_count++] = k;
	}
	while (small_count != 0 && large_count != 0) {
		uint32_t s = small[--small_count];
		uint32_t l = large[large_count - 1];
		zf->keep[s] = (uint32_t)(((weir_u128)mass[s] << 32) / total);
		zf->other[s] = l;
		mass[l] -= total - mass[s];
		if (mass[l] < total) {
			large_count--;
			small[small_count++] = l;
		}
	}
	free(small);
	free(large);
}

void weir_gen_zipf_init(struct weir_gen_zipf *zf, uint32_t count, uint64_t z_micro)
{
	*zf = (struct weir_gen_zipf){.count = count};
	if (z_micro == 0)
		return;
	uint64_t root[LOG_BITS]; /* 2^-(1/2), 2^-(1/4), ...: 62 fractional bits */
	root[0] = square_root((weir_u128)1 << 123);
	for (uint32_t b = 1; b < LOG_BITS; b++)
		root[b] = square_root((weir_u128)root[b - 1] << 62);
	zf->keep = weir_xmalloc(count * sizeof *zf->keep);
	zf->other = weir_xmalloc(count * sizeof *zf->other);
	uint64_t *mass = weir_xmalloc(count * sizeof *mass);
	uint64_t total = 0;
	for (uint32_t k = 0; k < count; k++) {
		mass[k] = weight((weir_u128)weir_gen_log2((uint64_t)k + 1) * z_micro / 1000000, root);
		total += mass[k];
	}
	for (uint32_t k = 0; k < count; k++)
		mass[k] *= count;
	build_alias(zf, mass, total);
	free(mass);
}

void weir_gen_zipf_fini(struct weir_gen_zipf *zf)
{
	free(zf->keep);
	free(zf->other);
	*zf = (struct weir_gen_zipf){0};
}
