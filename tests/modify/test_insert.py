"""INSERT, COPY … FROM and executemany: every reader returns the inserted rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
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
    """The rows of a query by both local readers, which must agree."""
    con.execute("SET local_reader = 'arrow'")
    by_arrow = con.execute(sql).fetchall()
    con.execute("SET local_reader = 'auto'")
    found = con.execute(sql).fetchall()
    assert repr(found) == repr(by_arrow)
    return found


def test_parameters(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT, b VARCHAR)")
    con.execute("INSERT INTO s.t VALUES (?, ?)", [1, "x'); DROP TABLE s.t; --"])
    con.execute("INSERT INTO s.t (b, a) SELECT :b, :a", {"a": 2, "b": None})
    assert rows(con, "SELECT * FROM s.t ORDER BY a") == [(1, "x'); DROP TABLE s.t; --"), (2, None)]


@pytest.mark.parametrize(
    "limits",
    [
        {"read_only": True}, {"service": True}, {"confine": True}, {"locked": True},
        {"tables_by_path": False}, {"catalogs": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_limited_connection_inserts_no_sets(
    con: icesql.Connection, catalog: dict[str, Any], limits: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (a INT)")
    with (
        icesql.connect(**catalog, **limits) as other,
        pytest.raises(errors.AccessDeniedError, match="only reads"),
    ):
        other.cursor().executemany("INSERT INTO s.t VALUES (?)", [[1]])


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
    for sql, message in (
        ("SELECT ?", "takes one INSERT"),
        ("CREATE TABLE s.u AS SELECT ?", "takes one INSERT"),
        ("INSERT INTO s.t VALUES (?, DEFAULT, NULL)", "leave the column out"),
        ("INSERT WITH SCHEMA EVOLUTION INTO s.t (a, n) VALUES (?, 2)", "SCHEMA EVOLUTION with several"),
    ):  # fmt: skip
        with pytest.raises(errors.NotSupportedError, match=message):
            cursor.executemany(sql, [[1]])
    assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchall() == [(2,)]


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
