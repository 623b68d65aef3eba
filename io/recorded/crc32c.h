/* crc32c.h: CRC-32C (Castagnoli), the checksum of Kafka's record batches. @thread any. */
#ifndef WEIR_IO_RECORDED_CRC32C_H
#define WEIR_IO_RECORDED_CRC32C_H

#include "hotpath/core/base.h"

/* Checksum of bytes at data, continuing from crc (0 to start), in the fastest way this CPU has. */
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t bytes);
/* The same by the CPU's instruction for it, where there is one, and by tables alone: what other CPUs run. For tests. */
uint32_t weir_crc32c_instruction(uint32_t crc, const void *data, size_t bytes);
uint32_t weir_crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
