-- The statements that the doctor advises do what it promises, in icesql and in Spark.
--@python
import os
from pathlib import Path

fast = "'commit.manifest-merge.enabled' = 'false'"
small = "'write.target-file-size-bytes' = '40000', 'write.parquet.row-group-size-bytes' = '20000'"
for name, columns, properties, rows, count in (
    ("small", "id BIGINT", fast, "range FROM range(9)", 12),
    ("deletes", "id BIGINT", "'write.delete.mode' = 'merge-on-read'", "range + 100 * {} FROM range(100)", 3),
    ("overlap", "\"it's `odd`\" BIGINT, v VARCHAR", small, "hash(range * 31 + {}) % 1000000, md5(range::VARCHAR) FROM range(4000)", 8),
    ("bounds", "id BIGINT, \"v'w\" VARCHAR", "'write.metadata.metrics.column.v''w' = 'none'", "range, 'x' FROM range(9)", 2),
    ("clustering", "id BIGINT, p BIGINT", f"{fast}, 'commit.manifest.target-size-bytes' = '5000'", "range, range FROM range(20)", 12),
    ("old", "id BIGINT", "'history.expire.max-snapshot-age-ms' = '1'", "{}", 8),
    ("many", "id BIGINT", fast, "{}", 105),
    ("orphans", "id BIGINT", fast, "{}", 2),
):
    by = "PARTITIONED BY (p) " if name == "clustering" else ""
    run(f"CREATE TABLE ns.{name} ({columns}) {by}TBLPROPERTIES ({properties})")
    run("; ".join(f"INSERT INTO ns.{name} SELECT {rows.format(number)}" for number in range(count)))
run("DELETE FROM ns.deletes WHERE id % 10 = 3")
kept = next(Path(names["warehouse"], "ns", "orphans").rglob("*.parquet"))
for number in range(3):
    kept.with_name(f"left-{number}.parquet").write_bytes(b"x");

--@each
--@doctor: small files
ns.small;
--@not: answer
--@doctor: deletes
ns.deletes;
--@not: answer
--@doctor: overlap
ns.overlap;
--@doctor: no bounds
ns.bounds;
--@doctor: manifests
ns.small;
--@doctor: manifest clustering
ns.clustering;
--@doctor: old snapshots
ns.old;
--@doctor: many snapshots
ns.many;
--@doctor: orphans
ns.orphans;
