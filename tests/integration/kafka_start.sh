#!/bin/bash
# kafka_start.sh: jobs that start while something is not as it should be yet: halted for longer than any wait at whatever it
# was doing (SIGSTOP, as a machine that sleeps does), with an input topic that is made only now, or that nobody has made;
# and whose input topic is deleted while they run.
#   kafka_start.sh [--full] [--only SECTION]     --full: halted at twice as many places; sections: halted new gone; prints
#                                        `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

options "$@"
on_broker "starting on a broker" kcat jq
start_broker
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }
job() { # APP TOPIC
	cat >"$scratch/$1.sql" <<-SQL
		CREATE TABLE t (v STRING) WITH ('connector' = 'kafka', 'topic' = '$2', 'format' = 'raw', 'scan.bounded.mode' = 'latest-offset');
		CREATE TABLE counted (v STRING, n BIGINT, PRIMARY KEY (v) NOT ENFORCED)
		WITH ('connector' = 'upsert-kafka', 'topic' = '$1-out', 'key.format' = 'raw', 'value.format' = 'json');
		INSERT INTO counted SELECT v, COUNT(*) AS n FROM t GROUP BY v;
	SQL
}

# ---- halted for 13 s after so many milliseconds, all of them at once; then they go on as if nothing had been ----
if wants halted; then
	$kafka create "$scratch/broker" input 4 2>/dev/null
	seq 1000 | sed 's/.*/&:x/' | kcat -b "$b" -P -t input -K: -X topic.partitioner=murmur2_random
	places="5 20 35 50 70 90 120 160 220 300 500 800"
	[ -z "$full" ] || places="$places 10 27 42 60 80 105 140 190 260 400 650 1500"
	declare -A pids=()
	for ms in $places; do
		job "halted$ms" input
		"$weir" run "$scratch/halted$ms.sql" -b "$b" -X processing.guarantee=exactly_once 2>"$scratch/halted$ms.said" &
		pids[$ms]=$!
		sleep "$(printf '0.%04d' $((ms * 10)))" 2>/dev/null
		kill -STOP "${pids[$ms]}" 2>/dev/null
	done
	sleep 13
	kill -CONT "${pids[@]}" 2>/dev/null # some were done before
	for ms in $places; do
		wait "${pids[$ms]}"
		code=$?
		got=$("$weir" dump -b "$b" "halted$ms-out" 2>/dev/null | jq -s 'last | .payload | fromjson | .n' 2>/dev/null)
		if [ $code = 0 ] && [ "$got" = 1000 ]; then
			ok "halted after $ms ms: goes on and is exact"
		else
			not_ok "halted after $ms ms: exit code $code, $got of 1000 records: $(tail -n 3 "$scratch/halted$ms.said")"
		fi
	done
fi

# ---- an input topic that is made a moment later, and one that is not ----
if wants new; then
	"$weir" gen orders --records 10 --keys 2 --partitions 1 --out "$scratch/in" -q
	job late late
	timeout 60 "$weir" run "$scratch/late.sql" -b "$b" 2>"$scratch/late.said" &
	pid=$!
	sleep 0.4
	fine "a topic is made" "$weir" replay "$scratch/in" order.placed -b "$b" -t late -q
	wait $pid
	code=$?
	[ $code = 0 ] && ok "a topic that is made a moment later is waited for" ||
		not_ok "a topic that is made a moment later: exit code $code: $(tail -n 3 "$scratch/late.said")"
	job never never
	expect "one that is not is named" 78 "there is no topic 'never' on $b" timeout 60 "$weir" run "$scratch/never.sql" -b "$b"
	expect "with what to do" 78 'kafka-topics.sh --bootstrap-server .* --create --topic never' \
		timeout 60 "$weir" run "$scratch/never.sql" -b "$b"
	expect "one that is spelled wrong, too" 78 "did you mean 'late'" \
		timeout 60 "$weir" run <(sed "s/'topic' = 'late'/'topic' = 'latr'/" "$scratch/late.sql") -b "$b" -g latr
fi

# ---- an input topic that is deleted under a job: told, and the job ends ----
if wants gone; then
	$kafka create "$scratch/broker" gone 2 2>/dev/null
	seq 100 | kcat -b "$b" -P -t gone
	job gone gone
	sed -i "s/, 'scan.bounded.mode' = 'latest-offset'//" "$scratch/gone.sql"
	timeout -s KILL 120 "$weir" run "$scratch/gone.sql" -b "$b" 2>"$scratch/gone.said" &
	pid=$!
	read_all() { "$weir" lag gone -b "$b" --format json 2>/dev/null | jq -e '[.partitions[].current_offset] | add == 100'; }
	for ((try = 0; try < 60; try++)); do
		read_all >/dev/null 2>&1 && break
		sleep 0.5
	done
	fine "a topic is deleted" $kafka tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$b" --delete --topic gone
	wait $pid
	code=$?
	[ $code = 78 ] && grep -q 'topic gone is not there any more' "$scratch/gone.said" && ok "a job whose input is deleted says so and ends" ||
		not_ok "a job whose input is deleted: exit code $code: $(tail -n 3 "$scratch/gone.said")"
fi

[ $failures -eq 0 ]
