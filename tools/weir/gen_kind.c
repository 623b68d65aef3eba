/* gen_kind.c: the kinds of events of `weir gen`: what each looks like and how its fields come about. An event is a
 * function of (seed, number) and, for prices, of the events before it. Main thread. */
#include "tools/weir/gen.h"
#include "hotpath/core/mem.h"

#include <stdlib.h>

enum {
	PURPOSE_ORDER = 1,
	PURPOSE_PAYMENT,
	PURPOSE_PRICE,
	PURPOSE_PRODUCT,
	PURPOSE_SALE,
	PURPOSE_LOGIN,
	PURPOSE_DEVICE,
	PURPOSE_ALERT,
	PURPOSE_ATTACK,
	PURPOSE_BASE_PRICE
};

enum { DEVICES_PER_USER = 3, ATTACK_PERIOD_MS = 30000, USERS_PER_ATTACK = 2000, HOUR_MS = 3600000 };

static const char digit_pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
	"55565758596061626364656667686970717273747576777879808182838485868788899091929394959697989900";

uint8_t *weir_gen_digits(uint8_t *to, uint64_t v, uint32_t width)
{
	uint8_t text[24];
	uint32_t at = sizeof text;
	while (v >= 100) {
		at -= 2;
		memcpy(text + at, digit_pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	at -= 2;
	memcpy(text + at, digit_pairs + 2 * v, 2);
	if (v < 10)
		at++;
	while (sizeof text - at < width)
		text[--at] = '0';
	memcpy(to, text + at, sizeof text - at);
	return to + (sizeof text - at);
}

/* ---- pieces of a value ---- */

static uint8_t *put_text(uint8_t *to, const char *s)
{
	size_t bytes = strlen(s);
	memcpy(to, s, bytes);
	return to + bytes;
}

static uint8_t *put_id(uint8_t *to, const struct weir_gen_id *id)
{
	memcpy(to, id->text, sizeof id->text); /* longer than the id: a fixed-size copy; the next piece overwrites */
	return to + id->bytes;
}

static void make_id(struct weir_gen_id *id, char letter, uint64_t number, uint32_t width)
{
	id->text[0] = (uint8_t)letter;
	id->text[1] = '-';
	id->bytes = (uint32_t)(weir_gen_digits(id->text + 2, number, width) - id->text);
}

static uint8_t *put_money(uint8_t *to, uint64_t cents)
{
	to = weir_gen_digits(to, cents / 100, 1);
	*to++ = '.';
	memcpy(to, digit_pairs + 2 * (cents % 100), 2);
	return to + 2;
}

static void end_value(struct weir_gen_event *ev, const uint8_t *end)
{
	ev->value_bytes = (uint32_t)(end - ev->value);
}

static uint32_t draw_subject(const struct weir_gen *g, struct weir_gen_rng *r, uint64_t i)
{
	uint32_t subject = weir_gen_zipf_draw(&g->zipf, r);
	return g->sequential ? (uint32_t)(i % g->keys) : subject;
}

/* ---- orders and their payments ---- */

/* The amount is an order's first draw, so that its payment finds it without knowing the rest. */
static uint64_t order_amount(struct weir_gen_rng *r)
{
	uint64_t cents = 100 + weir_gen_below(r, 24900);
	return weir_gen_below(r, 20) == 0 ? cents * 8 : cents;
}

static void make_order(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	static const char *const currencies[8] = {"EUR", "EUR", "EUR", "EUR", "EUR", "USD", "GBP", "CHF"};
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_ORDER, i);
	uint64_t cents = order_amount(&r);
	make_id(&ev->id[0], 'o', i, 10);
	make_id(&ev->id[1], 'm', draw_subject(g, &r, i), 6);
	make_id(&ev->id[2], 'c', weir_gen_below(&r, 10000000), 7);
	uint8_t *at = put_id(put_text(ev->value, "{\"order_id\":\""), &ev->id[0]);
	at = put_id(put_text(at, "\",\"merchant_id\":\""), &ev->id[1]);
	at = put_id(put_text(at, "\",\"customer_id\":\""), &ev->id[2]);
	at = put_money(put_text(at, "\",\"amount\":"), cents);
	at = put_text(put_text(at, ",\"currency\":\""), currencies[weir_gen_below(&r, 8)]);
	end_value(ev, put_text(at, "\""));
}

static int compare_payments(const void *a, const void *b)
{
	const struct weir_gen_payment *x = a;
	const struct weir_gen_payment *y = b;
	if (x->arrival != y->arrival)
		return x->arrival < y->arrival ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* When order i is paid, or -1: 95 % within the hour, 3 % later, 2 % never. The hour is shortened by twice the disorder:
 * an order may carry a time that much before its arrival, a payment at a partition's start that much after its own. */
static int64_t payment_time(const struct weir_gen *g, uint64_t i)
{
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_PAYMENT, i);
	uint64_t fate = weir_gen_below(&r, 100);
	if (fate < 2)
		return -1;
	int64_t bound = HOUR_MS - 2 * g->disorder_ms;
	if (fate < 5)
		return weir_gen_time(g, i) + HOUR_MS + 1 + (int64_t)weir_gen_exponential(&r, HOUR_MS / 2);
	int64_t delay = (int64_t)weir_gen_exponential(&r, HOUR_MS / 6);
	while (delay >= bound)
		delay = bound > 0 ? (int64_t)weir_gen_below(&r, (uint64_t)bound) : 0;
	return weir_gen_time(g, i) + delay;
}

static bool begin_payments(struct weir_gen *g)
{
	if (g->records > 200000000)
		return false;
	g->payment = weir_xmalloc((g->records + 1) * sizeof *g->payment);
	uint64_t count = 0;
	for (uint64_t i = 0; i < g->records; i++) {
		int64_t ts = payment_time(g, i);
		if (ts < 0)
			continue;
		struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_PAYMENT, ~i);
		g->payment[count++] = (struct weir_gen_payment){
			ts + (int64_t)weir_gen_below(&r, (uint64_t)g->disorder_ms + 1), (uint32_t)i};
	}
	qsort(g->payment, count, sizeof *g->payment, compare_payments);
	g->records = count;
	return true;
}

