#!/bin/bash
# oracle.sh: queries of every kind over generated orders, computed a second time by sqlite3 over `weir dump`, and compared row
# by row: aggregates, HAVING, FILTER, CASE, strings, numbers and times, two stages, hopping and session windows, tables; FINAL
# and CHANGES, and the same bytes for 1, 2 and 4 workers.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib
if ! command -v sqlite3 >/dev/null 2>&1; then
	echo "skipped: no sqlite3"
	exit 0
fi
cd "$scratch" || exit 1

# One partition keyed by order: a local exchange whose order is that of the offsets, so that FIRST and LAST are known.
"$weir" gen orders --records 20000 --keys 40 --partitions 1 --seed 11 --rate 20 --out in -q
# Three partitions, out of order by less than the grace.
"$weir" gen orders --records 20000 --keys 40 --partitions 3 --seed 12 --rate 20 --disorder-ms 3000 --out in3 -q
rows() { # FOLDER TOPIC TABLE: key, payload and place of each record into a table
	"$weir" dump "$1" "$2" | jq -r '[.partition, .offset, .ts, (.key | tostring), (.payload | tostring)] | @json' |
		jq -r '[(.[0]|tostring), (.[1]|tostring), (.[2]|tostring), .[3], .[4]] | map(gsub("\t"; " ")) | join("\t")' >rows.tsv
	sqlite3 db "DROP TABLE IF EXISTS $3; CREATE TABLE $3 (p INT, o INT, ts INT, k TEXT, j TEXT);" \
		".mode ascii" ".separator \"\t\" \"\n\"" ".import rows.tsv $3"
}
orders() { # FOLDER
	rows "$1" order.placed raw
	sqlite3 db "DROP TABLE IF EXISTS orders; CREATE TABLE orders AS SELECT p, o, json_extract(j, '\$.order_id') order_id,
	json_extract(j, '\$.merchant_id') m, json_extract(j, '\$.customer_id') c, json_extract(j, '\$.currency') cur,
	CAST(ROUND(json_extract(j, '\$.amount') * 100) AS INT) cents, json_extract(j, '\$.ts') ts FROM raw;"
}
# agrees NAME WANT: the rows of table `got` (columns as given by its query) against an independent query
agrees() {
	local missing extra n
	n=$(sqlite3 db "SELECT COUNT(*) FROM ($2);")
	missing=$(sqlite3 db "SELECT COUNT(*) FROM (SELECT * FROM ($2) EXCEPT SELECT * FROM got);")
	extra=$(sqlite3 db "SELECT COUNT(*) FROM (SELECT * FROM got EXCEPT SELECT * FROM ($2));")
	if [ "$missing $extra" = "0 0" ] && [ "$(sqlite3 db 'SELECT COUNT(*) FROM got;')" = "$n" ] && [ "$n" -gt 0 ]; then
		ok "$1: $n rows"
	else
		not_ok "$1: $missing of $n rows missing, $extra others"
		sqlite3 db "SELECT 'want', * FROM (SELECT * FROM ($2) EXCEPT SELECT * FROM got) LIMIT 2;
			SELECT 'got ', * FROM (SELECT * FROM got EXCEPT SELECT * FROM ($2)) LIMIT 2;" | sed 's/^/    /'
	fi
}
got() { # QUERY over `out`
	rows out out out
	sqlite3 db "DROP TABLE IF EXISTS got; CREATE TABLE got AS $1;"
}
source_table() {
	cat <<-'SQL'
		CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING,
		  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
		WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');
	SQL
}
# run_all FOLDER: job.sql with 1, 2 and 4 workers: one digest
run_all() {
	local first="" next workers
	for workers in 1 2 4; do
		rm -rf out
		"$weir" run job.sql --define "in=$1" --define out=out --workers $workers 2>said || {
			not_ok "$2: $(tail -n 3 said)"
			return 1
		}
		next=$("$weir" dump out out --digest)
		[ -z "$first" ] || [ "$next" = "$first" ] || not_ok "$2: $workers workers give other bytes"
		first=$next
	done
	grep -q ' 0 late, 0 rejected' said || not_ok "$2: $(cat said)"
}
j() { echo "json_extract(j, '\$.$1')"; }
cents() { echo "CAST(ROUND(json_extract(j, '\$.$1') * 100) AS INT)"; }
millionths() { echo "CAST(ROUND(json_extract(j, '\$.$1') * 1000000) AS INT)"; }
start_ms() { echo "CAST(strftime('%s', json_extract(j, '\$.$1')) AS INT) * 1000"; }

