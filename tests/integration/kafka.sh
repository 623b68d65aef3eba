#!/bin/bash
# kafka.sh: the verbs that talk to brokers, against a real one: record, replay, dump -b and lag, compared with kcat and
# Kafka's own tools; properties, exit codes, a broker that is not there.
#   kafka.sh        prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

produce=$(dirname "$weir")/tests/kafka_produce
on_broker "the verbs against a broker" "$produce" kcat jq
start_broker

same() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ] && [ -n "$2" ]; then ok "$1"; else not_ok "$1: '$2', expected '$3'"; fi
}
# The digest without the topic's name.
digest() { "$weir" dump "$@" --digest -q 2>&1 | awk '{ print $1, $3, $5 }'; }
digest_broker() { digest -b "$b" "$@"; }

# ---- a recording goes to the broker and comes back ----
in=$scratch/in
"$weir" gen orders --records 30000 --keys 100 --partitions 3 --disorder-ms 500 --late 0.01 --bad 0.01 --out "$in" -q
expect "replay makes its topic" 0 'made topic order.placed with 3 partitions, retention.ms=-1' \
	"$weir" replay "$in" order.placed -b "$b"
same "the topic's retention" "$($kafka describe "$scratch/broker" order.placed 2>/dev/null | grep -c 'retention.ms=-1')" 1
expect "record" 0 'order.placed: 30000 records' "$weir" record -b "$b" -t order.placed "$scratch/back"
same "what came back is what was recorded" "$(digest "$scratch/back" order.placed)" "$(digest "$in" order.placed)"
same "dump -b --digest is the same" "$(digest_broker order.placed)" "$(digest "$in" order.placed)"
expect "a recorded topic is not written over" 78 'has a topic order.placed already' \
	"$weir" record -b "$b" -t order.placed "$scratch/back"
for codec in none gzip snappy lz4 zstd; do
	expect "replay, $codec" 0 "30000 records" "$weir" replay "$in" order.placed -b "$b" -t "c-$codec" -X "compression.codec=$codec"
	expect "record, $codec" 0 "30000 records" "$weir" record -b "$b" -t "c-$codec" -z "$codec" "$scratch/codecs"
	same "round trip, $codec" "$(digest "$scratch/codecs" "c-$codec")" "$(digest "$in" order.placed)"
done

# ---- headers, nulls, transactions; against kcat ----
make() { $kafka create "$scratch/broker" "$@" 2>/dev/null || not_ok "creating $1"; }
kcat_json() { timeout 60 kcat -b "$b" -C -t "$1" -o beginning -e -q -J -X isolation.level="${2:-read_committed}"; }
fields='[.topic, .partition, .offset, .tstype, .ts, .broker, (.headers // []), .key, .payload]'
like_kcat() { # NAME TOPIC ISOLATION [OPTION]...
	local name=$1 topic=$2 isolation=$3
	shift 3
	kcat_json "$topic" "$isolation" | jq -c "$fields" | sort >"$scratch/theirs"
	"$weir" dump -b "$b" "$topic" "$@" | jq -c "$fields" | sort >"$scratch/ours"
	if [ -s "$scratch/theirs" ] && cmp -s "$scratch/theirs" "$scratch/ours"; then
		ok "$name ($(wc -l <"$scratch/ours") records)"
	else
		not_ok "$name"
		diff "$scratch/ours" "$scratch/theirs" | head -n 4 | cut -c1-200
	fi
}
make plain 1
"$produce" "$b" plain lz4 plain 0 100
like_kcat "dump -b prints what kcat does" plain read_committed
same "null keys and values are there" "$("$weir" dump -b "$b" plain | jq -c 'select(.key == null or .payload == null)' | wc -l)" 23
"$weir" record -b "$b" -t plain "$scratch/rec" -q
same "record keeps headers and nulls" "$(digest "$scratch/rec" plain)" "$(digest_broker plain)"
"$weir" replay "$scratch/rec" plain -b "$b" -t plain2 -q
same "replay keeps headers and nulls" "$(digest_broker plain2)" "$(digest_broker plain)"
printf 'k:\n:v\n:\n' | kcat -b "$b" -P -t plain2 -p 0 -K:
same "empty is not null" "$("$weir" dump -b "$b" plain2 -o -3 | jq -c '[.key, .payload]' | tr -d '\n')" '["k",""]["","v"]["",""]'
"$weir" record -b "$b" -t plain2 -o -3 "$scratch/empty" -q
"$weir" replay "$scratch/empty" plain2 -b "$b" -t plain3 -q
same "nor after record and replay" "$("$weir" dump -b "$b" plain3 | jq -c '[.key, .payload]' | tr -d '\n')" '["k",""]["","v"]["",""]'

