-- Quotes within quotes, keywords as names, comments, statements that end where they should. /* A ; here, and 'this, end nothing. */
CREATE TABLE events (a STRING, `from` INT, `größe` STRING, `x"y` INT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE literals (c0 STRING, c1 STRING, c2 STRING, c3 STRING, c4 STRING, `we'ird` INT, `a;b` STRING, uni STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'literals', 'format' = 'json'); ;
CREATE TABLE names (`x``y` STRING, `from` INT, `größe` STRING, `select` INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'names', 'format' = 'json');
INSERT INTO literals SELECT '"x"', 'it''s', '''', '\n', '''a.''' AS `x`, 1 AS `we'ird`, 'a;b' /* ; */, 'größe -- no comment' FROM events ; -- don't
INSERT INTO names (`from`, `x``y`, `select`, `größe`) -- columns in another order
SELECT `from`, a AS `x``y`, `x"y`, `größe` FROM events WHERE a <> '/* kept */' AND a <> '--';
