#!/bin/bash
# kill.sh: kill -9 at random moments, restart, and the result is that of an undisturbed run: same digest, exact sums, and
# after each kill a reader sees a prefix of the final topic. Also one stop by SIGTERM: exit 0, then resumed.
#   tests/integration/kill.sh [--full] [--seed N]    --full: 30 rounds for each guarantee instead of 4
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

rounds=4
seed=$$
while [ $# -gt 0 ]; do
	case $1 in
	--full) rounds=30 ;;
	--seed)
		seed=$2
		shift
		;;
	esac
	shift
done
RANDOM=$seed
echo "seed $seed"

# A run takes three seconds at this rate and commits nine times, so that a kill falls inside the work.
records=600000
rate=200000
settings=(--workers 2 -X commit.interval.records=65536)
jobs=(order_id:tumble:final merchant_id:session:changes)
out=$scratch/out
resumed=0
seen_rows=0

by_partition() { # FILE PREFIX: the lines of a dump, a file for each partition
	awk -v prefix="$2" '{ match($0, /"partition":[0-9]+/); print > (prefix substr($0, RSTART + 12, RLENGTH - 12)) }' "$1"
}

# What a reader sees now is, in every partition, a prefix of the topic in its final form.
prefix() { # JOB
	local part rows
	"$weir" dump "$out" revenue >"$scratch/seen" 2>"$scratch/seen.said" || {
		grep -q "no topic" "$scratch/seen.said" && return 0 # killed before there was one
		cat "$scratch/seen.said"
		return 1
	}
	rows=$(wc -l <"$scratch/seen")
	[ "$rows" -le "$seen_rows" ] || seen_rows=$rows
	rm -f "$scratch"/seen.p.*
	by_partition "$scratch/seen" "$scratch/seen.p."
	for part in "$scratch"/seen.p.*; do
		[ -e "$part" ] || continue
		head -n "$(wc -l <"$part")" "$scratch/$1.p.${part##*.}" | cmp - "$part" || return 1
	done
}

# One round: kills, then a run to the end. Says what went wrong, if anything.
round() { # JOB IN WINDOW EMIT GUARANTEE MOMENTS...
	local job=$1 in=$2 window=$3 emit=$4 guarantee=$5 moment pid
	shift 5
	rm -rf "$out" "$out.said"
	for moment in "$@"; do
		"$weir" run "$scratch/$job.sql" --define "in=$in" --define "out=$out" "${settings[@]}" \
			-X "processing.guarantee=$guarantee" -X "scan.rate=$rate" 2>"$out.said" &
		pid=$!
		sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
		prefix "$job" >"$scratch/why" 2>&1 || {
			echo "after the kill at $moment ms a reader saw what is not in the end: $(head -n 2 "$scratch/why")"
			return
		}
	done
	if ! run_job "$scratch/$job.sql" "$in" "$out" "${settings[@]}" -X "processing.guarantee=$guarantee"; then
		echo "the last run failed: $(tail -n 3 "$out.said" | tr '\n' ' ')"
	elif [ "$(digest "$out")" != "$(cat "$scratch/$job.digest")" ]; then
		echo "another digest than the undisturbed run; $(exact "$in" "$out" "$window" "$emit" | tail -n 3 | tr '\n' ' ')"
	fi
}

for job in "${jobs[@]}"; do
	IFS=: read -r key window emit <<<"$job"
	[ -d "$scratch/$key" ] || make_orders "$scratch/$key" "$key" "$records" || exit 1
	revenue_sql "$scratch/$job.sql" "$key" "$window" "$emit"
	if ! run_job "$scratch/$job.sql" "$scratch/$key" "$scratch/calm" "${settings[@]}" -g calm; then
		not_ok "$job undisturbed: $(tail -n 3 "$scratch/calm.said" | tr '\n' ' ')"
		exit 1
	fi
	fine "$job undisturbed: exact" exact "$scratch/$key" "$scratch/calm" "$window" "$emit"
	digest "$scratch/calm" >"$scratch/$job.digest"
	"$weir" dump "$scratch/calm" revenue >"$scratch/calm.lines"
	by_partition "$scratch/calm.lines" "$scratch/$job.p."
	rm -rf "$scratch/calm"
done

for guarantee in at_least_once exactly_once; do
	for ((number = 0; number < rounds; number++)); do
		job=${jobs[number % ${#jobs[@]}]}
		IFS=: read -r key window emit <<<"$job"
		moments=()
		for ((k = RANDOM % 3; k >= 0; k--)); do moments+=($((RANDOM % 2200 + 100))); done
		round "$job" "$scratch/$key" "$window" "$emit" "$guarantee" "${moments[@]}" >"$scratch/verdict"
		grep -q 'resuming at' "$out.said" && resumed=$((resumed + 1))
		if [ -s "$scratch/verdict" ]; then
			not_ok "$guarantee, $job, killed at ${moments[*]} ms: $(cat "$scratch/verdict")"
		else
			ok "$guarantee, $job, killed at ${moments[*]} ms"
		fi
	done
done
if [ "$resumed" -gt 0 ] && [ "$seen_rows" -gt 0 ]; then
	ok "kills fell inside the work: $resumed of $((2 * rounds)) last runs resumed"
else
	not_ok "no kill fell inside the work ($resumed resumed, at most $seen_rows rows seen): nothing was tested"
fi

job=${jobs[0]}
rm -rf "$out"
"$weir" run "$scratch/$job.sql" --define "in=$scratch/order_id" --define "out=$out" "${settings[@]}" -X scan.rate=100000 2>"$out.said" &
pid=$!
sleep 2
kill -TERM "$pid"
wait "$pid"
code=$?
same() { [ "$(digest "$out")" = "$(cat "$scratch/$job.digest")" ]; }
if [ "$code" = 0 ]; then ok "SIGTERM ends with 0"; else not_ok "SIGTERM ends with $code: $(tail -n 2 "$out.said")"; fi
if same; then not_ok "SIGTERM came too late: nothing was tested"; fi
run_job "$scratch/$job.sql" "$scratch/order_id" "$out" "${settings[@]}"
if grep -q 'resuming at' "$out.said"; then ok "the next run says where it resumes"; else not_ok "no word of resuming: $(cat "$out.said")"; fi
if same; then ok "SIGTERM and resumed: same bytes"; else not_ok "SIGTERM and resumed: another digest"; fi
if run_job "$scratch/$job.sql" "$scratch/order_id" "$out" "${settings[@]}" && same && grep -q 'weir reset' "$out.said"; then
	ok "a run that finds everything consumed emits nothing and names weir reset"
else
	not_ok "a run over consumed input: $(cat "$out.said")"
fi
[ "$failures" = 0 ]
