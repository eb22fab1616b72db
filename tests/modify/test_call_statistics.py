"""compute_partition_stats and compute_table_stats: files as the spec describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.writes.change import Conflict
from icesql.maintain.statistics_files import ThetaSketch


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


def test_fields_have_the_ids_of_the_spec(con: icesql.Connection, tmp_path) -> None:
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


# ------------------------------------------------------------------ compute_table_stats


def test_sketches_are_those_of_java() -> None:
    """From Iceberg 1.12 on Spark 4.1: the longs 0, 3, 10, 12, 13, and the strings a, b."""
    longs, texts = ThetaSketch(), ThetaSketch()
    longs.update(each.to_bytes(8, "little") for each in (12, 0, 10, 3, 13, 3, 0))
    texts.update([b"a", b"b", b""])
    assert longs.to_bytes().hex() == (
        "02030300001acc93050000000000803f23a55b381afd741fe56b61eec8804420"
        "571ec49caf41973aba40b3c1da06695dd82d23774bb9357e"
    )
    assert texts.to_bytes().hex() == (
        "02030300001acc93020000000000803f857f40b689c7e53417c11d528507017b"
    )
    assert (longs.estimate, texts.estimate) == (5, 2)
    assert ThetaSketch().to_bytes().hex() == "01030300001ecc93"


@pytest.mark.parametrize("count", [4096, 4097, 200_000])
def test_many_values_are_estimated(count: int) -> None:
    """Within three standard errors of 4,096 hashes."""
    sketch = ThetaSketch()
    sketch.update(str(each).encode() for each in range(count))
    assert sketch.estimate == count or abs(sketch.estimate / count - 1) < 3 / 64
    data = sketch.to_bytes()
    kept = int.from_bytes(data[8:12], "little")
    assert (kept, len(data)) == (4096, data[0] * 8 + 8 * 4096)
    hashes = [
        int.from_bytes(data[at : at + 8], "little") for at in range(data[0] * 8, len(data), 8)
    ]
    assert hashes == sorted(set(hashes))
    if data[0] == 3:
        assert hashes[-1] < int.from_bytes(data[16:24], "little")


def test_distinct_values_of_live_rows(con: icesql.Connection, tmp_path) -> None:
    con.execute(
        'CREATE TABLE s.t (i INT, l BIGINT, s VARCHAR, d DECIMAL(9, 2), "at" TIMESTAMP, day DATE, '
        "x DOUBLE, ok BOOLEAN, u UUID, b BLOB, st STRUCT<a INT>) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    con.execute(
        "INSERT INTO s.t SELECT i, i // 2, chr(97 + (i % 3)::INT), i / 4, "
        "TIMESTAMP '2026-01-31' + INTERVAL 1 HOUR * (i % 5), DATE '2026-01-31' + (i % 7)::INT, "
        "CASE WHEN i % 2 = 0 THEN NULL ELSE i END, i % 2 = 0, "
        "'00000000-0000-0000-0000-00000000000' || (i % 4), 'x'::BLOB, NULL FROM range(20) r(i)"
    )
    con.execute("DELETE FROM s.t WHERE i >= 10")
    ((path,),) = con.execute("CALL system.compute_table_stats('s.t')").fetchall()
    data = Path(path).read_bytes()
    footer = json.loads(data[-12 - int.from_bytes(data[-12:-8], "little") : -12])
    counts = {each["fields"][0]: each["properties"]["ndv"] for each in footer["blobs"]}
    expected = ["10", "5", "3", "10", "5", "7", "5", "2", "4", "1"]
    assert [counts[each] for each in range(1, 11)] == expected
    blob = footer["blobs"][1]
    stored = data[blob["offset"] : blob["offset"] + blob["length"]]
    sketch = ThetaSketch()
    sketch.update(each.to_bytes(8, "little") for each in range(5))
    assert pa.input_stream(pa.py_buffer(stored), compression="zstd").read() == sketch.to_bytes()
    metadata = json.loads(max((tmp_path / "warehouse/s/t/metadata").glob("v*.json")).read_bytes())
    (told,) = metadata["statistics"]
    assert (told["statistics-path"], told["file-size-in-bytes"]) == (path, len(data))
    assert (
        len(data)
        == told["file-footer-size-in-bytes"] + sum(each["length"] for each in footer["blobs"]) + 4
    )
    con.execute("CALL system.compute_table_stats('s.t', columns => array('s'))")
    for columns, told in (("nope", "not found"), ("st", "distinct values of column st")):
        for explain in ("", "EXPLAIN "):
            with pytest.raises(errors.Error, match=told):
                con.execute(
                    f"{explain}CALL system.compute_table_stats('s.t', columns => array('{columns}'))"
                )
    plan = con.execute("EXPLAIN CALL system.compute_table_stats('s.t')").fetchall()
    assert [row[:2] for row in plan] == [("read", "snapshot"), ("write", "statistics file")]


def test_partitions_of_odd_floats(con: icesql.Connection) -> None:
    """NaN is one partition, -0.0 and 0.0 are two."""
    con.execute("CREATE TABLE s.t (p DOUBLE) PARTITIONED BY (p)")
    for value in ("'NaN'::DOUBLE", "'NaN'::DOUBLE", "-0.0::DOUBLE", "0.0::DOUBLE"):
        con.execute(f"INSERT INTO s.t VALUES ({value})")
    found = {str(row["partition"]["p"]): row["data_file_count"] for row in call(con)}
    assert found == {"nan": 2, "-0.0": 1, "0.0": 1}


@pytest.mark.parametrize("what", ["compute_partition_stats", "compute_table_stats"])
def test_a_failed_commit_leaves_no_statistics(
    con: icesql.Connection, tmp_path, monkeypatch, what: str
) -> None:
    con.execute("CREATE TABLE s.t (p INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('commit.retry.num-retries' = '0')")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(DirectoryCatalog, "swap", lambda *_: Conflict("another was first"))
    with pytest.raises(errors.CommitConflictError):
        con.execute(f"CALL system.{what}('s.t')")
    assert sorted(tmp_path.rglob("*")) == before
