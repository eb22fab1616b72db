"""Every type of DuckDB: its Arrow type and its Python value, alone and nested in others."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icesql
from tests.tables import read_lines, read_table
from tests.writer.fields import fields

ZONE = "Europe/Berlin"
MOST = 10**38 - 1
# Types that cannot be keys of maps.
NO_KEYS = ("VARIANT", "MAP", "UNION", "TYPE")
TABLE, FORMS = read_table(__file__, "result_types.tsv"), read_table(__file__, "result_forms.tsv")


@pytest.fixture(scope="module")
def connection():
    with icesql.connect(timezone=ZONE) as con:
        yield con


def ask(connection: Any, expression: str) -> tuple[str, pa.DataType, Any]:
    """The declared name, Arrow type and Python value of an expression."""
    cursor = connection.execute(f"SELECT {expression} AS v")
    ((value,),) = cursor.fetchall()
    table = connection.execute(f"SELECT {expression} AS v").arrow()
    table.validate(full=True)
    assert table.num_rows == 1
    return cursor.description[0][1], table.schema.field(0).type, value


def same(found: Any, wanted: Any) -> None:
    assert found == wanted
    assert repr(found) == repr(wanted)  # also the type, a zone, the months


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE)
def test_type_alone_and_inside_of_others(connection, kind, sql, name, arrow, value):
    for form in FORMS:
        if form[0] == "MAP {{{}: 1}}" and (value == "None" or kind in NO_KEYS):
            continue
        expression, *wanted = [
            each.format(text) for each, text in zip(form, (sql, name, arrow, value), strict=True)
        ]
        found_name, found_arrow, found = ask(connection, expression)
        assert [found_name, str(found_arrow), repr(found)] == wanted


@pytest.mark.parametrize(("kind", "sql", "name", "arrow", "value"), TABLE)
def test_type_in_a_column_with_null(connection, kind, sql, name, arrow, value):
    query = f"SELECT v FROM (VALUES (1, {sql}), (2, NULL)) AS t(i, v) ORDER BY i"
    if "histogram" in sql:
        query = f"SELECT {sql} AS v UNION ALL SELECT NULL"
    assert repr(connection.execute(query).fetchall()) == f"[({value},), (None,)]"
    assert str(connection.execute(query).arrow().schema.field(0).type) == arrow


def test_every_type_of_the_engine_is_in_the_table():
    with duckdb.connect() as con:
        known = con.sql("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    assert {name for (name,) in known} == {row[0] for row in TABLE}


@pytest.mark.parametrize("reading", ["rows", "arrow", "df"])
@pytest.mark.parametrize(("sql", "message"), read_table(__file__, "no_result_values.tsv"))
def test_values_that_no_result_holds_are_errors(connection, sql, message, reading):
    def ask_for_it():
        cursor = connection.execute(f"SELECT {sql}")
        return {"rows": cursor.fetchall, "arrow": cursor.arrow, "df": cursor.df}[reading]()

    with pytest.raises(icesql.DataError, match=message):
        ask_for_it()


@pytest.mark.parametrize("sql", read_lines(__file__, "no_python_values.tsv"))
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
        # A text with "inf" that is not a time does no harm.
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
