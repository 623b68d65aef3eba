#!/bin/bash
# recorded_kafka.sh: recorded topics against a real broker: its log folder is read as it is (every codec, transactions, a
# compacted topic, log append time), and Kafka's own DumpLogSegments reads what we write without complaint.
#   recorded_kafka.sh               prints `ok NAME` or `not ok NAME` lines, or `skipped: why`
#   recorded_kafka.sh --fixtures    writes tests/support/segments afresh from the broker's files
set -u
cd "$(dirname "$0")/../.." || exit 1

kafka=tools/kafka/kafka
programs=$(dirname "${WEIR_BIN:-$PWD/build/weir}")/tests
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weir-kafka.XXXXXX")
trap '$kafka stop "$scratch/broker"; rm -rf "$scratch"' EXIT
failures=0

skip() {
	echo "skipped: recorded topics against a broker: $*"
	exit 0
}
for need in "$programs/recorded_read" "$programs/recorded_write" "$programs/kafka_produce"; do
	[ -x "$need" ] || skip "$need is not built"
done
command -v kcat >/dev/null || skip "kcat is missing"
$kafka fetch
case $? in
0) ;;
77) skip "Java or Maven is missing" ;;
*)
	echo "not ok fetching Kafka"
	exit 1
	;;
esac

ok() { echo "ok $*"; }
not_ok() {
	echo "not ok $*"
	failures=$((failures + 1))
}

brokers=$($kafka start "$scratch/broker" log.cleaner.backoff.ms=100 log.cleaner.min.cleanable.ratio=0.01 \
	log.index.size.max.bytes=4096) || {
	echo "not ok starting a broker"
	exit 1
}
data=$scratch/broker/data
produce() { "$programs/kafka_produce" "$brokers" "$@" 2>>"$scratch/produce.log" || not_ok "producing $*"; }
kcat_read() {
	timeout 60 kcat -b "$brokers" -C -t "$1" -o beginning -e -q -X isolation.level="$2" -f '%p|%o|%T|%k|%s|%h\n'
}
# same NAME TOPIC ISOLATION [OPTION]...: our reader over the broker's folder and kcat print the same, and something
same() {
	local name=$1 topic=$2 isolation=$3
	shift 3
	kcat_read "$topic" "$isolation" >"$scratch/theirs"
	"$programs/recorded_read" "$data" "$topic" "$@" >"$scratch/ours" 2>"$scratch/warnings"
	if [ -s "$scratch/theirs" ] && cmp -s "$scratch/ours" "$scratch/theirs"; then
		ok "$name ($(wc -l <"$scratch/ours") records)"
	else
		not_ok "$name"
		diff "$scratch/ours" "$scratch/theirs" | head -5
		head -3 "$scratch/warnings"
	fi
}

for codec in none gzip snappy lz4 zstd; do
	$kafka create "$scratch/broker" "f-$codec" 1 2>/dev/null || not_ok "creating f-$codec"
	produce "f-$codec" "$codec" plain 0 60
done
$kafka create "$scratch/broker" f-transactions 1 2>/dev/null
produce f-transactions none plain 0 5
produce f-transactions none commit 5 5
produce f-transactions lz4 abort 10 5
produce f-transactions none plain 15 5
produce f-transactions zstd commit 20 5
produce f-transactions none open 25 3
produce f-transactions none plain 28 3
$kafka create "$scratch/broker" f-append-time 1 message.timestamp.type=LogAppendTime 2>/dev/null
produce f-append-time lz4 plain 0 20
$kafka create "$scratch/broker" f-compacted 1 cleanup.policy=compact segment.ms=100 max.compaction.lag.ms=200 \
	min.cleanable.dirty.ratio=0.01 2>/dev/null
for first in 1 1 3 1 8; do
	produce f-compacted none keyed $first 12
	sleep 0.3
done
for _ in $(seq 100); do # until the cleaner has been there
	[ "$("$programs/recorded_read" "$data" f-compacted 2>/dev/null | wc -l)" -lt 45 ] && break
	sleep 0.2
done

for codec in none gzip snappy lz4 zstd; do
	same "a broker's segment, $codec" "f-$codec" read_committed
