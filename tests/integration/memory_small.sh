#!/bin/bash
# memory_small.sh: the least memory.max there is for a job, and little more than that: whatever the job and its input, the
# process never holds more than memory.max and what a process takes that does nothing (code, libraries, stacks: 16 MiB),
# whether the run ends by itself or because state or results do not fit; less than a job needs is refused by name.
#   tests/integration/memory_small.sh [records]    200,000
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

records=${1:-200000}
base=16 # MiB

orders="CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'order.placed', 'format' = 'json');"
payments="CREATE TABLE payments (order_id STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'payment.settled', 'format' = 'json');"
into="WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'results', 'format' = 'json');"
paid="CREATE TABLE results (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
  paid TIMESTAMP_LTZ(3)) $into
INSERT INTO results SELECT o.order_id, o.merchant_id, o.customer_id, o.amount, o.currency, p.event_time"

# job NAME SQL
job() { printf '%s\n' "$2" >"$scratch/$1.sql"; }
job join "$orders $payments $paid FROM orders o JOIN payments p
ON o.order_id = p.order_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '5' MINUTE;"
job outer "$orders $payments $paid FROM orders o FULL JOIN payments p
ON o.order_id = p.order_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '5' MINUTE;"
job many "$orders $paid FROM orders o JOIN orders p
ON o.merchant_id = p.merchant_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '5' MINUTE;"
job window "$orders CREATE TABLE results (merchant_id STRING, ws TIMESTAMP_LTZ(3), revenue DECIMAL(38,2), n BIGINT) $into
INSERT INTO results SELECT merchant_id, window_start, SUM(amount), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY merchant_id, window_start, window_end;"
job flat "$orders CREATE TABLE results (order_id STRING, customer_id STRING, amount DECIMAL(12,2), ts BIGINT) $into
INSERT INTO results SELECT order_id, customer_id, amount, ts FROM orders;"
job beside "$orders CREATE TABLE payments (order_id STRING, ts BIGINT, PRIMARY KEY (order_id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'payment.settled', 'format' = 'json');
CREATE TABLE results (order_id STRING, merchant_id STRING, paid BIGINT) $into
INSERT INTO results SELECT o.order_id, o.merchant_id, p.ts FROM orders o LEFT JOIN payments p ON o.order_id = p.order_id;"
job twice "$orders CREATE TABLE results (n BIGINT, m BIGINT, PRIMARY KEY (n) NOT ENFORCED) $into
INSERT INTO results SELECT n, COUNT(*) AS m FROM (SELECT merchant_id, COUNT(*) AS n FROM orders GROUP BY merchant_id)
GROUP BY n;"
job pay "$orders CREATE TABLE payments (order_id STRING, ts BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')
WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'payment.settled', 'format' = 'json');
INSERT INTO payments SELECT order_id, ts + 2000, event_time + INTERVAL '2' SECOND FROM orders;"
# Records of 2,500 bytes: an order point comes for its bytes.
job large "$orders CREATE TABLE o (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2),
  currency STRING, ts BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')
WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'order.placed', 'format' = 'json');
INSERT INTO o SELECT order_id, merchant_id, REPEAT(order_id, 200), amount, currency, ts, event_time FROM orders;"

quietly() { "$@" >"$scratch/said" 2>&1 || {
	cat "$scratch/said"
	exit 1
}; }
for codec in none zstd lz4; do
	quietly "$weir" gen orders --records "$records" --keys 1000 --partitions 4 --rate 50 --seed 7 -z $codec --out "$scratch/$codec"
	quietly "$weir" run "$scratch/pay.sql" --define "in=$scratch/$codec"
done
quietly "$weir" gen orders --records $((records / 5)) --keys 1000 --partitions 4 --rate 50 --seed 7 --out "$scratch/few"
quietly "$weir" run "$scratch/large.sql" --define "in=$scratch/few" --define "out=$scratch/large"
quietly "$weir" run "$scratch/pay.sql" --define "in=$scratch/large"

# Runs job $1 on input $2 with $3 MiB and $4 workers; sets peak (KiB) and code.
run() {
	rm -rf "$scratch/out"
	/usr/bin/env time -f '%M' -o "$scratch/peak" "$weir" run "$scratch/$1.sql" --workers "$4" -X "memory.max=$3MiB" \
		--define "in=$scratch/$2" --define "out=$scratch/out" >"$scratch/said" 2>&1
	code=$?
	peak=$(tail -n 1 "$scratch/peak")
}
digest() { "$weir" dump "$scratch/out" results --digest; }
# within WHAT MIB: the last run held no more
within() {
	fine "$1: never more than $2 MiB and $base (peak $peak KiB)" [ "$peak" -le $((($2 + base) * 1024)) ]
}

for name in join outer window flat beside twice; do
	run $name none 2048 1
	fine "$name, with enough memory, ends" [ "$code" = 0 ]
	whole=$(digest)
	codecs=none
	[ $name = join ] || [ $name = flat ] && codecs="none zstd lz4"
	for codec in $codecs; do
		for size in 48 64 96 128 256; do
			for workers in 1 2; do
				what="$name, $codec, $workers workers, $size MiB"
				run $name $codec $size $workers
				case $code in
				0) fine "$what: the same bytes" [ "$(digest)" = "$whole" ] ;;
				1) fine "$what: says that state has outgrown it" grep -q 'has outgrown memory.max: [0-9]* entries' "$scratch/said" ;;
				*) fine "$what: says what it needs" grep -q "this job needs [0-9]*MiB with $workers worker" "$scratch/said" ;;
				esac
				[ $size -ge 96 ] && fine "$what: is enough" [ "$code" = 0 ]
				within "$what" $size
			done
		done
	done
done

for workers in 1 2; do
	for size in 64 96 128; do
		run join large $size $workers
		within "join of large records, $workers workers, $size MiB" $size
		fine "join of large records, $workers workers, $size MiB: state has outgrown it" \
			grep -q 'has outgrown memory.max: [0-9]* entries' "$scratch/said"
	done
	for size in 64 128 256; do
		run many none $size $workers
		within "fifteen rows for each, $workers workers, $size MiB" $size
		[ "$code" = 0 ] || fine "fifteen rows for each, $workers workers, $size MiB: says what does not fit" \
			grep -q 'the results of one order point.* have outgrown memory.max: [0-9]* of them' "$scratch/said"
	done
done

run join none 48 4
fine "less than four workers need is refused" [ "$code" = 78 ]
needs=$(sed -n 's/.*this job needs \([0-9]*\)MiB with 4 workers.*/\1/p' "$scratch/said")
fine "and the text says what they do need" [ -n "$needs" ]
run join none "${needs:-48}" 4
fine "which is taken" [ "$code" != 78 ]
within "four workers, $needs MiB" "${needs:-48}"
exit $((failures != 0))
