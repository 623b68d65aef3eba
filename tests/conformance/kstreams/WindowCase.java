/* WindowCase.java: one aggregation of a stream: tumbling, hopping, session, sliding windows or none, all ways to emit. Kafka Streams
 * only moves the numbers of records about and so judges which records a row holds and when it comes; what the aggregates of
 * these records are is computed here, one record after another. */
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

final class WindowCase extends Case {
	/** TABLE: no windows. RETRACT: an aggregate over a table. */
	enum Kind { TUMBLE, HOP, SESSION, SLIDING, TABLE, RETRACT }

	enum Emit { CHANGES, SUPPRESS, ON_CLOSE }

	/** An aggregate: its SQL, its type, and its value over records in order. */
	record Agg(String sql, String type, java.util.function.Function<List<In>, Object> value) {}

	record Predicate(String sql, java.util.function.Function<In, Boolean> value) {}

	final Kind kind;
	final Emit emit;
	final long size, advance, grace;
	final boolean timeColumn, byColumn;
	/** Two topics in one stream, time by task.time=max, each record in a batch and an order point of its own. */
	private final boolean merged;
	final List<Agg> aggs = new ArrayList<>();
	final Predicate where;
	/** HAVING agg[0] > limit; agg[0] is COUNT(*) or SUM(v). */
	final Long having;

	WindowCase(Random rnd) {
		super(rnd);
		kind = pick(List.of(Kind.TUMBLE, Kind.HOP, Kind.HOP, Kind.SESSION, Kind.SESSION, Kind.SLIDING, Kind.SLIDING, Kind.TABLE, Kind.RETRACT));
		emit = plain() ? Emit.CHANGES : pick(List.of(Emit.CHANGES, Emit.CHANGES, Emit.SUPPRESS, Emit.ON_CLOSE));
		/* Suppress ends sessions and sliding windows 1 ms before Kafka Streams itself holds them closed: even times, odd gap + grace; odd length, odd grace. */
		boolean early = (kind == Kind.SESSION || kind == Kind.SLIDING) && emit == Emit.SUPPRESS;
		long unit = early ? 2 : pick(List.of(1L, 1L, 7L, 1000L));
		long n = 1 + rnd.nextInt(20);
		size = unit == 2 ? 2 * n + 1 : n * unit;
		advance = kind == Kind.HOP ? 1 + Math.max(size / 40, rnd.nextLong(size)) % size : size;
		grace = (chance(30) ? 0 : unit * rnd.nextInt(1 + (int) n * 2)) + (early && kind == Kind.SLIDING ? 1 : 0);
		timeColumn = chance(50);
		byColumn = kind == Kind.RETRACT || chance(50);
		having = chance(25) ? (long) rnd.nextInt(3) : null;
		aggregates();
		merged = kind != Kind.SLIDING && kind != Kind.RETRACT && !(kind == Kind.SESSION && emit == Emit.ON_CLOSE) && chance(20);
		where = !merged && chance(35) ? pick(PREDICATES) : null;
		fill(unit);
		if (merged)
			merge();
		name = kind + " " + emit + (merged ? " merged" : "") + " size " + size + " advance " + advance + " grace " + grace;
	}

	private static final List<Predicate> PREDICATES = List.of(
		new Predicate("v > 0", r -> r.v == null ? null : r.v > 0),
		new Predicate("NOT (v > 0)", r -> r.v == null ? null : r.v <= 0),
		new Predicate("v IS NOT NULL OR s = 'a'", r -> r.v != null ? Boolean.TRUE : r.s == null ? null : Boolean.valueOf(r.s.equals("a"))),
		new Predicate("s IS DISTINCT FROM 'b'", r -> !Objects.equals(r.s, "b")),
		new Predicate("x BETWEEN -2 AND 2.25", r -> r.x == null ? null : r.x >= -2 && r.x <= 2.25));

	private boolean plain() {
		return kind == Kind.TABLE || kind == Kind.RETRACT;
	}

	private void aggregates() {
		aggs.add(chance(50) ? AGGS.get(0) : AGGS.get(1));
		for (int n = rnd.nextInt(5); n > 0; n--)
			aggs.add(pick(kind == Kind.RETRACT ? RETRACTABLE : AGGS));
	}

