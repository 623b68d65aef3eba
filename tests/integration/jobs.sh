#!/bin/bash
# jobs.sh: each job of tools/examples on its recording: the SQL file and the C program give the same bytes with 1, 2 and 4
# workers, and the records that are kept in tools/examples/expected.
#   tests/integration/jobs.sh                 all of them
#   tests/integration/jobs.sh JOB...          these
#   tests/integration/jobs.sh --expect JOB... computes tools/examples/expected anew, from the recordings alone, by sqlite3
# What is expected comes from queries in sqlite3's SQL over the recording (tests/integration/jobs/JOB.sql); where sqlite3 is
# there, every run computes it once more.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib
. tests/integration/jobs/lib
examples=$(dirname "$weir")/examples
jobs="revenue revenue_changes paid_revenue fraud fraud_over price_shifts enriched alerts split"
expect=no
if [ "${1:-}" = --expect ]; then
	expect=yes
	shift
fi
[ $# = 0 ] || jobs=$*
export LC_ALL=C WEIR_BIN=$weir

# JOB RECORDING OUT: what must come out, by sqlite3 alone, as lines of topic, key, timestamp, value
oracle() {
	local db=$scratch/db topic
	rm -f "$db"
	for topic in $(topics_of "$2"); do
		# shellcheck disable=SC2016
		"$weir" dump "$2" "$topic" | jq -r '[.partition, .offset, .ts, .key, .payload] | map(tostring) | join("\t")' >"$scratch/rows.tsv"
		sqlite3 "$db" "CREATE TABLE \"$topic\" (p INT, o INT, ts INT, k TEXT, j TEXT);" \
			".mode ascii" ".separator \"\t\" \"\n\"" ".import $scratch/rows.tsv $topic" \
			"UPDATE \"$topic\" SET j = NULL WHERE j = 'null';"
	done
	sqlite3 -separator "$(printf '\t')" "$db" <"tests/integration/jobs/$1.sql" >"$3"
}
# The same of what a run has written into folder $2.
describe_run() {
	local topic
	for topic in $(topics_of "$2"); do
		lines_of "$2" "$topic" | sed "s/^/$topic$(printf '\t')/"
	done >"$scratch/want"
	describe "$1"
}
# All topics of a folder, every byte: partitions, offsets, timestamps, keys, values, headers.
digest() {
	local topic
	for topic in $(topics_of "$1"); do "$weir" dump "$1" "$topic" --digest; done
}

if command -v sqlite3 >/dev/null 2>&1; then sqlite=yes; else sqlite=no; fi
if [ $expect = yes ] && [ $sqlite = no ]; then
	echo "no sqlite3" >&2
	exit 1
fi
for job in $jobs; do
	rec=$scratch/rec
	rm -rf "$rec"
	tools/examples/recording "$job" "$rec" || {
		not_ok "$job: no recording"
		continue
	}
	expected=tools/examples/expected/$job
	if [ $sqlite = yes ]; then
		oracle "$job" "$rec" "$scratch/want"
		describe "$job" >"$scratch/expected"
		if [ $expect = yes ]; then
			cp "$scratch/expected" "$expected"
			continue
		fi
		fine "$job: what is expected, computed again" diff "$expected" "$scratch/expected"
	fi
	first=""
	for workers in 1 2 4; do
		for kind in sql c functions; do
			[ $kind != functions ] || [ -x "$examples/${job}_functions" ] || continue
			out=$scratch/out
			rm -rf "$out"
			if [ $kind = sql ]; then
				"$weir" run "tools/examples/$job.sql" --define "in=$rec" --define "out=$out" --workers $workers 2>"$scratch/said"
			else
				program=$job
				[ $kind = c ] || program=${job}_functions
				"$examples/$program" "path=$rec" "path=$out" "workers=$workers" 2>"$scratch/said"
			fi || {
				not_ok "$job, $kind, $workers workers: $(tail -n 3 "$scratch/said")"
				continue 2
			}
			next=$(digest "$out")
			if [ -z "$first" ]; then
				first=$next
				describe_run "$job" "$out" >"$scratch/got"
				fine "$job: the expected records" diff "$expected" "$scratch/got"
			elif [ "$next" = "$first" ]; then
				ok "$job: $kind with $workers workers, the same bytes"
			else
				not_ok "$job: $kind with $workers workers gives other bytes than SQL with 1"
			fi
		done
	done
	if [ "$job" = revenue_changes ] && [ $sqlite = yes ]; then # every update
		oracle revenue_updates "$rec" "$scratch/want"
		cut -f 2- "$scratch/want" | canonical "$job" >"$scratch/expected"
		for kind in sql c; do
			rm -rf "$out"
			if [ $kind = sql ]; then
				"$weir" run tools/examples/$job.sql --define "in=$rec" --define "out=$out" -X emit.coalesce=false -q
			else
				"$examples/$job" "path=$rec" "path=$out" emit.coalesce=false 2>"$scratch/said"
			fi
			lines_of "$out" revenue.by-merchant | canonical "$job" >"$scratch/got"
			fine "$job: $kind with emit.coalesce=false, a row for every order" cmp "$scratch/expected" "$scratch/got"
		done
	fi
done
# The pages quote the files and the results.
[ $expect = no ] && for page in tools/examples/*.md; do
	[ "$page" != tools/examples/README.md ] || continue
	job=$(basename "$page" .md)
	for kind in sql c; do
		sed -n "/^\`\`\`$kind\$/,/^\`\`\`\$/{/^\`\`\`/d;/^\$/d;p}" "$page" >"$scratch/quoted"
		cat tools/examples/*.sql tools/examples/c/*.c | grep -vxFf - "$scratch/quoted" | sed "s/^/$kind: /"
	done >"$scratch/said"
	sed -n 's/^    \(.*  [0-9]*  {.*\)$/\1/p' "$page" | sed "s/  /$(printf '\t')/g" >"$scratch/quoted"
	[ -s "$scratch/quoted" ] || echo "no result" >>"$scratch/said"
	grep -vxFf "tools/examples/expected/$job" "$scratch/quoted" >>"$scratch/said"
	fine "the page of $job quotes what is there" test ! -s "$scratch/said"
	[ -s "$scratch/said" ] && head -n 5 "$scratch/said" | sed 's/^/    /'
done
[ "$failures" = 0 ]