# ---- aggregates of every kind ----
orders in
aggregates() { # EMIT KEY
	source_table
	cat <<-SQL
		CREATE TABLE o (ws TIMESTAMP(3), m STRING, n BIGINT, total DECIMAL(38,2), mean DECIMAL(38,6), least DECIMAL(12,2), most DECIMAL(12,2),
		  customers BIGINT, first_id STRING, last_id STRING, eur BIGINT, big DECIMAL(38,2), most_id STRING, avg_len BIGINT)
		WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'out', 'format' = 'json', $2);
		INSERT INTO o SELECT window_start, merchant_id, COUNT(*), SUM(amount), AVG(amount), MIN(amount), MAX(amount), COUNT(DISTINCT customer_id),
		  FIRST_VALUE(order_id), LAST_VALUE(order_id), COUNT(*) FILTER (WHERE currency = 'EUR'),
		  SUM(CASE WHEN amount >= 500 THEN amount ELSE 0 END), MAX(order_id), AVG(CHAR_LENGTH(customer_id) * 100 + ts / 1000 - ts / 1000)
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id
		HAVING COUNT(*) >= 25 AND SUM(amount) > 1000 $1;
	SQL
}
aggregate_columns="$(start_ms ws) ws, $(j m) m, $(j n) n, $(cents total) total, $(millionths mean) mean, $(cents least) least, $(cents most) most,
	$(j customers) customers, $(j first_id) f, $(j last_id) l, $(j eur) eur, $(cents big) big, $(j most_id) mi, $(j avg_len) al"
aggregate_want="SELECT ts / 60000 * 60000 ws, m, COUNT(*) n, SUM(cents) total, (SUM(cents) * 10000 * 2 + COUNT(*)) / (2 * COUNT(*)) mean,
	MIN(cents) least, MAX(cents) most, COUNT(DISTINCT c) customers,
	(SELECT order_id FROM orders b WHERE b.m = a.m AND b.ts / 60000 = a.ts / 60000 ORDER BY o LIMIT 1) f,
	(SELECT order_id FROM orders b WHERE b.m = a.m AND b.ts / 60000 = a.ts / 60000 ORDER BY o DESC LIMIT 1) l,
	SUM(cur = 'EUR') eur, SUM(CASE WHEN cents >= 50000 THEN cents ELSE 0 END) big, MAX(order_id) mi, SUM(LENGTH(c) * 100) / COUNT(*) al
	FROM orders a GROUP BY ts / 60000, m HAVING COUNT(*) >= 25 AND SUM(cents) > 100000"
sqlite3 db "CREATE INDEX by_m ON orders (m, ts);"
aggregates "" "'key.format' = 'raw', 'key.fields' = 'm'" >job.sql
run_all in "FINAL"
got "SELECT $aggregate_columns FROM out"
agrees "aggregates, EMIT FINAL" "$aggregate_want"
aggregates "EMIT CHANGES" "'key.format' = 'json', 'key.fields' = 'm;ws'" >job.sql
run_all in "CHANGES"
got "SELECT $aggregate_columns FROM out a WHERE j <> 'null' AND o = (SELECT MAX(o) FROM out b WHERE b.p = a.p AND b.k = a.k)"
agrees "aggregates, the last value of each key under EMIT CHANGES" "$aggregate_want"

