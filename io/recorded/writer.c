/* writer.c: writes a topic outside any application: no commit file, its files belong to nobody and are read whole.
 * @thread init: weir gen, weir record and tests. */
#include "io/recorded/recorded.h"

#include "io/recorded/log.h"
#include "io/recorded/reader.h"
#include "io/recorded/sys.h"
#include "io/recorded/topic.h"

#include <stdlib.h>

struct weir_topic_writer {
	struct weir_codec_ctx *cc;
	struct weir_appender *parts;
	uint32_t part_count;
};

static void writer_free(struct weir_topic_writer *w)
{
	for (uint32_t p = 0; p < w->part_count; p++)
		weir_appender_fini(&w->parts[p]);
	free(w->parts);
	weir_codec_destroy(w->cc);
	free(w);
}

/* Goes on behind what the partition has. */
static enum weir_err writer_open_part(struct weir_topic_writer *w, const char *path, const char *topic, uint32_t p,
				      enum weir_codec codec, struct weir_diag **dg)
{
	struct weir_segs ss, none = {0};
	enum weir_err err = weir_segs_list(&ss, path, topic, p, NULL, true, dg);
	if (err != WEIR_OK)
		return err;
	int64_t next = 0;
	if (ss.count != 0) {
		struct weir_reader_env env;
		struct weir_reader rd;
		weir_reader_env_init(&env);
		err = weir_reader_open(&rd, &env, path, topic, p, &ss, dg);
		next = err == WEIR_OK ? weir_reader_end(&rd) : 0;
		/* An empty file of that name is used. */
		weir_reader_close(&rd);
		weir_reader_env_fini(&env);
		if (err != WEIR_OK)
			return err;
	}
	weir_appender_init(&w->parts[w->part_count++], path, topic, p, &none, next, codec, w->cc);
	w->parts[p].by_pieces = true;
	return weir_sys_make_folder(w->parts[p].dir, dg);
}

enum weir_err weir_topic_writer_open(struct weir_topic_writer **out, const char *path, const char *topic,
				     uint32_t partitions, enum weir_codec codec, struct weir_diag **dg)
{
	struct weir_commit c;
	if (!weir_topic_name_ok(topic))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "'%s' is no topic name: letters, digits, '.', '_' and '-', at most 200", topic);
	if (partitions == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "a topic has at least one partition");
	enum weir_err err = weir_sys_make_folder(path, dg);
	if (err != WEIR_OK)
		return err;
	err = weir_commit_load(path, &c, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < c.section_count; i++)
		for (uint32_t j = 0; j < c.sections[i].topic_count; j++)
			if (c.sections[i].topics[j].path == NULL && strcmp(c.sections[i].topics[j].name, topic) == 0)
				err = weir_diag_set(dg, WEIR_E_CONF, "topic %s in %s belongs to application %s", topic,
						    path, c.sections[i].app);
	weir_commit_fini(&c);
	if (err != WEIR_OK)
		return err;
	struct weir_topic_writer *w = weir_xcalloc(1, sizeof *w);
	w->cc = weir_codec_create();
	w->parts = weir_xcalloc(partitions, sizeof *w->parts);
	for (uint32_t p = 0; err == WEIR_OK && p < partitions; p++)
		err = writer_open_part(w, path, topic, p, codec, dg);
	if (err != WEIR_OK) {
		writer_free(w);
		return err;
	}
	*out = w;
	return WEIR_OK;
}

enum weir_err weir_topic_writer_put(struct weir_topic_writer *w, uint32_t partition, const struct weir_out *r,
				    struct weir_diag **dg)
{
	WEIR_ASSERT(partition < w->part_count);
	return weir_appender_put(&w->parts[partition], r, dg);
}

enum weir_err weir_topic_writer_put_at(struct weir_topic_writer *w, uint32_t partition, int64_t offset,
				       const struct weir_out *r, struct weir_diag **dg)
{
	WEIR_ASSERT(partition < w->part_count);
	struct weir_appender *ap = &w->parts[partition];
	if (offset < ap->next_offset)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: offset %lld lies before its end, %lld", ap->dir,
				     (long long)offset, (long long)ap->next_offset);
	return weir_appender_put_at(ap, offset, r, dg);
}

enum weir_err weir_topic_writer_cut(struct weir_topic_writer *w, struct weir_diag **dg)
{
	for (uint32_t p = 0; p < w->part_count; p++) {
		enum weir_err err = weir_appender_cut(&w->parts[p], dg);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

enum weir_err weir_topic_writer_close(struct weir_topic_writer *w, struct weir_diag **dg)
{
	enum weir_err err = weir_topic_writer_cut(w, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < w->part_count; p++)
		weir_appender_sync_start(&w->parts[p]);
	for (uint32_t p = 0; err == WEIR_OK && p < w->part_count; p++)
		err = weir_appender_sync(&w->parts[p], dg);
	writer_free(w);
	return err;
}

void weir_topic_writer_drop(struct weir_topic_writer *w)
{
	for (uint32_t p = 0; p < w->part_count; p++) {
		for (uint32_t i = 0; i < w->parts[p].ss.count; i++)
			(void)weir_seg_remove(w->parts[p].dir, &w->parts[p].ss.seg[i]);
		(void)weir_sys_rmdir(w->parts[p].dir);
	}
	writer_free(w);
}
