/* TableCase.java: up to three tables one behind another: filtered, joined, joined again (or by a foreign key first), grouped; or a
 * stream that looks into two of them, or into one before its rows go into windows (where nothing is late). Kafka Streams' values are numbers of records here, too: "a|b|c". */
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;

final class TableCase extends Case {
	enum Kind { FILTER, JOIN, THREE, FULL, FOREIGN, GROUPS, STREAM, WINDOW }

	private static final long GRACE = 1_000_000_000L;

	private static final ValueJoiner<String, String, String> BOTH = (x, y) -> x + "|" + y;

	private final Kind kind;
	/** Joins that keep the left row; one a join. */
	private final boolean[] keeps = {chance(50), chance(50)};
	/** Rows pass whose number of the first (0) or last table is odd, or is not there; -1: all. */
	private final int where;
	private final boolean single;
	private final int tables;
	private final long size = 1 + rnd.nextInt(2000);

	TableCase(Random rnd) {
		super(rnd);
		kind = pick(List.of(Kind.values()));
		tables = kind == Kind.FILTER ? 1 : kind == Kind.JOIN || kind == Kind.GROUPS || kind == Kind.WINDOW ? 2 : 3;
		where = kind == Kind.FILTER || kind == Kind.JOIN ? 0 : stream() || chance(60) ? -1 : rnd.nextInt(2) * (tables - 1);
		single = chance(60);
		fill();
		name = "CHAIN_" + kind + (where < 0 ? "" : " where") + (single ? " single" : "");
	}

	/** The first topic is a stream. */
	private boolean stream() {
		return kind == Kind.STREAM || kind == Kind.WINDOW;
	}

	@Override
	int batchRecords() {
		return single ? 1 : 8;
	}

	@Override
	int orderPointRecords() {
		return single ? 1 : stream() ? 65536 : 0;
	}

	private void fill() {
		int keys = 1 + rnd.nextInt(3), n = 1 + rnd.nextInt(4);
		long unit = pick(List.of(1L, 10L, 1000L)), start = chance(50) ? 0 : 1767225600000L, disorder = chance(30) ? 0 : rnd.nextInt(12);
		List<List<In>> topics = new ArrayList<>();
		int[][] ends = new int[tables][];
		for (int t = 0; t < tables; t++) {
			List<In> l = new ArrayList<>();
			long time = start, step = 1 + rnd.nextInt(5);
			for (int i = 1 + rnd.nextInt(30); i > 0; i--) {
				In r = new In();
				r.topic = "t" + t;
				r.k = chance(5) ? null : chance(3) ? "" : "" + (char) ('a' + rnd.nextInt(keys));
				r.row = !chance(stream() && t == 0 ? 5 : 30);
				r.g = chance(10) ? null : "" + (char) ('a' + rnd.nextInt(keys));
				time += unit * rnd.nextLong(step + 1);
				/* A row that the first join drops moves no time on for the next one behind it: where times of topics count, the stream is in order. */
				r.ts = Math.max(start, time - (stream() && t == 0 && !single ? 0 : unit * rnd.nextLong(disorder + 1)));
				l.add(r);
			}
			topics.add(l);
			ends[t] = cuts(l.size(), n);
		}
		for (int i = 0; i < n; i++) {
			List<List<In>> from = new ArrayList<>();
			for (int t = 0; t < tables; t++)
				from.add(new ArrayList<>(topics.get(t).subList(i == 0 ? 0 : ends[t][i - 1], ends[t][i])));
			merge(from);
			runs.add(input.size());
		}
		for (int i = 0; i < input.size(); i++) {
			input.get(i).seq = i;
			input.get(i).v = (long) i;
		}
	}

	/** weir's order: the record with the smallest time; single ones by their own, of equal ones the first topic's; else the topic's time counts, and
	 * tables go before a stream. */
	private void merge(List<List<In>> from) {
		long[] times = new long[tables];
		for (;;) {
			int best = -1;
			long least = 0;
			for (int i = 0; i < tables; i++) {
				int t = single || !stream() ? i : (i + 1) % tables;
				if (from.get(t).isEmpty())
					continue;
				long time = single ? from.get(t).get(0).ts : Math.max(times[t], from.get(t).get(0).ts);
				if (best < 0 || time < least) {
					best = t;
					least = time;
				}
			}
			if (best < 0)
				return;
			In x = from.get(best).remove(0);
			times[best] = Math.max(times[best], x.ts);
			input.add(x);
		}
	}

	private String name(int t) {
		return t == 0 && stream() ? "s0" : "t" + t;
	}

	private String join(int n) {
		return kind == Kind.FULL ? " FULL JOIN " : keeps[n] ? " LEFT JOIN " : " JOIN ";
	}

