SELECT b, count(*), max(ts) FROM m.t GROUP BY b ORDER BY b
SELECT * FROM m.t VERSION AS OF -1 WHERE a < 5
SELECT * FROM m.t CHANGES FROM VERSION -1 TO VERSION 'main'
SELECT * FROM m.t.files
SELECT t.a FROM m.t t JOIN m.t o ON t.a = o.a WHERE o.b = 'p1'
SELECT * FROM read_csv('rows.csv')
EXPLAIN SELECT * FROM m.t WHERE a = 3
EXPLAIN ANALYZE SELECT * FROM m.t WHERE a = 3
EXPLAIN (ENGINE) SELECT * FROM m.t
EXPLAIN (FORMAT html) SELECT * FROM m.t
SUMMARIZE m.t
DESCRIBE m.t
DIFF m.t BETWEEN -1 AND 'main'
SHOW TABLES; SHOW SNAPSHOTS FROM m.t; SHOW CREATE TABLE m.t; SHOW PARTITIONS m.t
SHOW FUNCTIONS LIKE 'date%'
COPY (SELECT * FROM m.t) TO 'out.parquet'
COPY (SELECT a, b FROM m.t) TO 'out.csv'; COPY (SELECT a FROM m.t) TO 'out.json'
CREATE TEMP TABLE k AS SELECT * FROM m.t; SELECT count(*) FROM k
CREATE TEMP VIEW k AS SELECT * FROM m.t; SELECT count(*) FROM k
PREPARE p AS SELECT * FROM m.t WHERE a = ?; EXECUTE p(3)
SET local_reader = 'arrow'; SELECT * FROM m.t WHERE a > 3 ORDER BY a
INSERT INTO m.t VALUES (100, 'p0', NULL)
COPY m.t FROM 'rows.csv'
INSERT OVERWRITE m.t SELECT * FROM m.t
UPDATE m.t SET a = a + 1000 WHERE b = 'p2'
DELETE FROM m.t WHERE a = 1002
DELETE FROM m.t WHERE a IN (SELECT a FROM m.t WHERE a > 1050)
MERGE INTO m.t USING (SELECT 3 AS n) o ON t.a = o.n WHEN MATCHED THEN UPDATE SET a = 4 WHEN NOT MATCHED THEN INSERT (a, b) VALUES (n, 'p0')
BEGIN; DELETE FROM m.t WHERE a = 5; INSERT INTO m.t VALUES (5, 'p0', NULL); COMMIT
CREATE TABLE m.u AS SELECT * FROM m.t
CREATE OR REPLACE TABLE m.u (a BIGINT)
ALTER TABLE m.u ADD COLUMN c VARCHAR; ALTER TABLE m.t WRITE ORDERED BY a
ALTER TABLE m.t CREATE BRANCH side
INSERT INTO m.t.branch_side VALUES (7, 'p0', NULL)
TRUNCATE TABLE m.u
DROP TABLE m.u PURGE
EXPLAIN CALL system.rewrite_data_files('m.t', options => map('rewrite-all', 'true'))
CALL system.rewrite_position_delete_files('m.t', options => map('rewrite-all', 'true'))
CALL system.rewrite_data_files('m.t', options => map('rewrite-all', 'true'))
CALL system.rewrite_data_files('m.t', strategy => 'sort', sort_order => 'zorder(a, ts)', options => map('rewrite-all', 'true'))
CALL system.rewrite_manifests('m.t')
CALL system.compute_table_stats('m.t')
CALL system.compute_partition_stats('m.t')
CALL system.expire_snapshots(table => 'm.t', older_than => now())
CALL system.remove_orphan_files(table => 'm.t', dry_run => true)
