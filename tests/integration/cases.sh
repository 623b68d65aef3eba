#!/bin/bash
# cases.sh: faults that users of systems like this one have reported (tests/conformance/README.md lists them), as far as they
# need more than `weir test`: bytes that JSON cannot hold, damaged and shortened topics, other time zones and locales, limits,
# stops and restarts. Inputs come from make_topic, which shares no code with the engine.
set -u
cd "$(dirname "$0")/../.." || exit 1
# Thousands of commits: where there is memory to write to, nothing waits for a disk.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
	export TMPDIR=/dev/shm
fi
. tests/integration/lib
make_topic=$(dirname "$weir")/tests/make_topic
if [ ! -x "$make_topic" ]; then
	echo "skipped: $make_topic is not built"
	exit 0
fi
cd "$scratch" || exit 1
root=$OLDPWD

expect() { # NAME CODE PATTERN COMMAND...: exit code, and a line of stdout or stderr
	local name=$1 code=$2 pattern=$3 said got
	shift 3
	said=$("$@" 2>&1)
	got=$?
	if [ "$got" = "$code" ] && printf '%s\n' "$said" | grep -Eq -- "$pattern"; then
		ok "$name"
	else
		not_ok "$name: exit code $got (expected $code), no line like $pattern in:"
		printf '%s\n' "$said" | head -n 6 | cut -c 1-300 | sed 's/^/    /'
	fi
}
same() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: ${2:0:300}, expected ${3:0:300}"; fi
}
topic() { # NAME OPTIONS...: lines on stdin
	local name=$1
	shift
	rm -rf "in/$name-"*
	"$make_topic" in "$name" "$@"
}
run() { # FILE OPTIONS...
	local file=$1
	shift
	timeout 120 "$weir" run "$file" --define in=in --define out=out "$@"
}
fresh() { # FILE OPTIONS...: without what an earlier run left
	rm -rf out
	run "$@"
}
values() { "$weir" dump out "$1" --format raw; }
source_of() { # COLUMNS OPTIONS
	echo "CREATE TABLE s ($1) WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'in', 'format' = 'json'$2);"
}
sink_of() { # COLUMNS
	echo "CREATE TABLE o ($1) WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'out', 'format' = 'json');"
}

# count.sql: COUNT and SUM a minute
{
	source_of "k STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at" \
		", 'errors.deadletterqueue.topic.name' = 'dlq'"
	sink_of "ws TIMESTAMP(3), n BIGINT, v BIGINT"
	echo "INSERT INTO o SELECT window_start, COUNT(*), SUM(v)
	FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;"
} >count.sql
sed "s/'errors.deadletterqueue.topic.name' = 'dlq'/'scan.damaged' = 'skip'/" count.sql >skip.sql
# total.sql: a table of sums, deleted where they are not positive
{
	source_of "k STRING, v BIGINT" ""
	sink_of "k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED"
	echo "INSERT INTO o SELECT k, SUM(v) FROM s GROUP BY k HAVING SUM(v) > 0;"
} >total.sql

# ---- A: decoding ----
printf '%s\n' '{"repeat":50,"value":{"v":1}}' '{"value_base64":"//4="}' '{"value_base64":"eyJrIjoi//4ifQ=="}' \
	'{"repeat":50,"value":{"v":1}}' | topic in
fresh count.sql 2>said
same "BL-012: an invalid start byte is one record" "$(values out)" '{"ws":"1970-01-01 00:00:00","n":100,"v":100}'
same "and it is counted" "$(grep -c '102 records.* 100 applied, 0 late, 2 rejected' said)" 1
same "its bytes are in the dead letter" "$("$weir" dump out dlq | grep -c '"payload_base64":"//4="')" 1

# 1 MiB of brackets, 100,000 objects, 128 and 127 levels, an array of 1,200, an integer of 900,000 digits
rep() { printf "%${2}s" '' | sed "s/ /$1/g"; }
{
	printf '{"value":"%s"}\n' "$(rep '[' 1048576)"
	printf '{"value":"%s"}\n' "$(rep '{\\"a\\":' 100000)"
	printf '{"value":"%s1%s"}\n' "$(rep '{\\"a\\":' 128)" "$(rep '}' 128)"
	printf '{"value":"%s1%s"}\n' "$(rep '{\\"a\\":' 129)" "$(rep '}' 129)"
	printf '{"value":"%s%s"}\n' "$(rep '[' 1200)" "$(rep ']' 1200)"
	printf '{"value":"{\\"v\\":%s}"}\n' "$(rep 1 900000)"
	echo '{"value":{"v":1}}'
} | topic in
(ulimit -s 256 && fresh count.sql) 2>said
same "BL-013, BL-014: depth and length are bad records, on a stack of 256 KiB" "$(grep -c '7 records.* 2 applied, 0 late, 5 rejected' said)" 1
same "with their reasons" "$("$weir" dump out dlq | jq -r '.headers[1]' | sort | uniq -c | tr -s ' \n' ' ')" ' 4 depth 1 range '

echo '{"repeat":20000,"value_base64":"wyg="}' | topic in
fresh skip.sql -X order.point.records=100 2>said
same "BL-010: a producer's bad byte does not flood the log" "$(wc -l <said)" 12
same "the count is exact" "$(grep -c ' 20000 rejected' said)" 1
printf '%s\n' '{"key":"k","value":{"k":"a","v":"a\u0001\u00e9bc0123456789012345678901234567890123456789012345678901234567890123456789"}}' | topic in
fresh skip.sql 2>said
same "BL-009: topic, partition, offset, field, type, and at most 64 bytes, escaped" "$(head -n 1 said)" \
	'rejected: in-0 offset 0: type: field v BIGINT: not a value of the column'"'"'s type at byte 13: {"k":"a","v":"a\u0001\xc3\xa9bc012345678901234567890123456789012345678'
