#!/bin/bash
# kafka_input.sh: the member of a consumer group (io/kafka/input.h) against a real broker, by the program of the same
# name: shared partitions, revocations, startup and bounded modes, transactions, retention, brokers that go away.
#   kafka_input.sh  prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

produce=$(dirname "$weir")/tests/kafka_produce
input=$(dirname "$weir")/tests/kafka_input
on_broker "the group member against a broker" kcat "$produce" "$input"
start_broker

make() { $kafka create "$scratch/broker" "$@" 2>/dev/null || not_ok "creating $1"; }
# A machine that stands still for a while (another measurement on it) is no failure.
patient="wait.ms=300000 session.timeout.ms=170000"
member() { # GROUP TOPICS [NAME=VALUE]...
	# shellcheck disable=SC2086
	timeout 300 "$input" "$b" "$1" "$2" $patient "${@:3}" 2>"$scratch/said"
}
same() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ] && [ -n "$2" ]; then ok "$1"; else not_ok "$1: '$2', expected '$3'"; fi
}
# expect NAME CODE PATTERN ARGUMENTS...: exit code, and a line of what the member says
expect() {
	local name=$1 code=$2 pattern=$3 got
	shift 3
	member "$@" >"$scratch/out"
	got=$?
	if [ "$got" = "$code" ] && cat "$scratch/out" "$scratch/said" | grep -Eq -- "$pattern"; then
		ok "$name"
	else
		not_ok "$name: exit code $got (expected $code), no line like $pattern in:"
		tail -n 6 "$scratch/out" "$scratch/said" | cut -c1-300 | sed 's/^/    /'
	fi
}
done_of() { sed -n 's/^done //p' "$@"; }
wait_for() { # PATTERN FILE
	for _ in $(seq 1800); do
		grep -q "$1" "$2" 2>/dev/null && return
		sleep 0.1
	done
	not_ok "waiting for $1 in $2"
}

# ---- one member ----
make plain 1
"$produce" "$b" plain lz4 plain 0 100
member g1 plain bound=latest commit=10 print=1 >"$scratch/out"
same "every record, once" "$(grep -c ^record "$scratch/out") $(done_of "$scratch/out")" "100 100"
same "keys, values, headers and times" "$(grep -E '^record plain/0 (0|1|11|22|90) ' "$scratch/out" | paste -sd,)" \
	"$(for i in 0 1 11 22 90; do
		awk -v i=$i 'BEGIN {
			key = i % 7 == 0 ? "null" : "k" i
			n = i % 11 == 0 ? 0 : 20 + i % 280
			printf "record plain/0 %d ts=%.0f key=%s value=%d headers=1/%d\n", i, 1700000000000 + 1000 * i, key, n, length(i "") + 3
		}'
	done | paste -sd,)"
expect "headers are left out where nobody reads them" 0 'record plain/0 5 .* headers=0/0' \
	g1 plain bound=latest group=0 headers=0 print=1
