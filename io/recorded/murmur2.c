/* murmur2.c: the hash of Kafka's Java partitioner. @thread any. */
#include "io/recorded/recorded.h"

uint32_t weir_murmur2(const void *data, size_t bytes)
{
	const uint8_t *p = data;
	const uint32_t m = 0x5bd1e995;
	uint32_t h = 0x9747b28cu ^ (uint32_t)bytes;
	for (; bytes >= 4; p += 4, bytes -= 4) {
		uint32_t k = weir_load_le32(p) * m;
		k = (k ^ (k >> 24)) * m;
		h = (h * m) ^ k;
	}
	switch (bytes) {
	case 3:
		h ^= (uint32_t)p[2] << 16; /* fall through */
	case 2:
		h ^= (uint32_t)p[1] << 8; /* fall through */
	case 1:
		h = (h ^ p[0]) * m;
	}
	h = (h ^ (h >> 13)) * m;
	return h ^ (h >> 15);
}
