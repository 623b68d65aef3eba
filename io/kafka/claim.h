/* claim.h: which number this instance of an application has among those on this machine. @thread any */
#ifndef WEIR_IO_KAFKA_CLAIM_H
#define WEIR_IO_KAFKA_CLAIM_H

#include "hotpath/core/diag.h"

/* The smallest number that no running instance of app on this machine has claimed. It is free again when *fd is closed,
 * also by the end of the process, however it comes: so a restarted instance gets its own number and fences its past. */
WEIR_MUST_CHECK enum weir_err weir_kafka_claim(const char *app, uint32_t *number, int *fd, struct weir_diag **dg);

#endif