rm -rf out
mkdir -p out/out-0
echo '{"value":{"v":1}}' | topic in
expect "BL-016: a dead-letter topic that is missing stops at the start, not at the first bad record" 78 'dlq' \
	run count.sql -X topics.create=false

# BL-027: seconds read as milliseconds: taken as written, counted, said once
{
	source_of "k STRING, t BIGINT, at AS TO_TIMESTAMP_LTZ(t, 3), WATERMARK FOR at AS at" ""
	sink_of "ws TIMESTAMP(3), n BIGINT"
	echo "INSERT INTO o SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' MINUTE))
	GROUP BY window_start, window_end;"
} >unit.sql
for workers in 1 3; do
	{
		printf '{"repeat":3000,"partition":%d,"value":{"t":1584696326}}\n' 0 1
	} | topic in --partitions 2
	fresh unit.sql --workers $workers 2>said
	same "BL-027: one warning that names the unit, $workers workers" "$(grep -c 'the event time 1584696326 ms is in the year 1970: seconds?.*TO_TIMESTAMP_LTZ(column, 0)' said)" 1
	same "BL-027: and a counter" "$(grep -c '6000 event times look like those of another unit' said)" 1
	same "BL-027: the value is taken as written" "$(values out)" '{"ws":"1970-01-19 08:11:00","n":6000}'
done
printf '%s\n' '{"timestamp":1584696326384,"value":{"v":5}}' '{"timestamp":1584696326384001,"value":{"v":5}}' '{"timestamp":5,"value":{"v":5}}' | topic in
fresh count.sql 2>said
same "BL-027: microseconds, too" "$(grep -c 'offset 1: the event time 1584696326384001 ms is in the year 10000 or later: micro- or nanoseconds?' said)" 1
same "BL-027: the others are none" "$(grep -c ': 1 event times look' said)" 1

# One record that several queries refuse is one dead letter and one line, and counts for each.
{
	source_of "k STRING, c STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at" \
		", 'errors.deadletterqueue.topic.name' = 'dlq'"
	for i in 1 2 3; do
		echo "CREATE TABLE o$i (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED)
		WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'out$i', 'format' = 'json');"
	done
	echo "INSERT INTO o1 SELECT k, SUM(v) FROM s GROUP BY k; INSERT INTO o2 SELECT c, COUNT(*) FROM s WHERE c <> 'x' OR c IS NULL GROUP BY c;
	INSERT INTO o3 SELECT k, 100 / v FROM s WHERE k <> 'n';"
} >several.sql
{
	printf '%s\n' '{"timestamp":1000,"value":null}' '{"timestamp":1000,"value":{"k":"a","c":"y","v":0}}' '{"timestamp":1000,"value":{"k":"b","c":"x","v":5}}'
	printf '%s\n' '{"timestamp":900000000,"value":{"k":"n","c":"m","v":1}}' '{"timestamp":2000,"value":{"k":"e","c":"f","v":2}}'
} | topic in
for workers in 1 3; do
	fresh several.sql --workers $workers -X time.future.max.ms=60000 2>said
	same "a record refused by several queries is one dead letter, $workers workers" \
		"$("$weir" dump out dlq | jq -rc '[.headers[7], .headers[1]] | join(" ")' | tr '\n' ',')" '0 null,1 expr,3 future,'
	same "and one line" "$(grep -c '^rejected' said)" 3
	same "and counts for each" "$(grep -c ' 5 rejected' said)" 1
done

