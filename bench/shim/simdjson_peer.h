/* simdjson_peer.h: simdjson behind C calls, the peer of bench_json. @thread init */
#ifndef WEIR_BENCH_SIMDJSON_PEER_H
#define WEIR_BENCH_SIMDJSON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_simdjson;
/* What the main job reads of one order. The amount stays a double: simdjson has no decimals. */
struct weir_simdjson_order {
	const char *merchant_id;
	size_t merchant_id_bytes;
	double amount;
	int64_t ts;
};

struct weir_simdjson *weir_simdjson_create(void);
void weir_simdjson_destroy(struct weir_simdjson *sj);
const char *weir_simdjson_implementation(void);
/* data is readable for 64 bytes beyond bytes. False: malformed. The strings live until the next call. */
bool weir_simdjson_on_demand(struct weir_simdjson *sj, const void *data, size_t bytes, struct weir_simdjson_order *out);
bool weir_simdjson_dom(struct weir_simdjson *sj, const void *data, size_t bytes, struct weir_simdjson_order *out);

#ifdef __cplusplus
}
#endif
#endif
