/* tmpdir.h: a folder for one test, and looking into it. Test programs only, one thread. */
#ifndef WEIR_TESTS_SUPPORT_TMPDIR_H
#define WEIR_TESTS_SUPPORT_TMPDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes an empty folder under TMPDIR, /dev/shm or /tmp; the caller gives it to tmpdir_remove. */
char *tmpdir_make(void);
/* Removes it with all that is in it, and frees the name. */
void tmpdir_remove(char *path);
/* PATH/NAME formatted; static storage of eight slots. */
const char *tmpdir_path(const char *dir, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* -1: there is no such file. */
int64_t tmpdir_file_bytes(const char *path);
uint8_t *tmpdir_file_read(const char *path, size_t *bytes); /* the caller frees */
void tmpdir_file_write(const char *path, const void *data, size_t bytes);
/* Copies a folder of folders of files. */
void tmpdir_copy(const char *from, const char *to);
/* Bytes of all files below. */
uint64_t tmpdir_bytes(const char *dir);

#endif
