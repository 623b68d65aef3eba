/* test_sql_tables.c: SQL that is made of joins and tables: DISTINCT, USING, the last rows by ROW_NUMBER, UNION ALL of
 * tables, IN and EXISTS. */
#include "hotpath/topology/plan.h"
#include "tests/unit/sql_text.h"

/* DISTINCT and UNION are a GROUP BY of all columns. */
static void test_distinct(void **state)
{
	(void)state;
	static const enum weir_node_kind kinds[] = {WEIR_NODE_SINK,    WEIR_NODE_PROJECT, WEIR_NODE_AGGREGATE,
						    WEIR_NODE_PROJECT, WEIR_NODE_PROJECT, WEIR_NODE_SOURCE},
					 two[] = {WEIR_NODE_SINK,  WEIR_NODE_PROJECT, WEIR_NODE_AGGREGATE,
						  WEIR_NODE_UNION, WEIR_NODE_PROJECT, WEIR_NODE_SOURCE};
	struct compiled c;
	compile(&c, "SELECT DISTINCT merchant_id, ok, ok FROM orders");
	expect_ok(&c);
	expect_nodes(&c, kinds, 6);
	const struct weir_node *g = find_node(&c, WEIR_NODE_AGGREGATE, 0);
	assert_true(g->is_table);
	assert_int_equal(g->key_count, 3);
	assert_int_equal(g->agg_count, 0);
	assert_string_equal(g->columns[2].name, "ok0");
	done(&c);
	compile(&c, "SELECT ts FROM orders UNION DISTINCT SELECT DISTINCT ts FROM orders WHERE ok");
	expect_ok(&c);
	expect_nodes(&c, two, 6);
	assert_null(find_node(&c, WEIR_NODE_AGGREGATE, 1));
	done(&c);
	compile(&c, "SELECT DISTINCT window_start, window_end, ok FROM " HOP);
	expect_ok(&c);
	g = find_node(&c, WEIR_NODE_AGGREGATE, 0);
	assert_int_equal(g->window.kind, WEIR_WINDOW_HOP);
	assert_false(g->is_table);
	done(&c);
	expect_error("INSERT INTO upserted SELECT DISTINCT merchant_id, ts FROM orders", 13, "column ts is not in it",
		     "the key must hold merchant_id, ts");
	expect_error("INSERT INTO appended SELECT DISTINCT merchant_id, ts FROM orders", 13, "only appends",
		     "give the sink a PRIMARY KEY");
	expect_error("SELECT DISTINCT ok FROM " HOP, 1, "not supported yet: a plain GROUP BY over HOP",
		     "GROUP BY window_start");
	expect_error("SELECT DISTINCT window_start, ok FROM " HOP, 1, "needs both window_start and window_end",
		     "GROUP BY window_start");
}

/* USING: one column of each pair is meant by its name, and stands first in *. */
static void test_using(void **state)
{
	(void)state;
	static const char more[] = "CREATE TABLE m (x INT, merchant_id STRING, PRIMARY KEY (merchant_id) NOT ENFORCED) "
				   "WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'm', 'format' = 'json'); "
				   "CREATE TABLE n (merchant_id STRING, y INT, PRIMARY KEY (merchant_id) NOT ENFORCED) "
				   "WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'n', 'format' = 'json'); ";
	static const struct {
		const char *query, *columns;
	} good[] = {
		{"SELECT * FROM m JOIN n USING (merchant_id)", "merchant_id x y"},
		{"SELECT merchant_id, m.merchant_id AS a, n.merchant_id AS b FROM m LEFT JOIN n USING (merchant_id)",
		 "merchant_id a b"},
		{"SELECT * FROM m RIGHT JOIN n USING (merchant_id) WHERE merchant_id <> 'x'", "merchant_id x y"},
		{"SELECT * FROM m FULL JOIN n USING (merchant_id)", "merchant_id x y"},
		{"SELECT m.* FROM m JOIN n USING (merchant_id)", "x merchant_id"},
		{"SELECT * FROM m JOIN n USING (merchant_id) JOIN m AS k USING (merchant_id)", "merchant_id x y x0"},
		{"SELECT order_id, x FROM orders JOIN m USING (merchant_id) WHERE merchant_id = 'm'", "order_id x"},
		{"SELECT m.merchant_id, n.merchant_id, x AS y, n.y FROM m JOIN n ON m.merchant_id = n.merchant_id",
		 "merchant_id merchant_id0 y y0"},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		char text[1200], names[200] = "";
		struct compiled c;
		snprintf(text, sizeof text, "%s%s", more, good[i].query);
		compile(&c, text);
		expect_ok(&c);
		const struct weir_node *n = find_node(&c, WEIR_NODE_SINK, 0);
		for (uint32_t k = 0; k < n->column_count; k++) {
			strcat(names, k > 0 ? " " : "");
			strcat(names, n->columns[k].name);
		}
		assert_string_equal(names, good[i].columns);
		done(&c);
	}
}

