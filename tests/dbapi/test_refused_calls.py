"""A call that is refused has done nothing: no setting is set, and the result before it stays."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from tests.tables import read_cases

REFUSED = [*read_cases(__file__, "refused_calls.tsv", 0, 1), ["SELECT ?", [object()]]]


@pytest.mark.parametrize(("sql", "parameters"), REFUSED)
def test_a_refused_execute_changes_nothing(connection: Any, sql: str, parameters: Any) -> None:
    cursor = connection.execute("SELECT id FROM shop.customers ORDER BY id")
    assert cursor.fetchone() == (0,)
    with pytest.raises(icesql.Error):
        cursor.execute(sql, parameters)
    assert connection.settings.timezone == "UTC"
    assert cursor.description[0][0] == "id"
    assert cursor.fetchall() == [(1,), (2,), (3,)]


def test_several_statements_are_counted_before_one_runs(connection: Any) -> None:
    with pytest.raises(icesql.ProgrammingError, match=r"one statement, not 2.*execute_script"):
        connection.execute("SELECT 1; SELECT 2")


def test_a_refused_executemany_changes_nothing(connection: Any) -> None:
    cursor = connection.execute("SELECT 1")
    with pytest.raises(icesql.NotSupportedError):
        cursor.executemany("SET timezone = ?", [["Europe/Vienna"]])
    assert connection.settings.timezone == "UTC"
    assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize("last", ["SELEC 1", "SELECT ?", "GRANT ALL ON shop.orders TO x"])
def test_a_script_is_read_to_its_end_before_it_begins(connection: Any, last: str) -> None:
    with pytest.raises(icesql.Error):
        connection.execute_script(f"SET timezone = 'Europe/Vienna'; {last}")
    assert connection.settings.timezone == "UTC"


def test_a_statement_that_fails_while_it_runs_leaves_the_cursor_usable(connection: Any) -> None:
    cursor = connection.execute("SELECT 1")
    with pytest.raises(icesql.TableNotFoundError):
        cursor.execute("SELECT * FROM shop.nothing")
    assert cursor.description is None
    with pytest.raises(icesql.ProgrammingError, match="no result"):
        cursor.fetchall()
    assert cursor.execute("SELECT 2").fetchall() == [(2,)]
