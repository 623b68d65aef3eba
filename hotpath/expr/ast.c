/* ast.c: comparing and printing untyped trees. Both walk with a stack of their own: chains may be 100,000 long. Cold
 * path,
 * @thread init. */
#include "hotpath/expr/ast.h"

#include <inttypes.h>

#define PRINT_BYTES_MAX (64 * 1024)

/* ---- equality ---- */

static bool same_text(const struct weir_ast *a, const struct weir_ast *b)
{
	if (a->text_bytes != b->text_bytes || memcmp(a->text, b->text, a->text_bytes) != 0)
		return false;
	if ((a->qualifier == NULL) != (b->qualifier == NULL))
		return false;
	return a->qualifier == NULL || strcmp(a->qualifier, b->qualifier) == 0;
}

static bool same_list(struct weir_ast *const *a, struct weir_ast *const *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!weir_ast_equal(a[i], b[i]))
			return false;
	return true;
}

/* Lists of OVER are short, and nest by what is written in parentheses only. */
static bool same_over(const struct weir_ast_over *a, const struct weir_ast_over *b)
{
	if (a == NULL || b == NULL || a == b)
		return a == b;
	if ((a->name == NULL) != (b->name == NULL) || (a->name != NULL && strcmp(a->name, b->name) != 0))
		return false;
	return a->partition_count == b->partition_count && a->order_count == b->order_count &&
	       a->descending == b->descending && a->framed == b->framed && a->rows == b->rows &&
	       a->preceding == b->preceding && same_list(a->partition, b->partition, a->partition_count) &&
	       same_list(a->order, b->order, a->order_count);
}

static void push_pair(struct weir_buf *stack, const struct weir_ast *a, const struct weir_ast *b)
{
	const struct weir_ast *pair[2] = {a, b};
	weir_buf_put(stack, pair, sizeof pair);
}

/* Whether two nodes agree but for their arguments and filters. */
static bool same_node(const struct weir_ast *a, const struct weir_ast *b)
{
	return a->kind == b->kind && a->negated == b->negated && a->distinct == b->distinct &&
	       a->has_else == b->has_else && a->star_arg == b->star_arg && a->value == b->value &&
	       a->arg_count == b->arg_count && (a->filter == NULL) == (b->filter == NULL) && same_text(a, b) &&
	       same_over(a->over, b->over) && weir_type_equal(&a->type, &b->type);
}

bool weir_ast_equal(const struct weir_ast *a, const struct weir_ast *b)
{
	struct weir_buf stack = {0}; /* pairs still to compare; the first argument is followed at once */
	bool equal = true;
	for (;;) {
		equal = a == b || same_node(a, b);
		if (!equal)
			break;
		if (a != b && a->filter != NULL)
			push_pair(&stack, a->filter, b->filter);
		for (uint32_t i = 1; a != b && i < a->arg_count; i++)
			push_pair(&stack, a->args[i], b->args[i]);
		if (a != b && a->arg_count > 0) {
			const struct weir_ast *next = a->args[0];
			b = b->args[0];
			a = next;
			continue;
		}
		if (stack.bytes == 0)
			break;
		const struct weir_ast *pair[2];
		stack.bytes -= sizeof pair;
		memcpy(pair, stack.data + stack.bytes, sizeof pair);
		a = pair[0];
		b = pair[1];
	}
	weir_buf_fini(&stack);
	return equal;
}

/* ---- printing ---- */

/* Either a node to print or text to put out as it is. */
struct piece {
	const struct weir_ast *node;
	const char *text;
};

struct printer {
	struct weir_buf *out;
	struct weir_buf stack;  /* pieces, the next one on top */
	struct weir_buf pieces; /* of the node being taken apart, in reading order */
};

static void add(struct printer *pr, const struct weir_ast *node, const char *text)
{
	struct piece pc = {node, text};
	weir_buf_put(&pr->pieces, &pc, sizeof pc);
}

static void add_list(struct printer *pr, const struct weir_ast *a, uint32_t from, const char *separator)
{
	for (uint32_t i = from; i < a->arg_count; i++) {
		if (i > from)
			add(pr, NULL, separator);
		add(pr, a->args[i], NULL);
	}
}

static void add_over(struct printer *pr, const struct weir_ast_over *ov)
{
	add(pr, NULL, ov->name != NULL ? " OVER " : " OVER (");
	if (ov->name != NULL) {
		add(pr, NULL, ov->name);
		return;
	}
	for (uint32_t i = 0; i < ov->partition_count; i++) {
		add(pr, NULL, i == 0 ? "PARTITION BY " : ", ");
		add(pr, ov->partition[i], NULL);
	}
	for (uint32_t i = 0; i < ov->order_count; i++) {
		add(pr, NULL, i != 0 ? ", " : ov->partition_count != 0 ? " ORDER BY " : "ORDER BY ");
		add(pr, ov->order[i], NULL);
	}
	add(pr, NULL, ov->frame);
	add(pr, NULL, ")");
}

