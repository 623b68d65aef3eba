/* app_name.h: any text as the name of an application. @thread init */
#ifndef WEIR_IO_APP_NAME_H
#define WEIR_IO_APP_NAME_H

#include "hotpath/core/mem.h"

/* An application id for a name that people gave (a file's, a job's): letters, digits, '.', '_' and '-' stay, Latin
 * letters lose their marks, everything else is '-'. Names that lose letters by it end in a hash of the whole, as others
 * may look the same. Never empty; of m. */
const char *weir_app_name(struct weir_mem *m, const char *name, size_t bytes);

#endif
