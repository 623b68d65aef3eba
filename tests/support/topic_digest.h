/* topic_digest.h: one number for everything a recorded topic holds, for comparing runs. Test programs only. */
#ifndef WEIR_TESTS_SUPPORT_TOPIC_DIGEST_H
#define WEIR_TESTS_SUPPORT_TOPIC_DIGEST_H

#include <stdint.h>

/* Covers partition, offset, key, value and timestamp of every committed record of topic in folder dir; *records counts
 * them. Ends the test when the topic cannot be read. */
uint64_t topic_digest(const char *dir, const char *topic, uint64_t *records);

#endif
