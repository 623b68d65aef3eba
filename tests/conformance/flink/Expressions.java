/* Expressions.java: random expressions over random rows, forty in one job of Flink and in one run of weir; every value must be
 * the same. */
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import judge.Weir;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;

final class Expressions {
	static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
		.setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
	static final String[][] COLUMNS = {{"id", "INT"}, {"b", "BOOLEAN"}, {"i", "INT"}, {"j", "INT"}, {"l", "BIGINT"}, {"x", "DOUBLE"}, {"y", "DOUBLE"},
		{"d", "DECIMAL(10, 2)"}, {"e", "DECIMAL(20, 5)"}, {"s", "STRING"}, {"t", "STRING"}, {"u", "STRING"}, {"dt", "DATE"}, {"tm", "TIMESTAMP(3)"},
		{"tz", "TIMESTAMP_LTZ(3)"}};
	private static final TypeInformation<?>[] INFOS = {Types.INT, Types.BOOLEAN, Types.INT, Types.INT, Types.LONG, Types.DOUBLE, Types.DOUBLE, Types.BIG_DEC,
		Types.BIG_DEC, Types.STRING, Types.STRING, Types.STRING, Types.LOCAL_DATE, Types.LOCAL_DATE_TIME, Types.INSTANT};
	private static final int[] INTS = {0, 1, -1, 2, 7, -13, 42, 65, 97, 100, 255, 1000, -100000, 123456789};
	private static final long[] LONGS = {0, 1, -1, 60, 86400, 1700000000L, -1000, 5000000000L, 1700000000123L, 9007199254740993L};
	private static final double[] DOUBLES = {0, 1, -1, 0.5, 2.5, -2.5, 1.005, 2.675, 123456.789, 1e10, 1e-7, 1e7, 12345678.9, 1e21, -3.0, 0.1, 1.0 / 3, 1e-3, 9.99e-4};
	private static final String[] DECIMALS = {"0.00", "0.01", "-0.01", "1.50", "2.50", "-2.50", "-2.25", "99999999.99", "12345678.90", "0.05", "100.00", "7.77", "-1.00"};
	private static final String[] WIDE = {"0.00000", "0.00001", "-0.00005", "123456789012345.12345", "1.50000", "-999999999999999.99999", "2.00005", "33.33333", "1.00000"};
	private static final String[] STRINGS = {"", "a", "b", "Abc", "abc", "hello world", " padded ", "éàü Ωж", "日本語", "123x", "-45.", " p ", "1.5", "1e3", "true", "F", "yes", "00:", "2026-01-02",
		"2026-01-02 03:04:05", "2026-01-02 03:04:05.678", "2031-12-31 23:59:59.999", "2024-02-09", "a,b,c", ",", "%_!", "x'y", "NULL", "aaa", "ab12", "zz", "A_c", "99999999999.", "a\tb", "0.005", "2026-13-01", "b,,b"};
	private static final String[] DOCUMENTS = {"{\"a\":1}", "{\"a\":\"x\",\"b\":{\"c\":2.50}}", "{\"b\":{\"c\":true},\"l\":[1,\"two\",null]}", "{\"a\":null}", "[10,20]", "{}", "not json", "{\"a\":{\"z\":1}}", "{\"l\":[]}"};
	private static final String[] DATES = {"1988-01-01", "2024-02-29", "1999-12-31", "2026-12-31", "2026-03-31", "2020-01-01", "2021-01-03", "2040-03-01", "2000-02-28", "2027-01-01"};
	private static final String[] TIMES = {"00:00:00", "23:59:59.999", "12:34:56.789", "00:00:00.001", "03:04:05"};

	private final Cluster flink;
	private final Path root;
	private final long seed;
	final Map<String, Integer> refused = new TreeMap<>();
	final Map<String, Integer> refusedByFlink = new TreeMap<>();
	int compared, values, errors;
	final List<String> differences = new ArrayList<>();