make appended 1 message.timestamp.type=LogAppendTime
"$produce" "$b" appended none plain 0 20
like_kcat "log append time" appended read_committed

make transactions 1
"$produce" "$b" transactions none plain 0 5
"$produce" "$b" transactions none commit 5 5
"$produce" "$b" transactions lz4 abort 10 5
"$produce" "$b" transactions none plain 15 5
like_kcat "aborted transactions are not there" transactions read_committed
like_kcat "with --uncommitted they are" transactions read_uncommitted --uncommitted
expect "record leaves them out" 0 'transactions: 15 records' "$weir" record -b "$b" -t transactions "$scratch/rec"
same "and keeps offsets" "$("$weir" dump "$scratch/rec" transactions | jq .offset | paste -sd,)" \
	"$("$weir" dump -b "$b" transactions | jq .offset | paste -sd,)"
same "digest over the gaps" "$(digest "$scratch/rec" transactions)" "$(digest_broker transactions)"
expect "record --uncommitted" 0 ': 20 records' "$weir" record -b "$b" -t transactions --as all --uncommitted "$scratch/rec"
"$produce" "$b" transactions none open 20 3
"$produce" "$b" transactions none plain 23 3
expect "an open transaction is named" 0 'the unfinished transaction of open .producer [0-9]+, begun 20.* holds back what follows offset' \
	"$weir" dump -b "$b" transactions
same "and ends the dump" "$("$weir" dump -b "$b" transactions -q | wc -l)" 15

# ---- ranges ----
count() { "$weir" dump -b "$b" "$@" | wc -l; }
ts() { "$weir" dump -b "$b" plain -o "$1" -c 1 | jq .ts; }
same "-o N" "$(count plain -o 90)" 10
same "-o -N" "$(count plain -o -7)" 7
same "-o end" "$(count plain -o end; echo none)" "0
none"
same "-o behind the end" "$(count plain -o 1000; echo none)" "0
none"
same "-o s@MS" "$(count plain -o "s@$(ts 42)")" 58
same "-c" "$(count order.placed -c 17)" 17
same "-p" "$("$weir" dump -b "$b" order.placed -p 1 | jq .partition | sort -u)" 1
expect "record a range of time" 0 'plain: 10 records' \
	"$weir" record -b "$b" -t plain -o "s@$(ts 30)" -o "e@$(ts 40)" "$scratch/range"
same "which is the right one" "$("$weir" dump "$scratch/range" plain | jq .offset | paste -sd,)" 30,31,32,33,34,35,36,37,38,39
expect "record -p -c" 0 'part: 25 records' "$weir" record -b "$b" -t order.placed --as part -p 2 -c 25 "$scratch/range"
same "in its partition" "$("$weir" dump "$scratch/range" part | jq .partition | sort -u)" 2
("$weir" record -b "$b" -t plain --follow "$scratch/follow" 2>"$scratch/follow.said" & echo $! >"$scratch/pid"; wait) &
for _ in $(seq 100); do
	[ "$(digest "$scratch/follow" plain 2>/dev/null)" ] && break
	sleep 0.1
done
sleep 1
"$produce" "$b" plain none plain 100 20
sleep 1
kill -INT "$(cat "$scratch/pid")"
wait
same "record --follow takes what comes until it is stopped" "$(digest "$scratch/follow" plain)" "$(digest_broker plain)"

# ---- replay: partitions, pace, times ----
make five 5
expect "another number of partitions: by key" 0 'records go where their keys belong' \
	"$weir" replay "$in" order.placed -b "$b" -t five
"$weir" dump "$in" order.placed | jq -r 'select(.key != null) | .key' | sort | head -n 300 >"$scratch/keys"
make java 5
$kafka tool org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$b" --topic java \
	--property parse.key=true --property key.separator=: < <(sed 's/$/:x/' "$scratch/keys") >/dev/null 2>&1
"$weir" dump -b "$b" java | jq -r '"\(.key) \(.partition)"' | sort -u >"$scratch/java"
"$weir" dump -b "$b" five | jq -r '"\(.key) \(.partition)"' | sort -u >"$scratch/weir"
same "keys lie where Java's partitioner puts them" "$(comm -12 "$scratch/java" "$scratch/weir" | wc -l)" \
	"$(sort -u "$scratch/keys" | wc -l)"
expect "fewer partitions cannot have the same numbers" 78 '1 partitions and the recording 3' \
	"$weir" replay "$in" order.placed -b "$b" -t plain2 --partitioner recorded
