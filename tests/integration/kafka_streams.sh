#!/bin/bash
# kafka_streams.sh: what others read of weir's topics: Kafka Streams' deserializers the keys of windows, Kafka's console
# consumer the results of an exactly-once job that was killed, kcat its dead letters and late records.
#   kafka_streams.sh                     prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

on_broker "Kafka Streams on a broker" kcat jq javac
# The jars of Kafka Streams, as tests/conformance/kstreams/run fetches them.
streams=${WEIR_KSTREAMS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/kstreams-4.1.0}
mkdir -p "$streams" || exit 1
(
	flock 9
	[ -e "$streams/complete" ] && exit 0
	command -v mvn >/dev/null || exit 77
	mvn -q -B -f tests/conformance/kstreams/pom.xml dependency:copy-dependencies -DoutputDirectory="$streams/libs" \
		>"$streams/fetch.log" 2>&1 9>&- && touch "$streams/complete"
) 9>"$streams/lock" || skip "the jars of Kafka Streams could not be fetched"
javac -nowarn -d "$scratch/classes" -cp "$streams/libs/*" tests/integration/java/WindowedKeys.java || {
	echo "not ok compiling WindowedKeys.java"
	exit 1
}
start_broker

# ---- input: six bursts of 100 s with 50 s between them, 1 record in 50 is not JSON, and late ones at the end ----
records=6000
awk -v records=$records 'BEGIN {
	for (i = 0; i < records; i++) {
		m = "m" i % 5
		ts = (int(i / 10) + int(i / 1000) * 50) * 1000
		printf "%s:{\"m\":\"%s\",\"amount\":%s,\"ts\":%d}\n", m, m, i % 50 == 7 ? "x" i : i, ts
	}
	for (k = 0; k < 5; k++)
		printf "m%d:{\"m\":\"m%d\",\"amount\":1,\"ts\":%d}\n", k, k, k
}' >"$scratch/orders"
late=5
bad=$((records / 50))
$kafka create "$scratch/broker" orders 2 2>/dev/null
kcat -b "$b" -P -t orders -K: -X partitioner=murmur2_random -X queue.buffering.max.ms=5 <"$scratch/orders" ||
	not_ok "writing orders"

orders_table() { # OPTIONS
	cat <<-SQL
		CREATE TABLE orders (m STRING, amount BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
		WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'm',
		  'scan.bounded.mode' = 'latest-offset'$1);
	SQL
}

# ---- keys of windows ----
{
	orders_table ""
	for kind in tumble session; do
		cat <<-SQL
			CREATE TABLE $kind (m STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
			WITH ('connector' = 'kafka', 'topic' = '$kind', 'format' = 'json', 'key.format' = 'windowed', 'key.fields' = 'm');
		SQL
	done
	cat <<-SQL
		INSERT INTO tumble SELECT m, window_start, window_end, COUNT(*)
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '20' SECOND)) GROUP BY window_start, window_end, m;
		INSERT INTO session SELECT m, window_start, window_end, COUNT(*)
		FROM TABLE(SESSION(TABLE orders PARTITION BY m, DESCRIPTOR(at), INTERVAL '30' SECOND))
		GROUP BY window_start, window_end, m;
	SQL
} >"$scratch/keys.sql"
fine "a job writes windowed keys" timeout 120 "$weir" run "$scratch/keys.sql" -b "$b" -X errors.policy=skip

read_keys() { # TOPIC KIND [SIZE]
	timeout 120 java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
		-cp "$scratch/classes:$streams/libs/*" WindowedKeys "$b" "$@" >"$scratch/$1.keys" 2>"$scratch/$1.said"
}
# same_keys TOPIC GAP COUNT: the keys say what the rows say; a session's key ends at its last record, its row GAP later
same_keys() {
	awk -F '\t' -v gap="$2" '{ printf "{\"k\":\"%s\",\"s\":%d,\"e\":%d,\"v\":%s}\n", $1, $2, $3 + gap, $4 }' "$scratch/$1.keys" |
		jq -r 'def ms: sub(" "; "T") + "Z" | fromdate * 1000;
			select(.k != .v.m or .s != (.v.window_start | ms) or .e != (.v.window_end | ms) or .v.n < 1)' >"$scratch/differ" ||
		return 1
	if [ -s "$scratch/differ" ] || [ "$(wc -l <"$scratch/$1.keys")" != "$3" ]; then
		echo "$(wc -l <"$scratch/$1.keys") keys instead of $3:"
		cat "$scratch/differ" "$scratch/$1.said"
		head -n 3 "$scratch/$1.keys"
		return 1
	fi
}
read_keys tumble time 20000
# A burst of 100 s begins at a multiple of 150 s, so that it fills five windows of 20 s, or touches six.
fine "Kafka Streams reads the keys of tumbling windows" same_keys tumble 0 $((5 * (3 * 5 + 3 * 6)))
read_keys session session
fine "Kafka Streams reads the keys of sessions" same_keys session 30000 $((5 * 6))

