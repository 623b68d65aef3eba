/* Tables.java: random queries over tables with a primary key (rows come, change and go), over several streams and windows of
 * windows: for Queries.java. */
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

final class Tables {
	private static final List<String> AGGS = List.of("COUNT(*)", "SUM(a.v)", "MIN(a.v)", "MAX(a.v)", "AVG(a.v)", "SUM(a.d)", "MAX(a.s)", "MIN(a.s)", "COUNT(DISTINCT a.s)", "COUNT(a.v)",
		"SUM(a.v) FILTER (WHERE a.s <> 'b')", "COALESCE(SUM(a.v), 0) + COUNT(*)", "MAX(a.d)");

	private Tables() {}

	private static <T> T pick(Random rnd, List<T> l) {
		return l.get(rnd.nextInt(l.size()));
	}

	/** Rows by the key `id`, some of which go again. h refers to the key of another table. */
	private static List<Object[]> changes(Random rnd, long unit, long disorder, int count) {
		List<Object[]> out = new ArrayList<>();
		long time = 1767225600000L, step = 1 + rnd.nextInt(6);
		int keys = 1 + rnd.nextInt(6);
		for (int i = 0; i < count; i++) {
			time += unit * rnd.nextLong(step + 1) + (rnd.nextInt(25) == 0 ? unit * 60 : 0);
			long back = disorder == 0 ? 0 : unit * rnd.nextLong(disorder + 1);
			out.add(new Object[]{rnd.nextInt(keys), rnd.nextInt(10) == 0 ? null : "k" + rnd.nextInt(3), rnd.nextInt(10) == 0 ? null : rnd.nextInt(keys + 1),
				rnd.nextInt(8) == 0 ? null : (long) rnd.nextInt(21) - 8, rnd.nextInt(8) == 0 ? null : BigDecimal.valueOf(rnd.nextInt(2001) - 1000, 2),
				rnd.nextInt(8) == 0 ? null : (rnd.nextInt(41) - 20) / 4.0, rnd.nextInt(8) == 0 ? null : "" + (char) ('a' + rnd.nextInt(3)), time - back, Queries.tags(rnd), rnd.nextInt(5) == 0});
		}
		return out;
	}

	static final List<String> KINDS = List.of("TABLES", "TABLES RIGHT", "TABLES FULL", "TABLES FULL FULL", "TABLES USING", "TABLES UNION", "TABLES UNION", "TABLES SEMI", "TABLES SEMI", "TABLES FOREIGN", "TABLES THREE", "TABLE GROUPS", "TEMPORAL", "TEMPORAL", "THREE STREAMS", "WINDOWS OF WINDOWS",
		"WINDOWS OF JOINS", "WINDOWS OF UNIONS", "WINDOWS OF VERSIONS", "WINDOWS OF OVER", "WINDOWS OF UNNEST", "OVER OF JOINS", "UNNEST");

	static void make(Random rnd, Queries.Query q, String kind, long unit) {
		q.delay = unit * 40;
		switch (kind) {
		case "TEMPORAL" -> temporal(rnd, q, unit);
		case "THREE STREAMS" -> streams(rnd, q, unit);
		case "WINDOWS OF WINDOWS" -> windows(rnd, q, unit);
		case "WINDOWS OF JOINS", "WINDOWS OF UNIONS", "WINDOWS OF VERSIONS", "WINDOWS OF OVER", "WINDOWS OF UNNEST", "OVER OF JOINS" -> behind(rnd, q, kind, unit);
		case "UNNEST" -> unnest(rnd, q, unit);
		default -> tables(rnd, q, kind, unit);
		}
	}

