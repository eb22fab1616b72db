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


def test_columns_by_position_name_and_default(con: icesql.Connection) -> None:
    con.execute(
        "CREATE TABLE s.t (a INT NOT NULL, b VARCHAR DEFAULT 'none', c DATE) "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 'x', DATE '2026-01-01')")
    con.execute("INSERT INTO s.t (c, A) VALUES ('2026-01-02', 2)")
    con.execute("INSERT INTO s.t BY NAME SELECT NULL AS b, 3 AS a")
    assert rows(con, "SELECT * FROM s.t ORDER BY a") == [
        (1, "x", date(2026, 1, 1)), (2, "none", date(2026, 1, 2)), (3, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("INSERT INTO s.t VALUES (1)", "ProgrammingError", "the query gives 1 column, and s.t has 3"),
        ("INSERT INTO s.t (a) VALUES (1, 2)", "ProgrammingError", "2 columns, and the column list has 1"),
        ("INSERT INTO s.t (a, a) VALUES (1, 2)", "ProgrammingError", '"a" is given twice'),
        ("INSERT INTO s.t (b) VALUES ('x')", "IntegrityError", '"a" is required'),
        ("INSERT INTO s.t (a) VALUES (1), (NULL)", "IntegrityError", 'NULL in required column "a", row 2'),
        ("INSERT INTO s.t (a, p) VALUES (1, 1.234)", "DataError", r'"p" \(decimal\(4, 2\)\), row 1: 1.234'),
        ("INSERT INTO s.t (a) SELECT 5000000000", "DataError", r'"a" \(int\), row 1: 5000000000'),
        ("INSERT INTO s.t (a) VALUES ('1')", "TypeMismatchError", '"a"'),
        ("INSERT INTO s.t (a, b) VALUES (1, 2)", "DataError", '"b"'),
        ("INSERT INTO s.t (a, z) VALUES (1, 2)", "ColumnNotFoundError", '"z" not found'),
        ("INSERT INTO s.t BY NAME SELECT 1 AS a, 2 AS bb", "ColumnNotFoundError", 'did you mean "b"'),
        ("INSERT INTO s.nix VALUES (1)", "TableNotFoundError", "line 1, column 13"),
        ("INSERT INTO s.t (a) SELECT x FROM s.t", "ColumnNotFoundError", "line 1, column 28"),
        ("INSERT INTO s.t (a) SELECT ('x' || i)::INT FROM range(3) r(i)", "Error", "x"),
    ],
)  # fmt: skip
def test_what_does_not_fit_changes_nothing(
    lasting: tuple[icesql.Connection, Path], sql: str, kind: str, message: str
) -> None:
    con, warehouse = lasting
    con.execute("CREATE TABLE IF NOT EXISTS s.t (a INT NOT NULL, b VARCHAR, p DECIMAL(4, 2))")
    before = sorted(each for each in warehouse.rglob("*") if each.is_file())
    with pytest.raises(getattr(errors, kind), match=message):
        con.execute(sql)
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(0,)]
    assert sorted(each for each in warehouse.rglob("*") if each.is_file()) == before


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


def test_a_table_into_itself(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT)")
    con.execute("INSERT INTO s.t VALUES (1), (2)")
    con.execute("INSERT INTO s.t SELECT a + 10 FROM s.t")
    assert rows(con, "SELECT a FROM s.t ORDER BY a") == [(1,), (2,), (11,), (12,)]
    assert rows(con, "SELECT a FROM s.t FOR VERSION AS OF 'main' WHERE a > 5 ORDER BY a") == [
        (11,),
        (12,),
    ]


def test_use_and_branches(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT)")
    con.execute("USE s")
    con.execute("INSERT INTO t VALUES (1)")
    con.execute("ALTER TABLE t CREATE BRANCH audit")
    con.execute("INSERT INTO s.t.branch_audit VALUES (2)")
    assert rows(con, "SELECT a FROM t") == [(1,)]
    assert rows(con, "SELECT a FROM t FOR VERSION AS OF 'audit' ORDER BY a") == [(1,), (2,)]


def test_times_of_the_session(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (tz TIMESTAMPTZ)")
    con.execute("SET timezone = 'Europe/Berlin'")
    con.execute("INSERT INTO s.t SELECT TIMESTAMP '2026-01-01 12:00:00'")
    con.execute("SET timezone = 'UTC'")
    assert rows(con, "SELECT * FROM s.t") == [(datetime(2026, 1, 1, 11, tzinfo=UTC),)]


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


def test_pruning_loses_no_row_that_was_written(con: icesql.Connection) -> None:
    """Bounds, counts and partitions of what icesql writes, judged by the answers they give."""
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR, d DOUBLE, p DECIMAL(20, 3), ts TIMESTAMP, x BLOB) "
        "PARTITIONED BY (bucket(2, i), truncate(1, s), years(ts)) "
        "TBLPROPERTIES ('write.metadata.metrics.default' = 'truncate(3)')"
    )
    con.execute(
        """INSERT INTO s.t SELECT CASE WHEN i % 7 = 0 THEN NULL ELSE i - 50 END,
           CASE WHEN i % 5 = 0 THEN NULL WHEN i % 11 = 0 THEN '' ELSE chr(97 + (i % 4)::INT) || 'ÿÿÿÿ' || i END,
           CASE WHEN i % 6 = 0 THEN 'nan'::DOUBLE WHEN i % 9 = 0 THEN -0.0 ELSE i / 3.0 END,
           (i - 100) * 1000.125, TIMESTAMP '1969-11-30 12:00:00' + to_days(i::INT),
           CASE WHEN i % 4 = 0 THEN '\\xFF\\xFF\\xFF\\xFF'::BLOB ELSE encode(i::VARCHAR) END
           FROM range(150) r(i)"""
    )
    con.execute("CREATE TABLE s.all_in_one AS SELECT * FROM s.t")
    conditions = [
        "i = 5", "i < -40", "i IS NULL", "i IN (1, 2, 249)", "s = ''", "s >= 'ÿ'", "s LIKE 'aÿ%'",
        "s > 'z'", "s IS NULL", "d = 0", "d > 90", "d = 'nan'", "isnan(d)", "d < 0.5", "NOT d > 5",
        "p < -90000", "p = -100012.5", "ts < TIMESTAMP '1970-01-01'", "ts = TIMESTAMP '1970-02-03 12:00:00'",
        "x = '\\xFF\\xFF\\xFF\\xFF'::BLOB", "x > '\\xFF'::BLOB", "x < '1'::BLOB", "i + 0 = 5",
    ]  # fmt: skip
    # FILTER is never pushed: all rows are read for it.
    counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in conditions)
    (whole,) = con.execute(f"SELECT {counts} FROM s.all_in_one").fetchall()
    for condition, count in zip(conditions, whole, strict=True):
        for table, reader in (("s.t", "arrow"), ("s.t", "auto"), ("s.all_in_one", "auto")):
            con.execute(f"SET local_reader = '{reader}'")
            pruned = con.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchall()
            assert pruned == [(count,)], condition


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
