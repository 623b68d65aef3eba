#!/bin/bash
# kafka_two.sh: the revenue job between two clusters: orders on one real broker (or in a recording), results and changelog
# on another. Exact under every guarantee, killed and restarted, shared by instances that come, go and crash.
#   kafka_two.sh [--full] [--seed N] [--only SECTION]     --full: 150 kills instead of 12; sections: calm moved wrong
#                                        shared killed frozen; prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

kills=4 # in each of three runs
options "$@"
[ -z "$full" ] || kills=50

on_broker "jobs between two clusters" kcat jq
trap 'clear_up broker other' EXIT
$kafka start "$scratch/other" >"$scratch/a" &
start_broker
wait
a=$(cat "$scratch/a")
[ -n "$a" ] || {
	echo "not ok starting a second broker"
	exit 1
}

# ---- input: one recording, replayed into a topic on a ----
records=100000
partitions=4
in=$scratch/in
"$weir" gen orders --records $records --keys 1000 --partitions $partitions --seed 7 --rate 400 --key merchant_id \
	--disorder-ms 2000 --late 0.001 --bad 0.001 --out "$in" -q || exit 1
"$weir" replay "$in" order.placed -b "$a" -q || {
	not_ok "replaying the recording"
	exit 1
}

topic=order.placed
# sql FILE OUTPUT-TOPIC EMIT from-a|from-file [unkeyed]: the job
sql() {
	local keys="'key.format' = 'raw', 'key.fields' = 'merchant_id'" emit="" from source
	from=", $keys"
	[ "${5:-}" = unkeyed ] && from=""
	if [ "$3" = changes ]; then
		keys="'key.format' = 'json', 'key.fields' = 'merchant_id;window_start'"
		emit="EMIT CHANGES"
	fi
	case $4 in
	from-a) source="'properties.bootstrap.servers' = '$a', 'scan.bounded.mode' = 'latest-offset'" ;;
	from-file) source="'properties.bootstrap.servers' = 'file:$in'" ;;
	esac
	cat >"$1" <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'kafka', 'topic' = '$topic', 'format' = 'json', $source$from);
		CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2),
		  orders BIGINT)
		WITH ('connector' = 'kafka', 'topic' = '$2', 'format' = 'json', 'properties.bootstrap.servers' = '$b', $keys);
		INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))
		GROUP BY window_start, window_end, merchant_id $emit;
	SQL
}
exact_on() { # TOPIC EMIT
	settled "$1" && "$check_revenue" --in "$in" --topic "$topic" --window tumble --size 300000 --emit "$2" \
		--by merchant_id <"$scratch/rows"
}
# Repeated rows are allowed; the last by key and window is what counts.
exact_again() { # TOPIC
	settled "$1" && jq -c '{p: .partition, k: .key, v: .payload}' <"$scratch/rows" | sort -u |
		jq -c '{key: .k, payload: .v, partition: .p, offset: 0, ts: 0, topic: "x"}' |
		"$check_revenue" --in "$in" --topic "$topic" --window tumble --size 300000 --emit final --by merchant_id
}
# lane SECTION [ARGUMENT...]: runs it beside the others, in a folder of its own; land: what they said
lanes=0
lane() {
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	lanes=$((lanes + 1))
	mkdir "$scratch/lane.$lanes"
	(
		scratch=$scratch/lane.$lanes
		trap '[ -z "$(jobs -p)" ] || kill -9 $(jobs -p) 2>/dev/null' EXIT
		"$@" >"$scratch/lines" 2>&1
	) &
}
land() {
	wait
	[ $lanes -gt 0 ] || return 0
	cat "$scratch"/lane.*/lines
	failures=$((failures + $(cat "$scratch"/lane.*/lines | grep -c '^not ok')))
	rm -rf "$scratch"/lane.*
	lanes=0
}
describe_group() { # BROKERS GROUP
	$kafka tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$1" --describe --group "$2" 2>&1
}