# ---- exactly once: results, dead letters, late records, with two kills on the way ----
{
	orders_table ", 'errors.policy' = 'dead-letter', 'errors.deadletterqueue.topic.name' = 'dead', 'late.topic' = 'late'"
	cat <<-SQL
		CREATE TABLE revenue (window_start TIMESTAMP(3), m STRING, revenue BIGINT)
		WITH ('connector' = 'kafka', 'topic' = 'revenue', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'm');
		INSERT INTO revenue SELECT window_start, m, SUM(amount)
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '20' SECOND)) GROUP BY window_start, window_end, m;
	SQL
} >"$scratch/once.sql"
once=(-b "$b" -X processing.guarantee=exactly_once -X commit.interval.ms=100 -X session.timeout.ms=6000)
killed=0
dead() { kcat -b "$b" -C -t dead -o beginning -e -q 2>/dev/null | wc -l; }
for ((k = 0; k < 2; k++)); do
	before=$(dead)
	"$weir" run "$scratch/once.sql" "${once[@]}" -X scan.rate=600 2>"$scratch/said" &
	pid=$!
	for ((i = 0; i < 600; i++)); do # until this run has committed something
		[ "$(dead)" -gt "$before" ] && break
		sleep 0.1
	done
	kill -9 $pid 2>/dev/null && killed=$((killed + 1))
	wait $pid 2>/dev/null
done
if [ $killed = 2 ]; then ok "two kills fell into runs"; else not_ok "only $killed kills fell into runs: $(tail -n 2 "$scratch/said")"; fi
# It has to wait for what the killed ones still own when its own partitions are at their end.
fine "the third run comes to the end" timeout 180 "$weir" run "$scratch/once.sql" "${once[@]}"

# What has to be there, from the lines that were written.
awk -F '[:,}]' '$1 == substr($3, 2, 2) && $5 !~ /x/ && NR <= records {
	start = int($7 / 20000) * 20
	sum[start "\t" $1] += $5
}
END { for (k in sum) print k "\t" sum[k] }' records=$records "$scratch/orders" | sort >"$scratch/want"
for ((try = 1; try <= 5; try++)); do # it ends when nothing came for a while, which a busy machine may take for connecting
	$kafka tool org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$b" --topic revenue --from-beginning \
		--consumer-property isolation.level=read_committed --timeout-ms $((try * 4000)) 2>/dev/null >"$scratch/console"
	[ "$(wc -l <"$scratch/console")" -lt "$(wc -l <"$scratch/want")" ] || break
done
jq -r '[(.window_start | sub(" "; "T") + "Z" | fromdate), .m, .revenue] | @tsv' "$scratch/console" | sort >"$scratch/got"
if [ "$(wc -l <"$scratch/want")" = 165 ]; then
	fine "Kafka's console consumer prints every result exactly once" diff "$scratch/want" "$scratch/got"
else
	not_ok "$(wc -l <"$scratch/want") results are wanted"
fi

# letters TOPIC REASON COUNT: each of them once, with the bytes of the record that its headers name
kcat -b "$b" -C -t orders -o beginning -e -q -J 2>/dev/null |
	jq -c '{at: "\(.partition)/\(.offset)", key, payload}' >"$scratch/sources"
letters() {
	kcat -b "$b" -C -t "$1" -o beginning -e -q -J 2>/dev/null >"$scratch/letters"
	jq -n -r --arg reason "$2" --argjson count "$3" --slurpfile sources "$scratch/sources" '
		($sources | map({key: .at, value: .}) | from_entries) as $of
		| def header($name): .headers as $h | [range(0; $h | length; 2) | select($h[.] == $name) | $h[. + 1]];
		[inputs | . as $l
			| {at: "\(header("weir-error-partition")[0])/\(header("weir-error-offset")[0])", key, payload,
				reason: header("weir-error-reason"), topic: header("weir-error-topic"), stage: header("weir-error-stage")}]
		| if length != $count or (map(.at) | unique | length) != $count then "\(length) letters instead of \($count)" else empty end,
			(.[] | select(.key != $of[.at].key or .payload != $of[.at].payload or (.reason | length) != 1
				or (.reason[0] | test($reason) | not) or .topic != ["orders"] or (.stage | length) != 1 or .stage[0] == "")
				| tojson)' "$scratch/letters" >"$scratch/differ" || return 1
	[ ! -s "$scratch/differ" ] || { head -n 5 "$scratch/differ"; head -n 2 "$scratch/letters"; return 1; }
}
fine "each bad record is a dead letter, once, with its bytes and headers" letters dead '^[a-z_]+$' $bad
fine "each late record is in late.topic, once, with its bytes and headers" letters late '^late$' $late
[ "$failures" = 0 ]
