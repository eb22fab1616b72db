"""Errors of DuckDB are reported briefly, with the user's own text."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql.engine.duckdb.errors import data_error, placed, programming_error, read_message
from icesql.errors import DataError, Error, placing
from tests.tables import read_cases, read_table

ORDERS = "FROM shop.orders"


@pytest.mark.parametrize(("sql", "kind", "message"), read_table(__file__, "messages.tsv"))
def test_an_error_of_the_engine_is_told_in_the_words_of_the_user(
    sql: str, kind: str, message: str, warehouse: Path
) -> None:
    with icesql.connect(warehouse=str(warehouse)) as connection, pytest.raises(Error) as caught:
        connection.execute(sql).fetchall()
    assert type(caught.value).__name__ == kind
    before, after = message.split("{}")
    said = str(caught.value)
    assert said.startswith(before)
    assert said.endswith(after)
    where = said.removeprefix(before).removesuffix(after)
    known = kind != "DataError" and "{'a'" not in sql
    assert where.startswith(" (line 1, column ") or (where == "" and not known)


@pytest.mark.parametrize(("text", "message"), read_cases(__file__, "engine_messages.tsv", 0))
def test_what_only_the_engine_knows_is_left_out(text: str, message: str) -> None:
    assert str(programming_error(read_message(text)[0], None)) == message


@pytest.mark.parametrize(("sql", "place"), read_cases(__file__, "message_places.tsv", 0, 1))
@pytest.mark.parametrize("before", ["", "SELECT 1 AS ž;\n"])
def test_the_place_is_that_of_the_user(
    sql: str, place: tuple[int, int], before: str, warehouse: Path
) -> None:
    line, column = place
    line += before.count("\n")
    parameters = [5] if "?" in sql else None
    with icesql.connect(warehouse=str(warehouse)) as connection:
        cursors = connection.execute_script(before + sql, parameters)
        with pytest.raises(Error) as caught:
            [cursor.fetchall() for cursor in cursors]
    assert f"(line {line}, column {column})" in str(caught.value)


def test_a_place_stands_before_what_to_do() -> None:
    with pytest.raises(DataError) as caught, placing("SELECT\n  1 // 0"):
        raise data_error("Division by zero in expression (1 // 0). Use TRY(...) to …", 9)
    assert str(caught.value) == (
        "Division by zero in (1 // 0) (line 2, column 3); "
        "divide by nullif(…, 0), or write TRY(…), to get NULL"
    )
    assert caught.value.line == 2
    with pytest.raises(DataError, match=r"^what \(line 1, column 1\)$"), placing("x"):
        raise placed(DataError, "what", "", 0)
