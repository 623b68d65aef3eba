/* option.c: reads a verb's arguments by its option table and prints the same table as help. Main thread. */
#include "tools/weir/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPTION_HELP = 10001, OPTION_VERSION, OPTION_NAMES_MAX = 96 };

/* Known to every verb, behind its own. */
static const struct weir_flag common[] = {
	{OPTION_HELP, 'h', "help", NULL, "show this text"},
	{OPTION_VERSION, 'V', "version", NULL, "show the version"},
};

void weir_args_init(struct weir_args *ag, const struct weir_verb *vb, int argc, char **argv)
{
	*ag = (struct weir_args){.vb = vb, .argc = argc, .argv = argv, .at = 1};
}

static const struct weir_flag *option_at(const struct weir_verb *vb, size_t i)
{
	if (i < vb->option_count)
		return &vb->options[i];
	i -= vb->option_count;
	return i < WEIR_COUNT_OF(common) ? &common[i] : NULL;
}

static const struct weir_flag *find_letter(const struct weir_verb *vb, char letter)
{
	const struct weir_flag *op;
	for (size_t i = 0; (op = option_at(vb, i)) != NULL; i++)
		if (op->letter != 0 && op->letter == letter)
			return op;
	return NULL;
}

static const struct weir_flag *find_name(const struct weir_verb *vb, const char *name, size_t bytes)
{
	const struct weir_flag *op;
	for (size_t i = 0; (op = option_at(vb, i)) != NULL; i++)
		if (op->name != NULL && strlen(op->name) == bytes && memcmp(op->name, name, bytes) == 0)
			return op;
	return NULL;
}

static const char *nearest_option(const struct weir_verb *vb, const char *name, size_t bytes)
{
	const char *names[OPTION_NAMES_MAX];
	size_t count = 0;
	const struct weir_flag *op;
	for (size_t i = 0; (op = option_at(vb, i)) != NULL && count < WEIR_COUNT_OF(names); i++)
		if (op->name != NULL)
			names[count++] = op->name;
	return weir_nearest_name(name, bytes, names, count);
}

static int stop(struct weir_args *ag, int exit_code)
{
	ag->exit_code = exit_code;
	return WEIR_ARGS_STOP;
}

/* Takes the option's value and returns its id. inlined: text behind `=` or behind the letter, NULL if there is none. */
static int take(struct weir_args *ag, const struct weir_flag *op, const char *shown, const char *inlined)
{
	if (op->id == OPTION_HELP) {
		weir_help_print(ag->vb);
		return stop(ag, weir_data_end(WEIR_EXIT_OK));
	}
	if (op->id == OPTION_VERSION) {
		weir_data_printf("weir %s\n", weir_version());
		return stop(ag, weir_data_end(WEIR_EXIT_OK));
	}
	if (op->value == NULL) {
		ag->value = NULL;
		return op->id;
	}
	if (inlined != NULL)
		ag->value = inlined;
	else if (ag->at < ag->argc)
		ag->value = ag->argv[ag->at++];
	else
		return stop(ag, weir_usage_error(ag->vb, "%s needs a value: %s", shown, op->value));
	return op->id;
}

static int take_letter(struct weir_args *ag)
{
	char shown[3] = {'-', *ag->rest, 0};
	const struct weir_flag *op = find_letter(ag->vb, *ag->rest);
	if (op == NULL)
		return stop(ag,
			    weir_usage_error(ag->vb, "unknown option %s (weir %s -h lists them)", shown, ag->vb->name));
	ag->rest++;
	const char *inlined = NULL;
	if (op->value != NULL && *ag->rest != 0) {
		inlined = ag->rest;
		ag->rest = NULL;
	} else if (*ag->rest == 0) {
		ag->rest = NULL;
	}
	return take(ag, op, shown, inlined);
}

static int take_name(struct weir_args *ag, const char *arg)
{
	const char *name = arg + 2;
	const char *equals = strchr(name, '=');
	size_t bytes = equals != NULL ? (size_t)(equals - name) : strlen(name);
	const struct weir_flag *op = find_name(ag->vb, name, bytes);
	if (op == NULL) {
		const char *near = nearest_option(ag->vb, name, bytes);
		if (near != NULL)
			return stop(ag, weir_usage_error(ag->vb, "unknown option --%.*s; did you mean --%s?",
							 (int)bytes, name, near));
		return stop(ag, weir_usage_error(ag->vb, "unknown option --%.*s (weir %s -h lists them)", (int)bytes,
						 name, ag->vb->name));
	}
	if (equals != NULL && op->value == NULL)
		return stop(ag, weir_usage_error(ag->vb, "--%s takes no value", op->name));
	return take(ag, op, arg, equals != NULL ? equals + 1 : NULL);
}

