/* example.h: what the programs beside it share: their arguments, and how a topology is run.
 *
 *   NAME SOURCE SINK [property=value]...
 *
 * SOURCE and SINK are options that every source and every sink of the job gets, in the words of SQL's WITH. Recorded
 * topics: `path=rec` and `path=out`. Kafka: `connector=kafka` twice, and the property bootstrap.servers=host:port. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <weir/weir.h>
#include <weir/weir_engine.h>

/* The options of a source: SOURCE, then `more`. Valid until the next call. */
const char *example_source(char **argv, const char *more);
/* The same of a sink. */
const char *example_sink(char **argv, const char *more);
/* Says how the program is used when there are too few arguments: then false. */
int example_arguments(int argc, char **argv);
/* Runs tp (which it takes) with the properties of the command line until its input ends or a signal comes, and says on
 * stderr what was done or what is wrong. Returns the exit code: weir's own (0, 1, 75 try again, 78 bad configuration).
 */
int example_run(struct weir_topology *tp, const char *application, int argc, char **argv);

#endif
