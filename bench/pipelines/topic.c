/* topic.c: the whole engine on a recorded topic of orders, main job with EMIT FINAL into a recorded topic, one worker:
 * against the hot path on the same records in the same process, and against itself without checkpoints.
 *
 *   topic IN DIR [--runs N] [--only NAME]
 * IN: a folder with the recorded topic order.placed; DIR: where results and changelogs go, removed before each run.
 *
 * Runs alternate (hot path, engine with its default commit every million records under at-least-once, exactly-once,
 * engine that commits at the end only), N rounds; the best of each counts: a neighbour on the machine only ever adds
 * time. The engine has three busy threads (io, worker, snapshotter); besides wall time each thread's CPU time is
 * printed, and what the run would take if every thread had a CPU to itself: the time of the busiest one. @thread init
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>

#include "bench/pipelines/cost.h"
#include "bench/pipelines/rig.h"

enum { HOT_BATCHES = 8, HOT_ROUND = 1024 };

static bool engine_run(struct weir_cost *best, const char *in, const char *out, const char *guarantee,
		       const char *commit)
{
	struct weir_diag *dg = NULL;
	weir_cost_clear(out);
	struct weir_conf *cf = weir_conf_create();
	if (!weir_cost_set(cf, "workers", "1") || !weir_cost_set(cf, "processing.guarantee", guarantee) ||
	    !weir_cost_set(cf, "commit.interval.records", commit))
		return false;
	struct weir_topology *tp = weir_rig_topology(in, out, &dg);
	if (!tp) {
		fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
		return false;
	}
	return weir_cost_run(best, tp, cf);
}

int main(int argc, char **argv)
{
	static const struct form {
		const char *name, *guarantee, *commit;
	} forms[] = {{"at_least_once", "at_least_once", "1000000"},
		     {"exactly_once", "exactly_once", "1000000"},
		     {"no_checkpoint", "at_least_once", "0"}};
	static struct weir_cost runs[WEIR_COUNT_OF(forms)];
	unsigned rounds = 5;
	const char *only = NULL;
	for (int i = 3; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--runs") == 0)
			rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
	}
	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: topic IN DIR [--runs N] [--only at_least_once|exactly_once|no_checkpoint]\n");
		return 2;
	}
	struct weir_rig *rig;
	struct weir_diag *dg = NULL;
	if (weir_rig_create(&rig, argv[1], HOT_BATCHES, 1, &dg) != WEIR_OK) {
		fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
		return 1;
	}
	double hot = 1e9, hot_wall = 1e9;
	for (unsigned r = 0; r < rounds; r++) {
		for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++) {
			if (only && strcmp(only, forms[f].name) != 0)
				continue;
			for (int i = 0; i < 5; i++) {
				double cpu = weir_rig_cpu(), wall = weir_cost_now();
				weir_rig_run(rig, HOT_ROUND);
				cpu = weir_rig_cpu() - cpu;
				wall = weir_cost_now() - wall;
				hot = cpu < hot ? cpu : hot;
				hot_wall = wall < hot_wall ? wall : hot_wall;
			}
			if (!engine_run(&runs[f], argv[1], argv[2], forms[f].guarantee, forms[f].commit))
				return 1;
		}
	}
	double per = 1e9 / ((double)HOT_ROUND * WEIR_BATCH_ROWS);
	printf("%-22s %6.2f M records/s by wall, %6.2f by CPU time\n", "hot path", 1e3 / (hot_wall * per),
	       1e3 / (hot * per));
	printf("result hot_ns %.2f\nresult hot_wall_ns %.2f\n", hot * per, hot_wall * per);
	for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++)
		weir_cost_report(forms[f].name, &runs[f]);
	weir_rig_destroy(rig);
	weir_cost_clear(argv[2]);
	return 0;
}
