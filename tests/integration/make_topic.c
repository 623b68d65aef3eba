/* make_topic: writes a recorded topic from lines of JSON, sharing no code with the engine: what a gen kind cannot say
 * (any bytes, any timestamp, gaps, transactions, damaged blocks) for the scripts beside it.
 *
 *   make_topic DIR TOPIC [--partitions N] [--batch N] [--codec-bits N] < lines
 *
 * A line: {"partition", "key" or "key_base64", "value" or "value_base64", "timestamp", "headers": {name: text},
 * "offset", "producer", "control": "commit"|"abort"}; all may be missing. A key or value that is an object or array is
 * its compact JSON. `repeat` N writes the line N times, with %d in a string value as the running number. --codec-bits
 * stamps a codec into the batch's attributes without compressing anything: a block that no decoder can read under a
 * good CRC. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTITIONS_MAX = 1024 };

struct bytes {
	uint8_t *at;
	size_t count;
	size_t room;
};
/* One batch under construction. */
struct batch {
	struct bytes records;
	int64_t base_offset;
	int64_t base_time;
	int64_t max_time;
	int64_t last_offset;
	uint32_t count;
	int64_t producer; /* -1: none */
	bool control;
};
static struct partition {
	FILE *file;
	int64_t next_offset;
	struct batch batch;
} partition[PARTITIONS_MAX];
static const char *dir;
static const char *topic;
static uint32_t batch_max = 1000;
static uint16_t codec_bits;
static uint32_t crc_table[256];

static void fail(const char *what, const char *which)
{
	fprintf(stderr, "make_topic: %s%s%s\n", what, which != NULL ? ": " : "", which != NULL ? which : "");
	exit(1);
}

static void put(struct bytes *b, const void *data, size_t count)
{
	if (b->count + count > b->room) {
		b->room = (b->count + count) * 2 + 256;
		b->at = realloc(b->at, b->room);
		if (b->at == NULL)
			fail("no memory", NULL);
	}
	if (count != 0)
		memcpy(b->at + b->count, data, count);
	b->count += count;
}

static void put_be(struct bytes *b, uint64_t v, int bytes)
{
	for (int shift = bytes * 8 - 8; shift >= 0; shift -= 8) {
		uint8_t byte = (uint8_t)(v >> shift);
		put(b, &byte, 1);
	}
}

static void put_varint(struct bytes *b, int64_t v)
{
	uint64_t z = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
	for (;;) {
		uint8_t byte = (uint8_t)((z & 0x7f) | (z >= 0x80 ? 0x80 : 0));
		put(b, &byte, 1);
		z >>= 7;
		if (z == 0)
			return;
	}
}

static void put_field(struct bytes *b, const struct bytes *field)
{
	put_varint(b, field != NULL ? (int64_t)field->count : -1);
	if (field != NULL)
		put(b, field->at, field->count);
}

