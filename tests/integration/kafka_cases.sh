#!/bin/bash
# kafka_cases.sh: faults that users of systems like this one have reported (tests/conformance/README.md lists them), as far as
# they need a broker: changelogs that are compacted, made anew or hold aborted data, members that come and go, processes and
# brokers that stand still, many partitions of large records, topics that come later.
#   kafka_cases.sh [--only SECTION]     sections: anew compacted empty handover frozen outlived wide pattern filled narrow slow full; prints
#                                       `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

only=""
[ "${1:-}" = --only ] && only=${2:-}
produce=$(dirname "$weir")/tests/kafka_produce
on_broker "reported faults on a broker" kcat jq "$produce"
trap 'clear_up broker full_case/full' EXIT
start_broker log.cleaner.backoff.ms=100 transaction.abort.timed.out.transaction.cleanup.interval.ms=500 \
	group.min.session.timeout.ms=1000
broker=$scratch/broker

make() { $kafka create "$broker" "$@" >/dev/null 2>&1 || not_ok "making topic $1"; }
topics() { $kafka tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$b" "$@"; }
put() { kcat -b "$b" -P -t "$1" -K: -X topic.partitioner=murmur2_random "${@:2}" || not_ok "producing $1"; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: '${2:0:300}', expected '${3:0:300}'"; fi; }
run() { timeout 120 "$weir" run "$1" -b "$b" "${@:2}"; }
bounded=", 'scan.bounded.mode' = 'latest-offset'"
stream() { # NAME TOPIC COLUMNS OPTIONS: keyed by k
	echo "CREATE TABLE $1 (k STRING, $3) WITH ('connector' = 'kafka', 'topic' = '$2', 'value.format' = 'json', 'key.format' = 'raw',
		'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY'${4:-});"
}
table() { # NAME TOPIC COLUMNS OPTIONS: by k
	echo "CREATE TABLE $1 (k STRING, $3, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '$2',
		'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY'${4:-});"
}
# lately TOPIC: the newest row of each key
lately() { settled "$1" && jq -r '[.key, .payload] | join("=")' "$scratch/rows" | awk -F= '{ v[$1] = $0 } END { for (k in v) print v[k] }' | sort | tr '\n' ' '; }
values() { jq -r ".payload | fromjson | .v" "$scratch/rows"; } # of what settled
until_lag_0() { # APP: within a minute
	for ((try = 0; try < 300; try++)); do
		"$weir" lag "$1" -b "$b" --format json 2>/dev/null | jq -e '.lag == 0' >/dev/null && return 0
		sleep 0.2
	done
	"$weir" lag "$1" -b "$b"
	return 1
}
ended() { # NAME PID SAID: it ends with 0
	local k
	for ((k = 0; k < 900; k++)); do
		kill -0 "$2" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$2" 2>/dev/null && not_ok "$1: hangs"
	wait "$2"
	k=$?
	if [ $k = 0 ]; then ok "$1"; else not_ok "$1: exit code $k: $(tail -n 3 "$3" | tr '\n' ' ')"; fi
}

# BL-089: changelogs that are not those that the group's offsets go with
anew_case() {
	make anew 2
	{
		stream s anew "v BIGINT" "$bounded"
		table o anew-out "n BIGINT"
		echo "INSERT INTO o SELECT k, COUNT(*) FROM s GROUP BY k;"
	} >"$scratch/anew.sql"
	mkdir "$scratch/other"
	some() { for k in a b c a b a; do echo "$k:{\"v\":1}"; done | put anew; }
	some
	run "$scratch/anew.sql" -q 2>"$scratch/said"
	same "a first run counts" "$(lately anew-out)" 'a={"n":3} b={"n":2} c={"n":1} '
	some
	topics --delete --topic anew-o-group-changelog >/dev/null 2>&1
	expect "BL-089: a changelog that was deleted is missed" 78 'nothing of it is in partition [01] of its changelogs.*weir reset anew -b' run "$scratch/anew.sql"
	expect "BL-089: and missed the next time, when there is an empty one" 78 'nothing of it' run "$scratch/anew.sql"
	sed "s/anew-out/anew-other/" "$scratch/anew.sql" >"$scratch/other/anew.sql"
	expect "and to another topic" 78 'nothing of it' run "$scratch/other/anew.sql"
	same "a run that is refused makes no topic" "$(topics --list | grep -c anew-other)" 0
	same "BL-089: nothing was written" "$(lately anew-out)" 'a={"n":3} b={"n":2} c={"n":1} '
	"$weir" reset anew -b "$b" --execute >"$scratch/said" 2>&1
	run "$scratch/anew.sql" -q 2>"$scratch/said"
	same "BL-089: starting over counts all" "$(lately anew-out)" 'a={"n":6} b={"n":4} c={"n":2} '
	expect "a run without anything new" 0 'wholly consumed' run "$scratch/anew.sql"
}

