/* zone.h: time zones for CONVERT_TZ and the like: UTC, fixed offsets (+08:00, GMT-3) and the IANA names of the system's
 * zone files. Loaded when a plan is made, immutable afterwards; the process's own zone (TZ) is never asked. @thread
 * init (load), any (the rest) */
#ifndef WEIR_EXPR_ZONE_H
#define WEIR_EXPR_ZONE_H

#include "hotpath/core/base.h"
#include "hotpath/core/mem.h"

struct weir_zone;

/* The zone of that name, in m. WEIR_E_PLAN for an unknown name: abbreviations (PDT) are no zones; never a silent UTC.
 */
WEIR_MUST_CHECK enum weir_err weir_zone_load(const char *name, size_t bytes, struct weir_mem *m,
					     const struct weir_zone **out, struct weir_diag **dg);
/* Seconds to add to UTC at the instant utc (seconds since 1970). */
int64_t weir_zone_offset(const struct weir_zone *z, int64_t utc);
/* The instant of a local time: of two (clocks set back) the earlier; one that does not exist is moved on by the gap. */
int64_t weir_zone_to_utc(const struct weir_zone *z, int64_t local);

#endif
