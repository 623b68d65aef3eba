/* varint.h: Kafka's zigzag varints, as they stand in the bytes of a record's headers. @thread any */
#ifndef WEIR_CORE_VARINT_H
#define WEIR_CORE_VARINT_H

#include "hotpath/core/base.h"

/* Takes one off *p. False when the bytes end inside it, or it has more than 64 bits; *p is then anywhere. */
WEIR_INLINE bool weir_varint_take(const uint8_t **p, const uint8_t *end, int64_t *out)
{
	uint64_t v = 0;
	for (uint32_t shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t c = *(*p)++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
			return true;
		}
	}
	return false;
}

#endif