expect "--loop and -c" 0 ': 250 records' "$weir" replay "$scratch/rec" plain -b "$b" -t looped --loop 3 -c 250
same "each time over" "$(digest_broker looped -c 100)" "$(digest "$scratch/rec" plain)"
"$weir" gen orders --records 400 --partitions 2 --rate 200 --out "$scratch/slow" -q # two seconds of event time
begin=$(date +%s%N)
"$weir" replay "$scratch/slow" order.placed -b "$b" -t slow --speed 2 --shift-to-now -q
took=$((($(date +%s%N) - begin) / 1000000))
[ "$took" -ge 900 ] && ok "--speed 2 takes half of the recorded time at least" || not_ok "--speed 2 took $took ms"
spans() { jq -s '[.[].ts] | max - min'; }
same "--shift-to-now keeps distances" "$("$weir" dump -b "$b" slow | spans)" "$("$weir" dump "$scratch/slow" order.placed | spans)"
first=$("$weir" dump -b "$b" slow | jq -s '[.[].ts] | min')
age=$(($(date +%s%3N) - first))
[ "$age" -ge 0 ] && [ "$age" -lt 60000 ] && ok "and begins now" || not_ok "--shift-to-now began $age ms ago"
begin=$(date +%s%N)
"$weir" replay "$scratch/slow" order.placed -b "$b" -t rated --rate 400 -q
took=$((($(date +%s%N) - begin) / 1000000))
[ "$took" -ge 900 ] && ok "--rate 400" || not_ok "--rate 400 sent 400 records in $took ms"
same "--keep-timestamps is the default" "$(digest_broker rated)" "$(digest "$scratch/slow" order.placed)"
make small 1 max.message.bytes=200
expect "a record that the broker refuses" 1 'partition 0: Broker: Message size too large' \
	"$weir" replay "$in" order.placed -b "$b" -t small -X batch.size=1000000

# ---- lag ----
kafka_groups() {
	$kafka tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$b" --describe --group "$1" 2>/dev/null |
		awk 'NF > 1 { $1 = $1; print }' | sort
}
our_groups() { "$weir" lag "$1" -b "$b" -q | awk '{ print $1, $2, $3, $4, $5, $6, $7, $8, $9 }' | sort; }
timeout 60 kcat -b "$b" -G readers order.placed -q -c 9000 -X auto.offset.reset=earliest >/dev/null 2>&1
same "lag of an idle group is what Kafka says" "$(our_groups readers)" "$(kafka_groups readers)"
same "its total" "$("$weir" lag readers -b "$b" --format json -q | jq '.lag == ([.partitions[].lag] | add) and .state == "Empty"')" true
age=$("$weir" lag readers -b "$b" --format json -q | jq '[.partitions[] | select(.lag > 0) | .lag_seconds] | min | floor')
[ "$age" -gt 1000 ] && ok "lag in seconds counts from the record's time ($age s)" || not_ok "lag in seconds: $age"
timeout 120 kcat -b "$b" -G live order.placed -q -u -X auto.offset.reset=earliest -X auto.commit.interval.ms=200 \
	>"$scratch/live" 2>/dev/null &
member=$!
for _ in $(seq 150); do
	[ "$("$weir" lag live -b "$b" --format json -q 2>/dev/null | jq '.lag == 0 and .members == 1 and (.partitions | length) == 3')" = true ] && break
	sleep 0.2
done
same "lag of a live group is what Kafka says" "$(our_groups live)" "$(kafka_groups live)"
same "it has a member everywhere" "$("$weir" lag live -b "$b" --format csv -q | awk -F, 'NR > 1 && $7 != "" && $8 != "" && $9 == "rdkafka"' | wc -l)" 3
same "nobody waits: 0 seconds" "$("$weir" lag live -b "$b" --format json -q | jq '.lag == 0 and .lag_seconds == 0')" true
for by in partition topic app; do
	same "--by $by adds up" "$("$weir" lag readers -b "$b" --by $by --format json -q | jq '.lag == ([(.partitions // .rows)[].lag] | add)')" true
done
for _ in $(seq 20); do # a broker that is busy leaves an end open
	by_topic=$("$weir" lag live -b "$b" --by topic -q | awk 'NR > 1 { print $3, $4, $6 }')
	by_member=$("$weir" lag live -b "$b" --by member --format csv -q | awk -F, 'NR > 1 { print $2, $3, $6, $9 }')
	[ "$by_topic$by_member" = "- - 0  0 rdkafka" ] && break
	sleep 0.3
