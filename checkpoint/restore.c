/* restore.c: the changelog read back (restore.h). @thread init
 *
 * Slots that are kept from an assignment before only need what their marker says of times and offsets. Others:
 * Two passes over each committed partition: the first finds the newest marker and the schema, the second hands packs
 * and page images to their slots; a slot must know its live windows before the first body. */
#include "checkpoint/restore.h"

#include <inttypes.h>
#include <stdlib.h>

#include "checkpoint/record.h"
#include "hotpath/topology/describe.h"

struct pass {
	const struct weir_snapshot_conf *cf;
	uint32_t stage;
	uint32_t partition;
	struct weir_restored *out;
	struct weir_buf marker;
	struct weir_buf schema;
	uint64_t epoch;
	uint64_t sum; /* of the frames of the marker's epoch */
	uint32_t count;
	bool stateless;
	bool kept; /* the slots are there */
};

static enum weir_err first_pass(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct pass *ps = ctx;
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	enum weir_err err = weir_record_key_parse(r->key, r->key_bytes, &kind, &slot, &number, &part, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_buf *b = kind == WEIR_RECORD_MARKER ? &ps->marker : kind == WEIR_RECORD_SCHEMA ? &ps->schema : NULL;
	if (b) {
		b->bytes = 0;
		weir_buf_put(b, r->value, r->value ? r->value_bytes : 0);
	}
	return WEIR_OK;
}

static struct weir_slot *slot_of(const struct pass *ps, uint32_t slot)
{
	if (slot >= ps->cf->plan->stages[ps->stage].slot_count)
		return NULL;
	return weir_worker_of(ps->cf->workers[0], slot)->slots[ps->stage][slot];
}

static enum weir_err second_pass(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct pass *ps = ctx;
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	enum weir_err err = weir_record_key_parse(r->key, r->key_bytes, &kind, &slot, &number, &part, dg);
	if (err != WEIR_OK || kind == WEIR_RECORD_MARKER || kind == WEIR_RECORD_SCHEMA || !r->value)
		return err;
	uint64_t epoch, sum;
	const uint8_t *body;
	size_t bytes;
	err = weir_record_open(r->key, r->key_bytes, r->value, r->value_bytes, &epoch, &body, &bytes, &sum, dg);
	if (err != WEIR_OK)
		return err;
	if (epoch == ps->epoch) {
		ps->sum += sum;
		ps->count++;
	}
	struct weir_slot *sl = slot_of(ps, slot);
	if (!sl)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "changelog of state %s: slot %u does not exist",
				     ps->cf->plan->stages[ps->stage].name, slot);
	ps->out->frames++;
	ps->out->frame_bytes += bytes;
	return kind == WEIR_RECORD_PACK ? weir_slot_restore_pack(sl, number, body, bytes, dg)
					: weir_slot_restore_page(sl, number, part, body, bytes, dg);
}

/* No text in the record can hold it: quotes in texts are escaped. */
static const char layout_member[] = ",\"layout\":{";

static void put_text(struct weir_buf *out, const char *name, const char *text)
{
	if (text == NULL)
		return;
	weir_buf_printf(out, ",\"%s\":", name);
	weir_json_put(out, text);
}

/* How entries are laid out, for those who look into the changelog. */
static void put_layout(const struct weir_state_def *def, struct weir_buf *out)
{
	static const char *const kinds[] = {[WEIR_STATE_WINDOW] = "window",
					    [WEIR_STATE_SESSION] = "session",
					    [WEIR_STATE_TABLE] = "table",
					    [WEIR_STATE_SLIDING] = "sliding"};
	char type[256];
	if (kinds[def->kind] == NULL)
		return;
	weir_buf_puts(out, layout_member);
	weir_buf_printf(out, "\"kind\":\"%s\",\"size\":%lld,\"advance\":%lld,\"gap\":%lld,\"changes\":%s,%s\"keys\":[",
			kinds[def->kind], (long long)def->size_ms, (long long)def->advance_ms, (long long)def->gap_ms,
			def->changes ? "true" : "false", def->cumulative ? "\"cumulative\":true," : "");
	for (uint32_t i = 0; i < def->key_count; i++) {
		weir_buf_printf(out, "%s{\"type\":", i != 0 ? "," : "");
		weir_json_put(out, weir_type_text(&def->key_types[i], type, sizeof type));
		put_text(out, "of", def->key_texts != NULL ? def->key_texts[i] : "key");
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "],\"aggregates\":[");
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		weir_buf_printf(out, "%s{\"function\":\"%s\"", i != 0 ? "," : "", weir_agg_kind_name(a->kind));
		if (a->kind != WEIR_AGG_COUNT_STAR)
			put_text(out, "type", weir_type_text(&a->arg_type, type, sizeof type));
		put_text(out, "of", def->agg_texts != NULL ? def->agg_texts[i] : NULL);
		put_text(out, "where", def->filter_texts != NULL ? def->filter_texts[i] : NULL);
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "]}");
}