# BL-018: a quoted field with line ends and delimiters, shifted over the edges of every buffer
{
	echo "CREATE TABLE s (a STRING, b STRING, c STRING) WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = 'in', 'format' = 'csv');"
	sink_of "n INT, m STRING, c STRING"
	echo "INSERT INTO o SELECT CHAR_LENGTH(a), MD5(b), c FROM s;"
} >csv.sql
body=$(rep '1,\\n\\"\\"' 12000)
want=$(printf '%b' "$(rep '1,\\n"' 12000)" | md5sum | cut -d ' ' -f 1)
for shift in 0 1 2 3 5 8 13 21 34 55 89; do
	printf '{"value":"%s,\\"%s\\",end"}\n' "$(rep x $((4000 + shift)))" "$body"
done | topic in
fresh csv.sql 2>said
same "BL-018: the same field at every alignment" "$(values out | jq -r .m | sort -u)" "$want"
same "in every record" "$(values out | jq -r .c | sort | uniq -c | tr -s ' ')" " 11 end"
echo '{"value":{"v":1}}' | topic in

# ---- errors that show before anything runs ----
column() { # what stands in place of the time column
	printf '%s\n' "CREATE TABLE s (k STRING, v BIGINT, b BOOLEAN, ts BIGINT, $1) WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'in', 'format' = 'json');" \
		"SELECT k FROM s;" >e.sql
}
window() { # the arguments behind DESCRIPTOR
	printf '%s\n' "CREATE TABLE s (k STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at) WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'in', 'format' = 'json');" \
		"SELECT COUNT(*) FROM TABLE($1) GROUP BY window_start, window_end;" >e.sql
}
column "WATERMARK FOR b AS b"
expect "BL-026: a BOOLEAN is no event time" 78 'e.sql:1:.*b.*BOOLEAN' run e.sql
column "at AS CAST(b AS TIMESTAMP(3)), WATERMARK FOR at AS at"
expect "BL-026: nor does it become one" 78 'e.sql:1:.*BOOLEAN' run e.sql
for zone in PDT Mars/Base ''; do
	printf "SET 'table.local-time-zone' = '%s';\n" "$zone" | cat - count.sql >e.sql
	expect "BL-037, BL-040: zone '$zone' is refused, not taken for UTC" 78 "table.local-time-zone" run e.sql
done
window "TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '0' SECOND)"
expect "BL-049: a window of size 0" 78 'e.sql:2:' run e.sql
window "TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '-5' SECOND)"
expect "BL-049: a window of negative size" 78 'e.sql:2:' run e.sql
window "TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '10000000' YEAR)"
expect "BL-049: a window of ten million years" 78 'e.sql:2:' run e.sql
window "TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '99999999999' DAY)"
expect "BL-049: a window beyond 64 bits" 78 'e.sql:2:' run e.sql
window "HOP(TABLE s, DESCRIPTOR(at), INTERVAL '0' SECOND, INTERVAL '10' SECONDS)"
expect "a hop of 0" 78 'e.sql:2:' run e.sql
window "HOP(TABLE s, DESCRIPTOR(at), INTERVAL '20' SECONDS, INTERVAL '10' SECONDS)"
expect "a hop beyond the size" 78 'e.sql:2:' run e.sql
window "SESSION(TABLE s, DESCRIPTOR(at), INTERVAL '0' SECOND)"
expect "a session with gap 0" 78 'e.sql:2:' run e.sql
expect "BL-065: the grace is printed" 0 'grace 0' "$weir" explain count.sql --define in=in --define out=out

# ---- N: nesting and length ----
nested() { # BEFORE OPEN N MIDDLE CLOSE AFTER
	{
		echo "CREATE TABLE s (b INT, f BOOLEAN, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
		WITH ('connector' = 'recorded', 'path' = 'in', 'topic' = 'in', 'format' = 'json');"
		printf '%s%s%s%s%s' "$1" "$(rep "$2" "$3")" "$4" "$(rep "$5" "$3")" "$6;"
	} >e.sql
}
small() { (ulimit -s 256 && run e.sql -X sql.bytes.max=16MiB "$@"); }
limit='e.sql:3:[0-9]*: error: nesting limit 200'
nested "SELECT " "(" 50000 b ")" " FROM s"
expect "BL-149: 50,000 parentheses" 78 "$limit" small
nested "SELECT " "CASE WHEN f THEN " 50000 1 " END" " FROM s"
expect "BL-149: 50,000 CASEs" 78 "$limit" small
nested "SELECT " "NOT " 50000 f "" " FROM s"
expect "BL-149: 50,000 NOTs" 78 "$limit" small
for clause in "SELECT |  FROM s" "SELECT b FROM s WHERE | > 0" "SELECT COUNT(*) FROM s GROUP BY |" \
	"SELECT MAX(|) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end" \
	"SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end HAVING MAX(|) > 0"; do
	nested "${clause%|*}" "(" 205 b ")" "${clause#*|}"
	expect "BL-151: just beyond the limit: ${clause:0:40}" 78 "$limit" small
done
echo '{"value":{"b":1,"f":true}}' | topic in
nested "SELECT b" "+1" 100000 "" "" " FROM s"
expect "BL-150: 100,000 terms" 0 '^\{"EXPR\$0":100001\}$' small -q
nested "SELECT b FROM s WHERE b=0" " OR b=1" 100000 "" "" ""
expect "BL-150: 100,000 ORs" 0 '^\{"b":1\}$' small -q
nested "SELECT b" ",b" 4999 "" "" " FROM s"
same "BL-150: 5,000 columns" "$(small -q | tr -cd : | wc -c)" 5000
nested "SELECT '" "x" 1048576 "" "" "' FROM s"
same "BL-152: a literal of a MiB" "$(small -q | wc -c)" $((1048576 + 14))
expect "BL-152: over the limit it is an error" 78 'sql.bytes.max' run e.sql
printf 'SELECT "a\0b" FROM s;' >e.sql
expect "BL-155: a NUL byte has a place" 78 'e.sql:1:10: error: a NUL byte' run e.sql

# ---- B, J: time zones and locales change nothing ----
"$weir" gen orders --records 5000 --keys 20 --partitions 2 --seed 3 --rate 50 --out orders -q
{
	orders_table merchant_id | sed "s/\${in}/orders/"
	sink_of "m STRING, day STRING, text STRING, again TIMESTAMP(3), d DOUBLE, cast_d DOUBLE, amount STRING, x DOUBLE, up STRING"
	echo "INSERT INTO o SELECT merchant_id, DATE_FORMAT(event_time, 'yyyy-MM-dd EEE HH:mm:ss'), CAST(event_time AS STRING),
	TO_TIMESTAMP(DATE_FORMAT(event_time, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSS'), CAST(amount AS DOUBLE) / 3,
	CAST('19.95' AS DOUBLE), CAST(amount AS STRING), SQRT(CAST(amount AS DOUBLE)), UPPER('i' || merchant_id) FROM orders;"
} >zones.sql
fresh zones.sql -q
utc=$("$weir" dump out out --digest)
for zone in America/Los_Angeles Asia/Kathmandu Pacific/Apia; do
	TZ=$zone fresh zones.sql -q
	same "BL-036: the same bytes with TZ=$zone" "$("$weir" dump out out --digest)" "$utc"
done
if mkdir -p locales && localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 >/dev/null 2>&1 && localedef -i tr_TR -f UTF-8 locales/tr_TR.UTF-8 >/dev/null 2>&1; then
	for locale in de_DE tr_TR; do
		rm -rf out
		env LOCPATH="$PWD/locales" LC_ALL=$locale.UTF-8 "$weir" run zones.sql --define in=in --define out=out -q
		same "BL-131, BL-132: the same bytes with LC_ALL=$locale.UTF-8" "$("$weir" dump out out --digest)" "$utc"
	done
	rm -rf out
	env LOCPATH="$PWD/locales" LC_ALL=de_DE.UTF-8 "$weir" run zones.sql --define in=in --define out=out 2>said
	same "BL-132: numbers of the summary have a point" "$(grep -c ' in [0-9]*\.[0-9]* s (' said)" 1
else
	echo "skipped: BL-131, BL-132: localedef has no de_DE and tr_TR here"
fi
same "BL-132: CAST('19.95' AS DOUBLE)" "$(values out | grep -c '"cast_d":19.95,')" 5000

# ---- C: the late set of shuffled records is that of an independent count ----
awk 'BEGIN { srand(5); for (i = 0; i < 1000; i++) printf "{\"timestamp\":%d,\"value\":{\"v\":1}}\n", int(rand() * 60000) + i * 10 }' >lines
topic in <lines
sed "s/INTERVAL '1' MINUTE/INTERVAL '10' SECONDS/" count.sql >ten.sql
fresh ten.sql 2>said
expected=$(sed 's/[^0-9]*\([0-9]*\).*/\1/' lines | awk '
	{ if ($1 > t) t = $1; e = int($1 / 10000) * 10000 + 10000; if (t >= e) late++; else n[e]++ }
	END { printf "%d late", late; for (e = 0; e < 100000; e += 10000) if (n[e]) printf " %d", n[e] }')
got="$(grep -o '[0-9]* late' said) $(values out | jq -r .n | tr '\n' ' ')"
same "BL-063: applied and late are those of an independent count" "${got% }" "$expected"

# ---- restarts: time, state and offsets are those of a run without a stop ----
for ts in 25 9; do echo "{\"timestamp\":$ts,\"value\":{\"v\":1}}"; done >lines
sed "s/INTERVAL '1' MINUTE/INTERVAL '0.010' SECOND/" count.sql >vector.sql
head -n 1 lines | topic in
fresh vector.sql -q -X end.of.input=keep
topic in <lines
run vector.sql -X end.of.input=keep 2>said
same "vector 15: 9 is late after a restart: time was not forgotten" "$(grep -o '[0-9]* applied, [0-9]* late' said)" "0 applied, 1 late"
printf '%s\n' '{"timestamp":100,"value":{"v":1}}' '{"timestamp":95,"value":{"v":2}}' '{"timestamp":110,"value":{"v":4}}' >lines
sed "s/WATERMARK FOR at AS at/& - INTERVAL '0.015' SECOND/; s/INTERVAL '1' MINUTE/INTERVAL '0.010' SECOND/" count.sql >restore.sql
topic in <lines
fresh restore.sql -q -X end.of.input=keep
echo '{"timestamp":200,"value":{"v":8}}' | cat lines - | topic in
run restore.sql -q
same "BL-062: what was in time when it came is there after a restore" "$(values out | jq -rc '[.n, .v] | join(" ")' | tr '\n' ',')" "1 2,1 1,1 4,1 8,"
printf '%s\n' '{"key":"a","value":{"k":"a","v":5}}' '{"key":"b","value":{"k":"b","v":6}}' '{"key":"a","value":{"k":"a","v":-5}}' >lines
topic in <lines
fresh total.sql -q -X emit.coalesce=false
same "BL-081: a delete is a null value" "$("$weir" dump out out | jq -rc '[.key, .payload] | join("=")' | sort | tr '\n' ' ')" \
	'a= a={"k":"a","v":5} b={"k":"b","v":6} '
cat lines - <<'EOF' | topic in
{"key":"a","value":{"k":"a","v":0}}
{"key":"b","value":{"k":"b","v":1}}
EOF
run total.sql -q
same "BL-081, BL-082: after the restart only b is there" "$("$weir" dump out out -o 3 | jq -rc '[.key, .payload] | join("=")' | tr '\n' ' ')" 'b={"k":"b","v":7} '
expect "BL-114: a second run reads nothing twice" 0 ' 0 records in ' run total.sql
printf '%s\n' '{"key":"a","value":{"k":"a","v":-1}}' '{"key":"b","value":{"k":"b","v":-1}}' >lines
topic in <lines
fresh total.sql -q
same "BL-083: nothing but sums that never passed: nothing is written" "$("$weir" dump out out | wc -l)" 0
printf '%s\n' '{"key":"a","value":{"k":"a","v":9}}' | cat lines - | topic in
run total.sql -q
same "and the state is there" "$(values out)" '{"k":"a","v":8}'

# BL-106, BL-107: a transaction a record; each run takes one more
rm -rf out
: >lines
for i in 1 2 3 4 5 6; do
	printf '%s\n' "{\"producer\":7,\"value\":{\"k\":\"t\",\"v\":$i}}" '{"producer":7,"control":"commit"}' >>lines
	printf '%s\n' "{\"producer\":8,\"value\":{\"k\":\"t\",\"v\":1000}}" '{"producer":8,"control":"abort"}' >>lines
	topic in <lines
	run total.sql 2>said
	grep -q ' 1 records in .* 1 applied' said || not_ok "BL-106: transaction $i: $(cat said)"
done
same "BL-106: a stop after each committed record: none twice, none missing" "$(values out | jq -r .v | tr '\n' ' ')" "1 3 6 10 15 21 "
expect "BL-107: markers at the end are no lag" 0 ' 0 records in ' run total.sql

# A commit file that was edited, or is lost while results and changelog are there
printf '%s\n' '{"key":"k","value":{"k":"a","v":1}}' '{"key":"k","value":{"k":"a","v":2}}' | topic in
fresh total.sql 2>said
sed -i 's/"next": [0-9]*/"next": 0/' out/weir.commit
expect "an offset edited by hand in weir.commit" 1 'weir.commit is damaged: its checksum does not fit' run total.sql
expect "readers notice it, too" 1 'its checksum does not fit' "$weir" dump out out
rm out/weir.commit
expect "a lost weir.commit: results and changelog are named" 1 \
	'records of topic out in .* changelog total-o-group-changelog of application total. To start over, remove .*/out-\* and run: weir reset total' run total.sql
before=$(cat out/out-0/*.log | sha256sum)
run total.sql 2>said
same "and it stays refused, with nothing written" "$(cat out/out-0/*.log | sha256sum)" "$before"
expect "reset removes the changelog and names what it cannot know" 0 'topic out in .* if it holds results of total, remove' \
	"$weir" reset total out --execute

# BL-080, BL-087, BL-121: logs that begin late, were cut, were made anew
printf '%s\n' '{"offset":5000,"value":{"k":"a","v":1}}' '{"offset":5007,"value":{"k":"a","v":2}}' | topic in
mv in/in-0/00000000000000000000.log in/in-0/00000000000000005000.log
fresh total.sql 2>said
same "BL-080: a log that begins at 5,000, with gaps" "$(values out)" '{"k":"a","v":3}'
echo '{"offset":6000,"value":{"k":"a","v":4}}' | topic in
mv in/in-0/00000000000000000000.log in/in-0/00000000000000006000.log
expect "BL-087: records that are gone are no silence" 1 'in-0 begins at offset 6000 .* at offset 5008: 992 offsets were removed' run total.sql
sed "s/'json');/'json', 'scan.damaged' = 'skip');/; t; " total.sql | sed "2s/, 'scan.damaged' = 'skip'//" >total_skip.sql
expect "BL-087: unless told to go on" 0 'offsets 5008 to 5999 were removed before they were read' run total_skip.sql -g total
same "BL-087: behind the gap" "$(values out | tail -n 1)" '{"k":"a","v":7}'
echo '{"value":{"k":"a","v":4}}' | topic in
expect "BL-121: a topic made anew is no end of input" 1 'in-0 ends at offset 1 .* at offset 6001' run total.sql

# BL-094, BL-118, BL-119: a source that grows
printf '%s\n' '{"key":"a","value":{"k":"a","v":5}}' '{"partition":1,"key":"b","value":{"k":"b","v":6}}' >lines
topic in <lines
fresh total.sql -q
sed "1s/'json');/'json', 'scan.startup.mode' = 'latest-offset');/" total.sql >latest.sql
printf '%s\n' '{"partition":2,"value":{"k":"a","v":1}}' '{"partition":2,"value":{"k":"c","v":1}}' '{"partition":3,"value":{"k":"a","v":1}}' | cat lines - | topic in
run latest.sql -q -g total
same "BL-118, BL-119: new partitions are read from their beginning, whatever the startup mode says" \
	"$("$weir" dump out out | jq -rc .payload | sort | tr '\n' ' ')" '{"k":"a","v":5} {"k":"a","v":7} {"k":"b","v":6} {"k":"c","v":1} '
sed "1s/'json');/'json', 'key.format' = 'raw', 'key.fields' = 'k');/" total.sql >direct.sql
topic in <lines
fresh direct.sql -q
echo '{"partition":2,"value":{"k":"a","v":1}}' | cat lines - | topic in
expect "BL-093, BL-094: slots that are partitions do not grow in silence" 78 'state o-group is kept by source partition: 2 of them, but now there are 3' run direct.sql

# ---- K, L: sizes and damage ----
{
	echo '{"value":{"v":1}}'
	printf '{"value":"{\\"k\\":\\"%s\\"}"}\n' "$(rep x 20971520)"
	echo '{"value":{"v":1}}'
} | topic in --batch 1
fresh count.sql 2>said
same "BL-133: a record of 20 MiB is one bad record" "$(grep -c ' 2 applied, 0 late, 1 rejected' said)" 1
same "with its reason" "$(grep -c 'in-0 offset 1: size: larger than record.bytes.max' said)" 1
rm -rf in/in-0
echo '{"repeat":5,"value":{"v":1}}' | topic in --codec-bits 1
expect "BL-136: a block that does not inflate under a good CRC: file, byte, offsets" 1 'in-0/0*.log: the batch at byte 0 \(offsets 0 to 4\) cannot be used: the gzip data is damaged' fresh count.sql
expect "BL-136: skipped on demand, named" 0 'skipped bytes 0 to .*offsets 0 to 4.*gzip' fresh skip.sql
expect "BL-136: and counted" 0 ': 5 records lie in damaged batches' fresh skip.sql
echo '{"repeat":50,"value":{"v":1}}' | topic in --batch 10
printf '\125' | dd of=in/in-0/00000000000000000000.log bs=1 seek=700 conv=notrunc 2>/dev/null
expect "BL-141: one damaged byte stops with its place" 1 'offsets 30 to 39\) cannot be used: its CRC' fresh count.sql
expect "BL-141: or is skipped with exact offsets" 0 'offsets 30 to 39\): its CRC' fresh skip.sql
same "BL-141: and the rest is there" "$(values out | jq -r .n)" 40

# BL-096: a damaged changelog
echo '{"repeat":1000,"value":"{\"k\":\"k%d\",\"v\":1}"}' | topic in
fresh total.sql -q
log=$(ls out/total-o-group-changelog-0/*.log)
cp "$log" kept.log
for at in 200 5000 20000; do
	cp kept.log "$log"
	printf '\252' | dd of="$log" bs=1 seek=$at conv=notrunc 2>/dev/null
	expect "BL-096: a byte of the changelog changed at $at" 1 'changelog-0/.*log.*byte|changelog.*damaged' run total.sql
done
cp kept.log "$log"
expect "and without the damage it goes on" 0 'wholly consumed' run total.sql

# BL-097: a small task resumes from its last commit
expect "BL-097: resumes where it was" 0 '^resuming at epoch 1, after 1000 records' \
	bash -c "echo '{\"repeat\":1001,\"value\":\"{\\\"k\\\":\\\"k%d\\\",\\\"v\\\":1}\"}' | '$make_topic' in in && '$weir' run total.sql --define in=in --define out=out"

# ---- O: clocks ----
{
	orders_table merchant_id | sed "s/\${in}/orders/"
	sink_of "ws TIMESTAMP(3), m STRING, n BIGINT, v DECIMAL(38,2)"
	echo "INSERT INTO o SELECT window_start, merchant_id, COUNT(*), SUM(amount)
	FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id;"
} >minutes.sql
points=(-X order.point.records=500 -X commit.interval.records=500)
fresh minutes.sql "${points[@]}" -v 2>said
calm=$("$weir" dump out out --digest)
epochs=$(grep -o '[0-9]* epochs committed' said)
rm -rf out
"$weir" run minutes.sql --define in=in --define out=out "${points[@]}" -X scan.rate=5000 -v 2>said &
pid=$!
for _ in 1 2 3 4 5; do
	sleep 0.1
	kill -STOP $pid 2>/dev/null
	sleep 0.1
	kill -CONT $pid 2>/dev/null
done
wait $pid
same "BL-158: stopped and continued five times: the same bytes" "$("$weir" dump out out --digest)" "$calm"
same "BL-158: and no burst of commits" "$(grep -o '[0-9]* epochs committed' said)" "$epochs"

# A recording that is cut while its pages are in use ends the run with a word; the next one finds damage or a shorter topic.
"$weir" gen orders --records 200000 --keys 20 --partitions 1 --seed 5 --rate 1000 --out cut -q
rm -rf out
sed "s/'path' = 'orders'/'path' = 'cut'/" minutes.sql >cut.sql
"$weir" run cut.sql --define in=in --define out=out -X scan.rate=10000 2>said &
pid=$!
sleep 1
truncate -s 1000 cut/order.placed-0/*.log
wait $pid
same "a recording cut while it is read: exit code" "$?" 1
expect "and it is said" 0 "has become shorter while it was read" cat said

# The wall clock goes an hour back, then two ahead, and to and fro, while the input runs for a second.
shift_clock=$(dirname "$weir")/tests/shift_clock.so
if ! env LD_PRELOAD="$shift_clock" "$weir" version >/dev/null 2>&1; then
	echo "skipped: BL-156: nothing can be preloaded into this build"
else
	rm -rf out
	env LD_PRELOAD="$shift_clock" "$weir" run minutes.sql --define in=in --define out=out "${points[@]}" -X scan.rate=5000 -v 2>said
	same "BL-156, BL-157: the same bytes while the wall clock jumps" "$("$weir" dump out out --digest)" "$calm"
	same "BL-156: and the same commits" "$(grep -o '[0-9]* epochs committed' said)" "$epochs"
	sed "s/'topic' = 'order.placed'/&, 'scan.bounded.mode' = 'unbounded'/" minutes.sql >live.sql
	rm -rf out
	env LD_PRELOAD="$shift_clock" "$weir" run live.sql --define in=in --define out=out -X scan.rate=4000 -X commit.interval.ms=100 -v 2>said &
	pid=$!
	sleep 1.6
	kill -TERM $pid
	wait $pid
	same "BL-156: a live run under it ends with 0" $? 0
	n=$(sed -n 's/.* \([0-9]*\) epochs committed.*/\1/p' said)
	if [ "${n:-0}" -ge 3 ]; then
		ok "BL-156: commits go on by the monotonic clock ($n)"
	else
		not_ok "BL-156: ${n:-0} commits in a second and a half of live input"
	fi
fi

# ---- D: live input without progress ----
{
	sed "s/'topic' = 'in'/&, 'scan.bounded.mode' = 'unbounded'/" skip.sql | head -n 1
	echo "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' SECOND)) GROUP BY window_start, window_end;"
} >idle.sql
printf '%s\n' '{"timestamp":1000,"value":{"v":1}}' '{"timestamp":2000,"value":{"v":1}}' | topic in --partitions 3
# live LINES OPTIONS...: runs until that many rows are there, or five seconds; what came is in rows
live() {
	local lines=$1 pid code
	shift
	"$weir" run idle.sql --define in=in -q "$@" >rows 2>said &
	pid=$!
	for _ in $(seq 50); do
		[ "$(wc -l <rows)" -ge "$lines" ] && break
		sleep 0.1
	done
	kill -TERM $pid
	kill -TERM $pid # the same request once more
	wait $pid
	code=$?
	[ "$code" = 0 ] || not_ok "a live run stopped twice in a moment ended with $code: $(cat said)"
}
live 1 -X idle.timeout.ms=200
same "BL-069: silent partitions do not hold back the one that has data" "$(cat rows)" '{"window_start":"1970-01-01 00:00:01","n":1}'
live 2 -X idle.timeout.ms=200 -X idle.advance=wall
same "BL-064: with idle.advance=wall the last window comes, too" "$(tail -n 1 rows)" '{"window_start":"1970-01-01 00:00:02","n":1}'
printf '%s\n' '{"timestamp":1000,"value":{"v":1}}' '{"timestamp":2000,"value":{"v":1}}' | topic in
live 1 -X idle.timeout.ms=0
same "BL-064: without progress nothing is emitted" "$(cat rows)" '{"window_start":"1970-01-01 00:00:01","n":1}'

# ---- E: joins of topics that are filled already ----
# joined.sql: a stream beside a table, which is larger and whose rows are older
{
	echo "CREATE TABLE s (k STRING, n BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at) WITH ('connector' = 'recorded',
	'path' = '\${in}', 'topic' = 'in', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
	CREATE TABLE t (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'recorded',
	'path' = '\${in}', 'topic' = 'table', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');"
	sink_of "k STRING, n BIGINT, v BIGINT"
	echo "INSERT INTO o SELECT s.k, s.n, t.v FROM s LEFT JOIN t ON s.k = t.k WHERE s.k IS NOT NULL;"
} >joined.sql
fill() { # PARTITIONS, PARTITIONS-OF-THE-TABLE
	for ((p = 0; p < 4; p++)); do
		echo "{\"partition\":$p,\"repeat\":1000,\"timestamp\":200,\"key\":\"$p-%d\",\"value\":{\"n\":1}}"
	done | topic in --partitions "$1"
	for ((p = 0; p < 4; p++)); do
		echo "{\"partition\":$(((p + $2 - $1) % $2)),\"repeat\":5000,\"timestamp\":100,\"key\":\"$p-%d\",\"value\":{\"v\":2}}"
	done | topic table --partitions "$2"
}
fill 4 4
for workers in 1 1 1 1 1 2 2 2 2 2 3 3 3 3 3 4 4 4 4 4; do
	fresh joined.sql --workers $workers 2>said
	echo "$(values out | grep -c '"v":2}') $(values out | grep -c '"v":null}')"
done | sort -u >rows
same "BL-074: a table's rows that are earlier by time are there, 20 cold starts" "$(cat rows)" "4000 0"
fill 4 6
fresh joined.sql --workers 3 2>said
same "BL-077: topics with other numbers of partitions: rows move, every row is joined" \
	"$(values out | grep -c '"v":2}') $(values out | grep -c '"v":null}')" "4000 0"
expect "BL-077: which is said, with both numbers" 0 's has 4 partitions, t has 6' "$weir" explain joined.sql --define in=in --define out=out
# rows move to their key's slot: an empty key to one of its own, NULL to none
{
	echo '{"partition":0,"repeat":1000,"timestamp":200,"value":{"n":1}}'
	for ((p = 0; p < 4; p++)); do
		echo "{\"partition\":$p,\"repeat\":10,\"timestamp\":200,\"key\":\"\",\"value\":{\"n\":1}}"
		echo "{\"partition\":$p,\"repeat\":10,\"timestamp\":200,\"key\":\"a\",\"value\":{\"n\":1}}"
	done
} | topic in --partitions 4
printf '%s\n' '{"partition":5,"timestamp":100,"key":"","value":{"v":3}}' '{"partition":2,"timestamp":100,"key":"a","value":{"v":4}}' | topic table --partitions 6
fresh joined.sql -X exchange=local --workers 3 2>said
same "BL-078: rows with an empty key meet, wherever they come from" "$(values out | sort | uniq -c | tr -s ' \n' ' ')" \
	' 40 {"k":"","n":1,"v":3} 40 {"k":"a","n":1,"v":4} '
same "BL-073: rows that the condition drops are no warning" "$(grep -c '0 late, 0 rejected' said) $(wc -l <said)" "1 1"
sed 's/FROM s LEFT/FROM (SELECT * FROM s WHERE k IS NOT NULL) AS s LEFT/; s/ WHERE s.k IS NOT NULL;/;/' joined.sql >before.sql
fresh before.sql -X exchange=local 2>said
same "BL-073: dropped before the join they are filtered" "$(grep -c '0 late, 0 rejected, 1000 filtered' said) $(wc -l <said)" "1 1"
same "BL-073: to the same rows" "$(values out | wc -l)" 80

# ---- F: the changelog stays within its bound over many epochs ----
"$weir" gen orders --records 100000 --keys 200 --partitions 2 --seed 4 --rate 1000 --out many -q
sed "s/'orders'/'many'/" minutes.sql >many.sql
fresh many.sql -v -X order.point.records=10 -X commit.interval.records=10 2>said
same "10,000 epochs" "$(grep -c ' 1000[01] epochs committed' said)" 1
state=$(du -sk out/many-*-changelog-* | awk '{ n += $1 } END { print n }')
if [ "$state" -lt $((2 * 65536 + 20480)) ]; then
	ok "BL-086: the changelog has $state KiB after 10,000 epochs"
else
	not_ok "the changelog has $state KiB after 10,000 epochs"
fi
small=$("$weir" dump out out | jq -rc '[.key, .payload] | join(" ")' | LC_ALL=C sort | cksum)
fresh many.sql -q
same "with the same results as in one epoch" "$("$weir" dump out out | jq -rc '[.key, .payload] | join(" ")' | LC_ALL=C sort | cksum)" "$small"

# BL-095 and the like: killed again and again with sessions, hopping windows, a table with deletes, two stages, bad and late
# records in one job, each start with another number of workers: the bytes of every topic are those of one run.
"$weir" gen orders --records 60000 --keys 300 --partitions 4 --seed 21 --rate 100 --disorder-ms 3000 --late 0.002 --bad 0.002 --out all -q
{
	echo "SET 'errors.deadletterqueue.topic.name' = 'dlq'; SET 'late.topic' = 'late';"
	orders_table order_id | sed "s/\${in}/all/"
	table() { echo "CREATE TABLE $1 ($2) WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = '$1', 'format' = 'json');"; }
	table sessions "m STRING, ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, f STRING, l STRING, d BIGINT, PRIMARY KEY (m, ws, we) NOT ENFORCED"
	table hops "m STRING, ws TIMESTAMP(3), n BIGINT, most STRING, least DECIMAL(12,2), d BIGINT, PRIMARY KEY (m, ws) NOT ENFORCED"
	table sums "c STRING, n BIGINT, total DECIMAL(38,2), PRIMARY KEY (c) NOT ENFORCED"
	table two "ws TIMESTAMP(3), n BIGINT, best DECIMAL(38,2)"
	cat <<-'SQL'
		CREATE VIEW minutes AS SELECT merchant_id, SUM(amount) AS total, window_time AS at
		  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '30' SECONDS)) GROUP BY window_start, window_end, window_time, merchant_id;
		INSERT INTO sessions SELECT merchant_id, window_start, window_end, COUNT(*), FIRST_VALUE(order_id), LAST_VALUE(order_id), COUNT(DISTINCT currency)
		  FROM TABLE(SESSION(TABLE orders PARTITION BY merchant_id, DESCRIPTOR(event_time), INTERVAL '2' SECONDS))
		  GROUP BY window_start, window_end, merchant_id HAVING COUNT(*) > 1 EMIT CHANGES;
		INSERT INTO hops SELECT merchant_id, window_start, COUNT(*), MAX(order_id), MIN(amount), COUNT(DISTINCT customer_id)
		  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '10' SECONDS, INTERVAL '30' SECONDS)) GROUP BY window_start, window_end, merchant_id;
		INSERT INTO sums SELECT SUBSTRING(order_id, 10), COUNT(*), SUM(amount) FROM orders GROUP BY SUBSTRING(order_id, 10)
		  HAVING MOD(CAST(SUM(amount) * 100 AS BIGINT), 3) <> 0;
		INSERT INTO two SELECT window_start, COUNT(*), MAX(total) FROM TABLE(TUMBLE(TABLE minutes, DESCRIPTOR(at), INTERVAL '2' MINUTES))
		  GROUP BY window_start, window_end;
	SQL
} >all.sql
points=(-X order.point.records=1000 -X commit.interval.records=3000 -X processing.guarantee=exactly_once)
digests() { for name in sessions hops sums two dlq late; do "$weir" dump out $name --digest; done; }
fresh all.sql "${points[@]}" -q 2>said
once=$(digests)
rm -rf out
killed=0
for i in 1 2 3 4 5 6 7 8; do
	"$weir" run all.sql --define in=in --define out=out "${points[@]}" -X scan.rate=40000 --workers $((i % 3 + 1)) -q 2>said &
	pid=$!
	sleep 0.$((RANDOM % 5 + 2))
	kill -9 $pid 2>/dev/null && killed=$((killed + 1))
	wait $pid 2>/dev/null
done
run all.sql "${points[@]}" -q 2>said
same "BL-095: killed $killed times: the same bytes in six topics" "$(digests)" "$once"

# BL-057, BL-086: closed windows leave nothing behind, also after a restart
printf '%s\n' '{"repeat":2000,"timestamp":1,"value":"{\"k\":\"k%d\",\"v\":1}"}' >lines
topic in <lines
fresh count.sql -q -X end.of.input=keep
echo '{"timestamp":2592000000,"value":{"k":"x","v":1}}' | cat lines - | topic in
run count.sql -v -X end.of.input=keep 2>said
same "BL-057: one open window is left after thirty days" "$(grep -o '[0-9]* entries of state' said)" "1 entries of state"

# ---- rows without a key, printed: what goes is what came ----
{
	for table in a b; do
		echo "CREATE TABLE $table (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)
		WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = '$table', 'format' = 'json', 'key.format' = 'raw');"
	done
	echo "SELECT a.v AS av, b.v AS bv FROM a FULL JOIN b ON a.k = b.k AND a.v < b.v;"
} >full.sql
printf '%s\n' '{"ts":1,"key":"1","value":{"k":"1","v":5}}' | topic a
printf '%s\n' '{"ts":2,"key":"1","value":{"k":"1","v":3}}' '{"ts":3,"key":"1","value":{"k":"1","v":9}}' | topic b
same "a full join on more than equal keys is printed with what rows were" \
	"$(run full.sql -q -X order.point.records=1 2>/dev/null | sort | tr '\n' ' ')" \
	'{"op":"+I","av":5,"bv":null} {"op":"+I","av":null,"bv":3} {"op":"+U","av":5,"bv":9} {"op":"+U","av":5,"bv":null} {"op":"-D","av":null,"bv":3} {"op":"-U","av":5,"bv":null} {"op":"-U","av":5,"bv":null} '

# ---- numbers that are one key are one key in a topic: 0.0 and -0.0 ----
for t in a b; do
	echo "CREATE TABLE $t (k DOUBLE, $t INT, PRIMARY KEY (k) NOT ENFORCED)
	  WITH ('connector' = 'recorded', 'path' = '\${in}', 'topic' = '$t', 'format' = 'json', 'key.format' = 'json');"
done >zero.sql
cat >>zero.sql <<'SQL'
CREATE TABLE o (k DOUBLE, a INT, b INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json', 'key.format' = 'json');
INSERT INTO o SELECT COALESCE(a.k, b.k) AS k, a, b FROM a FULL JOIN b ON a.k = b.k;
SQL
printf '%s\n' '{"key":"{\"k\":-0.0}","value":{"k":-0.0,"a":1},"timestamp":1}' '{"key":"{\"k\":-0.0}","value":null,"timestamp":3}' | topic a
printf '%s\n' '{"key":"{\"k\":0.0}","value":{"k":0.0,"b":2},"timestamp":2}' '{"key":"{\"k\":0.0}","value":null,"timestamp":4}' | topic b
fresh zero.sql -q -X order.point.records=1
same "a row's key in the topic is the same for -0.0 and 0.0" "$("$weir" dump out out | jq -r .key | sort | uniq -c | tr -s ' ')" ' 4 {"k":0}'

# ---- ksqlDB's three files ----
for folder in "$root"/tests/conformance/ksql/*/; do
	files=("$weir" test -s "$folder/statements.sql" -i "$folder/input.json" -o "$folder/output.json")
	expect "three files: $(basename "$folder")" 0 '^1 passed, 0 failed$' "${files[@]}"
done
mkdir update
cp "$root"/tests/conformance/*.sql "$root"/tests/conformance/*.json update
"$weir" test --update update/*.sql >/dev/null 2>&1
expect "what --update writes passes" 0 '^[0-9]* passed, 0 failed$' "$weir" test update/*.sql
folder=$root/tests/conformance/ksql/window_changes
three() { "$weir" test -s "$1/statements.sql" -i "$1/input.json" -o "$1/output.json"; }
cp -r "$folder" three
sed -i 's/"N": 2, "V": 4/"N": 2, "V": 5/' three/output.json
expect "three files: a wrong value is seen" 1 '^0 passed, 1 failed$' three three
cp "$folder"/* three
sed -i '2{h;d};3{G}' three/output.json
expect "three files: a wrong order is seen" 1 '^0 passed, 1 failed$' three three
cp "$folder"/* three
sed -i 's/"start": 20000/"start": 10000/' three/output.json
expect "three files: a wrong window is seen" 1 '^0 passed, 1 failed$' three three
cp "$folder"/* three
sed -i '$!N;s/,\n\]/\n]/;P;D' three/output.json
sed -i '/"start": 0, "end": 10000.*"b"/d' three/output.json
echo "CREATE STREAM s (id VARCHAR KEY, v BIGINT) WITH (KAFKA_TOPIC='events', VALUE_FORMAT='JSON');" >three/statements.sql
expect "three files: ksqlDB's own statements are refused" 78 'CREATE STREAM' three three

cd "$root" || exit 1
[ "$failures" = 0 ]
