/* test_sql.c: SQL texts to topologies: what compiles, to which nodes, and what errors and warnings say, with their
 * places. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/state/aggregate.h"
#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"
#include "io/weir_engine.h"
#include "tests/unit/sql_text.h"

/* ---- what compiles ---- */

static void test_revenue(void **state)
{
	(void)state;
	static const char text[] =
		"CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), "
		"currency STRING,"
		" ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL "
		"'5' SECOND)"
		" WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'order.placed', 'format' = 'json');\n"
		"CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue "
		"DECIMAL(38,2),"
		" orders BIGINT) WITH ('connector' = 'recorded', 'path' = 'out', 'topic' = 'revenue.by-merchant', "
		"'format' = 'json',"
		" 'key.format' = 'raw', 'key.fields' = 'merchant_id');\n"
		"INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS "
		"orders\n"
		"FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES)) GROUP BY window_start, "
		"window_end,"
		" merchant_id;";
	struct compiled c;
	compile_text(&c, text, sizeof text - 1, NULL);
	expect_ok(&c);
	static const enum weir_node_kind kinds[] = {WEIR_NODE_SINK,      WEIR_NODE_PROJECT, WEIR_NODE_PROJECT,
						    WEIR_NODE_AGGREGATE, WEIR_NODE_WINDOW,  WEIR_NODE_SOURCE};
	expect_nodes(&c, kinds, 6);
	const struct weir_node *ag = find_node(&c, WEIR_NODE_AGGREGATE, 0);
	assert_string_equal(ag->state_name, "revenue-tumble");
	assert_int_equal(ag->window.size_ms, 300000);
	assert_int_equal(ag->key_count, 1);
	assert_int_equal(ag->agg_count, 2);
	assert_int_equal(ag->aggs[0].kind, WEIR_AGG_SUM);
	assert_int_equal(ag->aggs[1].kind, WEIR_AGG_COUNT_STAR);
	assert_int_equal(ag->state_grace_ms, 5000);
	assert_false(ag->changes);
	const struct weir_node *sink = find_node(&c, WEIR_NODE_SINK, 0);
	assert_int_equal(sink->column_count, 5);
	assert_string_equal(sink->columns[3].name, "revenue");
	assert_int_equal(sink->inputs[0]->columns[0].role, WEIR_ROLE_WINDOW_START);
	done(&c);
}

static void test_fraud(void **state)
{
	(void)state;
	struct compiled c;
	compile(&c, "INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) AS attempts FROM " HOP
		    " WHERE NOT ok GROUP BY window_start, window_end, merchant_id HAVING COUNT(*) > 5;");
	expect_ok(&c);
	static const enum weir_node_kind kinds[] = {WEIR_NODE_SINK,   WEIR_NODE_PROJECT,   WEIR_NODE_PROJECT,
						    WEIR_NODE_FILTER, WEIR_NODE_AGGREGATE, WEIR_NODE_FILTER,
						    WEIR_NODE_WINDOW, WEIR_NODE_SOURCE};
	expect_nodes(&c, kinds, 8);
	const struct weir_node *ag = find_node(&c, WEIR_NODE_AGGREGATE, 0);
	assert_int_equal(ag->window.kind, WEIR_WINDOW_HOP);
	assert_int_equal(ag->window.size_ms, 60000);
	assert_int_equal(ag->window.advance_ms, 10000);
	assert_int_equal(ag->agg_count, 1); /* COUNT(*) twice is one */
	done(&c);
}

static void test_split_and_merge(void **state)
{
	(void)state;
	static const char text[] =
		"CREATE TABLE eu (order_id BIGINT, amount DECIMAL(12,2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
		"INTERVAL '5' SECOND)"
		" WITH ('connector'='kafka', 'topic'='eu', 'properties.bootstrap.servers'='localhost:9092',"
		" 'properties.group.id'='g', 'scan.startup.mode'='earliest-offset', 'format'='json');\n"
		"CREATE TABLE us (order_id BIGINT, amount DECIMAL(12,2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
		"INTERVAL '5' SECOND)"
		" WITH ('connector'='kafka', 'topic'='us', 'properties.bootstrap.servers'='localhost:9092',"
		" 'properties.group.id'='g', 'scan.startup.mode'='group-offsets', 'format'='json');\n"
		"CREATE TABLE big (order_id BIGINT, amount DECIMAL(12,2), ts TIMESTAMP(3)) WITH ('connector'='kafka', "
		"'topic'='big',"
		" 'properties.bootstrap.servers'='localhost:9092', 'format'='json');\n"
		"CREATE TABLE small (order_id BIGINT, amount DECIMAL(12,2), ts TIMESTAMP(3)) WITH ('connector'='kafka',"
		" 'topic'='small', 'properties.bootstrap.servers'='localhost:9092', 'format'='json');\n"
		"CREATE VIEW all_orders AS SELECT * FROM eu UNION ALL SELECT * FROM us;\n"
		"EXECUTE STATEMENT SET BEGIN\n"
		"  INSERT INTO big   SELECT * FROM all_orders WHERE amount >= 1000;\n"
		"  INSERT INTO small SELECT * FROM all_orders WHERE amount <  1000;\n"
		"END;";
	struct compiled c;
	compile_text(&c, text, sizeof text - 1, "file:/tmp/rec");
	expect_ok(&c);
	assert_non_null(find_node(&c, WEIR_NODE_SINK, 1));
	assert_null(find_node(&c, WEIR_NODE_UNION, 1)); /* the view is compiled once */
	const struct weir_node *us = find_node(&c, WEIR_NODE_SOURCE, 1);
	assert_int_equal(us->table->options.connector, WEIR_CONNECTOR_RECORDED);
	assert_string_equal(us->table->options.path, "/tmp/rec");
	assert_string_equal(us->table->options.scan_startup_mode, "earliest-offset");
	assert_int_equal(find_node(&c, WEIR_NODE_UNION, 0)->rowtime, 2);
	assert_string_equal(weir_conf_get(c.cf, "application.id"), "g");
	done(&c);
	compile_text(&c, text, sizeof text - 1, NULL); /* the same on brokers */
	expect_ok(&c);
	us = find_node(&c, WEIR_NODE_SOURCE, 1);
	assert_int_equal(us->table->options.connector, WEIR_CONNECTOR_KAFKA);
	assert_string_equal(us->table->options.bootstrap_servers, "localhost:9092");
	assert_string_equal(us->table->options.scan_startup_mode, "group-offsets");
	done(&c);
}

