#!/bin/bash
# verbs.sh: run, test, explain, validate and reset as a user meets them: where SQL and configuration errors point, which
# property wins, what goes to stdout, exit codes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

expect() { # NAME CODE PATTERN COMMAND...: exit code, and a line of stdout or stderr
	local name=$1 code=$2 pattern=$3 said got
	shift 3
	said=$("$@" 2>&1)
	got=$?
	if [ "$got" = "$code" ] && printf '%s\n' "$said" | grep -Eq -- "$pattern"; then
		ok "$name"
	else
		not_ok "$name: exit code $got (expected $code), no line like $pattern in:"
		printf '%s\n' "$said" | head -n 6 | sed 's/^/    /'
	fi
}
same() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: $2, expected $3"; fi
}

in=$scratch/in
out=$scratch/out
sql=tools/examples/revenue.sql
"$weir" gen orders --records 20000 --keys 50 --rate 100 --partitions 3 --out "$in" -q
defines=(--define "in=$in" --define "out=$out")
select=$scratch/select.sql
cat >"$select" <<'SQL'
CREATE TABLE orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), ts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');
SELECT merchant_id, amount FROM orders WHERE amount > 1900;
SQL

# ---- errors point at their place and name the nearest valid thing ----
edit() { sed "$1" "$select" >"$scratch/edited.sql"; }
expect "an undefined variable" 78 'select.sql:2:43: error: .*in' "$weir" run "$select"
edit 's/amount > /amuont > /'
expect "an unknown column: place" 78 'edited.sql:3:46: error: ' "$weir" run "$scratch/edited.sql" "${defines[@]}"
expect "an unknown column: hint" 78 'did you mean amount' "$weir" run "$scratch/edited.sql" "${defines[@]}"
expect "the line and a caret" 78 '^ +\^' "$weir" run "$scratch/edited.sql" "${defines[@]}"
edit "s/'format'/'fromat'/"
expect "an unknown option" 78 "did you mean .?'?format" "$weir" run "$scratch/edited.sql" "${defines[@]}"
edit 's/SELECT merchant_id/SELECT UPER(merchant_id)/'
expect "an unknown function" 78 'did you mean .?UPPER' "$weir" run "$scratch/edited.sql" "${defines[@]}"
edit 's/FROM orders/FROM order_s/'
expect "an unknown table" 78 'edited.sql:3:' "$weir" run "$scratch/edited.sql" "${defines[@]}"
edit 's/;$//; $s/$/ WHERE/'
expect "a statement cut off" 78 'edited.sql:' "$weir" run "$scratch/edited.sql" "${defines[@]}"
expect "a file that is not there" 78 'nothing.sql: No such file' "$weir" run nothing.sql
expect "a folder is no file" 78 'cannot read \.: Is a directory' "$weir" run .
expect "a topic that is not there" 78 'order.placed' "$weir" run "$select" --define "in=$scratch"
expect "an unknown property" 78 "did you mean .?workers" "$weir" run "$select" -X wrkers=2 "${defines[@]}"
expect "a property out of its range" 78 'workers' "$weir" run "$select" -X workers=0 "${defines[@]}"
expect "two properties in one" 2 'write -X workers=1 -X slots=2' "$weir" run "$select" -X workers=1,slots=2 "${defines[@]}"
expect "-X without a value" 2 'NAME=VALUE' "$weir" run "$select" -X workers "${defines[@]}"
expect "--define without a value" 2 'NAME=VALUE' "$weir" run "$select" --define in
expect "no file" 2 'which file' "$weir" run
expect "a --define without a name" 2 'NAME=VALUE' "$weir" run "$select" --define =x
echo "-- nothing" >"$scratch/empty.sql"
expect "a file without statements" 0 'nothing to run' "$weir" run "$scratch/empty.sql"
expect "two files" 2 'one SQL file at a time' "$weir" run a.sql b.sql
cat >"$scratch/edited.sql" <<'SQL'
CREATE TABLE orders (merchant_id STRING, amount DECIMAL(12,2))
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');
CREATE TABLE totals (merchant_id STRING, total DECIMAL(38,2))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'totals', 'format' = 'json');
INSERT INTO totals SELECT merchant_id, SUM(amount) FROM orders GROUP BY merchant_id;
SQL
expect "a table into an append sink is refused, with a hint" 78 'PRIMARY KEY' "$weir" run "$scratch/edited.sql" "${defines[@]}"

