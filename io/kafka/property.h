/* property.h: the configuration names that librdkafka knows, so that io/conf.c takes every one of them under its own
 * name. No librdkafka type here. @thread any */
#ifndef WEIR_IO_KAFKA_PROPERTY_H
#define WEIR_IO_KAFKA_PROPERTY_H

#include "hotpath/core/diag.h"

enum weir_property_answer { WEIR_PROPERTY_OK, WEIR_PROPERTY_UNKNOWN, WEIR_PROPERTY_BAD };

/* Whether librdkafka takes value for name, which may carry the prefix consumer., producer. (narrowed to one kind of
 * client) or topic. (kcat's). BAD: *why (a buffer of why_bytes) says what it takes. value NULL: only the name. */
enum weir_property_answer weir_kafka_property_check(const char *name, const char *value, char *why, size_t why_bytes);
/* Property number i of librdkafka, NULL beyond the last. Static storage, filled once. */
const char *weir_kafka_property_name(size_t i);
/* The whole of librdkafka's own table: name, range, default, meaning. Give back with weir_free. */
char *weir_kafka_property_table(void);
/* Behind "consumer." or "producer."; *role is 'c', 'p', or 0 without a prefix ("topic." is left away). */
const char *weir_kafka_property_bare(const char *name, char *role);
/* "2.0.2" */
const char *weir_kafka_library_version(void);

#endif
