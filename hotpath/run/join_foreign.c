/* join_foreign.c: joins of two tables by a foreign key: rows of the left table, keyed by what they refer to, meet the
 * right table; what comes of it is handed on to the result, a table by the left one's key (plan.h). @thread worker
 *
 *   left row, was and is --by foreign key--> here --by own key--> result: the newest number of a key counts
 *
 * A left row that refers to something else leaves one slot and enters another; both say so to the result, whose rows
 * carry the number under which the left row came, so that it does not matter who is heard first. */
#include "hotpath/run/join_private.h"

#include "hotpath/state/foreign.h"

static void put(struct weir_join *jn, const struct weir_join_row *l, const struct weir_join_row *r, bool deletes,
		int64_t time)
{
	jn->out_bytes += weir_join_put_pair(jn, jn->out, l, r, true);
	uint32_t n = jn->out->count - 1;
	jn->out->op[n] = deletes ? WEIR_OP_DELETE : WEIR_OP_INSERT;
	jn->out->time[n] = weir_max_i64(jn->out->time[n], time);
}

static bool apply_left(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	struct weir_join_row key, right;
	bool outer = jn->def->sides[0].outer, there = false;
	if (!weir_join_room(jn, b, sl->number))
		return false;
	if (!h->null_key) {
		weir_foreign_key(jn->def, &h->r, &jn->foreign_key, &key);
		there = weir_join_table_find(sl, 1, &key, &right);
		if (h->deletes)
			(void)weir_foreign_remove(sl, &h->r, &key);
		else
			weir_foreign_put(sl, &h->r, &key);
	}
	/* In doubt what is not there is told as well: it may have been, with the rows of both tables in another order.
	 */
	if (there || outer || sl->in_doubt)
		put(jn, &h->r, there ? &right : NULL, h->deletes || !(there || outer), h->r.time);
	return true;
}

bool weir_join_apply_foreign(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	struct weir_join_row right;
	if (h->side == 0) {
		if (!apply_left(jn, b, sl, h))
			return false;
	} else {
		bool was = weir_join_table_find(sl, 1, &h->r, &right);
		if (h->deletes)
			weir_join_table_delete(sl, 1, &h->r);
		else
			weir_join_table_put(sl, 1, &h->r);
		jn->foreign_there = !h->deletes;
		bool tells = was || !h->deletes || jn->def->sides[0].outer || sl->in_doubt;
		jn->foreign_next = tells ? weir_foreign_first(sl, &h->r) : 0;
		jn->current = h;
	}
	sl->records++;
	jn->w->st->now->applied++;
	return true;
}

bool weir_join_put_foreign(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct held *h = jn->current;
	bool outer = jn->def->sides[0].outer;
	while (jn->foreign_next != 0) {
		struct weir_join_row left;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		jn->foreign_next = weir_foreign_get(sl, jn->foreign_next, &left);
		put(jn, &left, jn->foreign_there ? &h->r : NULL, !jn->foreign_there && !outer, h->r.time);
	}
	jn->current = NULL;
	return true;
}