	private static List<Long> longs(List<In> l) {
		return l.stream().map(r -> r.v).filter(Objects::nonNull).toList();
	}

	private static List<BigDecimal> decimals(List<In> l) {
		return l.stream().map(r -> r.d).filter(Objects::nonNull).toList();
	}

	private static List<Double> doubles(List<In> l) {
		return l.stream().map(r -> r.x).filter(Objects::nonNull).toList();
	}

	private static List<String> strings(List<In> l) {
		return l.stream().map(r -> r.s).filter(Objects::nonNull).toList();
	}

	private static final List<Agg> AGGS = List.of(
		new Agg("COUNT(*)", "BIGINT", l -> (long) l.size()),
		new Agg("SUM(v)", "BIGINT", l -> longs(l).stream().reduce(Long::sum).orElse(null)),
		new Agg("COUNT(v)", "BIGINT", l -> (long) longs(l).size()),
		new Agg("MIN(v)", "BIGINT", l -> longs(l).stream().min(Long::compare).orElse(null)),
		new Agg("MAX(v)", "BIGINT", l -> longs(l).stream().max(Long::compare).orElse(null)),
		new Agg("AVG(v)", "BIGINT", l -> longs(l).isEmpty() ? null : longs(l).stream().mapToLong(z -> z).sum() / longs(l).size()),
		new Agg("COUNT(DISTINCT v)", "BIGINT", l -> (long) Set.copyOf(longs(l)).size()),
		new Agg("COUNT(*) FILTER (WHERE v > 0)", "BIGINT", l -> longs(l).stream().filter(z -> z > 0).count()),
		new Agg("SUM(v) FILTER (WHERE s = 'a')", "BIGINT",
			l -> longs(l.stream().filter(r -> "a".equals(r.s)).toList()).stream().reduce(Long::sum).orElse(null)),
		new Agg("SUM(d)", "DECIMAL(38, 2)", l -> decimals(l).stream().reduce(BigDecimal::add).orElse(null)),
		new Agg("AVG(d)", "DECIMAL(38, 6)", l -> decimals(l).isEmpty() ? null : decimals(l).stream().reduce(BigDecimal::add).get()
			.divide(BigDecimal.valueOf(decimals(l).size()), 6, RoundingMode.HALF_UP)),
		new Agg("MIN(d)", "DECIMAL(8, 2)", l -> decimals(l).stream().min(BigDecimal::compareTo).orElse(null)),
		new Agg("MAX(d)", "DECIMAL(8, 2)", l -> decimals(l).stream().max(BigDecimal::compareTo).orElse(null)),
		new Agg("SUM(x)", "DOUBLE", l -> doubles(l).stream().reduce(Double::sum).orElse(null)),
		new Agg("MAX(x)", "DOUBLE", l -> doubles(l).stream().max(Double::compare).orElse(null)),
		new Agg("MIN(s)", "STRING", l -> strings(l).stream().min(String::compareTo).orElse(null)),
		new Agg("MAX(s)", "STRING", l -> strings(l).stream().max(String::compareTo).orElse(null)),
		new Agg("FIRST_VALUE(v)", "BIGINT", l -> longs(l).stream().findFirst().orElse(null)),
		new Agg("LAST_VALUE(v)", "BIGINT", l -> longs(l).stream().reduce((a, b) -> b).orElse(null)),
		new Agg("FIRST_VALUE(s)", "STRING", l -> strings(l).stream().findFirst().orElse(null)));

	/** Of FIRST_VALUE and LAST_VALUE: which of two equal values has left a group, nobody can tell from the values. */
	private static final List<Agg> RETRACTABLE = AGGS.stream().filter(a -> !a.sql.contains("_VALUE")).toList();

