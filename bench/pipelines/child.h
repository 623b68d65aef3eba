/* child.h: one way to do something, in a process of its own, so that its CPU seconds and memory are those of nothing
 * else. @thread: the program's only one */
#ifndef WEIR_BENCH_CHILD_H
#define WEIR_BENCH_CHILD_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
	double records, bytes, seconds; /* as the way says */
	double cpu_seconds;             /* the whole process's, librdkafka's threads included */
	long peak_kb;
	bool failed;
};

/* What fn, false if it fails, writes for job. */
static inline struct outcome child_run(void *job, bool (*fn)(void *job, struct outcome *out))
{
	struct outcome out = {.failed = true};
	int fd[2], status;
	struct rusage ru;
	if (pipe(fd) != 0)
		return out;
	pid_t pid = fork();
	if (pid == 0) {
		struct outcome mine = {0};
		mine.failed = !fn(job, &mine);
		_exit(write(fd[1], &mine, sizeof mine) != sizeof mine);
	}
	close(fd[1]);
	if (pid < 0 || read(fd[0], &out, sizeof out) != sizeof out)
		out.failed = true;
	close(fd[0]);
	if (pid > 0 && wait4(pid, &status, 0, &ru) == pid) {
		out.cpu_seconds = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
				  (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
		out.peak_kb = ru.ru_maxrss;
	}
	return out;
}

#endif