static void test_queries_that_compile(void **state)
{
	(void)state;
	expect("SELECT * FROM orders;", NULL);
	expect("SELECT o.order_id AS id, amount * 2 twice FROM orders AS o WHERE o.ok AND amount > 5 -- no semicolon",
	       NULL);
	expect("SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id;", NULL);
	expect("SELECT SUM(amount) AS s, COUNT(*) FILTER (WHERE ok) c, COUNT(DISTINCT merchant_id) FROM orders", NULL);
	expect("INSERT INTO upserted SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id;", NULL);
	expect("INSERT INTO shown SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id;", NULL);
	expect("INSERT INTO appended (n) SELECT ts FROM orders;", NULL);
	expect("INSERT INTO appended (n, m) SELECT ts, order_id FROM orders;", NULL);
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM " TUMBLE
	       " GROUP BY window_start, window_end, merchant_id EMIT CHANGES;",
	       NULL);
	expect("INSERT INTO appended SELECT merchant_id, COUNT(*) FROM " TUMBLE
	       " GROUP BY merchant_id, window_end, window_start EMIT FINAL;",
	       NULL);
	expect("INSERT INTO upserted SELECT merchant_id, COUNT(*) FROM " TUMBLE
	       " GROUP BY window_start, window_end, merchant_id EMIT CHANGES;",
	       "q.sql:6:13: warning: the key of sink upserted lacks window_start");
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders,"
	       " DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id;",
	       "q.sql:6:73: warning: without PARTITION BY a session spans all keys, and has a row for each merchant_id;"
	       " SESSION(TABLE t PARTITION BY merchant_id, ...)");
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION "
	       "BY merchant_id, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, "
	       "merchant_id, order_id;",
	       NULL);
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION "
	       "BY (merchant_id, order_id), DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, "
	       "window_end, merchant_id, order_id;",
	       NULL);
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION "
	       "BY (merchant_id), DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, "
	       "merchant_id;",
	       NULL);
	expect_error("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders,"
		     " DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id"
		     " EMIT CHANGES;",
		     73, "not supported yet: EMIT CHANGES of sessions that span keys",
		     "PARTITION BY all group columns");
	expect_error("INSERT INTO keyed SELECT window_start, STDDEV_POP(amount) FROM " TUMBLE
		     " GROUP BY window_start, window_end;",
		     40, "not supported yet: STDDEV_POP", "");
	expect_error("INSERT INTO keyed SELECT window_start, SUMM(amount) FROM " TUMBLE
		     " GROUP BY window_start, window_end;",
		     40, "unknown function SUMM", "did you mean SUM?");
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION "
	       "BY"
	       " merchant_id, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, "
	       "merchant_id;",
	       NULL);
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE orders, "
	       "TIMECOL =>"
	       " DESCRIPTOR(event_time), SIZE => INTERVAL '1' MINUTE, OFFSET => INTERVAL '5' SECOND))"
	       " GROUP BY window_start, window_end, merchant_id;",
	       NULL);
	/* An open window through a sub-select, and a window over the result of one. */
	expect("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM (SELECT window_start, window_end, "
	       "merchant_id"
	       " FROM " HOP ") GROUP BY window_start, window_end, merchant_id HAVING COUNT(DISTINCT merchant_id) > 5;",
	       NULL);
	expect("CREATE VIEW v AS SELECT window_time AS t, merchant_id, COUNT(*) AS n FROM " TUMBLE
	       " GROUP BY window_start, window_end, window_time, merchant_id;"
	       "INSERT INTO keyed SELECT window_start, merchant_id, SUM(n) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(t),"
	       " INTERVAL '1' HOUR)) GROUP BY window_start, window_end, merchant_id;",
	       NULL);
	expect("SELECT merchant_id, window_start FROM " TUMBLE " WHERE amount > 5;", NULL);
	expect("SELECT t.a FROM (SELECT merchant_id AS a FROM orders UNION ALL SELECT order_id FROM orders) AS t",
	       NULL);
	expect("SELECT x FROM (SELECT merchant_id, ts FROM orders) AS t (x, y)", NULL);
	expect("(SELECT ts FROM orders) UNION ALL (SELECT 1 FROM orders)", NULL);
	expect("CREATE TEMPORARY VIEW IF NOT EXISTS v (a, b) AS SELECT merchant_id, ts FROM orders; SELECT v.b FROM v;",
	       NULL);
	expect("BEGIN STATEMENT SET; INSERT INTO shown SELECT order_id, ts FROM orders; INSERT INTO appended SELECT "
	       "order_id,"
	       " ts FROM orders; END;",
	       NULL);
	expect("SELECT * FROM default_catalog.default_database.orders", NULL);
	expect("ADD JAR 'x.jar'; SELECT ts FROM orders", "q.sql:6:1: warning: ADD is ignored");
	expect("USE CATALOG x; SELECT ts FROM orders", "q.sql:6:1: warning: USE is ignored");
}

static void test_group_expressions(void **state)
{
	(void)state;
	struct compiled c;
	compile(&c,
		"SELECT ABS(ts) + 1, ABS(ts), MAX(amount) + MAX(amount), o.merchant_id FROM orders o GROUP BY ABS(ts),"
		" merchant_id HAVING ABS(ts) > 5 AND MIN(amount) > 1;");
	expect_ok(&c);
	const struct weir_node *ag = find_node(&c, WEIR_NODE_AGGREGATE, 0);
	assert_int_equal(ag->key_count, 2);
	assert_int_equal(ag->agg_count, 2);
	assert_int_equal(ag->agg_arg_count, 1);
	assert_true(ag->is_table);
	assert_true(find_node(&c, WEIR_NODE_SINK, 0)->prints_rows);
	done(&c);
	expect_error("SELECT order_id, COUNT(*) FROM orders GROUP BY merchant_id;", 8,
		     "column order_id must be in GROUP BY or inside an aggregate",
		     "add it to GROUP BY, or take FIRST_VALUE or LAST_VALUE of it");
	expect_error("SELECT * FROM orders GROUP BY merchant_id;", 8, "* cannot stand beside GROUP BY", "name the");
	expect_error("SELECT UPPER(merchant_id) m FROM orders GROUP BY m;", 50,
		     "m is an alias: GROUP BY does not see it", "write the expression itself");
	expect_error("SELECT ts FROM orders GROUP BY 1;", 32, "GROUP BY takes no positions",
		     "write the expression itself");
	expect_error("SELECT SUM(COUNT(*)) FROM orders", 12, "an aggregate cannot stand inside another", "");
	expect_error("SELECT SUM(merchant_id) FROM orders", 8, "SUM", "");
	expect_error("SELECT ts FROM orders GROUP BY COUNT(*)", 32, "GROUP BY cannot hold an aggregate", "");
	expect_error("SELECT COUNT(*) FROM orders HAVING COUNT(*)", 36, "HAVING must be BOOLEAN, not BIGINT", "");
	expect_error("SELECT ts FROM orders WHERE COUNT(*) > 1", 29, "WHERE cannot hold an aggregate: use HAVING", "");
}

/* ---- errors ---- */

static void test_names(void **state)
{
	(void)state;
	expect_error("INSERT INTO apended SELECT merchant_id, ts FROM orders;", 13, "unknown table apended",
		     "did you mean appended?");
	expect_error("SELECT ts FROM orders WHERE merchant_id = \"m-1\"", 43, "unknown column m-1",
		     "double quotes are for names, single ones for strings: 'm-1'");
	expect_error("CREATE TABLE t (a INT) WTH ('connector' = 'print');", 24, "expected WITH, found 'WTH'",
		     "write WITH (");
	expect_error("CREATE TABLE t (a TIMESTAMP(3), WATERMRK FOR a AS a);", 33, "expected a column or WATERMARK FOR",
		     "write WATERMARK FOR");
	expect_error("CREATE TABLE t (a TIMESTAMP(3), WATERMARK a AS a);", 33, "expected a column or WATERMARK FOR",
		     "write WATERMARK FOR");
	expect_error("SELECT * FROM order;", 15, "expected a table name, found 'order'",
		     "a keyword as a name needs quotes: `order`");
	expect_error("SELECT * FROM ordesr;", 15, "unknown table ordesr", "did you mean orders?");
	expect_error("SELECT ts FROM orders WHERE amout > 1;", 29, "unknown column amout", "did you mean amount?");
	expect_error("SELECT x.ts FROM orders AS o", 8, "unknown table or column x in x.ts", "did you mean o.ts?");
	expect_error("SELECT orders.ts FROM orders AS o", 8, "unknown table or column orders", "did you mean o.ts?");
	expect_error("SELECT x.y FROM orders AS o, upserted u WHERE o.merchant_id = u.m", 8,
		     "unknown table or column x in x.y", "columns here are those of o, u");
	expect_error("SELECT u.ts FROM orders AS o, upserted u WHERE o.merchant_id = u.m", 8, "unknown column u.ts",
		     "did you mean o.ts?");
	expect_error("SELECT u.nn FROM orders AS o, upserted u WHERE o.merchant_id = u.m", 8, "unknown column u.nn",
		     "did you mean n?");
	expect_error("SELECT v.a FROM (SELECT ts AS a, ok AS a FROM orders) v", 8, "column a is ambiguous",
		     "two columns of v are called so: rename one with AS");
	expect_error("SELECT a FROM (SELECT ts AS a, ok AS a FROM orders) v", 8, "column a is ambiguous",
		     "two columns of v are called so: rename one with AS");
	expect_error("SELECT (SELECT MAX(n) FROM upserted) FROM orders", 9, "not supported yet: a sub-query as a value",
		     "join with it: LEFT JOIN (SELECT k, MAX(x) AS x FROM t GROUP BY k) AS g ON a.k = g.k");
	expect_error("SELECT o.* FROM orders", 8, "unknown table o", "");
	expect_error("INSERT INTO appended (m, x) SELECT order_id, ts FROM orders", 26,
		     "table appended has no column x", "");
	expect_error("SELECT UPER(order_id) FROM orders", 8, "unknown function UPER", "did you mean UPPER?");
	expect_error("SELECT COUNT(*) FROM orders GROUP BY TUMBLE(event_time, INTERVAL '5' MINUTES)", 38,
		     "unknown function TUMBLE",
		     "a window is a table of its rows: FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), ...)) GROUP BY "
		     "window_start, window_end");
	expect_error("SELECT * FROM a.b", 15, "weir has no catalogs or databases", "name the table alone");
	expect_error("CREATE TABLE shown (a INT) WITH ('connector' = 'print')", 14, "shown exists already", "");
}