#define RANKED(over) "(SELECT *, ROW_NUMBER() OVER (" over ") AS rn FROM orders)"
#define LAST         "PARTITION BY merchant_id ORDER BY event_time DESC"

/* The last row of each key: a table by it. */
static void test_last_row(void **state)
{
	(void)state;
	static const char *const good[] = {
		"SELECT order_id, rn FROM " RANKED(LAST) " WHERE rn = 1",
		"SELECT * FROM " RANKED(LAST) " AS r WHERE 1 >= r.rn AND ok",
		"SELECT x FROM " RANKED(LAST) " AS r (a, b, c, d, e, f, x) WHERE d AND x < 2",
		"SELECT * FROM (SELECT ts, ROW_NUMBER() OVER w AS n FROM orders WINDOW w AS (" LAST ")) WHERE n <= 1",
		"CREATE VIEW v AS SELECT *, ROW_NUMBER() OVER (" LAST
		") AS rn FROM orders; SELECT * FROM v WHERE rn = 1",
		"CREATE VIEW v (a, n) AS SELECT ts, ROW_NUMBER() OVER (" LAST
		") FROM orders; SELECT a FROM v WHERE 2 > n",
	};
	static const char *const bad[][2] = {
		{"WHERE rn = 2", "OVER goes by time, ascending"},
		{"WHERE rn = 1 OR ok", "OVER goes by time, ascending"},
		{"WHERE rn >= 1", "OVER goes by time, ascending"},
		{"WHERE rn <= 3", "not supported yet: more than the last row"},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct compiled c;
		compile(&c, good[i]);
		expect_ok(&c);
		const struct weir_node *n = find_node(&c, WEIR_NODE_LATEST, 0);
		assert_non_null(n);
		assert_true(n->is_table);
		assert_int_equal(n->key_count, 1);
		assert_null(find_node(&c, WEIR_NODE_OVER, 0));
		done(&c);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct compiled c;
		char text[300];
		snprintf(text, sizeof text, "SELECT ts FROM " RANKED(LAST) " %s", bad[i][0]);
		compile(&c, text);
		assert_int_equal(c.err, WEIR_E_PLAN);
		assert_non_null(strstr(weir_diag_report(c.dg), bad[i][1]));
		done(&c);
	}
	expect("SELECT ts FROM " RANKED("PARTITION BY ok ORDER BY event_time") " WHERE rn <= 3", NULL);
	expect("INSERT INTO upserted SELECT merchant_id, ts FROM " RANKED(LAST) " WHERE rn = 1", NULL);
	expect_error("INSERT INTO upserted SELECT order_id, ts FROM " RANKED(LAST) " WHERE rn = 1", 13,
		     "column merchant_id is not in it", "the key must hold merchant_id");
	expect_error("SELECT ts FROM " RANKED("PARTITION BY ok ORDER BY amount DESC") " WHERE rn = 1", 71,
		     "not supported yet: ROW_NUMBER ordered by anything but time", "ORDER BY the time attribute");
	expect_error(
		"SELECT ok FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY ok ORDER BY event_time DESC) AS rn FROM " HOP
		") WHERE rn = 1",
		27, "not supported yet: ROW_NUMBER over rows in windows", "take the last row");
	expect_error("SELECT ok FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY ok ORDER BY n DESC) AS rn FROM "
		     "(SELECT ok, COUNT(*) AS n FROM orders GROUP BY ok)) WHERE rn = 1",
		     27, "not supported yet: ROW_NUMBER over a table", "read the stream");
}