static void fingerprint(const struct weir_snapshot_conf *cf, uint32_t stage, struct weir_buf *out)
{
	const struct weir_plan *pl = cf->plan;
	bool kept = stage < weir_plan_kept_stages(pl);
	weir_buf_printf(out, "{\"weir\":%d,\"fingerprint\":\"", WEIR_RECORD_VERSION);
	if (kept) {
		const struct weir_plan_stage *st = &pl->stages[stage];
		struct weir_buf text = {0};
		weir_state_def_fingerprint(&st->def, &text);
		weir_buf_printf(&text, " %s slots=%u", st->exchange == WEIR_EXCHANGE_DIRECT ? "direct" : "local",
				st->slot_count);
		for (size_t i = 0; i < text.bytes; i++) {
			if (text.data[i] == '"' || text.data[i] == '\\')
				weir_buf_put_byte(out, '\\');
			weir_buf_put_byte(out, text.data[i] < 0x20 ? ' ' : text.data[i]);
		}
		weir_buf_fini(&text);
	} else {
		weir_buf_puts(out, "stateless");
	}
	weir_buf_printf(out, "\",\"partitions\":%u", cf->changelog_partitions);
	if (kept)
		put_layout(&pl->stages[stage].def, out);
	weir_buf_puts(out, "}");
}

/* The layout follows from the fingerprint, and older changelogs have none: not to be compared. */
static void cut_layout(struct weir_buf *text)
{
	const uint8_t *at =
		text->bytes != 0 ? memmem(text->data, text->bytes, layout_member, strlen(layout_member)) : NULL;
	if (at != NULL)
		text->bytes = (size_t)(at - text->data);
	else if (text->bytes != 0 && text->data[text->bytes - 1] == '}')
		text->bytes--;
}

/* Whether a word of a fingerprint starts or ends at byte at: at a blank outside of parentheses, and inside of one pair
 * at the commas and the parentheses themselves. `DECIMAL(12, 2)` is one word. */
static bool is_word_end(const struct weir_buf *b, size_t at)
{
	int depth = 0;
	for (size_t i = 0; i < at; i++)
		depth += b->data[i] == '(' ? 1 : b->data[i] == ')' ? -1 : 0;
	uint8_t before = at > 0 ? b->data[at - 1] : ' ', after = at < b->bytes ? b->data[at] : ' ';
	if (before == '"' || after == '"')
		return true;
	return depth == 0   ? before == ' ' || after == ' '
	       : depth == 1 ? before == '(' || after == ')' || after == ',' ||
				      (before == ' ' && at > 1 && b->data[at - 2] == ',')
			    : false;
}

/* The part in which a differs from b, widened to whole words. */
static void difference(const struct weir_buf *a, const struct weir_buf *b, size_t *from, size_t *bytes)
{
	size_t most = a->bytes < b->bytes ? a->bytes : b->bytes, head = 0, tail = 0;
	while (head < most && a->data[head] == b->data[head])
		head++;
	while (head > 0 && !(is_word_end(a, head) && is_word_end(b, head)))
		head--;
	while (tail < most - head && a->data[a->bytes - 1 - tail] == b->data[b->bytes - 1 - tail])
		tail++;
	while (tail > 0 && !(is_word_end(a, a->bytes - tail) && is_word_end(b, b->bytes - tail)))
		tail--;
	*from = head;
	*bytes = a->bytes - tail - head;
	while (*bytes > 0 && a->data[*from + *bytes - 1] == ' ')
		--*bytes;
}

static enum weir_err check_schema(struct pass *ps, const char *app, struct weir_diag **dg)
{
	struct weir_buf want = {0};
	fingerprint(ps->cf, ps->stage, &want);
	cut_layout(&want);
	cut_layout(&ps->schema);
	enum weir_err err = WEIR_OK;
	if (want.bytes != ps->schema.bytes || memcmp(want.data, ps->schema.data, want.bytes) != 0) {
		size_t kept, kept_bytes, needed, needed_bytes;
		difference(&ps->schema, &want, &kept, &kept_bytes);
		difference(&want, &ps->schema, &needed, &needed_bytes);
		err = weir_diag_set(dg, WEIR_E_CONF,
				    "state %s is kept in another form than this query needs: kept '%.*s', needed "
				    "'%.*s'. To start over: weir reset %s --execute",
				    ps->stateless ? "offsets" : ps->cf->plan->stages[ps->stage].name, (int)kept_bytes,
				    (const char *)ps->schema.data + kept, (int)needed_bytes,
				    (const char *)want.data + needed, app);
	}
	weir_buf_fini(&want);
	return err;
}

