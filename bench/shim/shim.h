/* shim.h: Google Benchmark for C. One program per bench file; its main does
 *
 *   weir_bench_init(&argc, argv);
 *   weir_bench_register("decode/weir", run_decode, arg);
 *   int rc = weir_bench_run();
 *   weir_bench_print_ratio("weir over naive", "decode/weir", "decode/naive", 2.0);
 *
 * Every benchmark runs a few repetitions, all of them interleaved at random so that a noisy neighbour hits each alike;
 * ratios compare the medians of items per CPU second. @thread init, one thread */
#ifndef WEIR_BENCH_SHIM_H
#define WEIR_BENCH_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_bench_state;

/* Takes Google Benchmark's flags out of argv. */
void weir_bench_init(int *argc, char **argv);
/* name must be unique; arg is borrowed until weir_bench_run has returned. */
void weir_bench_register(const char *name, void (*fn)(struct weir_bench_state *st, void *arg), void *arg);

/* The loop: `while (weir_bench_keep_running(st)) { ... }`. */
bool weir_bench_keep_running(struct weir_bench_state *st);
/* Outside the measured time: pause before, resume after. Costs about 100 ns, so only around long work. */
void weir_bench_pause(struct weir_bench_state *st);
void weir_bench_resume(struct weir_bench_state *st);
/* After the loop: what one iteration did. */
void weir_bench_set_items(struct weir_bench_state *st, int64_t items_per_iteration);
void weir_bench_set_bytes(struct weir_bench_state *st, int64_t bytes_per_iteration);
/* A figure of its own in the report, e.g. bytes per entry. */
void weir_bench_counter(struct weir_bench_state *st, const char *name, double value);
/* Ends this benchmark as failed. */
void weir_bench_fail(struct weir_bench_state *st, const char *why);
/* The compiler must assume that *p is read and written here. */
static inline void weir_bench_keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* Runs what was registered and prints the report. 0, or 1 if a benchmark failed. */
int weir_bench_run(void);
/* Median over the repetitions of items per CPU second, of counter name; 0 where the benchmark did not run. */
double weir_bench_items_per_second(const char *name);
double weir_bench_result(const char *name, const char *counter);
/* Prints `label  12.3x (want at least 3x) ok|BELOW` for items/s of a over b; false when below. */
bool weir_bench_print_ratio(const char *label, const char *a, const char *b, double want);

#ifdef __cplusplus
}
#endif
#endif
