"""Temporary views and tables: their names, the names that they see, and positions of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import (
    ColumnNotFoundError,
    DataError,
    Error,
    ProgrammingError,
    SqlSyntaxError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from tests.tables import read_cases


def rows(connection: Any, *statements: str) -> list[Any]:
    """Run statements; return the rows of the last one."""
    for sql in statements[:-1]:
        connection.execute(sql)
    return list(connection.execute(statements[-1]).fetchall())


# Scripts that DuckDB runs too; o is a view or table of the orders here and a table there.
SCRIPTS = [each for (each,) in read_cases(__file__, "temporary_scripts.tsv", 0)]


HELD = "SELECT id, amount FROM shop.orders"


@pytest.fixture(scope="module")
def held(warehouse: Path) -> list[Any]:
    """The rows of ``o``."""
    with icesql.connect(warehouse=warehouse) as connection:
        return list(connection.execute(HELD).fetchall())


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_gives_what_duckdb_gives(connection: Any, held: list[Any], script: str) -> None:
    with duckdb.connect() as other:
        other.execute("CREATE TABLE o (id BIGINT, amount DECIMAL(10, 2))")
        other.executemany("INSERT INTO o VALUES (?, ?)", held)
        for statement in script.split("; "):
            expected = other.execute(statement).fetchall()
    # A view is much slower, so only every third script uses one.
    made = "TABLE" if SCRIPTS.index(script) % 3 else "VIEW"
    connection.execute(f"CREATE TEMP {made} o AS {HELD}")
    assert rows(connection, *script.split("; ")) == expected


def test_conditions_on_a_view_choose_the_files_of_its_tables(connection: Any) -> None:
    wanted = "shop.orders WHERE region = 'north' AND id = 1"
    plain = connection.execute(f"EXPLAIN SELECT id FROM {wanted}").fetchall()
    told = rows(
        connection,
        "CREATE TEMP VIEW a AS SELECT id, region AS r FROM shop.orders",
        "CREATE TEMP VIEW b AS SELECT * FROM a WHERE r = 'north'",
        "EXPLAIN SELECT id FROM b WHERE id = 1",
    )
    files = [line for (line,) in told if "files" in line]
    assert files == [line for (line,) in plain if "files" in line]
    assert files


def test_names_in_a_view_are_those_of_when_it_was_made(connection: Any) -> None:
    found = rows(
        connection,
        "USE shop",
        "CREATE TEMP VIEW v AS SELECT count(*) AS n FROM orders",
        "CREATE TEMP VIEW w AS SELECT n FROM v",
        "SELECT n FROM w",
    )
    # USE with the catalog's name leaves the namespace, because no namespace has this name.
    connection._session.state.names.place = (None, ())
    assert found == rows(connection, "SELECT n FROM w")
    assert found == rows(connection, "SELECT count(*) FROM shop.orders")
    with pytest.raises(TableNotFoundError):
        connection.execute("SELECT count(*) FROM orders")


def test_parameters_keep_their_places(connection: Any) -> None:
    connection.execute("CREATE TEMP VIEW v AS SELECT id, region FROM shop.orders")
    query = "WITH q AS (SELECT ? AS a) SELECT a, id FROM q, v WHERE id = ? AND id IN (?, ?)"
    assert connection.execute(query, ["x", 2, 2, 3]).fetchall() == [("x", 2)]
    query = "SELECT $b AS b, count(*) FROM v WHERE id = $a OR id = $a"
    assert connection.execute(query, {"a": 2, "b": 5}).fetchall() == [(5, 1)]
    connection.execute("PREPARE p AS SELECT id FROM v WHERE id > ? AND id < ? + 2")
    assert rows(connection, "EXECUTE p(1, 1)") == [(2,)]
    kept = connection.execute("CREATE TEMP TABLE t AS SELECT ? AS x", [3])
    assert (kept.fetchall(), rows(connection, "FROM t")) == ([(1,)], [(3,)])
    for create in ("CREATE TEMP VIEW w AS", "CREATE VIEW shop.w AS", "ALTER VIEW shop.w AS"):
        for values in (None, [3]):
            with pytest.raises(UnsupportedSqlError, match="a parameter in a view"):
                connection.execute(f"{create} SELECT ? AS x", values)


def test_statements_of_a_script_see_what_is_made_before_them(connection: Any) -> None:
    script = (
        "CREATE TEMP VIEW v AS SELECT 1 AS a;\nSELECT * FROM v;\n"
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 2 AS a; SELECT * FROM v;\nSELECT b\n  FROM v"
    )
    outcomes = connection.execute_script(script)
    found = [next(outcomes) for _ in range(4)]
    assert (found[1].fetchall(), found[3].fetchall()) == ([(1,)], [(2,)])
    with pytest.raises(ColumnNotFoundError) as caught:
        next(outcomes)
    assert caught.value.position == (4, 8)


@pytest.mark.parametrize(
    ("view", "query", "kind", "message"),
    [
        ("SELECT\n 1 AS a,\n  nope(2) AS b", None, Error, "nope"),
        (
            "SELECT id,\n  CAST(region AS INTEGER) AS r FROM shop.orders",
            "SELECT\nr FROM v",
            DataError,
            'in view "v" (line 2, column 3): Could not convert string',
        ),
        ("SELECT id FROM shop.orders", "SELECT\n upper(id, 1) FROM v", Error, "line 2, column 2"),
        ("SELECT id FROM shop.orders", "SELECT\n  id FROM v,\n nothing", Error, "line 3, column 2"),
        ("SELECT id FROM shop.orders", "SELECT id FROM v WHERE (", SqlSyntaxError, "column 25"),
    ],
)
def test_an_error_is_placed_in_the_text_that_it_is_of(
    connection: Any, view: str, query: str | None, kind: type[Error], message: str
) -> None:
    statements = [f"CREATE TEMP VIEW v AS {view}", *([query] if query else [])]
    with pytest.raises(kind) as caught:
        rows(connection, *statements)
    assert message in str(caught.value)
    assert bool(caught.value.view) == ("in view" in message)


@pytest.mark.parametrize(
    ("statements", "kind", "message"), read_cases(__file__, "no_temporary_views.tsv", 0)
)
def test_what_cannot_be_made_or_read_is_told(
    connection: Any, statements: list[str], kind: str, message: str
) -> None:
    with pytest.raises(getattr(icesql, kind)) as caught:
        [list(connection.execute_script(each)) for each in statements]
    assert message in str(caught.value)


def test_deep_and_many_views_are_refused(connection: Any) -> None:
    connection.execute("CREATE TEMP VIEW v0 AS SELECT 1 AS a")
    # Skip the checks of each view, which take most of the time and are not tested here.
    made = connection._session.state.temporary
    for number in range(1, 200):
        below = made.find(["v0"])
        query = connection._session.read(f"FROM v{number - 1}")[0].statement
        made.keep(type(below)(f"v{number}", query, (), below.place))
    assert rows(connection, "SELECT a FROM v60") == [(1,)]
    with pytest.raises(ProgrammingError, match="nested more than 64 deep"):
        connection.execute("SELECT a FROM v199")
    twice = connection._session.read("SELECT 1 FROM w0, w0 AS o")[0].statement
    made.keep(type(below)("w0", connection._session.read("FROM v0")[0].statement, (), below.place))
    for number in range(1, 20):
        twice = connection._session.read(f"FROM w{number - 1} UNION ALL FROM w{number - 1}")
        made.keep(type(below)(f"w{number}", twice[0].statement, (), below.place))
    with pytest.raises(ProgrammingError, match="more than 500 views"):
        connection.execute("SELECT count(*) FROM w19")
