/* kafka_proxy.c: stands between clients and a broker (which advertises the proxy's port) and loses what a commit of a
 * transaction says: for kafka_log.sh, needs nothing of weir.
 *   kafka_proxy TARGET-PORT MODE-FILE     prints the port it listens on
 * MODE-FILE holds one word, read at every EndTxn request:
 *   pass       (also: no file)
 *   answers    the request goes on, no answer comes back on its connection: the transaction ends, its client cannot
 * know requests   the request is lost with all that follows on its connection: the transaction does not end An
 * InitProducerId request that follows sets the mode back to pass. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 200, BYTES_MAX = 4 << 20, INIT_PRODUCER_ID = 22, END_TXN = 26 };

struct connection {
	int client, broker; /* client < 0: free */
	bool deaf;          /* answers are lost */
	bool dead;          /* requests are lost */
	uint8_t head[6];    /* of the request that is coming in */
	uint32_t head_bytes;
	uint32_t left; /* bytes of its body to come */
};
static struct connection connections[CONNECTIONS_MAX];
static uint8_t buffer[65536];
static const char *mode_file;
static bool lost; /* since the last InitProducerId */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static bool mode_is(const char *word)
{
	char text[32] = "";
	FILE *f = fopen(mode_file, "r");
	if (f == NULL)
		return false;
	if (fgets(text, sizeof text, f) == NULL)
		text[0] = 0;
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return strcmp(text, word) == 0;
}

static void on_request(struct connection *c, int api)
{
	if (api == INIT_PRODUCER_ID && lost) {
		unlink(mode_file);
		lost = false;
	}
	if (api != END_TXN)
		return;
	c->deaf |= mode_is("answers");
	c->dead |= mode_is("requests");
	lost |= c->deaf || c->dead;
}

static void send_all(int fd, const uint8_t *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		data += n;
		bytes -= (size_t)n;
	}
}

/* Looks at the heads of requests as they pass; what comes before a fateful one still goes on. */
static void forward_requests(struct connection *c, const uint8_t *data, size_t bytes)
{
	size_t at = 0, sent = 0;
	while (at < bytes) {
		if (c->left > 0) {
			size_t n = c->left < bytes - at ? c->left : bytes - at;
			at += n;
			c->left -= (uint32_t)n;
			continue;
		}
		c->head[c->head_bytes++] = data[at++];
		if (c->head_bytes < sizeof c->head)
			continue;
		uint32_t length = (uint32_t)c->head[0] << 24 | (uint32_t)c->head[1] << 16 | (uint32_t)c->head[2] << 8 |
				  c->head[3];
		bool was_dead = c->dead;
		on_request(c, c->head[4] << 8 | c->head[5]);
		c->head_bytes = 0;
		c->left = length - 2;
		if (c->dead && !was_dead) {
			if (at > sizeof c->head + sent)
				send_all(c->broker, data + sent, at - sizeof c->head - sent);
			return;
		}
	}
	if (!c->dead)
		send_all(c->broker, data + sent, bytes - sent);
}

static void drop(struct connection *c)
{
	close(c->client);
	close(c->broker);
	memset(c, 0, sizeof *c);
	c->client = c->broker = -1;
}

static int connect_to(int port)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
		return fd;
	close(fd);
	return -1;
}

static void take(int listener, int port)
{
	int one = 1, client = accept(listener, NULL, NULL);
	if (client < 0)
		return;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].client < 0) {
			int broker = connect_to(port);
			if (broker < 0)
				break;
			connections[i].client = client;
			connections[i].broker = broker;
			return;
		}
	close(client);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int port = atoi(argv[1]), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_file = argv[2];
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof a;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 64) != 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &len) != 0)
		die("listen");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections[i].client = connections[i].broker = -1;
	for (;;) {
		struct pollfd p[1 + 2 * CONNECTIONS_MAX] = {{.fd = listener, .events = POLLIN}};
		for (int i = 0; i < CONNECTIONS_MAX; i++) {
			p[1 + 2 * i] = (struct pollfd){.fd = connections[i].client, .events = POLLIN};
			p[2 + 2 * i] = (struct pollfd){.fd = connections[i].broker, .events = POLLIN};
		}
		if (poll(p, 1 + 2 * CONNECTIONS_MAX, -1) < 0 && errno != EINTR)
			die("poll");
		for (int i = 0; i < CONNECTIONS_MAX; i++) {
			struct connection *c = &connections[i];
			if (c->client >= 0 && p[1 + 2 * i].revents != 0) {
				ssize_t n = read(c->client, buffer, sizeof buffer);
				if (n <= 0)
					drop(c);
				else
					forward_requests(c, buffer, (size_t)n);
			}
			if (c->client >= 0 && p[2 + 2 * i].revents != 0) {
				ssize_t n = read(c->broker, buffer, sizeof buffer);
				if (n <= 0)
					drop(c);
				else if (!c->deaf)
					send_all(c->client, buffer, (size_t)n);
			}
		}
		if (p[0].revents != 0)
			take(listener, port);
	}
}
