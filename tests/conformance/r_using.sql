-- USING: the columns that are compared are one, by whatever side has it; a.k and b.k are still there.
CREATE TABLE members (id STRING, team STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'members', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE badges (id STRING, badge STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'badges', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE both (id STRING, team STRING, badge STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'both', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE starred (id STRING, team STRING, badge STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'starred', 'format' = 'json', 'key.format' = 'raw');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO both SELECT id, team, badge FROM members FULL JOIN badges USING (id);
  INSERT INTO starred SELECT * FROM members RIGHT JOIN badges USING (id) WHERE id <> '9' AND (members.id IS NULL OR members.id = badges.id);
END;