/* Of tables: rows by their key and the constant that tells the sides apart, or rows without a key. */
static void test_union_of_tables(void **state)
{
	(void)state;
	static const char tagged[] =
		"(SELECT m, n, 'a' AS tag FROM upserted UNION ALL SELECT m, n, 'b' FROM upserted WHERE n > 1 "
		"UNION ALL SELECT merchant_id, COUNT(*), 'c' FROM orders GROUP BY merchant_id)";
	static const char plain[] = "(SELECT m, n, 'a' AS tag FROM upserted UNION ALL SELECT m, n, 'a' FROM upserted)";
	static const char sink[] =
		"CREATE TABLE both (m STRING, n BIGINT, tag STRING, PRIMARY KEY (tag, m) NOT ENFORCED) WITH "
		"('connector' = 'recorded', 'path' = 'out', 'topic' = 'b', 'format' = 'json'); ";
	char text[1000];
	struct compiled c;
	snprintf(text, sizeof text, "%sINSERT INTO both SELECT m, n, tag FROM %s", sink, tagged);
	compile(&c, text);
	expect_ok(&c);
	const struct weir_node *n = find_node(&c, WEIR_NODE_UNION, 0);
	assert_true(n->is_table);
	assert_false(n->doubles);
	assert_int_equal(n->table_key_count, 2);
	assert_int_equal(n->table_key[0], 0);
	assert_int_equal(n->table_key[1], 2);
	done(&c);
	snprintf(text, sizeof text, "%sINSERT INTO both SELECT m, n, tag FROM %s", sink, plain);
	compile(&c, text);
	assert_int_equal(c.err, WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_report(c.dg), "two rows of the query may have one key"));
	done(&c);
	snprintf(text, sizeof text, "INSERT INTO upserted SELECT m, n FROM %s", tagged);
	compile(&c, text);
	assert_int_equal(c.err, WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_report(c.dg), "column tag is not in it"));
	done(&c);
	snprintf(text, sizeof text, "SELECT m, SUM(n), COUNT(*) FROM %s GROUP BY m", plain);
	expect(text, NULL);
	snprintf(text, sizeof text,
		 "SELECT o.order_id, t.n FROM orders o JOIN %s t ON o.merchant_id = t.m AND t.tag = 'a'", tagged);
	compile(&c, text);
	assert_int_equal(c.err, WEIR_E_PLAN); /* by its whole key */
	done(&c);
	snprintf(text, sizeof text,
		 "SELECT o.order_id, t.n FROM (SELECT *, 'a' AS tag FROM orders) o JOIN %s t USING (tag) ", tagged);
	compile(&c, text);
	assert_int_equal(c.err, WEIR_E_PLAN);
	done(&c);
	expect_error("SELECT m, n FROM upserted UNION ALL SELECT merchant_id, ts FROM orders", 37,
		     "not supported yet: UNION ALL of rows that change and rows that do not", "make tables of all");
	expect("SELECT m, n FROM upserted UNION SELECT merchant_id, ts FROM orders", NULL);
	expect_error("SELECT ok FROM orders UNION ALL SELECT ok FROM " TUMBLE
		     " GROUP BY window_start, window_end, ok EMIT CHANGES",
		     33, "UNION ALL of rows that change and rows that do not", "make tables of all");
	expect_error("SELECT ok FROM " TUMBLE " GROUP BY window_start, window_end, ok UNION ALL SELECT ok FROM " TUMBLE
		     " GROUP BY window_start, window_end, ok EMIT CHANGES",
		     1, "not supported yet: UNION ALL of windows that change", "leave EMIT CHANGES out");
}