# ---- rows: strings, numbers, times, three-valued logic ----
{
	source_table
	cat <<-'SQL'
		CREATE TABLE o (id STRING, a STRING, b STRING, c STRING, d BIGINT, e STRING, f BIGINT, g DECIMAL(12,2), h DECIMAL(20,1), i BIGINT, jj STRING,
		  k STRING, l STRING, m BOOLEAN, n STRING, q BIGINT, r STRING, s BIGINT, t STRING, u STRING, v DECIMAL(30,2), w STRING, x BIGINT, y STRING, z DATE)
		WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json');
		INSERT INTO o SELECT order_id, UPPER(merchant_id), SUBSTRING(customer_id, 3), REPLACE(order_id, '0', ''), CHAR_LENGTH(order_id),
		  merchant_id || '/' || currency, POSITION('9' IN customer_id), ABS(amount - 100), ROUND(amount, 1), CAST(FLOOR(amount) AS BIGINT),
		  TRIM(BOTH '0' FROM SUBSTRING(order_id FROM 3)), LPAD(CAST(MOD(ts, 1000) AS STRING), 5, '*'),
		  CASE WHEN amount < 50 THEN 'low' WHEN amount BETWEEN 50 AND 500 THEN 'mid' ELSE 'high' END,
		  merchant_id LIKE 'm-%1' OR currency IN ('USD', 'GBP'), COALESCE(NULLIF(currency, 'EUR'), 'euro'), ts / 7 - MOD(ts, 7),
		  DATE_FORMAT(event_time, 'yyyy-MM-dd HH:mm:ss'), EXTRACT(HOUR FROM event_time) * 100 + EXTRACT(MINUTE FROM event_time),
		  CAST(amount AS STRING), LOWER(UPPER(SUBSTRING(order_id, 1, 4))), amount * 3 + 0.01, REVERSE(customer_id), CAST(CEIL(amount) AS BIGINT),
		  SPLIT_INDEX(order_id, '-', 1), CAST(event_time AS DATE)
		FROM orders WHERE NOT (amount > 1900) AND (currency <> 'GBP' OR MOD(ts, 2) = 0 OR NULLIF(currency, 'GBP') IS NULL AND amount > 10);
	SQL
} >job.sql
run_all in "rows"
got "SELECT $(j id), $(j a), $(j b), $(j c), $(j d), $(j e), $(j f), $(cents g), CAST(ROUND($(j h) * 10) AS INT), $(j i), $(j jj), $(j k), $(j l), $(j m), $(j n),
	$(j q), $(j r), $(j s), $(j t), $(j u), $(cents v), $(j w), $(j x), $(j y), $(j z) FROM out"
agrees "rows of scalar functions" "SELECT order_id, UPPER(m), SUBSTR(c, 3), REPLACE(order_id, '0', ''), LENGTH(order_id), m || '/' || cur, INSTR(c, '9'),
	ABS(cents - 10000), (cents + 5) / 10, cents / 100, TRIM(SUBSTR(order_id, 3), '0'), SUBSTR('*****' || (ts % 1000), -5, 5),
	CASE WHEN cents < 5000 THEN 'low' WHEN cents BETWEEN 5000 AND 50000 THEN 'mid' ELSE 'high' END,
	m LIKE 'm-%1' OR cur IN ('USD', 'GBP'), COALESCE(NULLIF(cur, 'EUR'), 'euro'), ts / 7 - ts % 7,
	strftime('%Y-%m-%d %H:%M:%S', ts / 1000, 'unixepoch'), CAST(strftime('%H', ts / 1000, 'unixepoch') AS INT) * 100 + CAST(strftime('%M', ts / 1000, 'unixepoch') AS INT),
	(cents / 100) || '.' || SUBSTR('0' || (cents % 100), -2, 2), LOWER(UPPER(SUBSTR(order_id, 1, 4))), cents * 3 + 1,
	(WITH RECURSIVE r(n, t) AS (SELECT LENGTH(c), '' UNION ALL SELECT n - 1, t || SUBSTR(c, n, 1) FROM r WHERE n > 0) SELECT t FROM r WHERE n = 0),
	(cents + 99) / 100, SUBSTR(order_id, INSTR(order_id, '-') + 1), strftime('%Y-%m-%d', ts / 1000, 'unixepoch')
	FROM orders WHERE NOT (cents > 190000) AND (cur <> 'GBP' OR ts % 2 = 0 OR NULLIF(cur, 'GBP') IS NULL AND cents > 1000)"

