#!/bin/bash
# kafka_flat.sh: a job without state on a real broker whose rows become several (UNNEST): two instances share its partitions,
# no changelog is made, and what was committed is not read again.
#   kafka_flat.sh                        prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

on_broker "UNNEST on a broker" kcat
start_broker
$kafka create "$scratch/broker" events 4 >/dev/null 2>&1 || not_ok "making topic events"
events() { # FROM TO
	local i
	for ((i = $1; i <= $2; i++)); do echo "e$i|{\"id\":\"e$i\",\"tags\":[\"a$i\",\"b$i\",\"c$i\"]}"; done |
		kcat -b "$b" -P -t events -K '|' -X topic.partitioner=murmur2_random
}
cat >"$scratch/flat.sql" <<'SQL'
CREATE TABLE events (id STRING, tags ARRAY<STRING>) WITH ('connector' = 'kafka', 'topic' = 'events', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE tagged (id STRING, tag STRING) WITH ('connector' = 'kafka', 'topic' = 'tagged', 'format' = 'json', 'key.format' = 'raw',
  'key.fields' = 'id');
INSERT INTO tagged SELECT id, tag FROM events CROSS JOIN UNNEST(tags) AS t (tag);
SQL
instance() { # NAME: in the background
	TMPDIR=$scratch "$weir" run "$scratch/flat.sql" -b "$b" >"$scratch/$1.said" 2>&1 &
}
rows() { "$weir" dump -b "$b" tagged --format raw 2>/dev/null | sort -u | wc -l; }
reaches() { # COUNT: distinct rows, within two minutes
	for ((try = 0; try < 240; try++)); do
		[ "$(rows)" = "$1" ] && return 0
		sleep 0.5
	done
	echo "$(rows) rows, not $1"
	return 1
}
shared() { # whether both instances have said that they have partitions of the topic
	"$weir" lag flat -b "$b" --format json 2>/dev/null | grep -o '"consumer_id":"[^"]*"' | sort -u | wc -l
}
events 1 2000
instance one
one=$!
fine "three rows of each record" reaches 6000
instance two
two=$!
for ((try = 0; try < 120; try++)); do
	[ "$(shared)" = 2 ] && break
	sleep 0.5
done
if [ "$(shared)" = 2 ]; then ok "two instances share the partitions"; else not_ok "two instances share the partitions: $("$weir" lag flat -b "$b" 2>&1)"; fi
events 2001 4000
fine "and all of what comes then" reaches 12000
kill -TERM $one $two
wait $one $two
topics=$(kcat -b "$b" -L | sed -n 's/.*topic "\(flat[^"]*\)".*/\1/p' | tr '\n' ' ')
if [ -z "$topics" ]; then ok "no topic of its own"; else not_ok "topics of its own: $topics"; fi
before=$("$weir" dump -b "$b" tagged --format raw 2>/dev/null | wc -l)
events 4001 4010
instance three
three=$!
fine "a later run goes on" reaches 12030
kill -TERM $three
wait $three
after=$("$weir" dump -b "$b" tagged --format raw 2>/dev/null | wc -l)
if [ "$((after - before))" = 30 ]; then ok "where the group was committed"; else not_ok "where the group was committed: $before rows, then $after"; fi
[ "$failures" = 0 ]