expect "goes on where the group is" 0 '^committed plain/0 100 ' g1 plain bound=latest
same "which is the end" "$(done_of "$scratch/out")" 0
"$produce" "$b" plain lz4 plain 100 50
member g1 plain bound=latest >"$scratch/out"
same "and reads what came since" "$(grep ^read "$scratch/out")" "read plain/0 100-149 50 0"
member g1 plain bound=group start=earliest group=0 >"$scratch/out"
same "bounded by the group's offset" "$(grep ^read "$scratch/out")" "read plain/0 0-99 100 0"
member g2 plain start=time:1700000042000 bound=time:1700000060000 >"$scratch/out"
same "from a time to a time" "$(grep ^read "$scratch/out")" "read plain/0 42-59 18 0"
member g2 plain start=time:1800000000000 bound=latest >"$scratch/out"
same "from a time after the last record" "$(done_of "$scratch/out")" 0
member g2 plain start=offsets:partition:0,offset:140 bound=offsets:partition:0,offset:145 >"$scratch/out"
same "from an offset to an offset" "$(grep ^read "$scratch/out")" "read plain/0 140-144 5 0"
member g2 plain seek=0:120 bound=latest >"$scratch/out"
same "from a seek" "$(grep ^read "$scratch/out")" "read plain/0 120-149 30 0"
member g2 plain start=latest seek=0:-2 bound=latest >"$scratch/out"
same "from the first there is, whatever the startup mode" "$(grep ^read "$scratch/out")" "read plain/0 0-149 150 0"
member g2 plain start=latest records=5 >"$scratch/out" &
wait_for ^assigned "$scratch/out"
sleep 1
"$produce" "$b" plain lz4 plain 150 5
wait
same "from the latest: only what comes" "$(grep ^read "$scratch/out")" "read plain/0 150-154 5 0"
member g2 plain member=0 bound=latest >"$scratch/out"
same "without a group" "$(done_of "$scratch/out")" 155
make "appended" 1 message.timestamp.type=LogAppendTime
"$produce" "$b" appended none plain 0 20
expect "log append time" 0 'record appended/0 19 ts=17[1-9]|record appended/0 19 ts=1[89]|record appended/0 19 ts=2' g1 appended bound=latest print=1

# ---- topics ----
expect "a missing topic is named" 1 "^error -1 table one: there is no topic 'plian'" g1 plian
expect "a pattern without a match" 1 "no topic on .* matches 'x\\.\\*'" g1 '~x.*'
expect "a pattern that is none" 1 "is no regular expression" g1 '~('
expect "a topic read twice" 1 "read by table one and by table two" g1 plain+plain
make two-a 2
make two-b 2
"$produce" "$b" two-a none plain 0 10
"$produce" "$b" two-b none plain 0 20
member g1 '~two-[ab]+appended' bound=latest >"$scratch/out"
same "a pattern and a topic, two tables" "$(grep ^assigned "$scratch/out") $(done_of "$scratch/out")" \
	"assigned two-a/0 two-a/1 two-b/0 two-b/1 appended/0 50"
expect "an assignor that is neither range nor cooperative-sticky is refused" 1 'error -1 partition.assignment.strategy' \
	g1 plain partition.assignment.strategy=roundrobin

# ---- transactions ----
make transactions 1
"$produce" "$b" transactions none plain 0 5
"$produce" "$b" transactions none commit 5 5
"$produce" "$b" transactions lz4 abort 10 5
member g3 transactions bound=latest commit=100 >"$scratch/out"
same "bounded before an aborted transaction's marker" "$(done_of "$scratch/out")" 10
expect "the group stands behind the markers" 0 '^committed transactions/0 17 ' g3 transactions bound=latest
member g4 transactions bound=latest uncommitted=1 >"$scratch/out"
same "read_uncommitted reads them all" "$(done_of "$scratch/out")" 15
"$produce" "$b" transactions none open 20 3
"$produce" "$b" transactions none plain 23 3
member g4 transactions bound=latest >"$scratch/out"
same "an open transaction ends the bounded range" "$(done_of "$scratch/out")" 10
# Somebody who reads on without an end stands there and names who it is, meanwhile (looked at below).
timeout 300 "$input" "$b" held transactions $patient records=13 >"$scratch/held.out" 2>"$scratch/held.said" &
held=$!

# ---- offsets that are not there ----
expect "an offset beyond the end" 1 "error -1 table [^ ]*: 'scan.startup.specific-offsets': topic plain, partition 0 cannot be read from offset 900: it ends at 155" \
	g5 plain start=offsets:partition:0,offset:900
expect "a seek beyond the end" 1 'cannot be read from offset 901: it ends at 155' g5 plain seek=0:901
expect "offsets that are no offsets" 1 "'scan.startup.specific-offsets' = 'nonsense' is not of the form" \
	g5 plain start=offsets:nonsense
make eaten 1
"$produce" "$b" eaten none plain 0 50
member g6 eaten bound=offsets:partition:0,offset:20 commit=100 >/dev/null
echo '{"partitions": [{"topic": "eaten", "partition": 0, "offset": 30}], "version": 1}' >"$scratch/delete.json"
$kafka tool org.apache.kafka.tools.DeleteRecordsCommand --bootstrap-server "$b" --offset-json-file "$scratch/delete.json" \
	>/dev/null 2>&1
