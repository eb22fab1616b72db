-- Manifests that are merged, upgrades, partition values that Avro stores in ways of their own,
-- a transaction, a table without a current snapshot.
--@for version mode: 1 copy-on-write | 2 merge-on-read | 3 merge-on-read
CREATE TABLE ns.t (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES (
'format-version' = '{version}', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',
'commit.manifest.min-count-to-merge' = '3', 'write.metadata.compression-codec' = 'gzip');

INSERT INTO ns.t VALUES (1, 'a'), (2, 'a');
INSERT INTO ns.t VALUES (3, 'é/ =');
INSERT INTO ns.t VALUES (4, NULL);
INSERT INTO ns.t VALUES (5, 'a');
INSERT INTO ns.t VALUES (6, 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'), (7, 'a'), (8, 'a'), (9, 'a');
ALTER TABLE ns.t CREATE BRANCH audit;
INSERT INTO ns.t.branch_audit VALUES (10, 'a');
SELECT count(*) FROM ns.t VERSION AS OF 'audit';
DELETE FROM ns.t WHERE id = 7;
DELETE FROM ns.t WHERE id IN (5, 8);
UPDATE ns.t SET id = 100 WHERE id = 9;
SELECT id FROM ns.t WHERE p = 'é/ =';
SELECT id FROM ns.t WHERE p IS NULL OR id > 99;
--@answer: 0
CALL system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true'));
CALL system.rewrite_manifests('ns.t');
CALL system.expire_snapshots(table => 'ns.t', older_than => now(), retain_last => 1);
DELETE FROM ns.t WHERE p = 'a' AND id > 6;
ALTER TABLE ns.t SET TBLPROPERTIES ('format-version' = '3');
INSERT INTO ns.t VALUES (11, 'b');
UPDATE ns.t SET p = 'b' WHERE id < 4;
CREATE TABLE ns.odd (id BIGINT, dec DECIMAL(20, 3), bin BINARY, day DATE, ts TIMESTAMP, x DOUBLE,
flag BOOLEAN, f FLOAT) USING iceberg PARTITIONED BY (dec, bin, day, ts, x, flag, bucket(4, id))
TBLPROPERTIES ('format-version' = '{version}');
INSERT INTO ns.odd VALUES (34, -12.345, X'8000', DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.999999',
-0.5, true, 0.25);
INSERT INTO ns.odd VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT id FROM ns.odd WHERE bin = X'8000' AND dec < 0 AND x < 0;
DELETE FROM ns.odd WHERE id IS NULL;
INSERT INTO ns.odd SELECT * FROM ns.odd;
CREATE TABLE ns.done (a INT) TBLPROPERTIES ('format-version' = '{version}');
--@by icesql
BEGIN; INSERT INTO ns.done VALUES (1), (2), (3); DELETE FROM ns.done WHERE a = 1; INSERT INTO ns.done VALUES (4); COMMIT;
SELECT count(*) FROM ns.done.history;
INSERT INTO ns.done VALUES (9);
CREATE TABLE ns.empty (a INT);
ALTER TABLE ns.empty CREATE BRANCH audit;
INSERT INTO ns.empty.branch_audit VALUES (1);
SELECT * FROM ns.empty.branch_audit;