	private static void tables(Random rnd, Queries.Query q, String kind, long unit) {
		String join = pick(rnd, List.of("JOIN", "LEFT JOIN")), on = pick(rnd, List.of("", "", " AND a.v > b.v", " AND b.s = 'a'", " AND (a.v > 0 OR b.v > 0)"));
		String where = rnd.nextInt(4) == 0 ? "\n  WHERE " + pick(rnd, List.of("a.v IS NULL OR a.v > -3", "b.v IS NULL OR b.v > -3", "a.s IS DISTINCT FROM 'b'")) : "";
		String value = pick(rnd, List.of("b.v", "COALESCE(a.h, b.h) + 1", "a.v + b.v", "a.s || b.s", "CASE WHEN b.id IS NULL THEN 'alone' ELSE b.s END"));
		q.table = true;
		q.keys = 1;
		int inputs = 2;
		switch (kind) {
		case "TABLES UNION" -> {
			/* Rows of all sides; told apart by a constant they are a table, else both may have one key. */
			String from = pick(rnd, List.of("%1$s", "%1$s WHERE v > 0", "(SELECT a.id, a.h, a.v, b.s FROM %1$s a " + join + " %2$s b ON a.id = b.id" + on + ")")),
				other = pick(rnd, List.of("%2$s", "%2$s WHERE s <> 'b' OR v IS NULL", "(SELECT a.h AS id, MAX(a.id) AS h, SUM(a.v) AS v, MIN(a.s) AS s FROM %1$s a WHERE a.h IS NOT NULL GROUP BY a.h)"));
			switch (rnd.nextInt(5)) {
			case 0 -> {
				q.keys = 2;
				q.flink = "SELECT id AS c0, 'a' AS c1, v AS c2, s AS c3 FROM " + from + "\n  UNION ALL SELECT id, 'b', v, s FROM " + other;
			}
			case 1 -> {
				q.keys = 0;
				q.flink = "SELECT id AS c0, v AS c1, s AS c2 FROM " + from + "\n  UNION ALL SELECT id, v, s FROM " + other;
			}
			case 2 -> {
				q.keys = 2;
				q.flink = "SELECT s AS c0, h AS c1 FROM " + from + "\n  UNION SELECT s, h FROM " + other;
			}
			case 3 -> q.flink = "SELECT k AS c0, COUNT(*) AS c1, SUM(v) AS c2, MAX(v) AS c3\n  FROM (SELECT s AS k, v FROM " + from + " UNION ALL SELECT s, v FROM " + other + ") GROUP BY k";
			default -> q.flink = "SELECT k AS c0, COUNT(*) AS c1, SUM(v) AS c2, MAX(w) AS c3\n  FROM (SELECT COALESCE(a.s, b.s) AS k, a.v AS v, b.v AS w FROM %1$s a FULL JOIN %2$s b ON a.id = b.id" + on + ") GROUP BY k";
			}
		}
		case "TABLES SEMI" -> {
			String in = pick(rnd, List.of("IN (SELECT id FROM %2$s b)", "IN (SELECT h FROM %2$s b)", "IN (SELECT b.h FROM %2$s b WHERE b.v > 0 AND b.s <> 'c')", "NOT IN (SELECT id FROM %2$s b WHERE b.v > 0)",
				"IN (SELECT DISTINCT h FROM %2$s b WHERE h > 0)", "IN (SELECT h FROM %2$s b GROUP BY h HAVING COUNT(*) > 1)", "IN (SELECT b.h FROM %2$s b JOIN %1$s c ON b.id = c.id WHERE c.v > 0)"));
			String exists = pick(rnd, List.of("b.id = a.id", "b.id = a.h", "b.h = a.h", "b.h = a.h AND b.s = a.s", "b.id = a.h AND b.v > a.v", "b.id = a.id AND b.s <> 'a' AND a.s = b.s", "b.h = a.id AND b.v > 0"));
			q.flink = "SELECT a.id AS c0, a.v AS c1, a.s AS c2\n  FROM %1$s a WHERE " + pick(rnd, List.of("", "a.s <> 'b' AND "))
				+ (rnd.nextInt(3) == 0 ? (in.startsWith("NOT") ? "a.id " : pick(rnd, List.of("a.id ", "a.h "))) + in
				: pick(rnd, List.of("", "NOT ")) + "EXISTS (SELECT " + pick(rnd, List.of("1", "*", "b.v")) + " FROM %2$s b WHERE " + exists + ")"
				+ (rnd.nextInt(4) == 0 ? " AND a.id " + in : ""));
			if (rnd.nextInt(5) == 0)
				q.flink = "SELECT c2 AS c0, COUNT(*) AS c1, MAX(c1) AS c2 FROM (" + q.flink + ") GROUP BY c2";
		}
		case "TABLES FULL FULL" -> {
			inputs = 3;
			String last = pick(rnd, List.of("FULL JOIN", "FULL JOIN", "LEFT JOIN", "JOIN"));
			boolean all = last.startsWith("FULL");
			String all3 = pick(rnd, List.of("COALESCE(a.id, b.id, c.id)", "COALESCE(COALESCE(a.id, b.id), c.id)", "COALESCE(a.id, COALESCE(b.id, c.id))"));
			String from = "%1$s a FULL JOIN %2$s b ON a.id = b.id " + last + " %3$s c ON COALESCE(a.id, b.id) = c.id";
			switch (rnd.nextInt(4)) {
			case 0 -> q.flink = "SELECT k AS c0, COUNT(*) AS c1, SUM(v) AS c2, MAX(w) AS c3\n  FROM (SELECT COALESCE(a.s, b.s, c.s) AS k, a.v AS v, c.v AS w FROM " + from + ") GROUP BY k";
			case 1 -> q.flink = "SELECT k AS c0, av AS c1, bh AS c2, c.s AS c3\n  FROM (SELECT COALESCE(a.id, b.id) AS k, a.v AS av, b.h AS bh FROM %1$s a FULL JOIN %2$s b ON a.id = b.id) ab LEFT JOIN %3$s c ON "
				+ pick(rnd, List.of("k = c.id", "bh = c.id", "av > 0 AND k = c.id"));
			default -> q.flink = "SELECT " + (all ? all3 : "COALESCE(a.id, b.id)") + " AS c0, a.v AS c1, b.v AS c2, c.s AS c3\n  FROM " + from
				+ (rnd.nextInt(3) == 0 ? "\n  WHERE " + pick(rnd, List.of("a.v IS NULL OR a.v > -3", "b.id IS NULL OR b.v > -3", "c.s IS DISTINCT FROM 'b'")) : "");
			}
		}
		case "TABLES USING" -> {
			join = pick(rnd, List.of("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"));
			/* In Flink the name alone is ambiguous. */
			q.flink = "SELECT id AS c0, v AS c1, h0 AS c2, s0 AS c3\n  FROM (SELECT * FROM (SELECT id, v FROM %1$s) a " + join + " (SELECT id, h AS h0, s AS s0 FROM %2$s) b USING (id))";
		}
		case "TABLES RIGHT" -> q.flink = "SELECT b.id AS c0, a.id AS c1, a.v AS c2, " + value + " AS c3\n  FROM %1$s a RIGHT JOIN %2$s b ON " + pick(rnd, List.of("a.id = b.id", "a.id = b.h")) + on + where;
		case "TABLES" -> q.flink = "SELECT a.id AS c0, a.v AS c1, " + value + " AS c2\n  FROM %1$s a " + join + " %2$s b ON a.id = b.id" + on + where;
		case "TABLES FULL" -> {
			/* With a further condition both rows of a key may be there alone. */
			q.keys = on.isEmpty() ? 1 : 0;
			q.flink = "SELECT " + (on.isEmpty() ? "COALESCE(a.id, b.id) AS c0, a.h" : "a.id AS c0, b.id") + " AS c1, a.v AS c2, " + value + " AS c3\n  FROM %1$s a FULL JOIN %2$s b ON a.id = b.id" + on;
		}
		case "TABLES FOREIGN" -> q.flink = "SELECT a.id AS c0, b.id AS c1, a.v AS c2, " + value + " AS c3\n  FROM %1$s a " + join + " %2$s b ON a.h = b.id" + on + where;
		case "TABLES THREE" -> {
			inputs = 3;
			q.flink = "SELECT a.id AS c0, a.v AS c1, " + value + " AS c2, c.v AS c3\n  FROM %1$s a " + join + " %2$s b ON " + pick(rnd, List.of("a.id = b.id", "a.h = b.id")) + on + " "
				+ pick(rnd, List.of("JOIN", "LEFT JOIN")) + " %3$s c ON " + pick(rnd, List.of("a.id = c.id", "b.h = c.id", "a.h = c.id"));
		}
		default -> {
			StringBuilder s = new StringBuilder("SELECT ");
			boolean joined = rnd.nextInt(3) != 0;
			String key = joined ? pick(rnd, List.of("b.g", "a.g", "b.s")) : "a.g";
			s.append(key).append(" AS c0");
			for (int i = 1, n = 1 + rnd.nextInt(4); i <= n; i++)
				s.append(", ").append(pick(rnd, AGGS)).append(" AS c").append(i);
			s.append("\n  FROM %1$s a");
			if (joined)
				s.append(" ").append(join).append(" %2$s b ON ").append(pick(rnd, List.of("a.id = b.id", "a.h = b.id"))).append(on).append(where);
			else
				inputs = 1;
			s.append("\n  GROUP BY ").append(key);
			if (rnd.nextInt(4) == 0)
				s.append("\n  HAVING COUNT(*) > 1");
			q.flink = s.toString();
		}
		}
		for (int i = 0; i < inputs; i++) {
			q.inputs.add(changes(rnd, unit, rnd.nextInt(3), 1 + rnd.nextInt(40)));
			q.upsert[i] = true;
		}
	}

