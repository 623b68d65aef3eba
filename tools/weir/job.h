/* job.h: what the verbs that take an SQL file share: its options, configuration from flags, environment and files,
 * `${name}` in the text, the topology made of it. Main thread. */
#ifndef WEIR_TOOLS_WEIR_JOB_H
#define WEIR_TOOLS_WEIR_JOB_H

#include "hotpath/core/mem.h"
#include "hotpath/weir.h"
#include "io/weir_engine.h"
#include "tools/sql/weir_sql.h"
#include "tools/weir/cli.h"

enum { WEIR_JOB_DEFINES_MAX = 64 };
struct weir_job {
	const struct weir_verb *vb;
	struct weir_conf *cf; /* given away by weir_engine_create; NULL then */
	struct weir_mem mem;  /* texts */
	const char *file;     /* the SQL file, "-": stdin */
	const char *sql;
	size_t sql_bytes;
	const char *config; /* -F */
	struct weir_sql_variable define[WEIR_JOB_DEFINES_MAX];
	uint32_t define_count;
	const char *define_default; /* what an undefined ${name} becomes; NULL: it is an error */
	struct weir_sql *sq;        /* what it was compiled to */
	bool dump;                  /* -X dump */
	bool verbose;
};

enum {
	WEIR_OPT_FILE = 1000,
	WEIR_OPT_PROPERTY,
	WEIR_OPT_CONFIG,
	WEIR_OPT_BROKERS,
	WEIR_OPT_APP,
	WEIR_OPT_WORKERS,
	WEIR_OPT_DEFINE,
	WEIR_OPT_QUIET,
	WEIR_OPT_VERBOSE
};
/* The rows of a verb's option table for the above. */
/* clang-format off */
#define WEIR_JOB_OPTIONS \
	{WEIR_OPT_FILE, 'f', "file", "FILE", "the SQL file, instead of the argument; - is stdin"}, \
	{WEIR_OPT_DEFINE, 0, "define", "NAME=VALUE", "what ${NAME} in the SQL stands for"}, \
	{WEIR_OPT_PROPERTY, 'X', "property", "NAME=VALUE", "set a property; -X list shows them all, -X dump the ones in force"}, \
	{WEIR_OPT_PROPERTY, 0, "command-property", "NAME=VALUE", NULL}, \
	{WEIR_OPT_CONFIG, 'F', "config", "FILE", "read properties from a file (else weir.conf, ~/.config/weir/, /etc/weir/)"}, \
	{WEIR_OPT_CONFIG, 0, "command-config", "FILE", NULL}, \
	{WEIR_OPT_BROKERS, 'b', "brokers", "LIST", "host:port,... or file:DIR: recorded topics stand for Kafka's"}, \
	{WEIR_OPT_BROKERS, 0, "bootstrap-server", "LIST", NULL}, \
	{WEIR_OPT_APP, 'g', "group", "ID", "application id (else the file's name): group, prefix of internal topics"}, \
	{WEIR_OPT_WORKERS, 0, "workers", "N", "worker threads (CPUs - 1)"}, \
	{WEIR_OPT_QUIET, 'q', "quiet", NULL, "say nothing on stderr but errors"}, \
	{WEIR_OPT_VERBOSE, 'v', "verbose", NULL, "say more"}
/* clang-format on */

/* Those of a verb that talks to brokers and runs no SQL. */
#define WEIR_CLUSTER_OPTIONS                                                                                           \
	{WEIR_OPT_PROPERTY, 'X', "property", "NAME=VALUE",                                                             \
	 "set a property, also any of librdkafka's; -X list, -X dump"},                                                \
		{WEIR_OPT_PROPERTY, 0, "command-property", "NAME=VALUE", NULL},                                        \
		{WEIR_OPT_CONFIG, 'F', "config", "FILE",                                                               \
		 "read properties from a file (else weir.conf, ~/.config/weir/, /etc/weir/)"},                         \
		{WEIR_OPT_CONFIG, 0, "command-config", "FILE", NULL},                                                  \
		{WEIR_OPT_QUIET, 'q', "quiet", NULL, "say nothing on stderr but errors"},                              \
	{                                                                                                              \
		WEIR_OPT_VERBOSE, 'v', "verbose", NULL, "say more, librdkafka's log too"                               \
	}
#define WEIR_BROKER_OPTIONS                                                                                            \
	{WEIR_OPT_BROKERS, 'b', "brokers", "LIST", "host:port,..."},                                                   \
	{                                                                                                              \
		WEIR_OPT_BROKERS, 0, "bootstrap-server", "LIST", NULL                                                  \
	}
/* clang-format on */

void weir_job_init(struct weir_job *jb, const struct weir_verb *vb);
void weir_job_fini(struct weir_job *jb);
/* Handles one of the options above, or an argument that is the SQL file. -1: go on; else the exit code. */
int weir_job_option(struct weir_job *jb, int id, const char *value);
/* Every option and word of the command line to set (which answers as weir_job_option does), then configuration: what a
 * verb without SQL begins with. -1: go on; else the exit code. */
int weir_job_arguments(struct weir_job *jb, int argc, char **argv, int (*set)(void *plan, int id, const char *value),
		       void *plan);
/* Reads configuration alone. -1: go on; else the exit code (an error was printed, or -X dump). */
int weir_job_configure(struct weir_job *jb);
/* Reads configuration and the SQL text. -1: go on; else the exit code (an error was printed, or -X dump). */
int weir_job_load(struct weir_job *jb);
/* Compiles it to jb->sq and says the warnings. -1: go on; else the exit code. */
int weir_job_compile(struct weir_job *jb);
/* Like weir_fail, of an error that planning or starting found: with its place in the file, if that is known. */
int weir_job_fail(const struct weir_job *jb, struct weir_diag *dg);
/* Plans what was compiled and describes it; opens and writes nothing. -1: go on, *text goes back with weir_free. */
int weir_job_plan(struct weir_job *jb, enum weir_describe form, char **text);
/* A whole file, terminated; "-" is stdin. */
WEIR_MUST_CHECK enum weir_err weir_file_read(struct weir_mem *mem, const char *path, const char **text, size_t *bytes,
					     struct weir_diag **dg);

#endif
