#!/usr/bin/env python3
"""join_check.py: records for kafka_join.sh, and what its jobs must make of them, computed here from the same records
without any of weir's code.

    join_check.py make DIR SEED N             DIR/<topic>: a record a line, key|value for `kcat -P -K '|'`; a line
                                              without a value is a tombstone (`kcat -Z`)
    join_check.py streams DIR KIND KEEP       rows (`weir dump`, one JSON object a line) on stdin; KIND inner, left or
                                              full; KEEP: see below
    join_check.py asof DIR KEEP               sales with the product's version of their time
    join_check.py latest DIR KEEP             clicks with their user, whose table was complete before
    join_check.py tables DIR KEEP             prices left join stocks: every row is a pair that was, in order, and the
                                              last of a key is the one that is
    join_check.py groups DIR KEEP             members by region: the last row of a group is right
    join_check.py located DIR KEEP            members with the area their region names: the last row of a member is right
    join_check.py totals DIR KEEP             orders and payments by customer, joined: the last row of a customer is right

KEEP says what may happen to results: exact (each once), again (some more than once, none missing), missing (none more
than once, some not there).

Event times are disordered by less than two seconds within a partition; the jobs wait five. So nothing is late, and which
rows meet depends on their times alone, not on the order in which the topics' records are taken."""
import collections
import json
import os
import random
import sys

BASE = 1767225600000  # 2026-01-01
AFTER = 10000  # a payment counts up to so long behind its order


def lines(directory, name):
    with open(os.path.join(directory, name)) as f:
        for line in f:
            key, _, value = line.rstrip("\n").partition("|")
            yield key, json.loads(value) if value else None