	/** Rows of a stream with the version of the table's row that was valid at their time. */
	private static void temporal(Random rnd, Queries.Query q, long unit) {
		long disorder = rnd.nextInt(6);
		q.flink = "SELECT a.id AS c0, a.v AS c1, b.id AS c2, " + pick(rnd, List.of("b.v", "a.v + b.v", "b.s")) + " AS c3\n  FROM %1$s a " + pick(rnd, List.of("JOIN", "LEFT JOIN"))
			+ " %2$s FOR SYSTEM_TIME AS OF a.et AS b ON a.h = b.id" + pick(rnd, List.of("", "", " AND a.v > b.v", " AND b.s <> 'b'"));
		q.inputs.add(Queries.input(rnd, unit, disorder, 1 + rnd.nextInt(40)));
		q.inputs.add(changes(rnd, unit, disorder, 1 + rnd.nextInt(40)));
		q.upsert[1] = true;
		long ahead = (Long) q.inputs.get(0).get(0)[7] - 1767225600000L;
		for (Object[] r : q.inputs.get(0)) /* it begins where the table does */
			r[7] = (Long) r[7] - ahead;
	}

	/** Two joins by time in one statement. */
	private static void streams(Random rnd, Queries.Query q, long unit) {
		StringBuilder s = new StringBuilder("SELECT a.id AS c0, b.id AS c1, c.id AS c2, " + pick(rnd, List.of("b.v", "a.v + c.v", "COALESCE(c.s, b.s)")) + " AS c3\n  FROM %1$s a");
		boolean left = false;
		for (String t : List.of("b", "c")) {
			String from = " - " + Queries.interval(unit * rnd.nextInt(12)), to = " + " + Queries.interval(unit * rnd.nextInt(12));
			String join = pick(rnd, List.of("JOIN", "LEFT JOIN"));
			left |= t.equals("b") && join.startsWith("LEFT");
			s.append("\n  ").append(join).append(t.equals("b") ? " %2$s b" : " %3$s c").append(" ON a.g = ").append(t).append(".g AND ").append(t).append(".et BETWEEN a.et")
				.append(from).append(" AND a.et").append(to).append(rnd.nextInt(4) == 0 ? " AND a.h = " + t + ".h" : "");
		}
		q.flink = s.toString();
		/* Flink has one timer a key: a row without a match that came out of order leaves behind the time that the next join has seen. */
		for (int i = 0; i < 3; i++)
			q.inputs.add(Queries.input(rnd, unit, left && i == 0 ? 0 : rnd.nextInt(6), 1 + rnd.nextInt(20)));
	}

