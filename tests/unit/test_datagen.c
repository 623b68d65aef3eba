/* test_datagen.c: the row generator: determinism, ranges, sequences, bounds, pacing, refused options. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "io/datagen.h"

static const struct weir_table_column columns[] = {
	{.name = "id", .type = {.kind = WEIR_KIND_BIGINT}},
	{.name = "small", .type = {.kind = WEIR_KIND_TINYINT}},
	{.name = "ratio", .type = {.kind = WEIR_KIND_DOUBLE}},
	{.name = "price", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}},
	{.name = "name", .type = {.kind = WEIR_KIND_VARCHAR, .length = 12}},
	{.name = "flag", .type = {.kind = WEIR_KIND_BOOLEAN}},
	{.name = "at", .type = {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3}},
	{.name = "wide", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = 0}},
	{.name = "computed", .type = {.kind = WEIR_KIND_BIGINT}, .kind = WEIR_COLUMN_COMPUTED},
};
enum { COLUMNS = 9, PHYSICAL = 8 };

static int64_t clock_now;
static int64_t fake_clock(void)
{
	return clock_now;
}

struct fixture {
	struct weir_mem m;
	struct weir_table_def def;
	struct weir_stream_log *log;
	struct weir_diag *dg;
	enum weir_err err;
	bool live;
	struct weir_decoder *decoder;
	struct weir_field fields[PHYSICAL];
	struct weir_col cols[PHYSICAL];
	struct weir_scratch scratch;
};

static void open_log(struct fixture *fx, const char *options)
{
	struct weir_option *given;
	uint32_t count;
	char text[1024];
	memset(fx, 0, sizeof *fx);
	weir_mem_init(&fx->m, 0);
	snprintf(text, sizeof text, "connector=datagen %s", options);
	assert_int_equal(weir_option_string_split(text, &fx->m, &given, &count, NULL), WEIR_OK);
	fx->def = (struct weir_table_def){.name = "gen", .columns = columns, .column_count = COLUMNS, .rowtime = -1};
	assert_int_equal(weir_table_options_parse(&fx->def.options, given, count, &fx->m, NULL, NULL), WEIR_OK);
	struct weir_datagen_spec spec = {.table = &fx->def, .base_ms = 1000000, .clock_ms = fake_clock};
	fx->err = weir_datagen_open(&fx->log, &spec, &fx->live, &fx->dg);
	for (uint32_t i = 0; i < PHYSICAL; i++) {
		fx->fields[i] = (struct weir_field){.name = columns[i].name, .type = columns[i].type, .ordinal = i};
		weir_col_init(&fx->cols[i], weir_type_phys(&columns[i].type));
	}
	weir_scratch_init(&fx->scratch);
	assert_int_equal(weir_decoder_create(&fx->decoder, &fx->def.options.value_format, fx->fields, PHYSICAL,
					     fx->fields, PHYSICAL, false, NULL),
			 WEIR_OK);
}

static void close_log(struct fixture *fx)
{
	if (fx->log != NULL)
		fx->log->ops->close(fx->log);
	fx->decoder->destroy(fx->decoder);
	for (uint32_t i = 0; i < PHYSICAL; i++)
		weir_col_fini(&fx->cols[i]);
	weir_scratch_fini(&fx->scratch);
	weir_diag_destroy(fx->dg);
	weir_mem_fini(&fx->m);
}

/* Takes a unit and decodes it into fx->cols. */
static struct weir_unit *take(struct fixture *fx)
{
	struct weir_unit *u = NULL;
	struct weir_sel sel;
	static struct weir_row_errors errors;
	int64_t ts;
	assert_int_equal(fx->log->ops->peek(fx->log, 0, &ts, NULL), WEIR_POLL_UNIT);
	assert_int_equal(fx->log->ops->take(fx->log, 0, &u, NULL), WEIR_OK);
	assert_int_equal(u->records[0].timestamp, ts);
	errors.count = 0;
	weir_scratch_reset(&fx->scratch);
	weir_sel_all(&sel, u->count);
	fx->decoder->decode(fx->decoder, u->records, &sel, fx->cols, &fx->scratch, &errors);
	assert_int_equal(errors.count, 0);
	assert_int_equal(sel.count, u->count);
	return u;
}

static void test_values(void **state)
{
	(void)state;
	struct fixture fx;
	open_log(&fx, "number-of-rows=1500 seed=3 fields.id.kind=sequence fields.id.start=10 fields.id.end=5000 "
		      "fields.small.min=-3 "
		      "fields.small.max=4 fields.price.min=0.50 fields.price.max=99.99 fields.name.length=7 "
		      "fields.at.max-past=1s "
		      "fields.flag.null-rate=0.5 fields.ratio.min=5 fields.ratio.max=6");
	assert_int_equal(fx.err, WEIR_OK);
	int64_t first, end, rows = 0;
	uint32_t partition, small_seen = 0, nulls = 0;
	fx.log->ops->range(fx.log, 0, &first, &end);
	assert_int_equal(first, 0);
	assert_int_equal(end, 1500);
	assert_int_equal(fx.log->ops->partitions(fx.log), 1);
	assert_string_equal(fx.log->ops->topic(fx.log, 0, &partition), "gen");
	while (rows < 1500) {
		struct weir_unit *u = take(&fx);
		assert_int_equal(u->count, rows == 0 ? 1024 : 476);
		for (uint32_t i = 0; i < u->count; i++, rows++) {
			assert_int_equal(u->records[i].offset, rows);
			assert_int_equal(u->records[i].timestamp, 1000000 + rows / 10); /* 10,000 rows a second */
			assert_null(u->records[i].key);
			assert_int_equal(fx.cols[0].i64[i], 10 + rows);
			assert_in_range(fx.cols[1].i64[i] + 3, 0, 7);
			small_seen |= 1u << (fx.cols[1].i64[i] + 3);
			assert_true(fx.cols[2].f64[i] >= 5 && fx.cols[2].f64[i] < 6);
			assert_in_range(fx.cols[3].i64[i], 50, 9999);
			assert_int_equal(fx.cols[4].str[i].bytes, 7);
			nulls += weir_col_is_null(&fx.cols[5], i);
			assert_in_range(u->records[i].timestamp - fx.cols[6].i64[i], 0, 1000);
		}
		assert_int_equal(u->next_offset, rows);
		fx.log->ops->release(fx.log, u);
	}
	assert_int_equal(small_seen, 0xff); /* both ends of the range are reached */
	assert_in_range(nulls, 600, 900);
	int64_t ts;
	assert_int_equal(fx.log->ops->peek(fx.log, 0, &ts, NULL), WEIR_POLL_BOUND);
	close_log(&fx);
}

