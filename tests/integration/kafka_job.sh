#!/bin/bash
# kafka_job.sh: the revenue job from topic to topic on a real broker: exact against an independent check under every
# guarantee, killed and restarted, shared by instances that come, go and crash, through a broker that stops; the group
# as Kafka's own tools see it.
#   kafka_job.sh [--full] [--seed N] [--only SECTION]     --full: 200 kills instead of 20, a broker away for 60 s instead
#                                        of 5; sections: calm kill shared standby grown topic frozen away live reset wrong;
#                                        prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

kills=10 # for each of two guarantees
options "$@"
[ -z "$full" ] || kills=100

on_broker "jobs on a broker" kcat jq
start_broker

# ---- input: one recording, replayed into a topic ----
records=200000
partitions=4
in=$scratch/in
"$weir" gen orders --records $records --keys 2000 --partitions $partitions --seed 7 --rate 400 --key merchant_id \
	--disorder-ms 2000 --late 0.001 --bad 0.001 --out "$in" -q || exit 1
"$weir" replay "$in" order.placed -b "$b" -q || {
	not_ok "replaying the recording"
	exit 1
}

# sql FILE OUTPUT-TOPIC EMIT [OPTIONS [unkeyed]]: the job; OPTIONS go into the source's WITH; unkeyed: nothing is said of
# the source's key, so that rows have to be brought to their merchant's slot
sql() {
	local keys="'key.format' = 'raw', 'key.fields' = 'merchant_id'" emit="" from
	from=", $keys"
	[ "${5:-}" = unkeyed ] && from=""
	if [ "$3" = changes ]; then
		keys="'key.format' = 'json', 'key.fields' = 'merchant_id;window_start'"
		emit="EMIT CHANGES"
	fi
	cat >"$1" <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'kafka', 'topic' = '$source', 'format' = 'json'$from${4:-});
		CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2),
		  orders BIGINT)
		WITH ('connector' = 'kafka', 'topic' = '$2', 'format' = 'json', $keys);
		INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))
		GROUP BY window_start, window_end, merchant_id $emit;
	SQL
}
source=order.placed
bounded=", 'scan.bounded.mode' = 'latest-offset'"
exact_on() { # TOPIC EMIT
	settled "$1" && "$check_revenue" --in "$in" --topic "$source" --window tumble --size 300000 --emit "$2" --by merchant_id \
		<"$scratch/rows"
}
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }

# ---- each guarantee, undisturbed ----
if wants calm; then
	for guarantee in at_least_once exactly_once at_most_once; do
		for emit in final changes; do
			app=calm-$guarantee-$emit
			sql "$scratch/$app.sql" "$app" "$emit" "$bounded"
			expect "$guarantee, EMIT ${emit^^}: runs to the bound" 0 "$records records" \
				timeout 120 "$weir" run "$scratch/$app.sql" -b "$b" -X "processing.guarantee=$guarantee"
			fine "$guarantee, EMIT ${emit^^}: exact" exact_on "$app" "$emit"
		done
	done
	app=calm-at_least_once-final
	expect "a second run finds everything consumed" 0 'weir reset' timeout 60 "$weir" run "$scratch/$app.sql" -b "$b"
	group=$($kafka tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$b" --describe --group "$app" 2>/dev/null)
	if [ "$(printf '%s\n' "$group" | awk '$2 == "order.placed" && $6 == 0' | wc -l)" = $partitions ]; then
		ok "kafka-consumer-groups shows the group without lag"
	else
		not_ok "kafka-consumer-groups says: $group"
	fi
	if $kafka describe "$scratch/broker" "$app-revenue-changelog" 2>/dev/null | grep -q cleanup.policy=compact ||
		$kafka describe "$scratch/broker" 2>/dev/null | grep "$app-.*-changelog" | grep -q cleanup.policy=compact; then
		ok "the changelog is compacted"
	else
		not_ok "no compacted changelog of $app: $($kafka describe "$scratch/broker" 2>/dev/null | grep "$app" | head -n 5)"
	fi
	kcat -b "$b" -C -t calm-exactly_once-final -o beginning -e -q -X isolation.level=read_committed 2>/dev/null | wc -l >"$scratch/kcat"
	settled calm-exactly_once-final
	wc -l <"$scratch/rows" >"$scratch/dump"
	if cmp -s "$scratch/kcat" "$scratch/dump" && [ "$(cat "$scratch/kcat")" -gt 0 ]; then
		ok "kcat reads the committed results"
	else
		not_ok "kcat reads $(cat "$scratch/kcat") rows, dump $(cat "$scratch/dump")"
	fi
fi

# ---- kill -9 ----
if wants kill; then
	killed=0
	for guarantee in at_least_once exactly_once; do
		app=kill-$guarantee
		sql "$scratch/$app.sql" "$app" final "$bounded"
		settings=(-b "$b" -X "processing.guarantee=$guarantee" -X commit.interval.ms=100)
		for ((k = 0; k < kills; k++)); do
			"$weir" run "$scratch/$app.sql" "${settings[@]}" -X scan.rate=$((records / (kills / 2 + 1))) 2>"$scratch/said" &
			pid=$!
			sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", 0.4 + r / 32768 }')"
			kill -9 $pid 2>/dev/null && killed=$((killed + 1))
			wait $pid 2>/dev/null
		done
		if timeout 180 "$weir" run "$scratch/$app.sql" "${settings[@]}" 2>"$scratch/said"; then
			ok "$guarantee: runs to the end after $kills kills"
		else
			not_ok "$guarantee after $kills kills: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
		fi
		if [ $guarantee = exactly_once ]; then
			fine "$guarantee: every result exactly once" exact_on "$app" final
		else # repeated rows are allowed; the last by key and window is what counts
			fine "$guarantee: every result, some again" \
				bash -c "'$weir' dump -b '$b' '$app' | jq -c '{p: .partition, k: .key, v: .payload}' | sort -u | jq -c '{key: .k, payload: .v, partition: .p, offset: 0, ts: 0, topic: \"x\"}' |
					'$check_revenue' --in '$in' --window tumble --size 300000 --emit final --by merchant_id"
		fi
	done
	if [ "$killed" -gt "$kills" ]; then ok "$killed kills fell into runs"; else not_ok "only $killed kills fell into runs"; fi
fi

# ---- instances come, go and crash ----
instance() { # run as `instance ... &`: it becomes the command
	exec "$weir" run "$scratch/$app.sql" -b "$b" -X processing.guarantee=exactly_once -X session.timeout.ms=6000 \
		-X heartbeat.interval.ms=500 "$@" 2>"$scratch/shared.$BASHPID.said"
}

if wants shared; then
	app=shared
	sql "$scratch/$app.sql" "$app" final "$bounded"
	instance -X scan.rate=15000 &
	one=$!
	sleep 2
	instance -X scan.rate=15000 &
	two=$!
	sleep 4
	kill -TERM $one
	wait $one
	code=$?
	if [ $code = 0 ]; then ok "an instance that is asked to leaves with 0"; else not_ok "SIGTERM ends an instance with $code: $(cat "$scratch"/shared.*.said | tail -n 3)"; fi
	instance -X scan.rate=15000 &
	three=$!
	sleep 3
	kill -9 $two
	wait $two 2>/dev/null
	sleep 1
	kill -TERM $three 2>/dev/null
	wait $three
	if timeout 180 "$weir" run "$scratch/$app.sql" -b "$b" -X processing.guarantee=exactly_once -X session.timeout.ms=6000 2>"$scratch/said"; then
		ok "the last instance runs to the end"
	else
		not_ok "the last instance: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
	fine "joined, left and crashed: every result exactly once" exact_on "$app" final
fi

# ---- taking over what was followed ----
if wants standby; then
	app=standby
	sql "$scratch/$app.sql" "$app" final "$bounded"
	follower=(-X standby.replicas=1 -X transaction.timeout.ms=4000)
	instance "${follower[@]}" -X scan.rate=12000 &
	one=$!
	sleep 1
	instance "${follower[@]}" -X scan.rate=12000 &
	two=$!
	for ((k = 0; k < 200; k++)); do
		grep -q 'standby: caught up' "$scratch/shared.$two.said" && break
		sleep 0.1
	done
	sleep 2
	kill -9 $one
	wait $one 2>/dev/null
	if wait $two; then
		ok "an instance with standby.replicas goes on alone"
	else
		not_ok "an instance with standby.replicas: $(tail -n 3 "$scratch/shared.$two.said" | tr '\n' ' ')"
	fi
	# restored from N changelog partitions in T ms: R bytes read, F bytes followed before
	if grep 'restored from' "$scratch/shared.$two.said" | tail -n 1 | awk '{ exit !($12 > 20000 && $9 < $12 / 4) }'; then
		ok "it takes over what it has followed, and reads the tail alone"
	else
		not_ok "taking over: $(grep -E 'standby:|restored from' "$scratch/shared.$two.said" | tr '\n' ' ')"
	fi
	if grep -q "kept what is in memory of 2 of 4" "$scratch/shared.$two.said"; then
		ok "partitions that come back are not restored"
	else
		not_ok "nothing is kept: $(grep -hE 'kept|restored from' "$scratch"/shared.*.said | tr '\n' ' ')"
	fi
	fine "taken over: every result exactly once" exact_on "$app" final
fi

# ---- topics that grow, and topics that come later ----
if wants grown; then
	orders() { # TOPIC PARTITION COUNT
		for ((k = 0; k < $3; k++)); do
			printf '%s:{"order_id":"x%d","merchant_id":"m-%d","customer_id":"c","amount":1.00,"currency":"EUR","ts":%s000}\n' "m-$k" $k $k "$(date +%s)"
		done | kcat -b "$b" -P -t "$1" -K: -p "$2"
	}
	grow() { # TOPIC PARTITIONS
		$kafka tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$b" --alter --topic "$1" --partitions "$2" >/dev/null 2>&1
	}
	has_said() { # FILE PATTERN
		for ((try = 0; try < 300; try++)); do
			grep -Eq -- "$2" "$1" && return 0
			sleep 0.1
		done
		cat "$1"
		return 1
	}
	ended() { # PID
		for ((try = 0; try < 300; try++)); do
			kill -0 "$1" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$1" 2>/dev/null
		wait "$1"
	}
	making=()
	for topic in grown-keyed grown-moved grown-by-name-1; do
		$kafka create "$scratch/broker" $topic $([ $topic = grown-by-name-1 ] && echo 1 || echo 2) >/dev/null 2>&1 &
		making+=($!)
	done
	wait "${making[@]}" || not_ok "making topics"
	for app in keyed moved; do
		source=grown-$app
		sql "$scratch/grown-$app.sql" "grown-$app-results" changes "" "$([ $app = moved ] && echo unkeyed)"
		orders "grown-$app" 0 20
		"$weir" run "$scratch/grown-$app.sql" -b "$b" -X commit.interval.ms=200 2>"$scratch/grown-$app.said" &
		eval "$app=$!"
	done
	sql "$scratch/grown-by-name.sql" grown-by-name changes "" unkeyed
	sed -i "s/'topic' = 'grown-moved'/'topic-pattern' = 'grown-by-name-.*'/" "$scratch/grown-by-name.sql"
	"$weir" run "$scratch/grown-by-name.sql" -b "$b" 2>"$scratch/grown-by-name.said" &
	by_name=$!
	for app in keyed moved; do
		fine "$app: reads" bash -c "for ((i = 0; i < 100; i++)); do '$weir' lag grown-$app -b '$b' --format json 2>/dev/null | jq -r .lag | grep -qx 0 && exit; sleep 0.1; done; exit 1"
	done
	$kafka create "$scratch/broker" grown-by-name-2 1 >/dev/null 2>&1 &
	making=($!)
	for app in keyed moved; do
		grow "grown-$app" 3 &
		making+=($!)
	done
	wait "${making[@]}" || not_ok "giving topics more partitions"
	for app in keyed moved; do
		orders "grown-$app" 2 5
		orders "grown-$app" 0 5
		ended "${!app}"
		code=$?
		if [ $code = 78 ] && grep -q "topic grown-$app had 2 partitions when reading began and has 3 now" "$scratch/grown-$app.said"; then
			ok "$app: a source that gets more partitions ends the job by name"
		else
			not_ok "$app: a source has more partitions: exit code $code, $(tail -n 3 "$scratch/grown-$app.said" | tr '\n' ' ')"
		fi
	done
	expect "keyed: and is refused from then on" 78 'now there are 3. To start over: weir reset grown-keyed -b [0-9.:]+ --execute' \
		timeout 60 "$weir" run "$scratch/grown-keyed.sql" -b "$b"
	"$weir" run "$scratch/grown-moved.sql" -b "$b" 2>"$scratch/said" &
	pid=$!
	fine "moved: what is re-keyed goes on with all of them" bash -c "for ((i = 0; i < 150; i++)); do
		'$weir' lag grown-moved -b '$b' --format json 2>/dev/null | jq -e '.lag == 0' >/dev/null && exit; sleep 0.1; done; cat '$scratch/said'; exit 1"
	kill -TERM $pid
	wait $pid
	fine "a topic that comes later is named" has_said "$scratch/grown-by-name.said" 'topic grown-by-name-2 is new and matches'
	kill -TERM $by_name
	wait $by_name
	source=order.placed
fi

# ---- a repartition topic between ----
if wants topic; then
	# Without late records: until every partition has been heard of once nothing is late, and which records are read
	# before that is chance.
	"$weir" gen orders --records $records --keys 2000 --partitions $partitions --seed 8 --rate 400 --key order_id \
		--disorder-ms 2000 --bad 0.001 --topic order.timely --out "$in" -q &&
		"$weir" replay "$in" order.timely -b "$b" -q || not_ok "replaying the second recording"
	source=order.timely
	for guarantee in at_least_once exactly_once; do
		app=topic-$guarantee
		sql "$scratch/$app.sql" "$app" final "$bounded" unkeyed
		expect "exchange=topic, $guarantee: runs to the bound" 0 " $records applied|records" \
			timeout 120 "$weir" run "$scratch/$app.sql" -b "$b" -X exchange=topic -X "processing.guarantee=$guarantee"
		fine "exchange=topic, $guarantee: exact" exact_on "$app" final
	done
	app=topic-shared
	sql "$scratch/$app.sql" "$app" final "$bounded" unkeyed
	rekeyed=(-X exchange=topic -X scan.rate=20000)
	instance "${rekeyed[@]}" &
	one=$!
	sleep 2
	instance "${rekeyed[@]}" &
	two=$!
	sleep 4
	kill -9 $one
	wait $one 2>/dev/null
	instance "${rekeyed[@]}" &
	three=$!
	sleep 6
	kill -TERM $two 2>/dev/null
	wait $two
	for ((k = 0; k < 900; k++)); do
		kill -0 $three 2>/dev/null || break
		sleep 0.1
	done
	if kill -9 $three 2>/dev/null; then
		not_ok "exchange=topic: the last instance does not end: $(tail -n 3 "$scratch/shared.$three.said" | tr '\n' ' ')"
	fi
	wait $three 2>/dev/null
	fine "exchange=topic, joined, left and crashed: every result exactly once" exact_on "$app" final
	source=order.placed
fi

# ---- a frozen instance wakes up ----
if wants frozen; then
	app=frozen
	sql "$scratch/$app.sql" "$app" final "$bounded"
	freeze=(-b "$b" -X processing.guarantee=exactly_once -X session.timeout.ms=6000 -X heartbeat.interval.ms=500)
	"$weir" run "$scratch/$app.sql" "${freeze[@]}" -X scan.rate=30000 2>"$scratch/frozen.said" &
	one=$!
	sleep 2
	kill -STOP $one
	if timeout 180 "$weir" run "$scratch/$app.sql" "${freeze[@]}" 2>"$scratch/said"; then
		ok "another instance takes over from a frozen one"
	else
		not_ok "taking over: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
	kill -CONT $one
	for ((k = 0; k < 300; k++)); do
		kill -0 $one 2>/dev/null || break
		sleep 0.1
	done
	if kill -0 $one 2>/dev/null; then
		not_ok "the frozen instance hangs: $(tail -n 3 "$scratch/frozen.said" | tr '\n' ' ')"
		kill -9 $one
	else
		ok "the frozen instance comes to an end"
	fi
	wait $one 2>/dev/null
	fine "frozen and woken: every result exactly once" exact_on "$app" final
fi

# ---- the broker stops under load ----
if wants away; then
	app=away
	sql "$scratch/$app.sql" "$app" final "$bounded"
	"$weir" run "$scratch/$app.sql" -b "$b" -X processing.guarantee=exactly_once -X scan.rate=40000 2>"$scratch/said" &
	pid=$!
	sleep 2
	$kafka stop "$scratch/broker"
	sleep "$([ -z "$full" ] && echo 5 || echo 60)"
	$kafka start "$scratch/broker" >/dev/null || not_ok "starting the broker again"
	for ((k = 0; k < 900; k++)); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	if kill -0 $pid 2>/dev/null; then
		not_ok "hangs after the broker came back: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
		kill -9 $pid
		wait $pid 2>/dev/null
	elif wait $pid; then
		ok "goes on when the broker is back"
	else
		not_ok "after the broker came back: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
	fine "the broker was away: every result exactly once" exact_on "$app" final
	# stopped_away NAME GUARANTEE: the job of $scratch/$app.sql
	stopped_away() {
		"$weir" run "$scratch/$app.sql" -b "$b" -X "processing.guarantee=$2" -X scan.rate=20000 -X stop.wait.ms=3s 2>"$scratch/said" &
		pid=$!
		sleep 3
		$kafka stop "$scratch/broker"
		sleep 1
		kill -TERM $pid
		for ((k = 0; k < 300; k++)); do
			kill -0 $pid 2>/dev/null || break
			sleep 0.1
		done
		kill -9 $pid 2>/dev/null && not_ok "$1: a stop waits for a broker that is away for ever"
		wait $pid
		k=$?
		if [ $k = 75 ] && grep -q 'read again next time' "$scratch/said"; then
			ok "$1: a stop does not wait for ever for a broker that is away"
		else
			not_ok "$1: a stop while the broker is away ends with $k: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
		fi
		timeout 240 "$weir" run "$scratch/$app.sql" -b "$b" -X "processing.guarantee=$2" 2>"$scratch/said" &
		pid=$!
		for ((k = 0; k < 300; k++)); do
			grep -q 'waiting: no broker at' "$scratch/said" && break
			sleep 0.1
		done
		$kafka start "$scratch/broker" >/dev/null || not_ok "starting the broker again"
		wait $pid
		expect "$1: the next run begins without a broker, waits for it and goes on" 0 "0 waiting: .*records in" \
			eval "echo $? \$(cat '$scratch/said')"
	}
	app=away-stateless
	cat >"$scratch/$app.sql" <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2))
		WITH ('connector' = 'kafka', 'topic' = '$source', 'format' = 'json'$bounded);
		CREATE TABLE large (order_id STRING, amount DECIMAL(12,2)) WITH ('connector' = 'kafka', 'topic' = '$app', 'format' = 'json');
		INSERT INTO large SELECT order_id, amount FROM orders WHERE amount > 10;
	SQL
	stopped_away "at_least_once without state" at_least_once
	app=away-stopped
	sql "$scratch/$app.sql" "$app" final "$bounded"
	stopped_away "exactly_once" exactly_once
	fine "stopped while the broker was away: every result exactly once" exact_on "$app" final