/* IN and EXISTS in WHERE are joins of which the left side's columns stay. */
static void test_semi_joins(void **state)
{
	(void)state;
	static const struct {
		const char *query;
		enum weir_join_kind kind;
		bool foreign, grouped;
	} good[] = {
		{"SELECT ts FROM orders WHERE merchant_id IN (SELECT m FROM upserted)", WEIR_JOIN_INNER, false, false},
		{"SELECT ts FROM orders WHERE ok AND NOT EXISTS (SELECT 1 FROM upserted WHERE m = merchant_id AND n > "
		 "ts)",
		 WEIR_JOIN_LEFT, false, false},
		{"SELECT ts FROM orders WHERE NOT (order_id NOT IN (SELECT m FROM upserted WHERE n > 1))",
		 WEIR_JOIN_INNER, false, false},
		{"SELECT ts FROM orders WHERE ts IN (SELECT n FROM upserted)", WEIR_JOIN_INNER, false, true},
		{"SELECT ts FROM orders WHERE ts IN (SELECT DISTINCT ts FROM orders WHERE ok)", WEIR_JOIN_INNER, false,
		 true},
		{"INSERT INTO upserted SELECT m, n FROM upserted AS u WHERE EXISTS (SELECT n FROM upserted AS v WHERE "
		 "v.n = u.n)",
		 WEIR_JOIN_INNER, true, true},
		{"INSERT INTO upserted SELECT * FROM upserted WHERE m NOT IN (SELECT m FROM upserted AS v WHERE v.n > "
		 "1)",
		 WEIR_JOIN_LEFT, false, false},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct compiled c;
		compile(&c, good[i].query);
		expect_ok(&c);
		const struct weir_node *n = find_node(&c, WEIR_NODE_JOIN, 0);
		assert_int_equal(n->join->kind, good[i].kind);
		assert_int_equal(n->join->foreign, good[i].foreign);
		assert_int_equal(find_node(&c, WEIR_NODE_AGGREGATE, 0) != NULL, good[i].grouped);
		done(&c);
	}
	expect_error("SELECT ts FROM orders WHERE ok OR ts IN (SELECT n FROM upserted)", 42,
		     "a sub-select cannot stand here", "write it into WHERE");
	expect_error("SELECT ts IN (SELECT n FROM upserted) FROM orders", 15, "a sub-select cannot stand here",
		     "write it into WHERE");
	expect_error("SELECT ts FROM orders WHERE ts IN (SELECT ts FROM orders)", 32,
		     "not supported yet: IN and EXISTS of a stream's rows", "look in a table");
	expect_error("SELECT ts FROM orders WHERE merchant_id NOT IN (SELECT m FROM upserted)", 41,
		     "not supported yet: NOT IN (SELECT ..) where either side may be NULL", "write NOT EXISTS");
	expect_error("SELECT ts FROM orders WHERE ts IN (SELECT m FROM upserted)", 29, "BIGINT", "CAST one of them");
	expect_error("SELECT ts FROM orders WHERE EXISTS (SELECT 1 FROM upserted)", 29,
		     "EXISTS without a column of the query around it", "compare a column of each side");
	expect_error("SELECT ts FROM orders WHERE EXISTS (SELECT 1 FROM upserted WHERE n > ts AND n = ts)", 29,
		     "where the table's key is not compared", "compare the table's whole key");
	expect_error("SELECT ts FROM orders WHERE EXISTS (SELECT COUNT(*) FROM upserted)", 37,
		     "EXISTS of more than SELECT .. FROM .. WHERE", "write x IN");
	expect_error("SELECT ts FROM orders WHERE ts IN (SELECT n, m FROM upserted)", 36, "gives one column, not 2",
		     "");
	expect_error("SELECT ts FROM orders WHERE EXISTS (1)", 37, "EXISTS takes a sub-select", "");
	expect_error("SELECT window_start, COUNT(*) FROM " TUMBLE " WHERE merchant_id IN (SELECT m FROM upserted) "
		     "GROUP BY window_start, window_end",
		     127, "not supported yet: IN and EXISTS of rows in windows", "write it in a sub-select");
}

#define FULL2 "upserted a FULL JOIN upserted b ON a.m = b.m "

/* What a full join makes has a key, COALESCE of its sides', by which it is joined again. */
static void test_full_join_of_full_join(void **state)
{
	(void)state;
	static const char *const good[] = {
		"INSERT INTO upserted SELECT COALESCE(a.m, b.m, c.m), c.n FROM " FULL2
		"FULL JOIN upserted c ON COALESCE(a.m, b.m) = c.m",
		"INSERT INTO upserted SELECT COALESCE(c.m, COALESCE(b.m, a.m)), c.n FROM " FULL2
		"FULL JOIN upserted c ON c.m = COALESCE(b.m, a.m)",
		"INSERT INTO upserted SELECT m, c.n FROM upserted a FULL JOIN upserted b USING (m) FULL JOIN upserted "
		"c USING (m)",
		"INSERT INTO upserted SELECT COALESCE(a.m, b.m), c.n FROM " FULL2
		"LEFT JOIN upserted c ON COALESCE(a.m, b.m) = c.m",
		"CREATE VIEW v AS SELECT COALESCE(a.m, b.m) AS k, a.n FROM " FULL2
		"; INSERT INTO upserted SELECT k, c.n FROM v JOIN upserted c ON v.k = c.m",
		"SELECT o.ts, v.n FROM orders o JOIN (SELECT COALESCE(a.m, b.m) AS k, a.n FROM " FULL2
		") v ON o.merchant_id = v.k",
	};
	struct compiled c;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		compile(&c, good[i]);
		expect_ok(&c);
		assert_non_null(find_node(&c, WEIR_NODE_JOIN, 1));
		assert_false(find_node(&c, WEIR_NODE_JOIN, 1)->join->foreign);
		done(&c);
	}
	compile(&c, "SELECT * FROM " FULL2 "FULL JOIN upserted c ON COALESCE(a.m, b.m) = c.m");
	expect_ok(&c);
	assert_int_equal(find_node(&c, WEIR_NODE_SINK, 0)->column_count, 6);
	done(&c);
	expect_error("INSERT INTO upserted SELECT COALESCE(a.m, b.m), c.n FROM " FULL2
		     "FULL JOIN upserted c ON COALESCE(a.m, b.m) = c.m",
		     13, "the keys of a full join may be NULL", "SELECT COALESCE(l.k, r.k)");
	expect_error("INSERT INTO upserted SELECT COALESCE(a.m, a.m, c.m), c.n FROM " FULL2
		     "FULL JOIN upserted c ON COALESCE(a.m, b.m) = c.m",
		     13, "the keys of a full join may be NULL", "SELECT COALESCE(l.k, r.k)");
	expect_error("SELECT 1 FROM " FULL2 "FULL JOIN upserted c ON a.m = c.m", 60,
		     "not supported yet: rows of a table without one that refers to them", "keep the rows");
}