static void test_reading_on_gives_the_same_rows(void **state)
{
	(void)state;
	struct fixture a, b;
	open_log(&a, "number-of-rows=3000 seed=1");
	open_log(&b, "number-of-rows=3000 seed=1");
	assert_int_equal(b.log->ops->seek(b.log, 0, 500, NULL), WEIR_OK);
	struct weir_unit *ua = take(&a), *ub = take(&b);
	assert_int_equal(ub->records[0].offset, 500);
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(ua->records[500 + i].value_bytes, ub->records[i].value_bytes);
		assert_memory_equal(ua->records[500 + i].value, ub->records[i].value, ub->records[i].value_bytes);
		assert_int_equal(ua->records[500 + i].timestamp, ub->records[i].timestamp);
	}
	struct fixture c;
	open_log(&c, "number-of-rows=3000 seed=2");
	struct weir_unit *uc = take(&c);
	assert_memory_not_equal(ua->records[0].value, uc->records[0].value, uc->records[0].value_bytes);
	c.log->ops->release(c.log, uc);
	a.log->ops->release(a.log, ua);
	b.log->ops->release(b.log, ub);
	close_log(&a);
	close_log(&b);
	close_log(&c);
}

static void test_bounds_and_pace(void **state)
{
	(void)state;
	struct fixture fx;
	int64_t ts;
	open_log(&fx, "fields.id.kind=sequence fields.id.start=1 fields.id.end=3"); /* a sequence bounds the table */
	assert_false(fx.live);
	struct weir_unit *u = take(&fx);
	assert_int_equal(u->count, 3);
	fx.log->ops->release(fx.log, u);
	assert_int_equal(fx.log->ops->peek(fx.log, 0, &ts, NULL), WEIR_POLL_BOUND);
	close_log(&fx);
	open_log(&fx, "number-of-rows=0");
	assert_int_equal(fx.log->ops->peek(fx.log, 0, &ts, NULL), WEIR_POLL_BOUND);
	close_log(&fx);
	clock_now = 77;
	open_log(&fx, "rows-per-second=10");
	assert_true(fx.live);
	u = take(&fx);
	assert_int_equal(u->count, 1);
	fx.log->ops->release(fx.log, u);
	assert_int_equal(fx.log->ops->peek(fx.log, 0, &ts, NULL), WEIR_POLL_EMPTY);
	clock_now += 99;
	assert_int_equal(fx.log->ops->peek(fx.log, 0, &ts, NULL), WEIR_POLL_EMPTY);
	clock_now += 201;
	u = take(&fx);
	assert_int_equal(u->count, 3);
	assert_int_equal(u->records[2].timestamp, 1000000 + 300);
	fx.log->ops->release(fx.log, u);
	close_log(&fx);
	open_log(&fx, "rows-per-second=0"); /* unbounded, as fast as possible */
	u = take(&fx);
	assert_int_equal(u->count, 1024);
	fx.log->ops->release(fx.log, u);
	close_log(&fx);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *options;
		const char *part;
	} bad[] = {
		{"fields.idd.min=1", "did you mean 'id'?"},
		{"fields.computed.min=1", "no such column"},
		{"fields.id.kind=seq", "takes random or sequence"},
		{"fields.id.kind=sequence fields.id.start=1", "needs start and end"},
		{"fields.id.kind=sequence fields.id.start=2 fields.id.end=1", "start is above end"},
		{"fields.small.kind=sequence fields.small.start=0 fields.small.end=128", "beyond the column's type"},
		{"fields.flag.kind=sequence fields.flag.start=0 fields.flag.end=1", "needs a number or a string"},
		{"fields.id.start=1", "needs the kind 'sequence'"},
		{"fields.small.min=300", "a value of the column's type"},
		{"fields.id.min=5 fields.id.max=4", "min is above max"},
		{"fields.flag.max=4", "only numbers"},
		{"fields.name.length=13", "a length that the type allows"},
		{"fields.name.length=0", "a length that the type allows"},
		{"fields.id.length=3", "only strings"},
		{"fields.id.null-rate=2", "a number from 0 to 1"},
		{"fields.id.max-past=1h", "only timestamps"},
		{"fields.at.max-past=soon", "a duration"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct fixture fx;
		open_log(&fx, bad[i].options);
		assert_int_equal(fx.err, WEIR_E_CONF);
		if (strstr(weir_diag_text(fx.dg), bad[i].part) == NULL)
			fail_msg("%s: '%s' is not in '%s'", bad[i].options, bad[i].part, weir_diag_text(fx.dg));
		assert_null(fx.log);
		close_log(&fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_reading_on_gives_the_same_rows),
		cmocka_unit_test(test_bounds_and_pace),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