	/** The rows of windows in larger windows. */
	private static void windows(Random rnd, Queries.Query q, long unit) {
		long size = unit * (1 + rnd.nextInt(12)), n = 1 + rnd.nextInt(6);
		q.delay = rnd.nextInt(3) == 0 ? 0 : unit * rnd.nextInt(20);
		q.extra = 1;
		String inner = pick(rnd, List.of("TUMBLE(TABLE %1$s, DESCRIPTOR(et), " + Queries.interval(size) + ")",
			"HOP(TABLE %1$s, DESCRIPTOR(et), " + Queries.interval(size) + ", " + Queries.interval(size * n) + ")"));
		q.view = "SELECT g, h, COUNT(*) AS n, SUM(v) AS v, window_time AS rt FROM TABLE(" + inner + ") GROUP BY g, h, window_start, window_end, window_time";
		String outer = pick(rnd, List.of("TUMBLE(TABLE %4$s, DESCRIPTOR(rt), " + Queries.interval(size * n) + ")",
			"HOP(TABLE %4$s, DESCRIPTOR(rt), " + Queries.interval(size) + ", " + Queries.interval(size * n) + ")", "CUMULATE(TABLE %4$s, DESCRIPTOR(rt), " + Queries.interval(size) + ", " + Queries.interval(size * n) + ")"));
		String key = pick(rnd, List.of("g", "h"));
		q.flink = "SELECT " + key + " AS c0, window_start AS c1, window_end AS c2, COUNT(*) AS c3, SUM(n) AS c4, MAX(v) AS c5\n  FROM TABLE(" + outer + ")\n  GROUP BY " + key + ", window_start, window_end";
		q.inputs.add(Queries.input(rnd, unit, rnd.nextInt(3) == 0 ? 0 : 1 + rnd.nextInt(12), 1 + rnd.nextInt(50)));
	}