	/** Records whose time goes up and down; those that Kafka Streams never shows to its windows do not lead. */
	private void fill(long unit) {
		int count = (merged ? 2 : 1) + rnd.nextInt(60), keys = 1 + rnd.nextInt(4);
		long disorder = chance(25) ? 0 : 1 + rnd.nextInt(5), time = chance(50) && !(kind == Kind.SLIDING && emit == Emit.SUPPRESS) ? 0 : 1767225600000L, step = 1 + rnd.nextInt(6);
		long lead = Long.MIN_VALUE, start = time;
		for (int i = 0; i < count; i++) {
			In r = new In();
			r.topic = "events";
			r.seq = i;
			r.k = chance(6) && !merged ? null : chance(4) ? "" : "" + (char) ('a' + rnd.nextInt(keys));
			r.row = !chance(6) || kind == Kind.SLIDING || merged;
			if (r.row) {
				r.g = chance(6) && !merged ? null : "g" + rnd.nextInt(keys);
				r.v = chance(12) ? null : (long) rnd.nextInt(21) - 8;
				r.d = chance(12) ? null : BigDecimal.valueOf(rnd.nextInt(2001) - 1000, 2);
				r.x = chance(12) ? null : (rnd.nextInt(41) - 20) / 4.0;
				r.s = chance(12) ? null : "" + (char) ('a' + rnd.nextInt(3));
			}
			time += unit * rnd.nextLong(step + 1) + (chance(4) ? size / unit * unit * (2 + rnd.nextInt(3)) : 0);
			r.ts = Math.max(start, time - unit * (disorder == 0 ? 0 : rnd.nextLong(disorder * (chance(10) ? 20 : 2) + 1)));
			/* Stores that keep a session until it is emitted also let a record enter it that is older than the grace allows. */
			if (kind == Kind.SESSION && emit == Emit.ON_CLOSE && lead != Long.MIN_VALUE)
				r.ts = Math.max(r.ts, lead - grace);
			if (!kept(r)) {
				if (lead == Long.MIN_VALUE)
					lead = r.ts = start;
				r.ts = Math.min(r.ts, lead);
			}
			lead = Math.max(lead, r.ts);
			input.add(r);
		}
	}

	/** The records in two topics, run after run in weir's order: the smaller time first, of equal ones the topic of the smaller name. */
	private void merge() {
		List<List<In>> topics = List.of(new ArrayList<>(), new ArrayList<>());
		for (In r : input) {
			int t = r.seq < 2 ? r.seq : rnd.nextInt(2);
			r.topic = t == 0 ? "events" : "others";
			topics.get(t).add(r);
		}
		input.clear();
		int n = 1 + rnd.nextInt(4);
		int[][] ends = {cuts(topics.get(0).size(), n), cuts(topics.get(1).size(), n)};
		int[] at = {0, 0};
		for (int i = 0; i < n; i++) {
			while (at[0] < ends[0][i] || at[1] < ends[1][i]) {
				int t = at[0] == ends[0][i] || (at[1] < ends[1][i] && topics.get(1).get(at[1]).ts < topics.get(0).get(at[0]).ts) ? 1 : 0;
				In r = topics.get(t).get(at[t]++);
				r.seq = input.size();
				input.add(r);
			}
			runs.add(input.size());
		}
	}

	@Override
	int batchRecords() {
		return merged ? 1 : super.batchRecords();
	}

	@Override
	int orderPointRecords() {
		return merged ? 1 : super.orderPointRecords();
	}

	@Override
	List<String> properties() {
		return merged ? List.of("task.time=max") : List.of();
	}

	private String group(In r) {
		return byColumn ? r.g : r.k;
	}

	private boolean kept(In r) {
		return group(r) != null && (where == null || Boolean.TRUE.equals(where.value.apply(r)))
			&& (!plain() || r.row);
	}

	@Override
	boolean timeColumn() {
		return timeColumn;
	}

	@Override
	List<String> program() {
		if (kind != Kind.SLIDING)
			return null;
		StringBuilder columns = new StringBuilder();
		for (int i = 0; i < aggs.size(); i++)
			columns.append(i == 0 ? "" : ", ").append(aggs.get(i).sql).append(" AS a").append(i);
		String by = byColumn ? "g" : "k";
		return List.of("recorded_sliding", "" + size, "" + grace, timeColumn ? "ts" : "record", by, emit == Emit.CHANGES ? "changes" : "final", columns.toString(),
			by + " IS NOT NULL" + (where == null ? "" : " AND (" + where.sql + ")"), having == null ? "" : "a0 > " + having);
	}

