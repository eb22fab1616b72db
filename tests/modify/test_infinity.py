"""Infinite dates and times are DuckDB's: no column of a table can hold one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.errors import DataError

KINDS = {
    "DATE": ("DATE", "DATE"),
    "TIMESTAMP": ("TIMESTAMP", "DATE", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "TIMESTAMPTZ": ("TIMESTAMPTZ", "TIMESTAMP", "DATE"),
    "TIMESTAMP_NS": ("TIMESTAMP_NS", "TIMESTAMP", "DATE"),
}  # fmt: skip
NESTED = {"{}": "{}", "{}[]": "[NULL, {}]", "STRUCT(x {})": "{{'x': {}}}"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_no_statement_stores_infinity(
    con: icesql.Connection, tmp_path: Path, kind: str, sign: str
) -> None:
    for shape, value in NESTED.items():
        column = shape.format(kind)
        con.execute(
            f"CREATE OR REPLACE TABLE s.t (id INT, c {column}) "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        con.execute("INSERT INTO s.t VALUES (1, NULL)")
        for given in KINDS[kind]:
            endless = value.format(f"'{sign}infinity'::{given}")
            for sql in (
                f"INSERT INTO s.t VALUES (2, NULL), (3, {endless})",
                f"INSERT OVERWRITE s.t SELECT 3, {endless}",
                f"UPDATE s.t SET c = {endless} WHERE id = 1",
                f"MERGE INTO s.t USING (SELECT 1 AS id) q ON t.id = q.id "
                f"WHEN MATCHED THEN UPDATE SET c = {endless}",
                f"MERGE INTO s.t USING (SELECT 9 AS id) q ON t.id = q.id "
                f"WHEN NOT MATCHED THEN INSERT VALUES (9, {endless})",
            ):
                with pytest.raises(DataError, match=r'column "c" .*does not fit'):
                    con.execute(sql)
    endless = f"'{sign}infinity'::{kind}"
    for sql in (
        f"CREATE TABLE s.u TBLPROPERTIES ('format-version' = '3') AS SELECT {endless} AS c",
        f"CREATE TABLE s.u (c {kind} DEFAULT {endless}) TBLPROPERTIES ('format-version' = '3')",
        f"ALTER TABLE s.t ADD COLUMN d {kind} DEFAULT {endless}",
    ):
        with pytest.raises(DataError, match="infinity does not fit"):
            con.execute(sql)
    assert con.execute("SELECT * FROM s.t").fetchall() == [(1, None)]
    assert con.execute("SHOW TABLES FROM s").fetchall() == [("s.t",)]


def test_copy_stores_no_infinity(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (c TIMESTAMP)")
    (tmp_path / "x.csv").write_text("c\n2026-01-01\ninfinity\n")
    with pytest.raises(DataError, match="row 2: infinity does not fit"):
        con.execute(f"COPY s.t FROM '{tmp_path}/x.csv'")
    assert con.execute("SELECT * FROM s.t").fetchall() == []


def test_what_others_stored_is_rewritten_as_it_is(con: icesql.Connection, tmp_path: Path) -> None:
    """Engines take these numbers for infinite; to Iceberg they are times like others."""
    con.execute("CREATE TABLE s.t (id INT NOT NULL, ts TIMESTAMP)")
    numbers = pa.array([(1 << 63) - 1, -(1 << 63) + 1, 0], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(
        pa.table({"id": pa.array([1, 2, 3], pa.int32()), "ts": numbers}), tmp_path / "x.parquet"
    )
    con.execute(f"CALL system.add_files('s.t', '`parquet`.`{tmp_path}/x.parquet`')")
    texts = con.execute("SELECT id, ts::VARCHAR FROM s.t ORDER BY id").fetchall()
    for sql in (
        "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
        "CALL system.rewrite_data_files('s.t', strategy => 'sort', sort_order => 'id', "
        "options => map('rewrite-all', 'true'))",
        "UPDATE s.t SET ts = ts WHERE id = 3",
    ):
        con.execute(sql)
        assert con.execute("SELECT id, ts::VARCHAR FROM s.t ORDER BY id").fetchall() == texts