static void put_quoted(struct weir_buf *out, const char *text, uint32_t bytes, char quote)
{
	weir_buf_put_byte(out, (uint8_t)quote);
	for (uint32_t i = 0; i < bytes; i++) {
		if (text[i] == quote)
			weir_buf_put_byte(out, (uint8_t)quote);
		weir_buf_put_byte(out, (uint8_t)text[i]);
	}
	weir_buf_put_byte(out, (uint8_t)quote);
}

/* A name, quoted when it would not be read back as one. */
static void put_name(struct weir_buf *out, const char *name)
{
	size_t bytes = strlen(name);
	bool plain = bytes > 0 && !(name[0] >= '0' && name[0] <= '9') && !weir_word_is_reserved(name, bytes);
	for (size_t i = 0; plain && i < bytes; i++) {
		uint8_t c = (uint8_t)name[i];
		plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			c >= 0x80;
	}
	if (plain)
		weir_buf_put(out, name, bytes);
	else
		put_quoted(out, name, (uint32_t)bytes, '`');
}

static void put_leaf(struct weir_buf *out, const struct weir_ast *a)
{
	static const char hex[] = "0123456789abcdef";
	switch (a->kind) {
	case WEIR_AST_NULL:
		weir_buf_puts(out, "NULL");
		break;
	case WEIR_AST_TRUE:
		weir_buf_puts(out, "TRUE");
		break;
	case WEIR_AST_FALSE:
		weir_buf_puts(out, "FALSE");
		break;
	case WEIR_AST_STRING:
		put_quoted(out, a->text, a->text_bytes, '\'');
		break;
	case WEIR_AST_BYTES:
		weir_buf_puts(out, "X'");
		for (uint32_t i = 0; i < a->text_bytes; i++) {
			weir_buf_put_byte(out, (uint8_t)hex[(uint8_t)a->text[i] >> 4]);
			weir_buf_put_byte(out, (uint8_t)hex[(uint8_t)a->text[i] & 15]);
		}
		weir_buf_put_byte(out, '\'');
		break;
	case WEIR_AST_DATE:
	case WEIR_AST_TIME:
	case WEIR_AST_TIMESTAMP:
		weir_buf_puts(out, a->kind == WEIR_AST_DATE   ? "DATE "
				   : a->kind == WEIR_AST_TIME ? "TIME "
							      : "TIMESTAMP ");
		put_quoted(out, a->text, a->text_bytes, '\'');
		break;
	case WEIR_AST_INTERVAL:
		weir_buf_printf(out, "INTERVAL '%" PRId64 "' %s", a->value,
				a->type.kind == WEIR_KIND_INTERVAL_MONTH ? "MONTH" : "MILLISECOND");
		break;
	case WEIR_AST_COLUMN:
	case WEIR_AST_STAR:
		if (a->qualifier != NULL) {
			put_name(out, a->qualifier);
			weir_buf_puts(out, ".");
		}
		if (a->kind == WEIR_AST_STAR)
			weir_buf_puts(out, "*");
		else
			put_name(out, a->text);
		break;
	default: /* numbers and units as written */
		weir_buf_put(out, a->text, a->text_bytes);
	}
}

static bool is_operator(const struct weir_ast *a)
{
	char c = a->text[0];
	return a->arg_count >= 2 &&
	       (!((c >= 'A' && c <= 'Z') || c == '_') || strcmp(a->text, "AND") == 0 || strcmp(a->text, "OR") == 0);
}

static void split_call(struct printer *pr, const struct weir_ast *a)
{
	if (is_operator(a)) {
		add(pr, NULL, "(");
		for (uint32_t i = 0; i < a->arg_count; i++) {
			if (i > 0) {
				add(pr, NULL, " ");
				add(pr, NULL, a->text);
				add(pr, NULL, " ");
			}
			add(pr, a->args[i], NULL);
		}
		add(pr, NULL, ")");
		return;
	}
	if (strcmp(a->text, "NOT") == 0 || strcmp(a->text, "NEG") == 0) {
		add(pr, NULL, a->text[2] == 'T' ? "(NOT " : "(-");
		add(pr, a->args[0], NULL);
		add(pr, NULL, ")");
		return;
	}
	if (strcmp(a->text, "EXTRACT") == 0 && a->arg_count == 2) {
		add(pr, NULL, "EXTRACT(");
		add_list(pr, a, 0, " FROM ");
	} else if (a->arg_count == 2 && a->args[1]->kind == WEIR_AST_UNIT) {
		add(pr, NULL, a->text);
		add(pr, NULL, "(");
		add_list(pr, a, 0, " TO ");
	} else {
		add(pr, NULL, a->text);
		add(pr, NULL, a->star_arg ? "(*" : a->distinct ? "(DISTINCT " : "(");
		add_list(pr, a, 0, ", ");
	}
	add(pr, NULL, ")");
	if (a->filter != NULL) {
		add(pr, NULL, " FILTER (WHERE ");
		add(pr, a->filter, NULL);
		add(pr, NULL, ")");
	}
	if (a->over != NULL)
		add_over(pr, a->over);
}