# ---- undisturbed ----
calm() { # GUARANTEE
	local guarantee=$1 from app emit group
	for from in from-a from-file; do
		app=calm-$guarantee-$from
		emit=final
		[ "$guarantee-$from" = at_least_once-from-file ] && emit=changes
		sql "$scratch/$app.sql" "$app" $emit $from
		expect "$guarantee, $from: runs to the bound" 0 "$records records" \
			timeout 120 "$weir" run "$scratch/$app.sql" -X "processing.guarantee=$guarantee"
		fine "$guarantee, $from: exact" exact_on "$app" $emit
	done
	[ "$guarantee" = exactly_once ] || return 0
	app=calm-$guarantee-from-a
	expect "a second run finds everything consumed" 0 "weir reset $app -b $b" timeout 60 "$weir" run "$scratch/$app.sql"
	group=$(describe_group "$b" "$app")
	if [ "$(printf '%s\n' "$group" | awk -v t="$app-.*-changelog" '$2 ~ t && $6 < 10' | wc -l)" = $partitions ]; then
		ok "the group is that of the changelog, on the results' cluster"
	else
		not_ok "kafka-consumer-groups says: $group"
	fi
	expect "and there is none where the input lies" 78 "no group $app" "$weir" lag "$app" -b "$a"
}

# Without late records: with a re-key between they depend on the partitions beside.
moved() {
	"$weir" gen orders --records 20000 --keys 500 --partitions $partitions --seed 8 --rate 400 --key order_id \
		--disorder-ms 2000 --topic order.timely --out "$in" -q || not_ok "making a second recording"
	topic=order.timely
	sql "$scratch/moved.sql" moved final from-file unkeyed
	expect "re-keyed within one process: runs to the bound" 0 "20000 records" \
		timeout 120 "$weir" run "$scratch/moved.sql" -X processing.guarantee=exactly_once
	fine "re-keyed within one process: exact" exact_on moved final
}

# ---- kill -9 ----
often=(-X commit.interval.ms=100 -X order.point.records=1000 -X commit.interval.records=3000)
killed() { # GUARANTEE FROM
	local guarantee=$1 from=$2 app=kill-$1-$2 k pid dead=0
	sql "$scratch/$app.sql" "$app" final "$from"
	# A static member: whoever comes back need not wait for the session of whoever was killed.
	settings=(-X "processing.guarantee=$guarantee" "${often[@]}" -X group.instance.id=one)
	for ((k = 0; k < kills; k++)); do
		"$weir" run "$scratch/$app.sql" "${settings[@]}" -X scan.rate=$((records / (kills + 1) / 2)) 2>"$scratch/said" &
		pid=$!
		sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", 1 + r / 32768 }')"
		kill -9 $pid 2>/dev/null && dead=$((dead + 1))
		wait $pid 2>/dev/null
	done
	if timeout 180 "$weir" run "$scratch/$app.sql" "${settings[@]}" 2>"$scratch/said" &&
		grep -q 'resuming at epoch' "$scratch/said" && [ $dead = "$kills" ]; then
		ok "$guarantee, $from: resumes and runs to the end after $dead kills"
	else
		not_ok "$guarantee, $from, after $dead kills: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
	if [ "$guarantee" = exactly_once ]; then
		fine "$guarantee, $from: every result exactly once" exact_on "$app" final
	else
		fine "$guarantee, $from: every result, some again" exact_again "$app"
	fi
}

# ---- instances come, go and crash ----
instance() { # run as `instance ... &`: it becomes the command
	exec "$weir" run "$scratch/$app.sql" -X processing.guarantee=exactly_once -X session.timeout.ms=6000 \
		-X heartbeat.interval.ms=500 "${often[@]}" "$@" 2>"$scratch/shared.$BASHPID.said"
}

