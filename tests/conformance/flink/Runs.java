/* Runs.java: a query of Queries.java once more: its inputs are topics that grow from run to run, with or without a key, its rows go into
 * a topic of changes; workers, slots, order points and commits are random. What all runs have written must be what Flink says. */
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import judge.Recorded;
import judge.Weir;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.catalog.ResolvedSchema;

final class Runs {
	private static final String[] NAMES = Queries.NAMES;

	private final Queries.Query query;
	private final String select;
	private final Path folder;
	private final Random rnd;
	/** The column that is the record's key, -1: none. */
	private final int[] keys;
	/** Records of each input up to the end of each run. */
	private final int[][] ends;
	private final List<String> properties = new ArrayList<>();
	/** Of each topic: more than one where neither lateness nor the order of rows of one time counts. */
	private final int partitions;
	/** Topics for the rows: with two of them the query is there twice in one job. */
	final List<String> results;
	/** Records written so far, by input and partition. */
	private final int[][] written;

	Runs(Queries.Query query, String select, Path folder, Random rnd) {
		this.query = query;
		this.select = select;
		this.folder = folder.resolve("runs");
		this.rnd = rnd;
		int inputs = query.inputs.size(), count = 1 + rnd.nextInt(4);
		partitions = query.calm() && rnd.nextInt(3) != 0 ? 2 + rnd.nextInt(2) : 1;
		written = new int[inputs][partitions];
		results = rnd.nextInt(3) == 0 ? List.of("result", "again") : List.of("result");
		keys = new int[inputs];
		ends = new int[inputs][];
		for (int i = 0; i < inputs; i++) {
			keys[i] = query.upsert[i] ? 0 : rnd.nextInt(3) - 1;
			int records = query.inputs.get(i).size();
			ends[i] = rnd.ints(count, 0, records + 1).sorted().toArray();
			ends[i][count - 1] = records;
		}
		/* A run without new records would end nothing. */
		if (count > 1 && ends[0][count - 2] == query.inputs.get(0).size())
			ends[0][count - 2]--;
		for (int k = count - 3; k >= 0; k--)
			ends[0][k] = Math.min(ends[0][k], ends[0][k + 1]);
		for (String p : List.of("order.point.records=" + (rnd.nextBoolean() ? 65536 : 1 + rnd.nextInt(9)), "slots=" + List.of(1, 3, 64).get(rnd.nextInt(3)),
			"commit.interval.records=" + (rnd.nextBoolean() ? 0 : 1 + rnd.nextInt(9)), "workers=" + (1 + rnd.nextInt(2)), "emit.coalesce=" + rnd.nextBoolean(),
			"processing.guarantee=" + List.of("at_least_once", "exactly_once", "at_most_once").get(rnd.nextInt(3))))
			properties.add(p);
	}

	/** Types as weir's DDL has them. */
	static String columns(ResolvedSchema schema) {
		return schema.getColumns().stream().map(c -> c.getName() + " " + c.getDataType().getLogicalType().asSummaryString().replaceAll(" NOT NULL| \\*ROWTIME\\*", "")
			.replaceFirst("^(VAR)?CHAR\\(.*", "STRING")).collect(Collectors.joining(", "));
	}

	private String sql() {
		StringBuilder sql = new StringBuilder();
		for (int i = 0; i < keys.length; i++) {
			sql.append("CREATE TABLE t").append(i).append(" (");
			for (int c = 0; c < NAMES.length; c++)
				sql.append(NAMES[c]).append(" ").append(Queries.SQL_TYPES[c]).append(", ");
			sql.append("et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et").append(query.delay == 0 ? "" : " - " + Queries.interval(query.delay))
				.append(query.upsert[i] ? ", PRIMARY KEY (id) NOT ENFORCED" : "").append(")\n  WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 't").append(i).append("', 'value.format' = 'json'");
			if (keys[i] >= 0)
				sql.append(", 'key.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'").append(query.upsert[i] ? "" : ", 'key.fields' = '" + NAMES[keys[i]] + "'");
			sql.append(");\n");
		}
		if (query.view != null)
			sql.append("CREATE TEMPORARY VIEW windows AS ").append(String.format(query.view, "t0", "t1", "t2")).append(";\n");
		for (String topic : results)
			sql.append("CREATE TABLE ").append(topic).append(" (").append(query.columns).append(")\n  WITH ('connector' = 'recorded', 'path' = 'out', 'topic' = '").append(topic).append("', 'format' = 'changelog-json');\n");
		for (String topic : results)
			sql.append("INSERT INTO ").append(topic).append(" ").append(select).append(";\n");
		return sql.toString();
	}

	private Recorded.Rec record(int input, Object[] r) {
		ObjectNode key = Expressions.JSON.createObjectNode(), value = Expressions.JSON.createObjectNode();
		for (int c = 0; c < NAMES.length; c++)
			(c == keys[input] ? key : value).set(NAMES[c], Expressions.JSON.valueToTree(r[c]));
		boolean gone = query.upsert[input] && (Boolean) r[NAMES.length];
		return new Recorded.Rec(keys[input] < 0 || r[keys[input]] == null ? null : bytes(key), gone ? null : bytes(value), (Long) r[7]);
	}

	private static byte[] bytes(ObjectNode n) {
		return n.toString().getBytes(StandardCharsets.UTF_8);
	}

	/** By Kafka's partitioner; of topics without keys anywhere, a NULL key always in one place. */
	private void append(int input, List<Object[]> rows) throws Exception {
		List<List<Recorded.Rec>> parts = new ArrayList<>();
		for (int p = 0; p < partitions; p++)
			parts.add(new ArrayList<>());
		for (Object[] row : rows) {
			Recorded.Rec r = record(input, row);
			parts.get(r.key() == null ? (keys[input] < 0 ? rnd.nextInt(partitions) : 0) : BuiltInPartitioner.partitionForKey(r.key(), partitions)).add(r);
		}
		for (int p = 0; p < partitions; p++) {
			Recorded.append(folder.resolve("in"), "t" + input, p, written[input][p], parts.get(p), 8, rnd);
			written[input][p] += parts.get(p).size();
		}
	}

	/** Of the last run, or the first that fails. */
	Weir.Result run() throws Exception {
		Files.createDirectories(folder);
		Files.writeString(folder.resolve("job.sql"), sql());
		Weir.Result r = null;
		for (int n = 0; n < ends[0].length; n++) {
			for (int i = 0; i < keys.length; i++)
				append(i, query.inputs.get(i).subList(n == 0 ? 0 : ends[i][n - 1], ends[i][n]));
			List<String> command = new ArrayList<>(List.of("run", "job.sql", "-q"));
			for (String p : properties)
				command.addAll(List.of("-X", p));
			if (n < ends[0].length - 1)
				command.addAll(List.of("-X", "end.of.input=keep"));
			r = Weir.run(folder, command.toArray(String[]::new));
			if (r.code() != 0)
				return r;
		}
		return r;
	}

	/** All rows of a topic with their op. */
	List<JsonNode> changes(String topic) throws Exception {
		List<JsonNode> out = new ArrayList<>();
		for (Recorded.Rec r : Recorded.read(folder.resolve("out"), topic)) {
			JsonNode n = Expressions.JSON.readTree(new String(r.value(), StandardCharsets.UTF_8));
			out.add(((ObjectNode) n.get("data")).set("op", n.get("op")));
		}
		return out;
	}

	@Override
	public String toString() {
		return "in runs over " + partitions + " partitions that end at " + Arrays.deepToString(ends) + " with " + properties + ", in " + folder;
	}
}
