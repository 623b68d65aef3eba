/* Queries.java: random queries (windows, plain GROUP BY, interval joins) over small random inputs, several in one job of Flink, each
 * in a run of weir of its own; the rows must be the same. Flink gets 1 ms more delay for windows and 2 ms for sessions, since
 * it closes them so much earlier. */
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import judge.Recorded;
import judge.Weir;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

final class Queries {
	static final String[] NAMES = {"id", "g", "h", "v", "d", "x", "s", "ts", "tags"};
	static final String[] SQL_TYPES = {"INT", "STRING", "INT", "BIGINT", "DECIMAL(8, 2)", "DOUBLE", "STRING", "BIGINT", "ARRAY<STRING>"};
	private static final TypeInformation<?>[] INFOS = {Types.INT, Types.STRING, Types.INT, Types.LONG, Types.BIG_DEC, Types.DOUBLE, Types.STRING, Types.LONG, Types.OBJECT_ARRAY(Types.STRING)};
	private static final List<String> AGGS = List.of("COUNT(*)", "COUNT(v)", "SUM(v)", "MIN(v)", "MAX(v)", "AVG(v)", "SUM(h)", "AVG(h)", "MIN(h)", "SUM(d)", "AVG(d)", "MIN(d)", "MAX(d)",
		"SUM(x)", "AVG(x)", "MAX(x)", "MIN(s)", "MAX(s)", "COUNT(DISTINCT v)", "COUNT(DISTINCT s)", "FIRST_VALUE(v)", "LAST_VALUE(v)", "LAST_VALUE(s)", "SUM(v) FILTER (WHERE h > 1)",
		"COUNT(*) FILTER (WHERE v IS NULL)", "MAX(d) FILTER (WHERE s <> 'a')", "COALESCE(SUM(v), 0) + COUNT(*)", "SUM(v * h)", "SUM(CASE WHEN v > 0 THEN d ELSE 0 END)", "MAX(CHAR_LENGTH(s))",
		"CAST(AVG(x) AS DECIMAL(12, 4))", "SUM(d) / COUNT(*)", "MAX(v) - MIN(v)", "AVG(CAST(v AS DOUBLE))", "COUNT(DISTINCT h) FILTER (WHERE v > 0)", "SUM(d * 1.5)", "MIN(COALESCE(s, 'zz'))", "UPPER(MAX(s))",
		"CASE WHEN COUNT(v) = 0 THEN 'none' ELSE MIN(s) END", "MAX(ts)", "SUM(v) > 3", "AVG(d) > AVG(x)");
	/** In Flink the others have no merge(), which all windows but tumbling ones want. */
	private static final List<String> MERGED = AGGS.stream().filter(a -> !a.contains("_VALUE")).toList();
	private static final List<String> WHERES = List.of("v > 0", "NOT (v > 0 AND h = 1)", "s IS DISTINCT FROM 'b'", "v IS NOT NULL OR s = 'a'", "x BETWEEN -2 AND 2.25", "s IN ('a', 'c')", "g LIKE 'k%'", "d < v", "h <> 1 OR g IS NULL");
	private static final List<String> HAVINGS = List.of("COUNT(*) > 1", "SUM(v) > 2", "MAX(d) IS NOT NULL", "MIN(s) = 'a' OR COUNT(v) > 1", "AVG(x) <= 1.5");

	/** One case: its queries (%1$s, %2$s and %3$s are tables, %4$s is the view) and inputs. */
	static final class Query {
		String name;
		String flink;
		String view;
		long delay, extra;
		boolean table;
		int keys;
		List<List<Object[]>> inputs = new ArrayList<>();
		/** Inputs that are tables: rows replace the one of their id, or are its end (a further element says which). */
		boolean[] upsert = new boolean[3];
		/** Nothing is late, and rows of one time may come in any order. */
		boolean calm() {
			return name.endsWith("JOIN") || name.startsWith("TABLE") || name.equals("TEMPORAL") || name.equals("THREE STREAMS") || name.equals("UNNEST") || name.equals("OVER OF JOINS")
				|| (name.startsWith("WINDOWS OF") && !name.endsWith("OVER") && !name.endsWith("WINDOWS"))
				|| ((name.equals("GROUP") || name.equals("GROUPED GROUPS")) && !flink.contains("_VALUE"));
		}

		/** Names and types of the result's columns. */
		String columns;
	}

	private final Cluster flink;
	private final Path root;
	private final long seed;
	int compared, rows;
	final Map<String, Integer> kinds = new TreeMap<>();
	final List<String> differences = new ArrayList<>();
	final List<String> leftOut = new ArrayList<>();
	int asked;
	/** Queries whose kind begins so, null: all. */
	String only;