static void test_windows(void **state)
{
	(void)state;
	expect_error("SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY "
		     "window_start,"
		     " window_end",
		     60, "column ts is not a time attribute", "declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND");
	expect_error("SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_tim), INTERVAL '1' MINUTE))", 60,
		     "unknown column event_tim", "did you mean event_time?");
	expect_error("SELECT window_start FROM " TUMBLE " GROUP BY window_start", 108,
		     "a window's GROUP BY needs both window_start and window_end",
		     "GROUP BY window_start, window_end, ...");
	expect_error("SELECT merchant_id FROM " HOP, 31, "not supported yet: rows of HOP or SESSION windows",
		     "aggregate with GROUP BY window_start, window_end");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE))", 28,
		     "expected TABLE and a table name", "write TUMBLE(TABLE t");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(TABLE orders, event_time, INTERVAL '1' MINUTE))", 42,
		     "expected DESCRIPTOR and the time column", "write DESCRIPTOR(event_time)");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), 60000))", 66,
		     "expected an INTERVAL for the size", "write INTERVAL '5' MINUTE");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time)))", 21,
		     "TUMBLE needs its argument SIZE", "TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '5' MINUTES)");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '0' SECOND))", 21,
		     "the size of a window must be positive", "");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MONTH))", 66,
		     "the size cannot be in months or years", "months have no fixed length: use days");
	expect_error("SELECT 1 FROM TABLE(HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' HOUR, INTERVAL '1' "
		     "MINUTE))",
		     21, "slides further than its size", "HOP takes the slide first, then the size");
	expect_error("SELECT 1 FROM TABLE(TUMBLE(SIZ => INTERVAL '1' HOUR))", 28, "TUMBLE has no argument SIZ",
		     "TUMBLE(");
	expect_error("SELECT 1 FROM TABLE(CUMULATE(TABLE orders))", 21, "CUMULATE needs its argument TIMECOL",
		     "CUMULATE(TABLE t, DESCRIPTOR(c), INTERVAL");
	expect_error(
		"SELECT 1 FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' DAY, INTERVAL '1' "
		"HOUR))",
		21, "the size a multiple of it", "CUMULATE takes the step first");
	expect_error("SELECT window_start, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION BY order_id, "
		     "DESCRIPTOR(event_time),"
		     " INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id",
		     141, "a SESSION partitioned by other columns", "group by the columns of PARTITION BY");
	expect_error("SELECT window_start, merchant_id FROM " TUMBLE " GROUP BY merchant_id", 8,
		     "window_start needs window_start and window_end in GROUP BY", "GROUP BY window_start");
	expect_error("SELECT COUNT(*) FROM " HOP " GROUP BY merchant_id", 123,
		     "a plain GROUP BY over HOP, CUMULATE or SESSION", "GROUP BY");
	expect_error("SELECT COUNT(*) FROM " HOP
		     " WHERE window_start > TIMESTAMP '2026-01-01 00:00:00' GROUP BY window_start,"
		     " window_end",
		     133, "computing with the window of a row", "aggregate with GROUP BY");
}

static void test_emission(void **state)
{
	(void)state;
	expect_error(
		"INSERT INTO appended SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id;", 13,
		"a plain GROUP BY or a table is rows that change: sink appended only appends",
		"give the sink a PRIMARY KEY (...) NOT ENFORCED or 'format' = 'changelog-json', or GROUP BY a window");
	expect_error("INSERT INTO shown SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id EMIT FINAL;", 81,
		     "a plain GROUP BY never has final rows", "GROUP BY a window to have final rows");
	expect_error("INSERT INTO appended SELECT merchant_id, COUNT(*) FROM " TUMBLE
		     " GROUP BY window_start, window_end, merchant_id EMIT CHANGES;",
		     13, "EMIT CHANGES needs a key: sink appended", "the key must hold merchant_id, window_start");
	expect_error("INSERT INTO upserted SELECT UPPER(merchant_id), COUNT(*) FROM orders GROUP BY merchant_id;", 13,
		     "does not determine the row: column merchant_id is not in it", "the key must hold merchant_id");
	expect_error("INSERT INTO keyed SELECT window_start, merchant_id, COUNT(*) FROM TABLE(SESSION(TABLE orders "
		     "PARTITION BY"
		     " merchant_id, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end,"
		     " merchant_id EMIT CHANGES;",
		     13, "it lacks the session's window", "the key must hold merchant_id, window_start, window_end");
	expect_error("SELECT * FROM (SELECT ts FROM orders EMIT CHANGES)", 38, "EMIT cannot stand in a sub-query",
		     "EMIT ends the whole query");
	expect_error("SELECT ts FROM orders EMIT NOTHING", 28,
		     "expected ; or the end of the statement, found 'NOTHING'", "");
}

static void test_columns_of_sinks(void **state)
{
	(void)state;
	expect_error("INSERT INTO appended SELECT merchant_id, amount, ts FROM orders;", 22,
		     "appended takes 2 columns, the query gives 3", "");
	expect_error("INSERT INTO appended SELECT merchant_id, merchant_id FROM orders;", 42,
		     "column n of appended is BIGINT, the query gives STRING", "CAST it");
	expect_error("INSERT INTO upserted (n) SELECT ts FROM orders", 13, "column m is NOT NULL and gets no value",
		     "");
	expect_error("INSERT INTO appended (m, m) SELECT order_id, ts FROM orders", 26, "column m stands twice", "");
	expect_error("SELECT ts FROM orders UNION ALL SELECT ts, ok FROM orders", 33, "this SELECT has 2 columns", "");
	expect_error("SELECT ts FROM orders UNION ALL SELECT order_id FROM orders", 33,
		     "UNION ALL: column ts is STRING here and BIGINT before", "CAST one of them");
	expect_error("INSERT INTO orders SELECT * FROM orders", 20, "orders takes 5 columns, the query gives 6", "");
	expect_error("SELECT * FROM shown", 15, "cannot be", "");
}

/* The join that a query becomes: below projections and filters of its sink. */
static const struct weir_node *join_of(struct compiled *c, const char *query)
{
	compile(c, query);
	expect_ok(c);
	const struct weir_node *n = NULL;
	for (uint32_t i = 0; i < weir_topology_node_count(c->tp); i++)
		if (weir_topology_node(c->tp, i)->kind == WEIR_NODE_JOIN)
			n = weir_topology_node(c->tp, i);
	assert_non_null(n);
	return n;
}

#define O_P "SELECT o.ts FROM orders o JOIN orders p ON o.order_id = p.order_id AND "

static void test_bounds_of_joins(void **state)
{
	(void)state;
	static const struct {
		const char *on;
		int64_t before, after;
	} cases[] = {
		{"p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' HOUR", 0, 3600000},
		{"p.event_time BETWEEN o.event_time - INTERVAL '5' SECOND AND o.event_time", 5000, 0},
		{"o.event_time <= p.event_time AND p.event_time < o.event_time + INTERVAL '1' SECOND", 0, 999},
		{"o.event_time > p.event_time - INTERVAL '2' SECOND AND o.event_time - INTERVAL '3' SECOND <= "
		 "p.event_time",
		 3000, 1999},
		{"p.event_time >= o.event_time + INTERVAL '1' SECOND AND p.event_time + INTERVAL '1' SECOND <= "
		 "o.event_time + INTERVAL '5' SECOND",
		 -1000, 4000},
		{"o.event_time = p.event_time", 0, 0},
		{"p.event_time BETWEEN o.event_time - INTERVAL '9' SECOND AND o.event_time + INTERVAL '9' SECOND AND "
		 "p.event_time >= o.event_time - INTERVAL '1' SECOND",
		 1000, 9000},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		char query[500];
		struct compiled c;
		snprintf(query, sizeof query, O_P "%s", cases[i].on);
		const struct weir_join_spec *spec = join_of(&c, query)->join;
		assert_true(spec->within);
		assert_int_equal(spec->key_count, 1);
		if (spec->before_ms != cases[i].before || spec->after_ms != cases[i].after)
			fail_msg("%s: %lld and %lld", query, (long long)spec->before_ms, (long long)spec->after_ms);
		done(&c);
	}
}

