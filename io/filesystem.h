/* filesystem.h: connector filesystem as a source: a file, or the files of a folder, of JSON or CSV lines as a
 * partitioned log (io/stream.h). Each file is a topic of its name with one partition, numbered in sorted order; a
 * record is a line (CSV: lines joined while a quote is open) and its offset the number of its first line, from 0. What
 * a file holds when it is opened is the bound. @thread io */
#ifndef WEIR_IO_FILESYSTEM_H
#define WEIR_IO_FILESYSTEM_H

#include "hotpath/format/format.h"
#include "io/stream.h"

struct weir_filesystem_spec {
	const char *path;                         /* a file or a folder; hidden files of a folder are passed over */
	const struct weir_format_options *format; /* JSON or CSV; borrowed for the log's life */
	uint32_t record_bytes_max; /* 0: 16 MiB. A longer record is cut one byte beyond, so that decoders refuse it */
};
/* Records carry the file's modification time; files are merged line by line (first_ts of a unit is its line number). */
WEIR_MUST_CHECK enum weir_err weir_filesystem_open(struct weir_stream_log **out,
						   const struct weir_filesystem_spec *spec, struct weir_diag **dg);

#endif
