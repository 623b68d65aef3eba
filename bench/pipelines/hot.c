/* hot.c: recorded orders from memory to window state on one worker, the path that every record takes: input ring, JSON,
 * event time, keys, slots, aggregates. One thread.
 *
 *   hot IN                       ns a record: the whole, decode alone, table alone; then `result` lines
 *   hot IN --batches N           the same with N batches of 1,024 orders instead of 8: 1,000 are more than the caches
 * hold hot IN --instructions N      only the whole path over N batches: what callgrind counts. The difference between
 * two runs of N and 2 N batches is free of everything that happens once hot IN --decode N, --fold N  the halves alone,
 * for profiles IN: a folder with the recorded topic order.placed (weir gen orders). 8,192 orders are read and then
 * repeated, so that payloads and entries come from cache. @thread init */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pipelines/rig.h"

enum { HOT_BATCHES = 8, ROUND_BATCHES = 256, ROUNDS = 60 };

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* The lower quartile: a neighbour on the machine only ever adds time. */
static double settle(double *seconds)
{
	qsort(seconds, ROUNDS, sizeof *seconds, compare);
	return seconds[ROUNDS / 4] * 1e9 / ((double)ROUND_BATCHES * WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	struct weir_rig *rig;
	struct weir_diag *dg = NULL;
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: hot IN [--batches|--instructions|--decode|--fold N]\n");
		return 2;
	}
	uint32_t number = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	bool batches = argc == 4 && strcmp(argv[2], "--batches") == 0;
	if (weir_rig_create(&rig, argv[1], batches && number ? number : HOT_BATCHES, 1, &dg) != WEIR_OK) {
		fprintf(stderr, "hot: %s\n", weir_diag_text(dg));
		return 1;
	}
	if (argc == 4 && !batches) {
		void (*fn)(struct weir_rig *, uint32_t) = strcmp(argv[2], "--decode") == 0 ? weir_rig_decode
							  : strcmp(argv[2], "--fold") == 0 ? weir_rig_fold
											   : weir_rig_run;
		fn(rig, number);
		printf("%u batches, %llu rows applied\n", number, (unsigned long long)rig->applied);
		weir_rig_destroy(rig);
		return 0;
	}
	static double whole[ROUNDS], decode[ROUNDS], fold[ROUNDS];
	for (int r = 0; r < ROUNDS; r++) {
		double t0 = weir_rig_cpu();
		weir_rig_run(rig, ROUND_BATCHES);
		double t1 = weir_rig_cpu();
		weir_rig_decode(rig, ROUND_BATCHES);
		double t2 = weir_rig_cpu();
		weir_rig_fold(rig, ROUND_BATCHES);
		double t3 = weir_rig_cpu();
		whole[r] = t1 - t0;
		decode[r] = t2 - t1;
		fold[r] = t3 - t2;
	}
	double w = settle(whole), d = settle(decode), f = settle(fold);
	printf("orders from memory to window state: %.1f ns a record; decoding alone %.1f, table alone %.1f, together "
	       "%.1f\n",
	       w, d, f, d + f);
	uint64_t entries = 0, bytes = 0;
	for (uint32_t s = 0; s < rig->core.plan->stages[0].slot_count; s++) {
		entries += weir_slot_entries(rig->w->slots[0][s]);
		bytes += weir_slot_bytes(rig->w->slots[0][s]);
	}
	printf("%llu entries, %.1f bytes each in %u slots\n", (unsigned long long)entries,
	       (double)bytes / (double)entries, rig->core.plan->stages[0].slot_count);
	printf("result hot_ns %.2f\nresult decode_ns %.2f\nresult fold_ns %.2f\nresult hot_over_halves %.4f\n", w, d, f,
	       (d + f) / w);
	weir_rig_destroy(rig);
	return 0;
}
