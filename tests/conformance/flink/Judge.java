/* Judge.java: random SQL through weir and through a real Flink in this JVM.
 *   Judge [--expressions BATCHES] [--queries N] [--seed N] [--case K] [--only KIND] [--keep] [--verbose]
 *   Judge --try EXPRESSION...      what both say to some expressions over the first rows of a seed
 * Exit: 0 no difference, 1 differences, 2 usage. */
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

public final class Judge {
	private static final int LEFT_OUT_PERCENT_MAX = 3;

	/* Other threads would keep the JVM alive behind an exception. */
	public static void main(String[] args) {
		try {
			run(args);
		} catch (Throwable e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	private static void run(String[] args) throws Exception {
		int batches = 20, queries = 100, only = -1;
		String kind = null;
		long seed = 1;
		boolean keep = false, verbose = false;
		for (int i = 0; i < args.length; i++) {
			switch (args[i]) {
			case "--expressions" -> batches = Integer.parseInt(args[++i]);
			case "--queries" -> queries = Integer.parseInt(args[++i]);
			case "--seed" -> seed = Long.parseLong(args[++i]);
			case "--case" -> only = Integer.parseInt(args[++i]);
			case "--only" -> kind = args[++i];
			case "--try" -> {
				new Expressions(new Cluster(), Files.createTempDirectory("weir-flink-"), seed).show(List.of(args).subList(i + 1, args.length));
				System.exit(0);
			}
			case "--keep" -> keep = true;
			case "--verbose" -> verbose = true;
			default -> {
				System.err.println("Judge: unknown argument " + args[i]);
				System.exit(2);
			}
			}
		}
		Path root = Files.createTempDirectory("weir-flink-");
		System.out.println("seed " + seed);
		Cluster flink = new Cluster();
		Expressions e = new Expressions(flink, root, seed);
		for (int k = only < 0 ? 0 : only; k < (only < 0 ? batches : only + 1) && batches > 0; k++)
			e.batch(k);
		Queries q = new Queries(flink, root, seed);
		q.only = kind;
		for (int k = only < 0 ? 0 : only; k < (only < 0 ? queries : only + 1) && queries > 0; k += 8)
			q.batch(k, only < 0 ? Math.min(8, queries - k) : 1);
		e.differences.forEach(System.out::println);
		q.differences.stream().limit(20).forEach(System.out::println);
		if (verbose) {
			System.out.println("-- refused by Flink");
			e.refusedByFlink.forEach((m, n) -> System.out.println("   " + m));
		}
		System.out.println("-- refused by weir");
		e.refused.forEach((m, n) -> System.out.println("   " + n + " " + m));
		System.out.println("-- left out, for Flink refuses them or does not end planning them");
		q.leftOut.forEach(m -> System.out.println("   " + m));
		System.out.println(q.kinds);
		System.out.println(e.compared + " expressions, " + e.values + " values, " + e.errors + " that fail in Flink, " + e.refusedByFlink.size() + " that it refuses; "
			+ e.differences.size() + " differ. " + q.compared + " queries, " + q.rows + " rows, " + q.leftOut.size() + " left out; " + q.differences.size()
			+ " differ");
		boolean many = q.leftOut.size() > 1 + q.asked * LEFT_OUT_PERCENT_MAX / 100;
		if (many)
			System.out.println("too many queries left out: more than " + LEFT_OUT_PERCENT_MAX + " %");
		boolean same = e.differences.isEmpty() && q.differences.isEmpty() && !many;
		if (same && !keep)
			delete(root);
		System.exit(same ? 0 : 1);
	}

	static void delete(Path folder) throws IOException {
		try (Stream<Path> all = Files.walk(folder)) {
			for (Path p : all.sorted(Comparator.reverseOrder()).toList())
				Files.deleteIfExists(p);
		}
	}
}
