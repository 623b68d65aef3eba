-- IN and EXISTS in WHERE, and their negations: rows of a stream as the table stands at their turn, rows of a table while they have a
-- match, or none.
CREATE TABLE orders (id STRING, customer STRING, amount INT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE customers (id STRING, status STRING, max_amount INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'customers', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE visits (id STRING, customer STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'visits', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE known (id STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'known', 'format' = 'json');
CREATE TABLE strange (id STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'strange', 'format' = 'json');
CREATE TABLE again (id STRING, customer STRING, amount INT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'again', 'format' = 'json');
CREATE TABLE visited (id STRING, status STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'visited', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE lost (id STRING, customer STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'lost', 'format' = 'json', 'key.format' = 'raw');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO known SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer AND status = 'on' AND amount <= max_amount);
  INSERT INTO strange SELECT id FROM orders WHERE amount > 0 AND NOT EXISTS (SELECT * FROM customers WHERE customers.id = customer);
  INSERT INTO again SELECT * FROM orders WHERE customer IN (SELECT customer FROM visits);
  INSERT INTO visited SELECT id, status FROM customers WHERE id IN (SELECT customer FROM visits WHERE id <> 'v9');
  INSERT INTO lost SELECT id, customer FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = v.customer AND c.status = 'on');
END;
