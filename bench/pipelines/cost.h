/* cost.h: what a run of the engine costs: wall time, CPU time of each thread, and what it would take if every thread
 * had a CPU to itself. @thread init; one more thread samples the CPU times */
#ifndef WEIR_BENCH_COST_H
#define WEIR_BENCH_COST_H

#include <stdbool.h>
#include <stdint.h>

struct weir_topology;
struct weir_conf;

/* The best of several runs: a neighbour on the machine only ever adds time. */
struct weir_cost {
	double wall, io, worker, snap, busiest; /* seconds; threads: those of the run whose busiest was least */
	uint64_t records, results, epochs;
	uint32_t runs;
};

double weir_cost_now(void);
/* Sets a property; false, with a text on stderr, where that cannot be. */
bool weir_cost_set(struct weir_conf *cf, const char *name, const char *value);
/* Removes a folder of results. */
void weir_cost_clear(const char *folder);
/* One run of tp, which it takes with cf; false, with a text on stderr, where it fails. */
bool weir_cost_run(struct weir_cost *best, struct weir_topology *tp, struct weir_conf *cf);
/* A line to read, and `result NAME_...` lines: ns a record. */
void weir_cost_report(const char *name, const struct weir_cost *r);

#endif
