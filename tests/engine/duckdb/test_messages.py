"""What DuckDB refuses or cannot compute is told shortly, in the words of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql.engine.duckdb.messages import data_error, placed, programming_error, read
from icesql.errors import DataError, Error, placing

ORDERS = "FROM shop.orders"


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        (f"SELECT region + 1 {ORDERS}", "ProgrammingError",
         "the operator + does not take VARCHAR and INTEGER{}; CAST one side to another type"),
        (f"SELECT sum(region) {ORDERS}", "ProgrammingError",
         "sum() does not take (VARCHAR){}; CAST an argument, or give other ones"),
        (f"SELECT x.region {ORDERS}", "ProgrammingError",
         'table "x" is not in FROM{}; FROM has "orders"'),
        (f"SELECT id {ORDERS} a JOIN shop.orders b ON a.id = b.id", "AmbiguousColumnError",
         'column "id" is ambiguous{}: it could be "a.id", "b.id"; qualify it'),
        ("SELECT x FROM (VALUES (1)) t(y)", "ColumnNotFoundError",
         'column "x" not found{}; did you mean "y"?'),
        (f"SELECT region, count(*) {ORDERS}", "ProgrammingError",
         'column "region" must appear in GROUP BY or in an aggregate{}; '
         "add it to GROUP BY, or use any_value(region)"),
        (f"SELECT 1 {ORDERS} WHERE count(*) > 1", "ProgrammingError",
         "WHERE cannot contain aggregates{}; use HAVING"),
        ("SELECT {'a': 1}.b", "ProgrammingError", 'the struct has no field "b"{}; it has "a"'),
        (f"SELECT CAST(region AS INTEGER) {ORDERS} WHERE region = 'eu'", "DataError",
         "Could not convert string 'eu' to INTEGER when casting from source column region{}"),
        ("SELECT 1 // 0", "DataError",
         "Division by zero in (1 // 0){}; divide by nullif(…, 0), or write TRY(…), to get NULL"),
        ("SELECT 2147483647 + 1::INTEGER", "DataError",
         "Overflow in addition of INTEGER (2147483647 + 1){}"),
        (f"SELECT (SELECT id {ORDERS})", "DataError",
         "a subquery that stands for one value returned more than one row{}; "
         "add LIMIT 1 or an aggregate"),
        ("SELECT CAST(300 AS TINYINT)", "DataError",
         "Type INTEGER with value 300 can't be cast because the value is out of range for the "
         "destination type TINYINT{}"),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Binder Error: Referenced column \"x\" not found in FROM clause!\n"
         'Candidate bindings: "__scan_0", "city"',
         'column "x" not found; did you mean "city"?'),
        ("Catalog Error: Scalar Function with name uper does not exist!\nDid you mean \"upper\"?",
         "not supported: the function uper(); did you mean upper()?"),
        ('Binder Error: {"exception_type":"Binder","exception_message":"No!\\nCandidate: 1",'
         '"position":"7"}', "No"),
        ("Binder Error: something about q.c0 and __scan_1", "the engine refuses this"),
        ("Binder Error: No function matches the given name and argument types 'pi(INTEGER_LITERAL)'"
         ". You might need to add explicit type casts.\n\tCandidate functions:\n\tpi() -> DOUBLE",
         "pi() does not take 1 argument; it takes none"),
        ("Binder Error: Macro lpad() does not support the supplied arguments. You might …",
         "lpad() does not take these arguments; CAST them, or give other ones"),
        ("Invalid Input Error: no luck, or SET error_on_division_by_zero=false to get it.",
         "no luck"),
    ],
)  # fmt: skip
def test_what_only_the_engine_knows_is_left_out(text: str, message: str) -> None:
    assert str(programming_error(read(text)[0], None)) == message


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT id,\n  region + 1 FROM shop.orders", (2, 10)),
        ("SELECT 'žluť', x.region FROM shop.orders", (1, 16)),
        ("SELECT ?, region, CAST(region AS INTEGER) FROM shop.orders", (1, 19)),
        ("SELECT now(), CAST(region AS INTEGER) FROM shop.orders", (1, 15)),
        ("SELECT 1 FROM shop.orders VERSION AS OF 'main' o WHERE region + 1 > 2", (1, 63)),
        ("SELECT * FROM shop.orders JOIN shop.orders o ON o.region = nowhere.id", (1, 60)),
        ("WITH q AS (SELECT CAST(region AS DATE) AS d FROM shop.orders) SELECT max(d) FROM q",
         (1, 19)),
    ],
)  # fmt: skip
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
