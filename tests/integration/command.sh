#!/bin/bash
# command.sh: the command's conventions (exit codes, suggestions, stdout and stderr, closed pipes) and the verbs that need no
# engine: gen writes what its arguments say and nothing else, dump shows it in kcat's shape; and the independent check of the
# other scripts notices when something is wrong.
set -u
cd "$(dirname "$0")/../.." || exit 1

weir=${WEIR_BIN:-$PWD/build/weir}
check_revenue=$(dirname "$weir")/tests/check_revenue
if [ ! -x "$weir" ]; then
	echo "skipped: $weir is not built"
	exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weir-command.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect NAME CODE PATTERN COMMAND...: the exit code, and a line on stdout or stderr that matches
expect() {
	local name=$1 code=$2 pattern=$3 out got
	shift 3
	out=$("$@" 2>&1)
	got=$?
	if [ "$got" = "$code" ] && printf '%s\n' "$out" | grep -Eq -- "$pattern"; then
		echo "ok $name"
	else
		echo "not ok $name: exit code $got (expected $code), no line like $pattern in:"
		printf '%s\n' "$out" | head -n 5 | sed 's/^/    /'
		failures=$((failures + 1))
	fi
}
same() { # NAME A B
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		echo "not ok $1: $2, expected $3"
		failures=$((failures + 1))
	fi
}

expect "help" 0 '^  gen ' "$weir" help
expect "help of a verb" 0 '^usage: weir gen KIND' "$weir" help gen
expect "-h is the same" 0 '^usage: weir gen KIND' "$weir" gen -h
expect "version" 0 '^weir [0-9]+\.[0-9]+\.[0-9]+$' "$weir" version
expect "-V of a verb" 0 '^weir [0-9]' "$weir" dump -V
expect "no verb" 2 'weir help' "$weir"
expect "a wrong verb names the nearest" 2 'did you mean dump\?' "$weir" dmup
expect "a wrong flag names the nearest" 2 'did you mean --records\?' "$weir" gen orders --recrods 5 --out x
expect "a wrong kind names the nearest" 2 'did you mean orders\?' "$weir" gen ordrs --out x
expect "a wrong key names the nearest" 2 'did you mean merchant_id\?' "$weir" gen orders --key merchantid --out x
expect "a flag without its value" 2 '--out needs a value' "$weir" gen orders --out
expect "a number that is none" 2 '--records: 5x is not' "$weir" gen orders --records 5x --out x
expect "thousands by either letter" 0 "order.placed: 2000 records" "$weir" gen orders --records 2K --out "$scratch/thousands"
expect "an empty folder name is none" 2 '--out DIR is missing' "$weir" gen orders --out ''
expect "a folder where brokers are wanted" 78 'brokers are wanted here' "$weir" lag app -b file:x
expect "--out is needed" 2 '--out DIR is missing' "$weir" gen orders
same "errors are one line" "$("$weir" gen orders --bogus 2>&1 | wc -l)" 1
same "errors go to stderr" "$("$weir" gen orders --bogus 2>/dev/null | wc -c)" 0