# ---- configuration: flag > -X > environment > file > default ----
echo 'workers = 5' >"$scratch/weir.conf"
dump() { "$@" -X dump 2>/dev/null | sed -n 's/^workers = \([^ ]*\).*/\1/p'; }
cpus=$(nproc)
same "default" "$(dump "$weir" run)" $((cpus > 1 ? cpus - 1 : 1))
same "file" "$(dump "$weir" run -F "$scratch/weir.conf")" 5
same "environment over file" "$(WEIR_WORKERS=4 dump "$weir" run -F "$scratch/weir.conf")" 4
same "-X over environment" "$(WEIR_WORKERS=4 dump "$weir" run -X workers=3 -F "$scratch/weir.conf")" 3
same "flag over -X" "$(WEIR_WORKERS=4 dump "$weir" run --workers 2 -X workers=3 -F "$scratch/weir.conf")" 2
expect "-X list" 0 '^processing.guarantee .*at_least_once' "$weir" run -X list

expect "standby.replicas where nothing moves" 0 'standby.replicas has no effect' "$weir" run "$select" "${defines[@]}" -X num.standby.replicas=1

# ---- a bare SELECT: rows on stdout, talk on stderr ----
"$weir" run "$select" "${defines[@]}" >"$scratch/rows" 2>"$scratch/talk"
same "exit code" $? 0
same "every row is JSON of its columns" "$(grep -vc '^{"merchant_id":"m-[0-9]*","amount":[0-9]*\.[0-9][0-9]}$' "$scratch/rows")" 0
wanted=$("$weir" dump "$in" order.placed --format raw | grep -c '"amount":19[0-9][0-9]\.')
same "as many as a search finds" "$(wc -l <"$scratch/rows")" "$wanted"
same "the summary is on stderr" "$(grep -c '20000 records in .* applied, 0 late, 0 rejected' "$scratch/talk")" 1
same "from stdin" "$("$weir" run - "${defines[@]}" -q <"$select" | sort | cksum)" "$(sort "$scratch/rows" | cksum)"
same "-q is quiet" "$("$weir" run "$select" "${defines[@]}" -q 2>&1 >/dev/null | wc -c)" 0
"$weir" run "$select" "${defines[@]}" 2>"$scratch/err" | head -n 1 >/dev/null
same "a closed pipe ends quietly" "${PIPESTATUS[0]} $(grep -ci 'error\|pipe' "$scratch/err")" "0 0"

# stdout or all three standard files closed: nothing that is opened later may take what belongs on them.
"$weir" run "$select" "${defines[@]}" -q >&- 2>"$scratch/err"
same "a closed stdout is an error" "$? $(grep -c 'cannot write to stdout' "$scratch/err")" "1 1"
mkdir "$scratch/it's"
"$weir" run "$sql" --define "in=$in" --define "out=$scratch/it's" <&- >&- 2>&-
closed=$?
"$weir" run "$sql" --define "in=$in" --define "out=$scratch/open" -q
same "standard files closed: the same results, in a folder with a quote in its name" \
	"$closed $("$weir" dump "$scratch/it's" revenue.by-merchant --digest)" "0 $("$weir" dump "$scratch/open" revenue.by-merchant --digest)"