expect "records that retention removed unread" 1 \
	'error -3 topic eaten, partition 0 cannot be read from offset 20: it begins at 30, 10 offsets were removed' \
	g6 eaten ms=20000
expect "a seek to what was removed" 1 'it begins at 30, 11 offsets were removed' g6 eaten seek=0:19
expect "unless auto.offset.reset says to go on" 0 '^read eaten/0 30-49 20 ' g6 eaten auto.offset.reset=earliest bound=latest

# ---- several members ----
make four 4
seq 1 40000 | awk '{ print "k" $1 ":value " $1 }' | kcat -b "$b" -P -t four -K:
total=0
share() { # NAME [ARGUMENT]...: a member of g7, its lines marked in one log
	local name=$1
	shift
	timeout 300 "$input" "$b" g7 four $patient commit=1000 slow=100 "$@" 2>&1 | sed -u "s/^/$name /" >>"$scratch/log"
}
: >"$scratch/log"
share a bound=latest revoke.ms=700 &
wait_for '^a assigned' "$scratch/log"
share b bound=latest ms=2500 &
wait_for '^b assigned' "$scratch/log"
wait
share c bound=latest
total=$(sed -n 's/^[abc] done //p' "$scratch/log" | awk '{ n += $1 } END { print n }')
same "three members, one after and beside the other, read each record once" "$total" 40000
same "without a gap" "$(grep -E '^[abc] read' "$scratch/log" | awk '{ n += $NF } END { print n }')" 0
same "the partitions were shared" "$(grep -E '^a (assigned|revoked|releases)|^b assigned' "$scratch/log" | head -n 5 |
	sed -E 's/ four.*//' | sort -u | paste -sd,)" "a assigned,a releases,a revoked,b assigned"
same "nobody had them before they were released" \
	"$(sed -n '/^a revoked/,/^b assigned/p' "$scratch/log" | grep -E '^a (revoked|releases)|^b assigned' | head -n 3 |
		cut -d' ' -f1,2 | paste -sd,)" "a revoked,a releases,b assigned"
expect "the group stands at the end" 0 'committed four/3 10000 ' g7 four bound=latest
same "nothing is left" "$(done_of "$scratch/out")" 0

expect "leaving and joining again goes on at what was committed" 0 '^rejoins' g8 four bound=latest commit=5000 rejoin=20000 slow=1
same "reads the rest" "$(grep -c ^assigned "$scratch/out") $(awk '/^done/ { print ($2 >= 40000) }' "$scratch/out")" "2 1"
expect "paused, nothing comes" 0 '^paused: 0 records' g9 four bound=latest pause=9000
same "and then everything does" "$(done_of "$scratch/out") $(awk '/^read/ { n += $NF } END { print n }' "$scratch/out")" "40000 0"
member g10 four slow=1300 records=7000 >"$scratch/out" # held after a second of back-pressure
member g10 four bound=latest group=0 >"$scratch/out2"
same "what is thrown away by holding is fetched again" \
	"$(awk '/^read/ { n += $NF } /^again/ { n++ } END { print n + 0 }' "$scratch/out") $(done_of "$scratch/out2")" "0 40000"

: >"$scratch/log"
timeout 300 "$input" "$b" g11 four $patient ms=20000 group.instance.id=one >"$scratch/one" 2>&1 &
one=$!
wait_for '^assigned' "$scratch/one"
timeout 300 "$input" "$b" g11 four $patient group.instance.id=two >"$scratch/two" 2>&1 &
two=$!
wait_for '^assigned' "$scratch/two"
wait_for '^assigned four/. four/.$' "$scratch/one"
kill -9 $(pgrep -P $two) $two 2>/dev/null
before=$(grep -c ^revoked "$scratch/one")
expect "a static member comes back" 0 '^assigned four/. four/.$' g11 four group.instance.id=two ms=3000
same "unnoticed by the others" "$(grep -c ^revoked "$scratch/one")" "$before"
timeout 240 "$input" "$b" g11 four $patient group.instance.id=two ms=30000 >"$scratch/two" 2>&1 &
wait_for '^assigned' "$scratch/two"
member g11 four group.instance.id=two ms=3000 >/dev/null
wait_for '^error -9' "$scratch/two"
ok "a twin of a static member is told so"
kill $(pgrep -P $one) 2>/dev/null
wait

