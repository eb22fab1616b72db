"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.errors import ColumnNotFoundError, ProgrammingError


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
