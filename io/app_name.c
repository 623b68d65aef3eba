/* app_name.c: any text as the name of an application (app_name.h). @thread init */
#include "io/app_name.h"

#include <stdio.h>
#include <string.h>

#include "hotpath/core/hash.h"

/* The letter that a Latin letter with a mark is made of (0: another character); *i moves to its last byte. */
static char latin_letter(const char *s, size_t bytes, size_t *i)
{
	/* U+00C0 to U+017F */
	static const char base[] = "AAAAAAACEEEEIIIIDNOOOOO-OUUUUYTsaaaaaaaceeeeiiiidnooooo-ouuuuyty"
				   "AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNn"
				   "OoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";
	const unsigned char *p = (const unsigned char *)s + *i;
	if (p[0] >= 0xc3 && p[0] <= 0xc5 && *i + 1 < bytes && (p[1] & 0xc0) == 0x80) {
		*i += 1;
		return base[((p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)) - 0xc0];
	}
	while (*i + 1 < bytes && ((unsigned char)s[*i + 1] & 0xc0) == 0x80)
		*i += 1;
	return 0;
}

const char *weir_app_name(struct weir_mem *m, const char *name, size_t bytes)
{
	size_t n = 0;
	char *id = weir_mem_take(m, bytes + 32);
	bool foreign = false;
	for (size_t i = 0; i < bytes; i++) {
		char c = name[i];
		bool ascii = (unsigned char)c < 0x80;
		if (!ascii)
			c = latin_letter(name, bytes, &i);
		bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			       (c != 0 && strchr("._-", c) != NULL);
		foreign = foreign || !ascii;
		/* One stroke for a word in letters that no topic may have. */
		if (allowed || ascii || n == 0 || id[n - 1] != '-')
			id[n++] = allowed ? c : '-';
	}
	/* Such a name stands for others that look like it: they are other applications. */
	if (foreign)
		snprintf(id + n, 32, "-%08x", (unsigned)weir_hash(name, bytes));
	return *id != 0 ? id : "weir";
}
