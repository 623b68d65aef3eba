/* print.h: rows as text for the print connector and for a bare SELECT: Flink's `+I[a, 14999, 1.50]`, a table on a
 * terminal, JSON lines in a pipe. Appends to a buffer; nothing is written here. @thread snap */
#ifndef WEIR_IO_PRINT_H
#define WEIR_IO_PRINT_H

#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/state.h"

enum weir_print_form {
	WEIR_PRINT_ROWS,  /* +I[a, 14999]: the print connector */
	WEIR_PRINT_TABLE, /* Flink's tableau, for a terminal */
	WEIR_PRINT_JSON   /* one JSON object a line */
};

struct weir_printer_spec {
	enum weir_print_form form;
	const char *identifier; /* ROWS: print-identifier; NULL or empty: none */
	uint32_t column_count;
	const char *const *names; /* borrowed for the printer's life, as types */
	const struct weir_type *types;
	bool is_table; /* TABLE: an op column; JSON: a member op */
};

struct weir_printer;
WEIR_MUST_CHECK enum weir_err weir_printer_create(struct weir_printer **out, const struct weir_printer_spec *spec,
						  struct weir_diag **dg);
void weir_printer_destroy(struct weir_printer *pr);
/* What stands above the first row: the head of a table, else nothing. */
void weir_printer_head(struct weir_printer *pr, struct weir_buf *out);
/* One row of cols[0..column_count) with its line end. */
void weir_printer_row(struct weir_printer *pr, const struct weir_col *cols, uint32_t row, enum weir_op op,
		      struct weir_buf *out);
/* How many rows the foot speaks of, where others printed them. */
void weir_printer_set_rows(struct weir_printer *pr, uint64_t rows);
/* What stands below the last row: a table's border and `Received a total of N rows`, else nothing. */
void weir_printer_foot(struct weir_printer *pr, struct weir_buf *out);

/* Columns that text takes on a terminal: wide East Asian characters and emoji count two, combining marks none. */
uint32_t weir_text_width(const uint8_t *s, size_t bytes);

#endif
