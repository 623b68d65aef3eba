/* tmpdir.c: folders for tests. */
#include "tests/support/tmpdir.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define REQUIRE(c)                                                                                                     \
	do {                                                                                                           \
		if (!(c)) {                                                                                            \
			perror(#c);                                                                                    \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

char *tmpdir_make(void)
{
	/* In memory where there is room: tests make thousands of small files and durable writes. */
	const char *base = getenv("TMPDIR");
	char path[4096];
	struct statvfs sv;
	bool room = statvfs("/dev/shm", &sv) == 0 && (uint64_t)sv.f_bavail * sv.f_frsize >= UINT64_C(512) << 20 &&
		    access("/dev/shm", W_OK) == 0;
	if (base == NULL || base[0] == '\0')
		base = room ? "/dev/shm" : "/tmp";
	snprintf(path, sizeof path, "%s/weir-test-XXXXXX", base);
	REQUIRE(mkdtemp(path) != NULL);
	return strdup(path);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void tmpdir_remove(char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

const char *tmpdir_path(const char *dir, const char *fmt, ...)
{
	static char slots[8][4096];
	static unsigned next;
	char *slot = slots[next++ % 8];
	char name[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	snprintf(slot, sizeof slots[0], "%s/%s", dir, name);
	return slot;
}

int64_t tmpdir_file_bytes(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

uint8_t *tmpdir_file_read(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	REQUIRE(f != NULL);
	int64_t size = tmpdir_file_bytes(path);
	uint8_t *data = malloc((size_t)size + 1);
	REQUIRE(data != NULL);
	*bytes = fread(data, 1, (size_t)size, f);
	REQUIRE(*bytes == (size_t)size);
	fclose(f);
	return data;
}

void tmpdir_file_write(const char *path, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	REQUIRE(f != NULL);
	REQUIRE(bytes == 0 || fwrite(data, 1, bytes, f) == bytes);
	REQUIRE(fclose(f) == 0);
}

void tmpdir_copy(const char *from, const char *to)
{
	DIR *d = opendir(from);
	struct dirent *e;
	REQUIRE(d != NULL);
	mkdir(to, 0755);
	while ((e = readdir(d)) != NULL) {
		char a[4096], b[4096];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(a, sizeof a, "%s/%s", from, e->d_name);
		snprintf(b, sizeof b, "%s/%s", to, e->d_name);
		REQUIRE(stat(a, &st) == 0);
		if (S_ISDIR(st.st_mode)) {
			tmpdir_copy(a, b);
		} else {
			size_t bytes;
			uint8_t *data = tmpdir_file_read(a, &bytes);
			tmpdir_file_write(b, data, bytes);
			free(data);
		}
	}
	closedir(d);
}

uint64_t tmpdir_bytes(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t bytes = 0;
	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		char path[4096];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (stat(path, &st) != 0)
			continue;
		bytes += S_ISDIR(st.st_mode) ? tmpdir_bytes(path) : (uint64_t)st.st_size;
	}
	closedir(d);
	return bytes;
}
