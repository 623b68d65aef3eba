/* test.c: `weir test FILE.sql...` runs FILE_test.json against it, and `weir test -s SQL -i INPUT -o OUTPUT` ksqlDB's
 * test-runner files: the library's test driver on this thread, in virtual time, no broker. Main thread. */
#include "tools/weir/case.h"
#include "tools/weir/job.h"

#include "hotpath/core/utf8.h"
#include "hotpath/format/base64.h"
#include "hotpath/format/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPT_STATEMENTS = 1, OPT_INPUT, OPT_OUTPUT, OPT_JUNIT, OPT_UPDATE, FILES_MAX = 1024 };

struct test_run {
	const struct weir_verb *vb;
	int argc;
	char **argv;
	const char *file[FILES_MAX]; /* SQL files, or the one of -s */
	uint32_t file_count;
	const char *statements;
	const char *input;
	const char *output;
	const char *junit;
	bool update;
	uint32_t passed;
	uint32_t failed;
	int code;            /* the worst so far */
	struct weir_buf xml; /* the test cases of --junit */
};

/* ---- driving one case ---- */

struct results {
	struct weir_case_result *result;
	uint32_t count;
};

static enum weir_err pop_all(struct weir_driver *dr, struct weir_mem *mem, const struct weir_suite *su,
			     struct results *rs, uint32_t *capacity)
{
	struct weir_driver_record r;
	for (uint32_t t = 0; t < su->topic_count; t++)
		while (weir_driver_pop(dr, su->topic[t], &r)) {
			if (rs->count == *capacity) {
				struct weir_case_result *more =
					weir_mem_take(mem, (size_t)(*capacity * 2 + 64) * sizeof *more);
				if (rs->count != 0)
					memcpy(more, rs->result, rs->count * sizeof *more);
				rs->result = more;
				*capacity = *capacity * 2 + 64;
			}
			struct weir_case_result *to = &rs->result[rs->count++];
			*to = (struct weir_case_result){
				.topic = su->topic[t], .timestamp = r.timestamp_ms, .header_count = r.header_count};
			if (r.key.data != NULL)
				to->key = (struct weir_slice){weir_mem_strndup(mem, r.key.data, r.key.bytes),
							      r.key.bytes};
			if (r.value.data != NULL)
				to->value = (struct weir_slice){weir_mem_strndup(mem, r.value.data, r.value.bytes),
								r.value.bytes};
			if (r.headers_bytes != 0)
				to->headers = (struct weir_slice){weir_mem_copy(mem, r.headers, r.headers_bytes),
								  r.headers_bytes};
		}
	return WEIR_OK;
}

static enum weir_err drive(const struct weir_case *tc, const struct weir_suite *su, struct weir_mem *mem,
			   struct weir_driver *dr, struct results *rs, struct weir_diag **dg)
{
	uint32_t capacity = 0;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < tc->input_count && err == WEIR_OK; i++) {
		const struct weir_case_record *in = &tc->input[i];
		struct weir_driver_record r = {.key = weir_case_input_bytes(su, mem, in->topic, true, in->key),
					       .value = weir_case_input_bytes(su, mem, in->topic, false, in->value),
					       .timestamp_ms = in->timestamp};
		struct weir_slice headers;
		err = weir_case_headers(mem, in->headers, &headers, &r.header_count, dg);
		r.headers = headers.data;
		r.headers_bytes = headers.bytes;
		if (err == WEIR_OK)
			err = weir_driver_push_record(dr, in->topic, &r, dg);
		if (err == WEIR_OK)
			err = pop_all(dr, mem, su, rs, &capacity);
	}
	if (err == WEIR_OK && tc->has_advance)
		err = weir_driver_advance(dr, tc->advance_to, dg);
	if (err == WEIR_OK)
		err = weir_driver_end(dr, dg);
	return err == WEIR_OK ? pop_all(dr, mem, su, rs, &capacity) : err;
}

