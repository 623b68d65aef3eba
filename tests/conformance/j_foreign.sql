-- Foreign keys: rows of a table with the row of another one that they refer to. The result has the referring table's key;
-- a changed row of the other table changes all that refer to it; NULL refers to nothing; deletes of either side count.
CREATE TABLE orders (id STRING, customer STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'orders', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE customers (name STRING, city STRING, PRIMARY KEY (name) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'customers', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE kept (id STRING, amount BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'kept', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE matched (id STRING, amount BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'matched', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE cities (city STRING, total BIGINT, n BIGINT, PRIMARY KEY (city) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'cities', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE cheap (id STRING, amount BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'cheap', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO cheap SELECT o.id, o.amount, c.city FROM customers c RIGHT JOIN orders o ON c.name = o.customer AND o.amount < 100;
INSERT INTO kept SELECT o.id, o.amount, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.name;
INSERT INTO matched SELECT o.id, o.amount, c.city FROM customers c JOIN orders o ON c.name = UPPER(o.customer) AND o.amount < 100;
INSERT INTO cities SELECT c.city, SUM(o.amount), COUNT(*) FROM orders o JOIN customers c ON o.customer = c.name GROUP BY c.city;
