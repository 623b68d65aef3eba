/* help.c: `weir help [VERB]` and `weir version`. Main thread. */
#include "io/kafka/property.h"
#include "tools/weir/cli.h"

static int help_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_args ag;
	const char *name = NULL;
	weir_args_init(&ag, vb, argc, argv);
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		name = ag.value;
	}
	if (name != NULL) {
		const struct weir_verb *of = weir_verb_find(name);
		if (of == NULL)
			return weir_usage_error(vb, "no verb %s (weir help lists them)", name);
		weir_help_print(of);
		return weir_data_end(WEIR_EXIT_OK);
	}
	weir_data_puts("usage: weir VERB [OPTIONS] [ARGUMENTS]\n\n"
		       "Stream processing over Kafka, in C.\n\n"
		       "  weir gen orders --records 1000000 --out rec    a recorded topic to try things on\n"
		       "  weir dump rec order.placed -c 5                look at it\n\n");
	for (size_t i = 0; weir_verbs[i] != NULL; i++)
		weir_data_printf("  %-10s  %s\n", weir_verbs[i]->name, weir_verbs[i]->brief);
	weir_data_puts("\n`weir help VERB` or `weir VERB -h` shows a verb's options.\n"
		       "stdout is data, stderr is talk. Exit codes: 0 ok, 1 failed or findings, 2 usage, 75 try again, "
		       "78 bad configuration or SQL.\n");
	return weir_data_end(WEIR_EXIT_OK);
}

const struct weir_verb weir_verb_help = {
	.name = "help",
	.usage = "[VERB]",
	.brief = "show the verbs, or one verb's options",
	.run = help_run,
};

static int version_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_args ag;
	weir_args_init(&ag, vb, argc, argv);
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;)
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
	weir_data_printf("weir %s\n", weir_version());
#ifdef WEIR_JEMALLOC
	weir_data_puts("allocator jemalloc\n");
#else
	weir_data_puts("allocator libc\n");
#endif
	weir_data_printf("librdkafka %s\n", weir_kafka_library_version());
	weir_data_printf("compiler %s\n", __VERSION__);
	return weir_data_end(WEIR_EXIT_OK);
}

const struct weir_verb weir_verb_version = {
	.name = "version",
	.usage = "",
	.brief = "show the version and what it was built with",
	.run = version_run,
};
