#!/bin/bash
# kafka_lag.sh: lag is 0 once everything was read, whatever lies behind the last record: markers of transactions, aborted
# batches, what a job wrote into its own topics. As `weir lag` says, and as the group's offsets say to everybody else.
#   kafka_lag.sh [--only SECTION]        sections: input repartition open clusters alone; prints `ok NAME` or `not ok NAME`
#                                        lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

options "$@"
produce=$(dirname "$weir")/tests/kafka_produce
on_broker "lag on a broker" jq kcat "$produce"
start_broker

wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }
lag() { "$weir" lag "$app" -b "$b" --format json 2>/dev/null; }
# becomes FILTER: what `weir lag` says of the application, within half a minute
becomes() {
	for ((try = 0; try < 60; try++)); do
		lag | jq -e "$1" >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	lag
	cat "$scratch/$app.said"
	return 1
}
# The group's offsets are the ends of the logs: what Kafka's own tools take for lag is 0, too
at_end='(.partitions | length) > 0 and all(.partitions[]; .current_offset == .log_end_offset and .lag == 0)'
transaction() { "$produce" "$b" "$topic" none "$@" 2>/dev/null; } # commit|abort|open FIRST COUNT
job() { # SQL OPTION...: in the background; sets pid
	printf '%s\n' "$1" >"$scratch/$app.sql"
	shift
	"$weir" run "$scratch/$app.sql" -b "$b" -X errors.policy=skip "$@" 2>>"$scratch/$app.said" &
	pid=$!
}
end() { # SIGNAL
	kill "-$1" $pid 2>/dev/null
	wait $pid 2>/dev/null
}
source_table() {
	echo "CREATE TABLE t (v STRING) WITH ('connector' = 'kafka', 'topic' = '$topic', 'format' = 'raw');"
}
counting() {
	source_table
	cat <<-SQL
		CREATE TABLE counted (v STRING, n BIGINT, PRIMARY KEY (v) NOT ENFORCED)
		WITH ('connector' = 'upsert-kafka', 'topic' = '$app-out', 'key.format' = 'raw', 'value.format' = 'json');
		INSERT INTO counted SELECT SUBSTRING(v, 1, 5) AS v, COUNT(*) AS n FROM t GROUP BY SUBSTRING(v, 1, 5);
	SQL
}
passing() {
	source_table
	cat <<-SQL
		CREATE TABLE passed (v STRING) WITH ('connector' = 'kafka', 'topic' = '$app-out', 'format' = 'raw');
		INSERT INTO passed SELECT v FROM t;
	SQL
}
count() { "$weir" dump -b "$b" "$app-out" 2>/dev/null | jq -s 'last | .payload | fromjson | .n'; } # the last
# Ends of all topics of the application but its input
written() {
	kcat -b "$b" -L -J 2>/dev/null | jq -r --arg app "$app-" '.topics[] | select(.topic | startswith($app)) |
		.topic as $t | .partitions[] | "-t", "\($t):\(.partition):-1"' | xargs -r kcat -b "$b" -Q 2>/dev/null | sort
}
# quiet: a job that has caught up writes nothing any more: no epoch begets another
quiet() {
	local before after
	for ((try = 0; try < 5; try++)); do
		before=$(written)
		sleep 2.5
		after=$(written)
		[ -z "$before" ] || [ "$before" != "$after" ] || return 0
	done
	printf '%s\n\n%s\n' "$before" "$after"
	return 1
}