static void make_payment(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	uint64_t order = g->payment[i].order;
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_ORDER, order);
	make_id(&ev->id[0], 'o', order, 10);
	make_id(&ev->id[1], 'p', order, 10);
	uint8_t *at = put_id(put_text(ev->value, "{\"payment_id\":\""), &ev->id[1]);
	at = put_id(put_text(at, "\",\"order_id\":\""), &ev->id[0]);
	end_value(ev, put_money(put_text(at, "\",\"amount\":"), order_amount(&r)));
	ev->ts = payment_time(g, order);
}

/* ---- prices, products, sales ---- */

static bool begin_prices(struct weir_gen *g)
{
	g->price = weir_xmalloc(g->keys * sizeof *g->price);
	for (uint32_t k = 0; k < g->keys; k++) {
		struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_BASE_PRICE, k);
		g->price[k] = (int32_t)(100 + weir_gen_below(&r, 50000));
	}
	return true;
}

/* Most changes are small, one in ten may pass five per cent. */
static void make_price(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_PRICE, i);
	uint32_t product = draw_subject(g, &r, i);
	int64_t spread = weir_gen_below(&r, 10) == 0 ? 200 : 30; /* per mille, both ways */
	int64_t factor = 1000 - spread + (int64_t)weir_gen_below(&r, (uint64_t)(2 * spread + 1));
	int64_t cents = g->price[product] * factor / 1000;
	g->price[product] = (int32_t)(cents < 50 ? 50 : cents > 10000000 ? 10000000 : cents);
	make_id(&ev->id[0], 'a', product, 4);
	uint8_t *at = put_id(put_text(ev->value, "{\"product_id\":\""), &ev->id[0]);
	end_value(ev, put_money(put_text(at, "\",\"price\":"), (uint64_t)g->price[product]));
}

/* The first --keys events introduce every product; later ones change or (3 %) delete one. */
static void make_product(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	static const char *const makes[8] = {"Oak", "Steel", "Linen", "Glass", "Copper", "Cork", "Wool", "Clay"};
	static const char *const things[8] = {"chair", "lamp", "kettle", "basket", "clock", "bowl", "shelf", "rug"};
	static const char *const categories[6] = {"kitchen", "garden", "office", "living", "bath", "hall"};
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_PRODUCT, i);
	uint32_t product = draw_subject(g, &r, i);
	if (i < g->keys)
		product = (uint32_t)i;
	ev->value_null = i >= g->keys && weir_gen_below(&r, 100) < 3;
	make_id(&ev->id[0], 'a', product, 4);
	uint8_t *at = put_id(put_text(ev->value, "{\"product_id\":\""), &ev->id[0]);
	at = put_text(put_text(at, "\",\"name\":\""), makes[weir_gen_below(&r, 8)]);
	at = put_text(put_text(at, " "), things[weir_gen_below(&r, 8)]);
	at = put_text(put_text(at, "\",\"category\":\""), categories[weir_gen_below(&r, 6)]);
	end_value(ev, put_text(at, "\""));
}