static void test_what_else_a_join_needs(void **state)
{
	(void)state;
	struct compiled c;
	const char *time = "p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' HOUR";
	char query[500];
	snprintf(query, sizeof query,
		 "SELECT o.ts FROM orders o JOIN orders p ON o.order_id = p.order_id AND UPPER(o.merchant_id) = "
		 "p.merchant_id "
		 "AND %s AND o.amount > p.amount",
		 time);
	const struct weir_node *n = join_of(&c, query);
	assert_int_equal(n->join->kind, WEIR_JOIN_INNER);
	assert_int_equal(n->join->key_count, 2);
	assert_null(n->join->residual);
	expect_nodes(&c,
		     (enum weir_node_kind[]){WEIR_NODE_SINK, WEIR_NODE_PROJECT, WEIR_NODE_FILTER, WEIR_NODE_JOIN,
					     WEIR_NODE_SOURCE},
		     5);
	done(&c);
	snprintf(
		query, sizeof query,
		"SELECT o.ts FROM orders o FULL OUTER JOIN orders p ON o.order_id = p.order_id AND %s AND o.amount > 5",
		time);
	n = join_of(&c, query);
	assert_int_equal(n->join->kind, WEIR_JOIN_FULL);
	assert_non_null(n->join->residual);
	done(&c);
	n = join_of(&c, "SELECT o.ts, u.n FROM orders o LEFT JOIN upserted u ON o.merchant_id = u.m AND u.n > 5");
	assert_int_equal(n->join->kind, WEIR_JOIN_LEFT);
	assert_false(n->join->within);
	assert_non_null(n->join->residual);
	done(&c);
	n = join_of(&c, "SELECT o.ts, u.n FROM orders o JOIN upserted FOR SYSTEM_TIME AS OF o.event_time AS u ON "
			"o.merchant_id = u.m");
	assert_true(n->join->versioned);
	done(&c);
	n = join_of(&c, "SELECT a.n, b.n FROM upserted a LEFT JOIN upserted b ON a.m = b.m");
	assert_true(n->is_table);
	done(&c);
	expect("SELECT n, COUNT(*) FROM upserted WHERE m <> 'x' GROUP BY n;", NULL);
	expect("SELECT a.n, SUM(b.n) FROM upserted a JOIN upserted b ON a.m = b.m GROUP BY a.n;", NULL);
	/* Either side's key names a row of an inner join, in joins of joins too. */
	expect("INSERT INTO upserted SELECT COALESCE(b.m, a.m), a.n FROM upserted a FULL JOIN upserted b ON a.m = b.m;",
	       NULL);
	expect("CREATE TEMPORARY VIEW ab AS SELECT a.m AS am, b.m AS bm, a.n FROM upserted a JOIN upserted b ON a.m = "
	       "b.m; INSERT INTO upserted SELECT bm, ab.n FROM ab JOIN upserted c ON ab.bm = c.m;",
	       NULL);
	expect("CREATE TEMPORARY VIEW ab AS SELECT a.m AS am, b.m AS bm, a.n FROM upserted a JOIN upserted b ON a.m = "
	       "b.m; SELECT c.n FROM ab RIGHT JOIN upserted c ON ab.bm = c.m;",
	       NULL);
	n = join_of(&c, "SELECT * FROM upserted u JOIN orders o ON o.merchant_id = u.m");
	assert_int_equal(n->column_count, 8);
	done(&c);
	expect("CREATE TEMPORARY VIEW per AS SELECT merchant_id AS m, SUM(amount) AS total FROM orders GROUP BY "
	       "merchant_id; "
	       "SELECT o.ts, total FROM orders o JOIN per ON o.merchant_id = per.m;",
	       NULL);
}

/* What is missing between two streams is told in the names of the query. */
static void test_joins_without_bounds(void **state)
{
	(void)state;
	static const char no_time[] = "CREATE TABLE bare (order_id STRING, ts BIGINT) WITH ('connector' = 'recorded', "
				      "'path' = 'in', 'topic' = 'b', 'format' = 'json'); ";
	char text[1000];
	snprintf(text, sizeof text, "%sSELECT o.ts FROM orders o JOIN bare b ON o.order_id = b.order_id", no_time);
	expect_error(
		text, 182, "a join of two streams needs bounds in time",
		"b has none: declare WATERMARK FOR t AS t - INTERVAL '5' SECOND where it is created, or PRIMARY KEY");
	expect_error(O_P "p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' MONTH", 68,
		     "a join of two streams needs bounds in time",
		     "months are not equally long, write days: p.event_time BETWEEN o.event_time AND o.event_time");
	expect_error(O_P "p.event_time BETWEEN o.event_time + INTERVAL '2' HOUR AND o.event_time", 68,
		     "the bounds in time leave nothing", "BETWEEN takes the earlier bound first");
	expect_error("SELECT a.n FROM (SELECT window_start, window_end, merchant_id AS m, COUNT(*) AS n FROM " TUMBLE
		     "GROUP BY window_start, window_end, merchant_id) a JOIN (SELECT window_start, window_end, "
		     "merchant_id AS m, COUNT(*) AS n FROM " TUMBLE
		     "GROUP BY window_start, window_end, merchant_id) b ON a.m = b.m",
		     415, "a join of two streams needs bounds in time",
		     "add b.window_start = a.window_start AND b.window_end = a.window_end");
	/* The time of a side that may be missing is none any more: in a window, and in another join. */
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const kinds[] = {"LEFT", "RIGHT", "FULL"};
		snprintf(
			text, sizeof text,
			"CREATE VIEW v AS SELECT o.order_id AS k, %s.event_time AS t FROM orders o %s JOIN orders p ON "
			"o.order_id = p.order_id AND p.event_time = o.event_time; SELECT COUNT(*) FROM "
			"TABLE(TUMBLE(TABLE "
			"v, DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
			i == 0 ? "p" : "o", kinds[i]);
		expect_error(text, i == 1 ? 208 : 207, "column t is no time attribute any more: it is NULL in rows",
			     "take the time attribute of the side whose rows are kept");
		snprintf(
			text, sizeof text,
			"CREATE VIEW v AS SELECT o.order_id AS k, %s.event_time AS t FROM orders o %s JOIN orders p ON "
			"o.order_id = p.order_id AND p.event_time = o.event_time; SELECT 1 FROM orders q JOIN v ON "
			"q.order_id = k AND q.event_time = t",
			i == 0 ? "p" : "o", kinds[i]);
		expect_error(text, i == 1 ? 202 : 201, "v.t is none any more, it is NULL in rows",
			     "take the time attribute of the side whose rows are kept");
	}
}

static void test_joins_that_cannot_be(void **state)
{
	(void)state;
	expect_error("SELECT o.ts FROM orders o JOIN orders o ON o.order_id = o.order_id", 32,
		     "two tables are called o", "give one of them another name: orders AS o2");
	expect_error("SELECT orders.ts FROM orders JOIN orders ON ts = ts", 35, "two tables are called orders",
		     "give one of them another name: orders AS orders2");
	expect_error("SELECT o.ts FROM orders o JOIN upserted u ON o.merchant_id = u.m JOIN upserted u ON u.m = o.ts",
		     71, "two tables are called u", "give one of them another name: upserted AS u2");
	expect_error(
		"SELECT o.ts FROM orders o JOIN upserted AS u FOR SYSTEM_TIME AS OF o.event_time ON o.merchant_id = "
		"u.m",
		46, "expected ON after JOIN", "the table's other name comes last: JOIN t FOR SYSTEM_TIME AS OF");
	expect_error("SELECT o.ts FROM orders o JOIN orders p WITHIN 1 HOURS ON o.order_id = p.order_id", 41,
		     "expected ON after JOIN", "bounds in time stand in ON: a.k = t.k AND t.event_time BETWEEN");
	expect_error("SELECT o.ts FROM orders o LEFT SEMI JOIN upserted u ON o.merchant_id = u.m", 27,
		     "not supported yet: SEMI JOIN", "write WHERE EXISTS (SELECT 1 FROM t WHERE t.k = x)");
	expect_error("SELECT o.ts FROM orders o ANTI JOIN upserted u ON o.merchant_id = u.m", 27,
		     "not supported yet: ANTI JOIN", "write WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = x)");
	expect_error("SELECT o.ts FROM orders o LEFT JOIN LATERAL (SELECT n FROM upserted) ON TRUE", 37,
		     "not supported yet: LATERAL", "join the table itself: JOIN t ON a.k = t.k");
	expect_error("SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE upserted, DESCRIPTOR(n), INTERVAL '1' MINUTE))", 28,
		     "not supported yet: windows over a table (upserted has a PRIMARY KEY)",
		     "to read its records as a stream, declare the topic once more without PRIMARY KEY");
	expect_error("SELECT o.ts FROM orders o JOIN orders p ON o.order_id = p.order_id", 55,
		     "a join of two streams needs bounds in time",
		     "add p.event_time BETWEEN o.event_time - INTERVAL '1' HOUR AND o.event_time + INTERVAL '1' HOUR");
	expect_error("SELECT o.ts FROM orders o JOIN orders p ON o.event_time = p.event_time", 57,
		     "a join needs columns that are equal", "compare a column of each side");
	expect_error("SELECT o.ts FROM orders o JOIN upserted u ON o.ts = u.n", 51,
		     "a table is joined by its whole key: ON does not compare m", "compare it with a column");
	expect_error("SELECT o.ts FROM orders o RIGHT JOIN upserted u ON o.merchant_id = u.m", 27,
		     "rows of a table cannot be kept", "keep the stream's rows");
	expect_error("SELECT o.ts FROM orders o JOIN orders p", 40, "expected ON after JOIN", "write JOIN t ON");
	expect_error(
		"SELECT event_time FROM orders o JOIN orders p ON o.order_id = p.order_id AND p.event_time BETWEEN "
		"o.event_time AND o.event_time",
		8, "column event_time is ambiguous", "write o.event_time");
	expect_error("SELECT o.ts FROM orders o JOIN orders FOR SYSTEM_TIME AS OF o.event_time AS p ON o.order_id = "
		     "p.order_id",
		     61, "joins a stream with a table on its right", "give the table a PRIMARY KEY");
	expect_error("SELECT o.ts FROM orders o JOIN upserted FOR SYSTEM_TIME AS OF o.ts AS u ON o.merchant_id = u.m",
		     63, "takes the time attribute of the left side", "name the stream's time attribute");
	expect_error(
		"INSERT INTO appended SELECT a.m, a.n FROM upserted a FULL JOIN upserted b ON a.m = b.m AND a.n > b.n",
		13, "two rows of the query may have one key", "give each SELECT of a UNION ALL");
	expect_error("INSERT INTO upserted SELECT a.m, a.n FROM upserted a FULL JOIN upserted b ON a.m = b.m", 13,
		     "of a full join m of either side may be NULL", "the key must hold COALESCE(l.m, r.m)");
	expect_error("INSERT INTO upserted SELECT CAST(a.n AS STRING), a.n FROM upserted a FULL JOIN upserted b "
		     "ON a.m = b.m",
		     13, "of a full join m of either side may be NULL", "the key must hold COALESCE(l.m, r.m)");
	expect_error("INSERT INTO upserted SELECT b.m, a.n FROM upserted a LEFT JOIN upserted b ON a.m = b.m", 13,
		     "column a.m is not in it", "the key must hold a.m");
	expect_error("SELECT 1 FROM (SELECT a.m AS am, b.m AS bm FROM upserted a FULL JOIN upserted b ON a.m = b.m "
		     "AND a.n > b.n) ab LEFT JOIN upserted c ON c.m = bm",
		     112, "joining what a full join of tables makes", "FULL JOIN last");
	expect("SELECT COUNT(*) FROM upserted a FULL JOIN upserted b ON a.m = b.m AND a.n > b.n", NULL);
	expect("SELECT 1 FROM upserted a FULL JOIN upserted b ON a.m = b.m JOIN upserted c ON c.m = a.m", NULL);
	expect_error("INSERT INTO appended SELECT m, n FROM upserted", 13, "sink appended only appends",
		     "give the sink a PRIMARY KEY");
}

