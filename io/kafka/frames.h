/* frames.h: records kept in the order in which they came, at addresses that do not move, so that a producer may refer
 * to them without a copy, and send them again. @thread: one owner */
#ifndef WEIR_IO_KAFKA_FRAMES_H
#define WEIR_IO_KAFKA_FRAMES_H

#include "checkpoint/changelog.h"

struct weir_frame {
	struct weir_out r; /* points behind the frame */
	uint32_t topic;
	uint32_t partition;
	uint64_t seq;   /* the owner's */
	uint64_t bytes; /* to the next one, this header included */
};

struct weir_frames_chunk;
struct weir_frames {
	struct weir_frames_chunk *first, *last; /* last: the one being filled; behind it wait empty ones */
	uint64_t count;
	uint64_t bytes; /* of all chunks */
	uint64_t used;
	uint64_t bytes_max; /* 0: no bound */
};

/* A copy of r, valid until reset; NULL where the bound is reached. */
struct weir_frame *weir_frames_add(struct weir_frames *fs, uint32_t topic, uint32_t partition,
				   const struct weir_out *r);
/* Calls each for every frame, in order, until it returns nonzero. Frames that each adds are visited too. */
enum weir_err weir_frames_each(struct weir_frames *fs,
			       enum weir_err (*each)(void *ctx, struct weir_frame *f, struct weir_diag **dg), void *ctx,
			       struct weir_diag **dg);
/* Forgets all; some memory is kept for the next ones. */
void weir_frames_reset(struct weir_frames *fs);
void weir_frames_fini(struct weir_frames *fs);

#endif