done
same "--by topic has a row for each" "$by_topic" "- - 0"
same "--by member too" "$by_member" "  0 rdkafka"
same "--lag leaves out who lacks less" "$("$weir" lag live -b "$b" --lag '>0' -q | wc -l)" 1
same "--lag shows who lacks more" "$("$weir" lag readers -b "$b" --by app --lag '>100' -q | wc -l)" 2
expect "--by something else" 2 'is not partition, topic, member or app' "$weir" lag live -b "$b" --by broker
expect "--fail-on-lag below" 0 LAG "$weir" lag live -b "$b" --fail-on-lag '>0'
expect "--fail-on-lag above" 1 'more than 100' "$weir" lag readers -b "$b" --fail-on-lag '>100'
expect "--fail-on-lag in seconds" 1 ' s: more than 60' "$weir" lag readers -b "$b" --fail-on-lag '>60s'
same "--watch" "$(timeout -s INT 2.5 "$weir" lag live -b "$b" --watch 1 --format json -q | grep -c '"group":"live"')" 3
kill $member
wait $member 2>/dev/null
expect "an unknown group" 78 'no group nobody' "$weir" lag nobody -b "$b"
timeout 60 kcat -b "$b" -G marks transactions -q -c 15 -X auto.offset.reset=earliest -X isolation.level=read_uncommitted >/dev/null 2>&1
expect "lag with open transactions" 0 '^marks +transactions +0 ' "$weir" lag marks -b "$b"

# ---- properties and exit codes ----
expect "an unknown topic" 78 'no topic nothing' "$weir" dump -b "$b" nothing
expect "an unknown partition" 78 'has 3 partitions' "$weir" dump -b "$b" order.placed -p 3
expect "a place that is none" 2 'yesterday' "$weir" dump -b "$b" order.placed -o yesterday
expect "an unknown property names the nearest" 78 "did you mean 'sasl.username'" "$weir" dump -b "$b" plain -X sasl.usernme=x
expect "a value that librdkafka does not take" 78 'socket.timeout.ms' "$weir" dump -b "$b" plain -X socket.timeout.ms=soon
expect "a Java property" 78 'for Java programs' "$weir" dump -b "$b" plain -X key.serializer=x
expect "properties.X is X" 0 '^client.id = me' "$weir" dump -b "$b" plain -X properties.client.id=me -X dump
echo secret >"$scratch/password"
expect "secrets are not shown" 0 '^sasl.password = \*\*\*\*' "$weir" dump -b "$b" plain -X "sasl.password=@$scratch/password" -X dump
expect "a secret's file that is not there" 78 "cannot read the file '/nothing'" "$weir" dump -b "$b" plain -X sasl.password=@/nothing
expect "the environment" 0 '^sasl.username = me  # environment' env WEIR_SASL_USERNAME=me "$weir" dump -b "$b" plain -X dump
echo 'fetch.wait.max.ms = 20' >"$scratch/some.conf"
expect "a file" 0 "^fetch.wait.max.ms = 20  # file $scratch/some.conf:1" "$weir" dump -b "$b" plain -F "$scratch/some.conf" -X dump
expect "-X list has librdkafka's" 0 '^sasl.mechanisms ' "$weir" lag x -X list
expect "a CA that is not there" 78 'ssl.ca.location' "$weir" dump -b "$b" plain -X security.protocol=ssl -X ssl.ca.location=/nothing
expect "a host name that is none" 78 'resolve' "$weir" dump -b no-such-host.invalid:9092 plain
expect "no brokers" 78 'which brokers' "$weir" record -t plain "$scratch/x"
expect "no topic" 2 'which topic' "$weir" record -b "$b" "$scratch/x"
for verb in "dump -b 127.0.0.1:1 plain" "record -b 127.0.0.1:1 -t plain $scratch/x" "replay $in order.placed -b 127.0.0.1:1" \
	"lag x -b 127.0.0.1:1"; do
	begin=$(date +%s)
	# shellcheck disable=SC2086
	expect "no broker: ${verb%% *}" 75 'no broker at 127.0.0.1:1 answered within 10.0 s: .*Connection refused' "$weir" $verb &
done >"$scratch/unreachable"
begin=$(date +%s)
wait
took=$(($(date +%s) - begin))
cat "$scratch/unreachable"
failures=$((failures + $(grep -c '^not ok' "$scratch/unreachable")))
[ $took -ge 8 ] && [ $took -le 20 ] && ok "after about 10 s" || not_ok "an absent broker took $took s"
[ $failures -eq 0 ]