# BL-084, BL-085: what was deleted stays deleted when its tombstone is compacted away; BL-047: nothing is lost with time
compacted_case() {
	local k before=0 after=0 log=compacted-o-join-changelog
	make compacted 1
	make compacted-t 1
	make "$log" 1 cleanup.policy=compact segment.ms=100 min.cleanable.dirty.ratio=0.0 delete.retention.ms=0 \
		max.compaction.lag.ms=100 retention.ms=1000 file.delete.delay.ms=100
	{
		stream s compacted "n BIGINT" "$bounded"
		table t compacted-t "v BIGINT" "$bounded"
		echo "CREATE TABLE o (k STRING, n BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'compacted-out', 'format' = 'json');
		INSERT INTO o SELECT s.k, s.n, t.v FROM s JOIN t ON s.k = t.k;"
	} >"$scratch/compacted.sql"
	printf 'a:{"v":1}\nb:{"v":2}\n' | put compacted-t
	run "$scratch/compacted.sql" -q 2>"$scratch/said"
	printf 'a:\n' | put compacted-t -Z
	run "$scratch/compacted.sql" -q 2>"$scratch/said"
	for k in 1 2 3; do # every run begins a new segment, the last one before may be cleaned
		sleep 0.3
		printf 'c:{"v":3}\n' | put compacted-t
		run "$scratch/compacted.sql" -q 2>"$scratch/said"
	done
	before=$(kcat -b "$b" -C -t $log -o beginning -e -q -f '%o\n' 2>/dev/null | tail -n 1)
	for ((k = 0; k < 150; k++)); do
		after=$(kcat -b "$b" -C -t $log -o beginning -e -q -f '%o\n' 2>/dev/null | wc -l)
		[ "$after" -lt $((before - 3)) ] && break
		sleep 0.1
	done
	[ "$after" -lt "$before" ] && ok "the changelog is compacted: $after records of $before" || not_ok "the changelog is not compacted: $after of $before"
	printf 'a:{"n":1}\nb:{"n":2}\nc:{"n":3}\n' | put compacted
	expect "BL-084, BL-085: restores from what is left" 0 'restored from 1 changelog' run "$scratch/compacted.sql" -v
	same "BL-084: what was deleted stays deleted, the others are there" "$("$weir" dump -b "$b" compacted-out --format raw | sort | tr '\n' ' ')" \
		'{"k":"b","n":2,"v":2} {"k":"c","n":3,"v":3} '
}

# BL-088, BL-098: changelogs without a committed record, one with aborted ones; three instances; BL-068: idle and busy in turn
empty_case() {
	local k pid pids=() rows
	make empty 3
	make empty-o-group-changelog 3 cleanup.policy=compact
	"$produce" "$b" empty-o-group-changelog none abort 1 6
	{
		stream s empty "v BIGINT"
		table o empty-out "n BIGINT, v BIGINT"
		echo "INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM s GROUP BY k;"
	} >"$scratch/empty.sql"
	for k in 1 2 3; do
		"$weir" run "$scratch/empty.sql" -b "$b" -X processing.guarantee=exactly_once -X commit.interval.ms=100 -X idle.timeout.ms=100 \
			-X heartbeat.interval.ms=300 2>"$scratch/empty.$k.said" &
		pids+=($!)
	done
	for ((k = 0; k < 25; k++)); do # idle between, and throttled readers are none of them
		seq 1 40 | awk '{ print "k" $1 % 9 ":{\"v\":" $1 "}" }' | put empty
		sleep 0.15
	done
	fine "BL-068, BL-088, BL-098: three instances on changelogs without a record read everything" until_lag_0 empty
	settled empty-out
	rows=$(lately empty-out | tr ' ' '\n' | sed 's/^[^=]*=//' | jq -s -c '[length, (map(.n) | add), (map(.v) | add)]')
	same "BL-068, BL-088: every record once" "$rows" "[9,1000,20500]"
	k=1
	for pid in "${pids[@]}"; do
		kill -TERM "$pid"
		ended "BL-091: instance $k leaves" "$pid" "$scratch/empty.$k.said"
		k=$((k + 1))
	done
}