# A reader that takes nothing: the first signal waits for it, the second does not.
mkfifo "$scratch/fifo"
sleep 60 <"$scratch/fifo" &
reader=$!
sed 's/ WHERE .*;/;/' "$select" >"$scratch/all.sql"
"$weir" run "$scratch/all.sql" "${defines[@]}" >"$scratch/fifo" 2>"$scratch/err" &
writer=$!
sleep 0.5 # it fills the pipe and waits, mostly
kill "$writer"
for _ in $(seq 100); do grep -q stopping "$scratch/err" && break || sleep 0.05; done
sleep 0.1 # within a moment it would be the same request once more
kill "$writer"
for _ in $(seq 200); do kill -0 "$writer" 2>/dev/null && sleep 0.05 || break; done
kill -9 "$writer" 2>/dev/null
wait "$writer"
same "a second signal ends it although the reader takes nothing" "$? $(grep -c 'second signal' "$scratch/err")" "143 2"
kill "$reader" 2>/dev/null
wait "$reader" 2>/dev/null

# ---- names and settings ----
id_of() { cp "$sql" "$scratch/$1.sql" && "$weir" explain --json "$scratch/$1.sql" "${defines[@]}" | jq -r .application; }
if command -v jq >/dev/null 2>&1; then
	same "a file's name is the application id" "$(id_of "my job_2")" "my-job_2"
	same "letters with marks lose them, and others become one stroke" \
		"$(id_of "umsätze Größe"; id_of "日本-売上" | sed 's/-[0-9a-f]\{8\}$/-HASH/')" "$(printf 'umsatze-Grose-%s\n---HASH' "$(id_of "umsätze Größe" | grep -o '[0-9a-f]\{8\}$')")"
	if [ "$(id_of 日本)" != "$(id_of 中国)" ]; then ok "two such names are two applications"; else not_ok "two such names are one application"; fi
fi
expect "state.dir has no effect yet, which is said" 0 'property state.dir has no effect in weir' "$weir" run "$sql" --define "in=$in" --define "out=$scratch/dir_out" -X "state.dir=$scratch"
sed "s/'topic' = 'revenue.by-merchant',/& 'sink.parallelism' = '4', 'sink.transactional-id-prefix' = 'mine',/" "$sql" >"$scratch/idle.sql"
expect "options without effect are named at their place" 0 "idle.sql:[0-9]+:[0-9]+: warning: option 'sink.parallelism' has no effect: --workers says" \
	"$weir" validate "$scratch/idle.sql" "${defines[@]}"
sed "s/'topic' = 'revenue.by-merchant',/& 'sink.delivery-guarantee' = 'exactly-once',/" "$sql" >"$scratch/promise.sql"
expect "sink.delivery-guarantee is the job's guarantee" 0 'guarantee exactly_once' \
	"$weir" run "$scratch/promise.sql" --define "in=$in" --define "out=$scratch/promised" -v
expect "also those that promise something" 0 "warning: option 'sink.transactional-id-prefix' has no effect: the application id names transactions" \
	"$weir" validate "$scratch/idle.sql" "${defines[@]}"

# ---- keys in tests ----
cp "tests/conformance/n_keys.sql" "$scratch/n_keys.sql"
sed 's/"end": 10000/"end": 10001/' "tests/conformance/n_keys_test.json" >"$scratch/n_keys_test.json"
expect "the end of a time window is compared" 1 '- windowed  7{"start":0,"end":10001' "$weir" test "$scratch/n_keys.sql"
expect "--update writes it" 0 '2 passed, 0 failed' "$weir" test --update "$scratch/n_keys.sql"
expect "and then it passes" 0 '2 passed, 0 failed' "$weir" test "$scratch/n_keys.sql"

# ---- explain and validate touch nothing ----
expect "explain: Kafka Streams' text" 0 '^   Sub-topology: 0' "$weir" explain "$sql" "${defines[@]}"
expect "explain: state and exchange" 0 'bytes and the key per entry' "$weir" explain "$sql" "${defines[@]}"
expect "explain: a state that keeps what rows were is no join" 0 "Stage names \(level 1\): a table's rows, for what they were" \
	"$weir" explain "$PWD/tests/conformance/e_changelog.sql" --define in=in --define out=out -b file:in
expect "explain --dot" 0 '^digraph ' "$weir" explain --dot "$sql" "${defines[@]}"
if command -v jq >/dev/null 2>&1; then
	same "explain --json is JSON" "$("$weir" explain --json "$sql" "${defines[@]}" | jq -r .application)" revenue
