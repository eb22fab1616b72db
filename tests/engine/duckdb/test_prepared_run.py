"""State kept for a repeated query never adds or removes a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[icesql.Connection]:
    """``n.g``: three files with one ``ts`` each, answered from metadata, and one that is read."""
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        opened.execute("CREATE SCHEMA n")
        opened.execute("USE n")
        opened.execute("CREATE TABLE g (id INT, p INT, ts TIMESTAMP) PARTITIONED BY (p)")
        for number in range(3):
            moment = f"TIMESTAMP '2024-0{number + 1}-01 10:00:00'"
            rows = ", ".join(f"({each}, {number}, {moment})" for each in (number, number + 10))
            opened.execute(f"INSERT INTO g VALUES {rows}")
        opened.execute(
            "INSERT INTO g VALUES (20, 7, TIMESTAMP '2024-05-01'), (21, 7, TIMESTAMP '2024-05-02')"
        )
        yield opened


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT ts, count(*) FROM g GROUP BY ts", 5),
        ("SELECT date_trunc('month', ts) AS m, count(*) FROM g GROUP BY m", 4),
        ("SELECT DISTINCT ts FROM g", 5),
        ("SELECT ts FROM g GROUP BY ts HAVING count(*) > 1", 3),
        ("SELECT ts, sum(p) FROM g WHERE p > 0 GROUP BY ALL", 4),
    ],
)
def test_groups_that_metadata_tells_stay(
    connection: icesql.Connection, sql: str, count: int
) -> None:
    answers = [sorted(connection.execute(sql).fetchall()) for _ in range(6)]
    assert len(answers[0]) == count
    assert answers == [answers[0]] * 6


def test_a_count_of_values_that_metadata_tells_stays(connection: icesql.Connection) -> None:
    sql = "SELECT count(DISTINCT ts) FROM g"
    assert [connection.execute(sql).fetchall() for _ in range(6)] == [[(5,)]] * 6


def test_a_value_for_which_all_is_read_does_not_stand_for_one_for_which_metadata_tells_some(
    connection: icesql.Connection,
) -> None:
    sql = "SELECT ts, count(*) FROM g WHERE p > ? GROUP BY ts"
    for _ in range(5):
        for least, count in ((2, 2), (0, 4), (-1, 5)):
            assert len(connection.execute(sql, [least]).fetchall()) == count