# BL-092, BL-117: partitions are handed over and back again; nobody crashes, so nothing comes twice under any guarantee
handover_case() { # GUARANTEE
	local app=handover-$1 k one two moved=0
	{
		stream s handover "v BIGINT" "$bounded"
		stream o "$app" "v BIGINT"
		echo "INSERT INTO o SELECT k, v FROM s;"
	} >"$scratch/$app.sql"
	local settings=(-b "$b" -X "processing.guarantee=$1" -X commit.interval.ms=300 -X heartbeat.interval.ms=200)
	"$weir" run "$scratch/$app.sql" "${settings[@]}" -X scan.rate=1500 2>"$scratch/one.said" &
	one=$!
	for k in 1 2 3 4 5; do
		"$weir" run "$scratch/$app.sql" "${settings[@]}" -X scan.rate=1500 2>"$scratch/two.said" &
		two=$!
		sleep "1.$k"
		kill -TERM $two
		ended "$1: hand-over $k" $two "$scratch/two.said"
		moved=$((moved + $(sed -n 's/.*: \([0-9]*\) records in.*/\1/p' "$scratch/two.said" | tail -n 1)))
	done
	[ $moved -gt 0 ] && ok "$1: the others read $moved records" || not_ok "$1: nothing was handed over: $(tail -n 3 "$scratch/two.said" | tr '\n' ' ')"
	ended "BL-092, $1: the one that stays reads to the end" $one "$scratch/one.said"
	settled "$app"
	same "BL-117, $1: every record once" "$(values | sort -n | uniq -c | awk '$1 == 1' | wc -l) $(wc -l <"$scratch/rows")" "20000 20000"
}

# BL-100: a process that stands still for longer than its transaction may last, with nobody to take over
frozen_case() {
	local k pid
	{
		stream s handover "v BIGINT" "$bounded"
		stream o frozen "v BIGINT"
		echo "INSERT INTO o SELECT k, v FROM s;"
	} >"$scratch/frozen.sql"
	"$weir" run "$scratch/frozen.sql" -b "$b" -X processing.guarantee=exactly_once -X transaction.timeout.ms=2000 -X commit.interval.ms=50 \
		-X session.timeout.ms=40000 -X scan.rate=2500 2>"$scratch/frozen.said" &
	pid=$!
	sleep 2
	for k in 1 2; do
		kill -STOP $pid
		sleep 4
		kill -CONT $pid
		sleep 1.3
	done
	ended "BL-100: stood still for longer than a transaction may last, and goes on" $pid "$scratch/frozen.said"
	fine "BL-100: readers of committed records come to the end" settled frozen
	same "BL-100: every record once" "$(values | sort -n | uniq -c | awk '$1 == 1' | wc -l) $(wc -l <"$scratch/rows")" "20000 20000"
}

# One of two stands still until the other has all partitions, and is told to end just then
outlived_case() {
	local pids=() k
	{
		stream s handover "v BIGINT" "$bounded"
		stream o outlived "v BIGINT"
		echo "INSERT INTO o SELECT k, v FROM s;"
	} >"$scratch/outlived.sql"
	for k in one two; do
		"$weir" run "$scratch/outlived.sql" -b "$b" -X processing.guarantee=exactly_once -X commit.interval.ms=50 -X session.timeout.ms=2000 \
			-X heartbeat.interval.ms=300 -X transaction.timeout.ms=2000 -X scan.rate=1500 2>"$scratch/outlived.$k.said" &
		pids+=($!)
		sleep 2
	done
	for ((k = 0; k < 100; k++)); do # both have their share
		"$weir" lag outlived -b "$b" --format json | jq -e '[.partitions[].consumer_id] | unique | length == 2' >/dev/null 2>&1 && break
		sleep 0.1
	done
	kill -STOP "${pids[0]}"
	sleep 5
	kill -TERM "${pids[0]}"
	kill -CONT "${pids[0]}"
	ended "ends in peace when it is told to after others took its partitions" "${pids[0]}" "$scratch/outlived.one.said"
	ended "and they read to the end" "${pids[1]}" "$scratch/outlived.two.said"
	settled outlived
	same "every record once, though" "$(values | sort -n | uniq -c | awk '$1 == 1' | wc -l) $(wc -l <"$scratch/rows")" "20000 20000"
}

