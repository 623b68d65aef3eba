/* base.c: how an assertion that does not hold ends the process, and what names a thread. @thread any. */
#include "hotpath/core/base.h"

#include <stdlib.h>
#include <unistd.h>

#include "hotpath/core/owner.h"

/* Writes without stdio: the process may be in any state, and the heap cannot be trusted. */
static void say(const char *s)
{
	size_t bytes = strlen(s);
	while (bytes > 0) {
		ssize_t done = write(STDERR_FILENO, s, bytes);
		if (done <= 0)
			return;
		s += done;
		bytes -= (size_t)done;
	}
}

void weir_assert_failed(const char *file, int line, const char *what)
{
	char digits[16];
	size_t at = sizeof digits - 1;
	unsigned n = line < 0 ? 0 : (unsigned)line;
	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	say("weir: assertion failed: ");
	say(what);
	say(" (");
	say(file);
	say(":");
	say(digits + at);
	say(")\n");
	abort();
}

uintptr_t weir_owner_self(void)
{
	static _Thread_local char here;
	return (uintptr_t)&here;
}
