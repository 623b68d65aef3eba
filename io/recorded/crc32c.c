/* crc32c.c: CRC-32C by the CPU's instruction (SSE4.2, ARMv8) over three interleaved streams, or by tables. @thread any.
 *
 * The instruction has a latency of three cycles and a throughput of one, so one stream runs at a third of what the CPU
 * can do. Three neighbouring blocks are summed at once and joined: the checksum of a block followed by n more bytes is
 * the checksum moved over n zero bytes, which is linear, hence four table look-ups. */
#include "io/recorded/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CRC_TARGET   __attribute__((target("sse4.2")))
#define CRC_8(c, v)  _mm_crc32_u64((c), (v))
#define CRC_1(c, v)  _mm_crc32_u8((uint32_t)(c), (v))
#define CRC_HARDWARE 1
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#include <asm/hwcap.h>
#define CRC_TARGET   __attribute__((target("+crc")))
#define CRC_8(c, v)  __crc32cd((uint32_t)(c), (v))
#define CRC_1(c, v)  __crc32cb((uint32_t)(c), (v))
#define CRC_HARDWARE 1
#endif

#define CRC_POLY 0x82f63b78u /* reflected */
enum { LONG_BLOCK = 2048, SHORT_BLOCK = 256 };

static uint32_t crc_table[8][256];   /* @writer init: [k][b] is byte b followed by k zero bytes */
static uint32_t shift_long[4][256];  /* @writer init: moves a checksum over LONG_BLOCK zero bytes */
static uint32_t shift_short[4][256]; /* @writer init */
static uint32_t (*crc_fn)(uint32_t crc, const uint8_t *p, size_t bytes); /* @writer init; raw: no inversion */

static uint32_t crc_raw_table(uint32_t crc, const uint8_t *p, size_t bytes)
{
	while (bytes >= 8) {
		uint64_t v = weir_load_le64(p) ^ crc;
		crc = crc_table[7][v & 0xff] ^ crc_table[6][(v >> 8) & 0xff] ^ crc_table[5][(v >> 16) & 0xff] ^
		      crc_table[4][(v >> 24) & 0xff] ^ crc_table[3][(v >> 32) & 0xff] ^ crc_table[2][(v >> 40) & 0xff] ^
		      crc_table[1][(v >> 48) & 0xff] ^ crc_table[0][v >> 56];
		p += 8;
		bytes -= 8;
	}
	while (bytes-- != 0)
		crc = crc_table[0][(crc ^ *p++) & 0xff] ^ (crc >> 8);
	return crc;
}

#ifdef CRC_HARDWARE
WEIR_INLINE uint32_t crc_shift(const uint32_t t[4][256], uint32_t crc)
{
	return t[0][crc & 0xff] ^ t[1][(crc >> 8) & 0xff] ^ t[2][(crc >> 16) & 0xff] ^ t[3][crc >> 24];
}

/* Sums 3 * block bytes at p. */
CRC_TARGET static inline uint32_t crc_triple(uint32_t crc, const uint8_t *p, size_t block, const uint32_t shift[4][256])
{
	uint64_t a = crc, b = 0, c = 0;
	for (size_t i = 0; i < block; i += 8) {
		a = CRC_8(a, weir_load_le64(p + i));
		b = CRC_8(b, weir_load_le64(p + block + i));
		c = CRC_8(c, weir_load_le64(p + 2 * block + i));
	}
	crc = crc_shift(shift, (uint32_t)a) ^ (uint32_t)b;
	return crc_shift(shift, crc) ^ (uint32_t)c;
}

/* Cost: about 0.04 ns a byte from cache (24 GB/s at 3 GHz); 0.12 ns a byte in the last 768 bytes. */
CRC_TARGET static uint32_t crc_raw_hardware(uint32_t crc, const uint8_t *p, size_t bytes)
{
	for (; bytes >= 3 * LONG_BLOCK; p += 3 * LONG_BLOCK, bytes -= 3 * LONG_BLOCK)
		crc = crc_triple(crc, p, LONG_BLOCK, shift_long);
	for (; bytes >= 3 * SHORT_BLOCK; p += 3 * SHORT_BLOCK, bytes -= 3 * SHORT_BLOCK)
		crc = crc_triple(crc, p, SHORT_BLOCK, shift_short);
	uint64_t c = crc;
	for (; bytes >= 8; p += 8, bytes -= 8)
		c = CRC_8(c, weir_load_le64(p));
	for (; bytes != 0; p++, bytes--)
		c = CRC_1(c, *p);
	return (uint32_t)c;
}
#endif

static void shift_init(uint32_t t[4][256], size_t zero_bytes)
{
	static const uint8_t zeros[64];
	for (int k = 0; k < 4; k++)
		for (uint32_t b = 0; b < 256; b++) {
			uint32_t crc = b << (8 * k);
			for (size_t n = 0; n < zero_bytes; n += sizeof zeros)
				crc = crc_raw_table(crc, zeros, sizeof zeros);
			t[k][b] = crc;
		}
}

/* Tables are 16 KiB and take a millisecond; they are there before any thread is. */
__attribute__((constructor)) static void crc32c_init(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;
		for (int i = 0; i < 8; i++)
			crc = (crc >> 1) ^ (CRC_POLY & (0u - (crc & 1)));
		crc_table[0][b] = crc;
	}
	for (uint32_t b = 0; b < 256; b++)
		for (int k = 1; k < 8; k++)
			crc_table[k][b] = crc_table[0][crc_table[k - 1][b] & 0xff] ^ (crc_table[k - 1][b] >> 8);
	crc_fn = crc_raw_table;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.2"))
		crc_fn = crc_raw_hardware;
#elif defined(__aarch64__)
	if (getauxval(AT_HWCAP) & HWCAP_CRC32)
		crc_fn = crc_raw_hardware;
#endif
	if (crc_fn != crc_raw_table) {
		/* The long shift is the short one several times: walking 4 x 256 x 2048 zero bytes would show at start.
		 */
		shift_init(shift_short, SHORT_BLOCK);
		for (int k = 0; k < 4; k++)
			for (uint32_t b = 0; b < 256; b++) {
				uint32_t crc = b << (8 * k);
				for (int n = 0; n < LONG_BLOCK / SHORT_BLOCK; n++)
					crc = shift_short[0][crc & 0xff] ^ shift_short[1][(crc >> 8) & 0xff] ^
					      shift_short[2][(crc >> 16) & 0xff] ^ shift_short[3][crc >> 24];
				shift_long[k][b] = crc;
			}
	}
}

uint32_t weir_crc32c(uint32_t crc, const void *data, size_t bytes)
{
	return ~crc_fn(~crc, data, bytes);
}

uint32_t weir_crc32c_portable(uint32_t crc, const void *data, size_t bytes)
{
	return ~crc_raw_table(~crc, data, bytes);
}