fi
expect "validate" 0 'ok' "$weir" validate "$sql" "${defines[@]}"
expect "validate refuses" 78 'error' "$weir" validate "$scratch/edited.sql" "${defines[@]}"
expect "validate: a topic that is not there" 1 'order.placed' "$weir" validate "$sql" --define "in=$scratch/none" --define "out=$out"
sed "s/'path' = '\${out}', //" "$sql" >"$scratch/homeless.sql"
expect "validate: a sink without a folder" 1 "sink revenue: there is no 'path', and no -b file:DIR" \
	"$weir" validate "$scratch/homeless.sql" "${defines[@]}"
echo "CREATE TABLE t (v BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'); SELECT v FROM t;" >"$scratch/nowhere.sql"
expect "validate: a topic of no brokers, and how they are named" 78 "hint: -b HOST:PORT or 'properties.bootstrap.servers' in WITH" \
	"$weir" validate "$scratch/nowhere.sql"
expect "run says where it is declared" 78 "homeless.sql:[0-9]+:14: error: sink revenue: connector 'recorded' needs 'path'" \
	"$weir" run "$scratch/homeless.sql" "${defines[@]}"
expect "validate: -b file:DIR is one" 0 'ok' "$weir" validate "$scratch/homeless.sql" "${defines[@]}" -b "file:$out"
: >"$scratch/afile"
expect "validate: a sink where no folder can be" 1 'cannot write to .*afile/x: .*afile is not a folder' \
	"$weir" validate "$sql" --define "in=$in" --define "out=$scratch/afile/x"
{
	cat "$sql"
	echo "CREATE TABLE other (o STRING) WITH ('connector' = 'recorded', 'path' = '$scratch/elsewhere', 'topic' = 'o', 'format' = 'json');
	INSERT INTO other SELECT order_id FROM orders;"
} >"$scratch/two_homes.sql"
expect "validate: sinks in two folders" 1 'sink other: it lies in .*elsewhere, others in .*: say which keeps the state, -X state.home=' \
	"$weir" validate "$scratch/two_homes.sql" "${defines[@]}"
expect "validate: unless one is named" 0 'ok' "$weir" validate "$scratch/two_homes.sql" "${defines[@]}" -X "state.home=$out"
rarely='commit.interval.records = 1000 has the effect of 65536: commits fall on order points'
expect "validate says that commits fall on order points" 0 "$rarely" "$weir" validate "$sql" "${defines[@]}" -X commit.interval.records=1000
expect "and so does run" 0 "$rarely" "$weir" run "$sql" --define "in=$in" --define "out=$scratch/rarely" -X commit.interval.records=1000
said=$("$weir" validate "$sql" "${defines[@]}" -X commit.interval.records=1000 -X order.point.records=1000 2>&1)
case $said in
*'has the effect'*) not_ok "validate: a commit at each order point is no trouble: $said" ;;
*) ok "validate: a commit at each order point is no trouble" ;;
esac
expect "validate --no-environment" 0 'ok' "$weir" validate --no-environment "$sql" --define "in=$scratch/none" --define "out=$out"
if [ -e "$out" ]; then not_ok "explain or validate wrote $out"; else ok "explain and validate wrote nothing"; fi