/* A job of this file, with the options of the command line; text files are read anew for each case: they are small. */
static int open_job(struct test_run *tr, struct weir_job *jb, const char *file, bool ksql)
{
	struct weir_args ag;
	struct weir_diag *dg = NULL;
	int code = -1;
	weir_job_init(jb, tr->vb);
	jb->define_default = "test";
	/* Topics are virtual, and so is the folder in which those of Kafka tables would lie. */
	if (weir_conf_set_from(jb->cf, "bootstrap.servers", "file:test", WEIR_ORIGIN_FLAG, "weir test", &dg) !=
		    WEIR_OK ||
	    weir_conf_set_from(jb->cf, "emit.coalesce", "false", WEIR_ORIGIN_FILE, "weir test", &dg) != WEIR_OK ||
	    (ksql && weir_conf_set_from(jb->cf, "end.of.input", "keep", WEIR_ORIGIN_FILE, "weir test", &dg) != WEIR_OK))
		return weir_fail(dg);
	weir_args_init(&ag, tr->vb, tr->argc, tr->argv);
	for (int id; code < 0 && (id = weir_args_next(&ag)) != WEIR_ARGS_END;)
		if (id >= WEIR_OPT_FILE && id != WEIR_OPT_FILE)
			code = weir_job_option(jb, id, ag.value);
	jb->file = file;
	if (code < 0)
		code = weir_job_load(jb);
	if (code < 0)
		code = weir_job_compile(jb);
	return code;
}

static void xml_text(struct weir_buf *b, const char *s, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char c = s[i];
		if (c == '<' || c == '>' || c == '&' || c == '"')
			weir_buf_printf(b, "&#%d;", c);
		else
			weir_buf_put_byte(b, (uint8_t)c < 0x20 && c != '\n' && c != '\t' ? '?' : (uint8_t)c);
	}
}

static void report(struct test_run *tr, const struct weir_suite *su, const struct weir_case *tc,
		   const struct weir_buf *why)
{
	bool good = why->bytes == 0;
	weir_data_printf("%s %s: %s\n", good ? "ok  " : "FAIL", su->file, tc->name);
	weir_data_put(why->data, why->bytes);
	tr->passed += good;
	tr->failed += !good;
	if (!good && tr->code == WEIR_EXIT_OK)
		tr->code = WEIR_EXIT_FAILED;
	weir_buf_puts(&tr->xml, "  <testcase classname=\"");
	xml_text(&tr->xml, su->file, strlen(su->file));
	weir_buf_puts(&tr->xml, "\" name=\"");
	xml_text(&tr->xml, tc->name, strlen(tc->name));
	if (good) {
		weir_buf_puts(&tr->xml, "\"/>\n");
		return;
	}
	weir_buf_puts(&tr->xml, "\"><failure message=\"differs\">");
	xml_text(&tr->xml, (const char *)why->data, why->bytes);
	weir_buf_puts(&tr->xml, "</failure></testcase>\n");
}

/* A test that did not come to run: the file or its statements are refused, which stderr says. */
static void report_refused(struct test_run *tr, const char *file, const char *name)
{
	tr->failed++;
	weir_buf_puts(&tr->xml, "  <testcase classname=\"");
	xml_text(&tr->xml, file, strlen(file));
	weir_buf_puts(&tr->xml, "\" name=\"");
	xml_text(&tr->xml, name, strlen(name));
	weir_buf_puts(&tr->xml, "\"><failure message=\"refused\"/></testcase>\n");
}

