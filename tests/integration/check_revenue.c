/* check_revenue.c: recomputes revenue per window from a recording of orders and compares it with what weir wrote.
 * Shares no code with the engine: its own reader of segment files, jansson for JSON, its own windows and sums. One
 * thread.
 *
 *   weir dump OUT TOPIC | check_revenue --in DIR [--topic T] --window tumble|hop|session --size MS [--advance MS]
 *                                       --emit final|changes [--by COLUMN]
 *
 * Input records that `weir gen` marked (header weir-gen: late or bad) must have no effect: the recording is made so
 * that every correct engine refuses them. Expected: one row per (COLUMN, window) with SUM(amount) AS revenue, COUNT(*)
 * AS orders. final     the topic holds exactly these rows, each once changes   so do the last values by record key,
 * where a null value is a delete Prints the first differences and ends with 1 if there are any, 0 if not, 2 when it
 * could not be done. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH_HEADER = 61, DIFFERENCES_SHOWN = 10 };
enum window_kind { TUMBLE, HOP, SESSION };

static const char *in_dir;
static const char *topic = "order.placed";
static const char *by = "merchant_id";
static enum window_kind kind = TUMBLE;
static int64_t size_ms;
static int64_t advance_ms;
static bool changes;

static uint64_t used, late, bad;

__attribute__((noreturn, format(printf, 1, 2))) static void give_up(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "check_revenue: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(2);
}

static void *grow(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (p == NULL)
		give_up("out of memory");
	return p;
}

/* ---- names: text to small numbers ---- */

static char **name_text;
static uint32_t name_count;
static uint32_t *name_slot; /* number + 1, 0: free */
static uint32_t name_mask;

static uint64_t hash_bytes(const char *s, size_t bytes)
{
	uint64_t h = 1469598103934665603u;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ (uint8_t)s[i]) * 1099511628211u;
	return h ^ h >> 29;
}

static void rehash_names(void)
{
	name_mask = name_mask == 0 ? 1023 : name_mask * 2 + 1;
	free(name_slot);
	name_slot = calloc((size_t)name_mask + 1, sizeof *name_slot);
	if (name_slot == NULL)
		give_up("out of memory");
	for (uint32_t n = 0; n < name_count; n++) {
		uint64_t h = hash_bytes(name_text[n], strlen(name_text[n]));
		while (name_slot[h & name_mask] != 0)
			h++;
		name_slot[h & name_mask] = n + 1;
	}
}

static uint32_t name_of(const char *s)
{
	if (name_count * 2 >= name_mask)
		rehash_names();
	uint64_t h = hash_bytes(s, strlen(s));
	for (; name_slot[h & name_mask] != 0; h++)
		if (strcmp(name_text[name_slot[h & name_mask] - 1], s) == 0)
			return name_slot[h & name_mask] - 1;
	if (name_count % 1024 == 0)
		name_text = grow(name_text, (name_count + 1024) * sizeof *name_text);
	name_text[name_count] = strdup(s);
	name_slot[h & name_mask] = ++name_count;
	return name_count - 1;
}

/* ---- rows: (name, start, end) to sum and count ---- */

struct row {
	int64_t start;
	int64_t end;
	int64_t cents;
	uint32_t orders;
	uint32_t name; /* plus 1; 0: free */
};
struct rows {
	struct row *slot;
	uint64_t mask;
	uint64_t count;
};

static uint64_t hash_row(uint32_t name, int64_t start)
{
	uint64_t h = (uint64_t)start * 0x9e3779b97f4a7c15u ^ (uint64_t)name * 0xbf58476d1ce4e5b9u;
	return h ^ h >> 32;
}

