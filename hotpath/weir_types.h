/* weir_types.h: error codes, diagnostics and small types that every public header shares.
 *
 * Public, installed as <weir/weir_types.h>. No function here starts a thread, prints, or exits; all are @thread any. */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_API        __attribute__((visibility("default")))
#define WEIR_MUST_CHECK __attribute__((warn_unused_result))

#define WEIR_VERSION 0x00010000 /* 0xMMmmpp00: major, minor, patch */

/* Durations in milliseconds, the unit of every *_ms parameter. */
#define WEIR_MS(n)      ((int64_t)(n))
#define WEIR_SECONDS(n) (INT64_C(1000) * (n))
#define WEIR_MINUTES(n) (INT64_C(60000) * (n))
#define WEIR_HOURS(n)   (INT64_C(3600000) * (n))

/* 0 is success, everything else negative. weir_err_text() has one sentence for each. */
enum weir_err {
	WEIR_OK = 0,
	WEIR_E_CONF = -1,        /* a property, option or argument is wrong */
	WEIR_E_PLAN = -2,        /* SQL, an expression or a topology is wrong */
	WEIR_E_IO = -3,          /* reading or writing failed */
	WEIR_E_STATE = -4,       /* state does not fit: other fingerprint, memory.max reached */
	WEIR_E_STOPPED = -5,     /* stopped before the end */
	WEIR_E_NOMEM = -6,       /* the allocator gave nothing */
	WEIR_E_CORRUPT = -7,     /* durable data is damaged; never mended in silence */
	WEIR_E_UNAVAILABLE = -8, /* not there yet: retriable */
	WEIR_E_FENCED = -9,      /* another instance took over */
	WEIR_E_RECORD = -10      /* a record was refused under errors.policy=fail */
};

/* Borrowed bytes; not terminated. data may be NULL only where bytes is 0. */
struct weir_slice {
	const void *data;
	size_t bytes;
};

/* What went wrong, where, and what to do about it. Opaque; owned by whoever received it through a struct weir_diag **.
 */
struct weir_diag;

/* One line, UTF-8, without a trailing newline, never NULL (dg may be NULL: then ""). Borrowed until destroy. */
WEIR_API const char *weir_diag_text(const struct weir_diag *dg);
/* The whole message as shown to a person: `file:line:col: error: ...`, the line, a caret, a hint, without a
 * trailing newline. Borrowed until destroy. */
WEIR_API const char *weir_diag_report(const struct weir_diag *dg);
/* The error code; WEIR_OK for NULL. */
WEIR_API enum weir_err weir_diag_code(const struct weir_diag *dg);
/* 1-based line in the text that was parsed, 0 where there is none. */
WEIR_API int weir_diag_line(const struct weir_diag *dg);
/* 1-based column in bytes, 0 where there is none. */
WEIR_API int weir_diag_column(const struct weir_diag *dg);
/* 1 if the same call may succeed later without a change (a broker that does not answer), else 0. */
WEIR_API int weir_diag_is_retriable(const struct weir_diag *dg);
/* Frees dg. NULL is fine. */
WEIR_API void weir_diag_destroy(struct weir_diag *dg);

/* One sentence for a code; static storage, never NULL. */
WEIR_API const char *weir_err_text(enum weir_err err);
/* The library's version, "0.1.0"; static storage. */
WEIR_API const char *weir_version(void);
/* Gives back a string that the library returned as char *. NULL is fine. */
WEIR_API void weir_free(void *p);

#ifdef __cplusplus
}
#endif
#endif