/* Runs one case; what differs goes into why. Not WEIR_EXIT_OK: the statements were refused. */
static int run_case(struct test_run *tr, const char *file, struct weir_suite *su, const struct weir_case *tc,
		    struct weir_mem *mem, struct results *rs, struct weir_buf *why)
{
	struct weir_job jb;
	struct weir_diag *dg = NULL;
	struct weir_driver *dr = NULL;
	struct weir_stats st = {0};
	int code = open_job(tr, &jb, file, tc->ksql);
	if (code >= 0) {
		weir_job_fini(&jb);
		return code;
	}
	struct weir_topology *tp = weir_sql_take_topology(jb.sq);
	enum weir_err err =
		tp != NULL ? WEIR_OK : weir_diag_set(&dg, WEIR_E_PLAN, "%s has no INSERT: nothing to test", file);
	if (err == WEIR_OK) {
		struct weir_shape *shapes;
		weir_shapes_of(tp, mem, &shapes, &su->shape_count);
		su->shape = shapes;
		weir_suite_watch(su, mem, tr->update);
		err = weir_driver_create(&dr, tp, jb.cf, &dg);
		jb.cf = NULL;
	}
	if (err != WEIR_OK) {
		weir_job_fini(&jb);
		weir_fail(dg);
		return WEIR_EXIT_CONF;
	}
	err = drive(tc, su, mem, dr, rs, &dg);
	if (err != WEIR_OK) {
		weir_buf_printf(why, "    the run failed: %s\n", weir_diag_text(dg));
	} else {
		weir_driver_stats(dr, &st);
		weir_case_compare(tc, mem, su, rs->result, rs->count, why);
		if (tc->late >= 0 && (uint64_t)tc->late != st.records_late)
			weir_buf_printf(why, "    expected %lld late records, there were %llu\n", (long long)tc->late,
					(unsigned long long)st.records_late);
		if (tc->rejected >= 0 && (uint64_t)tc->rejected != st.records_rejected)
			weir_buf_printf(why, "    expected %lld rejected records, there were %llu\n",
					(long long)tc->rejected, (unsigned long long)st.records_rejected);
	}
	weir_diag_destroy(dg);
	weir_driver_destroy(dr);
	weir_job_fini(&jb);
	return WEIR_EXIT_OK;
}

/* ---- --update ---- */

/* Bytes as the test file would write them: JSON objects as they are, text as a string, anything else as base64. */
static void put_as_json(struct weir_buf *b, struct weir_mem *mem, struct weir_slice s)
{
	struct weir_node *nd;
	struct weir_diag *dg = NULL;
	if (s.data == NULL) {
		weir_buf_puts(b, "null");
	} else if (s.bytes != 0 && *(const char *)s.data == '{' &&
		   weir_document_parse(&nd, mem, NULL, s.data, s.bytes, &dg) == WEIR_OK) {
		weir_buf_put(b, s.data, s.bytes);
	} else if (!weir_utf8_check(s.data, s.bytes, NULL)) {
		char *text = weir_mem_take(mem, weir_base64_text_bytes(s.bytes) + 1);
		size_t bytes = weir_base64_encode(s.data, s.bytes, text);
		weir_case_put_string(b, (struct weir_slice){text, bytes});
	} else {
		weir_case_put_string(b, s);
	}
	weir_diag_destroy(dg);
}

/* An expected record of the same topic shows how its keys are written: with a window, or as a number. */
static const struct weir_case_record *sample_of(const struct weir_case *tc, const char *topic)
{
	for (uint32_t i = 0; i < tc->output_count; i++)
		if (strcmp(tc->output[i].topic, topic) == 0 && tc->output[i].key != NULL &&
		    tc->output[i].key->kind != WEIR_NODE_NULL)
			return &tc->output[i];
	return NULL;
}

static void put_key(struct weir_buf *b, struct weir_mem *mem, const struct weir_case_record *sample, int64_t window_ms,
		    struct weir_slice key)
{
	const struct weir_node *window = sample != NULL ? sample->window : NULL;
	const struct weir_node *type = weir_node_get(window, "type");
	bool session = type != NULL && type->kind == WEIR_NODE_STRING && (type->string[0] | 0x20) == 's';
	size_t bound_bytes = window == NULL ? 0 : session ? 16 : 8;
	const uint8_t *bounds = NULL;
	if (bound_bytes != 0 && key.data != NULL && key.bytes >= bound_bytes) {
		bounds = (const uint8_t *)key.data + key.bytes - bound_bytes;
		key.bytes -= bound_bytes;
	}
	char number[64];
	double real;
	bool fraction = sample != NULL && memchr(sample->key->text, '.', sample->key->bytes) != NULL;
	if (fraction && sample->key->kind == WEIR_NODE_NUMBER && key.bytes == 8) {
		uint64_t bits = weir_load_be64(key.data);
		memcpy(&real, &bits, sizeof real);
		weir_buf_put(b, number, weir_print_double(real, number));
	} else if (sample != NULL && sample->key->kind == WEIR_NODE_NUMBER && key.bytes == 8)
		weir_buf_printf(b, "%lld", (long long)weir_load_be64(key.data));
	else if (sample != NULL && sample->key->kind == WEIR_NODE_NUMBER && key.bytes == 4)
		weir_buf_printf(b, "%d", (int32_t)weir_load_be32(key.data));
	else
		put_as_json(b, mem, key);
	if (bounds == NULL)
		return;
	int64_t start = (int64_t)weir_load_be64(bounds + bound_bytes - 8), end = (int64_t)weir_load_be64(bounds);
	int64_t from, to;
	if (!session && window_ms != 0)
		end = start + window_ms;
	else if (!session && weir_node_int(weir_node_get(window, "start"), &from) &&
		 weir_node_int(weir_node_get(window, "end"), &to))
		end = start + (to - from); /* every window of the topic has this size */
	weir_buf_printf(b, ", \"window\": {\"start\": %lld, \"end\": %lld, \"type\": \"%s\"}", (long long)start,
			(long long)end, session ? "session" : "time");
}

