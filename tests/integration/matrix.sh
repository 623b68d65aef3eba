#!/bin/bash
# matrix.sh: revenue per merchant, exact against an independent check and the same bytes for every number of workers:
# tumbling, hopping and session windows x EMIT FINAL and CHANGES x three guarantees x 1, 2, 4 workers x keyed by merchant
# (direct exchange) or order id (local exchange).
#   tests/integration/matrix.sh          500,000 records; each of the twelve jobs with two of the nine settings, pairwise
#   tests/integration/matrix.sh --records N    the same with N records
#   tests/integration/matrix.sh --full   10 million records, all 108 combinations
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

records=500000
full=no
if [ "${1:-}" = --records ]; then
	records=$2
elif [ "${1:-}" = --full ]; then
	records=10000000
	full=yes
fi
guarantees=(at_least_once exactly_once at_most_once)

# One job: the first run is checked, the others must have its digest.
job() {
	local key=$1 window=$2 emit=$3 number=$4 settings=() name first="" sum out
	if [ "$full" = yes ]; then
		for guarantee in "${guarantees[@]}"; do
			for workers in 1 2 4; do settings+=("$workers $guarantee $((workers * 97 % 300))"); done
		done
	else
		settings=("1 ${guarantees[number % 3]} 0" "$((number % 2 * 2 + 2)) ${guarantees[(number + 1) % 3]} 97")
	fi
	revenue_sql "$scratch/job.sql" "$key" "$window" "$emit"
	for setting in "${settings[@]}"; do
		read -r workers guarantee poll <<<"$setting" # poll: records handed over at once; must change nothing
		name="$window $emit by $key, $workers workers, $guarantee"
		out=$scratch/out
		rm -rf "$out"
		if ! run_job "$scratch/job.sql" "$scratch/$key" "$out" --workers "$workers" -X "processing.guarantee=$guarantee" \
			-X "io.poll.records=$poll"; then
			not_ok "$name: weir run failed: $(tail -n 3 "$out.said" | tr '\n' ' ')"
			continue
		fi
		sum=$(digest "$out")
		if [ -z "$first" ]; then
			first=$sum
			fine "$name: exact" exact "$scratch/$key" "$out" "$window" "$emit"
			fine "$name: counts" counted "$out" "$late" "$bad"
		elif [ "$sum" = "$first" ]; then
			ok "$name: same bytes"
		else
			not_ok "$name: another digest: $sum, the first was $first"
		fi
	done
}

number=0
for key in merchant_id order_id; do
	make_orders "$scratch/$key" "$key" "$records" || exit 1
	late=$late_count
	bad=$bad_count
	for window in tumble hop session; do
		for emit in final changes; do
			job "$key" "$window" "$emit" "$number"
			number=$((number + 1))
		done
	done
done
[ "$failures" = 0 ]