static void test_functions_over(void **state)
{
	(void)state;
	expect_error("SELECT COUNT(*) OVER (ORDER BY amount) FROM orders", 32, "by its time attribute",
		     "declare WATERMARK");
	expect_error("SELECT COUNT(*) OVER (PARTITION BY ok) FROM orders", 17, "by its time attribute",
		     "write ORDER BY");
	expect_error("SELECT COUNT(*) OVER (ORDER BY event_time DESC) FROM orders", 32, "ascending", "leave DESC");
	expect_error("SELECT COUNT(*) OVER w FROM orders", 22, "unknown window w", "add WINDOW");
	expect_error("SELECT LAG(ts, -1) OVER (ORDER BY event_time) FROM orders", 17, "from 0 to 1000000", "");
	expect_error("SELECT LAG(ts, 1, 'x') OVER (ORDER BY event_time) FROM orders", 19, "another type", "CAST");
	expect_error("SELECT LAG(ts) OVER (ORDER BY event_time ROWS 1 PRECEDING) FROM orders", 16, "no frame",
		     "leave ROWS");
	expect_error("SELECT UPPER(order_id) OVER (ORDER BY event_time) FROM orders", 8, "not supported: UPPER OVER",
		     "there are LAG");
	expect_error("SELECT COUNT(DISTINCT ts) OVER (ORDER BY event_time) FROM orders", 8, "COUNT(DISTINCT) OVER", "");
	expect_error("SELECT SUM(SUM(ts)) OVER (ORDER BY event_time) FROM orders", 8, "beside GROUP BY",
		     "aggregate in a sub-query");
	expect_error("SELECT ok, COUNT(*), COUNT(*) OVER (ORDER BY event_time) FROM orders GROUP BY ok", 22,
		     "beside GROUP BY", "aggregate in a sub-query");
	expect_error("SELECT ts FROM orders WHERE COUNT(*) OVER (ORDER BY event_time) > 1", 29, "cannot stand here",
		     "compute it in");
	expect_error("SELECT COUNT(*) OVER (ORDER BY event_time), COUNT(*) OVER (PARTITION BY ok ORDER BY event_time) "
		     "FROM orders",
		     54, "share PARTITION BY", "compute one of");
	expect_error("SELECT COUNT(*) OVER (ORDER BY n) FROM (SELECT ok, COUNT(*) AS n FROM orders GROUP BY ok)", 8,
		     "not for a table", "read the stream");
}

static void test_not_supported_yet(void **state)
{
	(void)state;
	expect_error("SELECT ts FROM orders NATURAL JOIN shown", 23, "not supported yet: NATURAL JOIN", "write JOIN");
	expect_error("SELECT ts FROM orders FOR SYSTEM_TIME AS OF ts", 45, "belongs to the right side of a join",
		     "write a JOIN t");
	expect_error("SELECT ts FROM orders ORDER BY ts", 23, "not supported yet: ORDER", "");
	expect_error("SELECT ts FROM orders LIMIT 5", 23, "not supported yet: LIMIT", "");
	expect_error("WITH x AS (SELECT 1) SELECT * FROM x", 1, "not supported yet: WITH", "use CREATE TEMPORARY VIEW");
	expect_error("SELECT 1", 9, "not supported yet: SELECT without FROM", "");
	expect_error("INSERT INTO shown VALUES ('a', 1)", 19, "not supported yet: VALUES", "");
	expect_error("ALTER TABLE orders", 1, "not supported yet: ALTER", "");
	expect_error("CREATE STREAM x", 8, "ksqlDB", "write CREATE TABLE");
	expect_error("SELECT CURRENT_TIMESTAMP FROM orders", 8, "not supported yet: CURRENT_TIMESTAMP",
		     "results never depend");
}

