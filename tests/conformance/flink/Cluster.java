/* Cluster.java: Flink inside this JVM: one small cluster that all jobs share (a quarter of a second a job instead of two), and
 * results that land in memory. A watermark follows every row that raises it, so that what is late does not depend on time. */
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.dag.Pipeline;
import org.apache.flink.client.deployment.executors.PipelineExecutorUtils;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

final class Cluster implements PipelineExecutorServiceLoader, PipelineExecutorFactory, PipelineExecutor {
	private static final Map<Integer, List<Row>> RESULTS = new ConcurrentHashMap<>();
	private static final AtomicInteger IDS = new AtomicInteger();
	private static final long PLANNING_CPU_MAX_NS = 10_000_000_000L, PLANNING_MAX_NS = 300_000_000_000L;

	private final MiniCluster cluster;
	private final Configuration conf = new Configuration();
	StreamExecutionEnvironment env;
	StreamTableEnvironment tables;
	private ExecutorService planner;
	private Thread planning;

	Cluster() throws Exception {
		for (String s : List.of("pipeline.auto-watermark-interval=0 ms", "parallelism.default=1", "table.local-time-zone=UTC",
			"restart-strategy.type=none", "taskmanager.memory.managed.size=256m", "taskmanager.memory.network.min=128m",
			"taskmanager.memory.network.max=128m", "taskmanager.numberOfTaskSlots=1", "rest.port=0", "rest.bind-port=0",
			"execution.buffer-timeout.interval=0 ms", "execution.target=shared", "execution.attached=true"))
			conf.setString(s.substring(0, s.indexOf('=')), s.substring(s.indexOf('=') + 1));
		cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(conf).setNumTaskManagers(1)
			.setNumSlotsPerTaskManager(1).withRandomPorts().build());
		cluster.start();
	}

	/** A job without tables yet. */
	void begin() {
		env = new StreamExecutionEnvironment(this, conf, Cluster.class.getClassLoader());
		tables = StreamTableEnvironment.create(env, EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(conf).build());
	}

	/** Rows of the query are in the list after run(). */
	List<Row> collect(Table query) {
		int id = IDS.incrementAndGet();
		List<Row> rows = new ArrayList<>();
		RESULTS.put(id, rows);
		tables.toChangelogStream(query).map(new Tap(id)).returns(Types.GENERIC(Row.class)).setParallelism(1)
			.sinkTo(new DiscardingSink<>());
		return rows;
	}

	/** A job without tables yet, and a thread of its own for what plan() does: planners belong to the thread that made them. */
	void beginPlanned() throws Exception {
		if (planner != null)
			planner.shutdown();
		planner = Executors.newSingleThreadExecutor(work -> {
			planning = new Thread(null, work, "planner", 64 << 20);
			planning.setDaemon(true);
			return planning;
		});
		plan(() -> {
			begin();
			return null;
		});
	}

	/** Of some joins the planner's estimates of rows go on for hours: it is given up after some CPU time, for the machine may be busy. A thread that is
	 * given up is stopped where Java still can, and keeps no JVM alive. */
	<T> T plan(Callable<T> work) throws Exception {
		Future<T> result = planner.submit(work);
		ThreadMXBean threads = ManagementFactory.getThreadMXBean();
		long started = System.nanoTime(), startedCpu = threads.getThreadCpuTime(planning.getId());
		while (threads.getThreadCpuTime(planning.getId()) - startedCpu < PLANNING_CPU_MAX_NS && System.nanoTime() - started < PLANNING_MAX_NS) {
			try {
				return result.get(50, TimeUnit.MILLISECONDS);
			} catch (ExecutionException e) {
				throw e.getCause() instanceof Exception x ? x : e;
			} catch (TimeoutException e) {
				continue;
			}
		}
		planner.shutdownNow();
		try {
			planning.stop();
		} catch (UnsupportedOperationException e) {
			planning.setPriority(Thread.MIN_PRIORITY);
		}
		throw new TimeoutException("planning does not end");
	}

	void run() throws Exception {
		try {
			env.execute("judge");
		} finally {
			RESULTS.clear();
		}
	}

	private static final class Tap implements MapFunction<Row, Row> {
		final int id;

		Tap(int id) {
			this.id = id;
		}

		@Override
		public Row map(Row r) {
			RESULTS.get(id).add(Row.copy(r));
			return r;
		}
	}

	@Override
	public PipelineExecutorFactory getExecutorFactory(Configuration c) {
		return this;
	}

	@Override
	public Stream<String> getExecutorNames() {
		return Stream.of("shared");
	}

	@Override
	public String getName() {
		return "shared";
	}

	@Override
	public boolean isCompatibleWith(Configuration c) {
		return true;
	}

	@Override
	public PipelineExecutor getExecutor(Configuration c) {
		return this;
	}

	@Override
	public CompletableFuture<JobClient> execute(Pipeline p, Configuration c, ClassLoader loader) throws Exception {
		return cluster.submitJob(PipelineExecutorUtils.getStreamGraph(p, c).getJobGraph(loader)).thenApply(r ->
			new MiniClusterJobClient(r.getJobID(), cluster, loader, MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
	}
}
