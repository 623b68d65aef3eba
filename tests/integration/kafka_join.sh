#!/bin/bash
# kafka_join.sh: joins and table aggregates from topics to topics on a real broker: interval joins (inner, left, full), AS
# OF, stream with table, table with table, GROUP BY over a table; exact against join_check.py under every guarantee, killed
# and restarted, and shared by instances that come, go and crash. Joins lose and double nothing: an unmatched row of a left
# or full join is there exactly once for readers of committed records, and never beside its match.
#   kafka_join.sh [--full] [--seed N] [--only SECTION]     --full: 40 kills a guarantee instead of 4, ten times the
#                                        records; sections: calm kill tables topic shared; prints `ok NAME` or
#                                        `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

kills=4
records=8000
options "$@"
[ -z "$full" ] || { kills=40 && records=200000; }

on_broker "joins on a broker" kcat jq python3
start_broker
broker=$scratch/broker

in=$scratch/in
judge() { python3 tests/integration/join_check.py "$@"; }
judge make "$in" "$seed" $records || exit 1
partitions=4
# produce TOPIC...: their records by Kafka's own partitioner, a piece of each in turn: they are read by their timestamps
produce() {
	local topic piece
	for topic in "$@"; do
		$kafka create "$broker" "$topic" $partitions >/dev/null 2>&1 || not_ok "making topic $topic"
		split -n l/6 "$in/$topic" "$in/$topic."
	done
	for piece in a b c d e f; do
		for topic in "$@"; do
			kcat -b "$b" -P -t "$topic" -K '|' -Z -X topic.partitioner=murmur2_random -l "$in/$topic.a$piece" 2>"$scratch/said" ||
				not_ok "producing $topic: $(cat "$scratch/said")"
		done
	done
}
produce orders payments sales products

local=$scratch/local # whatever an instance keeps on the machine: where it runs, and its temporary folder
run() { # SQL ARGUMENTS...: in the place of the shell it runs in
	mkdir -p "$local" && cd "$local" && TMPDIR=$local exec "$weir" run "$1" -b "$b" "${@:2}"
}
bounded=", 'scan.bounded.mode' = 'latest-offset'"
time="event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND"
# source NAME COLUMNS TOPIC KEY: a stream of JSON with event times
source_table() {
	local key=", 'key.format' = 'raw', 'key.fields' = '$4'"
	[ -n "$4" ] || key=""
	echo "CREATE TABLE $1 ($2, ts BIGINT, $time) WITH ('connector' = 'kafka', 'topic' = '$3', 'format' = 'json'$key$bounded);"
}
# sink NAME COLUMNS TOPIC KEY
sink_table() {
	echo "CREATE TABLE $1 ($2) WITH ('connector' = 'kafka', 'topic' = '$3', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = '$4');"
}
# upsert NAME COLUMNS TOPIC KEY
upsert_table() {
	echo "CREATE TABLE $1 ($4 STRING, $2, PRIMARY KEY ($4) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '$3', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY'${5:-});"
}