	@Override
	String sql() {
		StringBuilder q = new StringBuilder();
		for (int t = 0; t < tables; t++) {
			boolean table = !stream() || t > 0;
			q.append("CREATE TABLE " + name(t) + " (k STRING, v BIGINT, g STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL" + (table ? ", PRIMARY KEY (k) NOT ENFORCED" : ", WATERMARK FOR at AS at - " + seconds(GRACE))
				+ ")\nWITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 't" + t + "', 'value.format' = 'json', 'key.format' = 'raw', " + (table ? "" : "'key.fields' = 'k', ")
				+ "'value.fields-include' = 'EXCEPT_KEY');\n");
		}
		boolean stream = stream();
		if (kind == Kind.WINDOW)
			q.append("CREATE VIEW joined AS SELECT s0.k, s0.at, s0.v AS a, t1.v AS b FROM s0" + join(0) + "t1 ON s0.k = t1.k;\n");
		q.append("CREATE TABLE result (k STRING, " + (kind == Kind.WINDOW ? "window_start TIMESTAMP(3), window_end TIMESTAMP(3), " : "") + "a BIGINT, b BIGINT, c BIGINT" + (stream ? "" : ", PRIMARY KEY (k) NOT ENFORCED")
			+ ")\nWITH ('connector' = 'recorded', 'path' = 'out', 'topic' = 'result', 'value.format' = 'json', 'key.format' = '" + (kind == Kind.WINDOW ? "windowed" : "raw") + "', " + (stream ? "'key.fields' = 'k', " : "")
			+ "'value.fields-include' = 'EXCEPT_KEY');\nINSERT INTO result SELECT ");
		q.append(switch (kind) {
		case FILTER -> "t0.k, t0.v, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM t0";
		case JOIN -> "t0.k, t0.v, t1.v, CAST(NULL AS BIGINT) FROM t0" + join(0) + "t1 ON t0.k = t1.k";
		case THREE -> "t0.k, t0.v, t1.v, t2.v FROM t0" + join(0) + "t1 ON t0.k = t1.k" + join(1) + "t2 ON t0.k = t2.k";
		case FULL -> "COALESCE(t0.k, t1.k, t2.k), t0.v, t1.v, t2.v FROM t0" + join(0) + "t1 ON t0.k = t1.k" + join(1) + "t2 ON COALESCE(t0.k, t1.k) = t2.k";
		case FOREIGN -> "t0.k, t0.v, t1.v, t2.v FROM t0" + join(0) + "t1 ON t0.g = t1.k" + join(1) + "t2 ON t0.k = t2.k";
		case STREAM -> "s0.k, s0.v, t1.v, t2.v FROM s0" + join(0) + "t1 ON s0.k = t1.k" + join(1) + "t2 ON s0.k = t2.k";
		case WINDOW -> "k, window_start, window_end, COUNT(*), SUM(a), SUM(b) FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(at), " + seconds(size)
			+ "))\n  WHERE k IS NOT NULL GROUP BY k, window_start, window_end EMIT CHANGES";
		case GROUPS -> "t0.g, COUNT(*), SUM(t0.v), SUM(t1.v) FROM t0" + join(0) + "t1 ON t0.k = t1.k";
		});
		String groups = kind == Kind.GROUPS ? "t0.g IS NOT NULL" : "";
		if (where >= 0)
			groups += (groups.isEmpty() ? "" : " AND ") + "(t" + where + ".v IS NULL OR MOD(t" + where + ".v, 2) = 1)";
		return q.append(groups.isEmpty() ? "" : "\n  WHERE " + groups).append(kind == Kind.GROUPS ? "\n  GROUP BY t0.g" : "").append(";\n").toString();
	}

	private boolean passes(String v) {
		if (v == null)
			return false;
		String[] parts = v.split("\\|");
		String part = parts[where == 0 ? 0 : parts.length - 1];
		return part.equals("null") || Long.parseLong(part) % 2 == 1;
	}

	private KTable<String, String> table(StreamsBuilder b, int t) {
		return b.table("t" + t, Consumed.with(Serdes.String(), Serdes.String()));
	}

	private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> stored() {
		return Materialized.with(Serdes.String(), Serdes.String());
	}

	private KTable<String, String> join(KTable<String, String> l, KTable<String, String> r, int n) {
		/* Not materialized, a row's time would be taken from the tables again: without a delete that made it. */
		return kind == Kind.FULL ? l.outerJoin(r, BOTH, stored()) : keeps[n] ? l.leftJoin(r, BOTH, stored()) : l.join(r, BOTH, stored());
	}