static void test_create_table(void **state)
{
	(void)state;
	expect_error("CREATE TABLE t (a INT, a INT) WITH ('connector' = 'print')", 24, "column a is declared twice",
		     "");
	expect_error("CREATE TABLE t (a INTEGR) WITH ('connector' = 'print')", 19, "unknown type INTEGR",
		     "did you mean INTEGER?");
	expect_error("CREATE TABLE t (a INT)", 14, "table t has no connector", "add 'connector' = 'recorded'");
	expect_error("CREATE TABLE t (a INT) WITH ('conector' = 'kafka')", 30, "unknown option 'conector'",
		     "did you mean 'connector'?");
	expect_error("CREATE TABLE t (a INT) WITH ('connector' = 'recordet')", 30, "recordet", "");
	expect_error("CREATE TABLE t (a INT) WITH ('connector' = 'recorded', 'path' = 'x', 'topik' = 't', 'format' = "
		     "'json')",
		     70, "connector 'recorded' has no option 'topik': did you mean 'topic'?", "");
	expect_error("CREATE TABLE t (a INT) WITH (connector = 'print')", 30,
		     "expected the name of an option as a string", "write 'connector' = 'kafka'");
	expect_error("CREATE TABLE t (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'print')", 38,
		     "the time column must be TIMESTAMP(3) or TIMESTAMP_LTZ(3), not INT", "add a computed column");
	expect_error("CREATE TABLE t (a TIMESTAMP, WATERMARK FOR a AS a) WITH ('connector' = 'print')", 44,
		     "at most milliseconds", "declare it with precision 3");
	expect_error("CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR b AS b) WITH ('connector' = 'print')", 47,
		     "WATERMARK: unknown column b", "");
	expect_error("CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS a + INTERVAL '1' SECOND) WITH ('connector' = "
		     "'print')",
		     54, "the watermark must be the time column itself",
		     "write WATERMARK FOR c AS c - INTERVAL '5' SECOND");
	expect_error("CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS a - INTERVAL '-1' SECOND) WITH ('connector' = "
		     "'print')",
		     56, "a watermark cannot be ahead", "");
	expect_error("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('connector' = 'print')", 37,
		     "PRIMARY KEY: unknown column b", "");
	expect_error("CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH ('connector' = 'print')", 39,
		     "expected NOT ENFORCED", "nothing checks the key");
	expect_error("CREATE TABLE t (a INT, b AS a + c) WITH ('connector' = 'print')", 33, "unknown column c", "");
	expect_error("CREATE TABLE t (a INT, b AS b + 1) WITH ('connector' = 'print')", 29, "unknown column b", "");
	expect_error("CREATE TABLE t (a STRING METADATA FROM 'timestamp') WITH ('connector' = 'print')", 19,
		     "wrong type for its metadata", "metadata timestamp is TIMESTAMP_LTZ(3)");
	expect_error("CREATE TABLE t (a STRING METADATA FROM 'topik') WITH ('connector' = 'print')", 40,
		     "unknown metadata 'topik'", "did you mean 'topic'?");
	expect_error("CREATE TABLE t (abc STRING) WITH ('connector' = 'recorded', 'path' = 'x', 'topic' = 't', "
		     "'format' = 'json',"
		     " 'key.format' = 'raw', 'key.fields' = 'abd')",
		     131, "key.fields: unknown column abd", "did you mean abc?");
	expect_error("CREATE TABLE t (abc STRING) WITH ('connector' = 'recorded', 'path' = 'x', 'topic' = 't', "
		     "'format' = 'json', 'key.fields' = 'abc')",
		     109, "option 'key.fields' needs 'key.format'", "");
	expect_error("CREATE TABLE t (abc STRING) WITH ('connector' = 'recorded', 'path' = 'x', 'topic' = 't', "
		     "'format' = 'json', 'key.format' = 'raw')",
		     109, "option 'key.format' needs 'key.fields' or a PRIMARY KEY", "add 'key.fields'");
	expect_error("CREATE TABLE t (a STRING, b AS UPPER(a)) WITH ('connector' = 'recorded', 'path' = 'x', "
		     "'topic' = 't', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'b')",
		     144, "key.fields: column b does not stand in the record", "name physical columns");
	expect_error("CREATE TABLE t (a STRING, x BIGINT METADATA FROM 'offset') WITH ('connector' = 'recorded', "
		     "'path' = 'x', 'topic'"
		     " = 't', 'format' = 'json'); INSERT INTO t SELECT order_id, ts FROM orders",
		     153, "cannot be written: metadata 'offset' is read-only", "declare it VIRTUAL");
	expect_error("CREATE TABLE t (a STRING, b INT) WITH ('connector' = 'recorded', 'path' = 'x', 'topic' = 't', "
		     "'format' = 'raw')",
		     95, "format 'raw' takes exactly 1 column, not 2", "use json or csv");
	expect_error("CREATE TABLE t (a STRING, b INT) WITH ('connector' = 'recorded', 'path' = 'x', 'topic' = 't', "
		     "'format' = 'json',"
		     " 'key.format' = 'raw', 'key.fields' = 'a;b')",
		     114, "key format 'raw' takes exactly 1 column, not 2", "use 'key.format' = 'json'");
	expect_error("CREATE TABLE t LIKE orders", 16, "not supported yet: CREATE TABLE ... LIKE", "");
	expect("CREATE TABLE t (`x``y` ROW<a INT, `b c` ARRAY<STRING>> COMMENT 'z', p BIGINT NOT NULL, c AS p + q, q "
	       "INT, o BIGINT"
	       " METADATA FROM 'offset' VIRTUAL, CONSTRAINT pk PRIMARY KEY (p, q) NOT ENFORCED) COMMENT 'c' WITH "
	       "('connector' ="
	       " 'recorded', 'path' = 'x', 'topic' = 't', 'format' = 'json'); INSERT INTO t (p, q) SELECT ts, 5 FROM "
	       "orders",
	       NULL);
	expect("DROP TABLE shown; DROP VIEW IF EXISTS shown; CREATE TABLE shown (z INT) WITH ('connector' = "
	       "'blackhole'); INSERT"
	       " INTO shown SELECT 1 FROM orders",
	       NULL);
	expect_error("DROP TABLE nothing", 12, "unknown table nothing", "");
	expect_error("DROP VIEW orders", 11, "orders is a table", "");
}

static void test_views(void **state)
{
	(void)state;
	expect_error("CREATE VIEW v AS SELECT nope FROM orders; SELECT 1 FROM orders", 25, "unknown column nope", "");
	expect_error("CREATE VIEW v (a, b) AS SELECT ts FROM orders", 13, "view v names 2 columns, its query has 1",
		     "");
	expect_error("INSERT INTO v SELECT 1", 13, "unknown table v", "");
	expect_error("CREATE VIEW v AS SELECT * FROM v", 32, "unknown table v", "");
	expect_error("CREATE VIEW v AS SELECT ts FROM orders; INSERT INTO v SELECT ts FROM orders", 53, "v is a view",
		     "");
	/* One aggregate serves both readers. */
	struct compiled c;
	compile(&c, "CREATE VIEW v AS SELECT merchant_id AS m, COUNT(*) AS n FROM " TUMBLE
		    " GROUP BY window_start, window_end, merchant_id;"
		    "INSERT INTO appended SELECT * FROM v; INSERT INTO shown SELECT m, n FROM v WHERE n > 1;");
	expect_ok(&c);
	assert_non_null(find_node(&c, WEIR_NODE_AGGREGATE, 0));
	assert_null(find_node(&c, WEIR_NODE_AGGREGATE, 1));
	assert_string_equal(find_node(&c, WEIR_NODE_AGGREGATE, 0)->state_name, "appended-tumble");
	done(&c);
	/* EMIT CHANGES reaches the aggregate inside a view. */
	compile(&c, "CREATE VIEW v AS SELECT window_start AS w, merchant_id AS m, COUNT(*) AS n FROM " TUMBLE
		    " GROUP BY window_start, window_end, merchant_id;"
		    "INSERT INTO keyed SELECT * FROM v EMIT CHANGES; INSERT INTO shown SELECT m, n FROM v;");
	expect_ok(&c);
	assert_true(find_node(&c, WEIR_NODE_AGGREGATE, 0)->changes);
	assert_false(find_node(&c, WEIR_NODE_AGGREGATE, 1)->changes);
	done(&c);
}

static void test_statements(void **state)
{
	(void)state;
	expect_error("SELCT 1;", 1, "expected a statement", "did you mean SELECT?");
	expect_error("SELECT ts FROM orders; SELECT ts FROM orders", 24, "a bare SELECT stands alone in a file",
		     "write its rows into a table WITH ('connector' = 'print')");
	expect_error("INSERT INTO shown SELECT order_id, ts FROM orders; SELECT ts FROM orders", 52, "stands alone",
		     "write");
	expect_error("SELECT ts FROM orders x y", 25, "expected ; or the end of the statement, found 'y'", "");
	expect_error("EXECUTE STATEMENT SET BEGIN END;", 29, "an empty statement set", "");
	expect_error("EXECUTE STATEMENT SET BEGIN SELECT 1; END;", 29, "expected INSERT INTO or END", "");
	expect_error("INSERT OVERWRITE shown SELECT 1", 8, "not supported: INSERT OVERWRITE", "results are appended");
	expect_error("EXPLAIN SELECT ts FROM orders; INSERT INTO shown SELECT order_id, ts FROM orders", 32,
		     "EXPLAIN cannot stand beside what is to be run", "weir explain");
	expect_error("EXPLAIN SELECT ts FROM orders; SELECT ts FROM orders", 32,
		     "EXPLAIN cannot stand beside what is to be run", "weir explain");
	expect_error("SELECT ts FROM orders; EXPLAIN SELECT ts FROM orders", 24,
		     "EXPLAIN cannot stand beside what is to be run", "weir explain");
	struct compiled c;
	compile(&c, "");
	expect_ok(&c);
	assert_int_equal(weir_sql_action(c.sq), WEIR_SQL_NOTHING);
	assert_null(c.tp);
	assert_string_equal(weir_sql_output(c.sq), "");
	done(&c);
	compile(&c, "EXPLAIN PLAN FOR SELECT ts FROM orders");
	expect_ok(&c);
	assert_int_equal(weir_sql_action(c.sq), WEIR_SQL_EXPLAIN);
	assert_non_null(c.tp);
	done(&c);
	/* As often as one likes: they are one plan, as INSERTs would be. */
	compile(&c, "EXPLAIN SELECT order_id, COUNT(*) AS n FROM orders GROUP BY order_id;"
		    "EXPLAIN INSERT INTO shown SELECT order_id, ts FROM orders;"
		    "EXPLAIN SELECT order_id, COUNT(*) AS n FROM orders GROUP BY order_id");
	expect_ok(&c);
	assert_int_equal(weir_sql_action(c.sq), WEIR_SQL_EXPLAIN);
	assert_non_null(find_node(&c, WEIR_NODE_AGGREGATE, 1));
	assert_non_null(find_node(&c, WEIR_NODE_SINK, 2));
	done(&c);
	struct weir_topology *tp = NULL;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_sql_compile(&tp, NULL, NULL, "SHOW TABLES", 11, &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), "nothing to run"));
	weir_diag_destroy(dg);
}

