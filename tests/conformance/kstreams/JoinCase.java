/* JoinCase.java: a join of two streams or of a stream with a table. Which rows meet depends on the order in which the records of
 * both topics are taken; the harness takes them in weir's order, by time, and gives them to Kafka Streams so. */
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.state.Stores;

final class JoinCase extends Case {
	enum Kind { INNER, LEFT, RIGHT, FULL, TABLE_INNER, TABLE_LEFT, SELF_INNER, SELF_LEFT, SELF_FULL, TABLE_VERSIONED_INNER, TABLE_VERSIONED_LEFT, TABLE_GLOBAL_INNER, TABLE_GLOBAL_LEFT, TABLES_INNER, TABLES_LEFT, TABLES_RIGHT, TABLES_FULL, TABLES_FOREIGN_INNER, TABLES_FOREIGN_LEFT }

	/** The key of records that close all windows at the end. */
	private static final String CLOSER = "zz";

	final Kind kind;
	final long before, after, grace;
	final boolean timeColumn;
	/** A stream's rows meet by column g: they are re-keyed. */
	private final boolean byColumn;
	/** Time is the largest of both topics, as in Kafka Streams. */
	private final boolean timeMax;
	/** One record in a batch, an order point behind each: taken by their own times; else merged by the topics' times. */
	private final boolean single;
	private final String left, right;

	JoinCase(Random rnd) {
		super(rnd);
		kind = pick(List.of(Kind.values()));
		left = tables() ? "a_left" : table() ? "stream" : "left";
		right = tables() ? "b_right" : table() ? "changes" : self() ? left : "right";
		timeMax = !table() && chance(40);
		byColumn = !tables() && !global() && chance(40);
		long unit = pick(List.of(1L, 1L, 10L, 1000L));
		before = unit * rnd.nextInt(12);
		after = unit * rnd.nextInt(12);
		/* A side's store forgets 1 ms before its time: seen where neither bound nor grace leave room. */
		long least = Math.min(before, after) == 0 || versioned() ? 1 : 0;
		grace = unit * (chance(30) ? least : least + rnd.nextInt(20));
		timeColumn = chance(50);
		single = chance(50);
		fill(unit);
		name = kind + (byColumn ? " by column" : "") + (timeMax ? " max" : "") + " before " + before + " after " + after + " grace " + grace + (single ? " single" : "");
	}

	/** The right side is a table. */
	private boolean table() {
		return kind.name().startsWith("TABLE");
	}

	private boolean tables() {
		return kind.name().startsWith("TABLES");
	}

	/** The left table refers to the right one by column g. */
	private boolean foreign() {
		return kind.name().contains("FOREIGN");
	}

	private boolean global() {
		return kind.name().contains("GLOBAL");
	}

	/** The table's version that was valid at the stream's time. */
	private boolean versioned() {
		return kind.name().contains("VERSIONED");
	}

	/** A stream with itself. */
	private boolean self() {
		return kind.name().startsWith("SELF");
	}

	/** The left side has a column g that refers to the right one's key. */
	private boolean refers() {
		return foreign() || global() || (byColumn && table());
	}

	/** weir says what is left at the end of an order point. */
	@Override
	boolean fewer() {
		return foreign() && !single;
	}

	@Override
	int batchRecords() {
		return single ? 1 : 8;
	}

	@Override
	int orderPointRecords() {
		return single ? 1 : 65536;
	}

	@Override
	boolean timeColumn() {
		return timeColumn;
	}

	private List<In> topic(String topic, long unit, long start, int count, int keys, long disorder) {
		List<In> out = new ArrayList<>();
		long time = start, step = 1 + rnd.nextInt(5);
		/* Kafka Streams ends at a NULL key that would have to wait for its version. */
		boolean unnamed = kind != Kind.TABLE_VERSIONED_LEFT || topic.equals(right);
		for (int i = 0; i < count; i++) {
			In r = new In();
			r.topic = topic;
			r.k = chance(5) && unnamed ? null : chance(3) ? "" : "" + (char) ('a' + rnd.nextInt(keys));
			r.row = !chance(tables() ? 30 : topic.equals("changes") ? 20 : 5);
			r.g = (refers() ? topic.equals(left) : byColumn) && !(chance(10) && unnamed) ? "" + (char) ('a' + rnd.nextInt(keys)) : null;
			time += unit * rnd.nextLong(step + 1) + (chance(4) ? unit * 60 : 0);
			r.ts = Math.max(start, time - unit * rnd.nextLong(disorder + 1));
			out.add(r);
		}
		return out;
	}

