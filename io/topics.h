/* topics.h: which topics of a job meet: what is written where something is read, and what is written twice. @thread
 * init
 */
#ifndef WEIR_IO_TOPICS_H
#define WEIR_IO_TOPICS_H

#include <regex.h>

#include "hotpath/topology/plan.h"
#include "io/conf.h"

/* WEIR_E_CONF where a sink, a dead-letter or a late topic is one that the job reads, or where two of them are one topic
 * whose records nobody could read alike: other formats, or other columns in a format that does not name them. st: as
 * given for the job, before tables say where they lie. */
WEIR_MUST_CHECK enum weir_err weir_topics_check(const struct weir_plan *pl, const struct weir_settings *st,
						struct weir_diag **dg);
/* A topic-pattern, which is for whole names; false: it is no regular expression. The caller's regfree. */
WEIR_MUST_CHECK bool weir_topic_pattern_compile(regex_t *re, const char *pattern);

#endif