products_table() {
	echo "CREATE TABLE products (product_id STRING, version BIGINT, ts BIGINT, $time, PRIMARY KEY (product_id) NOT ENFORCED)
		WITH ('connector' = 'upsert-kafka', 'topic' = 'products', 'value.format' = 'json', 'key.format' = 'raw'$bounded);"
}
# streams_sql APP: orders with payments, three ways, and sales with the products of their time
streams_sql() {
	local kind join where="p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '10' SECOND"
	source_table orders "order_id STRING, customer STRING, amount BIGINT" orders order_id
	source_table payments "payment_id STRING, order_id STRING, customer STRING" payments order_id
	source_table sales "sale_id STRING, product_id STRING" sales product_id
	products_table
	for kind in inner left full; do
		sink_table "paid_$kind" "order_id STRING, payment_id STRING, amount BIGINT" "$1-$kind" order_id
		[ $kind = inner ] && join=JOIN || join="$kind JOIN"
		echo "INSERT INTO paid_$kind SELECT o.order_id, p.payment_id, o.amount FROM orders o $join payments p
			ON o.order_id = p.order_id AND $where;"
	done
	sink_table versioned "sale_id STRING, version BIGINT" "$1-asof" sale_id
	echo "INSERT INTO versioned SELECT s.sale_id, p.version FROM sales s
		LEFT JOIN products FOR SYSTEM_TIME AS OF s.event_time AS p ON s.product_id = p.product_id;"
}
streams_are() { # APP KEEP
	local kind
	for kind in inner left full asof; do
		settled "$1-$kind"
		if [ $kind = asof ]; then
			fine "$name: $kind, $2" judge asof "$in" "$2" <"$scratch/rows"
		else
			fine "$name: $kind, $2" judge streams "$in" $kind "$2" <"$scratch/rows"
		fi
	done
}
# tables_sql APP: prices with stocks; members by region, which brings rows to another key's slot
tables_sql() {
	upsert_table prices "v BIGINT" prices k "$bounded"
	upsert_table stocks "v BIGINT" stocks k "$bounded"
	upsert_table offers "price BIGINT, stock BIGINT" "$1-tables" k
	echo "INSERT INTO offers SELECT p.k, p.v, s.v FROM prices p LEFT JOIN stocks s ON p.k = s.k;"
}
groups_sql() {
	upsert_table members "region STRING, points BIGINT" members member "$bounded"
	upsert_table regions "members BIGINT, points BIGINT" "$1-groups" region
	echo "INSERT INTO regions SELECT region, COUNT(*) AS members, SUM(points) AS points FROM members GROUP BY region;"
}
located_sql() {
	upsert_table members "region STRING, points BIGINT" members member "$bounded"
	upsert_table areas "name STRING" areas region "$bounded"
	upsert_table located "points BIGINT, name STRING" "$1-located" member
	echo "INSERT INTO located SELECT m.member, m.points, a.name FROM members m LEFT JOIN areas a ON m.region = a.region;"
}
latest_sql() {
	upsert_table users "name STRING" users user_id "$bounded"
	echo "CREATE TABLE clicks (click_id STRING, user_id STRING) WITH ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json',
		'key.format' = 'raw', 'key.fields' = 'user_id'$bounded);"
	sink_table known "click_id STRING, name STRING" "$1-latest" click_id
	echo "INSERT INTO known SELECT c.click_id, u.name FROM clicks c LEFT JOIN users u ON c.user_id = u.user_id;"
}
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }
keep_of() { # GUARANTEE: what a crash may do to its results
	case $1 in
	at_least_once) echo again ;;
	exactly_once) echo exact ;;
	at_most_once) echo missing ;;
	esac
}
# to_the_end NAME APP ARGUMENTS...: runs the job until its input is consumed
to_the_end() {
	local what=$1 app=$2
	shift 2
	if timeout 300 "$weir" run "$scratch/$app.sql" -b "$b" "$@" 2>"$scratch/said"; then
		ok "$what"
	else
		not_ok "$what: $(tail -n 3 "$scratch/said" | tr '\n' ' ')"
	fi
}
# together "FUNCTION ARGUMENT"...: all at once, each with a folder of its own
together() {
	local call folder
	for call in "$@"; do
		(
			failures=0
			scratch=$scratch/${call/ /-}
			local=$scratch/local
			mkdir -p "$scratch"
			${call% *} "${call#* }" >"$scratch.lines" 2>&1
		) &
	done
	wait
	for call in "$@"; do
		folder=$scratch/${call/ /-}
		cat "$folder.lines"
		failures=$((failures + $(grep -c '^not ok' "$folder.lines")))
	done
}
# killed APP RATE ARGUMENTS...: runs and kills it, again and again; every other time nothing local is left. A member with
# a name of its own takes over from what was killed at once.
killed() {
	local app=$1 rate=$2 i k pid on=0
	shift 2
	for ((k = 0; k < kills; k++)); do
		[ $((k % 2)) = 0 ] || rm -rf "$local"
		(run "$scratch/$app.sql" -X group.instance.id=one -X commit.interval.ms=100 -X scan.rate="$rate" "$@" 2>"$scratch/said") &
		pid=$!
		for ((i = 0; k > 0 && i < 150; i++)); do # however busy the machine is, it is killed while it reads
			grep -q 'resuming at epoch' "$scratch/said" && break
			kill -0 $pid 2>/dev/null || break
			sleep 0.1
		done
		sleep "$(awk -v r=$RANDOM -v k=$k 'BEGIN { printf "%.3f", (k > 0 ? 0.3 : 1.2) + r / 32768 }')"
		kill -9 $pid 2>/dev/null
		wait $pid 2>/dev/null
		grep -q 'resuming at epoch' "$scratch/said" && on=$((on + 1))
	done
	if [ $on -ge $(((kills - 1) / 2)) ]; then ok "$name: killed $kills times"; else not_ok "$name: only $on of $kills killed runs had got on: $(tail -n 2 "$scratch/said")"; fi
}
# instances come, go and crash; the last one runs to the end
instance() { # run as `instance ... &`: it becomes the command
	exec "$weir" run "$scratch/$app.sql" -b "$b" -X processing.guarantee=exactly_once -X session.timeout.ms=6000 \
		-X heartbeat.interval.ms=500 "$@" 2>"$scratch/shared.$BASHPID.said"
}
come_and_go() { # RATE ARGUMENTS...
	local rate=$1 one two three k
	shift
	instance -X scan.rate="$rate" "$@" &
	one=$!
	sleep 2
	instance -X scan.rate="$rate" "$@" &
	two=$!
	sleep 3
	kill -TERM $one 2>/dev/null
	wait $one
	k=$?
	if [ $k = 0 ]; then ok "$name: an instance leaves"; else not_ok "$name: SIGTERM ends an instance with $k: $(tail -n 3 "$scratch/shared.$one.said" | tr '\n' ' ')"; fi
	instance -X scan.rate="$rate" "$@" &
	three=$!
	sleep 2
	kill -9 $two 2>/dev/null
	wait $two 2>/dev/null
	instance "$@" &
	one=$!
	for ((k = 0; k < 1800; k++)); do
		kill -0 $three 2>/dev/null || kill -0 $one 2>/dev/null || break
		sleep 0.1
	done
	for k in $three $one; do
		if kill -9 $k 2>/dev/null; then
			not_ok "$name: an instance does not end: $(tail -n 3 "$scratch/shared.$k.said" | tr '\n' ' ')"
		fi
		wait $k 2>/dev/null
	done
	to_the_end "$name: nothing is left over" "$app" -X processing.guarantee=exactly_once "$@"
}

