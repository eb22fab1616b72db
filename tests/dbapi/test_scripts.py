"""Each cursor of a script holds a result of its own."""

from __future__ import annotations

from typing import Any

import pytest

import icesql

SCRIPT = "SELECT 1; SET timezone = 'Europe/Vienna'; SELECT range FROM range(3000); SHOW TABLES"


def test_a_list_of_cursors_can_be_read_in_any_order(connection: Any) -> None:
    one, setting, many, tables = list(connection.execute_script(SCRIPT))
    assert tables.rowcount == 3
    assert many.fetchone() == (0,)
    assert one.fetchall() == [(1,)]
    assert setting.description is None
    assert len(many.fetchall()) == 2_999
    assert many.description[0][0] == "range"


def test_statements_run_as_their_cursors_are_asked_for(connection: Any) -> None:
    cursors = connection.execute_script(SCRIPT)
    assert next(cursors).fetchall() == [(1,)]
    assert connection.settings.timezone == "UTC"
    next(cursors)
    assert connection.settings.timezone == "Europe/Vienna"


def test_a_later_statement_sees_an_earlier_setting(connection: Any) -> None:
    script = "SELECT TIMESTAMPTZ '2026-01-01 00:00'; SET timezone = 'Europe/Vienna'; "
    before, _, after = connection.execute_script(script + "SELECT TIMESTAMPTZ '2026-01-01 00:00'")
    assert before.fetchone() != after.fetchone()


def test_a_statement_that_fails_ends_the_script_and_spares_the_results_before(
    connection: Any,
) -> None:
    cursors = connection.execute_script("SELECT 1; SELECT * FROM shop.nothing; SELECT 2")
    first = next(cursors)
    with pytest.raises(icesql.TableNotFoundError):
        next(cursors)
    assert list(cursors) == []
    assert first.fetchall() == [(1,)]


def test_cancelling_one_statement_spares_the_others(connection: Any) -> None:
    cursors = connection.execute_script("SELECT range FROM range(9000); SELECT 2")
    first = next(cursors)
    first.fetchone()
    first.cancel()
    assert next(cursors).fetchall() == [(2,)]
    with pytest.raises(icesql.QueryCancelledError):
        first.fetchall()


def test_an_empty_script_has_no_cursor(connection: Any) -> None:
    assert list(connection.execute_script(" ; -- nothing")) == []
