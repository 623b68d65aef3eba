/* shim.cc: the C++ behind shim.h: registration, the run, and medians of the repetitions. @thread init */
#include "bench/shim/shim.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct weir_bench_state {
	benchmark::State *state;
};

namespace
{
std::map<std::string, std::map<std::string, std::vector<double>>> results;
bool failed;

/* Prints as the console reporter does and keeps every counter of every repetition. */
class Keeper : public benchmark::ConsoleReporter
{
      public:
	void ReportRuns(const std::vector<Run> &runs) override
	{
		for (const Run &run : runs) {
			if (run.error_occurred)
				failed = true;
			if (run.error_occurred || run.run_type != Run::RT_Iteration)
				continue;
			auto &of = results[run.run_name.function_name];
			for (const auto &counter : run.counters)
				of[counter.first].push_back(counter.second.value);
			of["cpu_ns"].push_back(run.GetAdjustedCPUTime());
		}
		benchmark::ConsoleReporter::ReportRuns(runs);
	}
};
} // namespace

extern "C" void weir_bench_init(int *argc, char **argv)
{
	/* Defaults first, so that the command line can override them. */
	static char interleave[] = "--benchmark_enable_random_interleaving=true";
	static char repetitions[] = "--benchmark_repetitions=5";
	static char min_time[] = "--benchmark_min_time=0.2";
	static char aggregates[] = "--benchmark_report_aggregates_only=false";
	char *defaults[] = {argv[0], interleave, repetitions, min_time, aggregates, nullptr};
	int count = 5;
	benchmark::Initialize(&count, defaults);
	benchmark::Initialize(argc, argv);
}

extern "C" void weir_bench_register(const char *name, void (*fn)(struct weir_bench_state *, void *), void *arg)
{
	benchmark::RegisterBenchmark(name, [fn, arg](benchmark::State &state) {
		struct weir_bench_state st = {&state};
		fn(&st, arg);
	});
}

extern "C" bool weir_bench_keep_running(struct weir_bench_state *st)
{
	return st->state->KeepRunning();
}

extern "C" void weir_bench_pause(struct weir_bench_state *st)
{
	st->state->PauseTiming();
}

extern "C" void weir_bench_resume(struct weir_bench_state *st)
{
	st->state->ResumeTiming();
}

extern "C" void weir_bench_set_items(struct weir_bench_state *st, int64_t items_per_iteration)
{
	st->state->SetItemsProcessed(items_per_iteration * static_cast<int64_t>(st->state->iterations()));
}

extern "C" void weir_bench_set_bytes(struct weir_bench_state *st, int64_t bytes_per_iteration)
{
	st->state->SetBytesProcessed(bytes_per_iteration * static_cast<int64_t>(st->state->iterations()));
}

extern "C" void weir_bench_counter(struct weir_bench_state *st, const char *name, double value)
{
	st->state->counters[name] = value;
}

extern "C" void weir_bench_fail(struct weir_bench_state *st, const char *why)
{
	st->state->SkipWithError(why);
}

extern "C" int weir_bench_run(void)
{
	Keeper keeper;
	benchmark::RunSpecifiedBenchmarks(&keeper);
	benchmark::Shutdown();
	return failed ? 1 : 0;
}

extern "C" double weir_bench_result(const char *name, const char *counter)
{
	auto found = results.find(name);
	if (found == results.end())
		return 0;
	auto values = found->second.find(counter);
	if (values == found->second.end() || values->second.empty())
		return 0;
	std::vector<double> sorted = values->second;
	std::sort(sorted.begin(), sorted.end());
	return sorted[sorted.size() / 2];
}

extern "C" double weir_bench_items_per_second(const char *name)
{
	return weir_bench_result(name, "items_per_second");
}

extern "C" bool weir_bench_print_ratio(const char *label, const char *a, const char *b, double want)
{
	double over = weir_bench_items_per_second(a), under = weir_bench_items_per_second(b);
	if (over == 0 || under == 0) {
		std::printf("%-52s not run\n", label);
		return true;
	}
	double ratio = over / under;
	std::printf("%-52s %8.2fx (at least %g) %s\n", label, ratio, want, ratio >= want ? "ok" : "BELOW");
	return ratio >= want;
}
