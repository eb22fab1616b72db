"""INSERT, COPY … FROM and executemany: rows go in, and every reader gives them back."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change

ALL = (
    "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, p DECIMAL(9, 2), q DECIMAL(38, 6), day DATE, "
    "t TIME, ts TIMESTAMP, tz TIMESTAMPTZ, s VARCHAR, u UUID, x BLOB, fx FIXED(2), "
    "st STRUCT<a INT, b VARCHAR>, li INT[], m MAP<VARCHAR, BIGINT>"
)
ROW = (
    "true, 1, 2, 1.5, 2.5, 1.25, 123456789012345678901234567890.123456, DATE '2026-01-31', "
    "TIME '01:02:03', TIMESTAMP '2026-01-31 01:02:03.000004', "
    "TIMESTAMPTZ '2026-01-31 01:02:03+00', 'é', '00000000-0000-0000-0000-000000000001'::UUID, "
    "'\\x00\\xFF'::BLOB, 'ab'::BLOB, {'a': 1, 'b': 'x'}, [1, NULL], MAP {'k': 7}"
)
VALUES = (
    True, 1, 2, 1.5, 2.5, Decimal("1.25"), Decimal("123456789012345678901234567890.123456"),
    date(2026, 1, 31), time(1, 2, 3), datetime(2026, 1, 31, 1, 2, 3, 4),
    datetime(2026, 1, 31, 1, 2, 3, tzinfo=UTC), "é", UUID(int=1), b"\x00\xff", b"ab",
    {"a": 1, "b": "x"}, [1, None], [("k", 7)],
)  # fmt: skip


def rows(con: icesql.Connection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query by both local readers, which agree."""
    con.execute("SET local_reader = 'arrow'")
    by_arrow = con.execute(sql).fetchall()
    con.execute("SET local_reader = 'auto'")
    found = con.execute(sql).fetchall()
    assert repr(found) == repr(by_arrow)
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_values_of_all_types(con: icesql.Connection, version: int) -> None:
    con.execute(f"CREATE TABLE s.t ({ALL}) TBLPROPERTIES ('format-version' = '{version}')")
    done = con.execute(f"INSERT INTO s.t VALUES ({ROW}), ({', '.join(['NULL'] * 18)})")
    assert done.rowcount == 2
    assert rows(con, "SELECT * FROM s.t ORDER BY i") == [VALUES, (None,) * 18]


@pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
def test_what_a_statement_tells(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT) PARTITIONED BY (bucket(2, i))")
    cursor = con.execute("INSERT INTO s.t SELECT i FROM range(100) r(i)")
    ((count, files, size, snapshot),) = cursor.fetchall()
    assert (cursor.rowcount, count, files) == (100, 100, 2)
    found = con.execute(
        "SELECT snapshot_id, operation, summary['engine-name'], summary['total-records'] FROM s.t.snapshots"
    ).fetchall()
    assert found == [(snapshot, "append", "icesql", "100")]
    ((total,),) = con.execute("SELECT sum(file_size_in_bytes) FROM s.t.files").fetchall()
    assert total == size
    assert cursor.message.startswith("2 files, 100 rows, ")
    assert cursor.message.endswith(f", snapshot {snapshot}")
    nothing = con.execute("INSERT INTO s.t SELECT i FROM s.t WHERE i > 1000")
    assert (nothing.rowcount, nothing.message) == (0, "0 rows, nothing to commit")
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(1,)]


def test_parameters(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT, b VARCHAR)")
    con.execute("INSERT INTO s.t VALUES (?, ?)", [1, "x'); DROP TABLE s.t; --"])
    con.execute("INSERT INTO s.t (b, a) SELECT :b, :a", {"a": 2, "b": None})
    assert rows(con, "SELECT * FROM s.t ORDER BY a") == [(1, "x'); DROP TABLE s.t; --"), (2, None)]


def test_executemany_is_one_commit(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT, b DECIMAL(9, 1), c VARCHAR)")
    cursor = con.cursor()
    sets = [(each, Decimal(each) / 2, None if each % 2 else f"n{each}") for each in range(20)]
    cursor.executemany("INSERT INTO s.t VALUES (?, ?, ?)", sets)
    assert cursor.rowcount == 20
    assert rows(con, "SELECT * FROM s.t ORDER BY a") == sets
    with pytest.raises(errors.DataError, match='"a"'):
        cursor.executemany("INSERT INTO s.t (a) VALUES (?)", [[1], [2**40]])
    cursor.executemany("INSERT INTO s.t (c, a) VALUES (:c, :a)", [{"a": 1, "c": "y"}])
    cursor.executemany("INSERT INTO s.t VALUES (?, ?, ?)", [])
    assert cursor.rowcount == 0
    for sql in ("SELECT ?", "CREATE TABLE s.u AS SELECT ?"):
        with pytest.raises(errors.NotSupportedError):
            cursor.executemany(sql, [[1]])
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(2,)]


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_copy_from(con: icesql.Connection, tmp_path: Path, form: str) -> None:
    con.execute("CREATE TABLE s.t (a BIGINT, s VARCHAR, d DATE, p DECIMAL(6, 2))")
    file = tmp_path / f"x.{form}"
    with icesql.connect(copy_to=str(tmp_path)) as other:
        other.execute(
            "COPY (SELECT 1::BIGINT AS a, '007' AS s, DATE '2026-01-01' AS d, 1.50::DECIMAL(6,2) AS p "
            f"UNION ALL SELECT 2, NULL, NULL, NULL) TO '{file}'"
        )
    assert con.execute(f"COPY s.t FROM '{file}'").rowcount == 2
    assert rows(con, "SELECT * FROM s.t ORDER BY a") == [
        (1, "007", date(2026, 1, 1), Decimal("1.50")), (2, None, None, None),
    ]  # fmt: skip