	Queries(Cluster flink, Path root, long seed) {
		this.flink = flink;
		this.root = root;
		this.seed = seed;
	}

	private static <T> T pick(Random rnd, List<T> l) {
		return l.get(rnd.nextInt(l.size()));
	}

	static String interval(long ms) {
		return "INTERVAL '" + ms / 1000 + "." + String.format("%03d", ms % 1000) + "' SECOND(" + Math.max(2, ("" + ms / 1000).length()) + ", 3)";
	}

	static List<Object[]> input(Random rnd, long unit, long disorder, int count) {
		List<Object[]> out = new ArrayList<>();
		long time = 1767225600000L + rnd.nextInt(100) * unit, step = 1 + rnd.nextInt(6);
		int groups = 1 + rnd.nextInt(3);
		for (int i = 0; i < count; i++) {
			time += unit * rnd.nextLong(step + 1) + (rnd.nextInt(25) == 0 ? unit * 60 : 0);
			long back = disorder == 0 ? 0 : unit * rnd.nextLong(disorder * (rnd.nextInt(12) == 0 ? 6 : 1) + 1);
			out.add(new Object[]{i, rnd.nextInt(10) == 0 ? null : "k" + rnd.nextInt(groups), rnd.nextInt(3), rnd.nextInt(8) == 0 ? null : (long) rnd.nextInt(21) - 8,
				rnd.nextInt(8) == 0 ? null : BigDecimal.valueOf(rnd.nextInt(2001) - 1000, 2), rnd.nextInt(8) == 0 ? null : (rnd.nextInt(41) - 20) / 4.0,
				rnd.nextInt(8) == 0 ? null : "" + (char) ('a' + rnd.nextInt(3)), time - back, tags(rnd)});
		}
		return out;
	}

	/** Up to three, NULL among them, or none. */
	static String[] tags(Random rnd) {
		return rnd.nextInt(8) == 0 ? null : rnd.ints(rnd.nextInt(4), 0, 4).mapToObj(n -> n == 3 ? null : "" + (char) ('a' + n)).toArray(String[]::new);
	}