# ---- run, resume, reset ----
expect "run" 0 'revenue: 20000 records' "$weir" run "$sql" "${defines[@]}"
first=$("$weir" dump "$out" revenue.by-merchant --digest)
expect "a second run has nothing to do and says how to start over" 0 "weir reset revenue $out --execute" "$weir" run "$sql" "${defines[@]}"
same "and changed nothing" "$("$weir" dump "$out" revenue.by-merchant --digest)" "$first"
"$weir" gen orders --records 1000 --seed 9 --topic more --out "$in" -q
expect "reset only shows" 0 'would remove' "$weir" reset revenue "$out"
same "and changed nothing, either" "$("$weir" dump "$out" revenue.by-merchant --digest)" "$first"
expect "reset of an application that is not there" 0 'nobody has nothing' "$weir" reset nobody "$out"
expect "reset --execute" 0 'removing' "$weir" reset revenue -b "file:$out" --execute
expect "the results are gone" 78 'no topic' "$weir" dump "$out" revenue.by-merchant
expect "it starts over" 0 'revenue: 20000 records' "$weir" run "$sql" "${defines[@]}"
same "to the same bytes" "$("$weir" dump "$out" revenue.by-merchant --digest)" "$first"
expect "the changelog is readable" 0 '"entry":\{"kind":"marker"' "$weir" dump "$out" revenue-revenue-tumble-changelog
if command -v jq >/dev/null 2>&1; then
	"$weir" run "$sql" -g looked --define "in=$in" --define "out=$scratch/looked" -q -X end.of.input=keep
	kept() { "$weir" dump "$scratch/looked" looked-revenue-tumble-changelog "$@" | jq -c '.entry | select(.kind == "pack") | .windows[].entries[].row'; }
	expect "packs of a changelog are shown as rows" 0 '^\{"merchant_id":"m-[0-9]+","SUM\(amount\)":[0-9.]+,"COUNT\(\*\)":[0-9]+\}$' kept
	expect "also when the schema lies before the first record shown" 0 '^\{"merchant_id":' kept -o 1
fi
expect "another application id starts by itself" 0 '20000 records' "$weir" run "$sql" -g other --define "in=$in" --define "out=$scratch/out2"

# ---- input that became shorter than what was read of it ----
cp -r "$in" "$scratch/shorter"
"$weir" run "$sql" --define "in=$in" --define "out=$scratch/out3" -q
truncate -s 5000 "$scratch/shorter/order.placed-1/00000000000000000000.log"
expect "a topic cut off" 1 'order.placed-1 ends at offset [0-9]+ and cannot be gone on with' "$weir" run "$sql" --define "in=$scratch/shorter" --define "out=$scratch/out3"
rm -r "$scratch/shorter/order.placed-1"
expect "a partition that has gone" 78 'there is no folder .*shorter/order.placed-1: that partition.s records are missing' \
	"$weir" run "$sql" --define "in=$scratch/shorter" --define "out=$scratch/out3"
expect "validate says so, too" 1 'there is no folder .*shorter/order.placed-1' \
	"$weir" validate "$sql" --define "in=$scratch/shorter" --define "out=$scratch/out3"
mkdir "$scratch/shorter/order.placed-1"
expect "its records have gone" 1 'order.placed-1 ends at offset 0 ' "$weir" run "$sql" --define "in=$scratch/shorter" --define "out=$scratch/out3"
expect "an offset beyond the end is the end" 0 '^0$' sh -c "'$weir' dump '$in' order.placed -o 1000000 | wc -l"

