/* headers.h: a record's headers between librdkafka, which holds them decoded, and weir, which keeps Kafka's own bytes.
 * Included inside io/kafka/ only. @thread any */
#ifndef WEIR_IO_KAFKA_HEADERS_H
#define WEIR_IO_KAFKA_HEADERS_H

#include <librdkafka/rdkafka.h>

#include "checkpoint/changelog.h"
#include "hotpath/core/mem.h"

/* librdkafka's list of r's headers, for a producer to take or the caller to destroy; NULL where they are malformed. */
rd_kafka_headers_t *weir_kafka_headers_decode(const struct weir_out *r);
/* Sets the headers of r, which lie in out (emptied before) until its next use. */
void weir_kafka_headers_encode(const rd_kafka_message_t *m, struct weir_buf *out, struct weir_record *r);

#endif
