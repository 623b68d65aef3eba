/* claim.c: numbers of instances, each a bound name in Linux' abstract socket namespace: no file that could stay behind,
 * and shared by exactly those that share a network namespace, which is what a host name stands for (claim.h). */
#include "io/kafka/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hotpath/core/hash.h"

enum { INSTANCES_MAX = 1000 };

enum weir_err weir_kafka_claim(const char *app, uint32_t *number, int *fd, struct weir_diag **dg)
{
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return weir_diag_set(dg, WEIR_E_IO, "claiming an instance number: %s", strerror(errno));
	for (uint32_t n = 0; n < INSTANCES_MAX; n++) {
		struct sockaddr_un name = {.sun_family = AF_UNIX};
		int bytes = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "weir/%016" PRIx64 "/%u",
				     weir_hash(app, strlen(app)), n);
		socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
		if (bind(s, (struct sockaddr *)&name, len) == 0) {
			*number = n;
			*fd = s;
			return WEIR_OK;
		}
		if (errno != EADDRINUSE)
			break;
	}
	enum weir_err err = weir_diag_set(dg, WEIR_E_IO, "claiming an instance number of %s: %s", app, strerror(errno));
	close(s);
	return err;
}