	Expressions(Cluster flink, Path root, long seed) {
		this.flink = flink;
		this.root = root;
		this.seed = seed;
	}

	private static <T> Object nullable(Random rnd, T v) {
		return rnd.nextInt(10) == 0 ? null : v;
	}

	private static List<Object[]> rows(Random rnd) {
		List<Object[]> out = new ArrayList<>();
		for (int id = 0; id < 24; id++) {
			LocalDate date = LocalDate.parse(DATES[rnd.nextInt(DATES.length)]);
			LocalDateTime time = LocalDate.parse(DATES[rnd.nextInt(DATES.length)]).atTime(LocalTime.parse(TIMES[rnd.nextInt(TIMES.length)]));
			LocalDateTime zoned = LocalDate.parse(DATES[rnd.nextInt(DATES.length)]).atTime(LocalTime.parse(TIMES[rnd.nextInt(TIMES.length)]));
			out.add(new Object[]{id, nullable(rnd, rnd.nextBoolean()), nullable(rnd, INTS[rnd.nextInt(INTS.length)]), nullable(rnd, rnd.nextInt(7) - 3),
				nullable(rnd, LONGS[rnd.nextInt(LONGS.length)]), nullable(rnd, DOUBLES[rnd.nextInt(DOUBLES.length)]), nullable(rnd, (rnd.nextInt(81) - 40) / 8.0),
				nullable(rnd, new BigDecimal(DECIMALS[rnd.nextInt(DECIMALS.length)])), nullable(rnd, new BigDecimal(WIDE[rnd.nextInt(WIDE.length)])),
				nullable(rnd, STRINGS[rnd.nextInt(STRINGS.length)]), nullable(rnd, STRINGS[rnd.nextInt(STRINGS.length)]),
				nullable(rnd, DOCUMENTS[rnd.nextInt(DOCUMENTS.length)]), nullable(rnd, date), nullable(rnd, time), nullable(rnd, zoned.toInstant(ZoneOffset.UTC))});
		}
		return out;
	}

	/** One batch: forty expressions over 24 rows. */
	void batch(int number) throws Exception {
		Random rnd = new Random(seed * 1_000_003L + number);
		rnd.nextLong();
		Grammar g = new Grammar(rnd);
		List<Object[]> rows = rows(rnd);
		List<String> all = new ArrayList<>();
		for (int i = 0; i < 40; i++) {
			int rule = number * 40 + i;
			all.add(rule < Grammar.ruleCount() ? g.rule(rule) : g.expression(1 + rnd.nextInt(3)));
		}
		begin(rows);
		List<String> known = new ArrayList<>();
		for (String e : all) {
			try {
				flink.tables.sqlQuery("SELECT " + e + " AS c FROM t").explain();
				known.add(e);
			} catch (Exception | AssertionError x) {
				Throwable c = x;
				while (c.getCause() != null)
					c = c.getCause();
				String m = ("" + c.getMessage()).lines().filter(z -> !z.isBlank()).findFirst().orElse("");
				refusedByFlink.merge(e + "  -- " + m, 1, Integer::sum);
			}
		}
		Map<String, Object[]> want = new HashMap<>();
		flinkValues(rows, known, want);
		Path folder = root.resolve("expressions" + number);
		Files.createDirectories(folder);
		input(folder, rows);
		Map<String, JsonNode[]> got = new HashMap<>();
		Map<String, String> why = new HashMap<>();
		weirValues(folder, known, got, why);
		for (String e : known) {
			Object[] w = want.get(e);
			JsonNode[] v = got.get(e);
			if (v == null) {
				refused.merge(why.get(e) + "   e.g. " + e, 1, Integer::sum);
				continue;
			}
			if (w == null)
				continue;
			compared++;
			compare(number, e, rows, w, v, why.getOrDefault(e, ""));
		}
	}

