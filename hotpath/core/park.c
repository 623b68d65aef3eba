/* park.c: the sleeping side of park.h. @thread any */
#include "hotpath/core/park.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum weir_err weir_park_init(struct weir_park *pk, bool threads)
{
	atomic_store_explicit(&pk->sleeping, 0, memory_order_relaxed);
	pk->fd = threads ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	return threads && pk->fd < 0 ? WEIR_E_IO : WEIR_OK;
}

void weir_park_fini(struct weir_park *pk)
{
	if (pk->fd >= 0)
		close(pk->fd);
	pk->fd = -1;
}

void weir_park_signal(struct weir_park *pk)
{
	uint64_t one = 1;
	if (pk->fd < 0 || atomic_exchange_explicit(&pk->sleeping, 0, memory_order_acq_rel) == 0)
		return;
	while (write(pk->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void weir_park_wait(struct weir_park *pk, int timeout_ms, int extra_fd)
{
	struct pollfd pf[2] = {{pk->fd, POLLIN, 0}, {extra_fd, POLLIN, 0}};
	uint64_t drained;
	(void)poll(pf, extra_fd >= 0 ? 2 : 1, timeout_ms);
	atomic_store_explicit(&pk->sleeping, 0, memory_order_relaxed);
	while (read(pk->fd, &drained, sizeof drained) > 0)
		;
}