	@Override
	void build(StreamsBuilder b) {
		var with = Joined.with(Serdes.String(), Serdes.String(), Serdes.String());
		KTable<String, String> t = stream() ? null : table(b, 0);
		KStream<String, String> out = null;
		switch (kind) {
		case WINDOW -> {
			KStream<String, String> joined = keeps[0] ? stream(b, "t0").leftJoin(table(b, 1), BOTH, with) : stream(b, "t0").join(table(b, 1), BOTH, with);
			joined.groupByKey(Grouped.with(Serdes.String(), Serdes.String())).windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(GRACE)))
				.aggregate(() -> "", (k, v, a) -> a.isEmpty() ? v : a + "," + v, Materialized.with(Serdes.String(), Serdes.String())).toStream()
				.to("result", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, size), Serdes.String()));
			return;
		}
		case STREAM -> {
			out = stream(b, "t0");
			for (int i = 0; i < 2; i++)
				out = keeps[i] ? out.leftJoin(table(b, i + 1), BOTH, with) : out.join(table(b, i + 1), BOTH, with);
		}
		case FOREIGN -> {
			t = keeps[0] ? t.leftJoin(table(b, 1), v -> in(v).g, BOTH, stored()) : t.join(table(b, 1), v -> in(v).g, BOTH, stored());
			t = join(t, table(b, 2), 1);
		}
		default -> {
			for (int i = 1; i < tables; i++)
				t = join(t, table(b, i), i - 1);
		}
		}
		if (where >= 0)
			t = t.filter((k, v) -> passes(v));
		if (kind == Kind.GROUPS)
			t = t.groupBy((k, v) -> KeyValue.pair(in(v.split("\\|")[0]).g, v), Grouped.with(Serdes.String(), Serdes.String()))
				.aggregate(() -> "", (k, v, a) -> a.isEmpty() ? v : a + "," + v, (k, v, a) -> {
					List<String> left = new ArrayList<>(List.of(a.split(",")));
					left.remove(v);
					return left.isEmpty() ? null : String.join(",", left);
				}, stored());
		(t != null ? t.toStream() : out).to("result", Produced.with(Serdes.String(), Serdes.String()));
	}

	private Row row(byte[] key, String text, long timestamp, boolean deleted) {
		int inner = key == null ? 0 : key.length - (kind == Kind.WINDOW ? 8 : 0);
		String k = key == null ? "NULL" : "'" + new String(key, 0, inner, StandardCharsets.UTF_8) + "'";
		if (kind == Kind.WINDOW)
			k += " from " + ByteBuffer.wrap(key, inner, 8).getLong();
		return new Row(k, k, k + (kind == Kind.FOREIGN || (kind == Kind.GROUPS && !single) ? "" : " @" + timestamp) + " " + text, text, deleted, true);
	}

	@Override
	Row weirRow(byte[] key, byte[] value, long timestamp) throws Exception {
		if (value == null)
			return row(key, "deleted", timestamp, true);
		JsonNode n = JSON.readTree(value);
		return row(key, text(n.get("a")) + " " + text(n.get("b")) + " " + text(n.get("c")), timestamp, false);
	}

	@Override
	Row streamsRow(byte[] key, String value, long timestamp) {
		if (value == null)
			return row(key, "deleted", timestamp, true);
		if (kind == Kind.GROUPS || kind == Kind.WINDOW) {
			Long l = null, r = null;
			String[] all = value.split(",");
			for (String pair : all) {
				String[] p = pair.split("\\|");
				l = Long.parseLong(p[0]) + (l == null ? 0 : l);
				r = p[1].equals("null") ? r : Long.valueOf(Long.parseLong(p[1]) + (r == null ? 0 : r));
			}
			return row(key, all.length + " " + l + " " + (r == null ? "NULL" : r), timestamp, false);
		}
		List<String> parts = new ArrayList<>(List.of(value.split("\\|")));
		/* A whole row of an earlier join that is not there is one "null". */
		while (parts.size() < tables)
			parts.add(0, "null");
		while (parts.size() < 3)
			parts.add("null");
		return row(key, String.join(" ", parts).replace("null", "NULL"), timestamp, false);
	}

	/** A delete of what is not there; and where rows go from join to join in one order point, what is left of each key at its end. */
	@Override
	void normalise(List<Row> rows, boolean weir) {
		if (stream())
			return;
		Set<String> there = new HashSet<>();
		if (!weir)
			rows.removeIf(r -> r.deleted() ? !there.remove(r.entry()) : there.add(r.entry()) && false);
		if (single)
			return;
		TreeMap<String, Row> last = new TreeMap<>();
		for (Row r : rows)
			last.put(r.entry(), r);
		rows.clear();
		for (Row r : last.values())
			if (!r.deleted())
				rows.add(r);
	}
}