	private void fill(long unit) {
		int keys = 1 + rnd.nextInt(3);
		long start = chance(50) ? 0 : 1767225600000L, disorder = chance(30) ? 0 : rnd.nextInt(12);
		List<In> l = topic(left, unit, start, 1 + rnd.nextInt(40), keys, disorder);
		List<In> r = self() ? new ArrayList<>() : topic(right, unit, start, 1 + rnd.nextInt(40), keys, disorder);
		int n = 1 + rnd.nextInt(4);
		int[] lefts = cuts(l.size(), n), rights = cuts(r.size(), n);
		if (!table() || versioned()) { /* both in the last run */
			close(l, start + unit * 100000);
			if (!self())
				close(r, start + unit * 100000);
			lefts[n - 1] = l.size();
			rights[n - 1] = r.size();
		}
		bound(l, r, lefts, rights);
		merge(l, r, lefts, rights);
		for (int i = 0; i < input.size(); i++) {
			input.get(i).seq = i;
			input.get(i).v = (long) i;
		}
	}

	private void close(List<In> l, long ts) {
		In r = new In();
		r.topic = l.get(0).topic;
		r.k = CLOSER;
		r.g = byColumn ? CLOSER : null;
		r.row = true;
		r.ts = ts;
		l.add(r);
	}

	/** How far behind the newest of both topics a record may be: see the README. Records beyond it are moved, in weir's order. */
	private void bound(List<In> l, List<In> r, int[] lefts, int[] rights) {
		if (table() && !versioned())
			return;
		long most = versioned() ? grace - 1 : Math.min(before, after) + grace - 1;
		if (kind != Kind.INNER && kind != Kind.SELF_INNER && !versioned())
			most = Math.min(most, grace);
		if (most < 0)
			most = 0;
		boolean moved = true;
		while (moved) {
			merge(l, r, lefts, rights);
			long lead = Long.MIN_VALUE;
			moved = false;
			for (In x : input) {
				if (lead != Long.MIN_VALUE && x.ts < lead - most) {
					x.ts = lead - most;
					moved = true;
					break;
				}
				lead = Math.max(lead, x.ts);
			}
		}
	}

	/** The input in weir's order, run after run. */
	private void merge(List<In> l, List<In> r, int[] lefts, int[] rights) {
		input.clear();
		runs.clear();
		for (int i = 0; i < lefts.length; i++) {
			merge(l.subList(i == 0 ? 0 : lefts[i - 1], lefts[i]), r.subList(i == 0 ? 0 : rights[i - 1], rights[i]));
			runs.add(input.size());
		}
	}

	/** Single records: the one with the smaller time first. Else the topic's time counts, a record out of order comes right after
	 * the one before it, which each order point begins anew. On equal times the table, the left stream. */
	private void merge(List<In> l, List<In> r) {
		long leftTime = Long.MIN_VALUE, rightTime = Long.MIN_VALUE;
		int i = 0, j = 0;
		while (i < l.size() || j < r.size()) {
			boolean takeLeft = j == r.size();
			if (!global() && i < l.size() && j < r.size()) { /* a global table is read first */
				long a = single ? l.get(i).ts : Math.max(leftTime, l.get(i).ts), b = single ? r.get(j).ts : Math.max(rightTime, r.get(j).ts);
				takeLeft = a < b || (a == b && (!table() || tables() || single));
			}
			In x = takeLeft ? l.get(i++) : r.get(j++);
			if (takeLeft)
				leftTime = Math.max(leftTime, x.ts);
			else
				rightTime = Math.max(rightTime, x.ts);
			input.add(x);
		}
	}