static void put_outputs(struct weir_buf *b, struct weir_mem *mem, const struct weir_suite *su,
			const struct weir_case *tc, const struct results *rs)
{
	weir_buf_puts(b, "[");
	for (uint32_t i = 0; i < rs->count; i++) {
		const struct weir_case_result *r = &rs->result[i];
		weir_buf_printf(b, "%s\n      {\"topic\": \"%s\", \"key\": ", i == 0 ? "" : ",", r->topic);
		const struct weir_shape *sh = weir_shape_find(su->shape, su->shape_count, r->topic, true);
		put_key(b, mem, sample_of(tc, r->topic), sh != NULL ? sh->window_ms : 0, r->key);
		weir_buf_printf(b, ", \"timestamp\": %lld,\n       \"value\": ", (long long)r->timestamp);
		put_as_json(b, mem, r->value);
		if (r->header_count != 0) {
			weir_buf_puts(b, ", \"headers\": ");
			weir_case_put_headers(b, r->headers, r->header_count);
		}
		weir_buf_puts(b, "}");
	}
	weir_buf_puts(b, rs->count == 0 ? "]" : "\n     ]");
}

/* The document with the text of node `outputs` of each test replaced, or added to the test; old[i] is that node, or the
 * test without one. */
static enum weir_err write_update(const char *path, const char *text, size_t bytes, const struct weir_node *const *old,
				  const struct weir_suite *su, const struct results *rs, struct weir_mem *mem,
				  struct weir_diag **dg)
{
	struct weir_buf b = {0};
	const char *at = text;
	for (uint32_t i = 0; i < su->count; i++) {
		bool add = old[i]->kind == WEIR_NODE_OBJECT;
		const char *end = old[i]->text + old[i]->bytes;
		const char *to = add ? end - 1 : old[i]->text; /* before the brace */
		weir_buf_put(&b, at, (size_t)(to - at));
		if (add)
			weir_buf_printf(&b, "%s\"outputs\": ", old[i]->first != NULL ? ", " : "");
		put_outputs(&b, mem, su, &su->test[i], &rs[i]);
		at = add ? to : end;
	}
	weir_buf_put(&b, at, (size_t)(text + bytes - at));
	FILE *f = fopen(path, "wbe");
	bool good = f != NULL && fwrite(b.data, 1, b.bytes, f) == b.bytes;
	int error = errno;
	if (f != NULL && fclose(f) != 0)
		good = false;
	weir_buf_fini(&b);
	return good ? WEIR_OK : weir_diag_set(dg, WEIR_E_IO, "cannot write %s: %s", path, strerror(error));
}

/* ---- files ---- */

static enum weir_err read_document(struct weir_mem *mem, const char *path, const char **text, size_t *bytes,
				   struct weir_node **root, struct weir_diag **dg)
{
	enum weir_err err = weir_file_read(mem, path, text, bytes, dg);
	return err == WEIR_OK ? weir_document_parse(root, mem, path, *text, *bytes, dg) : err;
}