# BL-135, BL-137 to BL-140: 100 partitions of compressed records of 1 MB, a reader that is slow, then paused
wide_case() {
	local k pid peak
	make wide 100
	{ printf '{"v":1,"x":"' && seq 1 140000 | tr '\n' ' ' && echo '"}'; } >"$scratch/one"
	for ((k = 0; k < 200; k++)); do cat "$scratch/one"; done | kcat -b "$b" -P -t wide -z lz4 -X sticky.partitioning.linger.ms=0
	{
		echo "CREATE TABLE s (v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'wide', 'format' = 'json'$bounded);"
		table o wide-out "n BIGINT"
		echo "INSERT INTO o SELECT 'all', COUNT(*) FROM s GROUP BY 'all';"
	} >"$scratch/wide.sql"
	"$weir" run "$scratch/wide.sql" -b "$b" -X memory.max=128MiB -X scan.rate=25 -X commit.interval.ms=200 \
		-X processing.guarantee=exactly_once 2>"$scratch/wide.said" &
	pid=$!
	for ((k = 0; k < 600; k++)); do # it is at work
		"$weir" lag wide -b "$b" --format json 2>/dev/null | jq -e '.lag < 160' >/dev/null && break
		sleep 0.1
	done
	kill -USR2 $pid
	sleep 2
	kill -USR2 $pid
	sleep 1
	peak=$(awk '/^VmHWM/ { print $2 }' /proc/$pid/status)
	[ -n "$peak" ] && [ "$peak" -lt $((128 * 1024)) ] && ok "BL-137 to BL-140: slow and paused, 180 MB of records: never more than memory.max ($peak KiB)" ||
		not_ok "BL-137 to BL-140: peak '$peak' KiB, memory.max=128MiB"
	ended "BL-135: reads 100 partitions to the end" $pid "$scratch/wide.said"
	same "BL-135, BL-140: every record" "$(lately wide-out)" 'all={"n":200} '
	same "BL-135: nothing is said of sizes" "$(grep -ci 'too large\|size\|librdkafka' "$scratch/wide.said")" 0
}

# BL-120: a topic that comes later is read from its first record, whatever the startup mode says
pattern_case() {
	make pattern-a 1
	{
		stream s pattern-a "v BIGINT" "$bounded, 'scan.startup.mode' = 'latest-offset'" | sed "s/'topic' = 'pattern-a'/'topic-pattern' = 'pattern-[a-z]'/"
		stream o pattern-seen "v BIGINT"
		echo "INSERT INTO o SELECT k, v FROM s;"
	} >"$scratch/pattern.sql"
	seq 1 3 | awk '{ print "a:{\"v\":" $1 "}" }' | put pattern-a
	expect "from the latest: nothing" 0 ' 0 records in' run "$scratch/pattern.sql"
	make pattern-b 1
	seq 4 8 | awk '{ print "b:{\"v\":" $1 "}" }' | put pattern-b
	seq 9 10 | awk '{ print "a:{\"v\":" $1 "}" }' | put pattern-a
	run "$scratch/pattern.sql" -q 2>"$scratch/said"
	settled pattern-seen
	same "BL-120: what came to the new topic before it was found is read" "$(values | sort -n | tr '\n' ' ')" "4 5 6 7 8 9 10 "
}

