#!/bin/bash
# two_stage.sh: windows over a windowed view, and over one that is keyed anew: exact, one digest for 1, 2 and 4 workers, and
# nothing late but what the recording marks as late. A minute's window lies inside one five minutes' window, so the second
# stage must give what five minutes over the orders give.
#   tests/integration/two_stage.sh [--full]    --full: 10 million records instead of 500,000
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/integration/lib

records=500000
[ "${1:-}" != --full ] || records=10000000

# two_stage_sql FILE KEY BY: first by (merchant, currency) and minute, then by BY and five minutes
two_stage_sql() {
	{
		orders_table "$2"
		revenue_table "$3" final tumble
		cat <<-SQL
			CREATE VIEW per_minute AS
			SELECT window_time AS minute_time, merchant_id, currency, SUM(amount) AS revenue, COUNT(*) AS orders
			FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1' MINUTE))
			GROUP BY window_start, window_end, window_time, merchant_id, currency;
			INSERT INTO revenue SELECT window_start, window_end, $3, SUM(revenue) AS revenue, SUM(orders) AS orders
			FROM TABLE(TUMBLE(TABLE per_minute, DESCRIPTOR(minute_time), INTERVAL '5' MINUTES))
			GROUP BY window_start, window_end, $3;
		SQL
	} >"$1"
}

for key in merchant_id order_id; do
	make_orders "$scratch/$key" "$key" "$records" || exit 1
	for by in merchant_id currency; do
		two_stage_sql "$scratch/job.sql" "$key" "$by"
		first=""
		for workers in 1 2 4; do
			name="two stages by $by, input by $key, $workers workers"
			out=$scratch/out
			rm -rf "$out"
			if ! run_job "$scratch/job.sql" "$scratch/$key" "$out" --workers "$workers"; then
				not_ok "$name: weir run failed: $(tail -n 3 "$out.said" | tr '\n' ' ')"
				continue
			fi
			sum=$(digest "$out")
			if [ -z "$first" ]; then
				first=$sum
				fine "$name: exact" exact "$scratch/$key" "$out" tumble final "$by"
				fine "$name: counts" counted "$out" "$late_count" "$bad_count"
			elif [ "$sum" = "$first" ]; then
				ok "$name: same bytes"
			else
				not_ok "$name: another digest: $sum, the first was $first"
			fi
		done
	done
done
[ "$failures" = 0 ]
