"""Every type of DuckDB: its Arrow type and its Python value, alone and inside of others."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import icesql
from icesql import Interval
from tests.writer.fields import fields

ZONE = "Europe/Berlin"
POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
MOST = 10**38 - 1

# (DuckDB's type, a value of it in SQL, its declared name, its Arrow type, its Python value)
TABLE: list[tuple[str, str, str, pa.DataType, Any]] = [
    ("BOOLEAN", "true", "boolean", pa.bool_(), True),
    ("TINYINT", "(-128)::TINYINT", "tinyint", pa.int8(), -128),
    ("SMALLINT", "(-32768)::SMALLINT", "smallint", pa.int16(), -32768),
    ("INTEGER", "2147483647", "integer", pa.int32(), 2147483647),
    ("BIGINT", "9223372036854775807", "bigint", pa.int64(), (1 << 63) - 1),
    ("HUGEINT", f"'{MOST}'::HUGEINT", "hugeint", pa.decimal128(38, 0), MOST),
    ("HUGEINT", f"'-{MOST}'::HUGEINT", "hugeint", pa.decimal128(38, 0), -MOST),
    ("UTINYINT", "255::UTINYINT", "smallint", pa.int16(), 255),
    ("USMALLINT", "65535::USMALLINT", "integer", pa.int32(), 65535),
    ("UINTEGER", "4294967295::UINTEGER", "bigint", pa.int64(), 4294967295),
    ("UBIGINT", "18446744073709551615::UBIGINT", "ubigint", pa.uint64(), (1 << 64) - 1),
    ("UHUGEINT", f"'{MOST}'::UHUGEINT", "hugeint", pa.decimal128(38, 0), MOST),
    ("BIGNUM", f"'{10**50}'::BIGNUM", "varchar", pa.string(), str(10**50)),
    ("FLOAT", "0.5::FLOAT", "float", pa.float32(), 0.5),
    ("DOUBLE", "0.1::DOUBLE", "double", pa.float64(), 0.1),
    ("DECIMAL", "1.50::DECIMAL(9,2)", "decimal(9,2)", pa.decimal128(9, 2), Decimal("1.50")),
    ("DATE", "DATE '2026-01-31'", "date", pa.date32(), dt.date(2026, 1, 31)),
    ("TIME", "TIME '15:30:00.5'", "time", pa.time64("us"), dt.time(15, 30, 0, 500000)),
    ("TIME_NS", "'15:30:00.000007'::TIME_NS", "time_ns", pa.time64("ns"), dt.time(15, 30, 0, 7)),
    ("TIME WITH TIME ZONE", "'15:30:00-02:30'::TIMETZ", "timetz", pa.string(),
     dt.time(15, 30, tzinfo=dt.timezone(-dt.timedelta(hours=2, minutes=30)))),
    ("TIMESTAMP", "TIMESTAMP '2026-01-31 12:00:00.000001'", "timestamp", pa.timestamp("us"),
     dt.datetime(2026, 1, 31, 12, 0, 0, 1)),
    ("TIMESTAMP_S", "'2026-01-31 12:00:00'::TIMESTAMP_S", "timestamp", pa.timestamp("us"),
     dt.datetime(2026, 1, 31, 12)),
    ("TIMESTAMP_MS", "'2026-01-31 12:00:00.125'::TIMESTAMP_MS", "timestamp", pa.timestamp("us"),
     dt.datetime(2026, 1, 31, 12, 0, 0, 125000)),
    ("TIMESTAMP_NS", "'2026-01-31 12:00:00.000000007'::TIMESTAMP_NS", "timestamp_ns",
     pa.timestamp("ns"), icesql.Timestamp(2026, 1, 31, 12).replace(nanosecond=7)),
    ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ '2026-01-31 12:00:00+00'", "timestamptz",
     pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 31, 13, tzinfo=ZoneInfo(ZONE))),
    ("TIMESTAMPTZ_NS", "'2026-01-31 12:00:00.000000007+00'::TIMESTAMPTZ_NS", "timestamptz_ns",
     pa.timestamp("ns", "UTC"),
     icesql.Timestamp(2026, 1, 31, 13, tzinfo=ZoneInfo(ZONE)).replace(nanosecond=7)),
    ("INTERVAL", "INTERVAL '2 days 3 hours'", "interval", pa.month_day_nano_interval(),
     dt.timedelta(days=2, hours=3)),
    ("INTERVAL", "INTERVAL '-14 months 3 days 00:00:00.5'", "interval",
     pa.month_day_nano_interval(), Interval(-14, 3, 500000)),
    ("VARCHAR", "'ab'", "varchar", pa.string(), "ab"),
    ("VARCHAR", """'{"a": 1}'::JSON""", "varchar", pa.string(), '{"a": 1}'),
    ("ENUM", "'b'::ENUM('a', 'b')", "varchar", pa.string(), "b"),
    ("BIT", "'01010'::BIT", "varchar", pa.string(), "01010"),
    ("TYPE", "get_type(1)", "varchar", pa.string(), "INTEGER"),
    ("UUID", "'00000000-0000-0000-0000-000000000005'::UUID", "uuid", pa.uuid(), UUID(int=5)),
    ("BLOB", "'\\x00\\xFF'::BLOB", "blob", pa.binary(), b"\x00\xff"),
    ("GEOMETRY", "'POINT(1 2)'::GEOMETRY", "blob", pa.binary(), POINT),
    ("VARIANT", "{'a': [1, NULL]}::VARIANT", "variant", pa.string(), '{"a":[1,null]}'),
    ("NULL", "NULL", "null", pa.null(), None),
    ("LIST", "[1, NULL]", "integer[]", pa.list_(pa.field("element", pa.int32())), [1, None]),
    ("LIST", "[]", "null[]", pa.list_(pa.field("element", pa.null())), []),
    ("ARRAY", "[1, 2]::INTEGER[2]", "integer[]", pa.list_(pa.field("element", pa.int32())),
     [1, 2]),
    ("STRUCT", "{'a': 1, 'B c': 'x'}", "struct(a integer, B c varchar)",
     pa.struct([("a", pa.int32()), ("B c", pa.string())]), {"a": 1, "B c": "x"}),
    ("TUPLE", "ROW(1, 'x')", "tuple(integer, varchar)",
     pa.struct([("element1", pa.int32()), ("element2", pa.string())]), (1, "x")),
    ("TUPLE", "(1, ('x', NULL))", "tuple(integer, tuple(varchar, null))",
     pa.struct([("element1", pa.int32()),
                ("element2", pa.struct([("element1", pa.string()), ("element2", pa.null())]))]),
     (1, ("x", None))),
    ("MAP", "MAP {'k': 1}", "map(varchar, integer)", pa.map_(pa.string(), pa.int32()),
     [("k", 1)]),
    ("MAP", "MAP {}", "map(varchar, null)", pa.map_(pa.string(), pa.null()), []),
    ("MAP", "map([], [])", "map(varchar, null)", pa.map_(pa.string(), pa.null()), []),
    ("MAP", "map(NULL, [1])", "map(varchar, integer)", pa.map_(pa.string(), pa.int32()), None),
    ("MAP", "histogram(NULL)", "map(varchar, ubigint)", pa.map_(pa.string(), pa.uint64()), None),
    ("MAP", "MAP {[]: 1}", "map(null[], integer)",
     pa.map_(pa.list_(pa.field("element", pa.null())), pa.int32()), [([], 1)]),
    ("UNION", "union_value(k := 3::UTINYINT)", "union(k smallint)",
     pa.sparse_union([pa.field("k", pa.int16())]), 3),
    ("UNION", "'x'::UNION(k INTEGER, t VARCHAR)", "union(k integer, t varchar)",
     pa.sparse_union([pa.field("k", pa.int32()), pa.field("t", pa.string())]), "x"),
    ("UNION", "NULL::UNION(k INTEGER)", "union(k integer)",
     pa.sparse_union([pa.field("k", pa.int32())]), None),
]  # fmt: skip
IDS = [f"{row[1]}" for row in TABLE]


@pytest.fixture(scope="module")
def connection():
    with icesql.connect(timezone=ZONE) as con:
        yield con


def ask(connection: Any, expression: str) -> tuple[str, pa.DataType, Any]:
    """Declared name, Arrow type and Python value of an expression."""
    cursor = connection.execute(f"SELECT {expression} AS v")
    ((value,),) = cursor.fetchall()
    table = connection.execute(f"SELECT {expression} AS v").arrow()
    table.validate(full=True)
    assert table.num_rows == 1
    return cursor.description[0][1], table.schema.field(0).type, value


def same(found: Any, wanted: Any) -> None:
    assert found == wanted
    assert repr(found) == repr(wanted)  # also the type, a zone, the months


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE, ids=IDS)
def test_type_at_top_level(connection, kind, sql, name, arrow, value):
    found_name, found_arrow, found = ask(connection, sql)
    assert (found_name, found_arrow) == (name, arrow)
    same(found, value)


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE, ids=IDS)
def test_type_in_a_list(connection, kind, sql, name, arrow, value):
    found_name, found_arrow, found = ask(connection, f"[{sql}, NULL]")
    assert found_name == f"{name}[]"
    assert found_arrow == pa.list_(pa.field("element", arrow))
    same(found, [value, None])


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE, ids=IDS)
def test_type_in_a_struct_and_a_tuple(connection, kind, sql, name, arrow, value):
    found_name, found_arrow, found = ask(connection, f"{{'f': {sql}, 'n': 1}}")
    assert found_name == f"struct(f {name}, n integer)"
    assert found_arrow == pa.struct([("f", arrow), ("n", pa.int32())])
    same(found, {"f": value, "n": 1})
    found_name, found_arrow, found = ask(connection, f"ROW(1, {sql})")
    assert found_name == f"tuple(integer, {name})"
    same(found, (1, value))


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE, ids=IDS)
def test_type_in_a_map(connection, kind, sql, name, arrow, value):
    found_name, found_arrow, found = ask(connection, f"MAP {{1: {sql}}}")
    assert found_name == f"map(integer, {name})"
    assert found_arrow == pa.map_(pa.int32(), arrow)
    same(found, [(1, value)])
    if value is not None and kind not in ("VARIANT", "MAP", "UNION", "TYPE"):
        _, found_arrow, found = ask(connection, f"MAP {{{sql}: 1}}")
        assert found_arrow == pa.map_(arrow, pa.int32())
        same(found, [(value, 1)])


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE, ids=IDS)
def test_type_in_a_column_with_null(connection, kind, sql, name, arrow, value):
    query = f"SELECT v FROM (VALUES (1, {sql}), (2, NULL)) AS t(i, v) ORDER BY i"
    if "histogram" in sql:
        query = f"SELECT {sql} AS v UNION ALL SELECT NULL"
    cursor = connection.execute(query)
    same(cursor.fetchall(), [(value,), (None,)])
    assert connection.execute(query).arrow().schema.field(0).type == arrow


def test_every_type_of_the_engine_is_in_the_table():
    with duckdb.connect() as con:
        known = con.sql("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    assert {name for (name,) in known} == {row[0] for row in TABLE}


@pytest.mark.parametrize("reading", ["rows", "arrow", "df"])
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"'{MOST + 1}'::HUGEINT", f"the integer {MOST + 1} has more than 38 digits"),
        (f"'-{MOST + 1}'::HUGEINT", f"the integer -{MOST + 1} has more than 38 digits"),
        (f"[{MOST}::HUGEINT + 1]", "more than 38 digits.*CAST it to VARCHAR"),
        (f"{{'a': '{(1 << 128) - 1}'::UHUGEINT}}", f"{(1 << 128) - 1} has more than 38 digits"),
        ("to_hours(2562048)", "more than 292 years"),
        ("[to_hours(-2562048)]", "more than 292 years"),
        ("{'a b': (1, MAP {1: to_hours(2562048)})}", "more than 292 years"),
        ("MAP {NULL: 1}", "Map keys can not be NULL"),
    ],
)
def test_values_that_no_result_holds_are_errors(connection, sql, message, reading):
    def ask_for_it():
        cursor = connection.execute(f"SELECT {sql}")
        return {"rows": cursor.fetchall, "arrow": cursor.arrow, "df": cursor.df}[reading]()

    with pytest.raises(icesql.DataError, match=message):
        ask_for_it()


@pytest.mark.parametrize(
    "sql",
    [
        "'infinity'::DATE", "'-infinity'::DATE", "'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMP",
        "'infinity'::TIMESTAMPTZ", "'-infinity'::TIMESTAMPTZ", "'infinity'::TIMESTAMP_S",
        "'infinity'::TIMESTAMP_MS", "'infinity'::TIMESTAMP_NS", "'-infinity'::TIMESTAMP_NS",
        "'infinity'::TIMESTAMPTZ_NS", "'-infinity'::TIMESTAMPTZ_NS", "TIME '24:00:00'",
        "'24:00:00'::TIME_NS", "'24:00:00+00'::TIMETZ", "'15:30:00.000000007'::TIME_NS",
    ],
)  # fmt: skip
@pytest.mark.parametrize("inside", ["{}", "[{}]", "{{'a': {}}}", "({}, 1)", "MAP {{1: {}}}"])
def test_values_without_a_python_value_are_errors(connection, sql, inside):
    expression = inside.format(sql)
    with pytest.raises(icesql.DataError, match="has no Python value; CAST it to VARCHAR"):
        connection.execute(f"SELECT {expression}").fetchall()
    assert connection.execute(f"SELECT {expression}").arrow().num_rows == 1
    with duckdb.connect() as con:
        con.execute(f"SET TimeZone = '{ZONE}'").fetchall()
        wanted = con.sql(f"SELECT CAST({expression} AS VARCHAR)").fetchall()
    assert connection.execute(f"SELECT CAST({expression} AS VARCHAR)").fetchall() == wanted


def test_infinities_stay_what_the_engine_gives_arrow(connection):
    sql = "SELECT 'infinity'::DATE, '-infinity'::TIMESTAMP, 'infinity'::TIMESTAMPTZ"
    found = connection.execute(sql).arrow()
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'").fetchall()
        wanted = con.sql(sql).to_arrow_table()
    for mine, theirs in zip(found.columns, wanted.columns, strict=True):
        assert mine.chunk(0).cast(mine.type).equals(theirs.chunk(0).cast(mine.type))


def test_sums_are_integers_of_any_size(connection):
    sql = "SELECT sum(x), list_sum(list(x)) FROM (VALUES (9223372036854775807), (5)) AS t(x)"
    cursor = connection.execute(sql)
    assert [each[1] for each in cursor.description] == ["hugeint", "hugeint"]
    assert all(each[1] == icesql.NUMBER for each in cursor.description)
    same(cursor.fetchall(), [((1 << 63) + 4, (1 << 63) + 4)])
    table = connection.execute(sql).arrow()
    assert table.schema.types == [pa.decimal128(38, 0)] * 2
    same(table.column(0).to_pylist(), [Decimal((1 << 63) + 4)])


def test_a_frame_has_sums_as_numbers_where_they_fit(connection):
    frame = connection.execute("SELECT sum(x), 1 FROM (VALUES (1), (2)) AS t(x)").df()
    assert str(frame.dtypes.iloc[0]) == "int64"
    assert frame.iloc[0].to_list() == [3, 1]
    wide = connection.execute(f"SELECT {1 << 70} AS a, 1 AS a, union_value(k := 2) AS u").df()
    assert wide.columns.to_list() == ["a", "a", "u"]
    assert wide.iloc[0].to_list() == [1 << 70, 1, 2]


def test_a_frame_refuses_what_pandas_lacks(connection):
    for sql in ("'infinity'::DATE", "'15:30:00.000000007'::TIME_NS"):
        with pytest.raises(icesql.DataError, match=r"no equal in pandas.*CAST it to VARCHAR"):
            connection.execute(f"SELECT {sql}").df()


def test_columns_of_one_name_stay_two(connection):
    cursor = connection.execute("SELECT 1 AS a, 2 AS a, 3 AS A")
    assert [each[0] for each in cursor.description] == ["a", "a", "A"]
    assert cursor.fetchall() == [(1, 2, 3)]
    assert connection.execute("SELECT 1 AS a, 2 AS a").arrow().column_names == ["a", "a"]


def test_the_last_nanoseconds_of_a_table_are_times(tmp_path: Path) -> None:
    from tests.writer.table import TableWriter

    table = TableWriter(tmp_path / "t", fields("n timestamp_ns, z timestamptz_ns"), version=3)
    last, first = (1 << 63) - 1, 1 - (1 << 63)
    table.commit([table.data_file([{"n": last, "z": last}, {"n": first, "z": first}])])
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        for columns in ("n", "n, z"):
            rows = connection.execute(f"SELECT {columns} FROM t ORDER BY n").fetchall()
            assert [str(row[0])[:19] for row in rows] == [
                "1677-09-21 00:12:43",
                "2262-04-11 23:47:16",
            ]
        # A text that names infinity and makes no time does no harm.
        rows = connection.execute("SELECT max(n), 'info' AS k FROM t WHERE 'inf' = 'inf'")
        assert str(rows.fetchall()[0][0])[:4] == "2262"


@pytest.mark.parametrize(
    "sql",
    [
        "('in' || 'finity')::TIMESTAMP_NS",
        "(1e308 * 10)::VARCHAR::TIMESTAMP_NS",
        "coalesce(NULL::TIMESTAMP_NS, 'infinity')",
        "[('in' || 'finity')::TIMESTAMP_NS]",
        "reverse('fni')::TIMESTAMPTZ_NS",
    ],
)
def test_infinite_nanoseconds_are_no_times_however_they_come_about(connection, sql):
    with pytest.raises(
        icesql.DataError, match=r"an infinite timestamp(tz)?_ns has no Python value"
    ):
        connection.execute(f"SELECT {sql}").fetchall()


def test_a_union_gives_infinite_texts_as_nanoseconds(connection):
    sql = "SELECT '2020-01-01'::TIMESTAMP_NS AS t UNION ALL (SELECT 'infinity'::TIMESTAMP)"
    with pytest.raises(icesql.DataError, match="has no Python value"):
        connection.execute(f"SELECT t FROM ({sql})").fetchall()


def test_a_value_without_a_place_in_a_result_is_refused() -> None:
    with icesql.connect() as opened, pytest.raises(icesql.DataError, match="CAST it to VARCHAR"):
        opened.execute("SELECT [true::UNION(a INTEGER, c BOOL)] FROM range(10)").arrow()
