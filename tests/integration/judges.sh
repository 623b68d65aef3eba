#!/bin/bash
# judges.sh: random jobs and inputs of a fixed seed through weir and through a real Kafka Streams and Flink, compared row by row
# (tests/conformance/README.md); the long forms are commands of their own there.
#   judges.sh [--full]
set -u
cd "$(dirname "$0")/../conformance" || exit 1
cases=100 batches=8 queries=24
[ "${1:-}" = --full ] && cases=2000 batches=100 queries=500

# judge NAME COMMAND...
judge() {
	local name=$1 log code
	shift
	log=$(mktemp)
	"$@" >"$log" 2>&1
	code=$?
	case $code in
	0) echo "ok $name: $(tail -n 1 "$log")" ;;
	77) grep '^skipped: ' "$log" || echo "skipped: $name" ;;
	*)
		tail -n 60 "$log"
		echo "not ok $name ($*)"
		;;
	esac
	rm -f "$log"
	[ "$code" = 0 ] || [ "$code" = 77 ]
}

judge "Kafka Streams" kstreams/run --cases "$cases" --seed 1
judge "Flink" flink/run --expressions "$batches" --queries "$queries" --seed 1