	private static Query make(Random rnd) {
		Query q = new Query();
		long unit = pick(rnd, List.of(1L, 1L, 10L, 1000L));
		String kind = pick(rnd, List.of("TUMBLE", "HOP", "HOP", "CUMULATE", "CUMULATE", "SESSION", "SESSION", "GROUP", "JOIN", "LEFT JOIN", "FULL OUTER JOIN", "RIGHT JOIN", "WINDOW JOIN", "WINDOW LEFT JOIN",
			"WINDOW RIGHT JOIN", "WINDOW FULL OUTER JOIN", "OVER", "OVER", "GROUPED GROUPS", "ARRAYS", "DISTINCT", "DISTINCT", "LAST ROW", "LAST ROW", "LAST ROW AS OF"));
		if (rnd.nextInt(3) == 0) {
			q.name = kind = pick(rnd, Tables.KINDS);
			Tables.make(rnd, q, kind, unit);
			return q;
		}
		q.name = kind;
		if (kind.startsWith("WINDOW")) {
			windowJoin(rnd, q, kind.substring(7), unit);
			return q;
		}
		if (kind.endsWith("JOIN")) {
			join(rnd, q, kind, unit);
			return q;
		}
		if (kind.equals("OVER")) {
			over(rnd, q, unit);
			return q;
		}
		if (kind.startsWith("LAST ROW")) {
			last(rnd, q, kind.endsWith("AS OF"), unit);
			return q;
		}
		if (kind.equals("DISTINCT")) {
			distinct(rnd, q, unit);
			return q;
		}
		if (kind.equals("GROUPED GROUPS") || kind.equals("ARRAYS")) {
			twice(rnd, q, unit, kind.equals("ARRAYS"));
			return q;
		}
		long n = 1 + rnd.nextInt(8), size = unit * (1 + rnd.nextInt(12));
		q.delay = rnd.nextInt(3) == 0 ? 0 : unit * rnd.nextInt(20);
		q.extra = kind.equals("SESSION") ? 2 : 1;
		q.table = kind.equals("GROUP");
		List<String> keys = rnd.nextInt(8) == 0 ? new ArrayList<>() : new ArrayList<>(pick(rnd, List.of(List.of("g"), List.of("g"), List.of("h"), List.of("g", "h"), List.of("s", "g"))));
		if (keys.isEmpty() && q.table)
			keys.add("g");
		String tvf = switch (kind) {
		case "TUMBLE" -> "TABLE(TUMBLE(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + "))";
		case "HOP" -> "TABLE(HOP(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + ", " + interval(size * n) + "))";
		case "CUMULATE" -> "TABLE(CUMULATE(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + ", " + interval(size * n) + "))";
		case "SESSION" -> "TABLE(SESSION(TABLE %1$s" + (keys.isEmpty() ? "" : " PARTITION BY " + (keys.size() == 1 ? keys.get(0) : "(" + String.join(", ", keys) + ")")) + ", DESCRIPTOR(et), "
			+ interval(size) + "))";
		default -> "%1$s";
		};
		StringBuilder s = new StringBuilder("SELECT ");
		List<String> columns = new ArrayList<>(keys);
		if (!q.table) {
			columns.add("window_start");
			columns.add("window_end");
		}
		q.keys = columns.size();
		List<String> groups = List.copyOf(columns);
		for (int i = 1 + rnd.nextInt(5); i > 0; i--)
			columns.add(pick(rnd, kind.equals("TUMBLE") || q.table ? AGGS : MERGED));
		for (int i = 0; i < columns.size(); i++)
			s.append(i == 0 ? "" : ", ").append(columns.get(i)).append(" AS c").append(i);
		s.append("\n  FROM ").append(tvf);
		if (rnd.nextInt(3) == 0)
			s.append("\n  WHERE ").append(pick(rnd, WHERES).replace("%", "%%"));
		s.append("\n  GROUP BY ").append(String.join(", ", groups));
		if (rnd.nextInt(4) == 0)
			s.append("\n  HAVING ").append(pick(rnd, HAVINGS));
		q.flink = s.toString();
		q.inputs.add(input(rnd, unit, rnd.nextInt(3) == 0 ? 0 : 1 + rnd.nextInt(12), 1 + rnd.nextInt(50)));
		return q;
	}

	/** The two sources interleave as they like: nothing may be late. */
	private static void join(Random rnd, Query q, String kind, long unit) {
		long disorder = rnd.nextInt(6), before = unit * rnd.nextInt(12), after = unit * rnd.nextInt(12);
		q.delay = unit * (disorder * 6 + 1);
		StringBuilder s = new StringBuilder("SELECT a.id AS c0, b.id AS c1, a.g AS c2, " + pick(rnd, List.of("b.g", "COALESCE(a.h, b.h) + 1", "a.v + b.v", "a.s || b.s", "CASE WHEN b.id IS NULL THEN 'alone' ELSE b.s END"))
			+ " AS c3\n  FROM %1$s a " + kind + " %2$s b ON a.g = b.g");
		if (rnd.nextInt(4) == 0)
			s.append(" AND a.h = b.h");
		s.append(pick(rnd, List.of(" AND b.et BETWEEN a.et - " + interval(before) + " AND a.et + " + interval(after), " AND a.et >= b.et - " + interval(after) + " AND a.et <= b.et + " + interval(before),
			" AND b.et > a.et - " + interval(before + 1) + " AND b.et < a.et + " + interval(after + 1))));
		if (rnd.nextInt(3) == 0)
			s.append(pick(rnd, List.of(" AND a.v > b.v", " AND a.s <> b.s", " AND (b.v > 0 OR a.v > 0)", " AND a.v > 0", " AND b.s = 'a'")));
		if (rnd.nextInt(4) == 0)
			s.append("\n  WHERE ").append(pick(rnd, List.of("a.v IS NULL OR a.v > -3", "b.id IS NULL OR b.v > -3", "COALESCE(a.s, b.s) <> 'b'")));
		q.flink = kind.equals("JOIN") ? byWhere(s.toString(), (int) ((before + after) / unit % 3)) : s.toString();
		for (int i = 0; i < 2; i++)
			q.inputs.add(input(rnd, unit, disorder, 1 + rnd.nextInt(30)));
	}

	/** An inner join with its conditions in ON (0), in WHERE behind a comma (1), or its bounds in time there (2). */
	private static String byWhere(String join, int form) {
		if (form == 0)
			return join;
		String one = join.contains("\n  WHERE ") ? join.replace("\n  WHERE ", " AND (") + ")" : join;
		return form == 1 ? one.replace(" JOIN %2$s b ON ", ", %2$s b\n  WHERE ") : one.replace(" ON a.g = b.g AND ", " ON a.g = b.g\n  WHERE ");
	}

	/** Rows of one window, or of aggregates of one. (Of b.s = 'a' Flink would never end its plan.) */
	private static void windowJoin(Random rnd, Query q, String kind, long unit) {
		long disorder = rnd.nextInt(6), size = unit * (1 + rnd.nextInt(12)), n = 1 + rnd.nextInt(4);
		q.delay = unit * (disorder * 6 + 1);
		boolean counted = rnd.nextInt(4) == 0;
		String tvf = rnd.nextBoolean() ? "TABLE(TUMBLE(TABLE %s, DESCRIPTOR(et), " + interval(size) + "))" : "TABLE(HOP(TABLE %s, DESCRIPTOR(et), " + interval(size) + ", " + interval(size * n) + "))";
		String row = counted ? "(SELECT g, COUNT(*) AS id, MAX(h) AS h, SUM(v) AS v, MIN(s) AS s, window_start, window_end FROM " + tvf + " GROUP BY g, window_start, window_end)"
			: rnd.nextInt(3) == 0 ? "(SELECT * FROM " + tvf + " WHERE v IS NULL OR v > -4)" : "(SELECT * FROM " + tvf + ")";
		StringBuilder s = new StringBuilder("SELECT a.id AS c0, b.id AS c1, a.g AS c2, " + pick(rnd, List.of("b.g", "COALESCE(a.h, b.h) + 1", "a.v + b.v", "a.s || b.s"))
			+ " AS c3, a.window_start AS c4, b.window_end AS c5\n  FROM " + String.format(row, "%1$s") + " a " + kind + " " + String.format(row, "%2$s") + " b\n  ON a.g = b.g");
		if (rnd.nextInt(4) == 0)
			s.append(" AND a.h = b.h");
		s.append(" AND a.window_start = b.window_start AND a.window_end = b.window_end");
		if (rnd.nextInt(3) == 0)
			s.append(pick(rnd, List.of(" AND a.v > b.v", " AND a.s <> b.s", " AND (b.v > 0 OR a.v > 0)", " AND a.v > 0", " AND b.s < 'b'")));
		q.flink = s.toString();
		for (int i = 0; i < 2; i++)
			q.inputs.add(input(rnd, unit, disorder, 1 + rnd.nextInt(30)));
	}

	/** Functions over the rows of a key; one frame a query, as Flink wants it. Nothing is late: Flink counts as late only what a key has passed. LAG takes
	 * all rows of one time for one in Flink, so there are none. */
	private static void over(Random rnd, Query q, long unit) {
		long disorder = rnd.nextInt(3) == 0 ? 0 : rnd.nextInt(8);
		boolean lag = rnd.nextInt(3) == 0;
		if (lag) /* intervals of Flink have three digits of seconds at most */
			unit = Math.min(unit, 10) * 64;
		q.delay = unit * (disorder * 6 + 1);
		String partition = pick(rnd, List.of("PARTITION BY g ", "PARTITION BY g ", "PARTITION BY h ", "PARTITION BY g, h ", "PARTITION BY s, g ", ""));
		String frame = lag ? "" : pick(rnd, List.of("", " ROWS BETWEEN " + rnd.nextInt(6) + " PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
			" RANGE BETWEEN " + interval(unit * rnd.nextInt(15)) + " PRECEDING AND CURRENT ROW", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"));
		StringBuilder s = new StringBuilder("SELECT id AS c0, g AS c1");
		int count = 1 + rnd.nextInt(4);
		for (int i = 0; i < count; i++) {
			String fn = lag ? pick(rnd, List.of("LAG(v)", "LAG(v, 1)", "LAG(s, 2)", "LAG(COALESCE(d, 7), 1, 0.25)", "LAG(COALESCE(v, 7), 3, CAST(-1 AS BIGINT))", "LAG(x)", "LAG(CHAR_LENGTH(s) + h, 1)"))
				: pick(rnd, List.of("COUNT(*)", "COUNT(v)", "SUM(v)", "MIN(v)", "MAX(v)", "AVG(v)", "SUM(h)", "SUM(d)", "AVG(d)", "MIN(d)", "MAX(d)", "SUM(x)", "MAX(x)", "MIN(s)", "MAX(s)", "FIRST_VALUE(v)",
					"LAST_VALUE(v)", "FIRST_VALUE(s)", "LAST_VALUE(s)", "SUM(v * h)", "MAX(COALESCE(s, 'zz'))"));
			s.append(", ").append(fn).append(" OVER (").append(partition).append("ORDER BY et").append(frame).append(") AS c").append(i + 2);
		}
		s.append("\n  FROM %1$s");
		if (rnd.nextInt(3) == 0)
			s.append("\n  WHERE ").append(pick(rnd, WHERES).replace("%", "%%"));
		q.flink = s.toString();
		q.inputs.add(input(rnd, unit, disorder, 1 + rnd.nextInt(50)));
		if (lag)
			for (Object[] r : q.inputs.get(0))
				r[7] = (Long) r[7] + (Integer) r[0];
	}

	/** The last, and the first, row of each key by event time; and the last one as of a time. Nothing is late. */
	private static void last(Random rnd, Query q, boolean asOf, long unit) {
		long disorder = rnd.nextInt(3) == 0 ? 0 : rnd.nextInt(8);
		String key = pick(rnd, List.of("g", "h", "s"));
		q.delay = unit * (disorder * 6 + 1);
		String rows = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY %s ORDER BY et%s) AS rn FROM %s)";
		if (asOf) {
			q.view = "SELECT id, g, h, v, s, et FROM " + String.format(rows, key, " DESC", "%2$s") + " WHERE rn = 1";
			q.flink = "SELECT a.id AS c0, a.v AS c1, b.id AS c2, " + pick(rnd, List.of("b.v", "a.v + b.v", "b.s")) + " AS c3\n  FROM %1$s a " + pick(rnd, List.of("JOIN", "LEFT JOIN"))
				+ " %4$s FOR SYSTEM_TIME AS OF a.et AS b ON a." + key + " = b." + key + " WHERE a." + key + " IS NOT NULL";
			for (int i = 0; i < 2; i++) { /* Flink forgets a version that comes after a newer one */
				q.inputs.add(input(rnd, unit, i == 0 ? disorder : 0, 1 + rnd.nextInt(40)));
				long ahead = (Long) q.inputs.get(i).get(0)[7] - 1767225600000L;
				for (Object[] r : q.inputs.get(i))
					r[7] = (Long) r[7] - ahead;
			}
			return;
		}
		boolean first = rnd.nextInt(4) == 0, grouped = !first && rnd.nextInt(3) == 0;
		String where = rnd.nextInt(3) == 0 ? " WHERE " + pick(rnd, WHERES).replace("%", "%%") : "";
		String from = String.format(rows, key, first ? "" : " DESC", "%1$s" + where), limit = pick(rnd, List.of(" WHERE rn = 1", " WHERE rn <= 1", " WHERE rn < 2", " WHERE 1 = rn"));
		q.table = !first;
		q.keys = 1;
		if (grouped)
			q.flink = "SELECT k AS c0, COUNT(*) AS c1, SUM(v) AS c2, MIN(s) AS c3\n  FROM (SELECT " + (key.equals("h") ? "g" : "h") + " AS k, v, s FROM " + from + limit + ") GROUP BY k";
		else
			q.flink = "SELECT " + key + " AS c0, id AS c1, v AS c2, " + pick(rnd, List.of("s", "d", "rn", "v + h")) + " AS c3\n  FROM " + from + limit
				+ (rnd.nextInt(3) == 0 ? " AND " + pick(rnd, List.of("v > 0", "s <> 'b'", "(h = 1 OR v < 3)")) : "");
		q.inputs.add(input(rnd, unit, disorder, 1 + rnd.nextInt(50)));
	}

	/** Rows that are equal are one: of a stream, of several, of windows, of groups that change. */
	private static void distinct(Random rnd, Query q, long unit) {
		long size = unit * (1 + rnd.nextInt(12));
		q.delay = unit * rnd.nextInt(20);
		q.extra = 1;
		q.table = true;
		q.keys = 2;
		int inputs = 1;
		String where = rnd.nextInt(3) == 0 ? " WHERE " + pick(rnd, WHERES).replace("%", "%%") : "";
		switch (rnd.nextInt(5)) {
		case 0 -> q.flink = "SELECT DISTINCT " + pick(rnd, List.of("g AS c0, h AS c1", "s AS c0, v AS c1", "g AS c0, COALESCE(s, g) AS c1", "h AS c0, d AS c1")) + " FROM %1$s" + where;
		case 1 -> {
			inputs = 2;
			q.flink = "SELECT g AS c0, h AS c1 FROM %1$s" + where + " UNION " + pick(rnd, List.of("", "SELECT g, h FROM %2$s UNION ")) + "SELECT s, h FROM %2$s";
		}
		case 2 -> q.flink = "SELECT DISTINCT k AS c0, n AS c1 FROM (SELECT h AS k, " + pick(rnd, List.of("COUNT(*)", "MAX(v)", "SUM(h)")) + " AS n FROM %1$s" + where + " GROUP BY g, h)";
		case 3 -> q.flink = "SELECT k AS c0, COUNT(*) AS c1 FROM (SELECT DISTINCT g AS k, s, h FROM %1$s" + where + ") GROUP BY k";
		default -> {
			q.table = false;
			q.flink = "SELECT DISTINCT g AS c0, window_start AS c1, window_end AS c2 FROM " + (rnd.nextBoolean() ? "TABLE(TUMBLE(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + "))"
				: "TABLE(HOP(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + ", " + interval(size * (1 + rnd.nextInt(4))) + "))") + where;
		}
		}
		if (q.flink.startsWith("SELECT k AS c0, COUNT"))
			q.keys = 1;
		for (int i = 0; i < inputs; i++)
			q.inputs.add(input(rnd, unit, rnd.nextInt(6), 1 + rnd.nextInt(50)));
	}

	/** A GROUP BY over a GROUP BY: what a group was is taken out; or arrays of windows, taken apart again. */
	private static void twice(Random rnd, Query q, long unit, boolean arrays) {
		long size = unit * (1 + rnd.nextInt(12));
		q.delay = unit * rnd.nextInt(20);
		q.extra = 1;
		q.table = !arrays;
		if (arrays) {
			q.flink = "SELECT g AS c0, window_start AS c1, x AS c2\n  FROM (SELECT g, window_start, window_end, ARRAY_AGG(" + pick(rnd, List.of("v", "s", "d", "h"))
				+ (rnd.nextInt(3) == 0 ? ") FILTER (WHERE h > 1" : "") + ") AS a\n    FROM TABLE(TUMBLE(TABLE %1$s, DESCRIPTOR(et), " + interval(size) + ")) GROUP BY g, window_start, window_end)\n  "
				+ (rnd.nextBoolean() ? "CROSS JOIN UNNEST(a) AS t (x)" : "LEFT JOIN UNNEST(a) AS t (x) ON TRUE");
		} else {
			q.keys = 1;
			StringBuilder s = new StringBuilder("SELECT k AS c0");
			int count = 1 + rnd.nextInt(4);
			for (int i = 1; i <= count; i++)
				s.append(", ").append(pick(rnd, List.of("COUNT(*)", "SUM(n)", "MIN(n)", "MAX(n)", "AVG(n)", "COUNT(DISTINCT n)", "MAX(m)", "MIN(m)", "COUNT(m)", "MIN(o)", "COUNT(*) FILTER (WHERE n > 1)")))
					.append(" AS c").append(i);
			q.flink = s + "\n  FROM (" + pick(rnd, List.of("SELECT g AS k, h AS o, COUNT(*) AS n, MAX(v) AS m FROM %1$s GROUP BY g, h",
				"SELECT h AS k, g AS o, SUM(v) AS n, MIN(d) AS m FROM %1$s GROUP BY g, h", "SELECT h AS k, s AS o, COUNT(v) AS n, MAX(x) AS m FROM %1$s GROUP BY s, h"))
				+ ")" + (rnd.nextInt(3) == 0 ? " WHERE n > 1" : "") + " GROUP BY k";
		}
		q.inputs.add(input(rnd, unit, rnd.nextInt(6), 1 + rnd.nextInt(50)));
	}

	private Table table(Query q, int number) {
		String[] names = new String[4];
		for (int i = 0; i < q.inputs.size(); i++) {
			names[i] = "t" + number + "_" + i;
			boolean upsert = q.upsert[i];
			Schema.Builder schema = Schema.newBuilder();
			for (int c = 0; c < NAMES.length; c++)
				schema.column(NAMES[c], SQL_TYPES[c] + (c == 0 && upsert ? " NOT NULL" : ""));
			schema.columnByExpression("et", "TO_TIMESTAMP_LTZ(ts, 3)").watermark("et", "et - " + interval(q.delay + q.extra));
			if (upsert)
				schema.primaryKey("id");
			DataStream<Row> rows = flink.env.fromData(new RowTypeInfo(INFOS, NAMES), q.inputs.get(i).stream().map(r -> {
				Row row = Row.of(Arrays.copyOf(r, NAMES.length));
				row.setKind(!upsert ? RowKind.INSERT : (Boolean) r[NAMES.length] ? RowKind.DELETE : RowKind.UPDATE_AFTER);
				return row;
			}).toArray(Row[]::new)).setParallelism(1);
			flink.tables.createTemporaryView(names[i], upsert ? flink.tables.fromChangelogStream(rows, schema.build(),
				ChangelogMode.newBuilder().addContainedKind(RowKind.INSERT).addContainedKind(RowKind.UPDATE_AFTER).addContainedKind(RowKind.DELETE).build())
				: flink.tables.fromDataStream(rows, schema.build()));
		}
		names[3] = "v" + number;
		if (q.view != null)
			flink.tables.createTemporaryView(names[3], flink.tables.sqlQuery(String.format(q.view, (Object[]) names)));
		Table result = flink.tables.sqlQuery(String.format(q.flink, (Object[]) names));
		q.columns = Runs.columns(result.getResolvedSchema());
		return result;
	}

	/** Cases [from, from + count) in one job; one that cannot be planned is left out, those of a job that fails are run alone. */
	void batch(int from, int count) throws Exception {
		List<Query> queries = new ArrayList<>();
		for (int k = from; k < from + count; k++) {
			Random rnd = new Random(seed * 1_000_003L + k);
			rnd.nextLong();
			queries.add(make(rnd));
		}
		asked += count;
		Map<Integer, List<Row>> results = new TreeMap<>();
		List<Integer> left = new ArrayList<>();
		for (int k = 0; k < count; k++)
			if (only == null || queries.get(k).name.startsWith(only))
				left.add(k);
		try {
			run(from, queries, left, results);
		} catch (Exception | AssertionError e) {
			for (int k : left) {
				results.remove(k);
				try {
					run(from, queries, new ArrayList<>(List.of(k)), results);
				} catch (Exception | AssertionError x) {
					results.remove(k);
					leaveOut(from + k, queries.get(k), x);
				}
			}
		}
		for (Map.Entry<Integer, List<Row>> e : results.entrySet())
			judge(from + e.getKey(), queries.get(e.getKey()), e.getValue());
	}

	/** One job. A planner that was given up may have left its tables half made, so all begin anew without that query. */
	private void run(int from, List<Query> queries, List<Integer> left, Map<Integer, List<Row>> results) throws Exception {
		for (boolean planned = false; !planned && !left.isEmpty();) {
			planned = true;
			results.clear();
			flink.beginPlanned();
			for (int k : left) {
				Query q = queries.get(k);
				try {
					results.put(k, flink.plan(() -> flink.collect(table(q, k))));
				} catch (Exception | AssertionError x) {
					left.remove((Integer) k);
					leaveOut(from + k, q, x);
					planned = false;
					break;
				}
			}
		}
		if (!left.isEmpty())
			flink.run();
	}

	/** Flink cannot say what the answer is. */
	private void leaveOut(int number, Query q, Throwable x) {
		while (x.getCause() != null)
			x = x.getCause();
		String why = ("" + x.getMessage()).lines().filter(l -> !l.isBlank()).findFirst().orElse("" + x);
		leftOut.add("query " + number + " (" + q.name + "): " + why + "\n     " + q.flink.replaceAll("\\s*\n\\s*", " "));
	}

	private void judge(int number, Query q, List<Row> result) throws Exception {
		Path folder = root.resolve("query" + number);
		Files.createDirectories(folder);
		StringBuilder sql = new StringBuilder();
		Random rnd = new Random(seed * 1_000_003L + number);
		for (int i = 0; i < q.inputs.size(); i++) {
			sql.append("CREATE TABLE t").append(i).append(" (");
			for (int c = 0; c < NAMES.length; c++)
				sql.append(NAMES[c]).append(" ").append(SQL_TYPES[c]).append(", ");
			sql.append("et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et").append(q.delay == 0 ? "" : " - " + interval(q.delay));
			List<String> lines = new ArrayList<>();
			for (Object[] r : q.inputs.get(i)) {
				ObjectNode o = Expressions.JSON.createObjectNode();
				for (int c = q.upsert[i] ? 1 : 0; c < NAMES.length; c++)
					o.set(NAMES[c], Expressions.JSON.valueToTree(r[c]));
				lines.add(o.toString());
			}
			if (q.upsert[i]) {
				sql.append(", PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 't").append(i)
					.append("', 'key.format' = 'json', 'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY');\n");
				List<Recorded.Rec> records = new ArrayList<>();
				for (int n = 0; n < lines.size(); n++) {
					Object[] r = q.inputs.get(i).get(n);
					records.add(new Recorded.Rec(("{\"id\":" + r[0] + "}").getBytes(StandardCharsets.UTF_8), (Boolean) r[NAMES.length] ? null : lines.get(n).getBytes(StandardCharsets.UTF_8),
						(Long) r[7]));
				}
				Recorded.append(folder.resolve("in"), "t" + i, 0, records, 8, rnd);
			} else {
				sql.append(") WITH ('connector' = 'filesystem', 'path' = 'rows").append(i).append(".json', 'format' = 'json');\n");
				Files.writeString(folder.resolve("rows" + i + ".json"), String.join("\n", lines) + "\n");
			}
		}
		Object[] names = {"t0", "t1", "t2", "windows"};
		if (q.view != null)
			sql.append("CREATE TEMPORARY VIEW windows AS ").append(String.format(q.view, names)).append(";\n");
		sql.append(String.format(q.flink, names)).append(";\n");
		Files.writeString(folder.resolve("job.sql"), sql);
		Weir.Result r = Weir.run(folder, "run", "job.sql", "-X", "emit.coalesce=false", "-X", "order.point.records=" + (number % 2 == 0 ? 65536 : 1 + number % 7));
		if (r.code() != 0) {
			differences.add("query " + number + " of seed " + seed + " (" + q.name + ") in " + folder + "\n" + sql + "  weir ended with " + r.code() + ": " + r.err());
			return;
		}
		compared++;
		kinds.merge(q.name, 1, Integer::sum);
		List<JsonNode> got = new ArrayList<>();
		for (String line : r.out().split("\n"))
			if (!line.isEmpty())
				got.add(Expressions.JSON.readTree(line));
		String text = q.table ? tables(q.keys, result, got) : rows(result, got);
		if (text == null)
			text = cut(number, q, result, folder, String.format(q.flink, names));
		if (text != null)
			differences.add("query " + number + " of seed " + seed + " (" + q.name + ") in " + folder + "\n" + sql + text);
	}

	/** The same from topics that grow, run after run, into a topic of changes. */
	private String cut(int number, Query q, List<Row> result, Path folder, String select) throws Exception {
		Runs runs = new Runs(q, select, folder, new Random(seed * 1_000_003L + number + 1));
		Weir.Result r = runs.run();
		if (r.code() != 0)
			return "  in several runs weir ended with " + r.code() + ": " + r.err();
		for (String topic : runs.results) {
			String text = q.table ? tables(0, result, runs.changes(topic)) : rows(result, runs.changes(topic));
			if (text != null)
				return "  " + topic + " " + runs + "\n" + text;
		}
		return null;
	}

	private String rows(List<Row> want, List<JsonNode> got) {
		List<JsonNode> left = new ArrayList<>(got);
		List<Row> missing = new ArrayList<>();
		rows += want.size();
		for (Row w : want) {
			JsonNode found = null;
			for (JsonNode g : left)
				if (same(w, g)) {
					found = g;
					break;
				}
			if (found == null)
				missing.add(w);
			else
				left.remove(found);
		}
		return missing.isEmpty() && left.isEmpty() ? null : "  only Flink: " + missing + "\n  only weir:  " + left + "\n";
	}

	private static boolean same(Row w, JsonNode g) {
		for (int i = 0; i < w.getArity(); i++)
			if (!Expressions.same(w.getField(i) == null ? "NULL" : w.getField(i), g.get("c" + i)))
				return false;
		return true;
	}

	/** What is left of each group at the end. */
	private String tables(int keys, List<Row> result, List<JsonNode> lines) {
		List<Row> want = new ArrayList<>();
		for (Row change : result) {
			Row w = Row.copy(change);
			boolean gone = w.getKind() == RowKind.DELETE || w.getKind() == RowKind.UPDATE_BEFORE;
			w.setKind(RowKind.INSERT);
			if (gone)
				want.remove(w);
			else
				want.add(w);
		}
		want.sort(Comparator.comparing(Row::toString));
		if (keys == 0) { /* changes say what a row was */
			List<JsonNode> left = new ArrayList<>();
			for (JsonNode g : lines) {
				boolean gone = ((ObjectNode) g).remove("op").asText().startsWith("-");
				if (!gone)
					left.add(g);
				else if (!left.remove(g))
					return "  weir takes out what is not there: " + g + "\n";
			}
			return rows(want, left);
		}
		Map<String, JsonNode> got = new HashMap<>();
		for (JsonNode g : lines) {
			StringBuilder key = new StringBuilder();
			for (int i = 0; i < keys; i++)
				key.append(g.get("c" + i).asText()).append('|');
			if (g.get("op").asText().startsWith("-"))
				got.remove(key.toString());
			else
				got.put(key.toString(), g);
		}
		return rows(want, new ArrayList<>(got.values()));
	}
}