# ---- input that was written by transactions: jobs with and without state ----
if wants input; then
	for which in counting:at_least_once counting:exactly_once passing:at_least_once passing:exactly_once passing:at_most_once; do
		kind=${which%:*}
		guarantee=${which#*:}
		app=input-$kind-$guarantee
		topic=$app
		name="$guarantee, $kind"
		settings=(-X "processing.guarantee=$guarantee" -X group.instance.id=one)
		$kafka create "$scratch/broker" "$topic" 1 2>/dev/null
		transaction commit 0 20 # 2 of 20 have no value: they are not counted
		job "$($kind)" "${settings[@]}"
		fine "$name: a marker behind the last record is no lag" becomes "$at_end and .lag == 0"
		transaction commit 0 20
		fine "$name: nor behind the next" becomes "$at_end and .partitions[0].log_end_offset == 42"
		transaction abort 0 20
		fine "$name: nor an aborted batch" becomes "$at_end and .partitions[0].log_end_offset == 63"
		end KILL # and after it goes on where it was, past the markers
		transaction commit 0 20
		job "$($kind)" "${settings[@]}"
		fine "$name: nor after a crash" becomes "$at_end and .partitions[0].log_end_offset == 84"
		fine "$name: a job that has caught up writes nothing" quiet
		end TERM
		if [ $kind = counting ]; then
			got=$(count)
			wanted=54
		else
			got=$("$weir" dump -b "$b" "$app-out" 2>/dev/null | wc -l)
			wanted=60
		fi
		[ "$got" = $wanted ] && ok "$name: every record once" || not_ok "$name: $got of $wanted records"
	done
fi

# ---- repartition topics, which the job's own transactions write ----
if wants repartition; then
	for guarantee in at_least_once exactly_once; do
		app=repartition-$guarantee
		topic=$app
		$kafka create "$scratch/broker" "$topic" 2 2>/dev/null
		"$produce" "$b" "$topic" none plain 0 40
		job "$(counting)" -X processing.guarantee=$guarantee -X exchange=topic
		fine "$guarantee, repartition topics: no lag" becomes "$at_end and (.partitions | length) == 4"
		fine "$guarantee, repartition topics: quiet" quiet
		"$produce" "$b" "$topic" none plain 0 40
		fine "$guarantee, repartition topics: nor after more" becomes "$at_end and any(.partitions[]; .log_end_offset == 80)"
		end TERM
	done
fi

# ---- what an open transaction holds is waiting, and its offset is not passed ----
if wants open; then
	app=open
	topic=open
	$kafka create "$scratch/broker" "$topic" 1 2>/dev/null
	transaction commit 0 20
	job "$(counting)" -X processing.guarantee=exactly_once
	fine "open: no lag before" becomes "$at_end"
	transaction open 0 20
	fine "open: its records are lag" becomes '.lag == 20 and .lag_seconds > 1000'
	fine "open: and stay in front of us" becomes '.partitions[0].current_offset == 21'
	transaction open 0 0 # the next of its name aborts it
	fine "open: none once they are aborted" becomes "$at_end"
	transaction commit 0 20
	fine "open: nor behind what came then" becomes "$at_end and .partitions[0].log_end_offset > 60"
	end TERM
	got=$(count)
	[ "$got" = 36 ] && ok "open: what is aborted counts nowhere" || not_ok "open: $got records of 36"
fi

# ---- a job whose input is not on the results' cluster: its group holds its changelog ----
if wants clusters; then
	app=clusters
	"$weir" gen orders --records 2000 --keys 20 --partitions 2 --seed 7 --out "$scratch/in" -q
	cat >"$scratch/$app.sql" <<-SQL
		CREATE TABLE orders (merchant_id STRING)
		WITH ('connector' = 'kafka', 'topic' = 'order.placed', 'format' = 'json', 'properties.bootstrap.servers' = 'file:$scratch/in');
		CREATE TABLE counted (merchant_id STRING, n BIGINT, PRIMARY KEY (merchant_id) NOT ENFORCED)
		WITH ('connector' = 'upsert-kafka', 'topic' = '$app-out', 'key.format' = 'raw', 'value.format' = 'json',
		  'properties.bootstrap.servers' = '$b');
		INSERT INTO counted SELECT merchant_id, COUNT(*) AS n FROM orders GROUP BY merchant_id;
	SQL
	expect "clusters: a recording into a broker" 0 '2000 records' "$weir" run "$scratch/$app.sql"
	fine "clusters: no lag" becomes "$at_end and (.partitions | length) == 2"
fi

# ---- weir lag by itself, of any group: offsets that were committed behind the last record ----
if wants alone; then
	app=alone
	topic=alone
	: >"$scratch/$app.said"
	$kafka create "$scratch/broker" "$topic" 1 2>/dev/null
	reads() { # COUNT
		timeout 60 kcat -b "$b" -G "$app" "$topic" -q -c "$1" -X auto.offset.reset=earliest >/dev/null 2>&1
	}
	none='.lag == 0 and .lag_seconds == 0 and .partitions[0].current_offset < .partitions[0].log_end_offset'
	transaction commit 0 20
	reads 20
	fine "alone: a marker is no lag" becomes "$none and .partitions[0].current_offset == 20"
	transaction abort 0 20
	fine "alone: nor are aborted records" becomes "$none and .partitions[0].log_end_offset == 42"
	expect "alone: --fail-on-lag" 0 LAG "$weir" lag "$app" -b "$b" --fail-on-lag '>0'
	transaction open 0 20
	fine "alone: what is open is" becomes '.lag == 20 and .lag_seconds > 1000'
	"$produce" "$b" "$topic" none plain 0 5
	fine "alone: and what lies behind it" becomes '.lag == 25'
	transaction open 0 0
	fine "alone: a record is, with all that lies before it" becomes '.lag == 48'
fi

[ $failures -eq 0 ]