static bool same_text(const char *text, const char *bytes, uint32_t count)
{
	return strlen(text) == count && memcmp(text, bytes, count) == 0;
}

static bool same_partition(const struct weir_input_name *in, const struct weir_marker_input *mi)
{
	return in->partition == mi->partition && same_text(in->topic, mi->topic, mi->topic_bytes);
}

bool weir_input_is(const struct weir_input_name *in, const struct weir_marker_input *mi)
{
	return same_partition(in, mi) && (mi->table_bytes == 0 || same_text(in->table, mi->table, mi->table_bytes));
}

/* Whether the marker has a place of the plan's input p under its table's name. */
static bool is_named(const struct pass *ps, const struct weir_marker *mk, uint32_t p)
{
	for (uint32_t i = 0; i < mk->input_count; i++)
		if (mk->inputs[i].table_bytes != 0 && weir_input_is(&ps->cf->inputs[p], &mk->inputs[i]))
			return true;
	return false;
}

/* Whether the plan has a table of the name that the marker has for this one. */
static bool is_read(const struct pass *ps, const struct weir_marker_input *mi)
{
	for (uint32_t p = 0; p < ps->cf->plan->partition_count; p++)
		if (mi->table_bytes != 0 && weir_input_is(&ps->cf->inputs[p], mi))
			return true;
	return false;
}

/* An input that no table of its name reads: another name is its table's now, or it is of a marker that has no names. Of
 * several such of one topic's partition the order tells; *p: whose it is, UINT32_MAX: nobody's. False: no telling. */
static bool find_renamed(const struct pass *ps, const struct weir_marker *mk, uint32_t i, uint32_t *p)
{
	const struct weir_marker_input *mi = &mk->inputs[i];
	uint32_t kept = 0, before = 0, read = 0;
	*p = UINT32_MAX;
	for (uint32_t k = 0; k < mk->input_count; k++) {
		const struct weir_marker_input *other = &mk->inputs[k];
		bool same = other->partition == mi->partition && other->topic_bytes == mi->topic_bytes &&
			    memcmp(other->topic, mi->topic, mi->topic_bytes) == 0;
		if (!same || is_read(ps, other))
			continue;
		before += k < i;
		kept++;
	}
	for (uint32_t k = 0; k < ps->cf->plan->partition_count; k++) {
		const struct weir_input_name *in = &ps->cf->inputs[k];
		if (!same_partition(in, mi) || is_named(ps, mk, k) ||
		    (mi->table_bytes != 0 && in->changelog_partition != ps->partition))
			continue;
		if (read == before)
			*p = k;
		read++;
	}
	return read == 0 || read == kept;
}

static void apply_input(struct pass *ps, const struct weir_marker_input *mi, uint32_t p)
{
	if (mi->offset > ps->out->offset[p])
		ps->out->offset[p] = mi->offset;
	if (mi->time > ps->out->time[p])
		ps->out->time[p] = mi->time;
}

/* A topic that the query does not read any more is nobody's business; a partition that it would read is. A topic that
 * several tables read has a place in it for each. */
static enum weir_err apply_inputs(struct pass *ps, const struct weir_marker *mk, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < mk->input_count; i++) {
		const struct weir_marker_input *mi = &mk->inputs[i];
		bool topic = false, partition = false, named = is_read(ps, mi);
		uint32_t renamed = UINT32_MAX;
		bool told = named || find_renamed(ps, mk, i, &renamed);
		for (uint32_t p = 0; p < ps->cf->plan->partition_count; p++) {
			const struct weir_input_name *in = &ps->cf->inputs[p];
			topic = topic || same_text(in->topic, mi->topic, mi->topic_bytes);
			partition = partition || same_partition(in, mi);
			/* Without names, and now more read it, or fewer: all that do. */
			if (named ? weir_input_is(in, mi)
				  : p == renamed || (!told && mi->table_bytes == 0 && same_partition(in, mi)))
				apply_input(ps, mi, p);
		}
		if (topic && !partition)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "topic %.*s has no partition %u any more, which was read up to offset "
					     "%" PRId64,
					     (int)mi->topic_bytes, mi->topic, mi->partition, mi->offset);
		if (!told && mi->table_bytes != 0)
			return weir_diag_set(
				dg, WEIR_E_CONF,
				"topic %.*s was read by table %.*s, among others: which of them goes on where "
				"it stood is not known by their names now; name them as before, or start over "
				"by weir reset",
				(int)mi->topic_bytes, mi->topic, (int)mi->table_bytes, mi->table);
	}
	return WEIR_OK;
}