def test_copy_from_with_odd_names_and_options(con: icesql.Connection, tmp_path: Path) -> None:
    names = '"a\'b", "c: ""d"""'
    con.execute(f"CREATE TABLE s.t ({names.replace(', ', ' INT, ')} VARCHAR, e INT)")
    (tmp_path / "x.csv").write_text("1;'x;y'\nnix;z\n")
    options = "DELIMITER ';', HEADER false, QUOTE '''', NULL 'nix'"
    con.execute(f"COPY s.t ({names}) FROM '{tmp_path}/x.csv' ({options})")
    assert rows(con, "SELECT * FROM s.t ORDER BY 2") == [(1, "x;y", None), (None, "z", None)]
    (tmp_path / "bad.csv").write_text("a,b,c\n1,x,y\n")
    with pytest.raises(errors.Error):
        con.execute(f"COPY s.t FROM '{tmp_path}/bad.csv'")
    assert rows(con, "SELECT count(*) FROM s.t") == [(2,)]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_the_same(
    con: icesql.Connection, catalog: dict[str, Any], version: int
) -> None:
    from pyiceberg.table import StaticTable

    con.execute(
        f"CREATE TABLE s.t ({ALL}) PARTITIONED BY (days(ts), bucket(4, l), truncate(1, s), p) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    con.execute(f"INSERT INTO s.t VALUES ({ROW})")
    con.execute("INSERT INTO s.t (i, s) VALUES (7, 'zebra'), (8, NULL)")
    location = table_to_change(con._session.state.names, ("s", "t"))[1].metadata_location
    table = StaticTable.from_metadata(location)
    found = table.scan().to_arrow().sort_by("i").to_pylist()
    assert [each["i"] for each in found] == [1, 7, 8]
    assert tuple(found[0].values())[:13] == (*VALUES[:12], UUID(int=1))
    assert found[0]["st"] == VALUES[15]
    assert found[0]["m"] == VALUES[17]
    assert table.scan(row_filter="s = 'zebra'").to_arrow().num_rows == 1
    assert table.scan(row_filter="l = 2 and ts < '2026-02-01T00:00:00'").to_arrow().num_rows == 1
    assert table.scan(row_filter="p > 1").to_arrow().num_rows == 1


def test_a_table_made_anew_meanwhile_keeps_its_rows(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch: Any
) -> None:
    """In a folder the other table has a first version, too, of the same name."""
    import icesql.modify.insert as module

    con.execute("CREATE TABLE s.t (a INT, b VARCHAR)")
    real = module.write_files

    def meanwhile(*given: Any, **more: Any) -> Any:
        with icesql.connect(**catalog) as other:
            other.execute("DROP TABLE s.t PURGE")
            other.execute("CREATE TABLE s.t AS SELECT 7 AS z")
        return real(*given, **more)

    monkeypatch.setattr(module, "write_files", meanwhile)
    with pytest.raises(errors.CommitConflictError, match="replaced by another one"):
        con.execute("INSERT INTO s.t VALUES (1, 'x')")
    monkeypatch.setattr(module, "write_files", real)
    assert rows(con, "SELECT * FROM s.t") == [(7,)]


@pytest.mark.parametrize("dialect", ["spark", "databricks", "trino", "snowflake"])
def test_copy_in_other_dialects(
    con: icesql.Connection, catalog: dict[str, Any], tmp_path: Path, dialect: str
) -> None:
    """Their functions do not read files, and COPY does where files may be read."""
    con.execute("CREATE TABLE s.t (a INT, b VARCHAR)")
    for name, text in (("x.csv", "a,b\n1,x\n"), ("x.json", '{"b": "y", "a": 2}\n')):
        (tmp_path / name).write_text(text)
        with icesql.connect(**catalog, dialect=dialect, files=str(tmp_path)) as other:
            other.execute(f"COPY s.t FROM '{tmp_path}/{name}'")
        for limited in ({}, {"files": str(tmp_path / "elsewhere")}):
            with (
                icesql.connect(**catalog, dialect=dialect, **limited) as other,
                pytest.raises((errors.AccessDeniedError, errors.UnsupportedSqlError)),
            ):
                other.execute(f"COPY s.t FROM '{tmp_path}/{name}'")
    assert con.execute("SELECT * FROM s.t ORDER BY a").fetchall() == [(1, "x"), (2, "y")]