/* The row of (name, start), new rows zeroed. A session is found by its start alone: two never share one. */
static struct row *row_at(struct rows *rs, uint32_t name, int64_t start, bool add)
{
	if (rs->mask == 0 || (add && rs->count * 3 > rs->mask * 2)) {
		struct row *old = rs->slot;
		uint64_t old_slots = rs->mask == 0 ? 0 : rs->mask + 1;
		rs->mask = rs->mask == 0 ? (1 << 16) - 1 : rs->mask * 2 + 1;
		rs->slot = calloc(rs->mask + 1, sizeof *rs->slot);
		if (rs->slot == NULL)
			give_up("out of memory");
		for (uint64_t i = 0; i < old_slots; i++) {
			if (old[i].name == 0)
				continue;
			uint64_t h = hash_row(old[i].name - 1, old[i].start);
			while (rs->slot[h & rs->mask].name != 0)
				h++;
			rs->slot[h & rs->mask] = old[i];
		}
		free(old);
	}
	uint64_t h = hash_row(name, start);
	for (; rs->slot[h & rs->mask].name != 0; h++) {
		struct row *r = &rs->slot[h & rs->mask];
		if (r->name == name + 1 && r->start == start)
			return r;
	}
	if (!add)
		return NULL;
	rs->count++;
	rs->slot[h & rs->mask] = (struct row){.start = start, .name = name + 1};
	return &rs->slot[h & rs->mask];
}

/* ---- expected rows from the input ---- */

static struct rows expected;

struct event {
	int64_t ts;
	int64_t cents;
	uint32_t name;
};
static struct event *events; /* sessions only: sorted when all are there */
static uint64_t event_count;

static void add_to_windows(uint32_t name, int64_t ts, int64_t cents)
{
	int64_t first = ts - size_ms + advance_ms;
	for (int64_t start = (first > 0 ? first : 0) / advance_ms * advance_ms; start <= ts; start += advance_ms) {
		struct row *r = row_at(&expected, name, start, true);
		r->end = start + size_ms;
		r->cents += cents;
		r->orders++;
	}
}

static void add_event(uint32_t name, int64_t ts, int64_t cents)
{
	used++;
	if (kind != SESSION) {
		add_to_windows(name, ts, cents);
		return;
	}
	if ((event_count & (event_count - 1)) == 0)
		events = grow(events, (event_count == 0 ? 1 : event_count * 2) * sizeof *events);
	events[event_count++] = (struct event){ts, cents, name};
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a;
	const struct event *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->ts < y->ts ? -1 : x->ts > y->ts;
}

static void merge_sessions(void)
{
	if (event_count != 0)
		qsort(events, event_count, sizeof *events, compare_events);
	struct row *r = NULL;
	for (uint64_t i = 0; i < event_count; i++) {
		const struct event *e = &events[i];
		if (i == 0 || e->name != e[-1].name || e->ts - e[-1].ts > size_ms)
			r = row_at(&expected, e->name, e->ts, true);
		r->end = e->ts + size_ms;
		r->cents += e->cents;
		r->orders++;
	}
}

static int64_t to_cents(const json_t *v)
{
	double d = json_number_value(v);
	return (int64_t)(d * 100 + (d < 0 ? -0.5 : 0.5)); /* exact up to 9e13: far beyond any sum here */
}

static void read_order(const uint8_t *value, size_t bytes)
{
	json_error_t error;
	json_t *order = json_loadb((const char *)value, bytes, 0, &error);
	const char *name = json_string_value(json_object_get(order, by));
	const json_t *ts = json_object_get(order, "ts");
	const json_t *amount = json_object_get(order, "amount");
	if (name == NULL || !json_is_integer(ts) || !json_is_number(amount))
		give_up("an unmarked input record is no order: %.*s", (int)(bytes > 200 ? 200 : bytes),
			(const char *)value);
	add_event(name_of(name), json_integer_value(ts), to_cents(amount));
	json_decref(order);
}

/* ---- Kafka's segment format, codec none ---- */