#define NEAR "r.event_time BETWEEN l.event_time - INTERVAL '2' SECOND AND l.event_time + INTERVAL '3' SECOND"

/* What WHERE says of the tables of an inner join is as good as ON. */
static void test_joins_by_where(void **state)
{
	(void)state;
	static const char *const streams[] = {
		"SELECT l.ts FROM orders l, orders r WHERE l.merchant_id = r.merchant_id AND " NEAR,
		"SELECT l.ts FROM orders l CROSS JOIN orders r WHERE l.merchant_id = r.merchant_id AND l.ok AND " NEAR,
		"SELECT l.ts FROM orders l JOIN orders r ON l.merchant_id = r.merchant_id WHERE " NEAR " AND r.ok",
		"SELECT l.ts FROM orders l JOIN orders r ON l.merchant_id = r.merchant_id AND r.event_time >= "
		"l.event_time - INTERVAL '2' SECOND WHERE r.event_time <= l.event_time + INTERVAL '3' SECOND",
		"SELECT l.ts FROM orders l, orders r, upserted u WHERE r.merchant_id = l.merchant_id AND u.m = "
		"l.merchant_id AND " NEAR,
		"SELECT l.ts FROM orders l, orders r LEFT JOIN upserted u ON l.merchant_id = u.m WHERE "
		"r.merchant_id = l.merchant_id AND " NEAR,
	};
	static const char *const others[] = {
		"SELECT a.n, b.n FROM upserted a, upserted b WHERE a.m = b.m AND a.n < b.n",
		"SELECT a.n, b.n FROM upserted a, upserted b WHERE a.m = b.m AND a.m IN (SELECT m FROM upserted)",
		"SELECT o.ts FROM orders o, upserted u WHERE o.merchant_id = u.m AND u.n > 3",
		"SELECT o.ts FROM orders o, upserted FOR SYSTEM_TIME AS OF o.event_time AS u WHERE o.merchant_id = u.m",
		"SELECT l.ts FROM " TUMBLE " l, " TUMBLE " r WHERE l.merchant_id = r.merchant_id AND l.window_start = "
		"r.window_start AND l.window_end = r.window_end",
	};
	struct compiled c;
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		compile(&c, streams[i]);
		expect_ok(&c);
		const struct weir_join_spec *jn = find_node(&c, WEIR_NODE_JOIN, 0)->join;
		assert_true(jn->within);
		assert_int_equal(jn->key_count, 1);
		assert_int_equal(jn->before_ms, 2000);
		assert_int_equal(jn->after_ms, 3000);
		done(&c);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		compile(&c, others[i]);
		expect_ok(&c);
		assert_int_equal(find_node(&c, WEIR_NODE_JOIN, 0)->join->key_count, 1);
		done(&c);
	}
	expect_error("SELECT l.ts FROM orders l, orders r WHERE " NEAR, 26, "a join needs columns that are equal",
		     "compare a column of each side: WHERE a.k = b.k");
	expect_error("SELECT l.ts FROM orders l, orders r WHERE l.merchant_id = r.merchant_id", 26,
		     "a join of two streams needs bounds in time", "add r.event_time BETWEEN l.event_time - ");
	expect_error("SELECT l.ts FROM orders l JOIN (SELECT merchant_id AS m FROM orders) r ON l.merchant_id = r.m",
		     89, "a join of two streams needs bounds in time",
		     "r hands none on: let it select the column of WATERMARK FOR, too");
	expect_error("SELECT a.n FROM upserted a, upserted b WHERE a.n = b.n", 27,
		     "a table is joined by its whole key: WHERE does not compare m", "compare the whole key of one");
	expect_error("SELECT a.n FROM upserted a, upserted b WHERE m = b.m", 46, "column m is ambiguous", "write a.m");
	expect_error("SELECT a.n FROM upserted a, upserted b WHERE a.m = b.k", 52, "unknown column b.k", "");
	expect_error("SELECT a.n FROM upserted a, upserted b WHERE a.m = b.m AND COUNT(*) > 1", 60,
		     "WHERE cannot hold an aggregate", "");
	/* A later table has that column, too. */
	expect_error("SELECT o.ts FROM orders o, upserted a, upserted b WHERE o.merchant_id = m AND o.order_id = b.m",
		     73, "column m is ambiguous", "write a.m");
	/* Rows of c without a match are kept: WHERE is no condition on what they are joined with. */
	expect_error("SELECT a.n FROM upserted a, upserted b RIGHT JOIN upserted c ON a.m = c.m WHERE a.m = b.m", 27,
		     "a table is joined by its whole key", "compare the whole key of one");
}