# ---- each guarantee, undisturbed ----
calm_job() { # GUARANTEE
	name="calm, $1" app=calm-$1
	streams_sql "$app" >"$scratch/$app.sql"
	to_the_end "$name: runs to the bound" "$app" -X "processing.guarantee=$1"
	streams_are "$app" exact
}
if wants calm; then
	together "calm_job at_least_once" "calm_job exactly_once" "calm_job at_most_once"
fi

# ---- kill -9 ----
killed_job() { # GUARANTEE
	name="killed, $1" app=kill-$1
	streams_sql "$app" >"$scratch/$app.sql"
	killed "$app" $((records * 3 / (kills + 1))) -X "processing.guarantee=$1"
	to_the_end "$name: runs to the end" "$app" -X group.instance.id=one -X "processing.guarantee=$1"
	streams_are "$app" "$(keep_of "$1")"
}
if wants kill; then
	together "killed_job at_least_once" "killed_job exactly_once" "killed_job at_most_once"
fi

# ---- instances come, go and crash; killed with tables ----
shared_job() {
	name="shared" app=shared
	{
		streams_sql "$app"
		tables_sql "$app"
	} >"$scratch/$app.sql"
	come_and_go $((records / 3))
	streams_are "$app" exact
	settled "$app-tables"
	fine "$name: tables, exact" judge tables "$in" exact <"$scratch/rows"
}
table_job() { # KIND-GUARANTEE
	local kind=${1%%-*} guarantee=${1#*-}
	name="killed, $kind, $guarantee" app=$1
	${kind}_sql "$app" >"$scratch/$app.sql"
	killed "$app" $((records / (kills + 1))) -X "processing.guarantee=$guarantee"
	to_the_end "$name: runs to the end" "$app" -X group.instance.id=one -X "processing.guarantee=$guarantee"
	settled "$app-$kind"
	fine "$name: $(keep_of "$guarantee")" judge "$kind" "$in" "$(keep_of "$guarantee")" <"$scratch/rows"
}
# alone_job crashed | twin: a query that keeps all slots in one process, restarted while members that crashed are in its
# group still; and started a second time
alone_job() {
	local pid k
	name="one process, $1" app=alone-$1
	groups_sql "$app" >"$scratch/$app.sql"
	if [ "$1" = crashed ]; then
		for ((k = 0; k < 4; k++)); do
			(run "$scratch/$app.sql" -X session.timeout.ms=6000 2>"$scratch/said") &
			pid=$!
			sleep 0.8
			kill -9 $pid 2>/dev/null
			wait $pid 2>/dev/null
		done
		to_the_end "$name: waits for them to go" "$app"
		settled "$app-groups"
		fine "$name: again" judge groups "$in" again <"$scratch/rows"
		return
	fi
	sed -i "s/$bounded//" "$scratch/$app.sql"
	(run "$scratch/$app.sql" 2>"$scratch/first") &
	pid=$!
	sleep 3
	expect "$name: is refused once it had the time to go" 78 'has other members.*re-keys within one process' \
		timeout 60 "$weir" run "$scratch/$app.sql" -b "$b" -X session.timeout.ms=6000
	kill -TERM $pid
	wait $pid
	k=$?
	if [ $k = 0 ]; then ok "$name: the first one goes on"; else not_ok "$name: the first one ends with $k: $(tail -n 2 "$scratch/first")"; fi
	if grep -q 'other members' "$scratch/first"; then not_ok "$name: the first one lost partitions to it: $(grep 'other members' "$scratch/first")"; else ok "$name: and loses nothing to it"; fi
}
taken_job() { # KIND-GUARANTEE: the stream of clicks is empty still
	latest_sql "$1" >"$scratch/$1.sql"
	to_the_end "stream with table, ${1#*-}: takes the table" "$1" -X "processing.guarantee=${1#*-}"
}
if wants tables; then
	produce users members areas prices stocks
	$kafka create "$broker" clicks $partitions >/dev/null 2>&1
	together "taken_job latest-at_least_once" "taken_job latest-exactly_once"
	kcat -b "$b" -P -t clicks -K '|' -X topic.partitioner=murmur2_random -l "$in/clicks"
	together "table_job latest-at_least_once" "table_job tables-at_least_once" "table_job groups-at_least_once" "table_job located-at_least_once"
	together "table_job latest-exactly_once" "table_job tables-exactly_once" "table_job groups-exactly_once" "table_job located-exactly_once" \
		"alone_job crashed" "alone_job twin"
fi
# ---- exchange=topic: inputs that are keyed by something else, instances that come, go and crash ----
# topic_sql APP: orders come keyed by customer (payments by the order they pay: they stay), sales by sale (products stay);
# both sides by something else; members by region; and two aggregates (tables that change) joined by customer
topic_sql() {
	local key kind join where="p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '10' SECOND"
	source_table orders "order_id STRING, customer STRING, amount BIGINT" orders-by-other customer
	source_table payments "payment_id STRING, order_id STRING, customer STRING" payments order_id
	source_table payments_by_other "payment_id STRING, order_id STRING, customer STRING" payments-by-other payment_id
	source_table sales "sale_id STRING, product_id STRING" sales-by-other sale_id
	products_table
	for kind in inner left full; do
		key=payments
		[ $kind = inner ] && join=JOIN || join="$kind JOIN"
		[ $kind = full ] && key=payments_by_other
		sink_table "paid_$kind" "order_id STRING, payment_id STRING, amount BIGINT" "$1-$kind" order_id
		echo "INSERT INTO paid_$kind SELECT o.order_id, p.payment_id, o.amount FROM orders o $join $key p
			ON o.order_id = p.order_id AND $where;"
	done
	sink_table versioned "sale_id STRING, version BIGINT" "$1-asof" sale_id
	echo "INSERT INTO versioned SELECT s.sale_id, p.version FROM sales s
		LEFT JOIN products FOR SYSTEM_TIME AS OF s.event_time AS p ON s.product_id = p.product_id;"
	groups_sql "$1"
	echo "CREATE TEMPORARY VIEW ordered AS SELECT customer, COUNT(*) AS n, SUM(amount) AS amount FROM orders GROUP BY customer;
		CREATE TEMPORARY VIEW paid AS SELECT customer, COUNT(*) AS n FROM payments GROUP BY customer;"
	located_sql "$1" | tail -n +2
	upsert_table numbered "customers BIGINT" "$1-numbered" nth # out of an OVER stage through a topic
	echo "INSERT INTO numbered SELECT nth, COUNT(*) FROM (SELECT CAST(n AS STRING) AS nth FROM
		(SELECT ROW_NUMBER() OVER (PARTITION BY customer ORDER BY event_time) AS n FROM orders)) GROUP BY nth;"
	upsert_table totals "orders BIGINT, amount BIGINT, payments BIGINT" "$1-totals" customer
	echo "INSERT INTO totals SELECT o.customer, o.n, o.amount, p.n FROM ordered o LEFT JOIN paid p ON o.customer = p.customer;"
}
# topic_is APP: all of them
topic_is() {
	streams_are "$1" exact
	for kind in groups totals located numbered; do
		settled "$1-$kind"
		fine "$name: $kind" judge $kind "$in" exact <"$scratch/rows"
	done
}
topic_job() { # GUARANTEE
	name="exchange=topic, $1" app=topic-$1
	topic_sql "$app" >"$scratch/$app.sql"
	to_the_end "$name: runs to the bound" "$app" -X exchange=topic -X "processing.guarantee=$1"
	topic_is "$app"
}
topic_shared_job() {
	name="exchange=topic, shared" app=topic-shared
	topic_sql "$app" >"$scratch/$app.sql"
	come_and_go $((records / 2)) -X exchange=topic
	topic_is "$app"
}
# late_job STATE: rows that come too late behind a repartition topic can be read: JSON, with the stage and the reason
late_job() {
	local at k
	name="late, $1" app=late-$1
	for k in l r; do
		$kafka create "$broker" "$app-$k" 1 >/dev/null 2>&1
		for at in 100000 200000; do
			echo "x|{\"k\":\"a\",\"v\":1,\"ts\":$at}"
		done | kcat -b "$b" -P -t "$app-$k" -K '|'
		source_table $k "k STRING, v BIGINT" "$app-$k" ""
	done >"$scratch/$app.sql"
	sink_table late "k STRING, n BIGINT" "$app" k >>"$scratch/$app.sql"
	if [ "$1" = window ]; then
		echo "INSERT INTO late SELECT k, SUM(v) AS n FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(event_time), INTERVAL '1' SECOND))
			GROUP BY window_start, window_end, k;"
	else
		echo "INSERT INTO late SELECT l.k, l.v FROM l JOIN r ON l.k = r.k AND r.event_time BETWEEN l.event_time AND l.event_time + INTERVAL '1' SECOND;"
	fi >>"$scratch/$app.sql"
	to_the_end "$name: runs to the bound" "$app" -X exchange=topic -X "late.topic=$app-late"
	echo "x|{\"k\":\"b\",\"v\":7,\"ts\":1000}" | kcat -b "$b" -P -t "$app-l" -K '|'
	to_the_end "$name: and to the next one" "$app" -X exchange=topic -X "late.topic=$app-late"
	kcat -b "$b" -C -t "$app-late" -o beginning -e -q -f '%k|%s|%T|%h\n' >"$scratch/rows" 2>&1
	expect "$name: one row" 0 '^1$' grep -c . "$scratch/rows"
	expect "$name: its columns" 0 "^\|[{]\"k\":\"b\",\"v\":7[}]\|1000\|" cat "$scratch/rows"
	expect "$name: its headers" 0 "weir-error-reason=late,weir-error-topic=$app.*-repartition,weir-error-partition=0,weir-error-offset=[0-9]+,weir-error-stage=late-" \
		cat "$scratch/rows"
}
if wants topic; then
	together "late_job window" "late_job join"
	wants tables || produce members areas
	produce orders-by-other payments-by-other
	produce sales-by-other
	app=topic-odd
	topic_sql "$app" >"$scratch/$app.sql"
	$kafka create "$broker" "$app-paid_full-join-right-repartition" 3 >/dev/null 2>&1
	expect "a repartition topic with another number of partitions is refused" 78 \
		"topic $app-paid_full-join-right-repartition has 3 partitions, its application's sources have 4" \
		timeout 60 "$weir" run "$scratch/$app.sql" -b "$b" -X exchange=topic
	together "topic_job at_least_once" "topic_job exactly_once" "topic_job at_most_once"
fi
if wants shared; then
	wants tables || produce prices stocks members areas
	wants topic || produce orders-by-other payments-by-other
	wants topic || produce sales-by-other
	together "shared_job streams" "topic_shared_job topic"
fi
[ "$failures" = 0 ]