static void split_case(struct printer *pr, const struct weir_ast *a)
{
	uint32_t pairs = a->arg_count / 2;
	add(pr, NULL, "CASE");
	for (uint32_t i = 0; i < pairs; i++) {
		add(pr, NULL, " WHEN ");
		add(pr, a->args[2 * i], NULL);
		add(pr, NULL, " THEN ");
		add(pr, a->args[2 * i + 1], NULL);
	}
	if (a->has_else) {
		add(pr, NULL, " ELSE ");
		add(pr, a->args[a->arg_count - 1], NULL);
	}
	add(pr, NULL, " END");
}

/* Takes a node with arguments apart; a leaf goes straight out. */
static void split(struct printer *pr, const struct weir_ast *a)
{
	switch (a->kind) {
	case WEIR_AST_CALL:
		split_call(pr, a);
		break;
	case WEIR_AST_CASE:
		split_case(pr, a);
		break;
	case WEIR_AST_CAST:
	case WEIR_AST_TRY_CAST:
		weir_buf_puts(pr->out, a->kind == WEIR_AST_CAST ? "CAST(" : "TRY_CAST(");
		add(pr, a->args[0], NULL);
		add(pr, NULL, " AS ");
		add(pr, a, "type");
		add(pr, NULL, ")");
		break;
	case WEIR_AST_IN:
		add(pr, NULL, "(");
		add(pr, a->args[0], NULL);
		add(pr, NULL, a->negated ? " NOT IN (" : " IN (");
		add_list(pr, a, 1, ", ");
		add(pr, NULL, "))");
		break;
	case WEIR_AST_BETWEEN:
	case WEIR_AST_LIKE:
		add(pr, NULL, "(");
		add(pr, a->args[0], NULL);
		add(pr, NULL, a->negated ? " NOT" : "");
		add(pr, NULL, a->kind == WEIR_AST_LIKE ? " LIKE " : " BETWEEN ");
		add_list(pr, a, 1, a->kind == WEIR_AST_LIKE ? " ESCAPE " : " AND ");
		add(pr, NULL, ")");
		break;
	case WEIR_AST_IS:
		add(pr, NULL, "(");
		add(pr, a->args[0], NULL);
		add(pr, NULL, a->negated ? " IS NOT " : " IS ");
		add(pr, NULL, a->text);
		if (a->arg_count == 2) {
			add(pr, NULL, " ");
			add(pr, a->args[1], NULL);
		}
		add(pr, NULL, ")");
		break;
	case WEIR_AST_INDEX:
		add(pr, a->args[0], NULL);
		add(pr, NULL, "[");
		add(pr, a->args[1], NULL);
		add(pr, NULL, "]");
		break;
	case WEIR_AST_FIELD:
		add(pr, a->args[0], NULL);
		add(pr, NULL, ".");
		add(pr, a, "field");
		break;
	default:
		put_leaf(pr->out, a);
	}
}

/* The piece of a node that is not a node: a CAST's type, a FIELD's name. */
static void put_detail(struct weir_buf *out, const struct piece *pc)
{
	char type[256];
	if (pc->text[0] == 't')
		weir_buf_puts(out, weir_type_text(&pc->node->type, type, sizeof type));
	else
		put_name(out, pc->node->text);
}

void weir_ast_print(const struct weir_ast *a, struct weir_buf *out)
{
	struct printer pr = {.out = out};
	size_t start = out->bytes;
	struct piece pc = {a, NULL};
	weir_buf_put(&pr.stack, &pc, sizeof pc);
	while (pr.stack.bytes > 0) {
		pr.stack.bytes -= sizeof pc;
		memcpy(&pc, pr.stack.data + pr.stack.bytes, sizeof pc);
		if (out->bytes - start > PRINT_BYTES_MAX) {
			weir_buf_puts(out, "...");
			break;
		}
		if (pc.node == NULL) {
			weir_buf_puts(out, pc.text);
			continue;
		}
		if (pc.text != NULL) {
			put_detail(out, &pc);
			continue;
		}
		pr.pieces.bytes = 0;
		split(&pr, pc.node);
		for (size_t n = pr.pieces.bytes; n > 0; n -= sizeof pc)
			weir_buf_put(&pr.stack, pr.pieces.data + n - sizeof pc, sizeof pc);
	}
	weir_buf_fini(&pr.stack);
	weir_buf_fini(&pr.pieces);
}