# ---- a table: plain GROUP BY over expressions, upserts ----
{
	source_table
	cat <<-'SQL'
		CREATE TABLE o (cur STRING, half BIGINT, n BIGINT, total DECIMAL(38,2), most DECIMAL(12,2), PRIMARY KEY (cur, half) NOT ENFORCED)
		WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json');
		INSERT INTO o SELECT currency, ts / 1000 / 300, COUNT(*), SUM(amount), MAX(amount) FROM orders GROUP BY currency, ts / 1000 / 300 HAVING MAX(amount) < 1990;
	SQL
} >job.sql
run_all in "table"
got "SELECT $(j cur), $(j half), $(j n), $(cents total), $(cents most) FROM out a WHERE j <> 'null' AND o = (SELECT MAX(o) FROM out b WHERE b.p = a.p AND b.k = a.k)"
agrees "a table by two expressions, HAVING deletes" "SELECT cur, ts / 1000 / 300, COUNT(*), SUM(cents), MAX(cents) FROM orders GROUP BY 1, 2 HAVING MAX(cents) < 199000"

# ---- three partitions, out of order: hopping windows, sessions, two stages ----
orders in3
{
	source_table
	cat <<-'SQL'
		CREATE TABLE o (ws TIMESTAMP(3), cur STRING, n BIGINT, total DECIMAL(38,2), least DECIMAL(12,2), most STRING, kinds BIGINT)
		WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'cur');
		INSERT INTO o SELECT window_start, currency, COUNT(*), SUM(amount), MIN(amount), MAX(order_id), COUNT(DISTINCT merchant_id)
		FROM TABLE(HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '20' SECONDS, INTERVAL '1' MINUTE)) WHERE amount > 20
		GROUP BY window_start, window_end, currency;
	SQL
} >job.sql
run_all in3 "hopping"
got "SELECT $(start_ms ws), $(j cur), $(j n), $(cents total), $(cents least), $(j most), $(j kinds) FROM out"
agrees "hopping windows" "SELECT s, cur, COUNT(*), SUM(cents), MIN(cents), MAX(order_id), COUNT(DISTINCT m) FROM
	(SELECT *, ts / 20000 * 20000 - h.h * 20000 s FROM orders, (SELECT 0 h UNION SELECT 1 UNION SELECT 2) h WHERE cents > 2000) GROUP BY s, cur"
for emit in "" "EMIT CHANGES"; do
	{
		source_table
		cat <<-SQL
			CREATE TABLE o (m STRING, ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, total DECIMAL(38,2))
			WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'out', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'm;ws;we');
			INSERT INTO o SELECT merchant_id, window_start, window_end, COUNT(*), SUM(amount)
			FROM TABLE(SESSION(TABLE orders PARTITION BY merchant_id, DESCRIPTOR(event_time), INTERVAL '4' SECONDS))
			GROUP BY window_start, window_end, merchant_id $emit;
		SQL
	} >job.sql
	run_all in3 "sessions $emit"
	got "SELECT $(j m), CAST(ROUND((julianday($(j ws)) - 2440587.5) * 86400000) AS INT), CAST(ROUND((julianday($(j we)) - 2440587.5) * 86400000) AS INT),
		$(j n), $(cents total) FROM out a WHERE j <> 'null' AND o = (SELECT MAX(o) FROM out b WHERE b.p = a.p AND b.k = a.k)"
	agrees "sessions $emit" "SELECT m, MIN(ts), MAX(ts) + 4000, COUNT(*), SUM(cents) FROM
		(SELECT *, SUM(new) OVER (PARTITION BY m ORDER BY ts, rowid ROWS UNBOUNDED PRECEDING) g FROM
		(SELECT rowid, *, ts - LAG(ts, 1, -999999) OVER (PARTITION BY m ORDER BY ts, rowid) > 4000 new FROM orders)) GROUP BY m, g"