	@Override
	String sql() {
		String time = timeColumn ? "ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3)" : "at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL";
		String mark = ", WATERMARK FOR at AS at" + (grace == 0 ? "" : " - " + seconds(grace));
		String with = "WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = '%s', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k',"
			+ " 'value.fields-include' = 'EXCEPT_KEY');\n";
		String key = ", PRIMARY KEY (k) NOT ENFORCED", fields = "'key.fields' = 'k', ";
		StringBuilder q = new StringBuilder();
		for (boolean l : self() ? new boolean[]{true} : new boolean[]{true, false}) {
			boolean keyed = tables() || (table() && !l);
			q.append("CREATE TABLE " + (l ? "l" : "r") + " (k STRING, v BIGINT, " + ((l ? refers() || byColumn : byColumn && !table()) ? "g STRING, " : "") + time + (tables() ? "" : mark) + (keyed ? key : "") + ")\n");
			String with2 = keyed ? with.replace(fields, "") : with;
			q.append(String.format(global() && !l ? with2.replace(");", ", 'global' = 'true');") : with2, l ? left : right));
		}
		q.append("CREATE TABLE result (k STRING, l BIGINT, r BIGINT" + (tables() ? key : "") + ")\nWITH ('connector' = 'recorded', 'path' = 'out', 'topic' = 'result',"
			+ " 'value.format' = 'json', 'key.format' = 'raw', " + (tables() ? "" : fields) + "'value.fields-include' = 'EXCEPT_KEY');\n");
		String key2 = byColumn ? "g" : "k";
		q.append("INSERT INTO result SELECT ").append(switch (kind) {
		case FULL, RIGHT, SELF_FULL, TABLES_FULL -> "COALESCE(l." + key2 + ", r." + key2 + ")";
		case TABLES_RIGHT -> "r.k";
		default -> "l." + key2;
		}).append(", l.v, r.v\n  FROM l ");
		q.append(switch (kind) {
		case INNER, SELF_INNER, TABLE_INNER, TABLE_VERSIONED_INNER, TABLE_GLOBAL_INNER, TABLES_INNER, TABLES_FOREIGN_INNER -> "JOIN";
		case LEFT, SELF_LEFT, TABLE_LEFT, TABLE_VERSIONED_LEFT, TABLE_GLOBAL_LEFT, TABLES_LEFT, TABLES_FOREIGN_LEFT -> "LEFT JOIN";
		case RIGHT, TABLES_RIGHT -> "RIGHT JOIN";
		case FULL, SELF_FULL, TABLES_FULL -> "FULL OUTER JOIN";
		}).append(versioned() ? " r FOR SYSTEM_TIME AS OF l.at" : self() ? " l r" : " r").append(refers() ? " ON l.g = r.k" : " ON l." + key2 + " = r." + key2);
		if (!table())
			q.append(" AND r.at BETWEEN l.at - " + seconds(before) + " AND l.at + " + seconds(after));
		return q.append(";\n").toString();
	}