# ---- a query or its input that changed between two runs ----
half=$scratch/half
"$weir" run "$sql" --define "in=$in" --define "out=$half" -q -X end.of.input=keep
changed() { sed "$1" "$sql" >"$scratch/revenue.sql"; }
again=("$weir" run "$scratch/revenue.sql" --define "out=$half" --define)
changed 's/merchant_id;$/customer_id;/; s/window_end, merchant_id, SUM/window_end, customer_id, SUM/'
expect "another group column" 78 "kept 'merchant_id STRING', needed 'customer_id STRING'.*weir reset revenue $half --execute" "${again[@]}" "in=$in"
changed 's/SUM(amount)/MAX(amount)/'
expect "another aggregate" 78 "kept 'SUM DECIMAL\(12, 2\) amount', needed 'MAX DECIMAL" "${again[@]}" "in=$in"
changed 's/SUM(amount)/SUM(CAST(-amount AS DECIMAL(12, 2)))/'
expect "another argument of the same type" 78 "kept 'SUM DECIMAL\(12, 2\) amount', needed 'SUM DECIMAL\(12, 2\) \(-amount\)'" "${again[@]}" "in=$in"
changed "s/COUNT(\\*) AS/COUNT(*) FILTER (WHERE currency = 'EUR') AS/"
expect "another filter" 78 "kept 'COUNT_STAR', needed 'COUNT_STAR where \(currency = 'EUR'\)'" "${again[@]}" "in=$in"
changed 's/SUM(amount)/sum( (orders.amount) )/; s/^INSERT/CREATE VIEW o2 AS SELECT merchant_id AS m, amount AS a, event_time FROM orders;\n&/'
expect "another layout of the same" 0 '.' "${again[@]}" "in=$in" -X end.of.input=keep
changed 's/SUM(amount)/SUM(a)/; s/merchant_id;$/m;/; s/window_end, merchant_id, SUM/window_end, m, SUM/; s/TUMBLE(TABLE orders/TUMBLE(TABLE o2/; s/^INSERT/CREATE VIEW o2 AS SELECT merchant_id AS m, amount AS a, event_time FROM orders;\n&/'
expect "another name in between" 0 '.' "${again[@]}" "in=$in" -X end.of.input=keep
sed -i 's/amount AS a,/CAST(amount * 2 AS DECIMAL(12,2)) AS a,/' "$scratch/revenue.sql"
expect "another expression behind the same name" 78 "kept 'SUM DECIMAL\(12, 2\) amount', needed 'SUM DECIMAL\(12, 2\) CAST" "${again[@]}" "in=$in"
changed "s/INTERVAL '5' MINUTES/INTERVAL '6' MINUTES/"
expect "another window" 78 "kept 'size=300000 .*', needed 'size=360000" "${again[@]}" "in=$in"
changed "s/TUMBLE(TABLE orders, DESCRIPTOR(event_time)/HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE/"
expect "another kind of window" 78 "states of other names.*weir reset revenue $half --execute" "${again[@]}" "in=$in"
# What is refused leaves no topic behind, whenever it is found out: by its options, its memory, or what is kept of it.
sed "s/'topic' = 'revenue.by-merchant'/'topic' = 'elsewhere'/; s/INTERVAL '5' MINUTES/INTERVAL '6' MINUTES/" "$sql" >"$scratch/revenue.sql"
expect "another window, to another topic" 78 "needed 'size=360000" "${again[@]}" "in=$in"
expect "little memory" 78 'memory.max' "$weir" run "$sql" --define "in=$in" --define "out=$scratch/little" -X memory.max=1MiB
expect "no topic is left of a refused run" 0 '^0$' sh -c "find '$half' '$scratch/little' -name 'elsewhere*' -o -name 'revenue.by-merchant-*' -path '*little*' | wc -l"
if grep -q elsewhere "$half/weir.commit"; then not_ok "nor in the commit file"; else ok "nor in the commit file"; fi
changed 's/orders BIGINT/n BIGINT/; s/GROUP BY/WHERE amount > 0 GROUP BY/'
expect "other edits are accepted" 0 '.' "${again[@]}" "in=$in" -X end.of.input=keep
cp -r "$in" "$scratch/wider"
cp -r "$in/order.placed-0" "$scratch/wider/order.placed-3"
expect "a partition more" 0 'resuming' "${again[@]}" "in=$scratch/wider" -X end.of.input=keep
expect "is read once" 0 'wholly consumed' "${again[@]}" "in=$scratch/wider" -X end.of.input=keep
expect "a partition less" 78 'has no partition 3 any more' "${again[@]}" "in=$in" -X end.of.input=keep
expect "a topic that must not be made" 78 'has no topic revenue.by-merchant, and topics.create is false' "$weir" run "$sql" --define "in=$in" --define "out=$scratch/out4" -X topics.create=false
mkdir "$scratch/wider/order.placed-999999999"
expect "a folder that makes it a billion partitions" 78 'there is a partition 999999999' "${again[@]}" "in=$scratch/wider"
expect "dump of it" 78 'there is a partition 999999999' "$weir" dump "$scratch/wider" order.placed
expect "a batch beyond its bound" 78 'hint: it is 1024 bytes now' "$weir" run "$sql" --define "in=$in" --define "out=$scratch/out5" -X batch.bytes.max=1KiB
expect "an exchange of another build" 78 'exchange = topic' "${again[@]}" "in=$in" -X exchange=topic

