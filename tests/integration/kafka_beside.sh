#!/bin/bash
# kafka_beside.sh: slots that are restored after a rebalance do not hold up those that are there: of two instances of the
# revenue job one is killed while somebody's open transaction in a changelog partition of its makes restoring it wait; the
# other goes on with its own partitions meanwhile, and the results are exact; so they are when the group gives its
# partitions out anew in the middle of that, and when an instance is stopped there.
#   kafka_beside.sh     prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

produce=$(dirname "$weir")/tests/kafka_produce
on_broker "restoring beside what runs" kcat jq "$produce"
start_broker

records=100000
partitions=4
in=$scratch/in
"$weir" gen orders --records $records --keys 2000 --partitions $partitions --seed 7 --rate 400 --key merchant_id \
	--disorder-ms 2000 --late 0.001 --bad 0.001 --out "$in" -q &&
	"$weir" replay "$in" order.placed -b "$b" -q || {
	not_ok "replaying the recording"
	exit 1
}

sql() {
	cat <<-SQL
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'kafka', 'topic' = 'order.placed', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset',
		  'key.format' = 'raw', 'key.fields' = 'merchant_id');
		CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2),
		  orders BIGINT)
		WITH ('connector' = 'kafka', 'topic' = '$app', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'merchant_id');
		INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES))
		GROUP BY window_start, window_end, merchant_id;
	SQL
}
instance() { # NAME RATE, run as `instance ... &`: it becomes the command
	exec "$weir" run "$scratch/job.sql" -b "$b" -X application.id="$app" -X processing.guarantee=exactly_once -X scan.rate="$2" \
		-X session.timeout.ms=6000 -X heartbeat.interval.ms=500 -X transaction.timeout.ms=5000 -X client.id="$1" 2>"$scratch/$1.said"
}
lag() { "$weir" lag "$app" -b "$b" --format json 2>/dev/null; }
owner_of() { lag | jq -r ".partitions[] | select(.partition == $1) | .client_id" | grep -o 'one\|two'; }
offset_of() { lag | jq -r ".partitions[] | select(.partition == $1) | .current_offset"; }
one_of() { lag | jq -r "[.partitions[] | select(.client_id | test(\"$1\"))][0].partition"; } # what the client has
wait_for() { # SECONDS COMMAND...
	local tries=$(($1 * 5))
	shift
	for (( ; tries > 0; tries--)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
	done
	return 1
}
shared() { [ "$(lag | jq -r '[.partitions[].client_id | select(. != null)] | unique | length')" = 2 ]; }
moved() { [ "$(offset_of "$1")" -gt "$2" ]; } # PARTITION OFFSET
said() { grep -vh rejected "$scratch/$1.said" | tail -n 5 | tr '\n' ' '; }

# Up to where one instance restores beside what it has: sets survivor and its pid
begin() { # APP
	local one two victim own before after waiting
	app=$1
	sql >"$scratch/job.sql"
	instance one 2000 &
	one=$!
	sleep 2
	instance two 2000 &
	two=$!
	wait_for 30 shared || not_ok "$app: two instances share the work: $(lag)"
	sleep 2
	victim=$(owner_of 0)
	case $victim in
	one) survivor=two pid=$two ;;
	two) survivor=one pid=$one ;;
	*)
		not_ok "$app: who has partition 0? $(lag)"
		exit 1
		;;
	esac
	own=$(one_of $survivor)
	"$produce" "$b" "$app-revenue-tumble-changelog" none "$app" 1 5 || not_ok "$app: opening a transaction in the changelog"
	[ $victim = one ] && two=$one
	kill -9 $two
	wait $two 2>/dev/null
	if wait_for 40 grep -q 'restoring 2 of 4 changelog partitions; the others go on' "$scratch/$survivor.said"; then
		ok "$app: what the killed one had is restored beside"
	else
		not_ok "$app: nothing is restored beside: $(said $survivor)"
	fi
	before=$(offset_of "$own") waiting=$(offset_of 0)
	wait_for 12 moved "$own" "$before"
	after=$(offset_of "$own")
	if [ "$after" -gt "$before" ] && [ "$(offset_of 0)" = "$waiting" ] && ! grep -q 'beside the others' "$scratch/$survivor.said"; then
		ok "$app: meanwhile what was there goes on"
	else
		not_ok "$app: partition $own went from $before to $after, 0 stood at $waiting, stands at $(offset_of 0): $(said $survivor)"
	fi
}
settle() { # the open transaction ends: its id begins anew
	"$produce" "$b" "other-$app" none "$app" 0 0
}
exact() {
	settled "$app" && "$check_revenue" --in "$in" --topic order.placed --window tumble --size 300000 --emit final --by merchant_id \
		<"$scratch/rows"
}

beside() {
	begin beside
	settle
	if wait_for 40 grep -Eq 'restored 2 changelog partitions in [0-9]+ ms beside the others, which took [1-9][0-9]* records' "$scratch/$survivor.said"; then
		ok "beside: then it has them all"
	else
		not_ok "beside: restoring does not end: $(said $survivor)"
	fi
	kill -TERM $pid
	if wait $pid; then ok "beside: it ends with 0"; else not_ok "beside: it ends with $?: $(said $survivor)"; fi
	instance four 0 &
	if wait $!; then ok "beside: the next one runs to the end"; else not_ok "beside: the next one ends with $?: $(said four)"; fi
	fine "beside: every result exactly once" exact
}

# Another instance comes in the middle, and the one that restores is stopped.
taken() {
	local three
	begin taken
	instance three 0 &
	three=$!
	wait_for 30 shared || not_ok "taken: another instance joins in the middle: $(lag)"
	kill -TERM $pid
	if wait $pid; then ok "taken: an instance that restores can be stopped"; else not_ok "taken: SIGTERM ends it with $?: $(said $survivor)"; fi
	settle
	if wait $three; then ok "taken: the other one runs to the end"; else not_ok "taken: the other one ends with $?: $(said three)"; fi
	fine "taken: every result exactly once" exact
}

for lane in beside taken; do
	mkdir "$scratch/$lane"
	(
		scratch=$scratch/$lane
		trap '[ -z "$(jobs -p)" ] || kill -9 $(jobs -p) 2>/dev/null' EXIT
		$lane >"$scratch/lines" 2>&1
	) &
done
wait
cat "$scratch"/*/lines
! grep -q '^not ok' "$scratch"/*/lines
