/* utf8.h: is this UTF-8. Pure functions, @thread any. */
#ifndef WEIR_CORE_UTF8_H
#define WEIR_CORE_UTF8_H

#include "hotpath/core/base.h"

/* Whether [s, s + bytes) is valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. On false *bad (may
 * be NULL) is the offset of the first byte of the first sequence that is not. Reads nothing beyond its end. */
bool weir_utf8_check(const uint8_t *s, size_t bytes, size_t *bad);
/* Number of code points of valid UTF-8. */
size_t weir_utf8_count(const uint8_t *s, size_t bytes);

#endif