# BL-090: a restore that takes several times as long as a member may be silent: broker quotas make it slow
slow_case() {
	local k one two began
	make slow 2
	{
		stream s slow "x STRING" "$bounded"
		table o slow-out "x STRING"
		echo "INSERT INTO o SELECT k, MAX(x) FROM s GROUP BY k;"
	} >"$scratch/slow.sql"
	head -c 7000000 /dev/urandom | base64 -w 600 | awk '{ print "k" NR ":{\"x\":\"" $0 "\"}" }' >"$scratch/slow.rows"
	put slow -l "$scratch/slow.rows"
	run "$scratch/slow.sql" -q 2>"$scratch/said"
	echo 'k1:{"x":"~"}' | put slow
	$kafka tool kafka.admin.ConfigCommand --bootstrap-server "$b" --alter --entity-type clients --entity-name slow \
		--add-config consumer_byte_rate=1000000 >/dev/null 2>&1 || not_ok "a quota"
	local settings=(-b "$b" -v -X client.id=slow -X fetch.max.bytes=1000000 -X max.partition.fetch.bytes=500000 \
		-X max.poll.interval.ms=2000 -X session.timeout.ms=1500 -X heartbeat.interval.ms=300)
	began=$SECONDS
	"$weir" run "$scratch/slow.sql" "${settings[@]}" 2>"$scratch/slow.one" &
	one=$!
	"$weir" run "$scratch/slow.sql" "${settings[@]}" 2>"$scratch/slow.two" &
	two=$!
	ended "BL-090: a restore that is slow, the first of two" $one "$scratch/slow.one"
	ended "BL-090: the second" $two "$scratch/slow.two"
	k=$((SECONDS - began))
	[ $k -ge 6 ] && ok "BL-090: it took more than three times max.poll.interval.ms ($k s)" || not_ok "BL-090: it was not slow: $k s"
	same "BL-090: nobody was thrown out" "$(cat "$scratch/slow.one" "$scratch/slow.two" | grep -ci 'maxpoll\|fenced')" 0
	same "BL-090: state is whole" "$(lately slow-out | tr ' ' '\n' | grep -c =) $(lately slow-out | grep -c 'k1={"x":"~"}')" "$(wc -l <"$scratch/slow.rows") 1"
}

# BL-116: a broker whose disk is full while it is written (here: no file may be larger) is away until there is room again
full_case() {
	local full=$scratch/full b k pid
	b=$(ulimit -f 24576 && $kafka start "$full") || not_ok "starting a broker with little room"
	$kafka create "$full" in 1 >/dev/null 2>&1 || not_ok "making a topic"
	head -c 12000000 /dev/urandom | base64 -w 1500 | awk '{ print "k:{\"v\":" NR ",\"x\":\"" $0 "\"}" }' >"$scratch/full.rows"
	put in -l "$scratch/full.rows"
	{
		stream s in "v BIGINT, x STRING" "$bounded"
		stream o full-out "v BIGINT, x STRING"
		echo "INSERT INTO o SELECT k, v, x || x FROM s;"
	} >"$scratch/full.sql"
	"$weir" run "$scratch/full.sql" -b "$b" -X compression.codec=none -X processing.guarantee=exactly_once 2>"$scratch/full.said" &
	pid=$!
	for ((k = 0; k < 600; k++)); do
		kcat -b "$b" -L -m 2 >/dev/null 2>&1 || break
		sleep 0.1
	done
	[ $k -lt 600 ] && ok "BL-116: the broker has gone, for want of room" || not_ok "BL-116: the broker took it all"
	sleep 15
	kill -0 $pid 2>/dev/null && ok "BL-116: the job waits" || not_ok "BL-116: the job has ended: $(tail -n 3 "$scratch/full.said" | tr '\n' ' ')"
	$kafka stop "$full" 2>/dev/null
	$kafka start "$full" >/dev/null || not_ok "starting the broker again"
	ended "BL-116: there is room again, and the job goes on by itself" $pid "$scratch/full.said"
	settled full-out
	same "BL-116: every record once" "$(values | sort -n | uniq -c | awk '$1 == 1' | wc -l) $(wc -l <"$scratch/rows")" \
		"$(wc -l <"$scratch/full.rows") $(wc -l <"$scratch/full.rows")"
	$kafka stop "$full"
}

# BL-074: topics that are filled already, the table's rows earlier by time: joined at every cold start
filled_case() {
	local k pids=()
	make filled 2
	make filled-t 2
	seq 1 20000 | awk '{ print "k" $1 ":{\"v\":" $1 "}" }' | put filled-t
	sleep 0.05
	seq 1 2000 | awk '{ print "k" $1 ":{\"n\":" $1 "}" }' | put filled
	for k in 1 2 3 4 5 6; do
		{
			stream s filled "n BIGINT" "$bounded"
			table t filled-t "v BIGINT" "$bounded"
			stream o filled-out-$k "v BIGINT"
			echo "INSERT INTO o SELECT s.k, t.v FROM s LEFT JOIN t ON s.k = t.k;"
		} >"$scratch/filled-$k.sql"
		run "$scratch/filled-$k.sql" -q 2>"$scratch/filled-$k.said" &
		pids+=($!)
		[ $((k % 3)) = 0 ] && wait "${pids[@]}"
	done
	for k in 1 2 3 4 5 6; do
		settled filled-out-$k
		jq -r 'if (.payload | fromjson).v == null then "alone" else "joined" end' "$scratch/rows" | sort | uniq -c | tr -s ' \n' ' '
	done | sed 's/ 2000 joined /once /g' >"$scratch/joined"
	same "BL-074: every row is joined at each of six cold starts" "$(cat "$scratch/joined")" "once once once once once once "
}