static void test_set(void **state)
{
	(void)state;
	struct compiled c;
	compile(&c, "SET 'commit.interval.ms' = '5s'; SET pipeline.name = revenue; SELECT ts FROM orders");
	expect_ok(&c);
	assert_true(weir_conf_is_set(c.cf, "commit.interval.ms"));
	assert_string_equal(weir_conf_get(c.cf, "application.id"), "revenue");
	done(&c);
	expect_error("SET 'memory.maxx' = '1'", 5, "unknown property 'memory.maxx'", "");
	expect_error("SET 'slots' 5", 13, "expected =, found '5'", "");
	/* What an operator gave wins over the file. */
	struct weir_conf *cf = weir_conf_create();
	struct weir_sql *sq = NULL;
	assert_int_equal(weir_conf_set(cf, "slots", "8", NULL), WEIR_OK);
	assert_int_equal(weir_sql_open(&sq, cf, NULL, "SET 'slots' = '16'", 18, NULL), WEIR_OK);
	assert_string_equal(weir_conf_get(cf, "slots"), "8");
	weir_sql_close(sq);
	weir_conf_destroy(cf);
}

#define GROUPED(name, group)                                                                                           \
	"CREATE TABLE " name                                                                                           \
	" (a INT) WITH ('connector'='kafka','topic'='x','format'='json','properties.group.id'='" group                 \
	"','properties.bootstrap.servers'='file:rec');"

/* A source's group names the application, unless something stronger does. */
static void test_group_ids(void **state)
{
	(void)state;
	expect_error(GROUPED("g1", "one") GROUPED("g2", "two") "SELECT a FROM g1 UNION ALL SELECT a FROM g2", 340,
		     "two groups: 'properties.group.id' of this table is two, of another source it is one",
		     "name the application");
	struct compiled c;
	compile(&c, "SET 'pipeline.name' = 'p';" GROUPED("g1", "one")
			    GROUPED("g2", "two") "SELECT a FROM g1 UNION ALL SELECT a FROM g2");
	expect_ok(&c);
	assert_string_equal(weir_conf_get(c.cf, "application.id"), "p");
	done(&c);
}

static void test_show_and_describe(void **state)
{
	(void)state;
	struct compiled c;
	compile(&c, "CREATE VIEW v AS SELECT ts, COUNT(*) AS n FROM orders GROUP BY ts; SHOW TABLES; SHOW VIEWS; "
		    "DESCRIBE orders; DESC v;"
		    "SHOW CREATE TABLE shown; SHOW FUNCTIONS;");
	expect_ok(&c);
	const char *out = weir_sql_output(c.sq);
	assert_non_null(strstr(out, "| table name |\n+------------+\n| appended   |\n"));
	assert_non_null(strstr(out, "| view name |\n+-----------+\n| v         |\n+-----------+\n"));
	assert_non_null(strstr(out, "| event_time  | TIMESTAMP_LTZ(3) *ROWTIME* | TRUE | "));
	assert_non_null(strstr(out, "event_time - 5000 ms"));
	assert_non_null(strstr(out, "| n    | BIGINT | FALSE |\n"));
	assert_non_null(strstr(out, "\nCREATE TABLE shown (a STRING, b BIGINT) WITH ('connector' = 'print')\n"));
	assert_non_null(strstr(out, "| ABS "));
	assert_null(strstr(out, "$TUMBLE_START"));
	static const char *const kinds[][2] = {
		{"ABS", "scalar"}, {"COUNT", "aggregate"}, {"ARRAY_AGG", "aggregate"}, {"LAG", "over"},
		{"HOP", "window"}, {"ROW_NUMBER", "over"}, {"UNNEST", "table"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(kinds); i++) {
		char line[80];
		snprintf(line, sizeof line, "\n| %-21s | %-9s | ", kinds[i][0], kinds[i][1]);
		if (strstr(out, line) == NULL)
			fail_msg("%s is not shown as %s: %s", kinds[i][0], kinds[i][1], out);
	}
	done(&c);
	expect_error("SHOW NOTHING", 6, "expected TABLES, VIEWS, FUNCTIONS or CREATE TABLE", "");
	expect_error("DESCRIBE nothing", 10, "unknown table nothing", "");
}

static void test_expand(void **state)
{
	(void)state;
	static const struct weir_sql_variable v[] = {{"in", "rec"}, {"out.dir", "a b"}};
	char *out = NULL;
	size_t bytes = 0;
	struct weir_diag *dg = NULL;
	static const char text[] = "'${in}' ${out.dir}$ {x} ${in}";
	assert_int_equal(weir_sql_expand("q", text, sizeof text - 1, v, 2, &out, &bytes, &dg), WEIR_OK);
	assert_string_equal(out, "'rec' a b$ {x} rec");
	assert_int_equal(bytes, strlen(out));
	weir_free(out);
	assert_int_equal(weir_sql_expand("q.sql", "a\n  ${nope}", 11, v, 2, &out, &bytes, &dg), WEIR_E_PLAN);
	assert_int_equal(weir_diag_line(dg), 2);
	assert_int_equal(weir_diag_column(dg), 3);
	assert_non_null(strstr(weir_diag_report(dg), "${nope} is not defined"));
	assert_non_null(strstr(weir_diag_report(dg), "--define nope=VALUE"));
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_sql_expand("q.sql", "${a", 3, v, 2, &out, &bytes, &dg), WEIR_E_PLAN);
	weir_diag_destroy(dg);
}

/* The place an error gets that was made of this code and text. */
static void expect_place(const struct compiled *c, enum weir_err err, const char *text, int line, int column)
{
	struct weir_diag *dg = NULL;
	(void)weir_diag_set(&dg, err, "%s", text);
	weir_sql_add_place(c->sq, dg);
	if (weir_diag_line(dg) != line || weir_diag_column(dg) != column)
		fail_msg("%s: at %d:%d", text, weir_diag_line(dg), weir_diag_column(dg));
	assert_int_equal(strstr(weir_diag_report(dg), "q.sql:") != NULL, line > 0);
	weir_diag_destroy(dg);
}

/* What planning and starting finds names tables and options: these stand in the text. */
static void test_places_of_plans(void **state)
{
	(void)state;
	static const char text[] = "CREATE TABLE ab (k STRING) WITH ('connector' = 'recorded', 'path' = '${dir}', "
				   "'topic' = 'x', 'format' = "
				   "'json');\n"
				   "CREATE TABLE IF NOT EXISTS `a` (k STRING)\n"
				   "  WITH ('connector' = '${dir}', 'print-identifier' = 'x');\n"
				   "CREATE VIEW v AS SELECT k FROM ab;\n"
				   "INSERT INTO a SELECT k FROM v;";
	static const struct weir_sql_variable dir = {"dir", "print"};
	struct compiled c = {.cf = weir_conf_create()};
	c.err = weir_sql_open_filled(&c.sq, c.cf, "q.sql", text, sizeof text - 1, &dir, 1, &c.dg);
	expect_ok(&c);
	expect_place(&c, WEIR_E_CONF, "sink a: connector 'recorded' needs 'path'", 2, 28);
	expect_place(&c, WEIR_E_CONF, "sink a needs nothing", 2, 28);
	expect_place(&c, WEIR_E_PLAN, "table ab: 'path' is wrong", 1, 60);
	expect_place(&c, WEIR_E_PLAN, "table 'ab', with 'print-identifier'", 1, 14);
	expect_place(&c, WEIR_E_CONF, "option 'print-identifier': no", 3, 33);
	expect_place(&c, WEIR_E_CONF, "option 'connector': of which table?", 0, 0);
	expect_place(&c, WEIR_E_CONF, "x is read by table ab and by table a", 1, 14);
	expect_place(&c, WEIR_E_CONF, "table v is wrong", 0, 0);
	expect_place(&c, WEIR_E_CONF, "table abc is wrong, portable a, too", 0, 0);
	expect_place(&c, WEIR_E_IO, "sink a is not there any more", 0, 0);
	weir_sql_add_place(c.sq, NULL);
	done(&c);
}

