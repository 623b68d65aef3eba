/* fuzz_sql.c: libFuzzer target: SQL texts, alone and behind a few tables. Must never crash, leak or read out of bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/weir.h"
#include "io/weir_engine.h"
#include "tools/sql/weir_sql.h"

static const char tables[] =
	"CREATE TABLE t (a STRING, b BIGINT, d DECIMAL(12,2), x DOUBLE, ok BOOLEAN, r ROW<f INT, g ARRAY<STRING>>,"
	" m MAP<STRING, BIGINT>, e AS TO_TIMESTAMP_LTZ(b, 3), WATERMARK FOR e AS e - INTERVAL '5' SECOND) WITH"
	" ('connector'='datagen');\n"
	"CREATE TABLE s (a STRING, b BIGINT) WITH ('connector'='print');\n"
	"CREATE VIEW v AS SELECT a, b, e FROM t WHERE ok;\n";

static void compile(const char *text, size_t bytes)
{
	struct weir_conf *cf = weir_conf_create();
	struct weir_sql *sq = NULL;
	struct weir_diag *dg = NULL;
	if (weir_sql_open(&sq, cf, "fuzz", text, bytes, &dg) == WEIR_OK) {
		struct weir_topology *tp = weir_sql_take_topology(sq);
		if (tp != NULL)
			weir_free(weir_topology_describe(tp, WEIR_DESCRIBE_TEXT));
		weir_topology_destroy(tp);
		weir_sql_close(sq);
	} else {
		(void)weir_diag_report(dg);
	}
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes > 8192)
		return 0;
	char *text = malloc(sizeof tables + bytes);
	memcpy(text, tables, sizeof tables - 1);
	memcpy(text + sizeof tables - 1, data, bytes);
	compile(text, sizeof tables - 1 + bytes);
	compile((const char *)data, bytes);
	free(text);
	return 0;
}
