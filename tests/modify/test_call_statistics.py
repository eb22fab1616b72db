"""compute_partition_stats: the file that the spec describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import icesql
from icesql import errors


def call(con: icesql.Connection, more: str = "") -> list[dict[str, Any]]:
    ((path,),) = con.execute(f"CALL system.compute_partition_stats('s.t'{more})").fetchall()
    return pq.read_table(path).to_pylist()


@pytest.mark.parametrize("version", [2, 3])
def test_what_each_partition_has(con: icesql.Connection, version: int) -> None:
    con.execute(
        "CREATE TABLE s.t (i INT, p VARCHAR, d DATE) PARTITIONED BY (p, months(d)) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    con.execute("INSERT INTO s.t SELECT i, 'a', DATE '2026-01-31' FROM range(5) r(i)")
    con.execute("INSERT INTO s.t VALUES (7, NULL, DATE '1969-12-31'), (8, 'b', NULL)")
    con.execute("DELETE FROM s.t WHERE i IN (1, 2)")
    con.execute("DELETE FROM s.t WHERE i = 8")
    plan = con.execute("EXPLAIN CALL system.compute_partition_stats('s.t')").fetchall()
    assert [(row[0], row[4]) for row in plan] == [("write", 3)]
    found = call(con)
    places = [
        (row["partition"]["p"], row["partition"]["d_month"], row["data_record_count"],
         row["data_file_count"], row["position_delete_record_count"])
        for row in found
    ]  # fmt: skip
    assert places == [(None, -1, 1, 1, 0), ("a", 672, 5, 1, 2), ("b", None, 0, 0, 0)]
    assert found[1]["position_delete_file_count"] == (1 if version == 2 else 0)
    assert found[1].get("dv_count") == (None if version == 2 else 1)
    assert {row["total_record_count"] for row in found} == {None}
    sizes = con.execute("SELECT sum(file_size_in_bytes) FROM s.t.data_files").fetchall()
    assert sum(row["total_data_file_size_in_bytes"] for row in found) == sizes[0][0]
    history = con.execute("SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at").fetchall()
    ids = [row[0] for row in history]
    assert [row["last_updated_snapshot_id"] for row in found] == [ids[1], ids[2], ids[3]]
    earlier = call(con, f", {ids[0]}")
    assert [row["data_record_count"] for row in earlier] == [5]


def test_fields_have_the_ids_of_the_spec(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i INT, p INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 2)")
    ((path,),) = con.execute("CALL system.compute_partition_stats('s.t')").fetchall()
    schema = pq.read_schema(path)
    ids = [int(schema.field(name).metadata[b"PARQUET:field_id"]) for name in schema.names]
    assert ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    inner = schema.field("partition").type.field(0)
    assert (inner.name, inner.metadata[b"PARQUET:field_id"]) == ("p", b"1000")
    assert [each.nullable for each in schema][:6] == [False] * 5 + [True]
    # It belongs to the table from now on, and to no other snapshot.
    con.execute("INSERT INTO s.t VALUES (3, 4)")
    (counts,) = con.execute(
        "CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 1)"
    ).fetchall()
    assert (counts[5], Path(path).exists()) == (1, False)


def test_several_specs(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT, p INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 2)")
    con.execute("ALTER TABLE s.t ADD PARTITION FIELD bucket(4, i)")
    con.execute("INSERT INTO s.t VALUES (1, 2)")
    found = call(con)
    assert [(row["spec_id"], row["partition"]["p"]) for row in found] == [(0, 2), (1, 2)]
    assert found[0]["partition"]["i_bucket_4"] is None


def test_tables_without_partitions(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    sql = "CALL system.compute_partition_stats('s.t')"
    assert con.execute(sql).fetchall() == []
    con.execute("INSERT INTO s.t VALUES (1)")
    with pytest.raises(errors.ProgrammingError, match="is not partitioned"):
        con.execute(sql)
    with pytest.raises(errors.SnapshotNotFoundError):
        con.execute("CALL system.compute_partition_stats('s.t', 7)")
