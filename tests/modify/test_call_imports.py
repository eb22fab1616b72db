"""add_files and register_table: what is there already becomes part of a catalog."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql import errors


def parquet(path: Path, schema: pa.Schema | None = None, **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=2)
    return path


def add(con: icesql.Connection, source: Path, more: str = "") -> list[Any]:
    return con.execute(f"CALL system.add_files('s.t', '`parquet`.`{source}`'{more})").fetchall()


def test_files_without_ids_are_read_by_name(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute(
        "CREATE TABLE s.t (s STRING, i BIGINT, st STRUCT<a BIGINT, b STRING>, l ARRAY<BIGINT>)"
    )
    con.execute("INSERT INTO s.t (s, i) VALUES ('own', 0)")
    parquet(
        tmp_path / "in/x.parquet", i=[1, 2, 3], s=["a", "z" * 40, None],
        other=[1, 2, 3], st=[{"b": "q", "a": 5}, None, {"b": None, "a": 6}], l=[[1], [], None],
    )  # fmt: skip
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (tmp_path / "in" / ".x.parquet.crc").write_text("x")
    plan = con.execute(
        f"EXPLAIN CALL system.add_files('s.t', '`parquet`.`{tmp_path}/in`')"
    ).fetchall()
    assert [row[:2] for row in plan] == [("set", "property"), ("set", "data file")]
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(1,)]
    assert add(con, tmp_path / "in") == [(1, 1)]
    rows = con.execute("SELECT i, s, st, l FROM s.t ORDER BY i").fetchall()
    assert rows == [
        (0, "own", None, None), (1, "a", {"a": 5, "b": "q"}, [1]), (2, "z" * 40, None, []),
        (3, None, {"a": 6, "b": None}, None),
    ]  # fmt: skip
    con.execute("ALTER TABLE s.t RENAME COLUMN i TO k")
    assert con.execute("SELECT k FROM s.t WHERE k > 2").fetchall() == [(3,)]
    found = con.execute(
        "SELECT record_count, value_counts, null_value_counts, split_offsets IS NOT NULL, "
        "readable_metrics.k.lower_bound, readable_metrics.k.upper_bound, "
        "readable_metrics.s.upper_bound FROM s.t.files WHERE record_count = 3"
    ).fetchall()
    assert found[0][0] == 3
    assert found[0][3:] == (True, 1, 3, "z" * 15 + "{")


def test_values_of_folders(con: icesql.Connection, tmp_path: Path) -> None:
    """As Hive and Spark write them."""
    con.execute(
        "CREATE TABLE s.t (i BIGINT, p STRING, d DATE, n INT, m DECIMAL(5, 2), ok BOOLEAN) "
        "PARTITIONED BY (p, d, n, m, ok)"
    )
    null = "__HIVE_DEFAULT_PARTITION__"
    folders = {
        "p=a%2Fb%25/d=2026-01-31/n=-3/m=1.5/ok=true": ("a/b%", date(2026, 1, 31), -3, Decimal("1.50"), True),
        f"p={null}/d={null}/n={null}/m={null}/ok={null}": (None,) * 5,
        "P=é b=c/D=1969-12-31/N=7/M=-2/OK=FALSE": ("é b=c", date(1969, 12, 31), 7, Decimal(-2), False),
    }  # fmt: skip
    for number, folder in enumerate(folders):
        parquet(tmp_path / "in" / folder / "f.parquet", i=[number])
    assert add(con, tmp_path / "in") == [(3, 3)]
    rows = con.execute("SELECT i, p, d, n, m, ok FROM s.t ORDER BY i").fetchall()
    assert rows == [(number, *values) for number, values in enumerate(folders.values())]
    assert con.execute("SELECT i FROM s.t WHERE p = 'a/b%' AND n < 0").fetchall() == [(0,)]


def test_some_partitions(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT, p STRING) PARTITIONED BY (p)")
    for name in "ab":
        parquet(tmp_path / "in" / f"p={name}" / "f.parquet", i=[1])
    assert add(con, tmp_path / "in", ", map('p', 'b')") == [(1, 1)]
    assert con.execute("SELECT p FROM s.t").fetchall() == [("b",)]
    with pytest.raises(errors.ProgrammingError, match=r"are part of .* already"):
        add(con, tmp_path / "in")
    for wrong, told in (("'q', 'b'", "no partition field"), ("'p', 'c'", "no files of these")):
        with pytest.raises(errors.ProgrammingError, match=told):
            add(con, tmp_path / "in", f", map({wrong})")
    assert add(con, tmp_path / "in", ", check_duplicate_files => false") == [(2, 2)]
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(3,)]


def test_times_in_other_units_have_no_bounds(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (ts TIMESTAMP, us TIMESTAMP, d DECIMAL(9, 2), f DOUBLE, x INT)")
    at = datetime(2026, 1, 31, 12)
    schema = pa.schema(
        [("ts", pa.timestamp("ms")), ("us", pa.timestamp("us")), ("d", pa.decimal128(9, 2)),
         ("f", pa.float32()), ("x", pa.int32())]
    )  # fmt: skip
    parquet(tmp_path / "x.parquet", schema, ts=[at], us=[at], d=[Decimal("-1.25")], f=[0.5], x=[-1])
    add(con, tmp_path / "x.parquet")
    for condition in (
        f"ts = TIMESTAMP '{at}'", f"us = TIMESTAMP '{at}'", "d < 0", "d = -1.25", "f = 0.5", "x < 0",
    ):  # fmt: skip
        assert con.execute(f"SELECT count(*) FROM s.t WHERE {condition}").fetchall() == [(1,)]
    (bounds,) = con.execute("SELECT lower_bounds FROM s.t.files").fetchone()
    assert sorted(dict(bounds)) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"i": ["x"]}, "cannot be read as long"), ({"j": [1]}, 'no column "i", which is required'),
        ({"i": [1, None]}, 'column "i" is required, and has NULL'),
    ],
)  # fmt: skip
def test_files_that_do_not_fit(
    con: icesql.Connection, tmp_path: Path, columns: Any, told: str
) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT NOT NULL)")
    path = parquet(tmp_path / "in" / "x.parquet", **columns)
    for explain in ("", "EXPLAIN "):
        with pytest.raises(errors.Error, match=told):
            con.execute(f"{explain}CALL system.add_files('s.t', '`parquet`.`{path}`')")
    assert path.exists()
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(0,)]


def test_files_of_another_table(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (a BIGINT, b BIGINT)")
    con.execute("CREATE TABLE s.u (b BIGINT, a BIGINT)")
    con.execute("INSERT INTO s.u VALUES (1, 2)")
    (path,) = con.execute("SELECT file_path FROM s.u.files").fetchone()
    with pytest.raises(errors.NotSupportedError, match="written for another one"):
        add(con, Path(path))
    con.execute("CREATE TABLE s.v (b BIGINT, a BIGINT, c BIGINT)")
    con.execute(f"CALL system.add_files('s.v', '`parquet`.`{path}`')")
    assert con.execute("SELECT a, b, c FROM s.v").fetchall() == [(2, 1, None)]


def test_folders_that_do_not_fit(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT, n INT) PARTITIONED BY (n)")
    parquet(tmp_path / "plain" / "x.parquet", i=[1])
    parquet(tmp_path / "other" / "q=1" / "x.parquet", i=[1])
    parquet(tmp_path / "text" / "n=one" / "x.parquet", i=[1])
    parquet(tmp_path / "big" / "n=99999999999" / "x.parquet", i=[1])
    (tmp_path / "csv" / "n=1").mkdir(parents=True)
    (tmp_path / "csv" / "n=1" / "x.csv").write_text("i\n1\n")
    (tmp_path / "empty").mkdir()
    for folder, told in (
        ("plain", "lies in no folder n="), ("other", "the table's are: n"), ("text", "is no int"),
        ("big", "is no int"), ("csv", "x.csv"), ("empty", "no files in"), ("none", "no files in"),
    ):  # fmt: skip
        with pytest.raises(errors.Error, match=told):
            add(con, tmp_path / folder)
    con.execute("CREATE OR REPLACE TABLE s.t (i BIGINT, n INT) PARTITIONED BY (bucket(4, n))")
    with pytest.raises(errors.NotSupportedError, match=r"partitioned by bucket\[4\]"):
        add(con, tmp_path / "plain")
    con.execute("CREATE OR REPLACE TABLE s.t (i BIGINT)")
    with pytest.raises(errors.ProgrammingError, match="not partitioned"):
        add(con, tmp_path / "text")
    for source, told in (("s.u", "it can be"), ("`orc`.`/x`", "add_files of orc")):
        with pytest.raises(errors.Error, match=told):
            con.execute(f"CALL system.add_files('s.t', '{source}')")


def test_only_files_that_sql_may_read(catalog: dict[str, Any], tmp_path: Path) -> None:
    path = parquet(tmp_path / "secret" / "x.parquet", i=[1])
    sql = f"CALL system.add_files('s.t', '`parquet`.`{path}`')"
    for files in (False, str(tmp_path / "open")):
        with icesql.connect(**catalog, files=files) as con:
            con.execute("CREATE SCHEMA IF NOT EXISTS s")
            con.execute("CREATE TABLE IF NOT EXISTS s.t (i BIGINT)")
            for each in (sql, sql.replace("secret", "open/../secret"), f"EXPLAIN {sql}"):
                with pytest.raises(errors.AccessDeniedError, match="files"):
                    con.execute(each)
    with icesql.connect(**catalog, tables_by_path=False, read_only=False) as con:
        for each in (
            "CALL system.add_files('s.t', '`parquet`.`s3://bucket/x`')",
            "CALL system.register_table('s.v', '/etc/x.metadata.json')",
        ):
            with pytest.raises(errors.AccessDeniedError, match="tables_by_path"):
                con.execute(each)


def test_a_failed_commit_leaves_the_files(
    con: icesql.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.catalog.directory import DirectoryCatalog

    con.execute("CREATE TABLE s.t (i BIGINT)")
    path = parquet(tmp_path / "x.parquet", i=[1])

    def refuse(*_: Any) -> None:
        raise errors.CatalogError("no")

    monkeypatch.setattr(DirectoryCatalog, "swap", refuse)
    with pytest.raises(errors.CatalogError):
        add(con, path)
    assert path.exists()


def test_added_files_are_no_orphans_and_expire(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t (i BIGINT)")
    path = parquet(tmp_path / "in" / "x.parquet", i=[1])
    add(con, path)
    con.execute("TRUNCATE TABLE s.t")
    con.execute("INSERT INTO s.t VALUES (2)")
    (counts,) = con.execute(
        "CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 1)"
    ).fetchall()
    assert (counts[0], path.exists()) == (1, False)


# ------------------------------------------------------------------ register_table


@pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)
def test_a_metadata_file_gets_a_name(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
    file = max(tmp_path.rglob("*.metadata.json"))
    sql = f"CALL system.register_table('s.v', '{file}')"
    assert con.execute(f"EXPLAIN {sql}").fetchall()[0][:3] == ("set", "table", "s.v")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("SELECT * FROM s.v")
    (head,) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchone()
    assert con.execute(sql).fetchall() == [(head, 1, 1)]
    assert con.execute("SELECT * FROM s.v").fetchall() == [(1,)]
    with pytest.raises(errors.CatalogError, match="already"):
        con.execute(sql)
    with pytest.raises(errors.CatalogError, match="no namespace x"):
        con.execute(sql.replace("s.v", "x.v"))
    with pytest.raises(errors.Error):
        con.execute(f"CALL system.register_table('s.w', '{tmp_path}/none.metadata.json')")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("SELECT * FROM s.w")


def test_folders_register_nothing(con: icesql.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
    file = max(tmp_path.rglob("*.metadata.json"))
    with pytest.raises(errors.NotSupportedError, match="catalog of kind directory"):
        con.execute(f"CALL system.register_table('s.v', '{file}')")