shared() { # FROM
	local from=$1 one two three four code last=0
	app=shared-$from
	sql "$scratch/$app.sql" "$app" final "$from"
	instance -X scan.rate=6000 &
	one=$!
	sleep 3
	instance -X scan.rate=6000 &
	two=$!
	sleep 3
	kill -TERM $one
	wait $one
	code=$?
	if [ $code = 0 ]; then ok "$from: an instance that is asked to leaves with 0"; else not_ok "$from: SIGTERM ends an instance with $code: $(tail -n 3 "$scratch/shared.$one.said" | tr '\n' ' ')"; fi
	instance -X scan.rate=6000 &
	three=$!
	sleep 3
	kill -9 $two || not_ok "$from: the second instance ended too early"
	wait $two 2>/dev/null
	instance &
	four=$!
	wait $three || last=$?
	wait $four || last=$?
	if [ $last = 0 ]; then
		ok "$from: the last instances run to the end"
	else
		not_ok "$from: the last instances: $(tail -n 3 "$scratch/shared.$three.said" "$scratch/shared.$four.said" | tr '\n' ' ')"
	fi
	if grep -q 'resuming at epoch' "$scratch"/shared.*.said && grep -q 'kept what is in memory of' "$scratch"/shared.*.said; then
		ok "$from: what changed hands was restored, what came back was kept"
	else
		not_ok "$from: $(grep -hE 'resuming|kept|restored' "$scratch"/shared.*.said | tr '\n' ' ')"
	fi
	fine "$from: joined, left and crashed: every result exactly once" exact_on "$app" final
}

# ---- a frozen instance wakes up ----
frozen() {
	local one two k
	app=frozen
	sql "$scratch/$app.sql" "$app" final from-a
	instance -X scan.rate=20000 &
	one=$!
	sleep 3
	kill -STOP $one
	instance &
	two=$!
	if wait $two; then
		ok "another instance takes over from a frozen one"
	else
		not_ok "taking over: $(tail -n 3 "$scratch/shared.$two.said" | tr '\n' ' ')"
	fi
	kill -CONT $one
	for ((k = 0; k < 300; k++)); do
		kill -0 $one 2>/dev/null || break
		sleep 0.1
	done
	if kill -9 $one 2>/dev/null; then
		not_ok "the frozen instance hangs: $(tail -n 3 "$scratch/shared.$one.said" | tr '\n' ' ')"
	else
		ok "the frozen instance comes to an end"
	fi
	wait $one 2>/dev/null
	fine "frozen and woken: every result exactly once" exact_on "$app" final
}

# ---- what is wrong is said ----
wrong() {
	sql "$scratch/wrong.sql" wrong final from-a
	sed "s/CREATE TABLE revenue/CREATE TABLE more/; s/'topic' = 'wrong'/'topic' = 'more'/; s/INSERT INTO revenue/INSERT INTO more/; s/'$b'/'$a'/" "$scratch/wrong.sql" |
		awk '/CREATE TABLE more/ { on = 1 } on' >"$scratch/more.sql"
	cat "$scratch/wrong.sql" "$scratch/more.sql" >"$scratch/sinks.sql"
	expect "sinks on two clusters" 78 "sink revenue lies on the brokers $b, sink more on $a" \
		timeout 60 "$weir" run "$scratch/sinks.sql" -X processing.guarantee=exactly_once
	sql "$scratch/unkeyed.sql" wrong final from-a unkeyed
	expect "exchange=topic wants one cluster" 78 'exchange = topic wants sources' \
		timeout 60 "$weir" run "$scratch/unkeyed.sql" -X exchange=topic
	expect "-b is for all tables" 78 "no topic 'order.placed' on $b" timeout 60 "$weir" run "$scratch/wrong.sql" -b "$b"
	sql "$scratch/again.sql" again final from-a
	expect "a first run" 0 "$records records" timeout 120 "$weir" run "$scratch/again.sql"
	expect "offsets in markers cannot be moved" 78 "scan.startup.mode" "$weir" reset again -b "$b" --to-latest
	expect "reset only shows" 0 "would delete topic again-.*-changelog" "$weir" reset again -b "$b"
	expect "nothing was changed" 0 'weir reset again' timeout 60 "$weir" run "$scratch/again.sql"
	expect "reset" 0 'again-.*-changelog' "$weir" reset again -b "$b" --execute
	expect "and reads everything again" 0 "$records records" timeout 120 "$weir" run "$scratch/again.sql"
}

for guarantee in at_least_once exactly_once at_most_once; do
	lane calm $guarantee
done
lane moved
lane wrong
land
lane shared from-a
lane shared from-file
lane killed at_least_once from-a
lane killed exactly_once from-a
lane killed exactly_once from-file
lane frozen
land
[ "$failures" = 0 ]