done
# Sessions that span keys: of everything, and of each currency; a row for each merchant in them.
for of in "" "PARTITION BY currency"; do
	by=${of#PARTITION BY }
	key="'all'"
	[ -z "$of" ] || key=cur
	{
		source_table
		cat <<-SQL
			CREATE TABLE o (cur STRING, m STRING, ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, total DECIMAL(38,2), customers BIGINT)
			WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = 'out', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'm');
			CREATE VIEW some AS SELECT * FROM orders WHERE amount > 150;
			INSERT INTO o SELECT ${by:-'all'}, merchant_id, window_start, window_end, COUNT(*), SUM(amount), COUNT(DISTINCT customer_id)
			FROM TABLE(SESSION(TABLE some $of, DESCRIPTOR(event_time), INTERVAL '0.4' SECOND))
			GROUP BY window_start, window_end, ${by:+$by,} merchant_id;
		SQL
	} >job.sql
	run_all in3 "sessions that span keys $of"
	got "SELECT $(j cur), $(j m), CAST(ROUND((julianday($(j ws)) - 2440587.5) * 86400000) AS INT), CAST(ROUND((julianday($(j we)) - 2440587.5) * 86400000) AS INT),
		$(j n), $(cents total), $(j customers) FROM out"
	agrees "sessions that span keys $of" "SELECT by, m, MIN(s), MAX(e) + 400, COUNT(*), SUM(cents), COUNT(DISTINCT c) FROM
		(SELECT *, MIN(ts) OVER (PARTITION BY by, g) s, MAX(ts) OVER (PARTITION BY by, g) e FROM
		(SELECT *, SUM(new) OVER (PARTITION BY by ORDER BY ts, o, p ROWS UNBOUNDED PRECEDING) g FROM
		(SELECT *, ts - LAG(ts, 1, -999999) OVER (PARTITION BY by ORDER BY ts, o, p) > 400 new FROM
		(SELECT *, ${key} by FROM orders WHERE cents > 15000)))) GROUP BY by, g, m"
done
{
	source_table
	cat <<-'SQL'
		CREATE VIEW cheap AS SELECT order_id, merchant_id, currency, amount, event_time FROM orders WHERE amount < 300;
		CREATE VIEW dear AS SELECT order_id, merchant_id, currency, amount, event_time FROM orders WHERE amount >= 300;
		CREATE VIEW both_again AS SELECT * FROM cheap UNION ALL SELECT order_id, merchant_id, currency, -amount, event_time FROM dear;
		CREATE VIEW minutes AS SELECT window_start AS minute_start, window_time AS at, merchant_id, currency, SUM(amount) AS total, COUNT(*) AS n
		  FROM TABLE(TUMBLE(TABLE both_again, DESCRIPTOR(event_time), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, window_time, merchant_id, currency;
		CREATE TABLE o (ws TIMESTAMP(3), cur STRING, merchants BIGINT, n BIGINT, total DECIMAL(38,2), best DECIMAL(38,2), minutes BIGINT)
		WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'cur');
		INSERT INTO o SELECT window_start, currency, COUNT(DISTINCT merchant_id), SUM(n), SUM(total), MAX(total), COUNT(DISTINCT minute_start)
		  FROM TABLE(TUMBLE(TABLE minutes, DESCRIPTOR(at), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end, currency;
	SQL
} >job.sql
run_all in3 "two stages"
got "SELECT $(start_ms ws), $(j cur), $(j merchants), $(j n), $(cents total), $(cents best), $(j minutes) FROM out"
agrees "windows over a windowed view over a union, keyed anew" "SELECT minute / 5 * 300000, cur, COUNT(DISTINCT m), SUM(n), SUM(total), MAX(total), COUNT(DISTINCT minute) FROM
	(SELECT ts / 60000 minute, m, cur, SUM(CASE WHEN cents < 30000 THEN cents ELSE -cents END) total, COUNT(*) n FROM orders GROUP BY 1, 2, 3) GROUP BY minute / 5, cur"

[ "$failures" = 0 ]
