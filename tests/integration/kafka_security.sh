#!/bin/bash
# kafka_security.sh: a broker that speaks TLS and SASL/SCRAM, used by -X options alone; a wrong password, host name or CA
# gives one line and exit code 78, a broker that is only away does not; no secret is ever printed.
#   kafka_security.sh                    prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

on_broker "a broker with TLS and SASL" kcat jq openssl javac
started() {
	start_broker "$@"
	secure=$(cat "$scratch/broker/brokers.secure")
}
started --secure
tls=$scratch/broker/tls
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=another CA" -keyout "$scratch/other.key" \
	-out "$scratch/other.pem" 2>/dev/null
openssl rand -hex 16 >"$scratch/wrong"
login=(-X security.protocol=sasl_ssl -X sasl.mechanisms=SCRAM-SHA-256 -X sasl.username=weir)
password=(-X "sasl.password=@$tls/password")
ca=(-X "ssl.ca.location=$tls/ca.pem")
all=(-b "$secure" "${login[@]}" "${password[@]}" "${ca[@]}")

cat >"$scratch/job.sql" <<'SQL'
CREATE TABLE orders (m STRING, amount BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE revenue (window_start TIMESTAMP(3), m STRING, revenue BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'revenue', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'm');
INSERT INTO revenue SELECT window_start, m, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, m;
SQL

# expect NAME CODE PATTERN COMMAND...: again where no broker answered in time: the machine may be busy
expect() {
	local name=$1 code=$2 pattern=$3 said got tries
	shift 3
	for tries in 1 2 3 4; do
		said=$(timeout 60 "$@" 2>&1)
		got=$?
		printf '%s\n' "$said" >>"$scratch/everything"
		{ [ $got = 75 ] && [ "$code" != 75 ]; } || break
	done
	if [ $got = "$code" ] && printf '%s\n' "$said" | grep -Eq -- "$pattern" &&
		[ "$(printf '%s\n' "$said" | grep -c 'error:\|librdkafka [A-Z]')" -le 1 ]; then
		ok "$name"
	else
		not_ok "$name: exit code $got (expected $code), not one line like $pattern in:"
		printf '%s\n' "$said" | head -n 6 | cut -c1-300 | sed 's/^/    /'
	fi
}
$kafka create "$scratch/broker" orders 2 2>/dev/null
for ((i = 0; i < 100; i++)); do
	echo "m$((i % 5)):{\"m\":\"m$((i % 5))\",\"amount\":$i,\"ts\":$((i * 1000))}"
done | kcat -b "$b" -P -t orders -K: || not_ok "writing orders"

# ---- SCRAM as Kafka 4 checks it and as brokers before did ----
version=$("$weir" -V | sed -n 's/^librdkafka \([0-9.]*\).*/\1/p')
if [ "$(printf '%s\n2.6.1\n' "$version" | sort -V | head -n 1)" != 2.6.1 ]; then
	expect "librdkafka $version and SCRAM on Kafka 4: said as it is" 78 '2\.6\.1' "$weir" lag job "${all[@]}"
	expect "PLAIN works with both" 0 '"m4"|m4' "$weir" dump orders "${all[@]}" -X sasl.mechanisms=PLAIN
	java tests/integration/java/ScramOfKafka3.java \
		"$(echo "${WEIR_KAFKA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/kafka-4.1.0}"/libs/kafka-clients-*.jar)" \
		"$scratch/classes" || not_ok "SCRAM as before Kafka 4"
	$kafka stop "$scratch/broker"
	export WEIR_KAFKA_CLASSES=$scratch/classes
	started
fi

# ---- everything by -X options ----
for guarantee in at_least_once exactly_once; do
	expect "$guarantee: a job" 0 ' 100 records ' \
		"$weir" run "$scratch/job.sql" "${all[@]}" -X "application.id=$guarantee" -X "processing.guarantee=$guarantee"
	expect "$guarantee: lag" 0 '^(at_least|exactly)_once +orders +[01] +[0-9]+ +[0-9]+ +0 ' "$weir" lag $guarantee "${all[@]}"
done
expect "dump" 0 'revenue.*m3' "$weir" dump revenue "${all[@]}"
expect "record" 0 '100 records' "$weir" record -t orders "$scratch/rec" "${all[@]}"
expect "replay" 0 '100 records' "$weir" replay "$scratch/rec" orders -t again "${all[@]}"
expect "reset" 0 'orders' "$weir" reset exactly_once "${all[@]}"
sum=$("$weir" dump revenue "${all[@]}" 2>/dev/null | jq -r '.payload | fromjson | .revenue' | awk '{ n += $1 } END { print n }')
if [ "$sum" = 9900 ]; then ok "two jobs, each with every order"; else not_ok "the sum of two jobs' results is $sum, not 9900"; fi

# ---- what is refused ----
away=localhost:${secure#*:}
for verb in "run $scratch/job.sql" "lag at_least_once" "dump orders" "record -t orders $scratch/none" "reset at_least_once"; do
	# shellcheck disable=SC2086
	set -- $verb
	expect "$1: a wrong password" 78 "error: $secure: .*uthentication" \
		"$weir" "$@" -b "$secure" "${login[@]}" -X "sasl.password=@$scratch/wrong" "${ca[@]}"
	expect "$1: a wrong host name" 78 "error: $away: .*host name" \
		"$weir" "$@" -b "$away" "${login[@]}" "${password[@]}" "${ca[@]}"
	expect "$1: a wrong CA" 78 "error: $secure: .*certificate.*ssl.ca.location" \
		"$weir" "$@" -b "$secure" "${login[@]}" "${password[@]}" -X "ssl.ca.location=$scratch/other.pem"
done
expect "a user that is not there" 78 "error: $secure: .*uthentication" "$weir" lag at_least_once "${all[@]}" -X sasl.username=nobody
expect "a mechanism that the broker has not" 78 'SCRAM-SHA-512' "$weir" lag at_least_once "${all[@]}" -X sasl.mechanisms=SCRAM-SHA-512
expect "a CA file that is not there" 78 "ssl.ca.location.*$scratch/no.pem.*No such file" \
	"$weir" lag at_least_once "${all[@]}" -X "ssl.ca.location=$scratch/no.pem"
expect "a password file that is not there" 78 "sasl.password.*$scratch/no" \
	"$weir" lag at_least_once "${all[@]}" -X "sasl.password=@$scratch/no"

# ---- what may pass is waited for ----
expect "TLS to a listener that closes the connection" 75 "no broker at $b answer" \
	"$weir" run "$scratch/job.sql" "${all[@]}" -b "$b" -X broker.wait.ms=2s
expect "no TLS to a listener that wants it" 75 "no broker at $secure answer.*security.protocol" \
	"$weir" run "$scratch/job.sql" -b "$secure" -X broker.wait.ms=2s

# ---- another password while a job runs ----
plain=("${all[@]}" -X sasl.mechanisms=PLAIN)
sed "s/, 'scan.bounded.mode' = 'latest-offset'//" "$scratch/job.sql" >"$scratch/live.sql"
"$weir" run "$scratch/live.sql" "${plain[@]}" -X stop.wait.ms=3s 2>"$scratch/live.said" &
pid=$!
sleep 5
$kafka stop "$scratch/broker"
sed -i "s/$(cat "$tls/password")/another/" "$scratch/broker/server.properties"
$kafka start "$scratch/broker" >/dev/null
for ((k = 0; k < 600; k++)); do
	grep -q 'refuse us, waiting: .*uthentication' "$scratch/live.said" && break
	sleep 0.1
done
if grep -q 'refuse us, waiting: .*uthentication' "$scratch/live.said" && kill -0 $pid; then
	ok "a password that is not good any more: waits and says so"
else
	not_ok "a password that is not good any more: $(tail -n 3 "$scratch/live.said" | cut -c1-300 | tr '\n' ' ')"
fi
kill -TERM $pid
wait $pid
cat "$scratch/live.said" >>"$scratch/everything"
$kafka stop "$scratch/broker"
sed -i "s/another/$(cat "$tls/password")/" "$scratch/broker/server.properties"

# ---- rights ----
printf '%s\n' authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer super.users=User:ANONYMOUS \
	allow.everyone.if.no.acl.found=false >>"$scratch/broker/server.properties"
$kafka start "$scratch/broker" >/dev/null
acl() {
	$kafka tool org.apache.kafka.tools.AclCommand --bootstrap-server "$b" --force "$@" >>"$scratch/acl.said" 2>&1 ||
		not_ok "setting rights: $(tail -n 2 "$scratch/acl.said")"
}
right() { # NAME RIGHT
	expect "$1" 78 "hint: the user lacks a right: $2" "$weir" run "$scratch/job.sql" "${plain[@]}" -X application.id=rights
}
right "no right at all" "DESCRIBE on the topic"
acl --add --allow-principal User:weir --operation All --topic '*'
right "no right to transactions" "WRITE on the transactional id"
acl --add --allow-principal User:weir --operation All --transactional-id rights --resource-pattern-type prefixed
right "no right to be a member" "READ on the consumer group"
acl --add --allow-principal User:weir --operation Read --group rights
acl --add --deny-principal User:weir --operation Write --topic revenue
right "no right to write results" "WRITE on the topic"
acl --remove --deny-principal User:weir --operation Write --topic revenue
acl --add --deny-principal User:weir --operation Read --topic orders
right "no right to read the source" "READ on the topic"
acl --remove --deny-principal User:weir --operation Read --topic orders
expect "and with all of them" 0 ' 100 records ' "$weir" run "$scratch/job.sql" "${plain[@]}" -X application.id=rights

# ---- secrets ----
{
	"$weir" run -X dump "${all[@]}"
	"$weir" lag at_least_once -v "${all[@]}" -X debug=security,conf,broker
	"$weir" lag at_least_once -v "${all[@]}" -X "sasl.password=$(cat "$tls/password")" -X sasl.mechanisms=nonsense
	sed "s/'format' = 'json', 'scan/'format' = 'json', 'properties.sasl.password' = '$(cat "$tls/password")', 'scan/" \
		"$scratch/job.sql" >"$scratch/secret.sql"
	"$weir" explain "$scratch/secret.sql"
	"$weir" run "$scratch/secret.sql" -v -b "$secure" "${login[@]}" "${ca[@]}"
} >>"$scratch/everything" 2>&1
if grep -Fq -f "$tls/password" "$scratch/everything" || grep -Fq -f "$scratch/wrong" "$scratch/everything"; then
	not_ok "a password was printed:"
	grep -F -f "$tls/password" -f "$scratch/wrong" "$scratch/everything" | head -n 3 | cut -c1-200 | sed 's/^/    /'
elif [ "$(wc -l <"$scratch/everything")" -lt 50 ]; then
	not_ok "too little was said to look for secrets in"
else
	ok "no password was printed"
fi
[ "$failures" = 0 ]