static uint64_t big_endian(const uint8_t *p, uint32_t bytes)
{
	uint64_t v = 0;
	for (uint32_t i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static int64_t varint(const uint8_t **p)
{
	uint64_t v = 0;
	uint32_t shift = 0;
	uint8_t c;
	do {
		c = *(*p)++;
		v |= (uint64_t)(c & 0x7f) << shift;
		shift += 7;
	} while (c >= 0x80);
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* What weir gen said about a record: 0, 'l' or 'b'. */
static int read_mark(const uint8_t *p, int64_t headers)
{
	int mark = 0;
	for (int64_t i = 0; i < headers; i++) {
		int64_t name_bytes = varint(&p);
		const uint8_t *name = p;
		p += name_bytes;
		int64_t value_bytes = varint(&p);
		if (name_bytes == 8 && memcmp(name, "weir-gen", 8) == 0)
			mark = p[0];
		p += value_bytes > 0 ? value_bytes : 0;
	}
	return mark;
}

static void read_batch(const uint8_t *b, const char *path)
{
	if (b[16] != 2 || (big_endian(b + 21, 2) & 7) != 0)
		give_up("%s: not an uncompressed record batch of version 2", path);
	uint64_t count = big_endian(b + 57, 4);
	const uint8_t *p = b + BATCH_HEADER;
	for (uint64_t i = 0; i < count; i++) {
		int64_t bytes = varint(&p);
		const uint8_t *next = p + bytes;
		p++;
		varint(&p);
		varint(&p);
		int64_t key_bytes = varint(&p);
		p += key_bytes > 0 ? key_bytes : 0;
		int64_t value_bytes = varint(&p);
		const uint8_t *value = p;
		p += value_bytes > 0 ? value_bytes : 0;
		int64_t headers = varint(&p);
		int mark = read_mark(p, headers);
		if (mark == 'l')
			late++;
		else if (mark == 'b')
			bad++;
		else
			read_order(value, value_bytes > 0 ? (size_t)value_bytes : 0);
		p = next;
	}
}

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		give_up("cannot open %s", path);
	if (st.st_size == 0) {
		close(fd);
		return;
	}
	const uint8_t *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		give_up("cannot map %s", path);
	for (uint64_t at = 0; at + BATCH_HEADER <= (uint64_t)st.st_size;) {
		uint64_t bytes = 12 + big_endian(map + at + 8, 4);
		if (at + bytes > (uint64_t)st.st_size)
			give_up("%s: the last batch is cut off", path);
		read_batch(map + at, path);
		at += bytes;
	}
	munmap((void *)(uintptr_t)map, (size_t)st.st_size);
	close(fd);
}

static int is_segment(const struct dirent *d)
{
	size_t bytes = strlen(d->d_name);
	return bytes == 24 && strcmp(d->d_name + 20, ".log") == 0;
}

static void read_input(void)
{
	for (uint32_t p = 0;; p++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s-%u", in_dir, topic, p);
		struct dirent **found;
		int count = scandir(path, &found, is_segment, alphasort);
		if (count < 0 && p == 0)
			give_up("no topic %s in %s", topic, in_dir);
		if (count < 0)
			break;
		for (int i = 0; i < count; i++) {
			char file[8192];
			snprintf(file, sizeof file, "%s/%s", path, found[i]->d_name);
			read_file(file);
			free(found[i]);
		}
		free(found);
	}
	if (kind == SESSION)
		merge_sessions();
}

/* ---- what weir wrote, from stdin ---- */

static uint64_t differences;
static uint64_t lines, deletes;

__attribute__((format(printf, 1, 2))) static void differ(const char *fmt, ...)
{
	if (differences++ >= DIFFERENCES_SHOWN)
		return;
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
}

static bool number(const char **s, uint32_t digits, int64_t *out)
{
	*out = 0;
	for (uint32_t i = 0; i < digits; i++, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		*out = *out * 10 + (**s - '0');
	}
	return true;
}

/* `2026-01-01 00:05:00[.f]` in UTC to milliseconds; anything else ends the program. */
static int64_t to_ms(const char *text)
{
	int64_t part[6];
	static const char separators[] = "-- ::";
	const char *s = text == NULL ? "" : text;
	for (uint32_t i = 0; i < 6; i++) {
		if (!number(&s, i == 0 ? 4 : 2, &part[i]))
			give_up("no timestamp: %s", text == NULL ? "null" : text);
		if (i < 5 && *s != separators[i] && !(i == 2 && *s == 'T'))
			give_up("no timestamp: %s", text);
		s += i < 5;
	}
	int64_t ms = 0;
	if (*s == '.')
		for (int64_t unit = 100; *++s >= '0' && *s <= '9'; unit /= 10)
			ms += unit * (*s - '0');
	/* days from civil: March-based years, 400-year eras */
	int64_t y = part[0] - (part[1] <= 2);
	int64_t era = y / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * (part[1] + (part[1] > 2 ? -3 : 9)) + 2) / 5 + part[2] - 1;
	int64_t days = era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
	return ((days * 24 + part[3]) * 60 + part[4]) * 60000 + part[5] * 1000 + ms;
}

static bool read_row(const char *text, struct row *out)
{
	json_error_t error;
	json_t *o = json_loads(text, 0, &error);
	const char *name = json_string_value(json_object_get(o, by));
	if (name == NULL) {
		json_decref(o);
		return false;
	}
	out->name = name_of(name) + 1;
	out->start = to_ms(json_string_value(json_object_get(o, "window_start")));
	out->end = to_ms(json_string_value(json_object_get(o, "window_end")));
	out->cents = to_cents(json_object_get(o, "revenue"));
	out->orders = (uint32_t)json_integer_value(json_object_get(o, "orders"));
	json_decref(o);
	return true;
}

/* Under EMIT CHANGES: the last payload of each record key, both as the dump's JSON text has them: a topic has many
 * times as many lines as keys, and only the last ones are parsed. */
struct last {
	char *key;
	char *payload; /* with its quotes; "null": deleted */
	size_t capacity;
};
static struct last *last_slot;
static uint64_t last_mask, last_count;

static struct last *last_of(const char *key, size_t bytes)
{
	if (last_count * 3 >= last_mask * 2) {
		struct last *old = last_slot;
		uint64_t old_slots = last_mask == 0 ? 0 : last_mask + 1;
		last_mask = last_mask == 0 ? (1 << 16) - 1 : last_mask * 2 + 1;
		last_slot = calloc(last_mask + 1, sizeof *last_slot);
		if (last_slot == NULL)
			give_up("out of memory");
		for (uint64_t i = 0; i < old_slots; i++) {
			if (old[i].key == NULL)
				continue;
			uint64_t h = hash_bytes(old[i].key, strlen(old[i].key));
			while (last_slot[h & last_mask].key != NULL)
				h++;
			last_slot[h & last_mask] = old[i];
		}
		free(old);
	}
	uint64_t h = hash_bytes(key, bytes);
	for (; last_slot[h & last_mask].key != NULL; h++)
		if (strncmp(last_slot[h & last_mask].key, key, bytes) == 0 && last_slot[h & last_mask].key[bytes] == 0)
			return &last_slot[h & last_mask];
	last_slot[h & last_mask].key = strndup(key, bytes);
	last_count++;
	return &last_slot[h & last_mask];
}

static struct rows got;

static void take_row(const struct row *r)
{
	uint64_t before = got.count;
	struct row *to = row_at(&got, r->name - 1, r->start, true);
	if (got.count == before)
		differ("twice: %s %" PRId64 " .. %" PRId64, name_text[r->name - 1], r->start, r->end);
	*to = *r;
}

/* The value of the member behind label, as text with its quotes; NULL: there is none. */
static const char *raw_member(const char *line, const char *label, size_t *bytes)
{
	const char *at = strstr(line, label);
	if (at == NULL)
		return NULL;
	at += strlen(label);
	const char *end = at + 1;
	if (*at == '"') {
		while (*end != '"' && *end != 0)
			end += *end == '\\' && end[1] != 0 ? 2 : 1;
		end += *end == '"';
	} else {
		end = at + strcspn(at, ",}");
	}
	*bytes = (size_t)(end - at);
	return at;
}

static void read_change(const char *line)
{
	size_t key_bytes;
	size_t payload_bytes;
	const char *key = raw_member(line, ",\"key_base64\":", &key_bytes);
	if (key == NULL)
		key = raw_member(line, ",\"key\":", &key_bytes);
	const char *payload = raw_member(line, ",\"payload\":", &payload_bytes);
	if (key == NULL || payload == NULL)
		give_up("stdin is not what weir dump prints: %.100s", line);
	if (*key != '"') {
		differ("no key under EMIT CHANGES: %s", line);
		return;
	}
	deletes += *payload != '"';
	struct last *to = last_of(key, key_bytes);
	if (to->capacity <= payload_bytes) {
		to->capacity = payload_bytes + 16;
		to->payload = grow(to->payload, to->capacity);
	}
	memcpy(to->payload, payload, payload_bytes);
	to->payload[payload_bytes] = 0;
}

static void read_final(const char *line)
{
	json_error_t error;
	struct row r;
	json_t *o = json_loads(line, 0, &error);
	if (o == NULL)
		give_up("stdin is not what weir dump prints: %.100s", line);
	const json_t *payload = json_object_get(o, "payload");
	if (!json_is_string(payload))
		differ("a delete under EMIT FINAL: %s", line);
	else if (!read_row(json_string_value(payload), &r))
		differ("no row: %s", line);
	else
		take_row(&r);
	json_decref(o);
}

static void take_last(const struct last *la)
{
	json_error_t error;
	struct row r;
	json_t *payload = json_loads(la->payload, JSON_DECODE_ANY, &error);
	if (json_is_string(payload) && read_row(json_string_value(payload), &r))
		take_row(&r);
	else if (!json_is_null(payload))
		differ("no row: %s", la->payload);
	json_decref(payload);
}

static void read_output(void)
{
	char *line = NULL;
	size_t capacity = 0;
	for (; getline(&line, &capacity, stdin) > 0; lines++) {
		if (changes)
			read_change(line);
		else
			read_final(line);
	}
	free(line);
	for (uint64_t i = 0; last_mask != 0 && i <= last_mask; i++)
		if (last_slot[i].key != NULL)
			take_last(&last_slot[i]);
}

/* ---- comparing ---- */

static void compare(void)
{
	for (uint64_t i = 0; expected.mask != 0 && i <= expected.mask; i++) {
		const struct row *e = &expected.slot[i];
		if (e->name == 0)
			continue;
		const struct row *g = row_at(&got, e->name - 1, e->start, false);
		if (g == NULL)
			differ("missing: %s %" PRId64 " .. %" PRId64 ", %" PRId64 " cents in %u",
			       name_text[e->name - 1], e->start, e->end, e->cents, e->orders);
		else if (g->end != e->end || g->cents != e->cents || g->orders != e->orders)
			differ("%s %" PRId64 ": expected .. %" PRId64 ", %" PRId64 " cents in %u; there is .. %" PRId64
			       ", %" PRId64 " cents in %u",
			       name_text[e->name - 1], e->start, e->end, e->cents, e->orders, g->end, g->cents,
			       g->orders);
	}
	for (uint64_t i = 0; got.mask != 0 && i <= got.mask; i++) {
		const struct row *g = &got.slot[i];
		if (g->name != 0 && row_at(&expected, g->name - 1, g->start, false) == NULL)
			differ("too much: %s %" PRId64 " .. %" PRId64 ", %" PRId64 " cents in %u",
			       name_text[g->name - 1], g->start, g->end, g->cents, g->orders);
	}
}

static int64_t to_number(const char *option, const char *s)
{
	char *end;
	long long v = strtoll(s, &end, 10);
	if (*s == 0 || *end != 0 || v <= 0)
		give_up("%s: %s is no positive number", option, s);
	return v;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *option = argv[i];
		const char *value = i + 1 < argc ? argv[++i] : "";
		if (strcmp(option, "--in") == 0)
			in_dir = value;
		else if (strcmp(option, "--topic") == 0)
			topic = value;
		else if (strcmp(option, "--by") == 0)
			by = value;
		else if (strcmp(option, "--size") == 0)
			size_ms = to_number(option, value);
		else if (strcmp(option, "--advance") == 0)
			advance_ms = to_number(option, value);
		else if (strcmp(option, "--window") == 0)
			kind = strcmp(value, "hop") == 0 ? HOP : strcmp(value, "session") == 0 ? SESSION : TUMBLE;
		else if (strcmp(option, "--emit") == 0)
			changes = strcmp(value, "changes") == 0;
		else
			give_up("unknown option %s", option);
	}
	if (in_dir == NULL || size_ms == 0)
		give_up("--in DIR and --size MS are needed");
	if (kind != HOP || advance_ms == 0)
		advance_ms = size_ms;
	read_input();
	read_output();
	compare();
	printf("%" PRIu64 " records (%" PRIu64 " late, %" PRIu64 " bad) make %" PRIu64 " rows; %" PRIu64
	       " lines (%" PRIu64 " deletes) hold %" PRIu64 "; %" PRIu64 " differences\n",
	       used, late, bad, expected.count, lines, deletes, got.count, differences);
	return differences != 0;
}
