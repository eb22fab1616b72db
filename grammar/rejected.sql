-- Statements that the grammar and the engine's parser both refuse. Each "-- refused:" line is a
-- part of the message of the statement below it.

-- refused: did you mean SELECT?
SELEC 1;
-- refused: nothing follows WHERE
SELECT a FROM t WHERE;
-- refused: nothing follows GROUP BY
SELECT a FROM t GROUP BY ORDER BY a;
-- refused: expected
SELECT a FROM t WHERE a = ;
-- refused: SELECT without a column
SELECT FROM t;
-- refused: nothing follows ON
SELECT * FROM t JOIN u ON;
-- refused: a JOIN without a condition
SELECT * FROM t JOIN u;
-- refused: USING () names no column
SELECT * FROM t JOIN u USING ();
-- refused: nothing follows PARTITION BY
SELECT sum(a) OVER (PARTITION BY) FROM t;
-- refused: nothing follows EXCLUDE
SELECT * EXCLUDE FROM t;
-- refused: unexpected ")"
SELECT (a)) FROM t;
-- refused: unexpected "c"
SELECT a b c FROM t;
-- refused: nothing follows ORDER
SELECT a FROM t ORDER;

-- refused: nothing follows FOR VERSION AS OF
SELECT * FROM t FOR VERSION AS OF;
-- refused: without AS OF
SELECT * FROM t FOR VERSION 3;
-- refused: FOR TIMESTAMP ALL
SELECT * FROM t FOR TIMESTAMP ALL;
-- refused: FOR TIMESTAMP BETWEEN
SELECT * FROM t FOR TIMESTAMP BETWEEN '2026-01-01' AND '2026-01-02';
-- refused: ambiguous timestamp 499162860
SELECT * FROM t TIMESTAMP AS OF 499162860;
-- refused: a parameter in a query that chooses a snapshot
SELECT * FROM t TIMESTAMP AS OF (SELECT max(ts) FROM u WHERE a = ?);
-- refused: is a name; a time to travel to is a constant
SELECT * FROM t TIMESTAMP AS OF ts;
-- refused: two time-travel clauses
SELECT * FROM t VERSION AS OF 1 VERSION AS OF 2;
-- refused: time travel on a subquery
SELECT * FROM (SELECT * FROM t) x FOR VERSION AS OF 3;
-- refused: time travel on range()
SELECT * FROM range(3) VERSION AS OF 3;
-- refused: count one commit more
SELECT * FROM t FOR VERSION BEFORE -1;
-- refused: BEFORE (STATEMENT => …)
SELECT * FROM t BEFORE (STATEMENT => 'x');
-- refused: CHANGES (INFORMATION => ALL)
SELECT * FROM t CHANGES (INFORMATION => ALL) AT (VERSION => 1);
-- refused: AT (STATEMENT => …)
SELECT * FROM t CHANGES (INFORMATION => DEFAULT) AT (STATEMENT => 'x');
-- refused: an optimizer hint
SELECT * FROM t /*+ MAX_EXECUTION_TIME(1000) */;
-- refused: the option streaming of a table
SELECT * FROM t WITH ('streaming' = 'true');

-- refused: a file as a table
SELECT * FROM 'data.parquet';
-- refused: the table function read_csv()
SELECT * FROM read_csv('/etc/passwd');
-- refused: SELECT INTO
SELECT a INTO b FROM t;
-- refused: FOR UPDATE
SELECT a FROM t FOR UPDATE;
-- refused: PIVOT without a list of values
PIVOT t ON a IN (SELECT b FROM u) USING sum(b);
-- refused: POSITIONAL JOIN
SELECT * FROM t POSITIONAL JOIN u;
-- refused: MERGE … RETURNING
MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE RETURNING a;
-- refused: DELETE
WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone;
-- refused: CREATE
CREATE INDEX i ON t (a);
-- refused: unexpected "x"
CREATE TABLE t (a INTEGER x);
-- refused: COPY
COPY t TO '/tmp/t.csv';
-- refused: ATTACH
ATTACH 'x.db';
-- refused: LOAD
LOAD httpfs;
-- refused: PRAGMA
PRAGMA version;
-- refused: INSERT
EXPLAIN INSERT INTO t VALUES (1);
-- refused: EXPLAIN with options of INSERT
EXPLAIN ANALYZE INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1;
-- refused: expected SCHEMA EVOLUTION
INSERT WITH SCHEMA CHANGES INTO t SELECT 1;
-- refused: REPLACE WHERE with SCHEMA EVOLUTION
INSERT WITH SCHEMA EVOLUTION INTO t REPLACE WHERE a = 1 SELECT 1;
-- refused: unexpected "city"
DESCRIBE t city;
-- refused: unexpected "TBLES" after SHOW
SHOW TBLES;
-- refused: nothing is given to threads
SET threads
-- refused: expected BETWEEN
DIFF t;
-- refused: expected AND
DIFF t BETWEEN 12;
-- refused: DIFF SUMMARY takes one table
DIFF SUMMARY t BETWEEN 12 AND 13 WHERE true;
-- refused: nothing follows SET SNAPSHOT TIME
SET SNAPSHOT TIME =;
