/* sys.c: system calls that change durable data, with a place for tests to fail them. @thread any. */
#include "io/recorded/sys.h"

#include "hotpath/core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

int (*weir_sys_hook)(enum weir_sys_op op, const char *path, size_t *bytes);

static int hook(enum weir_sys_op op, const char *path, size_t *bytes)
{
	return WEIR_UNLIKELY(weir_sys_hook != NULL) ? weir_sys_hook(op, path, bytes) : 0;
}

int weir_sys_create(const char *path, int *fd)
{
	int error = hook(WEIR_SYS_CREATE, path, NULL);
	if (error != 0)
		return error;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return *fd < 0 ? errno : 0;
}

int weir_sys_mkdir(const char *path, bool *made)
{
	int error = hook(WEIR_SYS_MKDIR, path, NULL);
	*made = false;
	if (error != 0)
		return error;
	if (mkdir(path, 0755) == 0) {
		*made = true;
		return 0;
	}
	return errno == EEXIST ? 0 : errno;
}

static int write_all(int fd, const uint8_t *p, size_t bytes, uint64_t position)
{
	while (bytes != 0) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)position);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno;
		}
		p += n;
		bytes -= (size_t)n;
		position += (uint64_t)n;
	}
	return 0;
}

int weir_sys_write(int fd, const char *path, const void *data, size_t bytes, uint64_t position)
{
	size_t allowed = 0;
	int error = 0;
	if (WEIR_UNLIKELY(weir_sys_hook != NULL)) {
		allowed = bytes;
		error = weir_sys_hook(WEIR_SYS_WRITE, path, &allowed);
		if (error != 0) {
			if (allowed != bytes)
				(void)write_all(fd, data, allowed, position);
			return error;
		}
	}
	return write_all(fd, data, bytes, position);
}

int weir_sys_sync(int fd, const char *path)
{
	int error = hook(WEIR_SYS_SYNC, path, NULL);
	if (error != 0)
		return error == WEIR_SYS_SKIP ? 0 : error;
	return fdatasync(fd) != 0 ? errno : 0;
}

int weir_sys_sync_fs(int fd, const char *path)
{
	int error = hook(WEIR_SYS_SYNC_FS, path, NULL);
	if (error != 0)
		return error == WEIR_SYS_SKIP ? 0 : error;
	return syncfs(fd) != 0 ? errno : 0;
}

bool weir_sys_sync_fs_reports(void)
{
	struct utsname un;
	if (uname(&un) != 0)
		return false;
	char *end;
	unsigned long major = strtoul(un.release, &end, 10), minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > 5 || (major == 5 && minor >= 8);
}

int weir_sys_sync_folder(const char *path)
{
	int error = hook(WEIR_SYS_SYNC, path, NULL);
	if (error != 0)
		return error == WEIR_SYS_SKIP ? 0 : error;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	error = fsync(fd) != 0 ? errno : 0;
	close(fd);
	return error;
}

int weir_sys_rename(const char *from, const char *to)
{
	int error = hook(WEIR_SYS_RENAME, to, NULL);
	if (error != 0)
		return error;
	return rename(from, to) != 0 ? errno : 0;
}

int weir_sys_unlink(const char *path)
{
	int error = hook(WEIR_SYS_UNLINK, path, NULL);
	if (error != 0)
		return error;
	return unlink(path) != 0 && errno != ENOENT ? errno : 0;
}

int weir_sys_rmdir(const char *path)
{
	int error = hook(WEIR_SYS_UNLINK, path, NULL);
	if (error != 0)
		return error;
	return rmdir(path) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST ? errno : 0;
}

int weir_sys_truncate(int fd, const char *path, uint64_t bytes)
{
	int error = hook(WEIR_SYS_TRUNCATE, path, NULL);
	if (error != 0)
		return error;
	return ftruncate(fd, (off_t)bytes) != 0 ? errno : 0;
}

enum weir_err weir_sys_failed(struct weir_diag **dg, const char *what, const char *path, int error)
{
	char text[128];
	/* The GNU strerror_r, which is safe in any thread and returns the text. */
	return weir_diag_set(dg, WEIR_E_IO, "cannot %s %s: %s", what, path, strerror_r(error, text, sizeof text));
}

enum weir_err weir_sys_make_folder(const char *path, struct weir_diag **dg)
{
	struct stat st;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? WEIR_OK : weir_diag_set(dg, WEIR_E_CONF, "%s is not a folder", path);
	char *copy = weir_xstrdup(path);
	enum weir_err err = WEIR_OK;
	for (char *p = copy + (copy[0] == '/'); err == WEIR_OK; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char was = *p;
		bool made = false;
		*p = '\0';
		int error = *copy == '\0' ? 0 : weir_sys_mkdir(copy, &made);
		if (error == 0 && made) {
			char *slash = strrchr(copy, '/');
			char *parent = slash == NULL   ? weir_xstrdup(".")
				       : slash == copy ? weir_xstrdup("/")
						       : strndup(copy, (size_t)(slash - copy));
			error = parent == NULL ? ENOMEM : weir_sys_sync_folder(parent);
			free(parent);
		}
		if (error != 0)
			err = weir_sys_failed(dg, "make the folder", copy, error);
		*p = was;
		if (was == '\0')
			break;
	}
	free(copy);
	return err;
}

char *weir_path_join(const char *a, const char *b)
{
	size_t bytes = strlen(a) + strlen(b) + 2;
	char *path = weir_xmalloc(bytes);
	snprintf(path, bytes, "%s/%s", a, b);
	return path;
}

char *weir_path_real(const char *path)
{
	char *real = realpath(path, NULL);
	if (real != NULL)
		return real;
	if (path[0] == '/')
		return weir_xstrdup(path);
	char *here = getcwd(NULL, 0);
	if (here == NULL)
		return weir_xstrdup(path);
	real = weir_path_join(here, path);
	free(here);
	return real;
}
