#!/bin/bash
# kafka_wait.sh: a join on a real broker that begins behind: rows of a stream meet the table as it stood at their time, though
# the table's topic is longer and comes later over the wire (join.wait.ms), and though a few of the stream's rows span many of
# the table's; and an input that stays silent is not waited for.
#   kafka_wait.sh [--full]               --full: ten times the clicks, more than is kept while others are waited for; prints
#                                        `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

records=100000
clicks=30000
[ "${1:-}" = --full ] && clicks=300000
make_topic=$(dirname "$weir")/tests/make_topic
on_broker "joins that wait" kcat jq "$make_topic"
start_broker
for topic in users clicks quiet; do
	$kafka create "$scratch/broker" $topic 2 >/dev/null 2>&1 || not_ok "making topic $topic"
done
# Users long ago, clicks today; each user is clicked on a little.
seq "$records" | awk '{ printf "u%d|{\"user_id\":\"u%d\",\"name\":\"n%d\",\"ts\":%d}\n", $1, $1, $1, 1000 + $1 }' |
	kcat -b "$b" -P -t users -K '|' -X topic.partitioner=murmur2_random
seq $clicks | awk -v n="$records" '{ u = $1 * 7919 % n + 1; printf "u%d|{\"click_id\":\"c%d\",\"user_id\":\"u%d\",\"ts\":%d}\n", u, $1, u, 10000000 + $1 }' |
	kcat -b "$b" -P -t clicks -K '|' -X topic.partitioner=murmur2_random
time="event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time"
# wait_sql APP TABLE-TOPIC BOUNDED
wait_sql() {
	cat <<-SQL
		CREATE TABLE users (user_id STRING, name STRING, ts BIGINT, $time, PRIMARY KEY (user_id) NOT ENFORCED)
		  WITH ('connector' = 'upsert-kafka', 'topic' = '$2', 'value.format' = 'json', 'key.format' = 'raw'$3);
		CREATE TABLE clicks (click_id STRING, user_id STRING, ts BIGINT, $time) WITH ('connector' = 'kafka', 'topic' = 'clicks',
		  'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'user_id', 'scan.startup.mode' = 'earliest-offset'$3);
		CREATE TABLE known (click_id STRING, name STRING) WITH ('connector' = 'kafka', 'topic' = '$1', 'format' = 'json',
		  'key.format' = 'raw', 'key.fields' = 'click_id');
		INSERT INTO known SELECT c.click_id, u.name FROM clicks c LEFT JOIN users u ON c.user_id = u.user_id;
	SQL
}
bounded=", 'scan.bounded.mode' = 'latest-offset'"
joined() { # APP: rows, and those without a match
	settled "$1"
	echo "$(wc -l <"$scratch/rows") rows, $(grep -c 'name[\\":]*null' "$scratch/rows") alone"
}
for run in 1 2 3; do
	app=waits$run
	wait_sql $app users "$bounded" >"$scratch/$app.sql"
	if ! timeout 120 "$weir" run "$scratch/$app.sql" -b "$b" -g $app 2>"$scratch/said"; then
		not_ok "run $run: $(tail -n 3 "$scratch/said")"
	fi
	got=$(joined $app)
	if [ "$got" = "$clicks rows, 0 alone" ]; then ok "run $run: every click has its user"; else not_ok "run $run: $got"; fi
done

# ---- a thousand clicks among 300,000 users: more than one order point takes of them, to any of its clicks ----
seq 0 299999 | awk '{ k = $1 % 1000; printf "{\"partition\":%d,\"key\":\"u%d\",\"value\":{\"v\":%d},\"timestamp\":%d}\n", k % 2, k, $1, 1000000 + int($1 / 3) }' |
	"$make_topic" "$scratch/rec" dense-users --partitions 2 --batch 1000
seq 0 999 | awk '{ k = $1 * 7919 % 1000; printf "{\"partition\":%d,\"key\":\"u%d\",\"value\":{\"c\":%d},\"timestamp\":%d}\n", k % 2, k, $1, 1000000 + $1 * 100 }' |
	"$make_topic" "$scratch/rec" dense-clicks --partitions 2 --batch 1000
seq 0 999 | awk '{ k = $1 * 7919 % 1000; v = $1 * 300 + 2; v -= (v - k + 1000) % 1000; printf "{\"c\":%d,\"v\":%s}\n", $1, v < 0 ? "null" : v }' >"$scratch/want"
for topic in dense-users dense-clicks; do "$weir" replay "$scratch/rec" $topic -b "$b" --speed max -q || not_ok "replay of $topic"; done
for exchange in auto local; do
	keyed="'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY'$bounded"
	cat >"$scratch/dense.sql" <<-SQL
		CREATE TABLE users (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'dense-users', $keyed);
		CREATE TABLE clicks (k STRING, c BIGINT) WITH ('connector' = 'kafka', 'topic' = 'dense-clicks', 'key.fields' = 'k', $keyed);
		CREATE TABLE met (c BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'dense-$exchange', 'format' = 'json');
		INSERT INTO met SELECT c.c, u.v FROM clicks c LEFT JOIN users u ON c.k = u.k;
	SQL
	timeout 120 "$weir" run "$scratch/dense.sql" -b "$b" -g dense-$exchange -X exchange=$exchange -q 2>"$scratch/said" || not_ok "dense, $exchange: $(tail -n 3 "$scratch/said")"
	settled dense-$exchange
	# Rows come twice where the group gave the job up, which has stood still for too long: not what is looked at here.
	jq -r .payload "$scratch/rows" | sort -u | sort -t : -k 2n >"$scratch/got"
	fine "each click meets its user as it was then, exchange=$exchange" cmp "$scratch/want" "$scratch/got"
done

# ---- a table that nobody writes to: its end is seen, and nothing waits ----
wait_sql quiet_app quiet "" >"$scratch/quiet.sql"
timeout 120 "$weir" run "$scratch/quiet.sql" -b "$b" -g quiet_app -X join.wait.ms=1h 2>"$scratch/said" &
job=$!
rows() { "$weir" dump -b "$b" quiet_app --format raw 2>/dev/null | wc -l; }
for ((try = 0; try < 160; try++)); do
	[ "$(rows)" -ge "$clicks" ] && break
	sleep 0.5
done
kill -TERM $job
wait $job
got=$(joined quiet_app)
if [ "$got" = "$clicks rows, $clicks alone" ]; then
	ok "a silent table is not waited for"
else
	not_ok "a silent table is not waited for: $got; $(tail -n 2 "$scratch/said" | tr '\n' ' ')"
fi
[ "$failures" = 0 ]
