#!/bin/bash
# memory.sh: memory.max bounds what the process holds, whatever the state: state that needs more ends in a commit and a
# clear message, and the next run, with more memory, goes on to the same bytes as a run that had enough from the start.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

cat >"$scratch/job.sql" <<'SQL'
CREATE TABLE orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');
CREATE TABLE totals (order_id STRING, revenue DECIMAL(38,2), orders BIGINT, PRIMARY KEY (order_id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'totals', 'format' = 'json');
INSERT INTO totals SELECT order_id, SUM(amount) AS revenue, COUNT(*) AS orders FROM orders GROUP BY order_id;
SQL

"$weir" gen orders --records 2000000 --keys 1000 --partitions 8 --seed 7 --out "$scratch/in" >/dev/null 2>&1 || exit 1

# Runs the job with $1 of memory into $2; sets peak (KiB) and code.
run() {
	/usr/bin/env time -f '%M' -o "$scratch/peak" "$weir" run "$scratch/job.sql" --workers 2 -X "memory.max=$1" \
		--define "in=$scratch/in" --define "out=$2" >"$scratch/said" 2>&1
	code=$?
	peak=$(tail -n 1 "$scratch/peak")
}

run 2GiB "$scratch/whole"
fine "with enough memory the run ends by itself" [ "$code" = 0 ]
run 256MiB "$scratch/cut"
fine "state beyond memory.max ends the run with 1" [ "$code" = 1 ]
fine "the message names state, entries and bytes" grep -q 'state totals-group has outgrown memory.max: [0-9]* entries, [0-9]* bytes' "$scratch/said"
fine "the process never held more than 256 MiB (peak $peak KiB)" [ "$peak" -le 262144 ]
fine "and says what else would help" grep -q 'or let it forget keys (-X state.ttl=...), then start again' "$scratch/said"
run 2GiB "$scratch/cut"
fine "with more memory it resumes and ends" [ "$code" = 0 ]
fine "the same bytes as with enough from the start" \
	[ "$("$weir" dump "$scratch/cut" totals --digest)" = "$("$weir" dump "$scratch/whole" totals --digest)" ]