/* A value stays inside the quotes it stands in, and comments are left alone. */
static void test_expand_places(void **state)
{
	(void)state;
	static const struct weir_sql_variable v[] = {{"q", "it's \"b\" `c`"}};
	static const char *const texts[][2] = {
		{"'${q}' x", "'it''s \"b\" `c`' x"},
		{"\"${q}\"", "\"it's \"\"b\"\" `c`\""},
		{"`${q}`", "`it's \"b\" ``c```"},
		{"${q}", "it's \"b\" `c`"},
		{"'a''${q}'${q}", "'a''it''s \"b\" `c`'it's \"b\" `c`"},
		{"-- ${nope} it's\n'${q}'", "-- ${nope} it's\n'it''s \"b\" `c`'"},
		{"/* ${nope ' */'${q}'", "/* ${nope ' */'it''s \"b\" `c`'"},
		{"/*/ ${nope} */ ${q}", "/*/ ${nope} */ it's \"b\" `c`"},
		{"'-- ' ${q} '/*' ${q}", "'-- ' it's \"b\" `c` '/*' it's \"b\" `c`"},
		{"a - ${q} / ${q}", "a - it's \"b\" `c` / it's \"b\" `c`"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(texts); i++) {
		struct weir_diag *dg = NULL;
		char *out;
		size_t bytes;
		assert_int_equal(weir_sql_expand("q", texts[i][0], strlen(texts[i][0]), v, 1, &out, &bytes, &dg),
				 WEIR_OK);
		assert_string_equal(out, texts[i][1]);
		weir_free(out);
	}
}

/* Errors and warnings stand where their author sees them, whatever came in for ${...} before. */
static void test_places_as_written(void **state)
{
	(void)state;
	static const struct weir_sql_variable v[] = {{"n", "'a longer value than its name'\n,\n1"}, {"t", "nowhere"}};
	static const char *const texts[][2] = {
		{"SELECT 'ü', ${n}, a FROM nowhere", "q.sql:1:26: error: unknown table nowhere\n"
						     "  SELECT 'ü', ${n}, a FROM nowhere\n"
						     "                           ^"},
		{"SELECT ${n},\n ${n}, a FROM ${t} x", "q.sql:2:15: error: unknown table nowhere\n"
						       "   ${n}, a FROM ${t} x\n"
						       "                ^"},
		{"SELECT ${n},\n a FROM", "q.sql:2:8: error: "},
		{"SELECT '${t}' ~", "q.sql:1:15: error: "},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(texts); i++) {
		struct weir_diag *dg = NULL;
		struct weir_sql *sq = NULL;
		assert_int_not_equal(
			weir_sql_open_filled(&sq, NULL, "q.sql", texts[i][0], strlen(texts[i][0]), v, 2, &dg), WEIR_OK);
		if (strncmp(weir_diag_report(dg), texts[i][1], strlen(texts[i][1])) != 0)
			fail_msg("want %s, got %s", texts[i][1], weir_diag_report(dg));
		weir_diag_destroy(dg);
	}
	static const char sets[] = "SET 'pipeline.name' = '${t}';\nSET '${t}' = 'ü'; RESET";
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	struct weir_sql *sq = NULL;
	static const struct weir_sql_variable slots[] = {{"t", "slots"}};
	assert_int_not_equal(weir_sql_open_filled(&sq, cf, "q.sql", sets, sizeof sets - 1, slots, 1, &dg), WEIR_OK);
	assert_non_null(strstr(weir_diag_report(dg), "q.sql:2:5: error: "));
	weir_diag_destroy(dg);
	dg = NULL;
	static const char warned[] = "SET '${t}' = '16'; RESET 'ü';";
	assert_int_equal(weir_sql_open_filled(&sq, cf, "q.sql", warned, sizeof warned - 1, slots, 1, &dg), WEIR_OK);
	assert_non_null(strstr(weir_sql_warning(sq, 0), "q.sql:1:20: warning: RESET"));
	weir_sql_close(sq);
	weir_conf_destroy(cf);
}

/* ---- bounds ---- */

static char *repeat(const char *head, const char *part, int n, const char *tail)
{
	size_t a = strlen(head), b = strlen(part), c = strlen(tail);
	char *s = malloc(a + b * (size_t)n + c + 1);
	memcpy(s, head, a);
	for (int i = 0; i < n; i++)
		memcpy(s + a + b * (size_t)i, part, b);
	memcpy(s + a + b * (size_t)n, tail, c + 1);
	return s;
}

/* The same error from the parser, whatever the clause. */
static void test_depth_in_every_clause(void **state)
{
	(void)state;
	static const char *const clauses[][2] = {
		{"SELECT ", "1 FROM orders"},
		{"SELECT ts FROM orders WHERE ", "ok"},
		{"SELECT COUNT(*) FROM orders GROUP BY ", "ts"},
		{"SELECT COUNT(*) FROM orders HAVING ", "TRUE"},
		{"SELECT COUNT(*) FILTER (WHERE ", "ok"},
		{"SELECT ts FROM ", "orders"},
		{"SELECT ts FROM TABLE(TUMBLE(", "TABLE orders"},
		{"CREATE TABLE t (a AS ", "1"},
		{"", "SELECT 1"},
	};
	for (size_t i = 0; i < sizeof clauses / sizeof clauses[0]; i++) {
		struct compiled c;
		char *s =
			repeat(clauses[i][0], strcmp(clauses[i][0], "SELECT ts FROM ") == 0 ? "(SELECT ts FROM " : "(",
			       250, clauses[i][1]);
		compile(&c, s);
		assert_int_equal(c.err, WEIR_E_PLAN);
		if (strstr(weir_diag_report(c.dg), "nesting limit 200") == NULL &&
		    strstr(weir_diag_report(c.dg), "expected TABLE") == NULL)
			fail_msg("%s: %s", clauses[i][0], weir_diag_report(c.dg));
		done(&c);
		free(s);
	}
	struct compiled c;
	char *s = repeat("CREATE VIEW v0 AS SELECT ts FROM orders;", "", 0, "");
	compile(&c, s);
	expect_ok(&c);
	done(&c);
	free(s);
}

/* A chain of views is no deeper in the C stack than its length in the text allows: it stays within 64 KiB. */
static void test_many_views_columns_and_unions(void **state)
{
	(void)state;
	struct compiled c;
	struct weir_buf b = {0};
	weir_buf_puts(&b, "CREATE VIEW v0 AS SELECT ts FROM orders;\n");
	for (int i = 1; i < 150; i++)
		weir_buf_printf(&b, "CREATE VIEW v%d AS SELECT * FROM v%d;\n", i, i - 1);
	weir_buf_puts(&b, "SELECT * FROM v149;");
	weir_buf_put_byte(&b, 0);
	compile(&c, (const char *)b.data);
	expect_ok(&c);
	done(&c);
	b.bytes = 0;
	weir_buf_puts(&b, "CREATE TABLE wide (c0 INT");
	for (int i = 1; i < 5000; i++)
		weir_buf_printf(&b, ",c%d INT", i);
	weir_buf_puts(&b, ") WITH ('connector' = 'datagen'); SELECT c4999, * FROM wide;");
	compile_text(&c, (const char *)b.data, b.bytes, NULL);
	expect_ok(&c);
	assert_int_equal(find_node(&c, WEIR_NODE_SINK, 0)->column_count, 5001);
	done(&c);
	weir_buf_fini(&b);
	char *s = repeat("SELECT ts FROM orders", " UNION ALL SELECT ts FROM orders", 500, ";");
	compile(&c, s);
	expect_ok(&c);
	done(&c);
	free(s);
	s = repeat("SELECT ts", " + 1", 15000, " FROM orders;");
	compile(&c, s);
	expect_ok(&c);
	done(&c);
	free(s);
	s = repeat("SELECT ts", " + 1", 20000, " FROM orders;");
	compile(&c, s);
	assert_int_equal(c.err, WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(c.dg), "sql.bytes.max"));
	done(&c);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_revenue),
		cmocka_unit_test(test_fraud),
		cmocka_unit_test(test_split_and_merge),
		cmocka_unit_test(test_queries_that_compile),
		cmocka_unit_test(test_group_expressions),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_emission),
		cmocka_unit_test(test_columns_of_sinks),
		cmocka_unit_test(test_bounds_of_joins),
		cmocka_unit_test(test_what_else_a_join_needs),
		cmocka_unit_test(test_joins_without_bounds),
		cmocka_unit_test(test_joins_that_cannot_be),
		cmocka_unit_test(test_functions_over),
		cmocka_unit_test(test_not_supported_yet),
		cmocka_unit_test(test_create_table),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_group_ids),
		cmocka_unit_test(test_show_and_describe),
		cmocka_unit_test(test_expand),
		cmocka_unit_test(test_places_of_plans),
		cmocka_unit_test(test_expand_places),
		cmocka_unit_test(test_places_as_written),
		cmocka_unit_test(test_depth_in_every_clause),
		cmocka_unit_test(test_many_views_columns_and_unions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
