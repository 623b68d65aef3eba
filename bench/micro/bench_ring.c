/* bench_ring.c: pointers through the ring: on one thread in bursts (the instructions alone), and from one thread to
 * another with a publication after each and after every 32 (what the cache lines cost). */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "bench/shim/shim.h"
#include "hotpath/core/ring.h"

enum { CAPACITY = 256, ROUND = 1 << 16 };

static void run_one_thread(struct weir_bench_state *st, void *arg)
{
	struct weir_ring rg;
	uint32_t burst = *(const uint32_t *)arg;
	weir_ring_init(&rg, CAPACITY);
	while (weir_bench_keep_running(st)) {
		for (uint32_t i = 0; i < burst; i++)
			if (!weir_ring_push(&rg, &rg))
				weir_bench_fail(st, "full");
		weir_ring_publish(&rg);
		for (uint32_t i = 0; i < burst; i++)
			if (weir_ring_pop(&rg) != &rg)
				weir_bench_fail(st, "empty");
	}
	weir_bench_set_items(st, burst);
	weir_ring_fini(&rg);
}

struct pair {
	struct weir_ring rg;
	_Atomic bool stop;
};

static void *drain(void *arg)
{
	struct pair *pr = arg;
	while (!atomic_load_explicit(&pr->stop, memory_order_relaxed))
		if (!weir_ring_pop(&pr->rg))
			sched_yield(); /* two threads on one CPU must not wait for each other's time slice */
	return NULL;
}

static void run_two_threads(struct weir_bench_state *st, void *arg)
{
	static struct pair pr;
	uint32_t burst = *(const uint32_t *)arg;
	pthread_t id;
	weir_ring_init(&pr.rg, CAPACITY);
	atomic_store(&pr.stop, false);
	if (pthread_create(&id, NULL, drain, &pr) != 0) {
		weir_bench_fail(st, "no thread");
		return;
	}
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < ROUND; i++) {
			while (!weir_ring_push(&pr.rg, &pr)) {
				weir_ring_publish(&pr.rg);
				sched_yield();
			}
			if (i % burst == burst - 1)
				weir_ring_publish(&pr.rg);
		}
	weir_bench_set_items(st, ROUND);
	atomic_store(&pr.stop, true);
	pthread_join(id, NULL);
	weir_ring_fini(&pr.rg);
}

int main(int argc, char **argv)
{
	static uint32_t one = 1, many = 32;
	weir_bench_init(&argc, argv);
	weir_bench_register("ring/one_thread/burst_1", run_one_thread, &one);
	weir_bench_register("ring/one_thread/burst_32", run_one_thread, &many);
	weir_bench_register("ring/two_threads/burst_1", run_two_threads, &one);
	weir_bench_register("ring/two_threads/burst_32", run_two_threads, &many);
	int rc = weir_bench_run();
	weir_bench_print_ratio("published in bursts of 32 over one by one", "ring/one_thread/burst_32",
			       "ring/one_thread/burst_1", 1.0);
	return rc;
}