static enum weir_err apply_marker(struct pass *ps, struct weir_mem *m, struct weir_diag **dg)
{
	struct weir_marker mk;
	enum weir_err err = weir_marker_decode(&mk, ps->marker.data, ps->marker.bytes, m, dg);
	if (err != WEIR_OK)
		return err;
	ps->out->found = true;
	if (ps->out->held)
		ps->out->held[ps->partition] = true;
	ps->epoch = mk.epoch;
	ps->out->epoch = mk.epoch > ps->out->epoch ? mk.epoch : ps->out->epoch;
	ps->out->records = mk.records > ps->out->records ? mk.records : ps->out->records;
	ps->out->bytes = mk.bytes > ps->out->bytes ? mk.bytes : ps->out->bytes;
	err = apply_inputs(ps, &mk, dg);
	for (uint32_t i = 0; i < mk.slot_count && err == WEIR_OK; i++) {
		struct weir_slot *sl = slot_of(ps, mk.slots[i].slot);
		if (!sl)
			return weir_diag_set(dg, WEIR_E_CORRUPT, "changelog of state %s: slot %u does not exist",
					     ps->cf->plan->stages[ps->stage].name, mk.slots[i].slot);
		for (uint32_t w = 0; w < ps->cf->worker_count; w++)
			weir_times_set_task(ps->cf->workers[w]->times, ps->stage, mk.slots[i].slot,
					    mk.slots[i].task_time);
		if (!ps->kept)
			weir_slot_set_expired(sl, mk.slots[i].task_time);
		if (!ps->kept)
			err = weir_slot_load(sl, mk.slots[i].saved, mk.slots[i].saved_bytes, dg);
	}
	if (err != WEIR_OK || ps->stateless || ps->kept)
		return err;
	err = ps->cf->log->ops->read(ps->cf->log, ps->cf->state_topic[ps->stage], ps->partition, second_pass, ps, dg);
	if (err == WEIR_OK && (ps->sum != mk.sum || ps->count != mk.count))
		err = weir_diag_set(dg, WEIR_E_CORRUPT,
				    "changelog of state %s, partition %u: the last epoch (%" PRIu64
				    ") is not whole: %u of %u frames are there",
				    ps->cf->plan->stages[ps->stage].name, ps->partition, mk.epoch, ps->count, mk.count);
	for (uint32_t i = 0; i < mk.slot_count && err == WEIR_OK; i++)
		err = weir_slot_restore_finish(slot_of(ps, mk.slots[i].slot), dg);
	return err;
}

/* Stage time of every restored slot, for the stages it feeds. */
static void apply_stage_times(const struct weir_snapshot_conf *cf)
{
	const struct weir_plan *pl = cf->plan;
	for (uint32_t b = 0; b < pl->branch_count; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->to != WEIR_TO_STAGE)
			continue;
		const struct weir_plan_stage *st = &pl->stages[br->origin];
		for (uint32_t k = 0; k < st->slot_count; k++) {
			int64_t task = weir_times_task(cf->workers[0]->times, br->origin, k);
			for (uint32_t w = 0; w < cf->worker_count && task != WEIR_TIME_UNSET; w++)
				weir_times_advance_up(cf->workers[w]->times, b, k, task - st->hold_ms, false);
		}
	}
}

/* Whether this instance owns an input whose slots changelog partition p holds. */
static bool partition_owned(const struct weir_snapshot_conf *cf, uint32_t p)
{
	if (!cf->owned)
		return true;
	for (uint32_t i = 0; i < cf->plan->partition_count; i++)
		if (cf->owned[i] && cf->inputs[i].changelog_partition == p)
			return true;
	return false;
}

/* The owned partition behind (stage, partition); false: there is none. partition UINT32_MAX stands before the first. */
static bool next_partition(const struct weir_snapshot_conf *cf, uint32_t stages, uint32_t *stage, uint32_t *partition)
{
	do {
		if (++*partition < cf->changelog_partitions)
			continue;
		*partition = 0;
		++*stage;
	} while (*stage < stages && !partition_owned(cf, *partition));
	return *stage < stages;
}

static bool is_kept(const struct weir_snapshot_conf *cf, uint32_t p)
{
	return cf->kept && cf->kept[p];
}