/* True where arg is a negative number: an offset such as -5, no option. */
static bool is_number(const char *arg)
{
	return arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9';
}

int weir_args_next(struct weir_args *ag)
{
	if (ag->rest != NULL)
		return take_letter(ag);
	if (ag->at >= ag->argc)
		return WEIR_ARGS_END;
	const char *arg = ag->argv[ag->at++];
	if (!ag->words_only && strcmp(arg, "--") == 0) {
		ag->words_only = true;
		return weir_args_next(ag);
	}
	if (ag->words_only || arg[0] != '-' || arg[1] == 0 || is_number(arg)) {
		ag->value = arg;
		return WEIR_ARGS_WORD;
	}
	if (arg[1] == '-')
		return take_name(ag, arg);
	ag->rest = arg + 1;
	return take_letter(ag);
}

/* `-X, --property NAME=VALUE`, or as much of it as there is. */
static void option_label(const struct weir_flag *op, char *to, size_t bytes)
{
	char letter[8] = "    ";
	if (op->letter != 0)
		snprintf(letter, sizeof letter, "-%c%s", op->letter, op->name != NULL ? ", " : "");
	snprintf(to, bytes, "%s%s%s%s%s", letter, op->name != NULL ? "--" : "", op->name != NULL ? op->name : "",
		 op->value != NULL ? " " : "", op->value != NULL ? op->value : "");
}

void weir_help_print(const struct weir_verb *vb)
{
	weir_data_printf("usage: weir %s%s%s\n\n%s\n", vb->name, *vb->usage != 0 ? " " : "", vb->usage, vb->brief);
	if (vb->examples != NULL)
		weir_data_printf("\n%s", vb->examples);
	weir_data_puts("\n");
	char label[64];
	const struct weir_flag *op;
	for (size_t i = 0; (op = option_at(vb, i)) != NULL; i++) {
		if (op->help == NULL)
			continue;
		option_label(op, label, sizeof label);
		weir_data_printf("  %-30s  %s\n", label, op->help);
	}
	if (vb->notes != NULL)
		weir_data_printf("\n%s", vb->notes);
}

bool weir_arg_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	uint64_t unit = *s == 'k' || *s == 'K' ? 1000 : *s == 'M' ? 1000000 : *s == 'G' ? 1000000000 : 1;
	if (unit != 1)
		s++;
	if (*s != 0 || v > UINT64_MAX / unit || v * unit < min || v * unit > max)
		return false;
	*out = v * unit;
	return true;
}

bool weir_arg_i64(const char *s, int64_t *out)
{
	bool negative = *s == '-';
	uint64_t v;
	if (!weir_arg_u64(s + negative, 0, INT64_MAX, &v))
		return false;
	*out = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

bool weir_arg_micro(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	uint32_t digits = 0;
	for (; *s >= '0' && *s <= '9'; s++, digits++) {
		if (v > UINT64_MAX / 20000000)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	v *= 1000000;
	if (*s == '.') {
		s++;
		for (uint64_t unit = 100000; *s >= '0' && *s <= '9'; s++, digits++, unit /= 10)
			v += unit * (uint64_t)(*s - '0');
	}
	if (*s != 0 || digits == 0 || v > max)
		return false;
	*out = v;
	return true;
}

int weir_usage_error(const struct weir_verb *vb, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "weir%s%s: %s\n", vb != NULL ? " " : "", vb != NULL ? vb->name : "", text);
	return WEIR_EXIT_USAGE;
}

int weir_fail(struct weir_diag *dg)
{
	enum weir_err err = weir_diag_code(dg);
	const char *report = weir_diag_report(dg);
	size_t bytes = strlen(report);
	if (weir_diag_line(dg) > 0)
		fprintf(stderr, "%s%s", report, bytes != 0 && report[bytes - 1] == '\n' ? "" : "\n");
	else
		fprintf(stderr, "weir: %s%s", bytes != 0 ? report : weir_err_text(err),
			bytes != 0 && report[bytes - 1] == '\n' ? "" : "\n");
	int code = weir_diag_is_retriable(dg) || err == WEIR_E_UNAVAILABLE ? WEIR_EXIT_RETRIABLE
		   : err == WEIR_E_CONF || err == WEIR_E_PLAN              ? WEIR_EXIT_CONF
									   : WEIR_EXIT_FAILED;
	weir_diag_destroy(dg);
	return code;
}

static bool quiet;

void weir_talk_quiet(void)
{
	quiet = true;
}

void weir_talk(const char *fmt, ...)
{
	if (quiet)
		return;
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
