-- Copies of a table are tables for Java, too, and rewrite_table_path lists the same files.
--@for version partitioned: 1 no | 2 no | 2 yes | 3 yes
--@python
from pathlib import Path
from tests.maintain.relocation.test_rewrite_table_path import with_log
from tests.maintain.rewrite.test_run import with_deletes

folder, partitioned = Path(names["warehouse"]).parent, names["partitioned"] == "yes"
table = with_deletes(folder, int(names["version"]), partitioned=partitioned)
with_log(table)
names["metadata"] = str(table.metadata_path);

--@by icesql
CALL system.register_table('ns.t', '{metadata}');
--@let first: SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at LIMIT 1
INSERT INTO ns.t VALUES (901, 'a', 0.5);
DELETE FROM ns.t WHERE id IN (901, 11);
CALL system.rewrite_table_path(table => 'ns.t', source_prefix => '{warehouse}/ns/t', target_prefix => '/to/another/place', staging_location => '{warehouse}/staging');
--@by icesql
ALTER TABLE ns.t CREATE TAG first AS OF VERSION {first};
--@python
import shutil
from pathlib import Path

place = Path(names["warehouse"], "ns")
copied = run(f"CALL system.copy_table(table => 'ns.t', location => '{place}/copied')")
names["copy"] = copied[0]["metadata_location"]
run("DROP TABLE ns.t PURGE")
shutil.rmtree(place / "t", ignore_errors=True);

--@by icesql
CALL system.register_table('ns.t', '{copy}');
SELECT * FROM ns.t VERSION AS OF 'first';
--@let second: SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at LIMIT 1 OFFSET 1
SELECT * FROM ns.t VERSION AS OF {second};
--@let third: SELECT snapshot_id FROM ns.t.snapshots ORDER BY committed_at LIMIT 1 OFFSET 2
SELECT * FROM ns.t VERSION AS OF {third};
INSERT INTO ns.t VALUES (7000, 'a', 1.0);
DELETE FROM ns.t WHERE id = 7000;
--@answer: 0 1
CALL system.rewrite_data_files('ns.t');
CALL system.expire_snapshots(table => 'ns.t', older_than => now());
