"""Parameters become nodes with the same value in DuckDB as in Python."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.context import QueryContext
from icesql.errors import DataError, ProgrammingError
from icesql.query.time_travel import fold_instant
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.time_travel import AtTime, SnapshotId, VersionText
from tests.tables import read_cases

VIENNA_SUMMER = dt.timezone(dt.timedelta(hours=2))


def sql_of(sql: str, parameters: Any) -> str:
    statement = parse(sql, parameters=parameters)[0]
    assert isinstance(statement, Query)
    return str(statement.tree.sql(dialect="duckdb"))


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (None, '"NULL"'),
        (True, "BOOLEAN"),
        (0, "INTEGER"),
        (-7, "INTEGER"),
        (1 << 40, "BIGINT"),
        (-(1 << 63), "BIGINT"),
        (1 << 100, "HUGEINT"),
        (0.1, "DOUBLE"),
        (1e300, "DOUBLE"),
        (float("inf"), "DOUBLE"),
        (Decimal("1.20"), "DECIMAL(3,2)"),
        (Decimal("-0.00001"), "DECIMAL(5,5)"),
        (Decimal("1E+3"), "DECIMAL(4,0)"),
        ("it's \\ \n ä \t; -- x", "VARCHAR"),
        ("", "VARCHAR"),
        (b"\x00\xff'", "BLOB"),
        (dt.date(2026, 1, 31), "DATE"),
        (dt.datetime(2026, 1, 31, 12, 0, 0, 5), "TIMESTAMP"),
        (dt.time(12, 30, 0, 7), "TIME"),
        (dt.timedelta(days=1, microseconds=5), "INTERVAL"),
        (uuid.UUID(int=5), "UUID"),
        ([1, 2, 3], "INTEGER[]"),
        ({"a": 1, "b": "x"}, "STRUCT(a INTEGER, b VARCHAR)"),
    ],
)
def test_a_value_keeps_its_value_and_type(value: Any, type_name: str) -> None:
    connection = duckdb.connect()
    row = connection.execute(f"SELECT x, typeof(x) FROM ({sql_of('SELECT ? AS x', [value])})")
    assert row.fetchone() == (value, type_name)


class Status(str, enum.Enum):  # noqa: UP042 - what a StrEnum is not: str() of it is its name
    OPEN = "open"


class Level(int, enum.Enum):
    HIGH = 3


class Share(float, enum.Enum):
    HALF = 0.5


class OwnText(str):
    def __str__(self) -> str:
        return "no"

    def replace(self, *_: Any) -> str:
        return "no"


class OwnNumber(int):
    def __int__(self) -> int:
        return 0

    __abs__ = __int__

    def __str__(self) -> str:
        return "0"

    __repr__ = __str__


class OwnDouble(float):
    def __float__(self) -> float:
        return 0.0

    def __repr__(self) -> str:
        return "0.0"


class OwnBytes(bytes):
    def __bytes__(self) -> bytes:
        return b"no"

    def hex(self, *_: Any) -> str:
        return "00"


class OwnDate(dt.date):
    def isoformat(self) -> str:
        return "1999-01-01"

    __str__ = isoformat


class OwnTime(dt.time):
    def isoformat(self, *_: Any) -> str:
        return "00:00"


class OwnDatetime(dt.datetime):
    def isoformat(self, *_: Any) -> str:
        return "1999-01-01"

    def timetuple(self) -> Any:
        return dt.date(1999, 1, 1).timetuple()

    def replace(self, *_: Any, **__: Any) -> Any:
        return dt.datetime(1999, 1, 1)


class OwnDecimal(Decimal):
    def __format__(self, *_: Any) -> str:
        return "0"


OF_SUBCLASSES = [
    (Status.OPEN, "open", "VARCHAR"),
    (OwnText("it's"), "it's", "VARCHAR"),
    (Level.HIGH, 3, "INTEGER"),
    (OwnNumber(-7), -7, "INTEGER"),
    (Share.HALF, 0.5, "DOUBLE"),
    (OwnDouble(2.5), 2.5, "DOUBLE"),
    (OwnBytes(b"x"), b"x", "BLOB"),
    (OwnDate(2020, 1, 2), dt.date(2020, 1, 2), "DATE"),
    (OwnTime(1, 2, 3), dt.time(1, 2, 3), "TIME"),
    (OwnDatetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(2020, 1, 2, 3, 4, 5, 6), "TIMESTAMP"),
    (OwnDecimal("1.25"), Decimal("1.25"), "DECIMAL(3,2)"),
]


@pytest.mark.parametrize(("value", "base", "type_name"), OF_SUBCLASSES)
def test_a_value_of_a_subclass_is_that_of_its_base(value: Any, base: Any, type_name: str) -> None:
    run = duckdb.connect().execute
    row = run(f"SELECT x, typeof(x) FROM ({sql_of('SELECT ? AS x', [value])})").fetchone()
    assert row == (base, type_name)
    for sql, plain in [
        ("SELECT ?", [base]),
        ("SELECT ?", {"k": [base]}),
        ("SELECT 1 IN ?", (base, base)),
    ]:
        own = [value] if plain == [base] else (value, value)
        given: Any = {OwnText("k"): [value]} if isinstance(plain, dict) else own
        assert sql_of(sql, [given]) == sql_of(sql, [plain])
    if type(base) is not dt.date:  # long lists of dates are written in another form
        assert sql_of("SELECT 1 IN ?", [[value] * 150]) == sql_of("SELECT 1 IN ?", [[base] * 150])
    assert sql_of("SELECT :a, $a", {"a": value}) == sql_of("SELECT :a, $a", {"a": base})
    assert sql_of("SELECT $1", [value]) == sql_of("SELECT $1", [base])


@pytest.mark.parametrize("dialect", ["", "spark", "trino", "snowflake"])
@pytest.mark.parametrize("prepared", [False, True])
def test_members_of_an_enum_find_and_store_their_values(
    tmp_path: Path, dialect: str, prepared: bool
) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute("CREATE TABLE s.t (status VARCHAR, n INT)")
        opened.cursor().executemany(
            "INSERT INTO s.t VALUES (?, ?)", [(Status.OPEN, Level.HIGH), (OwnText("b"), None)]
        )
        opened.execute("INSERT INTO s.t VALUES (:s, :n)", {"s": Status.OPEN, "n": Level.HIGH})
        opened.execute("UPDATE s.t SET status = ? WHERE n IS NULL", [OwnText("c")])
        found = opened.execute("SELECT status, n FROM s.t ORDER BY ALL").fetchall()
        assert found == [("c", None), ("open", 3), ("open", 3)]
    with icesql.connect(warehouse=str(tmp_path), dialect=dialect or None) as opened:
        for _ in range(4 if prepared else 1):
            if prepared:
                opened.execute("SELECT count(*) FROM s.t WHERE status = ?", ["open"])
            for where, values in [
                ("status = ?", [Status.OPEN]),
                ("status IN (?, ?)", [Status.OPEN, OwnText("x")]),
                ("n = ?", [Level.HIGH]),
            ]:
                count = opened.execute(f"SELECT count(*) FROM s.t WHERE {where}", values)
                assert count.fetchall() == [(2,)], where


def test_nan_and_zoned_times_keep_their_meaning() -> None:
    connection = duckdb.connect()
    nan = connection.execute(sql_of("SELECT isnan(?)", [float("nan")])).fetchone()
    assert nan == (True,)
    moment = dt.datetime(2026, 7, 1, 12, tzinfo=VIENNA_SUMMER)
    found = connection.execute(sql_of("SELECT epoch_us(?)", [moment])).fetchone()
    assert found == (int(moment.timestamp() * 1_000_000),)


@pytest.mark.parametrize(
    ("pattern", "values"), read_cases(__file__, "parameters_as_literals.tsv", 1)
)
def test_a_parameter_means_what_the_literal_means(pattern: str, values: list[Any]) -> None:
    connection = duckdb.connect()
    for value in values:
        written = f"'{value}'" if isinstance(value, str) else str(value)
        expected = connection.sql(pattern.format(written)).fetchall()
        assert connection.sql(sql_of(pattern.format("?"), [value])).fetchall() == expected
        assert connection.sql(sql_of(pattern.format(written), None)).fetchall() == expected


def test_missing_values_of_pandas_and_numpy_are_null(tmp_path: Path) -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    missing = [pandas.NaT, pandas.NA, numpy.datetime64("NaT"), numpy.timedelta64("NaT", "s")]
    missing += [numpy.datetime64("NaT", "ns"), numpy.timedelta64("NaT")]
    for value in missing:
        assert sql_of("SELECT ?, ?", [value, [value]]) == "SELECT NULL, [NULL]"
    frame = pandas.DataFrame({"a": [1, 2], "ts": pandas.to_datetime(["2020-01-01", None])})
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute("CREATE TABLE s.t (a INT, ts TIMESTAMP)")
        opened.cursor().executemany(
            "INSERT INTO s.t VALUES (?, ?)", list(frame.itertuples(index=False))
        )
        found = opened.execute("SELECT a, ts FROM s.t ORDER BY a").fetchall()
    assert found == [(1, dt.datetime(2020, 1, 1)), (2, None)]


def test_times_of_numpy_and_pandas() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    run = duckdb.connect().execute
    for value, expected in [
        (numpy.timedelta64(5, "s"), "INTERVAL 5 SECOND"),
        (numpy.timedelta64(-3, "W"), "INTERVAL (-21) DAY"),
        (numpy.timedelta64(7000, "ns"), "INTERVAL 7 MICROSECOND"),
        (numpy.timedelta64(14, "M"), "INTERVAL 14 MONTH"),
        (numpy.timedelta64(2, "Y"), "INTERVAL 24 MONTH"),
        (pandas.Timedelta("1 day"), "INTERVAL 24 HOUR"),
        (numpy.datetime64("2020-01-02"), "DATE '2020-01-02'"),
        (
            numpy.datetime64("2020-01-02T03:04:05.000006000"),
            "TIMESTAMP '2020-01-02 03:04:05.000006'",
        ),
        (
            numpy.datetime64("1960-01-02T03:04:05.000006007"),
            "TIMESTAMP_NS '1960-01-02 03:04:05.000006007'",
        ),
    ]:
        sql = f"SELECT typeof(a) = typeof(b), a = b FROM ({sql_of('SELECT ? AS a', [value])}), (SELECT {expected} AS b)"
        assert run(sql).fetchone() == (True, True), expected
    for value in [
        numpy.timedelta64(5001, "ns"), pandas.Timedelta(1, "ns"), numpy.datetime64(1, "ps"),
        pandas.Timestamp(numpy.datetime64("20000-01-01", "s")),
        dt.datetime(1, 1, 1, tzinfo=VIENNA_SUMMER),
    ]:  # fmt: skip
        with pytest.raises(DataError):
            sql_of("SELECT ?", [value])


def test_text_cannot_break_out() -> None:
    hostile = "'; DROP TABLE t; --"
    assert sql_of("SELECT ?", [hostile]) == "SELECT '''; DROP TABLE t; --'"


def test_positions_names_and_numbers() -> None:
    assert sql_of("SELECT ?, ?", [1, 2]) == "SELECT 1, 2"
    assert sql_of("SELECT $2, $1", [1, 2]) == "SELECT 2, 1"
    assert sql_of("SELECT :a, (:b), $a", {"a": 1, "b": 2}) == "SELECT 1, 2, 1"
    assert sql_of("SELECT INTERVAL :a DAY", {"a": 1}) == "SELECT INTERVAL 1 DAY"
    assert sql_of("SELECT CASE :a WHEN 1 THEN :b END", {"a": 1, "b": 2}) == (
        "SELECT CASE WHEN 1 = 1 THEN 2 END"
    )


def test_parameters_number_on_through_several_statements() -> None:
    first, second = parse("SELECT ?; SELECT ?", parameters=[1, 2])
    assert isinstance(first, Query)
    assert isinstance(second, Query)
    assert second.tree.sql() == "SELECT 2"


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [
        *read_cases(__file__, "wrong_parameters.tsv", 1),
        ("SELECT ?", [object()], "cannot be a parameter"),
    ],
)
def test_a_wrong_set_of_parameters_is_named(sql: str, parameters: Any, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        parse(sql, parameters=parameters)


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("1E+40"), 1 << 128, dt.time(1, tzinfo=dt.UTC)]
)
def test_a_value_that_sql_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(DataError):
        parse("SELECT ?", parameters=[value])


@pytest.mark.parametrize(
    ("clause", "value", "expected"),
    [
        ("VERSION AS OF ?", 12, SnapshotId(12)),
        ("VERSION AS OF ?", "b-1", VersionText("b-1")),
        ("FOR VERSION AS OF $1", 12, SnapshotId(12)),
        ("AT (VERSION => ?)", 12, SnapshotId(12)),
    ],
)
def test_a_version_can_be_a_parameter(clause: str, value: Any, expected: Any) -> None:
    statement = parse(f"SELECT * FROM t {clause} x", parameters=[value])[0]
    assert isinstance(statement, Query)
    assert statement.references[0].travel == expected


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-31 12:00:00",
        dt.datetime(2026, 1, 31, 12),
        dt.datetime(2026, 1, 31, 14, tzinfo=VIENNA_SUMMER),
    ],
)
def test_an_instant_can_be_a_parameter(value: Any) -> None:
    statement = parse("SELECT * FROM t TIMESTAMP AS OF :at", parameters={"at": value})[0]
    assert isinstance(statement, Query)
    travel = statement.references[0].travel
    assert isinstance(travel, AtTime)
    assert fold_instant(travel, QueryContext()) == 1_769_860_800_000_000


def test_numpy_scalars_are_plain_values() -> None:
    numpy = pytest.importorskip("numpy")
    assert sql_of("SELECT ?, ?", [numpy.int64(5), numpy.bool_(True)]) == "SELECT 5, TRUE"
    assert sql_of("SELECT ?", [numpy.float32(0.5)]) == "SELECT CAST('0.5' AS DOUBLE)"


@pytest.mark.parametrize("values", [["a\ud800"], {"x": "\udfff"}])
def test_half_of_a_character_is_no_value(values: Any) -> None:
    with pytest.raises(DataError, match="lone surrogate"):
        parse("SELECT ?" if isinstance(values, list) else "SELECT :x", parameters=values)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT greatest($1,$2,$1,$2)", "SELECT ($1)*$2/$1", "SELECT $1-$2-- $1,$",
        "SELECT $1-$2, '$1,$2', $$a$1,$b$$, \"$1,$\" FROM (SELECT 1 AS \"$1,$\")",
        "SELECT /* $1,$ */ $1-$2+$1",
    ],
)  # fmt: skip
def test_numbered_parameters_stand_close_together(sql: str) -> None:
    import duckdb

    import icesql

    with icesql.connect() as opened:
        assert opened.execute(sql, [3, 4]).fetchall() == duckdb.execute(sql, [3, 4]).fetchall()
    with icesql.connect() as opened, pytest.raises(icesql.Error, match=r"column 11\)"):
        opened.execute("SELECT $1,nope,$2", [3, 4])
