#!/bin/bash
# late_rows.sh: rows of states that come too late for a later stage (joins, windows, sessions, OVER, two branches into one
# stage), beside late and bad records of the sources: late.topic, dead letters and results have the same bytes with 1, 2, 3
# and 4 workers. task.time=max is what makes so many of them late.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

topics="late bad pairs minutes sessions both running"
for kind in orders payments; do
	"$weir" gen $kind --records 30000 --keys 300 --partitions 4 --seed 21 --rate 300 --disorder-ms 3000 --key order_id \
		--bad 0.002 --out "$scratch/rec" -q || exit 1
done
sink() { echo "CREATE TABLE $1 ($2) WITH ('connector' = 'recorded', 'path' = '\${out}', 'topic' = '$1', 'format' = 'json');"; }
{
	sed "s/ - INTERVAL '5' SECOND//" <<<"$(orders_table order_id)"
	sink pairs "m STRING, a STRING, b STRING"
	sink minutes "ws TIMESTAMP(3), m STRING, n BIGINT"
	sink sessions "ws TIMESTAMP(3), m STRING, n BIGINT"
	sink both "ws TIMESTAMP(3), m STRING, n BIGINT"
	sink running "m STRING, n BIGINT"
	cat <<-'SQL'
		CREATE TABLE payments (order_id STRING, ts BIGINT, paid_time AS TO_TIMESTAMP_LTZ(ts, 3),
		  WATERMARK FOR paid_time AS paid_time - INTERVAL '3' SECOND)
		WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payment.settled', 'format' = 'json');
		CREATE VIEW paid AS SELECT orders.order_id, orders.merchant_id, orders.event_time AS at
		FROM orders JOIN payments ON orders.order_id = payments.order_id
		AND payments.paid_time BETWEEN orders.event_time AND orders.event_time + INTERVAL '10' MINUTES;
		CREATE VIEW seconds AS SELECT merchant_id, COUNT(*) AS n, window_time AS at
		FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' SECOND))
		GROUP BY window_start, window_end, window_time, merchant_id;
		CREATE VIEW keyed_twice AS SELECT merchant_id AS m, n, at FROM seconds
		UNION ALL SELECT SUBSTRING(merchant_id, 8), n + 1, at FROM seconds;
		INSERT INTO pairs SELECT paid.merchant_id, paid.order_id, orders.order_id
		FROM paid JOIN orders ON paid.merchant_id = orders.merchant_id
		AND orders.event_time BETWEEN paid.at - INTERVAL '1' SECOND AND paid.at + INTERVAL '1' SECOND;
		INSERT INTO minutes SELECT window_start, merchant_id, COUNT(*)
		FROM TABLE(TUMBLE(TABLE paid, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, merchant_id;
		INSERT INTO sessions SELECT window_start, merchant_id, COUNT(*)
		FROM TABLE(SESSION(TABLE paid PARTITION BY merchant_id, DESCRIPTOR(at), INTERVAL '2' SECONDS))
		GROUP BY window_start, window_end, merchant_id;
		INSERT INTO both SELECT window_start, m, SUM(n)
		FROM TABLE(TUMBLE(TABLE keyed_twice, DESCRIPTOR(at), INTERVAL '2' SECONDS)) GROUP BY window_start, window_end, m;
		INSERT INTO running SELECT merchant_id,
		COUNT(*) OVER (PARTITION BY merchant_id ORDER BY at RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) FROM seconds;
	SQL
} >"$scratch/job.sql"

first=""
for workers in 1 2 3 4; do
	out=$scratch/out
	rm -rf "$out"
	if ! run_job "$scratch/job.sql" "$scratch/rec" "$out" --workers $workers -X task.time=max -X order.point.records=3000 \
		-X late.topic=late -X errors.deadletterqueue.topic.name=bad; then
		not_ok "$workers workers: weir run failed: $(tail -n 3 "$out.said" | tr '\n' ' ')"
		continue
	fi
	sums=$(for topic in $topics; do "$weir" dump "$out" $topic --digest; done)
	if [ -z "$first" ]; then
		first=$sums
		for state in pairs-join-2 minutes-tumble sessions-session both-tumble-2 running-over; do
			fine "rows late for $state" grep -q "\"weir-error-stage\",\"$state\"\],\"key\":null" <("$weir" dump "$out" late)
		done
	elif [ "$sums" = "$first" ]; then
		ok "$workers workers: the same bytes in every topic"
	else
		not_ok "$workers workers: other bytes than with 1: $(diff <(echo "$first") <(echo "$sums") | tr '\n' ' ')"
	fi
done
[ "$failures" = 0 ]