	@Override
	String sql() {
		if (kind == Kind.SLIDING)
			return "-- " + program() + "\n";
		StringBuilder q = new StringBuilder();
		for (String topic : merged ? List.of("events", "others") : List.of("events")) {
			source(q, topic);
			if (merged)
				q.append(";\n");
		}
		if (merged)
			q.append("CREATE VIEW both_of_them AS SELECT * FROM events UNION ALL SELECT * FROM others");
		String from = merged ? "both_of_them" : "events";
		q.append(";\nCREATE TABLE result (k STRING, ");
		result(q);
		String by = byColumn ? "g" : "k";
		q.append("INSERT INTO result SELECT ").append(by).append(plain() ? "" : ", window_start, window_end");
		for (Agg a : aggs)
			q.append(", ").append(a.sql);
		q.append("\n  FROM ");
		switch (kind) {
		case TUMBLE -> q.append("TABLE(TUMBLE(TABLE " + from + ", DESCRIPTOR(at), " + seconds(size) + "))");
		case HOP -> q.append("TABLE(HOP(TABLE " + from + ", DESCRIPTOR(at), " + seconds(advance) + ", " + seconds(size) + "))");
		case SESSION -> q.append("TABLE(SESSION(TABLE " + from + " PARTITION BY " + by + ", DESCRIPTOR(at), " + seconds(size) + "))");
		default -> q.append(from);
		}
		q.append("\n  WHERE ").append(by).append(" IS NOT NULL");
		if (where != null)
			q.append(" AND (").append(where.sql).append(")");
		q.append("\n  GROUP BY ").append(plain() ? "" : "window_start, window_end, ").append(by);
		if (having != null)
			q.append("\n  HAVING ").append(aggs.get(0).sql).append(" > ").append(having);
		if (!plain())
			q.append(emit == Emit.CHANGES ? " EMIT CHANGES" : " EMIT FINAL");
		return q.append(";\n").toString();
	}

	private void source(StringBuilder q, String topic) {
		q.append("CREATE TABLE ").append(topic).append(" (k STRING, g STRING, v BIGINT, d DECIMAL(8, 2), x DOUBLE, s STRING,\n  ");
		q.append(timeColumn ? "ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3)" : "at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL");
		if (!plain())
			q.append(", WATERMARK FOR at AS at").append(grace == 0 ? "" : " - " + seconds(grace));
		q.append(kind == Kind.RETRACT ? ", PRIMARY KEY (k) NOT ENFORCED" : "");
		q.append(")\nWITH ('connector' = 'recorded', 'path' = 'in', 'topic' = '").append(topic).append("', 'value.format' = 'json', 'key.format' = 'raw',")
			.append(kind == Kind.RETRACT ? "" : " 'key.fields' = 'k',").append(" 'value.fields-include' = 'EXCEPT_KEY')");
	}

	private void result(StringBuilder q) {
		if (!plain())
			q.append("window_start TIMESTAMP(3), window_end TIMESTAMP(3), ");
		for (int i = 0; i < aggs.size(); i++)
			q.append(i == 0 ? "" : ", ").append("a" + i + " " + aggs.get(i).type);
		q.append(plain() ? ", PRIMARY KEY (k) NOT ENFORCED)" : ")");
		q.append("\nWITH ('connector' = 'recorded', 'path' = 'out', 'topic' = 'result', 'value.format' = 'json', ");
		if (plain())
			q.append("'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');\n");
		else
			q.append("'key.format' = 'windowed', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');\n");
	}

	private boolean passes(String seqs) {
		if (having == null)
			return true;
		Object a = seqs == null || seqs.isEmpty() ? null : aggs.get(0).value.apply(records(seqs));
		return a != null && (Long) a > having;
	}

	private List<In> records(String seqs) {
		return Arrays.stream(seqs.split(",")).map(Integer::parseInt).sorted().map(input::get).toList();
	}

