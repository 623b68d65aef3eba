/* test_claim.c: instance numbers: the smallest free one, given back by closing and by a process's death. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/kafka/claim.h"

static char app[64];

static uint32_t claim(int *fd)
{
	uint32_t n = UINT32_MAX;
	assert_int_equal(weir_kafka_claim(app, &n, fd, NULL), WEIR_OK);
	return n;
}

static void test_smallest(void **state)
{
	(void)state;
	int a, b, c;
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 1);
	assert_int_equal(claim(&c), 2);
	close(b);
	assert_int_equal(claim(&b), 1);
	close(a);
	close(b);
	close(c);
	assert_int_equal(claim(&a), 0);
	close(a);
}

static void test_death(void **state)
{
	(void)state;
	int ready[2], fd;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		uint32_t n;
		bool ok = weir_kafka_claim(app, &n, &fd, NULL) == WEIR_OK && n == 0 && write(ready[1], "x", 1) == 1;
		while (ok)
			pause();
		_exit(1);
	}
	char x;
	close(ready[1]);
	assert_int_equal(read(ready[0], &x, 1), 1);
	assert_int_equal(claim(&fd), 1);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(claim(&fd), 0);
	close(fd);
	close(ready[0]);
}

static void test_apps_apart(void **state)
{
	(void)state;
	int a, b;
	assert_int_equal(claim(&a), 0);
	app[0]++;
	assert_int_equal(claim(&b), 0);
	app[0]--;
	close(a);
	close(b);
}

int main(void)
{
	snprintf(app, sizeof app, "test-claim-%d", (int)getpid());
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_smallest), cmocka_unit_test(test_death),
					   cmocka_unit_test(test_apps_apart)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