fi

# ---- live: a burst shows within a second ----
if wants live; then
	app=live
	sql "$scratch/$app.sql" "$app" changes ", 'scan.startup.mode' = 'latest-offset'"
	"$weir" run "$scratch/$app.sql" -b "$b" 2>"$scratch/said" &
	pid=$!
	for ((k = 0; k < 100; k++)); do
		kcat -b "$b" -L -t "$app" 2>/dev/null | grep -q 'partition 0, leader' && break
		sleep 0.1
	done
	sleep 3
	printf 'm-1:{"order_id":"x","merchant_id":"m-1","customer_id":"c","amount":12.34,"currency":"EUR","ts":%s000}\n' "$(date +%s)" |
		kcat -b "$b" -P -t order.placed -K: -p 0
	sleep 1.5
	if kcat -b "$b" -C -t "$app" -o beginning -e -q 2>/dev/null | grep -q '12.34'; then
		ok "a record shows in the derived topic at once"
	else
		not_ok "nothing in the derived topic: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
	lag_is() { # PATTERN: what `weir lag` says of the group's lag, within ten seconds
		for ((k = 0; k < 50; k++)); do
			"$weir" lag "$app" -b "$b" --format json 2>/dev/null | jq -r .lag | grep -Eq "^($1)\$" && return 0
			sleep 0.2
		done
		"$weir" lag "$app" -b "$b"
		return 1
	}
	fine "nothing lags" lag_is 0
	kill -USR2 $pid
	sleep 1
	for ((k = 0; k < 20; k++)); do
		printf 'm-2:{"order_id":"y%d","merchant_id":"m-2","customer_id":"c","amount":1.00,"currency":"EUR","ts":%s000}\n' $k "$(date +%s)"
	done | kcat -b "$b" -P -t order.placed -K: -p 0
	fine "lag builds while it is paused" lag_is 20
	if [ "$("$weir" lag "$app" -b "$b" --format json | jq -r '.partitions // .rows | map(select(.consumer_id != null)) | length' 2>/dev/null)" = $partitions ]; then
		ok "a paused job stays in its group"
	else
		not_ok "a paused job left its group: $("$weir" lag "$app" -b "$b")"
	fi
	kill -USR2 $pid
	fine "and drains when it is resumed" lag_is 0
	kill -TERM $pid
	wait $pid
	code=$?
	if [ $code = 0 ]; then ok "SIGTERM ends a live job with 0"; else not_ok "SIGTERM ends a live job with $code: $(tail -n 2 "$scratch/said")"; fi
