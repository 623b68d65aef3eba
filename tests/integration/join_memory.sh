#!/bin/bash
# join_memory.sh: orders joined with payments within an hour hold no more than memory.max, however long the topics are:
# what has left the hour goes. Every order is paid two seconds after it was placed, so each has one row, no more.
#   tests/integration/join_memory.sh [--full]    --full: two topics of 10 million records each in 512 MiB, and with the
#                                                default; else 500,000 each in 128 MiB
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

records=500000
rate=50 # records a second of event time: 180,000 an hour, and nearly three hours
budget=128
if [ "${1:-}" = --full ]; then
	records=10000000
	rate=250 # 900,000 an hour, and eleven hours
	budget=512
fi

sources="CREATE TABLE orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'order.placed', 'format' = 'json');"
cat >"$scratch/pay.sql" <<SQL
$sources
CREATE TABLE payments (order_id STRING, ts BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'payment.settled', 'format' = 'json');
INSERT INTO payments SELECT order_id, ts + 2000, event_time + INTERVAL '2' SECOND FROM orders;
SQL
cat >"$scratch/join.sql" <<SQL
$sources
CREATE TABLE payments (order_id STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'payment.settled', 'format' = 'json');
CREATE TABLE paid (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), paid TIMESTAMP_LTZ(3))
WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'paid', 'format' = 'json');
INSERT INTO paid SELECT o.order_id, o.merchant_id, o.amount, p.event_time FROM orders o JOIN payments p
ON o.order_id = p.order_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' HOUR;
SQL

"$weir" gen orders --records $records --keys 1000 --partitions 4 --rate $rate --seed 7 --out "$scratch/in" >/dev/null 2>&1 &&
	"$weir" run "$scratch/pay.sql" --define "in=$scratch/in" >/dev/null 2>&1 || exit 1

# Runs the job with these arguments; sets peak (KiB), code and results.
run() {
	rm -rf "$scratch/out"
	/usr/bin/env time -f '%M' -o "$scratch/peak" "$weir" run "$scratch/join.sql" --workers 1 \
		--define "in=$scratch/in" --define "out=$scratch/out" "$@" >"$scratch/said" 2>&1
	code=$?
	peak=$(tail -n 1 "$scratch/peak")
	results=$(sed -n 's/.* \([0-9]*\) results.*/\1/p' "$scratch/said")
}

run -X "memory.max=${budget}MiB"
fine "two topics of $records records are joined in $budget MiB" [ "$code" = 0 ]
fine "one row for each order" [ "$results" = $records ]
fine "the process never held more than $budget MiB (peak $peak KiB)" [ "$peak" -le $((budget * 1024)) ]
if [ "${1:-}" = --full ]; then
	first=$("$weir" dump "$scratch/out" paid --digest)
	run
	fine "with the default memory.max the same bytes (peak $peak KiB)" \
		[ "$code:$first" = "0:$("$weir" dump "$scratch/out" paid --digest)" ]
fi
exit $((failures != 0))