#define BY "(SELECT merchant_id AS k, COUNT(*) AS n FROM orders GROUP BY merchant_id) "

/* A full join on more than keys reads its sides twice, so their states are there twice: under names that no other state
 * has, which would be read in their place after a restart. */
static void test_names_of_states(void **state)
{
	(void)state;
	static const char *const queries[] = {
		"SELECT a.n, COUNT(*) FROM " BY "a FULL JOIN upserted b ON a.k = b.m AND a.n <> b.n GROUP BY a.n",
		"SELECT a.n, COUNT(*) FROM " BY "a JOIN " BY "b ON a.k = b.k "
		"FULL JOIN upserted c ON a.k = c.m AND a.n <> c.n GROUP BY a.n",
		"SELECT a.n, COUNT(*) FROM " BY "a FULL JOIN " BY "b ON a.k = b.k "
		"FULL JOIN upserted c ON COALESCE(a.k, b.k) = c.m AND a.n <> c.n GROUP BY a.n",
	};
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		struct compiled c;
		compile(&c, queries[i]);
		expect_ok(&c);
		const struct weir_plan_settings settings = {.emit_coalesce = true, .app = "q"};
		struct weir_plan *pl = NULL;
		if (weir_plan_create(&pl, c.tp, &settings, &c.dg) != WEIR_OK)
			fail_msg("%s: %s", queries[i], weir_diag_report(c.dg));
		for (uint32_t k = 0; k < pl->stage_count; k++)
			for (uint32_t before = 0; before < k; before++)
				if (strcmp(pl->stages[k].name, pl->stages[before].name) == 0)
					fail_msg("%s: two states %s", queries[i], pl->stages[k].name);
		done(&c);
	}
}

/* A view that is joined with itself is one node on both sides: a row's key is still that of the side that is kept. */
static void test_view_with_itself(void **state)
{
	(void)state;
	static const struct {
		const char *join;
		uint32_t key;
	} cases[] = {{"LEFT JOIN", 0}, {"RIGHT JOIN", 2}, {"JOIN", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[300];
		struct compiled c;
		snprintf(text, sizeof text,
			 "CREATE VIEW v AS SELECT m, n FROM upserted WHERE n > 0; "
			 "SELECT a.m, b.n FROM v a %s v b ON a.m = b.m AND a.n < b.n",
			 cases[i].join);
		compile(&c, text);
		expect_ok(&c);
		const struct weir_node *jn = find_node(&c, WEIR_NODE_JOIN, 0);
		assert_ptr_equal(jn->inputs[0], jn->inputs[1]);
		assert_int_equal(jn->table_key_count, 1);
		assert_int_equal(jn->table_key[0], cases[i].key);
		done(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests_of[] = {
		cmocka_unit_test(test_distinct),         cmocka_unit_test(test_using),
		cmocka_unit_test(test_last_row),         cmocka_unit_test(test_union_of_tables),
		cmocka_unit_test(test_semi_joins),       cmocka_unit_test(test_full_join_of_full_join),
		cmocka_unit_test(test_names_of_states),  cmocka_unit_test(test_joins_by_where),
		cmocka_unit_test(test_view_with_itself),
	};
	return cmocka_run_group_tests(tests_of, NULL, NULL);
}