/* `revenue.sql` to `revenue_test.json`. */
static const char *test_file_of(struct weir_mem *mem, const char *sql)
{
	const char *slash = strrchr(sql, '/');
	const char *dot = strrchr(sql, '.');
	size_t bytes = dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - sql) : strlen(sql);
	return weir_mem_printf(mem, "%.*s_test.json", (int)bytes, sql);
}

static void worst(struct test_run *tr, int code)
{
	if (code == WEIR_EXIT_CONF || tr->code == WEIR_EXIT_OK)
		tr->code = code;
}

/* Runs every case of a suite; with --update writes what came out into the file that held the outputs. */
static void run_suite(struct test_run *tr, const char *file, struct weir_suite *su, struct weir_mem *mem,
		      const char *path, const char *text, size_t bytes, const struct weir_node *const *old)
{
	struct results *rs = weir_mem_take(mem, su->count * sizeof *rs + 1);
	for (uint32_t i = 0; i < su->count; i++) {
		struct weir_buf why = {0};
		int code = run_case(tr, file, su, &su->test[i], mem, &rs[i], &why);
		if (code != WEIR_EXIT_OK) { /* refused: the same for every case */
			for (; i < su->count; i++)
				report_refused(tr, su->file, su->test[i].name);
			worst(tr, code);
			weir_buf_fini(&why);
			return;
		}
		if (tr->update)
			why.bytes = 0;
		report(tr, su, &su->test[i], &why);
		weir_buf_fini(&why);
	}
	struct weir_diag *dg = NULL;
	if (tr->update && write_update(path, text, bytes, old, su, rs, mem, &dg) != WEIR_OK)
		worst(tr, weir_fail(dg));
	else if (tr->update)
		weir_talk("%s: expectations rewritten", path);
}

static void run_file(struct test_run *tr, const char *file)
{
	struct weir_mem mem;
	struct weir_diag *dg = NULL;
	struct weir_suite su = {0};
	struct weir_node *root;
	const char *text;
	size_t bytes;
	weir_mem_init(&mem, 0);
	const char *path = test_file_of(&mem, file);
	enum weir_err err = read_document(&mem, path, &text, &bytes, &root, &dg);
	if (err == WEIR_OK)
		err = weir_suite_load(&su, &mem, path, root, &dg);
	if (err != WEIR_OK) {
		report_refused(tr, path, "test");
		worst(tr, weir_fail(dg));
	} else {
		const struct weir_node **old = weir_mem_take(&mem, su.count * sizeof *old + 1);
		const struct weir_node *tests = weir_node_get(root, "tests");
		const struct weir_node *nd = tests != NULL ? tests->first : root;
		for (uint32_t i = 0; i < su.count; i++, nd = nd->next) {
			old[i] = weir_node_get(nd, "outputs");
			old[i] = old[i] != NULL ? old[i] : nd;
		}
		run_suite(tr, file, &su, &mem, path, text, bytes, old);
	}
	weir_mem_fini(&mem);
}

static void run_ksql(struct test_run *tr)
{
	struct weir_mem mem;
	struct weir_diag *dg = NULL;
	struct weir_suite su = {0};
	struct weir_node *inputs;
	struct weir_node *outputs;
	const char *text;
	const char *input_text;
	size_t bytes;
	weir_mem_init(&mem, 0);
	enum weir_err err = read_document(&mem, tr->input, &input_text, &bytes, &inputs, &dg);
	if (err == WEIR_OK)
		err = read_document(&mem, tr->output, &text, &bytes, &outputs, &dg);
	if (err == WEIR_OK)
		err = weir_suite_load_ksql(&su, &mem, tr->statements, inputs, outputs, &dg);
	if (err != WEIR_OK) {
		report_refused(tr, tr->statements, tr->statements);
		worst(tr, weir_fail(dg));
	} else {
		const struct weir_node *old = weir_node_get(outputs, "outputs");
		old = old != NULL ? old : outputs;
		run_suite(tr, tr->statements, &su, &mem, tr->output, text, bytes, &old);
	}
	weir_mem_fini(&mem);
}

