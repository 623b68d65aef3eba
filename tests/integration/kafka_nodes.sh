#!/bin/bash
# kafka_nodes.sh: the revenue job on a cluster of three nodes of which one is killed under load and comes back: leaders of
# input, changelog and results move, and so do the coordinators of the group and of transactions; the results equal the
# check.
#   kafka_nodes.sh [--full]      --full: every node in turn, two instances; prints `ok NAME` or
#                                `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

full=0
[ "${1:-}" = --full ] && full=1
on_broker "jobs on three nodes" kcat jq
export WEIR_KAFKA_HEAP=256m
start_broker --nodes 3

records=100000 partitions=4 rate=12000
[ $full = 1 ] && records=400000
in=$scratch/in
"$weir" gen orders --records $records --keys 2000 --partitions $partitions --seed 7 --rate 400 --key merchant_id \
	--disorder-ms 2000 --late 0.001 --bad 0.001 --out "$in" -q || exit 1
# A topic that was just made may have no leader known everywhere for a moment.
"$weir" replay "$in" order.placed -b "$b" -q || {
	not_ok "replaying the recording"
	exit 1
}

leader_of() { # TOPIC PARTITION: the node
	kcat -b "$b" -L -J -t "$1" 2>/dev/null | jq -r --argjson p "$2" '.topics[0].partitions[] | select(.partition == $p) | .leader'
}
job() { # APP GUARANTEE
	cat >"$scratch/$1.sql" <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'kafka', 'topic' = 'order.placed', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'merchant_id',
		  'scan.bounded.mode' = 'latest-offset');
		CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2),
		  orders BIGINT)
		WITH ('connector' = 'kafka', 'topic' = '$1', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'merchant_id');
		INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))
		GROUP BY window_start, window_end, merchant_id;
	SQL
}
instance() { # APP GUARANTEE: run as `instance ... &`
	exec "$weir" run "$scratch/$1.sql" -b "$b" -X "processing.guarantee=$2" -X scan.rate=$rate -X commit.interval.ms=100 \
		2>"$scratch/$1.$BASHPID.said"
}
# Readers of committed records see the last of it a moment after its commit was answered.
exact() { # APP GUARANTEE
	for ((try = 0; try < 60; try++)); do
		"$weir" dump -b "$b" "$1" >"$scratch/rows" 2>"$scratch/rows.said" || break
		grep -q 'open transaction' "$scratch/rows.said" || break
		sleep 0.5
	done
	if [ "$2" = at_least_once ]; then # a row may come again; every one of them is right
		jq -c '{p: .partition, k: .key, v: .payload}' "$scratch/rows" | sort -u |
			jq -c '{key: .k, payload: .v, partition: .p, offset: 0, ts: 0, topic: "x"}' >"$scratch/rows.once"
		mv "$scratch/rows.once" "$scratch/rows"
	fi
	"$check_revenue" --in "$in" --topic order.placed --window tumble --size 300000 --emit final --by merchant_id <"$scratch/rows"
}
replace() { # NODE: gone for some seconds
	$kafka kill "$scratch/broker" "$1" || not_ok "killing node $1"
	sleep 4
	$kafka start "$scratch/broker" >/dev/null || not_ok "starting node $1 again"
}

run_through() { # APP GUARANTEE TOPIC-WHOSE-LEADER-GOES
	local pids=() pid code
	job "$1"
	instance "$1" "$2" &
	pids+=($!)
	if [ $full = 1 ]; then
		instance "$1" "$2" &
		pids+=($!)
	fi
	for ((k = 0; k < 300; k++)); do # it is at work
		[ "$("$weir" lag "$1" -b "$b" --format json 2>/dev/null | jq '[.partitions // .rows | .[] | .current_offset // 0] | add' 2>/dev/null)" != 0 ] &&
			kcat -b "$b" -L -J -t "$3" 2>/dev/null | jq -e '.topics[0].partitions | length > 0' >/dev/null && break
		sleep 0.1
	done
	if [ $full = 1 ]; then
		for node in 1 2 3; do replace $node; done
	else
		replace "$(leader_of "$3" 0)"
	fi
	for pid in "${pids[@]}"; do
		for ((k = 0; k < 1800; k++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null && not_ok "$1: hangs: $(tail -n 3 "$scratch/$1.$pid.said" | tr '\n' ' ')"
		wait "$pid"
		code=$?
		if [ $code = 0 ]; then
			ok "$2: goes on when the leader of ${3##*-} is killed"
		else
			not_ok "$2: exit code $code after a node was killed: $(tail -n 3 "$scratch/$1.$pid.said" | tr '\n' ' ')"
		fi
	done
	fine "$2: a node was killed: the results equal the check" exact "$1" "$2"
}

run_through once exactly_once once
run_through least at_least_once least-revenue-tumble-changelog
[ "$failures" = 0 ]