	/** Windows of what other operators hand on with its time. Nothing is late. */
	private static void behind(Random rnd, Queries.Query q, String kind, long unit) {
		long disorder = rnd.nextInt(6);
		q.extra = 1;
		List<Object[]> stream = Queries.input(rnd, unit, disorder, 1 + rnd.nextInt(40));
		switch (kind) {
		case "WINDOWS OF JOINS", "OVER OF JOINS" -> {
			String join = pick(rnd, List.of("JOIN", "JOIN", "LEFT JOIN"));
			q.view = "SELECT a.g AS g, a.h AS h, a.v AS v, b.s AS s, " + (join.equals("JOIN") && rnd.nextBoolean() ? "b" : "a") + ".et AS et FROM %1$s a " + join + " %2$s b ON a.g = b.g AND b.et BETWEEN a.et - " + Queries.interval(unit * rnd.nextInt(12)) + " AND a.et + "
				+ Queries.interval(unit * rnd.nextInt(12));
			if (!join.equals("JOIN")) /* as of two joins, above */
				stream.sort(java.util.Comparator.comparing(r -> (Long) r[7]));
			q.inputs.add(stream);
			q.inputs.add(Queries.input(rnd, unit, disorder, 1 + rnd.nextInt(40)));
		}
		case "WINDOWS OF UNIONS" -> {
			q.view = "SELECT g, h, v, s, et FROM %1$s UNION ALL SELECT " + pick(rnd, List.of("g", "s")) + ", h, v, s, et FROM %2$s";
			q.inputs.add(stream);
			q.inputs.add(Queries.input(rnd, unit, disorder, 1 + rnd.nextInt(40)));
		}
		case "WINDOWS OF VERSIONS" -> {
			temporal(rnd, q, unit);
			q.view = "SELECT a.g AS g, a.h AS h, a.v AS v, b.s AS s, a.et AS et FROM %1$s a " + pick(rnd, List.of("JOIN", "LEFT JOIN")) + " %2$s FOR SYSTEM_TIME AS OF a.et AS b ON a.h = b.id";
		}
		case "WINDOWS OF OVER" -> {
			q.view = "SELECT g, h, " + pick(rnd, List.of("SUM", "MAX", "COUNT")) + "(v) OVER (PARTITION BY " + pick(rnd, List.of("g", "h")) + " ORDER BY et ROWS BETWEEN " + rnd.nextInt(4)
				+ " PRECEDING AND CURRENT ROW) AS v, s, et FROM %1$s";
			q.inputs.add(stream);
		}
		default -> {
			q.view = "SELECT tag AS g, h, v, s, et FROM %1$s " + pick(rnd, List.of("CROSS JOIN UNNEST(tags) AS t (tag)", "LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE"));
			q.inputs.add(stream);
		}
		}
		String key = pick(rnd, List.of("g", "h", "s")), tvf;
		if (kind.startsWith("OVER")) { /* in which no order of rows of one time is seen */
			String over = " OVER (PARTITION BY " + key + " ORDER BY et" + pick(rnd, List.of("", " RANGE BETWEEN " + Queries.interval(unit * rnd.nextInt(15)) + " PRECEDING AND CURRENT ROW")) + ")";
			q.flink = "SELECT g AS c0, h AS c1, v AS c2, s AS c3, COUNT(*)" + over + " AS c4, " + pick(rnd, List.of("SUM(v)", "MAX(s)", "MIN(v)", "AVG(v)")) + over + " AS c5\n  FROM %4$s";
			return;
		}
		long size = unit * (1 + rnd.nextInt(12));
		if (rnd.nextBoolean()) {
			tvf = "TUMBLE(TABLE %4$s, DESCRIPTOR(et), " + Queries.interval(size) + ")";
		} else { /* which Flink closes 2 ms earlier: even times, odd gaps */
			tvf = "SESSION(TABLE %4$s PARTITION BY " + key + ", DESCRIPTOR(et), " + Queries.interval(2 * size + 1) + ")";
			q.delay *= 2;
			for (List<Object[]> rows : q.inputs)
				for (Object[] r : rows)
					r[7] = 2 * (Long) r[7] - 1767225600000L;
		}
		q.flink = "SELECT " + key + " AS c0, window_start AS c1, window_end AS c2, COUNT(*) AS c3, SUM(v) AS c4, MAX(s) AS c5\n  FROM TABLE(" + tvf + ")\n  GROUP BY " + key + ", window_start, window_end";
	}

	/** Arrays taken apart. */
	private static void unnest(Random rnd, Queries.Query q, long unit) {
		boolean number = rnd.nextInt(3) == 0; /* which Flink refuses of a LEFT JOIN */
		String columns = number ? " WITH ORDINALITY AS t (tag, n)" : " AS t (tag)";
		q.flink = "SELECT id AS c0, tag AS c1, " + (number ? "n" : "v") + " AS c2\n  FROM %1$s e " + (number || rnd.nextBoolean() ? "CROSS JOIN UNNEST(e.tags)" + columns : "LEFT JOIN UNNEST(e.tags)" + columns + " ON TRUE")
			+ pick(rnd, List.of("", "", "\n  WHERE tag <> 'b'", "\n  WHERE tag IS NULL OR v > 0"));
		q.inputs.add(Queries.input(rnd, unit, rnd.nextInt(6), 1 + rnd.nextInt(40)));
	}
}
