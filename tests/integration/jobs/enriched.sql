-- Job 5: of each sale's product the version with the latest time up to the sale's; of equal times the one that came last.
-- A version holds until the next one begins. A deleted product (no value) has the time of its record.
CREATE TEMP TABLE version AS SELECT id, t, LEAD(t) OVER (PARTITION BY id ORDER BY t, o) until, name, category
	FROM (SELECT k id, o, ts t, json_extract(j, '$.name') name, json_extract(j, '$.category') category FROM "product.updated");
CREATE INDEX version_id ON version (id, t);
SELECT 'sale.enriched', s.k, s.t, json_object('sale_id', s.k, 'qty', s.qty, 'name', v.name, 'category', v.category)
FROM (SELECT k, json_extract(j, '$.product_id') id, json_extract(j, '$.qty') qty, json_extract(j, '$.ts') t FROM "sale.made") s
	LEFT JOIN version v ON v.id = s.id AND v.t <= s.t AND (v.until IS NULL OR v.until > s.t) ORDER BY s.k;