	@Override
	void build(StreamsBuilder b) {
		if (kind == Kind.RETRACT) {
			KTable<String, String> t = b.table("events", Consumed.with(Serdes.String(), Serdes.String()));
			if (where != null)
				t = t.filter((k, v) -> v != null && Boolean.TRUE.equals(where.value.apply(in(v))));
			t.groupBy((k, v) -> KeyValue.pair(in(v).g, v), Grouped.with(Serdes.String(), Serdes.String()))
				.aggregate(() -> "", (k, v, a) -> a.isEmpty() ? v : a + "," + v, (k, v, a) -> {
					List<String> left = new ArrayList<>(List.of(a.split(",")));
					left.remove(v);
					return left.isEmpty() ? null : String.join(",", left);
				}, Materialized.with(Serdes.String(), Serdes.String())).toStream().to("result", Produced.with(Serdes.String(), Serdes.String()));
			return;
		}
		KStream<String, String> s = stream(b, "events");
		if (merged)
			s = s.merge(stream(b, "others"));
		if (where != null)
			s = s.filter((k, v) -> Boolean.TRUE.equals(where.value.apply(input.get(current))));
		/* Kafka Streams drops null keys itself; a new key goes over a repartition topic. */
		KGroupedStream<String, String> g = byColumn
			? s.groupBy((k, v) -> input.get(current).g, Grouped.with(Serdes.String(), Serdes.String()))
			: s.groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
		Aggregator<String, String, String> add = (k, v, a) -> a.isEmpty() ? "" + current : a + "," + current;
		/* On close, Kafka Streams loses windows that are older than the store's retention when time jumps over them. */
		Duration retention = Duration.ofMillis(emit == Emit.ON_CLOSE ? 100L * 86_400_000
			: kind == Kind.SLIDING ? 2 * size + grace + 1 : kind == Kind.SESSION ? size + grace + 1 : size + grace);
		if (kind == Kind.TABLE) {
			KTable<String, String> t = g.aggregate(() -> "", add, Materialized.with(Serdes.String(), Serdes.String()));
			if (having != null)
				t = t.filter((k, v) -> passes(v));
			t.toStream().to("result", Produced.with(Serdes.String(), Serdes.String()));
			return;
		}
		KTable<Windowed<String>, String> t;
		EmitStrategy strategy = emit == Emit.ON_CLOSE ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
		Serde<Windowed<String>> key;
		if (kind == Kind.SESSION) {
			t = g.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)))
				.emitStrategy(strategy).aggregate(() -> "", add, (k, a, c) -> a.isEmpty() ? c : c.isEmpty() ? a : a + "," + c,
					Materialized.<String, String, SessionStore<Bytes, byte[]>>with(Serdes.String(), Serdes.String()).withRetention(retention));
			key = WindowedSerdes.sessionWindowedSerdeFrom(String.class);
		} else if (kind == Kind.SLIDING) {
			t = g.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace))).emitStrategy(strategy)
				.aggregate(() -> "", add, Materialized.<String, String, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.String()).withRetention(retention));
			key = WindowedSerdes.timeWindowedSerdeFrom(String.class, size);
		} else {
			t = g.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)).advanceBy(Duration.ofMillis(advance)))
				.emitStrategy(strategy).aggregate(() -> "", add,
					Materialized.<String, String, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.String()).withRetention(retention));
			key = WindowedSerdes.timeWindowedSerdeFrom(String.class, size);
		}
		if (emit == Emit.SUPPRESS)
			t = t.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
		/* KTable.filter() knows no former value of a session, and invents deletes behind suppress(): see the README. */
		boolean table = having != null && kind != Kind.SESSION && emit == Emit.CHANGES;
		KStream<Windowed<String>, String> rows = (table ? t.filter((k, v) -> passes(v)) : t).toStream();
		if (having != null && emit != Emit.CHANGES)
			rows = rows.filter((k, v) -> passes(v));
		rows.to("result", Produced.with(key, Serdes.String()));
	}

	private Row row(byte[] key, String value, long timestamp, boolean passes) {
		int inner = key.length - (plain() ? 0 : kind == Kind.SESSION ? 16 : 8);
		String k = new String(key, 0, inner, StandardCharsets.UTF_8), w = "";
		ByteBuffer b = ByteBuffer.wrap(key, inner, key.length - inner);
		if (kind == Kind.SESSION) {
			long last = b.getLong();
			w = "[" + b.getLong() + "," + last + "]";
		} else if (!plain()) {
			long start = b.getLong();
			w = "[" + start + "," + (start + size) + (kind == Kind.SLIDING ? "]" : ")");
		}
		String time = emit == Emit.CHANGES ? " @" + timestamp : "", entry = "'" + k + "'" + w;
		/* The order of the windows that one record enters is nobody's promise. */
		return new Row(kind == Kind.SLIDING ? entry : k, entry, entry + time + " " + (value == null ? "deleted" : value), time, value == null, passes);
	}

	/** Kafka Streams takes a session back even when it comes again with the same bounds at once. HAVING of sessions: a row
	 * that stops passing is deleted, one that did not pass never comes. */
	@Override
	void normalise(List<Row> rows, boolean weir) {
		if (kind == Kind.SLIDING && !weir)
			once(rows);
		if ((kind != Kind.SESSION && kind != Kind.RETRACT) || weir)
			return;
		for (int i = 0; i < rows.size(); i++) {
			Row row = rows.get(i);
			for (int j = i - 1; kind == Kind.SESSION && !row.deleted() && j >= 0 && rows.get(j).deleted(); j--)
				if (rows.get(j).entry().equals(row.entry())) {
					rows.remove(j);
					i--;
					break;
				}
		}
		if (having == null || emit != Emit.CHANGES)
			return;
		Set<String> shown = new HashSet<>();
		List<Row> out = new ArrayList<>();
		for (Row r : rows) {
			boolean pass = !r.deleted() && r.passes();
			if (pass ? shown.add(r.entry()) || true : shown.remove(r.entry()))
				out.add(pass ? r : new Row(r.group(), r.entry(), r.entry() + r.time() + " deleted", r.time(), true, false));
		}
		rows.clear();
		rows.addAll(out);
	}

	/** A window that is both the right one of the record before and the record's own comes twice, with HAVING as a delete of what never came. */
	private void once(List<Row> rows) {
		Set<String> there = new HashSet<>();
		for (int i = 0; i < rows.size(); i++) {
			Row r = rows.get(i);
			boolean again = i > 0 && from.get(i).equals(from.get(i - 1)) && rows.get(i - 1).entry().equals(r.entry());
			if (again || (r.deleted() ? !there.remove(r.entry()) : there.add(r.entry()) && false)) {
				rows.remove(i);
				from.remove(i--);
			}
		}
	}

	private static String canonical(Object o) {
		return o == null ? "NULL" : o instanceof BigDecimal d ? d.toPlainString() : o.toString();
	}

	@Override
	Row weirRow(byte[] key, byte[] value, long timestamp) throws Exception {
		if (value == null)
			return row(key, null, timestamp, false);
		JsonNode n = EXACT.readTree(value);
		List<String> out = new ArrayList<>();
		for (int i = 0; i < aggs.size(); i++) {
			JsonNode c = n.get("a" + i);
			String type = aggs.get(i).type;
			out.add(c == null || c.isNull() ? "NULL" : type.equals("DOUBLE") ? "" + c.asDouble()
				: type.startsWith("DECIMAL") ? c.decimalValue().toPlainString() : c.asText());
		}
		return row(key, out.toString(), timestamp, true);
	}

	private static final com.fasterxml.jackson.databind.ObjectMapper EXACT = new com.fasterxml.jackson.databind.ObjectMapper()
		.enable(com.fasterxml.jackson.databind.DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
		.setNodeFactory(com.fasterxml.jackson.databind.node.JsonNodeFactory.withExactBigDecimals(true));

	/** The record that each row of Kafka Streams came from. */
	private final List<Integer> from = new ArrayList<>();

	@Override
	Row streamsRow(byte[] key, String value, long timestamp) {
		from.add(current);
		if (value == null)
			return row(key, null, timestamp, false);
		List<In> l = records(value);
		return row(key, aggs.stream().map(a -> canonical(a.value.apply(l))).toList().toString(), timestamp, passes(value));
	}
}