	/** What both say. */
	void show(List<String> expressions) throws Exception {
		List<Object[]> rows = rows(new Random(seed));
		Files.createDirectories(root);
		input(root, rows);
		for (String e : expressions) {
			Map<String, Object[]> want = new HashMap<>();
			Map<String, JsonNode[]> got = new HashMap<>();
			Map<String, String> why = new HashMap<>();
			flinkValues(rows, List.of(e), want);
			weirValues(root, List.of(e), got, why);
			System.out.println(e + ": Flink " + Arrays.asList(want.getOrDefault(e, new Object[0])).stream().limit(6).toList() + ", weir "
				+ (got.get(e) == null ? why.get(e) : Arrays.stream(got.get(e)).limit(6).toList()));
		}
	}

	private void begin(List<Object[]> rows) {
		flink.begin();
		String[] names = Arrays.stream(COLUMNS).map(c -> c[0]).toArray(String[]::new);
		Schema.Builder schema = Schema.newBuilder();
		for (String[] c : COLUMNS)
			schema.column(c[0], c[1]);
		flink.tables.createTemporaryView("t", flink.tables.fromDataStream(
			flink.env.fromData(new RowTypeInfo(INFOS, names), rows.stream().map(Row::of).toArray(Row[]::new)).setParallelism(1), schema.build()));
	}

	/** A job that fails is halved until the expression that fails is alone. */
	private void flinkValues(List<Object[]> rows, List<String> expressions, Map<String, Object[]> out) {
		if (expressions.isEmpty())
			return;
		try {
			begin(rows);
			StringBuilder q = new StringBuilder("SELECT id");
			for (int i = 0; i < expressions.size(); i++)
				q.append(", ").append(expressions.get(i)).append(" AS c").append(i);
			Table table = flink.tables.sqlQuery(q + " FROM t");
			List<LogicalType> types = table.getResolvedSchema().getColumnDataTypes().stream().map(t -> t.getLogicalType()).toList();
			List<Row> result = flink.collect(table);
			flink.run();
			for (int i = 0; i < expressions.size(); i++) {
				Object[] values = new Object[rows.size()];
				for (Row r : result)
					values[(Integer) r.getField(0)] = r.getField(i + 1) == null ? "NULL" : r.getField(i + 1);
				out.put(expressions.get(i), values);
			}
		} catch (Exception | AssertionError e) {
			if (expressions.size() == 1) {
				errors++;
				return;
			}
			int half = expressions.size() / 2;
			flinkValues(rows, expressions.subList(0, half), out);
			flinkValues(rows, expressions.subList(half, expressions.size()), out);
		}
	}

	private static void input(Path folder, List<Object[]> rows) throws Exception {
		StringBuilder text = new StringBuilder();
		for (Object[] r : rows) {
			ObjectNode o = JSON.createObjectNode();
			for (int i = 0; i < COLUMNS.length; i++) {
				if (r[i] == null)
					o.putNull(COLUMNS[i][0]);
				else if (r[i] instanceof BigDecimal v)
					o.put(COLUMNS[i][0], v);
				else if (r[i] instanceof LocalDateTime v)
					o.put(COLUMNS[i][0], v.toLocalDate() + " " + (v.toLocalTime().toString().length() == 5 ? v.toLocalTime() + ":00" : v.toLocalTime()));
				else if (r[i] instanceof Instant || r[i] instanceof LocalDate || r[i] instanceof String)
					o.put(COLUMNS[i][0], r[i].toString());
				else
					o.set(COLUMNS[i][0], JSON.valueToTree(r[i]));
			}
			text.append(o).append('\n');
		}
		Files.writeString(folder.resolve("rows.json"), text);
	}

