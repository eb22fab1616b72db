"""SET VARIABLE, getvariable(), version(), current_schema() and current_catalog()."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.errors import SqlSyntaxError, UnsupportedSqlError
from tests.tables import read_lines, read_table


def ask(connection: Any, sql: str, values: Any = None) -> Any:
    return connection.execute(sql, values).fetchone()


def test_the_session_tells_of_itself(connection: Any) -> None:
    sql = "SELECT version(), current_schema(), current_catalog(), current_database()"
    assert ask(connection, sql) == (icesql.__version__, None, "shop", "shop")
    connection.execute("USE shop")
    assert ask(connection, sql)[1] == "shop"
    assert ask(connection, "SELECT upper(current_schema()) FROM customers") == ("SHOP",)
    assert [each[0] for each in connection.execute(sql).description] == [
        "version()", "current_schema()", "current_catalog()", "current_database()"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["current_schema", "current_catalog", "Current_Database"])
@pytest.mark.parametrize("rest", ["", " FROM shop.orders", " FROM shop.orders ORDER BY {}"])
def test_without_parentheses_the_engine_is_not_asked(connection: Any, name: str, rest: str) -> None:
    told = f"{name.lower()} without parentheses"
    with pytest.raises(UnsupportedSqlError, match=told):
        connection.execute(f"SELECT {name}{rest.format(name)}")
    column = f'SELECT {name} FROM (SELECT 1 AS "{name}") ORDER BY {name}'
    if name != "current_catalog":  # DuckDB always reads that as the function
        assert connection.execute(column).fetchall() == [(1,)]


@pytest.mark.parametrize(("written", "value"), read_table(__file__, "variables.tsv"))
def test_a_variable_is_a_constant(connection: Any, written: str, value: str) -> None:
    connection.execute(f"SET VARIABLE Some_name = {written}")
    assert repr(ask(connection, "SELECT getvariable('some_NAME')")) == f"({value},)"
    connection.execute("RESET VARIABLE some_name")
    assert ask(connection, "SELECT getvariable('some_name')") == (None,)


def test_a_variable_takes_a_parameter_and_its_latest_value(connection: Any) -> None:
    sql = "SELECT count(*) FROM shop.orders WHERE id < getvariable('n')"
    for value in (3, 5, 4, 5):
        connection.execute("SET VARIABLE n = ?", [value])
        written = sql.replace("getvariable('n')", str(value))
        assert ask(connection, sql) == ask(connection, written)


def test_a_variable_prunes(connection: Any) -> None:
    connection.execute("SET VARIABLE day = DATE '2026-01-02'")
    sql = "EXPLAIN SELECT id FROM shop.orders WHERE ordered_on = getvariable('day')"
    told = [row[0] for row in connection.execute(sql).fetchall()]
    assert "  filter: ordered_on = 2026-01-02" in told


@pytest.mark.parametrize(
    "value", ["now()", "(SELECT 1)", "1 + 1", "a", "[1]", "1, 2", "1 FROM shop.orders", "random()"]
)
def test_nothing_else_is_a_variable(connection: Any, value: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="anything else than a constant"):
        connection.execute(f"SET VARIABLE x = {value}")


@pytest.mark.parametrize("call", ["getvariable(id)", "getvariable()", "getvariable('a', 'b')"])
def test_the_name_of_a_variable_is_a_text(connection: Any, call: str) -> None:
    with pytest.raises(SqlSyntaxError, match="takes the name of a variable"):
        connection.execute(f"SELECT {call} FROM shop.orders")


def test_variables_are_those_of_one_connection(connection: Any) -> None:
    connection.execute("SET VARIABLE mine = 1")
    with icesql.connect() as other:
        assert ask(other, "SELECT getvariable('mine'), current_schema()") == (None, None)
        assert ask(other, "SELECT current_catalog()") == (None,)


@pytest.mark.parametrize("sql", read_lines(__file__, "variable_calls.tsv"))
def test_the_engine_is_asked_for_no_variable(connection: Any, sql: str) -> None:
    connection.execute("SET VARIABLE x = 7")
    try:
        row = ask(connection, sql)
    except icesql.DatabaseError:
        return
    assert row == (7,)


@pytest.mark.parametrize("sql", read_lines(__file__, "version_calls.tsv"))
def test_the_engine_tells_no_version(connection: Any, sql: str) -> None:
    try:
        row = ask(connection, sql)
    except icesql.DatabaseError:
        return
    assert row == (icesql.__version__,)