fi

# ---- starting over ----
if wants reset; then
	app=again
	sql "$scratch/$app.sql" "$app" final "$bounded"
	expect "a first run" 0 "again: 2[0-9]* records in" timeout 120 "$weir" run "$scratch/$app.sql" -b "$b"
	once=$("$weir" dump -b "$b" "$app" | wc -l)
	expect "reset only shows" 0 "would delete topic $app-.*-changelog" "$weir" reset "$app" -b "$b"
	expect "nothing was changed" 0 'weir reset' timeout 60 "$weir" run "$scratch/$app.sql" -b "$b"
	expect "reset" 0 "order.placed +0 +[0-9]+ +0" "$weir" reset "$app" -b "$b" --execute
	expect "and everything comes again" 0 "again: 2[0-9]* records in" timeout 120 "$weir" run "$scratch/$app.sql" -b "$b"
	if [ "$("$weir" dump -b "$b" "$app" | wc -l)" = $((2 * once)) ]; then ok "twice the rows"; else not_ok "not twice $once rows"; fi
	expect "a group that somebody moved alone" 0 0 $kafka tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand \
		--bootstrap-server "$b" --group "$app" --topic order.placed --reset-offsets --to-earliest --execute
	expect "is refused by name" 78 "weir reset $app -b" timeout 60 "$weir" run "$scratch/$app.sql" -b "$b"
	expect "reset to a time" 0 "order.placed" "$weir" reset "$app" -b "$b" --to-datetime 2026-01-01T00:05:00.000 --execute
	expect "begins there" 0 "applied" timeout 120 "$weir" run "$scratch/$app.sql" -b "$b"
	expect "an application that is not there" 78 'no group' "$weir" reset no-such -b "$b"