	@Override
	void build(StreamsBuilder b) {
		ValueJoiner<String, String, String> both = (x, y) -> x + "|" + y;
		KStream<String, String> out;
		if (tables()) {
			KTable<String, String> l = b.table(left, Consumed.with(Serdes.String(), Serdes.String()));
			KTable<String, String> r = b.table(right, Consumed.with(Serdes.String(), Serdes.String()));
			out = (switch (kind) {
			case TABLES_LEFT -> l.leftJoin(r, both);
			case TABLES_RIGHT -> r.leftJoin(l, (y, x) -> x + "|" + y);
			case TABLES_FULL -> l.outerJoin(r, both);
			case TABLES_FOREIGN_INNER -> l.join(r, v -> in(v).g, both, Materialized.with(Serdes.String(), Serdes.String()));
			case TABLES_FOREIGN_LEFT -> l.leftJoin(r, v -> in(v).g, both, Materialized.with(Serdes.String(), Serdes.String()));
			default -> l.join(r, both);
			}).toStream();
			out.to("result", Produced.with(Serdes.String(), Serdes.String()));
			return;
		}
		KStream<String, String> l = keyed(stream(b, left));
		if (global()) {
			GlobalKTable<String, String> t = b.globalTable(right, Consumed.with(Serdes.String(), Serdes.String()));
			out = kind == Kind.TABLE_GLOBAL_LEFT ? l.leftJoin(t, (k, v) -> v == null ? null : in(v).g, both) : l.join(t, (k, v) -> v == null ? null : in(v).g, both);
		} else if (table()) {
			Consumed<String, String> text = Consumed.with(Serdes.String(), Serdes.String());
			KTable<String, String> t = versioned() ? b.table(right, text, Materialized.as(Stores.persistentVersionedKeyValueStore("versions", Duration.ofDays(30)))) : b.table(right, text);
			Joined<String, String, String> with = Joined.with(Serdes.String(), Serdes.String(), Serdes.String());
			if (versioned())
				with = with.withGracePeriod(Duration.ofMillis(grace));
			out = kind == Kind.TABLE_LEFT || kind == Kind.TABLE_VERSIONED_LEFT ? l.leftJoin(t, both, with) : l.join(t, both, with);
		} else {
			KStream<String, String> r = self() ? l : keyed(stream(b, right));
			JoinWindows w = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(Math.max(before, after)), Duration.ofMillis(grace))
				.before(Duration.ofMillis(before)).after(Duration.ofMillis(after));
			StreamJoined<String, String, String> with = StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
			out = switch (kind) {
			case LEFT, SELF_LEFT -> l.leftJoin(r, both, w, with);
			case FULL, SELF_FULL -> l.outerJoin(r, both, w, with);
			/* a right join is a left join seen from the other side */
			case RIGHT -> r.leftJoin(l, (y, x) -> x + "|" + y, JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(Math.max(before, after)),
				Duration.ofMillis(grace)).before(Duration.ofMillis(after)).after(Duration.ofMillis(before)), with);
			default -> l.join(r, both, w, with);
			};
		}
		out.to("result", Produced.with(Serdes.String(), Serdes.String()));
	}

	@Override
	List<String> properties() {
		return timeMax ? List.of("task.time=max") : List.of();
	}

	private KStream<String, String> keyed(KStream<String, String> s) {
		return byColumn ? s.selectKey((k, v) -> v == null ? null : in(v).g) : s;
	}

	/** The record that each row of Kafka Streams came from. */
	private final List<Integer> from = new ArrayList<>();

	private Row row(byte[] key, String l, String r, long timestamp) {
		String k = key == null ? "NULL" : "'" + new String(key, StandardCharsets.UTF_8) + "'";
		boolean alone = !table() && (l.equals("null") || r.equals("null"));
		return new Row(k + (alone ? " unmatched" : ""), k, k + " @" + timestamp + " " + l + " | " + r, l + " | " + r, false, true);
	}

	private Row deleted(byte[] key, long timestamp) {
		String k = "'" + new String(key, StandardCharsets.UTF_8) + "'";
		return new Row(k, k, k + (foreign() ? "" : " @" + timestamp) + " deleted", "", true, false);
	}

	@Override
	Row weirRow(byte[] key, byte[] value, long timestamp) throws Exception {
		if (value == null)
			return deleted(key, timestamp);
		JsonNode n = JSON.readTree(value);
		return row(key, n.path("l").asText("null"), n.path("r").asText("null"), timestamp);
	}

	@Override
	Row streamsRow(byte[] key, String value, long timestamp) {
		from.add(current);
		if (value == null)
			return deleted(key, timestamp);
		int bar = value.indexOf('|');
		if (foreign()) /* see the README: a row of the right table does not look at the left one's time */
			timestamp = Math.max(timestamp, in(value.substring(0, bar)).ts);
		return row(key, value.substring(0, bar), value.substring(bar + 1), timestamp);
	}

	/** When a row without a match leaves depends on when time is looked at: their order does not count. */
	@Override
	void normalise(List<Row> rows, boolean weir) {
		rows.removeIf(r -> r.entry().equals("'" + CLOSER + "'"));
		/* Each pair comes once; which of its own records a record meets first is nobody's promise, nor when versions are known. */
		if (self() || versioned())
			rows.sort(java.util.Comparator.comparing(Row::text));
		/* A row that refers to another one is deleted and comes again: for weir one update. */
		for (int i = foreign() && !weir ? rows.size() - 1 : -1; i >= 0; i--) {
			boolean again = false;
			for (int k = i + 1; k < rows.size() && from.get(k).equals(from.get(i)); k++)
				again |= rows.get(k).entry().equals(rows.get(i).entry());
			if (again && rows.get(i).deleted()) {
				rows.remove(i);
				from.remove(i);
			}
		}
		/* A delete of what is not there. */
		Set<String> there = new HashSet<>();
		if (tables() && !weir)
			rows.removeIf(r -> r.deleted() ? !there.remove(r.entry()) : there.add(r.entry()) && false);
		/* (time() holds both numbers here.) Kafka Streams may emit a row beside its match: that one is left out. weir must not. */
		if (!weir && !table()) {
			Set<String> matched = new HashSet<>();
			for (Row r : rows)
				if (!r.group().endsWith(" unmatched"))
					matched.addAll(List.of(r.time().split(" \\| ")));
			rows.removeIf(r -> r.group().endsWith(" unmatched")
				&& List.of(r.time().split(" \\| ")).stream().anyMatch(matched::contains));
		}
		List<Row> alone = new ArrayList<>(rows.stream().filter(r -> r.group().endsWith(" unmatched")).toList());
		rows.removeAll(alone);
		alone.sort(java.util.Comparator.comparing(Row::text));
		rows.addAll(alone);
	}
}