done
same "a broker's transactions, read_committed ends at an open one" f-transactions read_committed
grep -q 'transaction .* without an end' "$scratch/warnings" && ok "the open transaction is named" ||
	not_ok "the open transaction is named"
same "a broker's transactions, read_uncommitted" f-transactions read_uncommitted uncommitted
"$programs/recorded_read" "$data" f-transactions abort >"$scratch/ours" 2>/dev/null
{
	"$programs/recorded_read" "$data" f-transactions 2>/dev/null
	kcat_read f-transactions read_uncommitted | grep 'n=\(28\|29\|30\)$'
} >"$scratch/theirs"
cmp -s "$scratch/ours" "$scratch/theirs" && ok "scan.end-of-file=abort reads past an open transaction" ||
	not_ok "scan.end-of-file=abort reads past an open transaction"
same "a broker's log append time" f-append-time read_committed
same "a broker's compacted topic" f-compacted read_committed
[ "$(wc -l <"$scratch/ours")" -lt 45 ] && ok "the topic has been compacted" || not_ok "the topic has been compacted"

if [ "${1:-}" = --fixtures ]; then
	rm -rf tests/support/segments
	for folder in "$data"/f-*-0; do
		to=tests/support/segments/$(basename "$folder")
		mkdir -p "$to"
		# small files only: an active index is 10 MiB of zeros
		find "$folder" -name '*.log' -exec cp {} "$to" \;
		find "$folder" \( -name '*.txnindex' -o -name leader-epoch-checkpoint \) -size -5k -exec cp {} "$to" \;
		find "$folder" -name '*.index' -size -5k -exec cp {} "$to" \;
	done
	find tests/support/segments -type f -size 0 -delete
	for topic in none gzip snappy lz4 zstd append-time compacted transactions; do
		kcat_read "f-$topic" read_committed >"tests/support/segments/f-$topic.txt"
	done
	exit
fi

# Kafka's own tool over everything we write: 0 complaints, and every batch valid.
written=$scratch/written
"$programs/recorded_write" "$written" || not_ok "recorded_write"
# check_segment FILE NAME [gaps]: gaps: offsets are missing, as in any compacted topic, which the tool mentions
check_segment() {
	local log=$1 name=$2 index=${1%.log}.index files complaints='mismatch|invalid bytes|exception|corrupt'
	[ "${3:-}" = gaps ] || complaints="$complaints|non-consecutive"
	files=$log
	[ -e "$index" ] && files=$log,$index
	$kafka tool kafka.tools.DumpLogSegments --deep-iteration --print-data-log --files "$files" >"$scratch/dump" 2>&1
	local code=$? batches valid
	batches=$(grep -c '^baseOffset:' "$scratch/dump")
	valid=$(grep -c '^baseOffset:.*isvalid: true' "$scratch/dump")
	if [ $code -eq 0 ] && [ "$batches" -gt 0 ] && [ "$batches" = "$valid" ] &&
		! grep -qiE "$complaints" "$scratch/dump"; then
		ok "$name ($batches batches)"
	else
		not_ok "$name"
		grep -viE '^\||^baseOffset.*isvalid: true' "$scratch/dump" | cut -c1-200 | head -8
	fi
}
for codec in none gzip snappy lz4 zstd; do
	check_segment "$written/t-$codec-0/00000000000000000000.log" "DumpLogSegments reads ours, $codec"
	# the same records in the same order: key sizes and value sizes by offset
	"$programs/recorded_read" "$written" "t-$codec" >"$scratch/ours-$codec"
	[ "$(grep -c '^| offset:' "$scratch/dump")" = 3000 ] && ok "it finds all records, $codec" ||
		not_ok "it finds all records, $codec"
	cmp -s "$scratch/ours-none" "$scratch/ours-$codec" && ok "we read back the same, $codec" ||
		not_ok "we read back the same, $codec"
done
for log in "$written"/out-0/*.log; do
	check_segment "$log" "DumpLogSegments reads ours, out-0/$(basename "$log")"
done
for log in "$written"/interop-changelog-0/*.log; do
	check_segment "$log" "DumpLogSegments reads a rewritten changelog, $(basename "$log")" gaps
done
[ $failures -eq 0 ]
