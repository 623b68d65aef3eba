#!/bin/bash
# kafka_jobs.sh: the jobs of tools/examples from topic to topic on a real broker, exactly once: the SQL files with no more
# changed than their pages say, and the C programs with another first argument; their results are those of the recorded topics.
#   kafka_jobs.sh [JOB...]               prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib
. tests/integration/jobs/lib

on_broker "jobs on a broker" jq
examples=$(dirname "$weir")/examples
export LC_ALL=C WEIR_BIN=$weir
jobs=${*:-revenue fraud price_shifts enriched alerts split revenue_changes fraud_over paid_revenue}

# JOB: its SQL with the other connector, by the command of its page (two are on another job's); the sources, which are the
# topics of $rec, end where these end now
on_kafka() {
	local page=$1 topic bounds=""
	[ "$page" != fraud_over ] || page=fraud
	[ "$page" != revenue_changes ] || page=revenue
	for topic in $(topics_of "$rec"); do
		bounds+="s/'topic' = '$topic'/&, 'scan.bounded.mode' = 'latest-offset'/;"
	done
	awk '/^    \$ sed "/ { on = 1 } on { sub(/^    (\$ )?/, ""); print } / >[^ ]*$/ { on = 0 }' "tools/examples/$page.md" |
		sed "s/ >[^ ]*$//; s/$page\.sql/$1.sql/" | bash | sed "$bounds"
}
# TOPIC: its records that were not there at the last call, as lines. $seen holds the last offset of each partition.
new_lines() {
	settled "$1" >&2
	cat "$scratch/rows" >>"$scratch/all"
	jq -c --argjson seen "${seen:-null}" 'select(.offset > ($seen[.topic + "-" + (.partition | tostring)] // -1))' "$scratch/rows" | lines
}
# JOB: the new records of the topics it writes, in the form of tools/examples/expected
described() {
	local topic
	for topic in $(grep -v '^#' "tools/examples/expected/$1" | grep -v "$(printf '\t')" | cut -d ' ' -f 1); do
		new_lines "$topic" | sed "s/^/$topic$(printf '\t')/"
	done >"$scratch/want"
	describe "$1"
}

# What does not depend on where order points fall: of alerts, those behind the 30 ms within which its devices change.
decided() {
	if [ "$job" = alerts ]; then awk -F '\t' '$2 >= 1767225600030'; else cat; fi
}

for job in $jobs; do
	rec=$scratch/rec
	rm -rf "$rec"
	tools/examples/recording "$job" "$rec" || not_ok "$job: no recording"
	on_kafka "$job" >"$scratch/$job.sql"
	# Order points of a live run fall where time has it: every update is compared instead.
	every=""
	expected=tools/examples/expected/$job
	if [ "$job" = revenue_changes ] || [ "$job" = alerts ]; then
		[ "$job" = alerts ] || every=emit.coalesce=false
		rm -rf "$scratch/out"
		"$weir" run "tools/examples/$job.sql" --define "in=$rec" --define "out=$scratch/out" ${every:+-X $every} -q
		for topic in revenue.by-merchant notification.due; do
			[ -e "$scratch/out/$topic-0" ] && lines_of "$scratch/out" $topic | decided | canonical "$job" >"$scratch/every"
		done
	fi
	for topic in $(topics_of "$rec"); do
		[[ " ${used-$topic} " != *" $topic "* ]] && continue
		$kafka stop "$scratch/broker" 2>/dev/null # a new one where an input has an earlier job's name
		rm -rf "$scratch/broker"
		start_broker
		used=""
	done
	for topic in $(topics_of "$rec"); do
		used+=" $topic"
		"$weir" replay "$rec" "$topic" -b "$b" --speed max -q || not_ok "$job: replay of $topic"
	done
	seen=null
	: >"$scratch/all"
	for kind in sql c; do
		if [ $kind = sql ]; then
			timeout 120 "$weir" run "$scratch/$job.sql" -b "$b" -g "$job-sql" --workers 2 -X processing.guarantee=exactly_once ${every:+-X $every}
		else
			timeout 120 "$examples/$job" "connector=kafka scan.bounded.mode=latest-offset" connector=kafka \
				"bootstrap.servers=$b" "application.id=$job-c" workers=2 processing.guarantee=exactly_once $every
		fi >"$scratch/said" 2>&1 || not_ok "$job, $kind: $(tail -n 3 "$scratch/said")"
		if [ "$job" = alerts ]; then
			new_lines notification.due | decided | canonical "$job" >"$scratch/got"
			fine "$job, $kind on a broker: the records from when all devices are known" cmp "$scratch/every" "$scratch/got"
		elif [ -n "$every" ]; then
			new_lines revenue.by-merchant | canonical "$job" >"$scratch/got"
			fine "$job, $kind on a broker: every update" cmp "$scratch/every" "$scratch/got"
		else
			described "$job" >"$scratch/got"
			fine "$job, $kind on a broker: the expected records" diff "$expected" "$scratch/got"
		fi
		seen=$(jq -s 'map({key: (.topic + "-" + (.partition | tostring)), value: .offset}) | from_entries' "$scratch/all")
	done
done
[ "$failures" = 0 ]