static enum weir_err restore_kept(const struct weir_snapshot_conf *cf, uint32_t s, uint32_t p,
				  struct weir_restored *out, struct weir_diag **dg)
{
	struct pass ps = {.cf = cf, .stage = s, .partition = p, .out = out, .kept = true};
	struct weir_mem m = {0};
	ps.stateless = weir_plan_kept_stages(cf->plan) == 0;
	ps.marker = cf->markers[s * cf->changelog_partitions + p]; /* borrowed */
	enum weir_err err = apply_marker(&ps, &m, dg);
	weir_mem_fini(&m);
	return err;
}

/* For another assignment. */
static void keep_marker(const struct weir_snapshot_conf *cf, const struct pass *ps)
{
	if (!cf->markers)
		return;
	struct weir_buf *b = &cf->markers[ps->stage * cf->changelog_partitions + ps->partition];
	b->bytes = 0;
	weir_buf_put(b, ps->marker.data, ps->marker.bytes);
}

static enum weir_err restore_partition(const struct weir_snapshot_conf *cf, const char *app, uint32_t stages,
				       uint32_t s, uint32_t p, struct weir_restored *out, struct weir_diag **dg)
{
	struct pass ps = {
		.cf = cf, .stage = s, .partition = p, .out = out, .stateless = weir_plan_kept_stages(cf->plan) == 0};
	struct weir_mem m = {0};
	uint32_t next_stage = s, next = p;
	bool more;
	do
		more = next_partition(cf, stages, &next_stage, &next);
	while (more && is_kept(cf, next));
	if (cf->log->ops->expect && more)
		cf->log->ops->expect(cf->log, cf->state_topic[next_stage], next);
	enum weir_err err = cf->log->ops->read(cf->log, cf->state_topic[s], p, first_pass, &ps, dg);
	if (err == WEIR_OK && out->held)
		out->held[p] |= ps.schema.bytes != 0;
	if (err == WEIR_OK && ps.schema.bytes == 0)
		out->schema_missing[s] = true;
	else if (err == WEIR_OK)
		err = check_schema(&ps, app, dg);
	if (err == WEIR_OK && ps.marker.bytes)
		err = apply_marker(&ps, &m, dg);
	if (err == WEIR_OK)
		keep_marker(cf, &ps);
	weir_buf_fini(&ps.marker);
	weir_buf_fini(&ps.schema);
	weir_mem_fini(&m);
	return err;
}

enum weir_err weir_restore(const struct weir_snapshot_conf *cf, const char *app, struct weir_restored *out,
			   struct weir_diag **dg)
{
	const struct weir_plan *pl = cf->plan;
	uint32_t kept = weir_plan_kept_stages(pl), stages = kept ? kept : 1;
	enum weir_err err = WEIR_OK;
	for (uint32_t p = 0; p < pl->partition_count; p++) {
		out->offset[p] = -1;
		out->time[p] = WEIR_TIME_UNSET;
	}
	for (uint32_t s = 0, p = UINT32_MAX; err == WEIR_OK && next_partition(cf, stages, &s, &p);)
		err = is_kept(cf, p) ? restore_kept(cf, s, p, out, dg)
				     : restore_partition(cf, app, stages, s, p, out, dg);
	if (cf->log->ops->restored)
		cf->log->ops->restored(cf->log);
	if (err != WEIR_OK)
		return err;
	for (uint32_t p = 0; p < pl->partition_count; p++)
		for (uint32_t w = 0; w < cf->worker_count && out->time[p] != WEIR_TIME_UNSET; w++)
			weir_times_set_part(cf->workers[w]->times, p, out->time[p]);
	apply_stage_times(cf);
	return WEIR_OK;
}

enum weir_err weir_schema_write(const struct weir_snapshot_conf *cf, const struct weir_restored *rs,
				struct weir_diag **dg)
{
	uint32_t kept = weir_plan_kept_stages(cf->plan), stages = kept ? kept : 1;
	enum weir_err err = WEIR_OK;
	struct weir_buf text = {0};
	uint8_t key[WEIR_RECORD_KEY_BYTES];
	size_t n = weir_record_key(key, WEIR_RECORD_SCHEMA, 0, 0, 0);
	for (uint32_t s = 0; s < stages && err == WEIR_OK; s++) {
		if (!rs->schema_missing[s])
			continue;
		text.bytes = 0;
		fingerprint(cf, s, &text);
		for (uint32_t p = 0; p < cf->changelog_partitions && err == WEIR_OK; p++) {
			struct weir_out r = {.key = {key, n}, .value = {text.data, text.bytes}, .timestamp = 0};
			if (!partition_owned(cf, p))
				continue;
			err = cf->log->ops->append(cf->log, cf->state_topic[s], p, &r, dg);
		}
	}
	weir_buf_fini(&text);
	return err;
}