gen=("$weir" gen orders --records 30000 --keys 100 --partitions 4 --seed 3 --rate 1000 --disorder-ms 2000 --late 0.01 --bad 0.01)
expect "gen" 0 'order.placed: 30000 records \([0-9]+ late, [0-9]+ bad\)' "${gen[@]}" --out "$scratch/a"
expect "gen over an existing topic is refused" 78 'already has a topic' "${gen[@]}" --out "$scratch/a"
"${gen[@]}" --out "$scratch/b" 2>/dev/null
"$weir" gen orders --records 100M --out "$scratch/stopped" 2>"$scratch/err" &
for _ in $(seq 200); do [ -s "$scratch/stopped/order.placed-0/00000000000000000000.log" ] && break || sleep 0.02; done
kill -TERM $!
wait $!
same "gen that is stopped keeps nothing" "$? $(ls "$scratch/stopped") $(grep -c 'nothing is kept' "$scratch/err")" "143  1"
(ulimit -f 100 && "$weir" gen orders --records 100000 --out "$scratch/full" 2>"$scratch/err")
same "nor does one that cannot write" "$? $(ls "$scratch/full") $(grep -c 'cannot write' "$scratch/err")" "1  1"
LC_ALL=de_DE.UTF-8 TZ=Asia/Kathmandu "${gen[@]}" --codec lz4 --out "$scratch/c" -q
digest() { "$weir" dump "$1" order.placed --digest; }
same "the same arguments, the same records" "$(digest "$scratch/b")" "$(digest "$scratch/a")"
same "the same files" "$(cat "$scratch"/b/order.placed-*/*.log | sha256sum)" "$(cat "$scratch"/a/order.placed-*/*.log | sha256sum)"
same "codec, locale and time zone change no record" "$(digest "$scratch/c")" "$(digest "$scratch/a")"
"$weir" gen orders --records 30000 --keys 100 --seed 4 --out "$scratch/d" -q
if [ "$(digest "$scratch/d")" != "$(digest "$scratch/a")" ]; then echo "ok another seed"; else echo "not ok another seed"; fi
for kind in payments prices products sales logins devices alerts; do
	expect "gen $kind" 0 ' records ' "$weir" gen "$kind" --records 2000 --keys 50 --out "$scratch/kinds"
done

lines=$scratch/lines
"$weir" dump "$scratch/a" order.placed >"$lines"
same "dump prints every record" "$(wc -l <"$lines")" 30000
said=$(rm -rf "$scratch/e" && "${gen[@]}" --out "$scratch/e" 2>&1)
same "late ones are marked" "$(grep -c '"headers":\["weir-gen","late"\]' "$lines")" "$(sed -n 's/.*(\([0-9]*\) late.*/\1/p' <<<"$said")"
same "bad ones are marked" "$(grep -c '"headers":\["weir-gen","bad"\]' "$lines")" "$(sed -n 's/.* \([0-9]*\) bad).*/\1/p' <<<"$said")"
if command -v jq >/dev/null 2>&1; then
	same "dump is JSON" "$(jq -s length "$lines")" 30000
	same "late means hours before the rest" \
		"$(jq -r 'select(.headers == ["weir-gen","late"]) | .ts | select(. > 1767225600000 - 7200000)' "$lines" | wc -l)" 0
	same "others within the disorder" "$(jq -r 'select(.headers == null) | .payload | fromjson |
		(.order_id[2:] | tonumber) as $n | select(.ts > 1767225600000 + $n or .ts < 1767225600000 + $n - 2000) | .ts' "$lines" | wc -l)" 0
	same "marked bad ones cannot be used" "$(jq -r 'select(.headers == ["weir-gen","bad"]) | .payload |
		(try fromjson catch null) | select(. != null and (.ts | type) == "number" and .ts < 9e18 and (.order_id | test("^o-")) and (.x == null)) | .ts' "$lines" | wc -l)" 0
	same "keys are order ids" "$(jq -r 'select(.headers == null) | select((.payload | fromjson | .order_id) != .key) | .key' "$lines" | wc -l)" 0
