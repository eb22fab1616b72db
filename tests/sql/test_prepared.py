"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from icesql.errors import ColumnNotFoundError, Error, ProgrammingError
from icesql.sql.parse import parse
from icesql.sql.statement import Deallocate, Execute, Prepare


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("PREPARE P AS SELECT ? + 1", Prepare("p", "SELECT ? + 1")),
        ("prepare p FROM SELECT a FROM t WHERE a = ?",
         Prepare("p", "SELECT a FROM t WHERE a = ?")),
        ("EXECUTE p", Execute("p")),
        ("EXECUTE p()", Execute("p")),
        ("EXECUTE P(1, -2, 'x', NULL, true, DATE '2026-01-31')",
         Execute("p", (1, -2, "x", None, True, date(2026, 1, 31)))),
        ("EXECUTE p USING 1, 'x'", Execute("p", (1, "x"))),
        ("DEALLOCATE p", Deallocate("p")),
        ("DEALLOCATE PREPARE p", Deallocate("p")),
        ("DEALLOCATE ALL", Deallocate(None)),
    ],
)  # fmt: skip
def test_they_are_read(sql: str, expected: Any) -> None:
    assert parse(sql) == [expected]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("PREPARE", "names a statement"),
        ("PREPARE p", "has no query"),
        ("PREPARE p AS", "has no query"),
        ("PREPARE p AS DROP TABLE t", "PREPARE of DROP"),
        ("PREPARE p AS SET x = 1", "PREPARE of SET"),
        ("PREPARE p AS EXECUTE p", "PREPARE of EXECUTE"),
        ("EXECUTE p(now())", "anything else than constants"),
        ("EXECUTE p((SELECT 1))", "anything else than constants"),
        ("EXECUTE p(1 FROM t)", "anything else than constants"),
        ("EXECUTE p(a := 1)", ""),
        ("EXECUTE p 1", "unexpected"),
        ("DEALLOCATE p q", "unexpected"),
    ],
)
def test_what_is_wrong_is_told(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse(sql)
    assert message in str(caught.value)


def test_a_statement_is_executed_with_values(connection: Any) -> None:
    connection.execute("PREPARE p AS SELECT count(*) FROM shop.orders WHERE id < ? AND region = ?")
    for limit, region in ((5, "eu"), (30, "us"), (5, "eu")):
        found = connection.execute(f"EXECUTE p({limit}, '{region}')").fetchall()
        sql = f"SELECT count(*) FROM shop.orders WHERE id < {limit} AND region = '{region}'"
        assert found == connection.execute(sql).fetchall()
    assert connection.execute("EXECUTE p(?, ?)", [5, "eu"]).fetchall() == found
    connection.execute("DEALLOCATE p")
    with pytest.raises(ProgrammingError, match='no statement is prepared as "p"'):
        connection.execute("EXECUTE p(1, 'eu')")


def test_a_script_prepares_and_executes(connection: Any) -> None:
    script = "PREPARE q AS SUMMARIZE SELECT id FROM shop.orders WHERE id < $1; EXECUTE q(3)"
    rows = [each.fetchall() for each in connection.execute_script(script) if each.description]
    assert [row[0] for row in rows[-1]] == ["id"]


def test_errors_are_those_of_the_statement(connection: Any) -> None:
    connection.execute("PREPARE p AS SELECT id, nope FROM shop.orders WHERE id = ?")
    with pytest.raises(ColumnNotFoundError) as caught:
        connection.execute("EXECUTE p(1)")
    assert caught.value.position == (1, 12)
    with pytest.raises(ProgrammingError, match="1 parameter"):
        connection.execute("EXECUTE p(1, 2)")
    with pytest.raises(ProgrammingError, match="parameter"):
        connection.execute("EXECUTE p")