	/** Null in out: weir refuses the expression, why says how. A missing value: the row was rejected. */
	private void weirValues(Path folder, List<String> expressions, Map<String, JsonNode[]> out, Map<String, String> why) throws Exception {
		if (expressions.isEmpty())
			return;
		StringBuilder q = new StringBuilder("CREATE TABLE t (");
		q.append(Arrays.stream(COLUMNS).map(c -> c[0] + " " + c[1]).collect(Collectors.joining(", ")));
		q.append(") WITH ('connector' = 'filesystem', 'path' = 'rows.json', 'format' = 'json');\nSELECT id");
		for (int i = 0; i < expressions.size(); i++)
			q.append(",\n  ").append(expressions.get(i)).append(" AS c").append(i);
		Files.writeString(folder.resolve("job.sql"), q + "\nFROM t;\n");
		Weir.Result r = Weir.run(folder, "run", "job.sql", "-X", "sql.bytes.max=1MiB");
		boolean whole = r.code() == 0;
		List<JsonNode> lines = new ArrayList<>();
		if (whole)
			for (String line : r.out().split("\n"))
				if (!line.isEmpty())
					lines.add(JSON.readTree(line));
		if (expressions.size() > 1 && (!whole || lines.size() < 24)) {
			int half = expressions.size() / 2;
			weirValues(folder, expressions.subList(0, half), out, why);
			weirValues(folder, expressions.subList(half, expressions.size()), out, why);
			return;
		}
		if (lines.size() < 24)
			why.put(expressions.get(0), r.err().lines().filter(l -> !l.isBlank()).findFirst().orElse("ended with " + r.code()).replaceFirst("^job.sql:[0-9:]* ", ""));
		if (!whole)
			return;
		for (int i = 0; i < expressions.size(); i++) {
			JsonNode[] values = new JsonNode[24];
			for (JsonNode n : lines)
				values[n.get("id").asInt()] = n.get("c" + i);
			out.put(expressions.get(i), values);
		}
	}

	private void compare(int number, String e, List<Object[]> rows, Object[] want, JsonNode[] got, String why) {
		for (int i = 0; i < want.length; i++) {
			values++;
			if (got[i] == null && (why.contains("overflow") || why.contains("range:") || why.contains("CAST: not a value") || why.contains("division by zero")))
				continue;
			if (same(want[i], got[i]))
				continue;
			Object[] r = rows.get(i);
			StringBuilder used = new StringBuilder();
			for (int c = 1; c < COLUMNS.length; c++)
				if (e.matches("(?s).*\\b" + COLUMNS[c][0] + "\\b.*"))
					used.append(" ").append(COLUMNS[c][0]).append("=").append(r[c] instanceof String s ? "'" + s + "'" : "" + r[c]);
			differences.add("batch " + number + ": " + e + "\n   row" + used + "\n   Flink " + want[i] + " (" + want[i].getClass().getSimpleName() + ")   weir "
				+ (got[i] == null ? "rejected: " + why : "" + got[i]));
			return;
		}
	}

	static boolean same(Object want, JsonNode got) {
		if (got == null)
			return false;
		if (want.equals("NULL"))
			return got.isNull() || got.asText().equals("NULL");
		if (want instanceof Double || want instanceof Float) {
			double w = ((Number) want).doubleValue();
			if (Double.isNaN(w) || Double.isInfinite(w))
				return got.isNull();
			double v = got.asDouble();
			return got.isNumber() && (w == v || Math.abs(w - v) <= 2e-15 * Math.max(Math.abs(w), Math.abs(v)));
		}
		if (got.isNull())
			return false;
		if (want instanceof BigDecimal w)
			return got.isNumber() && got.decimalValue().toPlainString().equals(w.toPlainString());
		if (want instanceof LocalDateTime w)
			return got.asText().equals(time(w));
		if (want instanceof Instant w)
			return got.asText().equals(time(LocalDateTime.ofInstant(w, ZoneOffset.UTC)) + "Z");
		if (want instanceof byte[] w)
			return got.asText().equals(java.util.Base64.getEncoder().encodeToString(w));
		return got.asText().equals(want.toString());
	}

	static String time(LocalDateTime t) {
		String s = t.toString().replace('T', ' ');
		if (s.length() == 16)
			s += ":00";
		return s.contains(".") ? s.replaceFirst("0+$", "") : s;
	}
}
