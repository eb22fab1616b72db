-- Every procedure from the same state: the same answers, the same files left.
--@by java
CREATE TABLE ns.t (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES (
'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.wap.enabled' = 'true',
'commit.manifest-merge.enabled' = 'false', 'write.distribution-mode' = 'hash');
--@by java
INSERT INTO ns.t VALUES (0, 'a'), (1, 'b'), (2, 'a'), (3, 'b'), (4, 'a'), (5, 'b');
--@by java
INSERT INTO ns.t VALUES (10, 'a'), (11, 'b'), (12, 'a'), (13, 'b'), (14, 'a'), (15, 'b');
--@by java
INSERT INTO ns.t VALUES (20, 'a'), (21, 'b'), (22, 'a'), (23, 'b'), (24, 'a'), (25, 'b');
--@by java
ALTER TABLE ns.t CREATE TAG v1;
--@by java
DELETE FROM ns.t WHERE id IN (0, 11);
--@by java
DELETE FROM ns.t WHERE id IN (2, 3);
--@by java
CALL system.rewrite_data_files(table => 'ns.t', where => 'p = "a"', options => map('rewrite-all', 'true'));
--@by java
ALTER TABLE ns.t CREATE BRANCH audit;
--@by java
INSERT INTO ns.t.branch_audit VALUES (100, 'c');
--@by java
CREATE TABLE ns.u (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES (
'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.wap.enabled' = 'true',
'commit.manifest-merge.enabled' = 'true', 'write.distribution-mode' = 'hash');
--@by java
INSERT INTO ns.u VALUES (0, 'a'), (1, 'b'), (2, 'a'), (3, 'b'), (4, 'a'), (5, 'b');
--@by java
INSERT INTO ns.u VALUES (10, 'a'), (11, 'b'), (12, 'a'), (13, 'b'), (14, 'a'), (15, 'b');
--@by java
INSERT INTO ns.u VALUES (20, 'a'), (21, 'b'), (22, 'a'), (23, 'b'), (24, 'a'), (25, 'b');
--@by java
ALTER TABLE ns.u CREATE TAG v1;
--@by java
DELETE FROM ns.u WHERE id IN (0, 11);
--@by java
DELETE FROM ns.u WHERE id IN (2, 3);
--@by java
CALL system.rewrite_data_files(table => 'ns.u', where => 'p = "a"', options => map('rewrite-all', 'true'));
--@by java
ALTER TABLE ns.u CREATE BRANCH audit;
--@by java
INSERT INTO ns.u.branch_audit VALUES (100, 'c');
--@by java
ALTER TABLE ns.u ADD COLUMN x INT;
--@by java
ALTER TABLE ns.u ADD PARTITION FIELD bucket(4, id);
--@by java
INSERT INTO ns.u VALUES (200, 'a', 1), (201, 'b', 2);
--@by java
CALL system.compute_table_stats('ns.t');
--@by java
SET spark.wap.id = wap-1; INSERT INTO ns.t VALUES (300, 'd'); RESET spark.wap.id;
--@by java
INSERT INTO ns.t VALUES (301, 'd');
--@by java
CREATE TABLE ns.plain (id BIGINT, name STRING) USING iceberg;
--@python
import pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path

lake = Path(names["warehouse"])
names["source"] = str(lake / "source")
for number, p in enumerate(("a", "b c", "__HIVE_DEFAULT_PARTITION__")):
    (lake / "source" / f"p={p}").mkdir(parents=True)
    pq.write_table(pa.table({"id": [number, number + 900]}), lake / "source" / f"p={p}" / "f.parquet")
for each in ("data/p=zz/x.parquet", "data/_hidden", "metadata/left.avro", "loose", ".dot/x", "data/p=a/é ü.parquet"):
    place = lake / "ns" / "t" / each
    place.parent.mkdir(exist_ok=True)
    place.write_text("x")
names["metadata"] = str(max((lake / "ns" / "t" / "metadata").glob("*.metadata.json")));

--@let first: SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at LIMIT 1
--@let second: SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at LIMIT 1 OFFSET 1
--@let time: SELECT CAST(committed_at AS STRING) FROM ns.t.snapshots ORDER BY committed_at LIMIT 1 OFFSET 2
--@let staged: SELECT snapshot_id FROM ns.t.snapshots WHERE summary['wap.id'] = 'wap-1'
--@each
--@exact
CALL system.ancestors_of('ns.t');
CALL system.ancestors_of('ns.t', {second});
CALL system.rollback_to_snapshot('ns.t', {second});
CALL system.rollback_to_snapshot(table => 'ns.t', snapshot_id => {staged});
CALL system.rollback_to_timestamp('ns.t', TIMESTAMP '{time}');
CALL system.set_current_snapshot('ns.t', {first});
CALL system.set_current_snapshot(table => 'ns.t', ref => 'audit');
CALL system.set_current_snapshot('ns.t', 5);
CALL system.cherrypick_snapshot('ns.t', {staged});
CALL system.cherrypick_snapshot('ns.t', {second});
CALL system.publish_changes('ns.t', 'wap-1');
CALL system.publish_changes('ns.t', 'wap-2');
CALL system.fast_forward('ns.t', 'main', 'audit');
CALL system.fast_forward('ns.t', 'made', 'audit');
CALL system.fast_forward('ns.t', 'audit', 'main');
CALL system.expire_snapshots('ns.t', now(), 1);
CALL system.expire_snapshots(table => 'ns.t', older_than => now(), retain_last => 3);
CALL system.expire_snapshots(table => 'ns.t', older_than => TIMESTAMP '{time}');
CALL system.expire_snapshots(table => 'ns.t', snapshot_ids => array({second}));
CALL system.expire_snapshots(table => 'ns.t', snapshot_ids => array({first}, {second}));
CALL system.expire_snapshots('ns.u', now(), 1, clean_expired_metadata => true);
CALL system.expire_snapshots('ns.u', now(), 2);
CALL system.expire_snapshots('ns.t');
CALL system.remove_orphan_files('ns.t');
CALL system.remove_orphan_files(table => 'ns.t', dry_run => true);
CALL system.remove_orphan_files(table => 'ns.u', older_than => TIMESTAMP '2020-01-01');
CALL system.remove_orphan_files(table => 'ns.t', location => '{warehouse}/ns/t/data');
CALL system.remove_orphan_files(table => 'ns.t', older_than => now());
CALL system.rewrite_manifests('ns.t');
CALL system.rewrite_manifests('ns.u');
CALL system.rewrite_manifests(table => 'ns.u', spec_id => 0);
CALL system.rewrite_manifests(table => 'ns.t', sort_by => array('nope'));
CALL system.register_table('ns.copy', '{metadata}');
CALL system.register_table('ns.t', '{metadata}');
--@answer: 0
--@not: new, properties
CALL system.add_files('ns.t', '`parquet`.`{source}`');
--@answer: 0
--@not: new, properties
CALL system.add_files('ns.t', '`parquet`.`{source}`', map('p', 'b c'));
--@answer: 0
CALL system.add_files('ns.plain', '`parquet`.`{source}/p=a`');
--@answer: 0
CALL system.add_files('ns.plain', '`parquet`.`{source}`');
--@answer: 0 1 2
CALL system.rewrite_position_delete_files('ns.t');
--@answer: 0 1 2
CALL system.rewrite_position_delete_files(table => 'ns.t', options => map('rewrite-all', 'true'));
