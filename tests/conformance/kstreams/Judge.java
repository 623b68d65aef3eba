/* Judge.java: random jobs through weir (up to four runs over recorded topics that grow by random numbers of records) and through Kafka Streams'
 * TopologyTestDriver; the rows of each key must be the same in the same order. One JVM for all cases.
 *   Judge [--cases N] [--seed N] [--case K] [--jobs N] [--kind windows|joins|tables] [--only NAME] [--keep]
 * Case K of seed N is the same wherever it runs. Exit: 0 no difference, 1 differences, 2 usage. */
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import judge.Recorded;
import judge.Weir;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

public final class Judge {
	static long seed = 1;
	static Path root;
	static boolean keep;

	/* Other threads would keep the JVM alive behind an exception. */
	public static void main(String[] args) {
		try {
			run(args);
		} catch (Exception e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	private static void run(String[] args) throws Exception {
		int cases = 100, jobs = 2, only = -1;
		for (int i = 0; i < args.length; i++) {
			switch (args[i]) {
			case "--cases" -> cases = Integer.parseInt(args[++i]);
			case "--seed" -> seed = Long.parseLong(args[++i]);
			case "--case" -> only = Integer.parseInt(args[++i]);
			case "--jobs" -> jobs = Integer.parseInt(args[++i]);
			case "--only" -> name = args[++i];
			case "--kind" -> kind = args[++i];
			case "--keep" -> keep = true;
			default -> {
				System.err.println("Judge: unknown argument " + args[i]);
				System.exit(2);
			}
			}
		}
		root = Files.createTempDirectory("weir-kstreams-");
		System.out.println("seed " + seed);
		ExecutorService pool = Executors.newFixedThreadPool(jobs);
		Map<Integer, Future<String>> results = new LinkedHashMap<>();
		for (int k = only < 0 ? 0 : only; k < (only < 0 ? cases : only + 1); k++) {
			int number = k;
			results.put(k, pool.submit(() -> judge(number)));
		}
		int bad = 0;
		for (var e : results.entrySet()) {
			String difference = e.getValue().get();
			if (difference == null)
				continue;
			if (++bad <= 20)
				System.out.println("case " + e.getKey() + " of seed " + seed + ": " + difference);
		}
		pool.shutdown();
		System.out.println(KINDS);
		System.out.println(results.size() + " cases, " + bad + " differ");
		if (bad == 0 && !keep)
			delete(root);
		System.exit(bad == 0 ? 0 : 1);
	}

	static final Map<String, Integer> KINDS = new TreeMap<>();

	/** --kind: cases of one sort alone. */
	static String kind;
	/** --only: those whose name begins so. */
	static String name;

	private static String only(String chosen) {
		return kind == null ? chosen : kind;
	}

	static Case make(int number) {
		Random rnd = new Random(seed * 1_000_003L + number);
		rnd.nextLong();
		int sort = rnd.nextInt(100);
		return switch (only(sort < 40 ? "joins" : sort < 55 ? "tables" : "windows")) {
		case "joins" -> new JoinCase(rnd);
		case "tables" -> new TableCase(rnd);
		default -> new WindowCase(rnd);
		};
	}

	/** Null: no difference; else what differs, as text. */
	static String judge(int number) {
		try {
			return differences(number);
		} catch (Exception e) {
			StringWriter w = new StringWriter();
			e.printStackTrace(new PrintWriter(w));
			return w.toString();
		}
	}

	private static String differences(int number) throws Exception {
		Case c = make(number);
		if (name != null && !c.name.startsWith(name))
			return null;
		synchronized (KINDS) {
			KINDS.merge(c.name.replaceAll(" (size|before).*| single", ""), 1, Integer::sum);
		}
		Path folder = root.resolve("case" + number);
		Files.createDirectories(folder);
		Files.writeString(folder.resolve("job.sql"), c.sql());
		Files.write(folder.resolve("input.txt"), c.input.stream().map(Object::toString).toList());
		List<Case.Row> want = streams(c, folder);
		if (c.runs.isEmpty())
			for (int end : c.cuts(c.input.size(), 1 + c.rnd.nextInt(4)))
				c.runs.add(end);
		String error = weir(c, folder);
		String text = error;
		if (error == null) {
			List<Case.Row> got = new ArrayList<>();
			for (Recorded.Rec r : Recorded.read(folder.resolve("out"), "result"))
				got.add(c.weirRow(r.key(), r.value(), r.timestamp()));
			c.normalise(want, false);
			c.normalise(got, true);
			text = compare(want, got, c.fewer());
		}
		if (text != null)
			return c.name + ", runs end at " + c.runs + ", in " + folder + "\n" + c.sql() + text;
		if (!keep)
			delete(folder);
		return null;
	}

	static List<Case.Row> streams(Case c, Path folder) throws Exception {
		StreamsBuilder b = new StreamsBuilder();
		c.build(b);
		Topology topology = b.build();
		Properties p = new Properties();
		p.put(StreamsConfig.APPLICATION_ID_CONFIG, "judge");
		p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
		p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
		p.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve("streams").toString());
		/* Stores in memory forget windows before EmitStrategy.onWindowClose() has emitted them. */
		if (!c.name.contains("ON_CLOSE"))
			p.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
		/* Rows come at once and not at most every second: see the README. */
		p.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
		p.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
		List<Case.Row> rows = new ArrayList<>();
		try (TopologyTestDriver driver = new TopologyTestDriver(topology, p)) {
			Map<String, TestInputTopic<byte[], String>> in = new TreeMap<>();
			TestOutputTopic<byte[], String> out = driver.createOutputTopic("result", new ByteArrayDeserializer(), new StringDeserializer());
			for (Case.In r : c.input) {
				c.current = r.seq;
				in.computeIfAbsent(r.topic, t -> driver.createInputTopic(t, new ByteArraySerializer(), new StringSerializer()))
					.pipeInput(new TestRecord<>(r.key(), r.row ? "" + r.seq : null, null, r.ts));
				while (!out.isEmpty()) {
					TestRecord<byte[], String> o = out.readRecord();
					rows.add(c.streamsRow(o.key(), o.value(), o.timestamp()));
				}
			}
		}
		return rows;
	}

	/** All runs, each over more of the input. Null, or what went wrong. */
	static String weir(Case c, Path folder) throws Exception {
		Path in = folder.resolve("in");
		Map<String, List<Recorded.Rec>> topics = new TreeMap<>();
		for (Case.In r : c.input)
			topics.computeIfAbsent(r.topic, t -> new ArrayList<>());
		Map<String, Integer> written = new TreeMap<>();
		List<String> properties = new ArrayList<>(List.of("end.of.input=keep", "emit.coalesce=false",
			"order.point.records=" + (c.orderPointRecords() != 0 ? c.orderPointRecords() : c.chance(50) ? 65536 : 1 + c.rnd.nextInt(9)), "slots=" + c.pick(List.of(1, 3, 64)),
			"commit.interval.records=" + (c.chance(50) ? 0 : 1 + c.rnd.nextInt(9)), "workers=" + (1 + c.rnd.nextInt(2)),
			"processing.guarantee=" + c.pick(List.of("at_least_once", "exactly_once", "at_most_once"))));
		properties.addAll(c.properties());
		List<String> program = c.program(), command = new ArrayList<>(program == null ? List.of("run", "job.sql", "-q") : program.subList(1, program.size()));
		for (String p : properties) {
			if (program == null)
				command.add("-X");
			command.add(p);
		}
		int from = 0;
		for (int to : c.runs) {
			topics.values().forEach(List::clear);
			for (Case.In r : c.input.subList(from, to))
				topics.get(r.topic).add(new Recorded.Rec(r.key(), r.value(c.timeColumn()), r.ts));
			for (var t : topics.entrySet()) {
				Recorded.append(in, t.getKey(), written.getOrDefault(t.getKey(), 0), t.getValue(), c.batchRecords(), c.rnd);
				written.merge(t.getKey(), t.getValue().size(), Integer::sum);
			}
			Weir.Result r = Weir.run(program == null ? new File(Weir.BIN) : Weir.program(program.get(0)), folder, command);
			if (r.code() != 0)
				return "weir ended with " + r.code() + ": " + r.err();
			from = to;
		}
		return null;
	}

	static String compare(List<Case.Row> want, List<Case.Row> got, boolean fewer) {
		Map<String, List<String>> w = grouped(want), g = grouped(got);
		if (w.equals(g))
			return null;
		StringBuilder text = new StringBuilder();
		var groups = new java.util.TreeSet<>(w.keySet());
		groups.addAll(g.keySet());
		for (String k : groups) {
			List<String> a = w.getOrDefault(k, List.of()), b = g.getOrDefault(k, List.of());
			int i = 0;
			while (i < a.size() && i < b.size() && a.get(i).equals(b.get(i)))
				i++;
			if (i == a.size() && i == b.size())
				continue;
			if (fewer && (within(b, a) || (b.isEmpty() && a.get(a.size() - 1).endsWith(" deleted"))))
				continue;
			text.append("key '" + k + "' from row " + i + " (" + a.size() + " rows of Kafka Streams, " + b.size() + " of weir)\n");
			for (int n = 0; n < 4; n++)
				text.append("  streams: " + (i + n < a.size() ? a.get(i + n) : "-") + "\n  weir:    " + (i + n < b.size() ? b.get(i + n) : "-") + "\n");
		}
		return text.isEmpty() ? null : text.toString();
	}

	/** a is in b, in its order, and both end alike. */
	private static boolean within(List<String> a, List<String> b) {
		int i = 0;
		for (int k = 0; k < b.size() && i < a.size(); k++)
			if (b.get(k).equals(a.get(i)))
				i++;
		return i == a.size() && !a.isEmpty() && a.get(i - 1).equals(b.get(b.size() - 1));
	}

	static Map<String, List<String>> grouped(List<Case.Row> rows) {
		Map<String, List<String>> out = new TreeMap<>();
		for (Case.Row r : rows)
			out.computeIfAbsent(r.group(), k -> new ArrayList<>()).add(r.text());
		return out;
	}

	static void delete(Path folder) throws IOException {
		try (Stream<Path> all = Files.walk(folder)) {
			for (Path p : all.sorted(Comparator.reverseOrder()).toList())
				Files.deleteIfExists(p);
		}
	}
}