static int write_junit(const struct test_run *tr)
{
	FILE *f = fopen(tr->junit, "wbe");
	bool good = f != NULL &&
		    fprintf(f,
			    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"weir\" tests=\"%u\" "
			    "failures=\"%u\">\n",
			    tr->passed + tr->failed, tr->failed) > 0 &&
		    fwrite(tr->xml.data, 1, tr->xml.bytes, f) == tr->xml.bytes && fputs("</testsuite>\n", f) >= 0;
	int error = errno;
	if (f != NULL && fclose(f) != 0)
		good = false;
	if (good)
		return WEIR_EXIT_OK;
	fprintf(stderr, "weir test: cannot write %s: %s\n", tr->junit, strerror(error));
	return WEIR_EXIT_FAILED;
}

/* ---- the command line ---- */

static const struct weir_flag test_options[] = {
	{OPT_STATEMENTS, 's', "sql-file", "FILE", "ksqlDB's test-runner form: the statements"},
	{OPT_INPUT, 'i', "input-file", "FILE", "  its inputs"},
	{OPT_OUTPUT, 'o', "output-file", "FILE", "  its expected outputs"},
	{OPT_UPDATE, 0, "update", NULL, "write what comes out into the test files as the expectation"},
	{OPT_JUNIT, 0, "junit", "FILE", "write the result as JUnit XML, too"},
	WEIR_JOB_OPTIONS,
};

/* -1: go on; else the exit code. */
static int read_arguments(struct test_run *tr)
{
	struct weir_args ag;
	weir_args_init(&ag, tr->vb, tr->argc, tr->argv);
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		switch (id) {
		case WEIR_ARGS_STOP:
			return ag.exit_code;
		case WEIR_ARGS_WORD:
		case WEIR_OPT_FILE:
			if (tr->file_count == FILES_MAX)
				return weir_usage_error(tr->vb, "more than %d files", FILES_MAX);
			tr->file[tr->file_count++] = ag.value;
			break;
		case OPT_STATEMENTS:
			tr->statements = ag.value;
			break;
		case OPT_INPUT:
			tr->input = ag.value;
			break;
		case OPT_OUTPUT:
			tr->output = ag.value;
			break;
		case OPT_JUNIT:
			tr->junit = ag.value;
			break;
		case OPT_UPDATE:
			tr->update = true;
			break;
		default:
			break;
		}
	}
	bool three = tr->statements != NULL || tr->input != NULL || tr->output != NULL;
	if (three && (tr->statements == NULL || tr->input == NULL || tr->output == NULL))
		return weir_usage_error(tr->vb, "-s, -i and -o belong together");
	if (!three && tr->file_count == 0)
		return weir_usage_error(tr->vb, "nothing to run: weir test FILE.sql..., or -s SQL -i INPUT -o OUTPUT");
	return -1;
}

static int test_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct test_run *tr = weir_xcalloc(1, sizeof *tr);
	tr->vb = vb;
	tr->argc = argc;
	tr->argv = argv;
	int code = read_arguments(tr);
	if (code < 0) {
		if (tr->statements != NULL)
			run_ksql(tr);
		for (uint32_t i = 0; i < tr->file_count; i++)
			run_file(tr, tr->file[i]);
		if (tr->junit != NULL)
			worst(tr, write_junit(tr));
		weir_data_printf("%u passed, %u failed\n", tr->passed, tr->failed);
		code = tr->passed + tr->failed == 0 ? WEIR_EXIT_USAGE : tr->code;
		code = weir_data_end(code);
	}
	weir_buf_fini(&tr->xml);
	free(tr);
	return code;
}

const struct weir_verb weir_verb_test = {
	.name = "test",
	.usage = "FILE.sql...  |  -s SQL -i INPUT -o OUTPUT",
	.brief = "run tests in virtual time, without a broker",
	.examples = "  weir test tools/examples/*.sql         each with its FILE_test.json\n"
		    "  weir test -s statements.sql -i input.json -o output.json\n",
	.options = test_options,
	.option_count = WEIR_COUNT_OF(test_options),
	.notes = "Any table's topic is a topic of one partition in memory, whatever its connector. Undefined ${names} "
		 "are filled in.\n"
		 "Exit codes: 0 all passed, 1 differs, 2 nothing to run, 78 the statements are refused.\n",
	.run = test_run,
};
