"""Scripts: statements run in order, and each sees what SET and RESET did before it."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql


def counts(warehouse: Path, script: str, **settings: str) -> list[int]:
    """The single values of the queries of a script."""
    with icesql.connect(warehouse=warehouse, settings=settings) as connection:
        return [
            row[0]
            for cursor in connection.execute_script(script)
            if cursor.description
            for row in cursor.fetchall()
        ]


COUNT = "SELECT count(*) FROM shop.orders TIMESTAMP AS OF '{}'"


@pytest.fixture
def committed(warehouse: Path) -> str:
    """When the last snapshot of shop.orders was committed, in UTC, to the second after it."""
    with icesql.connect(warehouse=warehouse) as connection:
        sql = "SELECT date_trunc('second', now()) + INTERVAL 1 SECOND"
        return str(connection.execute(sql).fetchall()[0][0].replace(tzinfo=None))


def test_a_time_without_zone_means_the_zone_that_is_set_when_its_statement_runs(
    warehouse: Path, committed: str
) -> None:
    now = COUNT.format(committed)
    assert counts(warehouse, now) == counts(warehouse, f"RESET timezone; {now}")
    # The same clock was nine hours earlier in Tokyo, before the table was made.
    with pytest.raises(icesql.errors.SnapshotNotFoundError):
        counts(warehouse, f"SET TIME ZONE 'Asia/Tokyo'; {now}")
    back = f"SET TIME ZONE 'Asia/Tokyo'; RESET timezone; {now}"
    assert counts(warehouse, back, timezone="UTC") == counts(warehouse, now)


def test_a_wrong_time_is_an_error_when_its_statement_runs(warehouse: Path) -> None:
    with icesql.connect(warehouse=warehouse) as connection:
        outcomes = connection.execute_script(f"SELECT 1;\n{COUNT.format('the other day')}")
        assert next(outcomes).fetchall() == [(1,)]
        with pytest.raises(icesql.errors.SqlSyntaxError, match="not a time") as caught:
            next(outcomes)
    assert (caught.value.line, caught.value.column) == (2, 34)