fi
same "-p" "$("$weir" dump "$scratch/a" order.placed -p 2 | grep -vc '"partition":2')" 0
same "-c" "$("$weir" dump "$scratch/a" order.placed -c 7 | wc -l)" 7
same "-o N" "$("$weir" dump "$scratch/a" order.placed -p 1 -o 5 -c 1 | grep -o '"offset":[0-9]*')" '"offset":5'
same "-o -1" "$("$weir" dump -b "file:$scratch/a" -t order.placed -p 1 -o -1 | tail -n 1)" "$("$weir" dump "$scratch/a" order.placed -p 1 | tail -n 1)"
same "-o end" "$("$weir" dump "$scratch/a" order.placed -o end | wc -l)" 0
same "raw" "$("$weir" dump "$scratch/a" order.placed --format raw -c 1 | grep -c '^{"order_id":"o-')" 1
same "csv" "$("$weir" dump "$scratch/a" order.placed --format csv -c 1 | head -n 1)" "topic,partition,offset,ts,key,payload"
cp -r "$scratch/a" "$scratch/torn"
truncate -s -10 "$scratch"/torn/order.placed-0/*0.log
expect "a file cut off is named" 0 'torn/order.placed-0/0*.log: ends within a batch at byte [0-9]+; it is read up to there' \
	"$weir" dump "$scratch/torn" order.placed --digest
expect "a topic that is not there" 78 'no topic nothing in' "$weir" dump "$scratch/a" nothing
expect "a partition that is not there" 78 'has 4 partitions' "$weir" dump "$scratch/a" order.placed -p 4
"$weir" dump "$scratch/a" order.placed 2>"$scratch/err" | head -n 1 >/dev/null
same "a closed pipe ends quietly" "${PIPESTATUS[0]} $(wc -c <"$scratch/err")" "0 0"
if [ -w /dev/full ]; then
	"$weir" dump "$scratch/a" order.placed >/dev/full 2>"$scratch/err"
	same "a full disk is an error" "$? $(grep -c 'cannot write' "$scratch/err")" "1 1"
fi

"$weir" gen orders --records 100000 --keys 1000 --zipf 1 --key merchant_id --out "$scratch/zipf" -q
hottest=$("$weir" dump "$scratch/zipf" order.placed | grep -c '"key":"m-000000"')
if [ "$hottest" -gt 12700 ] && [ "$hottest" -lt 14000 ]; then # 1 / (1 + 1/2 + ... + 1/1000) = 0.1336
	echo "ok zipf: the first of a thousand has its share"
else
	echo "not ok zipf: the first of a thousand has $hottest of 100000, expected about 13360"
	failures=$((failures + 1))
fi

# jemalloc finds the command's settings only where it exports them. Other allocators print nothing.
MALLOC_CONF=stats_print:true,stats_print_opts:mdablxe "$weir" version >"$scratch/said" 2>&1
if grep -q 'opt.narenas' "$scratch/said"; then
	same "jemalloc has one arena" "$(sed -n 's/.*opt.narenas: *//p' "$scratch/said")" 1
fi

# Rows that are right by hand, then the same with one thing wrong each.
"$weir" gen orders --records 3 --keys 1 --partitions 1 --seed 1 --rate 1 --out "$scratch/tiny" -q
sum=$("$weir" dump "$scratch/tiny" order.placed --format raw | sed 's/.*"amount":\([0-9]*\)\.\([0-9]*\).*/\1\2/' | awk '{ n += $1 } END { printf "%d.%02d", n / 100, n % 100 }')
row() { # REVENUE ORDERS [START]
	printf '{"topic":"t","key":"m-000000","payload":"{\\"window_start\\":\\"%s\\",\\"window_end\\":\\"2026-01-01 00:05:00\\",\\"merchant_id\\":\\"m-000000\\",\\"revenue\\":%s,\\"orders\\":%s}"}\n' \
		"${3:-2026-01-01 00:00:00}" "$1" "$2"
}
if [ -x "$check_revenue" ]; then
	check() { "$check_revenue" --in "$scratch/tiny" --window tumble --size 300000 --emit "$1"; }
	verdict() { # NAME CODE EMIT: stdin to the check
		check "$3" >"$scratch/why" 2>&1
		same "check_revenue: $1" "$?" "$2"
	}
	row "$sum" 3 | verdict "the right row" 0 final
	{ row 0.00 1 && row "$sum" 3; } | verdict "the last row of a key counts" 0 changes
	{ row "$sum" 3 && row "$sum" 3; } | verdict "a row twice" 1 final
	row "1$sum" 3 | verdict "a wrong sum" 1 final
	row "$sum" 4 | verdict "a wrong count" 1 final
	row "$sum" 3 "2026-01-01 00:01:00" | verdict "another window" 1 final
	verdict "nothing" 1 final </dev/null
	{ row "$sum" 3 && echo '{"topic":"t","key":"m-000000","payload":null}'; } | verdict "a deleted row" 1 changes
fi
[ "$failures" = 0 ]
