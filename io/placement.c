/* placement.c: a sample of keys against their partitions (placement.h). Two things are looked at:
 *
 *   a scan alone in its states   any partitioner will do, if a key has one partition: keys seen in two
 *   scans that meet in a state   keys must lie where the other topics have them, which is where Kafka's default
 *                                partitioner puts them: keys that murmur2 puts elsewhere. Where both were written by
 *                                another one, the samples have keys in common and each in one partition: nothing is
 *                                wrong
 *   records without a key        lie anywhere: alone, where they are in two partitions (what they are grouped by is in
 *                                both, be it NULL or what their values say); that meet others, where there are more of
 *                                them than of keys (a few have NULL there and would meet nothing anyway)
 */
#include "io/placement.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "io/recorded/recorded.h"

enum { SAMPLE = 4096, OF_UNIT = 64, PLACES = 2 * SAMPLE };

struct place {
	uint64_t hash; /* of the key, 0: free */
	uint32_t partition;
	bool wrong;
};

struct sample {
	uint32_t left; /* records still to be looked at */
	uint32_t seen, wrong;
	uint32_t keyless, keyless_partition; /* records without a key, and where the first one lay */
	bool keyless_apart;                  /* not all of them in that one */
	const struct weir_plan_scan *with;   /* meets this scan; NULL: it is alone */
	const char *state;                   /* that relies on it */
	struct place *places;                /* PLACES of them */
};

struct weir_placement {
	const struct weir_plan *pl;
	struct sample *of; /* per scan */
};

/* What relies on the scan's partitions: a stage whose rows stay where they are. */
static void find_user(const struct weir_plan *pl, uint32_t scan, struct sample *sm)
{
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		const struct weir_plan_stage *st = &pl->stages[s];
		const struct weir_plan_scan *other = NULL;
		bool reads = false;
		if (st->exchange != WEIR_EXCHANGE_DIRECT || st->broadcast || weir_plan_stage_is_transient(st))
			continue;
		for (uint32_t i = 0; i < st->input_count; i++) {
			const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
			if (br->from != WEIR_FROM_SCAN)
				continue;
			if (br->origin == scan)
				reads = true;
			else
				other = &pl->scans[br->origin];
		}
		if (!reads || (sm->state != NULL && (sm->with != NULL || other == NULL)))
			continue;
		sm->state = st->name;
		sm->with = other;
	}
}

struct weir_placement *weir_placement_create(const struct weir_plan *pl)
{
	struct weir_placement *pc = weir_xcalloc(1, sizeof *pc);
	bool any = false;
	pc->pl = pl;
	pc->of = weir_xcalloc(pl->scan_count + 1, sizeof *pc->of);
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		struct sample *sm = &pc->of[s];
		/* Repartition topics are weir's own. */
		if (pl->scans[s].partition_count < 2 || pl->scans[s].repartition >= 0)
			continue;
		find_user(pl, s, sm);
		if (sm->state == NULL)
			continue;
		any = true;
		sm->left = SAMPLE;
		sm->places = weir_xcalloc(PLACES, sizeof *sm->places);
	}
	if (any)
		return pc;
	weir_placement_destroy(pc);
	return NULL;
}

void weir_placement_destroy(struct weir_placement *pc)
{
	if (pc == NULL)
		return;
	for (uint32_t s = 0; s < pc->pl->scan_count; s++)
		free(pc->of[s].places);
	free(pc->of);
	free(pc);
}

/* Where a key stands among the places, or may. */
static struct place *find_place(const struct sample *sm, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 32) % PLACES;
	while (sm->places[at].hash != 0 && sm->places[at].hash != hash)
		at = (at + 1) % PLACES;
	return &sm->places[at];
}

/* Whether the key was seen in another partition. A key that was counts once for each of its records. */
static bool is_elsewhere(struct sample *sm, const struct weir_record *r, uint32_t partition)
{
	uint64_t hash = weir_hash(r->key, r->key_bytes) | 1;
	struct place *pl = find_place(sm, hash);
	if (pl->hash == 0)
		*pl = (struct place){hash, partition, false};
	pl->wrong = pl->wrong || pl->partition != partition;
	return pl->wrong;
}

