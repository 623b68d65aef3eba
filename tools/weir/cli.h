/* cli.h: what the verbs of the command share: the option table and its reader, exit codes, data on stdout, talk on
 * stderr. One file per verb implements one struct weir_verb. Everything here runs on the main thread. */
#ifndef WEIR_TOOLS_WEIR_CLI_H
#define WEIR_TOOLS_WEIR_CLI_H

#include "hotpath/core/base.h"
#include "hotpath/core/diag.h"

/* Exit codes: interfaces that scripts rely on. */
enum {
	WEIR_EXIT_OK = 0,         /* also a stop by signal after everything was committed */
	WEIR_EXIT_FAILED = 1,     /* failed, or a test or validation has findings */
	WEIR_EXIT_USAGE = 2,      /* the command line is wrong */
	WEIR_EXIT_RETRIABLE = 75, /* nothing is wrong here: the same command may work later */
	WEIR_EXIT_CONF = 78       /* a property, a statement or the data's place is wrong */
};

/* One option of one verb. The same table is read by the parser and printed by --help. */
struct weir_flag {
	int id;            /* what weir_args_next returns; > 0, unique in its verb */
	char letter;       /* 0: none */
	const char *name;  /* long name without the dashes, or NULL */
	const char *value; /* name of its value in the help text, NULL: a flag */
	const char *help;  /* NULL: an alias that --help does not list */
};

struct weir_verb {
	const char *name;
	const char *usage;    /* what follows `weir NAME ` */
	const char *brief;    /* one line for `weir help` */
	const char *examples; /* lines of text, printed below the usage */
	const struct weir_flag *options;
	size_t option_count;
	const char *notes;                                             /* printed below the options, or NULL */
	int (*run)(const struct weir_verb *vb, int argc, char **argv); /* argv[0] is the verb; returns the exit code */
};

/* Every verb there is, in the order of `weir help`; ends with a NULL name. */
extern const struct weir_verb *const weir_verbs[];
const struct weir_verb *weir_verb_find(const char *name);
extern const struct weir_verb weir_verb_run;
extern const struct weir_verb weir_verb_test;
extern const struct weir_verb weir_verb_explain;
extern const struct weir_verb weir_verb_validate;
extern const struct weir_verb weir_verb_reset;
extern const struct weir_verb weir_verb_gen;
extern const struct weir_verb weir_verb_dump;
extern const struct weir_verb weir_verb_record;
extern const struct weir_verb weir_verb_replay;
extern const struct weir_verb weir_verb_lag;
extern const struct weir_verb weir_verb_version;
extern const struct weir_verb weir_verb_help;

/* ---- reading the command line ---- */

enum {
	WEIR_ARGS_END = 0,
	WEIR_ARGS_WORD = -1, /* an argument that is no option */
	WEIR_ARGS_STOP = -2  /* help was printed, or an error was: return args->exit_code */
};
struct weir_args {
	const struct weir_verb *vb;
	int argc;
	char **argv;
	int at;            /* next argument */
	const char *rest;  /* further letters of `-abc` */
	bool words_only;   /* `--` was seen */
	const char *value; /* of the option or word returned last; borrowed from argv */
	int exit_code;
};
void weir_args_init(struct weir_args *ag, const struct weir_verb *vb, int argc, char **argv);
/* The next option's id, or one of the codes above. -h, --help, -V and --version are handled inside. */
int weir_args_next(struct weir_args *ag);
void weir_help_print(const struct weir_verb *vb);

/* One line on stderr: `weir VERB: ...`, and the exit code for it. */
int weir_usage_error(const struct weir_verb *vb, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Prints a diagnostic's report to stderr, destroys it and returns its exit code. */
int weir_fail(struct weir_diag *dg);
/* Talk on stderr, one line; nothing after weir_talk_quiet(). */
void weir_talk(const char *fmt, ...) WEIR_PRINTF(1, 2);
void weir_talk_quiet(void);

/* Numbers in option values. False when the text is not one or lies outside [min, max]. No locale, no exponent.
 * The unsigned form takes k, M and G (thousands) behind the digits. weir_arg_micro reads "0.25" as 250000. */
bool weir_arg_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out);
bool weir_arg_i64(const char *s, int64_t *out);
bool weir_arg_micro(const char *s, uint64_t max, uint64_t *out);

/* ---- data on stdout: a buffer over write(2) ---- */

/* The process's one output. When the reader has gone (a closed pipe) everything further is dropped in silence. */
void weir_data_put(const void *p, size_t bytes);
void weir_data_puts(const char *s);
void weir_data_printf(const char *fmt, ...) WEIR_PRINTF(1, 2);
void weir_data_json(const uint8_t *p,
		    size_t bytes); /* a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD */
void weir_data_base64(const uint8_t *p, size_t bytes);
bool weir_data_closed(void); /* the reader has gone: stop early */
/* While the reader takes nothing, ask() is called ten times a second; true: as if the reader had gone. */
void weir_data_give_up_when(bool (*ask)(void));
/* Flushes. The exit code: code itself, or WEIR_EXIT_FAILED with a line on stderr when writing failed (a full disk). */
int weir_data_end(int code);

#endif