def make(directory, seed, n):
    rng = random.Random(seed)
    os.makedirs(directory, exist_ok=True)

    def write(name, records):  # [(time, key, value)]: arrives in order of a time that is up to 2 s off
        records.sort(key=lambda r: r[0] + rng.randrange(2000))
        with open(os.path.join(directory, name), "w") as f:
            for _, key, value in records:
                f.write(key + "|" + (json.dumps(value, separators=(",", ":")) if value is not None else "") + "\n")

    orders, payments = [], []
    for i in range(n):
        ts = BASE + i * 20
        oid = "o-%06d" % i
        # customer stands for another key by which the same pairs meet
        customer = "c-%04d" % (i * 7919 % 2000)
        if rng.random() < 0.9:
            orders.append((ts, oid, {"order_id": oid, "customer": customer, "amount": i, "ts": ts}))
        for k in range(rng.choice((0, 1, 1, 1, 2))):
            at = ts + rng.randrange(-3000, 14000)
            pid = "p-%06d-%d" % (i, k)
            payments.append((at, oid, {"payment_id": pid, "order_id": oid, "customer": customer, "ts": at}))
    write("orders", orders)
    write("payments", payments)
    # The same again, keyed by something else than what they are joined by.
    for name, field in (("orders", "customer"), ("payments", "payment_id")):
        rows = [(v["ts"], v[field], v) for _, v in lines(directory, name)]
        with open(os.path.join(directory, name + "-by-other"), "w") as f:
            for _, key, value in rows:
                f.write(key + "|" + json.dumps(value, separators=(",", ":")) + "\n")

    sales, products = [], []
    names = ["prod-%03d" % i for i in range(300)]
    for i in range(n):
        ts = BASE + i * 20
        name = rng.choice(names)
        sales.append((ts, name, {"sale_id": "s-%06d" % i, "product_id": name, "ts": ts}))
    taken = set()
    for i in range(n // 8):
        ts = BASE + rng.randrange(n * 20)
        name = rng.choice(names[:280])  # some products are never told of
        if (name, ts) in taken:
            continue
        taken.add((name, ts))
        products.append((ts, name, {"product_id": name, "version": i, "ts": ts}))
    write("sales", sales)
    with open(os.path.join(directory, "sales-by-other"), "w") as f:
        for _, v in lines(directory, "sales"):
            f.write(v["sale_id"] + "|" + json.dumps(v, separators=(",", ":")) + "\n")
    write("products", products)

    users, clicks = {}, []
    with open(os.path.join(directory, "users"), "w") as f:
        for i in range(n // 10):
            user = "u-%04d" % rng.randrange(500)
            users[user] = None if rng.random() < 0.2 else {"name": "name-%d" % i}
            f.write(user + "|" + (json.dumps(users[user]) if users[user] else "") + "\n")
    for i in range(n):
        user = "u-%04d" % rng.randrange(600)
        clicks.append((i, user, {"click_id": "k-%06d" % i, "user_id": user}))
    write("clicks", clicks)

    for name in ("prices", "stocks"):
        with open(os.path.join(directory, name), "w") as f:
            for i in range(n // 2):
                key = "w-%03d" % rng.randrange(400)
                f.write(key + "|" + ("" if rng.random() < 0.1 else json.dumps({"v": i})) + "\n")
    with open(os.path.join(directory, "areas"), "w") as f:
        for i in range(n // 20):
            key = "r-%02d" % rng.randrange(70)
            f.write(key + "|" + ("" if rng.random() < 0.2 else json.dumps({"name": "area-%d" % i})) + "\n")
    with open(os.path.join(directory, "members"), "w") as f:
        for i in range(n):
            key = "m-%04d" % rng.randrange(3000)
            value = {"region": "r-%02d" % rng.randrange(60), "points": rng.randrange(1000)}
            f.write(key + "|" + ("" if rng.random() < 0.1 else json.dumps(value)) + "\n")


def last_rows():
    now = {}
    for r in rows():
        now[r["key"]] = payload(r) if r["payload"] is not None else None
    return now


def rows():
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


def payload(row):
    v = row["payload"]
    return json.loads(v) if isinstance(v, str) else v


def compare(found, expected, keep):
    """Both Counters of rows."""
    wrong = []
    for row, times in found.items():
        if row not in expected:
            wrong.append("not to be: %s" % (row,))
        elif times > expected[row] and keep != "again":
            wrong.append("%d times: %s" % (times, row))
    if keep != "missing":
        wrong += ["missing: %s" % (row,) for row in expected if found[row] < expected[row]]
    if not expected or (keep == "missing" and sum(found.values()) < sum(expected.values()) // 2):
        wrong.append("%d rows of %d" % (sum(found.values()), sum(expected.values())))
    return wrong


def streams(directory, kind, keep):
    orders = {v["order_id"]: v for _, v in lines(directory, "orders")}
    expected, paid = collections.Counter(), set()
    for _, p in lines(directory, "payments"):
        o = orders.get(p["order_id"])
        if o and o["ts"] <= p["ts"] <= o["ts"] + AFTER:
            expected[(o["order_id"], p["payment_id"], o["amount"])] += 1
            paid.add(o["order_id"])
        elif kind == "full":
            expected[(None, p["payment_id"], None)] += 1
    if kind != "inner":
        for o in orders.values():
            if o["order_id"] not in paid:
                expected[(o["order_id"], None, o["amount"])] += 1
    found = collections.Counter()
    for r in rows():
        v = payload(r)
        found[(v["order_id"], v["payment_id"], v["amount"])] += 1
    return compare(found, expected, keep)


def asof(directory, keep):
    versions = collections.defaultdict(list)
    for _, v in lines(directory, "products"):
        versions[v["product_id"]].append((v["ts"], v["version"]))
    expected = collections.Counter()
    for _, s in lines(directory, "sales"):
        known = [v for v in versions[s["product_id"]] if v[0] <= s["ts"]]
        expected[(s["sale_id"], max(known)[1] if known else None)] += 1
    found = collections.Counter((payload(r)["sale_id"], payload(r)["version"]) for r in rows())
    return compare(found, expected, keep)


def latest(directory, keep):
    users = dict(lines(directory, "users"))
    expected = collections.Counter()
    for _, c in lines(directory, "clicks"):
        u = users.get(c["user_id"])
        expected[(c["click_id"], u["name"] if u else None)] += 1
    found = collections.Counter((payload(r)["click_id"], payload(r)["name"]) for r in rows())
    return compare(found, expected, keep)


def tables(directory, keep):
    """Versions of each side are numbers that only rise, so a row that comes again or a pair that never was shows."""
    last = {}
    for name in ("prices", "stocks"):
        last[name] = {k: v["v"] if v else None for k, v in lines(directory, name)}
    wrong, now = [], {}
    before = collections.defaultdict(lambda: (-1, -1))
    for r in rows():
        key, v = r["key"], r["payload"]
        if v is None:
            if keep == "exact" and now.get(key, None) is None:
                wrong.append("deleted, and was not there: %s" % key)
            now[key] = None
            continue
        v = payload(r)
        pair = (v["price"], v["stock"])
        if keep == "exact":
            seen = before[key]
            if now.get(key) == pair and pair[1] is not None:  # deleting what is not there is an update, too
                wrong.append("twice: %s %s" % (key, pair))
            if pair[0] < seen[0] or (pair[1] is not None and pair[1] < seen[1]):
                wrong.append("back to %s after %s: %s" % (pair, seen, key))
            before[key] = (pair[0], seen[1] if pair[1] is None else pair[1])
        now[key] = pair
    for key in set(last["prices"]) | set(now):
        price = last["prices"].get(key)
        should = None if price is None else (price, last["stocks"].get(key))
        if now.get(key) != should and keep != "missing":
            wrong.append("%s ends as %s, should be %s" % (key, now.get(key), should))
    if len(now) < 100:
        wrong.append("only %d keys" % len(now))
    return wrong


def groups(directory, keep):
    members = dict(lines(directory, "members"))
    should = collections.defaultdict(lambda: [0, 0])
    for v in members.values():
        if v:
            should[v["region"]][0] += 1
            should[v["region"]][1] += v["points"]
    now = {}
    for r in rows():
        v = r["payload"]
        now[r["key"]] = None if v is None else [payload(r)["members"], payload(r)["points"]]
    return ["%s ends as %s, should be %s" % (k, now.get(k), should.get(k))
            for k in set(now) | set(should) if now.get(k) != should.get(k) and keep != "missing"]


def located(directory, keep):
    areas = dict(lines(directory, "areas"))
    should = {}
    for key, m in dict(lines(directory, "members")).items():
        area = areas.get(m["region"]) if m else None
        should[key] = m and {"points": m["points"], "name": area["name"] if area else None}
    now = last_rows()
    return ["%s ends as %s, should be %s" % (k, now.get(k), should.get(k))
            for k in set(now) | set(should) if now.get(k) != should.get(k) and keep != "missing"]


def totals(directory, keep):
    should = {}
    paid = collections.Counter(p["customer"] for _, p in lines(directory, "payments"))
    for _, o in lines(directory, "orders"):
        t = should.setdefault(o["customer"], [0, 0, paid[o["customer"]] or None])
        t[0] += 1
        t[1] += o["amount"]
    now = {}
    for r in rows():
        v = payload(r) if r["payload"] is not None else None
        now[r["key"]] = v and [v["orders"], v["amount"], v["payments"]]
    return ["%s ends as %s, should be %s" % (k, now.get(k), should.get(k))
            for k in set(now) | set(should) if now.get(k) != should.get(k) and keep != "missing"]


def numbered(directory, keep):
    """How many customers have an order number so and so."""
    orders = collections.Counter(o["customer"] for _, o in lines(directory, "orders"))
    should = collections.Counter(str(n) for count in orders.values() for n in range(1, count + 1))
    now = {r["key"]: payload(r)["customers"] if r["payload"] is not None else None for r in rows()}
    return ["%s ends as %s, should be %s" % (k, now.get(k), should.get(k))
            for k in set(now) | set(should) if now.get(k) != should.get(k) and keep != "missing"]


def main():
    verb = sys.argv[1]
    if verb == "make":
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return 0
    wrong = globals()[verb](*sys.argv[2:])
    for line in wrong[:10]:
        print(line)
    if len(wrong) > 10:
        print("%d more" % (len(wrong) - 10))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