static uint32_t crc32c(const uint8_t *p, size_t count)
{
	uint32_t crc = ~0U;
	for (size_t i = 0; i < count; i++)
		crc = crc >> 8 ^ crc_table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

static void flush(struct partition *pt)
{
	struct batch *ba = &pt->batch;
	struct bytes body = {0};
	struct bytes head = {0};
	if (ba->count == 0)
		return;
	put_be(&body, codec_bits | (ba->producer >= 0 ? 0x10 : 0) | (ba->control ? 0x20 : 0), 2);
	put_be(&body, (uint64_t)(ba->last_offset - ba->base_offset), 4);
	put_be(&body, (uint64_t)ba->base_time, 8);
	put_be(&body, (uint64_t)ba->max_time, 8);
	put_be(&body, (uint64_t)ba->producer, 8);
	put_be(&body, ba->producer >= 0 ? 0 : 0xffff, 2);
	put_be(&body, ba->producer >= 0 && !ba->control ? (uint64_t)ba->base_offset : 0xffffffff, 4);
	put_be(&body, ba->count, 4);
	put(&body, ba->records.at, ba->records.count);
	put_be(&head, (uint64_t)ba->base_offset, 8);
	put_be(&head, body.count + 9, 4);
	put_be(&head, 0, 4);
	put_be(&head, 2, 1);
	put_be(&head, crc32c(body.at, body.count), 4);
	if (fwrite(head.at, 1, head.count, pt->file) != head.count ||
	    fwrite(body.at, 1, body.count, pt->file) != body.count)
		fail("cannot write", topic);
	free(body.at);
	free(head.at);
	ba->records.count = 0;
	ba->count = 0;
}

static void open_partition(uint32_t p)
{
	char path[4096];
	if (partition[p].file != NULL)
		return;
	snprintf(path, sizeof path, "%s/%s-%u", dir, topic, p);
	if (mkdir(dir, 0777) != 0 && access(dir, X_OK) != 0)
		fail("cannot make", dir);
	if (mkdir(path, 0777) != 0 && access(path, X_OK) != 0)
		fail("cannot make", path);
	strncat(path, "/00000000000000000000.log", sizeof path - strlen(path) - 1);
	partition[p].file = fopen(path, "wb");
	if (partition[p].file == NULL)
		fail("cannot open", path);
}

static int digit64(int c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c != 0 ? strchr(digits, c) : NULL;
	return at != NULL ? (int)(at - digits) : -1;
}

/* A line's `name` or `name_base64`; false: a Kafka null. */
static bool field_of(const json_t *line, const char *name, int64_t number, struct bytes *out)
{
	char coded[64];
	out->count = 0;
	snprintf(coded, sizeof coded, "%s_base64", name);
	const char *text = json_string_value(json_object_get(line, coded));
	if (text != NULL) {
		uint32_t bits = 0;
		int have = 0;
		put(out, "", 0);
		for (; digit64(*text) >= 0; text++) {
			bits = bits << 6 | (uint32_t)digit64(*text);
			have += 6;
			if (have >= 8) {
				have -= 8;
				uint8_t byte = (uint8_t)(bits >> have);
				put(out, &byte, 1);
			}
		}
		return true;
	}
	const json_t *value = json_object_get(line, name);
	if (value == NULL || json_is_null(value))
		return false;
	char *dumped = NULL;
	if (json_is_string(value))
		dumped = strndup(json_string_value(value), json_string_length(value));
	else
		dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
	size_t count = json_is_string(value) ? json_string_length(value) : strlen(dumped);
	if (json_is_string(value) && memchr(json_string_value(value), 0, count) != NULL) {
		put(out, json_string_value(value), count); /* a NUL inside: as it is */
	} else {
		char digits[32];
		const char *hole = strstr(dumped, "%d");
		snprintf(digits, sizeof digits, "%" PRId64, number);
		put(out, dumped, hole != NULL ? (size_t)(hole - dumped) : count);
		if (hole != NULL) {
			put(out, digits, strlen(digits));
			put(out, hole + 2, strlen(hole + 2));
		}
	}
	free(dumped);
	return true;
}

static void add(const json_t *line, int64_t number)
{
	struct bytes record = {0}, key = {0}, value = {0};
	uint32_t p = (uint32_t)json_integer_value(json_object_get(line, "partition"));
	const json_t *offset = json_object_get(line, "offset");
	const json_t *producer = json_object_get(line, "producer");
	const char *control = json_string_value(json_object_get(line, "control"));
	int64_t timestamp = json_integer_value(json_object_get(line, "timestamp"));
	int64_t producer_id = producer != NULL ? json_integer_value(producer) : -1;
	if (p >= PARTITIONS_MAX)
		fail("partition", "too large");
	open_partition(p);
	struct partition *pt = &partition[p];
	struct batch *ba = &pt->batch;
	int64_t at = offset != NULL ? json_integer_value(offset) : pt->next_offset;
	if (ba->count != 0 && (ba->count == batch_max || ba->producer != producer_id || control != NULL || ba->control))
		flush(pt);
	if (ba->count == 0) {
		ba->base_offset = at;
		ba->base_time = timestamp;
		ba->max_time = timestamp;
		ba->producer = producer_id;
		ba->control = control != NULL;
	}
	if (timestamp > ba->max_time)
		ba->max_time = timestamp;
	put_be(&record, 0, 1);
	put_varint(&record, timestamp - ba->base_time);
	put_varint(&record, at - ba->base_offset);
	if (control != NULL) {
		put_be(&key, 0, 2);
		put_be(&key, strcmp(control, "commit") == 0 ? 1 : 0, 2);
		put_be(&value, 0, 2);
		put_be(&value, 0, 4);
		put_field(&record, &key);
		put_field(&record, &value);
		put_varint(&record, 0);
	} else {
		const json_t *headers = json_object_get(line, "headers");
		const char *name;
		json_t *text;
		put_field(&record, field_of(line, "key", number, &key) ? &key : NULL);
		put_field(&record, field_of(line, "value", number, &value) ? &value : NULL);
		put_varint(&record, (int64_t)json_object_size(headers));
		json_object_foreach((json_t *)headers, name, text)
		{
			put_varint(&record, (int64_t)strlen(name));
			put(&record, name, strlen(name));
			put_varint(&record, (int64_t)json_string_length(text));
			put(&record, json_string_value(text), json_string_length(text));
		}
	}
	put_varint(&ba->records, (int64_t)record.count);
	put(&ba->records, record.at, record.count);
	ba->last_offset = at;
	ba->count++;
	pt->next_offset = at + 1;
	free(record.at);
	free(key.at);
	free(value.at);
}

int main(int argc, char **argv)
{
	uint32_t partitions = 1;
	char *text = NULL;
	size_t room = 0;
	if (argc < 3)
		fail("usage: make_topic DIR TOPIC [--partitions N] [--batch N] [--codec-bits N]", NULL);
	dir = argv[1];
	topic = argv[2];
	for (int i = 3; i + 1 < argc; i += 2) {
		unsigned long v = strtoul(argv[i + 1], NULL, 10);
		if (strcmp(argv[i], "--partitions") == 0)
			partitions = (uint32_t)v;
		else if (strcmp(argv[i], "--batch") == 0)
			batch_max = (uint32_t)v;
		else if (strcmp(argv[i], "--codec-bits") == 0)
			codec_bits = (uint16_t)v;
		else
			fail("unknown option", argv[i]);
	}
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78U : c >> 1;
		crc_table[i] = c;
	}
	for (uint32_t p = 0; p < partitions && p < PARTITIONS_MAX; p++)
		open_partition(p);
	while (getline(&text, &room, stdin) >= 0) {
		json_error_t error;
		if (strspn(text, " \t\n") == strlen(text))
			continue;
		json_t *line = json_loads(text, JSON_ALLOW_NUL, &error);
		if (line == NULL)
			fail(error.text, text);
		const json_t *repeat = json_object_get(line, "repeat");
		int64_t times = repeat != NULL ? json_integer_value(repeat) : 1;
		for (int64_t i = 0; i < times; i++)
			add(line, i);
		json_decref(line);
	}
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++)
		if (partition[p].file != NULL) {
			flush(&partition[p]);
			if (fclose(partition[p].file) != 0)
				fail("cannot write", topic);
		}
	free(text);
	return 0;
}
