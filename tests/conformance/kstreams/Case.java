/* Case.java: one random job, its input, and how the rows of both sides are written for the comparison. */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;

abstract class Case {
	static final ObjectMapper JSON = new ObjectMapper();

	/** A record: columns k (the record's key), g, v, d, x, s. Without row its value is null. */
	static final class In {
		String topic;
		int seq;
		String k;
		boolean row;
		String g;
		Long v;
		BigDecimal d;
		Double x;
		String s;
		long ts;

		byte[] key() {
			return k == null ? null : k.getBytes(StandardCharsets.UTF_8);
		}

		byte[] value(boolean timeColumn) {
			if (!row)
				return null;
			var o = JSON.createObjectNode();
			if (g != null)
				o.put("g", g);
			if (v == null)
				o.putNull("v");
			else
				o.put("v", v);
			if (d != null)
				o.put("d", d);
			if (x != null)
				o.put("x", x);
			if (s != null)
				o.put("s", s);
			if (timeColumn)
				o.put("ts", ts);
			return o.toString().getBytes(StandardCharsets.UTF_8);
		}

		@Override
		public String toString() {
			return "#" + seq + " " + topic + " @" + ts + " k=" + k
				+ (row ? " g=" + g + " v=" + v + " d=" + d + " x=" + x + " s=" + s : " null");
		}
	}

	/** A row of output: rows of one group must come in the same order on both sides, with the same text. */
	record Row(String group, String entry, String text, String time, boolean deleted, boolean passes) {}

	final Random rnd;
	final List<In> input = new ArrayList<>();
	/** The record that goes through Kafka Streams now: its values are only numbers of records. */
	int current;
	String name = "";

	Case(Random rnd) {
		this.rnd = rnd;
	}

	/** The job, or as a comment what runs instead of it. */
	abstract String sql();

	/** Of a job that SQL has no form for: a program of the tests and its arguments, properties aside. */
	List<String> program() {
		return null;
	}

	abstract void build(StreamsBuilder b);

	abstract Row weirRow(byte[] key, byte[] value, long timestamp) throws Exception;

	abstract Row streamsRow(byte[] key, String value, long timestamp) throws Exception;

	/** Differences that are meant: both lists may be rewritten before they are compared. */
	void normalise(List<Row> rows, boolean weir) {}

	/** Records of input up to the end of each run, all in the last one; empty: not chosen yet. */
	final List<Integer> runs = new ArrayList<>();

	/** Ends of runs within count records, in order; the last is count. */
	int[] cuts(int count, int runs) {
		int[] out = new int[runs];
		for (int i = 0; i < runs; i++)
			out[i] = i == runs - 1 || chance(20) ? count : rnd.nextInt(count + 1);
		java.util.Arrays.sort(out);
		return out;
	}

	/** The most records of a stored batch. */
	int batchRecords() {
		return 8;
	}

	/** order.point.records, 0: any. */
	int orderPointRecords() {
		return 0;
	}

	/** Properties of weir that are not chosen at random. */
	List<String> properties() {
		return List.of();
	}

	/** Whether weir may leave out rows of Kafka Streams, all but the last one of a group. */
	boolean fewer() {
		return false;
	}

	boolean timeColumn() {
		return false;
	}

	boolean chance(int percent) {
		return rnd.nextInt(100) < percent;
	}

	<T> T pick(List<T> list) {
		return list.get(rnd.nextInt(list.size()));
	}

	static KStream<String, String> stream(StreamsBuilder b, String topic) {
		return b.stream(topic, Consumed.with(Serdes.String(), Serdes.String()));
	}

	In in(String seq) {
		return input.get(Integer.parseInt(seq));
	}

	static String seconds(long ms) {
		return "INTERVAL '" + ms / 1000 + "." + String.format("%03d", ms % 1000) + "' SECOND";
	}

	/** Values of JSON as text; DOUBLE by value, everything else by its digits. */
	static String text(JsonNode n) {
		return n == null || n.isNull() ? "NULL" : n.asText();
	}

	static String hex(byte[] b) {
		if (b == null)
			return "-";
		StringBuilder sb = new StringBuilder();
		for (byte x : b)
			sb.append(String.format("%02x", x));
		return sb.toString();
	}
}