# BL-134: a record that is larger than what the client may receive: not read, and that is said; BL-122: as whatever else
# keeps a partition from going on. One is there when reading begins, one comes later.
narrow_case() {
	local topic k pids=()
	giant() { printf '{"v":2,"x":"' && head -c 3000000 /dev/zero | tr '\0' a && echo '"}'; }
	for topic in narrow later; do
		make $topic 1 max.message.bytes=20000000
		echo '{"v":1}' | kcat -b "$b" -P -t $topic
		[ $topic = later ] || giant | kcat -b "$b" -P -t $topic -X message.max.bytes=20000000
		{
			echo "CREATE TABLE s (v BIGINT) WITH ('connector' = 'kafka', 'topic' = '$topic', 'format' = 'json');"
			echo "CREATE TABLE o (v BIGINT) WITH ('connector' = 'kafka', 'topic' = '$topic-out', 'format' = 'json');"
			echo "INSERT INTO o SELECT v FROM s;"
		} >"$scratch/$topic.sql"
		"$weir" run "$scratch/$topic.sql" -b "$b" -X receive.message.max.bytes=1100000 -X fetch.max.bytes=1000000 \
			-X message.max.bytes=900000 2>"$scratch/$topic.said" &
		pids+=($!)
	done
	until_lag_0 later >/dev/null
	giant | kcat -b "$b" -P -t later -X message.max.bytes=20000000
	for topic in narrow later; do
		for ((k = 0; k < 1200; k++)); do
			grep -q 'increase receive.message.max.bytes' "$scratch/$topic.said" && break
			sleep 0.1
		done
		expect "BL-122, BL-134: a partition that stands still is reported, $topic" 0 \
			"topic $topic, partition 0: nothing has come from offset 1 on for 30 s, and it does not end there. .*increase receive.message.max.bytes" \
			cat "$scratch/$topic.said"
	done
	for k in "${pids[@]}"; do
		kill -TERM "$k"
		ended "and it ends when it is told to" "$k" "$scratch/later.said"
	done
	sed "1s/'json');/'json'$bounded);/" "$scratch/narrow.sql" >"$scratch/bounded.sql"
	expect "BL-134: with room for it the record is read" 0 ' 1 records in' run "$scratch/bounded.sql" -g narrow
}

# begin "FUNCTION ARGUMENT"...: all at once, each with a folder of its own; finish CALL...: waits, and prints their lines
begin() {
	local call
	for call in "$@"; do
		(
			failures=0
			scratch=$scratch/${call/ /-}
			mkdir -p "$scratch"
			# shellcheck disable=SC2086
			$call >"$scratch.lines" 2>&1
		) &
		of["$call"]=$!
	done
}
declare -A of
finish() {
	local call lines
	for call in "$@"; do
		wait "${of[$call]}"
		lines=$scratch/${call/ /-}.lines
		cat "$lines"
		failures=$((failures + $(grep -c '^not ok' "$lines")))
	done
}
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }

first=() second=() long=()
wants slow && long+=("slow_case")
wants full && long+=("full_case")
wants narrow && long+=("narrow_case")
wants anew && first+=("anew_case")
wants compacted && first+=("compacted_case")
wants empty && first+=("empty_case")
wants pattern && first+=("pattern_case")
wants filled && first+=("filled_case")
wants handover && second+=("handover_case at_least_once" "handover_case exactly_once")
wants frozen && second+=("frozen_case")
wants outlived && second+=("outlived_case")
wants wide && second+=("wide_case")
begin "${long[@]}" "${first[@]}"
if wants handover || wants frozen || wants outlived; then
	make handover 4
	seq 1 20000 | awk '{ print "k" $1 ":{\"v\":" $1 "}" }' | put handover
fi
finish "${first[@]}"
begin "${second[@]}"
finish "${second[@]}" "${long[@]}"
[ "$failures" = 0 ]