# ---- a sequence is an end ----
cat >"$scratch/sequence.sql" <<'SQL'
CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'fields.a.kind' = 'sequence', 'fields.a.start' = '5', 'fields.a.end' = '7');
SELECT a FROM g;
SQL
expect "datagen ends with its sequence" 0 '^.*: 3 records in ' timeout 120 "$weir" run "$scratch/sequence.sql"

# ---- weir test ----
cp tools/examples/revenue.sql tools/examples/revenue_test.json "$scratch"
expect "test" 0 '^5 passed, 0 failed$' "$weir" test "$scratch/revenue.sql"
sed -i 's/1025.26/1025.27/' "$scratch/revenue_test.json"
expect "a wrong expectation" 1 '^4 passed, 1 failed$' "$weir" test "$scratch/revenue.sql"
expect "shows what came" 1 '^    \+ revenue.by-merchant .*1025\.26' "$weir" test "$scratch/revenue.sql"
"$weir" test --junit "$scratch/junit.xml" "$scratch/revenue.sql" >/dev/null 2>&1
same "JUnit" "$(grep -c '<testcase' "$scratch/junit.xml") $(grep -c '<failure' "$scratch/junit.xml") $(grep -o 'failures="[0-9]*"' "$scratch/junit.xml")" '5 1 failures="1"'
"$weir" test --update "$scratch/revenue.sql" >/dev/null 2>&1
expect "--update makes it right" 0 '^5 passed, 0 failed$' "$weir" test "$scratch/revenue.sql"
same "and only that" "$(grep -c 1025.26 "$scratch/revenue_test.json")" 1
cp tools/examples/split.sql "$scratch"
cat >"$scratch/split_test.json" <<'JSON'
{"tests": [{"inputs": [{"topic": "order.placed.eu", "key": "o", "timestamp": 1,
  "value": {"order_id": "o", "merchant_id": "m", "amount": 150.00, "currency": "EUR", "ts": 1}}], "outputs": []}]}
JSON
expect "where nothing is expected nothing may come" 1 '^    \+ order.big' "$weir" test "$scratch/split.sql"
expect "and --update writes it" 0 '1 passed' "$weir" test --update "$scratch/split.sql"
sed -i '1s/.*/{"tests": [{"inputs": [{"topic": "order.placed.eu", "timestamp": 1, "value": {"amount": 150.00, "ts": 1}}]}]}/; 2,$d' "$scratch/split_test.json"
expect "--update adds what is missing" 0 '1 passed' "$weir" test --update "$scratch/split.sql"
expect "which then passes" 0 '^1 passed' "$weir" test "$scratch/split.sql"
same "into the file" "$(grep -c '"topic": "order.big"' "$scratch/split_test.json")" 1
expect "nothing to run" 2 'nothing to run' "$weir" test
expect "no test file" 78 'select_test.json' "$weir" test "$select" --junit "$scratch/junit.xml"
same "JUnit has what is refused, too" "$(grep -c '<testcase.*select_test.json.*<failure' "$scratch/junit.xml")" 1
edit 's/amount > /amuont > /'
echo '{"inputs": [], "outputs": []}' >"$scratch/edited_test.json"
expect "refused statements" 78 'unknown column' "$weir" test "$scratch/edited.sql"

cat >"$scratch/s.sql" <<'SQL'
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'numbers', 'format' = 'json');
CREATE TABLE t (k STRING, twice BIGINT) WITH ('connector' = 'kafka', 'topic' = 'doubled', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'k');
INSERT INTO t SELECT k, v * 2 FROM s;
SQL
echo '{"inputs": [{"topic": "numbers", "key": "a", "value": {"k": "a", "v": 3}, "timestamp": 5},
 {"topic": "numbers", "key": "b", "value": {"k": "b", "v": 9007199254740993}, "timestamp": 1}]}' >"$scratch/i.json"
