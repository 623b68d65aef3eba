/* recorded_sliding.c: one aggregation in sliding windows over recorded topics, for tests/conformance/kstreams: SQL has
 * no form for them. Reads topic `events` of the folder in/, writes topic `result` to out/. Main thread.
 *   recorded_sliding LENGTH_MS GRACE_MS TIME GROUP EMIT AGGREGATES WHERE HAVING [property=value]...
 * TIME: `ts` (a column) or `record`; GROUP: k or g; EMIT: changes or final; WHERE and HAVING may be empty.
 * Exit: 0 done, 1 failed (stderr says why), 2 usage. */
#include <weir/weir.h>
#include <weir/weir_engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS "connector=recorded format=json key.fields=k value.fields-include=EXCEPT_KEY"
enum { ARGUMENTS = 9 };

static struct weir_topology *topology(char **argv)
{
	const char *group = argv[4];
	char columns[256], exprs[2048];
	int by_column = strcmp(argv[3], "ts") == 0;
	(void)snprintf(columns, sizeof columns, "k STRING, g STRING, v BIGINT, d DECIMAL(8, 2), x DOUBLE, s STRING, %s",
		       by_column ? "ts BIGINT" : "ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL");
	(void)snprintf(exprs, sizeof exprs, "%s AS k, window_start, window_end, %s", group, argv[6]);
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_source(tp, "events", columns, OPTIONS " path=in topic=events key.format=raw");
	st = weir_event_time(st, "ts", strtoll(argv[2], NULL, 10));
	if (argv[7][0] != '\0')
		st = weir_filter(st, argv[7]);
	st = weir_sliding(weir_key_by(st, group), strtoll(argv[1], NULL, 10));
	st = weir_emit(st, strcmp(argv[5], "changes") == 0 ? WEIR_EMIT_CHANGES : WEIR_EMIT_FINAL);
	st = weir_aggregate(st, "windows", exprs);
	if (argv[8][0] != '\0')
		st = weir_filter(st, argv[8]);
	(void)weir_sink(st, "result", OPTIONS " path=out topic=result key.format=windowed");
	return tp;
}

static enum weir_err configure(struct weir_conf *cf, int argc, char **argv, struct weir_diag **dg)
{
	enum weir_err err = weir_conf_set(cf, "application.id", "sliding", dg);
	for (int i = ARGUMENTS; err == WEIR_OK && i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		if (equals != NULL)
			*equals = '\0';
		err = weir_conf_set(cf, argv[i], equals != NULL ? equals + 1 : "", dg);
	}
	return err;
}

int main(int argc, char **argv)
{
	if (argc < ARGUMENTS) {
		fprintf(stderr, "recorded_sliding: see the file's first lines\n");
		return 2;
	}
	struct weir_diag *dg = NULL;
	struct weir_engine *en = NULL;
	struct weir_topology *tp = topology(argv);
	struct weir_conf *cf = weir_conf_create();
	enum weir_err err = configure(cf, argc, argv, &dg);
	if (err == WEIR_OK) {
		err = weir_engine_create(&en, tp, cf, &dg);
	} else {
		weir_topology_destroy(tp);
		weir_conf_destroy(cf);
	}
	if (err == WEIR_OK)
		err = weir_engine_run(en, &dg);
	if (err != WEIR_OK)
		fputs(weir_diag_report(dg), stderr);
	weir_engine_destroy(en);
	weir_diag_destroy(dg);
	return err == WEIR_OK ? 0 : 1;
}
