/* entries.h: what packs and page images of a changelog hold, as JSON: the entries of state with their keys and values,
 * as far as the changelog's schema says how they are laid out. Main thread. */
#ifndef WEIR_TOOLS_ENTRIES_H
#define WEIR_TOOLS_ENTRIES_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"

struct weir_entries;
struct weir_entries *weir_entries_create(void);
void weir_entries_destroy(struct weir_entries *en);
/* Takes the layout out of a schema record; any other record changes nothing. */
void weir_entries_learn(struct weir_entries *en, const struct weir_record *r);
bool weir_entries_knows(const struct weir_entries *en);
/* out holds weir_record_describe's object of r: adds "entries" to that of a pack or page image. Records of a partition
 * come in their order: an entry may go on from one to the next. */
void weir_entries_add(struct weir_entries *en, const struct weir_record *r, struct weir_buf *out);

#endif