/* One sale in fifty names a product that `weir gen products` with the same --keys does not know. */
static void make_sale(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_SALE, i);
	uint64_t product = draw_subject(g, &r, i);
	if (weir_gen_below(&r, 50) == 0 && !g->sequential)
		product += g->keys;
	make_id(&ev->id[0], 's', i, 10);
	make_id(&ev->id[1], 'a', product, 4);
	uint8_t *at = put_id(put_text(ev->value, "{\"sale_id\":\""), &ev->id[0]);
	at = put_id(put_text(at, "\",\"product_id\":\""), &ev->id[1]);
	end_value(ev, weir_gen_digits(put_text(at, "\",\"qty\":"), 1 + weir_gen_below(&r, 9), 1));
}

/* ---- logins, devices, alerts ---- */

/* One attempt in twenty fails; and in every half minute a few users are under attack and see failures in a row. */
static void make_login(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_LOGIN, i);
	uint32_t user = draw_subject(g, &r, i);
	bool ok = weir_gen_below(&r, 20) != 0;
	if (weir_gen_below(&r, 50) == 0 && !g->sequential) {
		uint64_t period = (uint64_t)(ev->ts / ATTACK_PERIOD_MS);
		struct weir_gen_rng attack = weir_gen_rng_at(
			g->seed, PURPOSE_ATTACK, period << 20 | weir_gen_below(&r, 1 + g->keys / USERS_PER_ATTACK));
		user = (uint32_t)weir_gen_below(&attack, g->keys);
		ok = false;
	}
	make_id(&ev->id[0], 'u', user, 5);
	uint8_t *at = put_id(put_text(ev->value, "{\"user_id\":\""), &ev->id[0]);
	end_value(ev, put_text(at, ok ? "\",\"ok\":true" : "\",\"ok\":false"));
}

/* The first --keys events give every user one active device; later ones change one of the user's three. */
static void make_device(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_DEVICE, i);
	uint64_t user = draw_subject(g, &r, i);
	uint64_t which = weir_gen_below(&r, DEVICES_PER_USER);
	bool gone = weir_gen_below(&r, 5) == 0;
	if (i < g->keys) {
		user = i;
		which = 0;
		gone = false;
	}
	make_id(&ev->id[0], 'd', user * DEVICES_PER_USER + which, 6);
	make_id(&ev->id[1], 'u', user, 5);
	uint8_t *at = put_id(put_text(ev->value, "{\"device_id\":\""), &ev->id[0]);
	at = put_id(put_text(at, "\",\"user_id\":\""), &ev->id[1]);
	end_value(ev, put_text(at, gone ? "\",\"status\":\"GONE\"" : "\",\"status\":\"ACTIVE\""));
}

static void make_alert(struct weir_gen *g, uint64_t i, struct weir_gen_event *ev)
{
	static const char *const messages[6] = {"new sign-in",   "password changed", "card added",
						"limit reached", "address changed",  "payout sent"};
	struct weir_gen_rng r = weir_gen_rng_at(g->seed, PURPOSE_ALERT, i);
	make_id(&ev->id[0], 'u', draw_subject(g, &r, i), 5);
	make_id(&ev->id[1], 'l', i, 10);
	uint8_t *at = put_id(put_text(ev->value, "{\"alert_id\":\""), &ev->id[1]);
	at = put_id(put_text(at, "\",\"user_id\":\""), &ev->id[0]);
	at = put_text(put_text(at, "\",\"message\":\""), messages[weir_gen_below(&r, 6)]);
	end_value(ev, put_text(at, "\""));
}

const struct weir_gen_kind weir_gen_kinds[] = {
	{"orders", "order.placed", {"order_id", "merchant_id", "customer_id"}, NULL, make_order},
	{"payments", "payment.settled", {"order_id", "payment_id"}, begin_payments, make_payment},
	{"prices", "price.changed", {"product_id"}, begin_prices, make_price},
	{"products", "product.updated", {"product_id"}, NULL, make_product},
	{"sales", "sale.made", {"sale_id", "product_id"}, NULL, make_sale},
	{"logins", "login.attempted", {"user_id"}, NULL, make_login},
	{"devices", "device.changed", {"device_id", "user_id"}, NULL, make_device},
	{"alerts", "alert.raised", {"user_id", "alert_id"}, NULL, make_alert},
	{NULL, NULL, {NULL}, NULL, NULL},
};

void weir_gen_end(struct weir_gen *g)
{
	weir_gen_zipf_fini(&g->zipf);
	free(g->price);
	free(g->payment);
}
