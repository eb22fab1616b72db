"""Time travel in the forms of other systems, on a table with four snapshots, a branch and a tag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_table


@pytest.fixture(scope="module")
def made(warehouse: Path) -> Iterator[tuple[Any, list[int], list[int]]]:
    """A connection, the ids of the snapshots, and their times in milliseconds."""
    with icesql.connect(warehouse=str(warehouse)) as connection:
        rows = connection.execute(
            "SELECT snapshot_id, epoch_ms(committed_at) FROM shop.orders.snapshots "
            "ORDER BY committed_at"
        ).fetchall()
        yield connection, [row[0] for row in rows], [row[1] for row in rows]


# Rows after each commit: 20, 40, 60, 39; the tag and the branch are at the first. All forms are in
# travel_forms.tsv; these are joined with another table.
@pytest.mark.parametrize(("table", "count"), read_cases(__file__, "travel_spellings.tsv", 1))
def test_a_spelling_means_its_snapshot(
    made: tuple[Any, list[int], list[int]], warehouse: Path, table: str, count: int
) -> None:
    connection, ids, times = made
    named = table.format(
        *ids, path=warehouse / "shop" / "orders", **{f"ms{n}": at for n, at in enumerate(times)}
    )
    assert connection.execute(f"SELECT count(*) FROM {named}").fetchall() == [(count,)]
    # Joined with another table, whose columns are qualified by its name.
    joined = f"SELECT count(*) FROM {named} JOIN shop.customers ON true WHERE customers.id IS NULL"
    assert connection.execute(joined).fetchall() == [(0,)]


@pytest.mark.parametrize(("table", "told"), read_table(__file__, "no_travel.tsv"))
def test_what_means_no_snapshot_is_an_error(
    made: tuple[Any, list[int], list[int]], table: str, told: str
) -> None:
    source = table.replace("{nines}", "9" * 5000)
    with pytest.raises(icesql.Error, match=told):
        made[0].execute(f"SELECT count(*) FROM {source}")


@pytest.mark.parametrize(
    ("dialect", "time"),
    [
        # Spark returns the clock of a zone, DuckDB's AT TIME ZONE the instant of a clock.
        ("spark", "from_utc_timestamp('2100-01-01', 'Asia/Tokyo')"),
        ("spark", "to_utc_timestamp('2100-01-01', 'Asia/Tokyo')"),
        # Trino reads a clock in the session's zone first.
        ("trino", "TIMESTAMP '2100-01-01 00:00:00' AT TIME ZONE 'Asia/Tokyo'"),
        ("trino", "current_timestamp AT TIME ZONE 'Asia/Tokyo'"),
        ("snowflake", "CONVERT_TIMEZONE('UTC', 'Asia/Tokyo', '2100-01-01'::timestamp_ntz)"),
    ],
)
@pytest.mark.parametrize("words", ["FOR TIMESTAMP AS OF", "FOR TIMESTAMP BEFORE"])
def test_a_time_that_means_another_instant_to_duckdb_is_refused(
    warehouse: Path, dialect: str, time: str, words: str
) -> None:
    with (
        icesql.connect(warehouse=str(warehouse), dialect=dialect) as connection,
        pytest.raises((icesql.UnsupportedSqlError, icesql.SqlSyntaxError)) as caught,
    ):
        connection.execute(f"SELECT count(*) FROM shop.orders {words} {time}")
    # The whole line, of which the message shows a part, is the user's text.
    assert "TIMEZONE(" not in caught.value.args[0].replace(time, "")


@pytest.mark.parametrize("words", ["FOR TIMESTAMP AS OF", "FOR TIMESTAMP BEFORE"])
@pytest.mark.parametrize(
    "time",
    ["add_months(DATE '2100-01-31', 1)", "date_trunc('MM', TIMESTAMP '2100-01-31')",
     "date_sub(DATE '2100-01-31', 1)", "to_date('2100-01-01')", "dateadd(DAY, 1, DATE '2100-01-01')"],
)  # fmt: skip
def test_times_in_sparks_words(warehouse: Path, words: str, time: str) -> None:
    with icesql.connect(warehouse=str(warehouse), dialect="spark") as connection:
        found = connection.execute(f"SELECT count(*) FROM shop.orders {words} {time}").fetchall()
    assert found == [(39,)]
