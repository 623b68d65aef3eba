#!/bin/bash
# kafka_cooperative.sh: groups that move single partitions (partition.assignment.strategy=cooperative-sticky) on a real
# broker: instances join, leave and crash under load; what stays with an instance is neither revoked nor restored and goes
# on while another one restores what went to it; results equal the check and every numbered record comes out once; what
# needs range, or meets a member that uses it, says so.
#   kafka_cooperative.sh [--full]     prints `ok NAME` or `not ok NAME` lines, or `skipped: why`; --full: more members
#                                     that come and go
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

turns=1
[ "${1:-}" = --full ] && turns=8
produce=$(dirname "$weir")/tests/kafka_produce
on_broker "cooperative groups" kcat jq "$produce"
start_broker

records=$((60000 + turns * 20000))
partitions=4
in=$scratch/in
"$weir" gen orders --records $records --keys 2000 --partitions $partitions --seed 7 --rate 400 --key merchant_id \
	--disorder-ms 2000 --late 0.001 --out "$in" -q &&
	"$weir" replay "$in" order.placed -b "$b" -q || {
	not_ok "replaying the recording"
	exit 1
}

orders() {
	cat <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'kafka', 'topic' = 'order.placed', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset',
		  'key.format' = 'raw', 'key.fields' = 'merchant_id'${1:-});
	SQL
}
revenue() {
	orders
	cat <<-SQL
		CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2),
		  orders BIGINT)
		WITH ('connector' = 'kafka', 'topic' = '$app', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'merchant_id');
		INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))
		GROUP BY window_start, window_end, merchant_id;
	SQL
}
# The strategy by WITH here.
copy() {
	orders ", 'properties.partition.assignment.strategy' = 'cooperative-sticky'"
	cat <<-SQL
		CREATE TABLE copied (merchant_id STRING, order_id STRING)
		WITH ('connector' = 'kafka', 'topic' = '$app', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'merchant_id');
		INSERT INTO copied SELECT merchant_id, order_id FROM orders;
	SQL
}
strategy="-X partition.assignment.strategy=cooperative-sticky"
instance() { # NAME RATE [ARGUMENT]..., run as `instance ... &`: it becomes the command
	# shellcheck disable=SC2086
	exec "$weir" run "$scratch/job.sql" -b "$b" -X application.id="$app" -X processing.guarantee="$guarantee" -X scan.rate="$2" \
		-X session.timeout.ms=6000 -X heartbeat.interval.ms=500 -X transaction.timeout.ms=10000 -X client.id="$1" \
		$strategy "${@:3}" 2>"$scratch/$1.said"
}
lag() { "$weir" lag "$app" -b "$b" --format json 2>/dev/null; }
offset_of() { lag | jq -r ".partitions[] | select(.partition == $1) | .current_offset"; }
one_of() { lag | jq -r "[.partitions[] | select(.client_id != null) | select(.client_id | test(\"$1\"))][0].partition"; }
wait_for() { # SECONDS COMMAND...
	local tries=$(($1 * 5))
	shift
	for (( ; tries > 0; tries--)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
	done
	return 1
}
members() { [ "$(lag | jq -r '[.partitions[].client_id | select(. != null)] | unique | length')" = "$1" ]; }
moved() { [ "$(offset_of "$1")" -gt "$2" ]; } # PARTITION OFFSET
has_said() { grep -q "$2" "$scratch/$1.said"; }
said() { grep -vh rejected "$scratch/$1.said" | tail -n 6 | tr '\n' ' '; }
ends() { # NAME PID [SIGNAL]
	[ -z "${3:-}" ] || kill "-$3" "$2"
	if wait "$2"; then ok "$app: $1 ends with 0"; else not_ok "$app: $1 ends with $?: $(said "$1")"; fi
}
exact() {
	settled "$app" && "$check_revenue" --in "$in" --topic order.placed --window tumble --size 300000 --emit final --by merchant_id \
		<"$scratch/rows"
}
numbers_in() { jq -r '.payload | fromjson | .order_id' | sort; }
# The numbers of orders that came out against those that went in. again: repeats are fine
numbers() { # DUPLICATES ALLOWED
	settled "$app" || return 1
	numbers_in <"$scratch/rows" >"$scratch/out"
	sort -u "$scratch/out" >"$scratch/unique"
	local expected lost
	expected=$(wc -l <"$scratch/../numbers")
	lost=$(comm -13 "$scratch/unique" "$scratch/../numbers" | wc -l)
	echo "$(wc -l <"$scratch/out") records, $(wc -l <"$scratch/unique") numbers of $expected, $lost lost"
	[ "$lost" = 0 ] || return 1
	[ "$1" = again ] || [ "$(wc -l <"$scratch/out")" = "$expected" ]
}

# One has all; two comes, and cannot restore for a while: what stays with one goes on meanwhile.
stays() {
	local one two own before after
	app=stays guarantee=exactly_once
	revenue >"$scratch/job.sql"
	instance one 1000 &
	one=$!
	wait_for 40 moved 0 0 || not_ok "stays: one begins: $(said one)"
	"$produce" "$b" "$app-revenue-tumble-changelog" none "$app" 1 5 || not_ok "stays: opening a transaction in the changelog"
	instance two 1000 &
	two=$!
	wait_for 40 has_said one '2 partitions go, 0 come, 2 stay' || not_ok "stays: two partitions go: $(said one)"
	wait_for 40 members 2 || not_ok "stays: two instances share the work: $(lag)"
	own=$(one_of one)
	before=$(offset_of "$own")
	wait_for 20 moved "$own" "$before"
	after=$(offset_of "$own")
	if [ "$after" -gt "$before" ] && has_said one 'kept what is in memory of 2 of 4' && ! has_said one 'restor'; then
		ok "stays: what stays is not restored and goes on: $before to $after"
	else
		not_ok "stays: partition $own went from $before to $after: $(said one)"
	fi
	"$produce" "$b" "other-$app" none "$app" 0 0 # the open transaction ends: its id begins anew
	kill -9 $two
	wait $two 2>/dev/null
	if wait_for 40 has_said one '0 partitions go, 2 come, 2 stay'; then
		ok "stays: what a crashed one had comes to what is there"
	else
		not_ok "stays: nothing comes of the crashed one: $(said one)"
	fi
	ends one $one TERM
	instance three 0 &
	ends three $!
	fine "stays: every result exactly once" exact
}

# Members come, leave and crash; the last one runs to the end.
turmoil() { # JOB GUARANTEE CHECK...
	local one two three four turn
	app=$1-$2 guarantee=$2
	[ "$1" = copy ] && strategy=""
	$1 >"$scratch/job.sql"
	instance one 1500 &
	one=$!
	wait_for 40 members 1
	for ((turn = 0; turn < turns; turn++)); do
		instance two 1500 &
		two=$!
		wait_for 40 members 2 || not_ok "$app: two instances share the work: $(lag)"
		instance three 1500 &
		three=$!
		wait_for 40 members 3 || not_ok "$app: three instances share the work: $(lag)"
		sleep 1
		kill -9 $two
		wait $two 2>/dev/null
		wait_for 40 members 2
		ends three $three TERM
	done
	instance four 0 &
	four=$!
	wait_for 40 members 2
	ends one $one TERM
	ends four $four
	fine "$app: ${*:3}" "${@:3}"
}

# One stands still past its session: what it has goes to the other, and it comes back as somebody new.
frozen() {
	local one two
	app=frozen guarantee=exactly_once
	revenue >"$scratch/job.sql"
	instance one 1000 &
	one=$!
	wait_for 40 members 1
	instance two 1000 &
	two=$!
	wait_for 40 members 2 || not_ok "frozen: two instances share the work: $(lag)"
	sleep 1
	kill -STOP $two
	wait_for 40 has_said one '0 partitions go, 2 come, 2 stay' || not_ok "frozen: nothing comes of the frozen one: $(said one)"
	sleep 1
	kill -CONT $two
	if wait_for 40 members 2; then ok "frozen: it joins again"; else not_ok "frozen: it does not come back: $(said two)"; fi
	ends one $one TERM
	ends two $two TERM
	instance three 0 &
	ends three $!
	fine "frozen: every result exactly once" exact
}

# A member with a name of its own is away for a moment: nothing moves.
static() {
	local one two
	app=static guarantee=at_least_once
	revenue >"$scratch/job.sql"
	instance one 1000 -X group.instance.id=one -X session.timeout.ms=30000 &
	one=$!
	wait_for 40 members 1
	instance two 1000 -X group.instance.id=two -X session.timeout.ms=30000 &
	two=$!
	wait_for 40 members 2 || not_ok "static: two instances share the work: $(lag)"
	wait_for 40 has_said two 'restored from 2' || not_ok "static: two begins: $(said two)"
	kill -9 $two
	wait $two 2>/dev/null
	instance two 1000 -X group.instance.id=two -X session.timeout.ms=30000 &
	two=$!
	wait_for 40 has_said two 'resuming' || not_ok "static: it does not come back: $(said two)"
	if has_said one '2 come' || has_said two ' come'; then
		not_ok "static: partitions moved: $(said one) $(said two)"
	else
		ok "static: nothing moves while it is away"
	fi
	ends two $two TERM
	ends one $one TERM
}

# What cannot be moved one by one, and members that do not go together.
refusals() {
	app=refusals guarantee=at_least_once
	local first said got
	{
		orders
		cat <<-SQL
			CREATE TABLE more (order_id STRING, merchant_id STRING, ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3),
			  WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
			WITH ('connector' = 'kafka', 'topic' = 'order.more', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset',
			  'key.format' = 'raw', 'key.fields' = 'merchant_id');
			CREATE TABLE pairs (merchant_id STRING, a STRING, b STRING)
			WITH ('connector' = 'kafka', 'topic' = 'pairs', 'format' = 'json');
			INSERT INTO pairs SELECT o.merchant_id, o.order_id, m.order_id FROM orders o JOIN more m
			ON o.merchant_id = m.merchant_id AND m.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' MINUTE;
		SQL
	} >"$scratch/pairs.sql"
	$kafka create "$scratch/../broker" order.more $partitions >/dev/null 2>&1
	run() { timeout 60 "$weir" run "$1" -b "$b" -X application.id=$app "${@:2}"; }
	# shellcheck disable=SC2086
	expect "refusals: co-partitioned topics need range" 78 \
		'table orders \(topic order.placed\) and table more \(topic order.more\).*range' run "$scratch/pairs.sql" $strategy
	revenue >"$scratch/job.sql"
	expect "refusals: another strategy" 78 'partition.assignment.strategy = roundrobin.*range.*cooperative-sticky' \
		run "$scratch/job.sql" -X partition.assignment.strategy=roundrobin
	instance one 500 -X partition.assignment.strategy=range &
	first=$!
	wait_for 40 members 1
	# shellcheck disable=SC2086
	expect "refusals: a group that moves whole assignments" 78 'partition.assignment.strategy' run "$scratch/job.sql" $strategy
	ends one $first TERM
}

"$weir" dump "$in" order.placed 2>/dev/null | numbers_in >"$scratch/numbers"
for lane in stays "turmoil revenue exactly_once exact" "turmoil copy exactly_once numbers once" \
	"turmoil copy at_least_once numbers again" frozen static refusals; do
	mkdir "$scratch/${lane// /-}"
	(
		scratch=$scratch/${lane// /-}
		trap '[ -z "$(jobs -p)" ] || kill -9 $(jobs -p) 2>/dev/null' EXIT
		$lane >"$scratch/lines" 2>&1
	) &
done
wait
cat "$scratch"/*/lines
! grep -q '^not ok' "$scratch"/*/lines
