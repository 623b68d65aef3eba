/* transfer.c: stop by signal, log lines and the progress line of record, replay, dump -b and lag. Main thread. */
#include "tools/weir/transfer.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

void weir_transfer_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

bool weir_transfer_stopped(void)
{
	return stopped != 0;
}

void weir_transfer_warnings(const struct weir_stream_log *sl)
{
	const char *text;
	for (uint32_t i = 0; (text = weir_recorded_source_warning(sl, i)) != NULL; i++)
		weir_talk("%s", text);
}

static void say(void *ctx, int level, const char *text)
{
	const struct weir_job *jb = ctx;
	if (level <= 4 || jb->verbose)
		weir_talk("%s", text);
}

struct weir_kafka_log weir_transfer_log(const struct weir_job *jb)
{
	return (struct weir_kafka_log){say, (void *)(uintptr_t)jb};
}

int64_t weir_transfer_now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void weir_progress_begin(struct weir_progress *pg, const char *name, uint64_t total)
{
	*pg = (struct weir_progress){.name = name, .total = total, .started_us = weir_transfer_now_us()};
	pg->next_us = pg->started_us + 500000;
	pg->shown = isatty(STDERR_FILENO) != 0;
}

/* Tenths, without floating point in the text. */
static void put_tenths(char *to, size_t bytes, uint64_t tenths)
{
	snprintf(to, bytes, "%llu.%llu", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10));
}

static uint64_t per_second(const struct weir_progress *pg, int64_t us)
{
	return us > 0 ? (uint64_t)((double)pg->records * 1e6 / (double)us) : 0;
}

void weir_progress_step(struct weir_progress *pg)
{
	if (!pg->shown || (pg->records & 255) != 0)
		return;
	int64_t now = weir_transfer_now_us();
	if (now < pg->next_us)
		return;
	pg->next_us = now + 500000;
	uint64_t rate = per_second(pg, now - pg->started_us);
	if (pg->total > pg->records && rate != 0)
		weir_talk("\r%s: %llu of %llu records, %llu %%, %llu/s, %llu s left\033[K\033[A", pg->name,
			  (unsigned long long)pg->records, (unsigned long long)pg->total,
			  (unsigned long long)(pg->records * 100 / pg->total), (unsigned long long)rate,
			  (unsigned long long)((pg->total - pg->records) / rate));
	else
		weir_talk("\r%s: %llu records, %llu/s\033[K\033[A", pg->name, (unsigned long long)pg->records,
			  (unsigned long long)rate);
}

void weir_progress_end(struct weir_progress *pg, const char *more)
{
	int64_t us = weir_transfer_now_us() - pg->started_us;
	char megabytes[32], seconds[32];
	put_tenths(megabytes, sizeof megabytes, pg->bytes / 100000);
	put_tenths(seconds, sizeof seconds, (uint64_t)us / 100000);
	weir_talk("%s%s: %llu records, %s MB in %s s (%llu/s)%s", pg->shown ? "\r\033[K" : "", pg->name,
		  (unsigned long long)pg->records, megabytes, seconds, (unsigned long long)per_second(pg, us), more);
}
