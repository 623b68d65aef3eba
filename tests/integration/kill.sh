#!/bin/bash
# kill.sh: kill -9 at random moments, restart, and the result is that of an undisturbed run: same digest, exact sums, and
# after each kill a reader sees a prefix of the final topic. Also one stop by SIGTERM: exit 0, then resumed.
#   tests/integration/kill.sh [--full] [--seed N]    --full: 30 rounds for each guarantee instead of 3
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

rounds=3
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

records=600000
rate=200000 # so that a run takes three seconds and a kill falls inside the work
make_orders "$scratch/in" order_id "$records" || exit 1
revenue_sql "$scratch/job.sql" order_id tumble final
settings=(--workers 2 -X commit.interval.records=65536)

if ! run_job "$scratch/job.sql" "$scratch/in" "$scratch/calm" "${settings[@]}"; then
	not_ok "undisturbed run: $(tail -n 3 "$scratch/calm.said" | tr '\n' ' ')"
	exit 1
fi
calm=$(digest "$scratch/calm")
fine "undisturbed run: exact" exact "$scratch/in" "$scratch/calm" tumble final
"$weir" dump "$scratch/calm" revenue >"$scratch/calm.lines"
by_partition() { # FILE PREFIX: the lines of a dump, a file for each partition
	awk -v prefix="$2" '{ match($0, /"partition":[0-9]+/); print > (prefix substr($0, RSTART + 12, RLENGTH - 12)) }' "$1"
}
by_partition "$scratch/calm.lines" "$scratch/calm.p."

# What a reader sees now is, in every partition, a prefix of the final topic.
prefix() {
	local part
	"$weir" dump "$1" revenue >"$scratch/seen" 2>"$scratch/seen.said" || {
		grep -q "no topic" "$scratch/seen.said" && return 0 # killed before there was one
		cat "$scratch/seen.said"
		return 1
	}
	rm -f "$scratch"/seen.p.*
	by_partition "$scratch/seen" "$scratch/seen.p."
	for part in "$scratch"/seen.p.*; do
		[ -e "$part" ] || continue
		head -n "$(wc -l <"$part")" "$scratch/calm.p.${part##*.}" | cmp - "$part" || return 1
	done
}

for guarantee in at_least_once exactly_once; do
	for ((round = 1; round <= rounds; round++)); do
		out=$scratch/out
		rm -rf "$out" "$out.said"
		kills=$((RANDOM % 3 + 1))
		moments=""
		good=yes
		for ((k = 0; k < kills; k++)); do
			"$weir" run "$scratch/job.sql" --define "in=$scratch/in" --define "out=$out" "${settings[@]}" \
				-X "processing.guarantee=$guarantee" -X "scan.rate=$rate" 2>"$out.said" &
			pid=$!
			moment=$((RANDOM % 2200 + 100))
			moments="$moments ${moment}ms"
			sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
			kill -9 "$pid" 2>/dev/null
			wait "$pid" 2>/dev/null
			if ! prefix "$out" >"$scratch/why" 2>&1; then
				good="after a kill at $moment ms a reader saw what is not in the end: $(head -n 2 "$scratch/why")"
			fi
		done
		if ! run_job "$scratch/job.sql" "$scratch/in" "$out" "${settings[@]}" -X "processing.guarantee=$guarantee"; then
			good="the last run failed: $(tail -n 3 "$out.said" | tr '\n' ' ')"
		elif [ "$(digest "$out")" != "$calm" ]; then
			good="another digest than the undisturbed run; $(exact "$scratch/in" "$out" tumble final | tail -n 3 | tr '\n' ' ')"
		fi
		if [ "$good" = yes ]; then
			ok "$guarantee: killed at$moments"
		else
			not_ok "$guarantee: killed at$moments: $good"
		fi
	done
done

out=$scratch/out
rm -rf "$out"
"$weir" run "$scratch/job.sql" --define "in=$scratch/in" --define "out=$out" "${settings[@]}" -X scan.rate=100000 2>"$out.said" &
pid=$!
sleep 1.5
kill -TERM "$pid"
wait "$pid"
code=$?
if [ "$code" = 0 ]; then ok "SIGTERM ends with 0"; else not_ok "SIGTERM ends with $code: $(tail -n 2 "$out.said")"; fi
run_job "$scratch/job.sql" "$scratch/in" "$out" "${settings[@]}"
if grep -q 'resuming at' "$out.said"; then ok "the next run says where it resumes"; else not_ok "no word of resuming: $(cat "$out.said")"; fi
if [ "$(digest "$out")" = "$calm" ]; then ok "SIGTERM and resumed: same bytes"; else not_ok "SIGTERM and resumed: another digest"; fi
if run_job "$scratch/job.sql" "$scratch/in" "$out" "${settings[@]}" && [ "$(digest "$out")" = "$calm" ] &&
	grep -q 'weir reset' "$out.said"; then
	ok "a run that finds everything consumed emits nothing and names weir reset"
else
	not_ok "a run over consumed input: $(cat "$out.said")"
fi
[ "$failures" = 0 ]
