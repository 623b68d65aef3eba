/* crc32c.h: CRC-32C (Castagnoli), the checksum of Kafka's record batches. @thread any. */
#ifndef WEIR_IO_RECORDED_CRC32C_H
#define WEIR_IO_RECORDED_CRC32C_H

#include "hotpath/core/base.h"

/* Checksum of bytes at data, continuing from crc (0 to start). Uses the CPU's instruction where there is one. */
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t bytes);
/* The same by tables alone: what a CPU without the instruction runs, and what tests compare with. */
uint32_t weir_crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