fi

# ---- what is wrong is said ----
if wants wrong; then
	sql "$scratch/wrong.sql" wrong final
	sed -i "s/'topic' = 'order.placed'/'topic' = 'no.such'/" "$scratch/wrong.sql"
	expect "a missing source" 78 'no.such' timeout 60 "$weir" run "$scratch/wrong.sql" -b "$b"
	sql "$scratch/wrong.sql" wrong final
	expect "a sink that is not to be made" 78 'topics.create' timeout 60 "$weir" run "$scratch/wrong.sql" -b "$b" -X topics.create=false
	$kafka create "$scratch/broker" wrong-compacted 2 cleanup.policy=compact >/dev/null 2>&1 || not_ok "making a compacted topic"
	sql "$scratch/wrong.sql" wrong-compacted final "$bounded"
	expect "a compacted sink, rows with keys" 0 'records in' timeout 60 "$weir" run "$scratch/wrong.sql" -b "$b" -g wrong-compacted
	sed -i "s/'topic' = 'wrong-compacted', 'format' = 'json', .*)/'topic' = 'wrong-compacted', 'format' = 'json')/" "$scratch/wrong.sql"
	expect "rows without keys" 78 'topic wrong-compacted is compacted and takes no record without a key' \
		timeout 60 "$weir" run "$scratch/wrong.sql" -b "$b" -g wrong-keyless
	expect "no broker, and no patience" 75 '127.0.0.1:1' timeout 60 "$weir" run "$scratch/wrong.sql" -b 127.0.0.1:1 -X broker.wait.ms=2s
fi
[ "$failures" = 0 ]