void weir_placement_unit(struct weir_placement *pc, uint32_t scan, const struct weir_unit *u)
{
	struct sample *sm = &pc->of[scan];
	uint32_t partitions = pc->pl->scans[scan].partition_count;
	uint32_t step = u->count > OF_UNIT ? u->count / OF_UNIT : 1;
	for (uint32_t i = 0; i < u->count && sm->left != 0; i += step) {
		const struct weir_record *r = &u->records[i];
		sm->left--;
		if (r->key == NULL && pc->pl->scans[scan].is_table)
			continue; /* it is rejected, and said to be */
		if (r->key == NULL) {
			if (sm->keyless++ == 0)
				sm->keyless_partition = u->partition;
			sm->keyless_apart = sm->keyless_apart || u->partition != sm->keyless_partition;
			continue;
		}
		sm->seen++;
		bool elsewhere = is_elsewhere(sm, r, u->partition);
		if (sm->with == NULL)
			sm->wrong += elsewhere;
		else
			sm->wrong += (weir_murmur2(r->key, r->key_bytes) & 0x7fffffff) % partitions != u->partition;
	}
}

/* Whether two samples have keys in common, and all of those in one partition, the same in both. */
static bool lie_together(const struct sample *a, const struct sample *b)
{
	uint32_t common = 0;
	for (uint32_t i = 0; i < PLACES; i++) {
		const struct place *pl = &a->places[i];
		if (pl->hash == 0)
			continue;
		const struct place *other = find_place(b, pl->hash);
		if (other->hash == 0)
			continue;
		if (pl->wrong || other->wrong || pl->partition != other->partition)
			return false;
		common++;
	}
	return common != 0;
}

static bool say_keyless(const struct sample *sm, const char *name, struct weir_buf *out)
{
	if (!sm->keyless_apart || (sm->with != NULL && sm->keyless <= sm->seen))
		return false;
	weir_buf_printf(
		out, "source %s: %u of %u sampled records have no key and lie in more than one partition, but state ",
		name, sm->keyless, sm->keyless + sm->seen);
	if (sm->with != NULL)
		weir_buf_printf(out, "%s expects them where %s has them: it misses matches", sm->state, sm->with->name);
	else
		weir_buf_printf(out,
				"%s keeps each partition for itself: a group has several rows, that of NULL, too, "
				"unless a WHERE leaves them out",
				sm->state);
	weir_buf_puts(out,
		      ". Take key.fields out of the table if the topic is not written by it, or let rows move within "
		      "one process: exchange=local\n");
	out->data[out->bytes - 1] = 0;
	return true;
}

bool weir_placement_say(struct weir_placement *pc, uint32_t scan, bool end, struct weir_buf *out)
{
	struct sample *sm = &pc->of[scan];
	const char *name = pc->pl->scans[scan].name;
	if (sm->seen + sm->keyless == 0 || (sm->left != 0 && !end))
		return false;
	const struct sample was = *sm;
	uint32_t seen = sm->seen, wrong = sm->wrong,
		 tenths = (uint32_t)((uint64_t)wrong * 1000 / (seen != 0 ? seen : 1));
	*sm = (struct sample){.with = sm->with, .state = sm->state, .places = sm->places};
	const struct sample *other = sm->with != NULL ? &pc->of[sm->with - pc->pl->scans] : NULL;
	if (wrong == 0 || (other != NULL && other->places != NULL && lie_together(sm, other)))
		return say_keyless(&was, name, out);
	weir_buf_printf(out, "source %s: %u of %u sampled keys (%u.%u %%) ", name, wrong, seen, tenths / 10,
			tenths % 10);
	if (sm->with != NULL)
		weir_buf_printf(out,
				"are not in the partition that Kafka's default partitioner gives them, but state %s "
				"expects them where %s has them: it misses matches",
				sm->state, sm->with->name);
	else
		weir_buf_printf(out,
				"are in more than one partition, but state %s keeps each partition for itself: "
				"a key has several rows",
				sm->state);
	weir_buf_puts(out, ". Write the topic by its key (librdkafka: partitioner=murmur2_random), or let rows move "
			   "within one process: exchange=local\n");
	out->data[out->bytes - 1] = 0;
	return true;
}
