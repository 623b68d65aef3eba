/* test_record_path.c: after warm-up a record is decoded, exchanged and folded without an allocation, a lock or a system
 * call: workers are driven over several hundred batches, and each of these is counted.
 *
 * Allocations and locks are counted by wrapping the calls of everything that is linked into this program (--wrap, see
 * tests/CMakeLists.txt); system calls by a child with a seccomp filter that traps every one of them. @thread one */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/pipelines/rig.h"
#include "io/recorded/recorded.h"
#include "tests/support/tmpdir.h"

enum { PARTITIONS = 4, BATCHES = 16, WARM_BATCHES = 256, COUNTED_BATCHES = 512 };

/* ---- counting ---- */

static uint64_t allocations, locks;
static bool counting;

#define WRAP(counter, type, name, params, args)                                                                        \
	type __real_##name params;                                                                                     \
	type __wrap_##name params;                                                                                     \
	type __wrap_##name params                                                                                      \
	{                                                                                                              \
		counter += counting;                                                                                   \
		return __real_##name args;                                                                             \
	}

WRAP(allocations, void *, malloc, (size_t n), (n))
WRAP(allocations, void *, calloc, (size_t n, size_t m), (n, m))
WRAP(allocations, void *, realloc, (void *p, size_t n), (p, n))
WRAP(allocations, void, free, (void *p), (p))
WRAP(allocations, void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(allocations, int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WRAP(allocations, void *, mmap, (void *p, size_t n, int pr, int fl, int fd, off_t o), (p, n, pr, fl, fd, o))
WRAP(allocations, int, munmap, (void *p, size_t n), (p, n))
WRAP(allocations, int, madvise, (void *p, size_t n, int a), (p, n, a))
#ifdef WRAP_JEMALLOC
WRAP(allocations, void *, mallocx, (size_t n, int f), (n, f))
WRAP(allocations, void *, rallocx, (void *p, size_t n, int f), (p, n, f))
WRAP(allocations, size_t, xallocx, (void *p, size_t n, size_t e, int f), (p, n, e, f))
WRAP(allocations, void, sdallocx, (void *p, size_t n, int f), (p, n, f))
WRAP(allocations, void, dallocx, (void *p, int f), (p, f))
WRAP(allocations, int, mallctl, (const char *s, void *o, size_t *ol, void *n, size_t nl), (s, o, ol, n, nl))
#endif
WRAP(locks, int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WRAP(locks, int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
WRAP(locks, int, pthread_rwlock_rdlock, (pthread_rwlock_t * m), (m))
WRAP(locks, int, pthread_rwlock_wrlock, (pthread_rwlock_t * m), (m))
WRAP(locks, int, pthread_spin_lock, (pthread_spinlock_t * m), (m))
WRAP(locks, int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
WRAP(locks, int, sem_wait, (sem_t * s), (s))

static volatile sig_atomic_t calls, first_call;

static void on_trap(int sig, siginfo_t *info, void *ctx)
{
	(void)sig, (void)ctx;
	if (calls++ == 0)
		first_call = info->si_syscall;
}

/* From here on every system call but exit and the return from the trap is trapped. False: this kernel has no seccomp.
 */
static bool trap_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {WEIR_COUNT_OF(filter), filter};
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
	return sigaction(SIGSYS, &sa, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Ends the child without what sanitizers do at an _exit: that would be trapped, too. */
static void leave(int code)
{
	for (;;)
		(void)syscall(SYS_exit_group, code);
}

/* ---- the records ---- */

static char *topic_make(void)
{
	struct weir_topic_writer *w;
	char *dir = tmpdir_make();
	assert_int_equal(weir_topic_writer_open(&w, dir, "order.placed", PARTITIONS, WEIR_CODEC_NONE, NULL), WEIR_OK);
	for (uint32_t i = 0; i < BATCHES * WEIR_BATCH_ROWS; i++) {
		char key[32], value[256];
		int64_t ts = INT64_C(1767225600000) + i / 10;
		int k = snprintf(key, sizeof key, "o-%010u", i);
		int n = snprintf(
			value, sizeof value,
			"{\"order_id\":\"%s\",\"merchant_id\":\"m-%06u\",\"customer_id\":\"c-%07u\",\"amount\":%u.%02u,"
			"\"currency\":\"EUR\",\"ts\":%" PRId64 "}",
			key, i * 7919u % 5000u, i * 31u % 100000u, i % 900u + 1, i % 100u, ts);
		struct weir_out r = {.key = {key, (size_t)k}, .value = {value, (size_t)n}, .timestamp = ts};
		assert_int_equal(weir_topic_writer_put(w, i % PARTITIONS, &r, NULL), WEIR_OK);
	}
	assert_int_equal(weir_topic_writer_close(w, NULL), WEIR_OK);
	return dir;
}

static struct weir_rig *rig_make(const char *dir, uint32_t workers)
{
	struct weir_rig *rig = NULL;
	struct weir_diag *dg = NULL;
	if (weir_rig_create(&rig, dir, BATCHES, workers, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_rig_run(rig, WARM_BATCHES);
	assert_true(rig->applied != 0);
	return rig;
}

static void test_nothing_is_counted(void **state)
{
	(void)state;
	char *dir = topic_make();
	for (uint32_t workers = 1; workers <= 3; workers++) {
		struct weir_rig *rig = rig_make(dir, workers);
		uint64_t before = rig->applied;
		allocations = locks = 0;
		counting = true;
		weir_rig_run(rig, COUNTED_BATCHES);
		counting = false;
		assert_int_equal(rig->applied - before, COUNTED_BATCHES * WEIR_BATCH_ROWS);
		if (allocations + locks != 0)
			fail_msg("%u workers: %" PRIu64 " allocations, %" PRIu64 " locks", workers, allocations, locks);
		weir_rig_destroy(rig);
	}
	tmpdir_remove(dir);
}

/* The wraps and the trap are there: each sees what it is for. */
static void test_counters_count(void **state)
{
	(void)state;
	struct weir_buf b = {0};
	struct weir_arena *ar;
	allocations = locks = 0;
	counting = true;
	weir_buf_puts(&b, "text");
	weir_buf_fini(&b);
	counting = false;
	assert_true(allocations >= 2);
	allocations = 0;
	counting = true;
	ar = weir_arena_create();
	weir_arena_destroy(ar);
	counting = false;
	assert_true(allocations >= 2);
}

static void test_no_system_call(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* its runtime makes calls of its own */
#endif
	char *dir = topic_make();
	for (uint32_t workers = 1; workers <= 2; workers++) {
		struct weir_rig *rig = rig_make(dir, workers);
		fflush(NULL);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			/* Exit codes: 0 none; 1 some; 2 the trap does not work; 77 no seccomp here. */
			weir_rig_run(rig, BATCHES); /* pages are copied on first write: not the record path's doing */
			if (!trap_calls())
				leave(77);
			weir_rig_run(rig, COUNTED_BATCHES);
			int counted = calls, first = first_call;
			(void)syscall(SYS_getppid);
			if (calls != counted + 1)
				leave(2);
			leave(counted == 0 ? 0 : first > 0 && first < 70 ? 100 + first : 1);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		weir_rig_destroy(rig);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77) {
			tmpdir_remove(dir);
			skip();
		}
		if (WEXITSTATUS(status) != 0)
			fail_msg("%u workers: system calls on the path of a record (exit code %d; 100 + n: the first "
				 "was call n)",
				 workers, WEXITSTATUS(status));
	}
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_count),
		cmocka_unit_test(test_nothing_is_counted),
		cmocka_unit_test(test_no_system_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
