#!/bin/bash
# kafka_log.sh: the log on a Kafka cluster (io/kafka/log.h) against a real broker, without the engine: epochs under every
# guarantee, kill -9 in the middle of one, frozen instances, twins, a broker that goes away, commits whose answer is lost.
# What is read back is checked with kcat and Kafka's own tools.
#   kafka_log.sh        prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

tests=$(dirname "$weir")/tests
trap '[ -n "${proxy_pid:-}" ] && kill "$proxy_pid"; $kafka stop "$scratch/broker"; rm -rf "$scratch"' EXIT
subject="the log on a broker"
needs "$tests/kafka_log" "$tests/kafka_proxy"
needs kcat
fetch_kafka
start_broker
# All clients go through the proxy, which loses answers when it is told to.
mode=$scratch/mode
"$tests/kafka_proxy" "${b#*:}" "$mode" >"$scratch/port" &
proxy_pid=$!
until [ -s "$scratch/port" ]; do sleep 0.05; done
direct=$b
b=127.0.0.1:$(cat "$scratch/port")
$kafka stop "$scratch/broker"
sed -i "s#^advertised.listeners=.*#advertised.listeners=PLAINTEXT://$b#" "$scratch/broker/server.properties"
[ "$($kafka start "$scratch/broker")" = "$direct" ] || {
	echo "not ok starting the broker again"
	exit 1
}

log() { # APP GUARANTEE VERB...: stdout; stderr goes to $scratch/said
	timeout 150 "$tests/kafka_log" "$b" "$@" 2>>"$scratch/said"
}
make() { $kafka create "$scratch/broker" "$@" >/dev/null 2>&1 || not_ok "creating $1"; }
values() { # TOPIC [ISOLATION]: "VALUE:COUNT" of every first word, sorted
	timeout 60 kcat -b "$b" -C -t "$1" -o beginning -e -q -X isolation.level="${2:-read_committed}" |
		awk '{ n[$1]++ } END { for (v in n) print v ":" n[v] }' | sort | paste -sd' '
}
offsets() { # GROUP: the committed offset of each partition
	$kafka tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$b" --describe \
		--group "$1" 2>/dev/null | awk -v g="$1" '$1 == g { print $3 ":" $4 }' | sort | paste -sd' '
}
same() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1: '$2', expected '$3'"
		tail -n 5 "$scratch/said" | cut -c1-300 | sed 's/^/    /'
	fi
}
wait_for() { # FILE PATTERN
	for _ in $(seq 900); do
		grep -q "$2" "$1" 2>/dev/null && return
		sleep 0.1
	done
	not_ok "waiting for $2 in $1"
}
# In the background, to be stopped at its open transaction: start_open APP GUARANTEE VERB...
start_open() {
	rm -f "$scratch/in" "$scratch/out"
	mkfifo "$scratch/in"
	"$tests/kafka_log" "$b" "$@" <"$scratch/in" >"$scratch/out" 2>>"$scratch/said" &
	open_pid=$!
	exec 8>"$scratch/in"
	wait_for "$scratch/out" open
}
go_on() {
	echo >&8
	exec 8>&-
	wait "$open_pid"
}