echo '{"outputs": [{"topic": "doubled", "key": "a", "value": {"K": "a", "TWICE": 6}, "timestamp": 5},
 {"topic": "doubled", "key": "b", "value": {"K": "b", "TWICE": 18014398509481986}}]}' >"$scratch/o.json"
ksql=("$weir" test -s "$scratch/s.sql" -i "$scratch/i.json" -o "$scratch/o.json")
expect "ksqlDB's three files" 0 '^1 passed, 0 failed$' "${ksql[@]}"
sed -i 's/481986/481985/' "$scratch/o.json"
expect "and the last digit counts" 1 '^0 passed, 1 failed$' "${ksql[@]}"
expect "two of the three files" 2 'belong together' "$weir" test -s "$scratch/s.sql"
echo 'CREATE STREAM s (v BIGINT) WITH (KAFKA_TOPIC=1);' >"$scratch/s.sql"
expect "ksqlDB's own statements are refused" 78 's.sql:1:' "${ksql[@]}"

# ---- keys that do not lie where a join expects them ----
"$weir" gen orders --records 2000 --keys 20 --partitions 3 --key order_id --out "$scratch/keys" -q
"$weir" gen payments --records 2000 --partitions 3 --out "$scratch/keys" -q
cat >"$scratch/keys.sql" <<'SQL'
CREATE TABLE orders (order_id STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'order_id');
CREATE TABLE payments (order_id STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payment.settled', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'order_id');
CREATE TABLE paid (order_id STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'paid', 'format' = 'json');
INSERT INTO paid SELECT o.order_id FROM orders o JOIN payments p ON o.order_id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL '2' HOURS;
SQL
joined() { # the lines about keys, and the results
	rm -rf "$scratch/joined"
	"$weir" run "$scratch/keys.sql" --define "in=$scratch/keys" --define "out=$scratch/joined" "$@" 2>&1 |
		sed -n 's/^source \([a-z]*\): .*sampled keys.*/\1/p; s/.*; \([0-9]*\) results.*/\1/p'
}
all=$(joined)
same "keys are where murmur2 puts them: nothing is said" "$(printf '%s\n' "$all" | wc -l)" 1
(cd "$scratch/keys" && mv payment.settled-1 x && mv payment.settled-2 payment.settled-1 && mv x payment.settled-2)
same "keys elsewhere are said once, with their source" "$(joined | head -n 1)" payments
same "rows that move find each other, and nothing is said" "$(joined -X exchange=local)" "$all"

# ---- state that nothing bounds ----
cat >"$scratch/grows.sql" <<'SQL'
CREATE TABLE orders (order_id STRING, merchant_id STRING) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed',
  'format' = 'json', 'scan.bounded.mode' = 'unbounded');
CREATE TABLE counts (merchant_id STRING, n BIGINT, PRIMARY KEY (merchant_id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counts', 'format' = 'json', 'key.format' = 'raw');
INSERT INTO counts SELECT merchant_id, COUNT(*) FROM orders GROUP BY merchant_id;
SQL
grows=(--define "in=$in" --define "out=$scratch/grows")
expect "explain says what grows" 0 'grows with its keys \(no state.ttl\)' "$weir" explain "$scratch/grows.sql" "${grows[@]}"
expect "and what keeps it" 0 'kept for 1h' "$weir" explain "$scratch/grows.sql" "${grows[@]}" -X state.ttl=1h
started() { # what a run that does not end says within its first second
	timeout 60 "$weir" run "$scratch/grows.sql" "${grows[@]}" "$@" 2>"$scratch/said" &
	for _ in $(seq 200); do [ -e "$scratch/grows/counts-0" ] && break || sleep 0.05; done
	sleep 0.3
	kill -TERM $!
	wait $!
	grep -c 'grows with its keys: counts-group' "$scratch/said"
}
same "a run without an end says so at its start" "$(started)" 1
rm -rf "$scratch/grows"
same "with state.ttl there is nothing to say" "$(started -X state.ttl=1h)" 0

[ "$failures" = 0 ]
