/* sql_text.h: SQL texts over five tables, compiled: what test_sql.c and test_sql_tables.c share. */
#ifndef WEIR_TESTS_UNIT_SQL_TEXT_H
#define WEIR_TESTS_UNIT_SQL_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/base.h"
#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"
#include "io/weir_engine.h"
#include "tools/sql/weir_sql.h"

/* Five lines: statements of a test start on line 6. */
static const char tables[] =
	"CREATE TABLE orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), ok BOOLEAN, ts BIGINT,"
	" event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)"
	" WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'order.placed', 'format' = 'json');\n"
	"CREATE TABLE shown (a STRING, b BIGINT) WITH ('connector' = 'print');\n"
	"CREATE TABLE keyed (w TIMESTAMP(3), m STRING, n BIGINT) WITH ('connector' = 'recorded', 'path' = 'out',"
	" 'topic' = 'keyed', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'm;w');\n"
	"CREATE TABLE appended (m STRING, n BIGINT) WITH ('connector' = 'recorded', 'path' = 'out', 'topic' = 'a',"
	" 'format' = 'json');\n"
	"CREATE TABLE upserted (m STRING, n BIGINT, PRIMARY KEY (m) NOT ENFORCED) WITH ('connector' = 'recorded',"
	" 'path' = 'out', 'topic' = 'u', 'format' = 'json');\n";

#define TUMBLE "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE))"
#define HOP    "TABLE(HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))"

struct compiled {
	struct weir_conf *cf;
	struct weir_sql *sq;
	struct weir_topology *tp;
	struct weir_diag *dg;
	enum weir_err err;
};

static inline void compile_text(struct compiled *c, const char *text, size_t bytes, const char *brokers)
{
	memset(c, 0, sizeof *c);
	c->cf = weir_conf_create();
	if (brokers != NULL)
		assert_int_equal(weir_conf_set(c->cf, "bootstrap.servers", brokers, NULL), WEIR_OK);
	c->err = weir_sql_open(&c->sq, c->cf, "q.sql", text, bytes, &c->dg);
	if (c->err == WEIR_OK)
		c->tp = weir_sql_take_topology(c->sq);
}

static inline void compile(struct compiled *c, const char *more)
{
	char *text = malloc(sizeof tables + strlen(more));
	memcpy(text, tables, sizeof tables - 1);
	memcpy(text + sizeof tables - 1, more, strlen(more) + 1);
	compile_text(c, text, strlen(text), NULL);
	free(text);
}

static inline void done(struct compiled *c)
{
	weir_sql_close(c->sq);
	weir_topology_destroy(c->tp);
	weir_conf_destroy(c->cf);
	weir_diag_destroy(c->dg);
}

static inline void expect_ok(struct compiled *c)
{
	if (c->err != WEIR_OK)
		fail_msg("%s", weir_diag_report(c->dg));
}

/* It compiles to something that runs; warning (may be NULL) is part of the only warning. */
static inline void expect(const char *more, const char *warning)
{
	struct compiled c;
	compile(&c, more);
	expect_ok(&c);
	assert_int_equal(weir_sql_action(c.sq), WEIR_SQL_RUN);
	assert_int_equal(weir_topology_check(c.tp, NULL), WEIR_OK);
	const char *w = weir_sql_warning(c.sq, 0), *want = warning != NULL ? warning : "";
	if ((w == NULL) != (warning == NULL) || (w != NULL && strstr(w, want) == NULL))
		fail_msg("%s: warning '%s', not '%s'", more, w == NULL ? "(none)" : w,
			 warning == NULL ? "(none)" : warning);
	assert_null(weir_sql_warning(c.sq, 1));
	done(&c);
}

/* The error at line 6 (the first after the tables) and the hint, which is "" for none. */
static inline void expect_error(const char *more, int column, const char *text, const char *hint)
{
	struct compiled c;
	char head[64], hint_line[300];
	compile(&c, more);
	if (c.err == WEIR_OK)
		fail_msg("no error: %s", more);
	const char *report = weir_diag_report(c.dg);
	snprintf(head, sizeof head, "q.sql:6:%d: error: ", column);
	if (strncmp(report, head, strlen(head)) != 0 || strstr(weir_diag_text(c.dg), text) == NULL)
		fail_msg("want %s%s, got: %s", head, text, report);
	snprintf(hint_line, sizeof hint_line, "hint: %s", hint);
	if (hint[0] == 0 ? strstr(report, "hint: ") != NULL : strstr(report, hint_line) == NULL)
		fail_msg("want %s, got: %s", hint_line, report);
	done(&c);
}

/* Kinds of nodes on the way from the last sink up to its first source. */
static inline void expect_nodes(const struct compiled *c, const enum weir_node_kind *kinds, uint32_t count)
{
	const struct weir_node *n = NULL;
	for (uint32_t i = 0; i < weir_topology_node_count(c->tp); i++)
		if (weir_topology_node(c->tp, i)->kind == WEIR_NODE_SINK)
			n = weir_topology_node(c->tp, i);
	for (uint32_t i = 0; i < count; i++) {
		assert_non_null(n);
		assert_int_equal(n->kind, kinds[i]);
		n = n->input_count > 0 ? n->inputs[0] : NULL;
	}
	assert_null(n);
}

static inline const struct weir_node *find_node(const struct compiled *c, enum weir_node_kind kind, uint32_t number)
{
	for (uint32_t i = 0; i < weir_topology_node_count(c->tp); i++)
		if (weir_topology_node(c->tp, i)->kind == kind && number-- == 0)
			return weir_topology_node(c->tp, i);
	return NULL;
}

#endif
