/* dirty.h: the bodies of changelog messages that hold state: their bytes, shared by dirty.c (writes) and restore.c
 * (reads). All numbers little-endian; every part is a multiple of 8 bytes.
 *
 *   pack   struct weir_pack_head, then per window: struct weir_pack_run, then run.items times
 *            struct weir_pack_item, item.bytes bytes of the page from item.offset
 *   page   struct weir_image_head, then this part's piece of the page's bytes from WEIR_PAGE_HEAD to used: part n holds
 *          [n * WEIR_IMAGE_PART, (n + 1) * WEIR_IMAGE_PART)
 *
 * A body counts only if its window is live (the list that weir_slot_save wrote). An item with page_bytes begins its
 * page anew ("empty from this epoch"), or ends it (WEIR_PACK_GIVEN); an image is its page as of the end of its epoch,
 * one of page_bytes 0 says that the page is not there. */
#ifndef WEIR_STATE_DIRTY_H
#define WEIR_STATE_DIRTY_H

#include "hotpath/core/base.h"

#define WEIR_BODY_VERSION 2u
#define WEIR_PACK_MAX     (64u << 10)
#define WEIR_PACK_MIN     (8u << 10) /* a pack of this size ends with its window */
#define WEIR_IMAGE_PART   (56u << 10)
#define WEIR_PACK_GIVEN   UINT32_MAX

struct weir_pack_head {
	uint32_t version;
	uint32_t state; /* number of the state within the slot: 0 */
	uint64_t epoch;
};
struct weir_pack_run {
	int64_t window;
	uint32_t items;
	uint32_t pad;
};
struct weir_pack_item {
	uint32_t page;
	uint32_t offset;
	uint32_t bytes;
	uint32_t page_bytes; /* 0: the page goes on as it is */
};
struct weir_image_head {
	uint32_t version;
	uint32_t state;
	uint64_t epoch;
	int64_t window;
	uint32_t page_bytes;
	uint32_t used;
	uint32_t parts;
	uint32_t pad;
};

#define WEIR_SAVE_VERSION 1u
struct weir_save_head {
	uint32_t version;
	uint32_t windows; /* that many int64 follow: starts of live generations, ascending */
	uint64_t records;
	int64_t closed_start;
};

#endif
