/* sys.h: the system calls that change durable data, each behind one function, so that a test can fail or stop at the
 * Nth. All return 0 or an errno value. @thread any. */
#ifndef WEIR_IO_RECORDED_SYS_H
#define WEIR_IO_RECORDED_SYS_H

#include "hotpath/core/diag.h"

enum weir_sys_op {
	WEIR_SYS_CREATE,
	WEIR_SYS_MKDIR,
	WEIR_SYS_WRITE,
	WEIR_SYS_SYNC,    /* one file or folder */
	WEIR_SYS_SYNC_FS, /* everything on a file system */
	WEIR_SYS_RENAME,
	WEIR_SYS_UNLINK,
	WEIR_SYS_TRUNCATE
};
/* Called before each of the calls below when set; only tests set it. A nonzero errno value is returned instead of doing
 * the call; for a write, *bytes may be lowered first: so much is written, then the errno value is returned.
 * WEIR_SYS_SKIP: success without doing it (syncs, in tests that make thousands). @writer init */
#define WEIR_SYS_SKIP (-1)
extern int (*weir_sys_hook)(enum weir_sys_op op, const char *path, size_t *bytes);

int weir_sys_create(const char *path, int *fd);   /* O_RDWR | O_CREAT, close-on-exec */
int weir_sys_mkdir(const char *path, bool *made); /* one level; *made: it was not there before */
int weir_sys_write(int fd, const char *path, const void *data, size_t bytes, uint64_t position); /* the whole of it */
int weir_sys_sync(int fd, const char *path);                                                     /* fdatasync */
int weir_sys_sync_fs(int fd, const char *path); /* syncfs: all of fd's file system */
bool weir_sys_sync_fs_reports(void);            /* whether that says when a write failed (Linux 5.8 on) */
int weir_sys_sync_folder(const char *path);     /* fsync of a folder: its names are durable */
int weir_sys_rename(const char *from, const char *to);
int weir_sys_unlink(const char *path); /* absent is fine */
int weir_sys_rmdir(const char *path);  /* absent or not empty is fine */
int weir_sys_truncate(int fd, const char *path, uint64_t bytes);

/* mkdir -p, with the names made durable. */
WEIR_MUST_CHECK enum weir_err weir_sys_make_folder(const char *path, struct weir_diag **dg);
/* "cannot WHAT PATH: TEXT". */
WEIR_COLD enum weir_err weir_sys_failed(struct weir_diag **dg, const char *what, const char *path, int error);
/* "a/b"; the caller frees. */
char *weir_path_join(const char *a, const char *b);
/* Absolute, without links; of a path that does not exist, the path made absolute. The caller frees. */
char *weir_path_real(const char *path);

#endif
