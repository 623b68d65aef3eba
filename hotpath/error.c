/* error.c: one sentence for each error code, the library's version, giving strings back. @thread any. */
#include "hotpath/weir_types.h"

#include <stdlib.h>

const char *weir_err_text(enum weir_err err)
{
	switch (err) {
	case WEIR_OK:
		return "success";
	case WEIR_E_CONF:
		return "a property, option or argument is wrong";
	case WEIR_E_PLAN:
		return "the statement, expression or topology is wrong";
	case WEIR_E_IO:
		return "reading or writing failed";
	case WEIR_E_STATE:
		return "the state does not fit";
	case WEIR_E_STOPPED:
		return "stopped before the end";
	case WEIR_E_NOMEM:
		return "out of memory";
	case WEIR_E_CORRUPT:
		return "durable data is damaged";
	case WEIR_E_UNAVAILABLE:
		return "not available yet";
	case WEIR_E_FENCED:
		return "another instance took over";
	case WEIR_E_RECORD:
		return "a record was refused";
	}
	return "unknown error";
}

const char *weir_version(void)
{
	return WEIR_VERSION_TEXT;
}

void weir_free(void *p)
{
	free(p);
}