# ---- partitions moved one by one while they are read: what stays has no gap, and nothing comes twice ----
: >"$scratch/log"
move="heartbeat.interval.ms=300 partition.assignment.strategy=cooperative-sticky bound=latest commit=1000000"
# shellcheck disable=SC2086
timeout 300 "$input" "$b" g12 four $patient $move slow=300 >"$scratch/one" 2>&1 &
one=$!
wait_for '^assigned' "$scratch/one"
for i in 1 2 3; do
	# shellcheck disable=SC2086
	member g12 four $move slow=300 ms=4000 >"$scratch/other$i"
done
wait $one
same "cooperative members read every record once" \
	"$(cat "$scratch"/one "$scratch"/other? | awk '/^read/ { n += $NF } /^again/ { n++ } /^done/ { d += $2 } END { print n + 0, d }')" \
	"0 40000"
same "what goes is part of what is there" "$(grep -A2 -m1 ^revoked "$scratch/one" | grep -c '^assigned four/. four/.$')" 1

# ---- leaving at any moment ----
for i in $(seq 12); do
	coop=partition.assignment.strategy=cooperative-sticky
	[ $((i % 2)) = 0 ] || coop=partition.assignment.strategy=range
	timeout 240 "$input" "$b" "leave$i" four $coop >/dev/null 2>&1 &
	sleep "0.$((i % 6))$i"
	kill -TERM $(pgrep -P $!) 2>/dev/null
	wait $!
	code=$?
	[ $code = 124 ] && not_ok "leaving while joining hangs"
	[ $code -gt 128 ] && [ $code != 143 ] && not_ok "leaving while joining crashes: $code"
done
ok "leaving while joining ends"

# ---- the open transaction, ended by its coordinator after a minute ----
wait $held 2>/dev/null
same "who holds a live reader back is named" "$(grep -c 'transactions, partition 0: the unfinished transaction of open (producer .*time-out 60 s) holds back what follows offset 17' "$scratch/held.said" | awk '{ print ($1 >= 1) }')" 1
same "and it goes on when that is over" "$(done_of "$scratch/held.out")" 13

# ---- brokers that are not there ----
timeout 240 "$input" 127.0.0.1:1 g plain wait.ms=700 >"$scratch/out" 2>&1
same "no broker" "$(grep -c '^error -8 no broker at 127.0.0.1:1 answers' "$scratch/out")" 1
timeout 240 "$input" 127.0.0.1:1 g plain wait.ms=-1 >"$scratch/out" 2>"$scratch/said" &
sleep 11.5
kill -TERM $(pgrep -P $!)
wait
same "is waited for, and said" "$(grep -c 'waiting: no broker at 127.0.0.1:1 answers' "$scratch/said")" 1
same "until a signal" "$(grep -c '^error -5 stopped' "$scratch/out")" 1

timeout 300 "$input" "$b" g12 plain $patient >"$scratch/out" 2>"$scratch/said" records=165 &
wait_for '^assigned' "$scratch/out"
$kafka stop "$scratch/broker"
sleep 21
$kafka start "$scratch/broker" >/dev/null || not_ok "starting the broker again"
"$produce" "$b" plain lz4 plain 155 10
wait
same "a broker that was away for 20 s" "$(grep ^read "$scratch/out")" "read plain/0 0-164 165 0"
same "is told of" "$(grep -c "no broker at $b answers, waiting" "$scratch/said" | awk '{ print ($1 >= 1) }')" 1
exit $((failures > 0))
