/* shape.h: what tests must know of topics beyond their names: which bytes stand for a number where a key or value is
 * one primitive, and how long windows are, whose keys hold only the start. Main thread. */
#ifndef WEIR_TOOLS_WEIR_SHAPE_H
#define WEIR_TOOLS_WEIR_SHAPE_H

#include "hotpath/format/format.h"
#include "weir/weir_types.h"

struct weir_topology;

struct weir_shape {
	const char *topics; /* one, or several separated by ';' */
	bool is_sink;
	bool has_key, has_value; /* formats raw and kafka: one column of this type */
	struct weir_type key_type, value_type;
	struct weir_format_options key_format, value_format;
	int64_t window_ms; /* of the time windows whose rows come here, 0: none, or of different sizes */
};

/* One of every table that tp reads or writes. */
void weir_shapes_of(struct weir_topology *tp, struct weir_mem *mem, struct weir_shape **out, uint32_t *count);
/* NULL: no such topic. */
const struct weir_shape *weir_shape_find(const struct weir_shape *shapes, uint32_t count, const char *topic, bool sink);
/* The bytes of a number or truth value, given as text, as the topic's format has them. False where the topic holds no
 * primitive, or the text is none of its type. */
bool weir_shape_encode(const struct weir_shape *sh, bool key, struct weir_mem *mem, const char *text, size_t bytes,
		       struct weir_slice *out);

#endif