# ---- epochs ----
for g in at_least_once exactly_once at_most_once; do
	app=app.${g//_/.}
	make "$app-in" 3
	log "$app" $g epochs 1 3 10 >"$scratch/o"
	same "$g: three epochs" "$(paste -sd' ' "$scratch/o")" "committed 1 committed 2 committed 3"
	same "$g: the results" "$(values "$app-out")" "e1:10 e2:10 e3:10"
	same "$g: the group's offsets" "$(offsets "$app")" "0:30 1:31 2:32"
	log "$app" $g drop 4 2 10 >/dev/null
	log "$app" $g epochs 6 1 10 >/dev/null
	same "$g: the next run goes on, what was dropped is not there" "$(values "$app-s-changelog")" \
		"1:3 2:3 3:3 4:3 6:3 marker:15"
	[ $g = at_least_once ] ||
		same "$g: nor its results" "$(values "$app-out")" "e1:10 e2:10 e3:10 e4:10 e6:10"
	log "$app" $g read >"$scratch/o"
	same "$g: restore reads all of it" "$(sort "$scratch/o" | awk '$2 ~ /^k/' | paste -sd,)" \
		"0 k0 1,0 k0 2,0 k0 3,0 k0 4,0 k0 6,1 k1 1,1 k1 2,1 k1 3,1 k1 4,1 k1 6,2 k2 1,2 k2 2,2 k2 3,2 k2 4,2 k2 6"
	same "$g: and a second time the same" "$(grep -c differs "$scratch/o")" 0
done
describe=$($kafka describe "$scratch/broker" app.exactly.once-s-changelog 2>/dev/null | head -1)
for setting in cleanup.policy=compact segment.bytes=16777216 min.cleanable.dirty.ratio=0.1; do
	if [[ $describe == *$setting* ]]; then ok "a changelog has $setting"; else not_ok "no $setting in: $describe"; fi
done
for g in at_least_once at_most_once exactly_once; do
	app=less.${g//_/.}
	make "$app-in" 3
	log "$app" $g-stateless epochs 1 3 10 >/dev/null
	same "$g without state: the results" "$(values "$app-out")" "e1:10 e2:10 e3:10"
	same "$g without state: the group's offsets" "$(offsets "$app")" "0:30 1:31 2:32"
	same "$g without state: no changelog" "$($kafka describe "$scratch/broker" 2>/dev/null | grep -c "$app-s-changelog")" 0
done

# ---- topics that do not suit ----
make wrong-s-changelog 3
make wrong-in 3
same "a changelog that deletes is refused" "$(log wrong exactly_once elsewhere 1 1 1)" "failed -1"
grep -q 'cleanup.policy is delete' "$scratch/said" && ok "saying why" || not_ok "saying why"
make few-s-changelog 2 cleanup.policy=compact
same "a changelog with other partitions is refused" "$(log few exactly_once elsewhere 1 1 1)" "failed -1"
make short-out 3 retention.ms=86400000
log short exactly_once elsewhere 1 1 1 >/dev/null
grep -q 'topic short-out keeps records for 86400 s .* (....-..-.. ..:..:..[.0-9]*Z): the broker' "$scratch/said" && ok "a sink that deletes old results is reported" ||
	not_ok "a sink that deletes old results is reported"

make small-out 3 max.message.bytes=20000
for g in at_least_once exactly_once; do
	same "$g: batches suit a topic's max.message.bytes" \
		"$(log small $g elsewhere 1 1 5000 -X compression.codec=none | tail -n 1)" "committed 1"
done

# ---- repartition topics ----
make again-in 3
for p in 0 1 2; do seq 50 | kcat -b "$b" -P -t again-in -p $p; done
start_open again exactly_once-repartition pause 2 2 10
for _ in $(seq 100); do
	first=$(kcat -b "$b" -Q -t again-in:0:-2 -t again-in:1:-2 -t again-in:2:-2 | awk '{ print $NF }' | sort | paste -sd' ')
	[ "$first" = "20 21 22" ] && break
	sleep 0.1
done
same "what is read and committed of a repartition topic is deleted" "$first" "20 21 22"
go_on

# ---- kill -9 in an open transaction ----
make killed-in 3
log killed exactly_once kill 1 3 10 >/dev/null
same "killed: what was not committed is not visible" "$(values killed-out)" "e1:10 e2:10"
log killed exactly_once epochs 3 2 10 >/dev/null
same "killed: the next run resolves it and goes on" "$(values killed-out)" "e1:10 e2:10 e3:10 e4:10"
log killed exactly_once read >"$scratch/o"
same "killed: no trace in the changelog" "$(awk '$2 == "k0" { print $3 }' "$scratch/o" | paste -sd' ')" "1 2 3 4"

# ---- somebody else's open transaction holds a restore back ----
make held-in 3
log held exactly_once epochs 1 1 10 >/dev/null
start_open held exactly_once pause 2 1 10
log held exactly_once read >"$scratch/o" &
reader=$!
sleep 3
same "a restore waits for an open transaction" "$(kill -0 $reader 2>/dev/null && echo waits)" waits
go_on
wait $reader
same "and then has what it committed" "$(awk '$2 == "k0" { print $3 }' "$scratch/o" | paste -sd' ')" "1 2"

# ---- commits in doubt ----
for input in epochs elsewhere; do
	for what in answers requests; do
		app=doubt.$input.$what
		make "$app-in" 3
		start_open "$app" exactly_once "$([ $input = epochs ] && echo pause || echo pause-elsewhere)" 1 2 10 \
			-X transaction.timeout.ms=4000
		echo $what >"$mode"
		go_on
		same "EndTxn's $what lost ($input): the epoch is there" "$(tail -n 1 "$scratch/out")" "committed 2"
		same "EndTxn's $what lost ($input): once" "$(values "$app-out")" "e1:10 e2:10"
		rm -f "$mode"
	done
done

# ---- twins and frozen instances ----
log twins exactly_once elsewhere 1 1 10 -X group.instance.id=one >/dev/null
start_open twins exactly_once pause-elsewhere 2 1 10 -X group.instance.id=one
log twins exactly_once elsewhere 3 1 10 -X group.instance.id=one >/dev/null
go_on
same "a transactional id used twice: each epoch once" "$(values twins-out)" "e1:10 e2:10 e3:10"

for g in exactly_once at_least_once; do
	app=frozen.${g//_/.}
	make "$app-in" 3
	log "$app" $g epochs 1 1 10 >/dev/null
	start_open "$app" $g pause 2 1 10
	kill -STOP "$open_pid"
	log "$app" $g epochs 2 2 10 >"$scratch/o"
	same "$g: another instance takes over from a frozen one" "$(paste -sd' ' "$scratch/o")" "committed 2 committed 3"
	kill -CONT "$open_pid"
	go_on
	same "$g: the frozen one is told" "$(tail -n 1 "$scratch/out")" fenced
	same "$g: its epoch is not there" "$(values "$app-s-changelog")" "1:3 2:3 3:3 marker:9"
	same "$g: nor its offsets" "$(offsets "$app")" "0:30 1:31 2:32"
	[ $g = at_least_once ] || same "$g: nor its results" "$(values "$app-out")" "e1:10 e2:10 e3:10"
done

# ---- the broker goes away and comes back ----
for g in exactly_once at_least_once at_most_once; do
	app=away.${g//_/.}
	make "$app-in" 3
	start_open "$app" $g pause 1 2 10
	$kafka stop "$scratch/broker"
	echo >&8
	exec 8>&-
	sleep 15
	$kafka start "$scratch/broker" >/dev/null
	wait "$open_pid"
	if [ "$(tail -n 1 "$scratch/out")" = fenced ]; then # the group may forget its members meanwhile
		log "$app" $g epochs 2 1 10 >"$scratch/out"
	fi
	same "$g: a broker away for 15 s" "$(tail -n 1 "$scratch/out")" "committed 2"
	[ $g = at_least_once ] || same "$g: every result once" "$(values "$app-out")" "e1:10 e2:10"
	same "$g: every pack once" "$(values "$app-s-changelog")" "1:3 2:3 marker:6"
done

[ $failures -eq 0 ]
