"""A program of a user, as type checkers see it: ``program.py WAREHOUSE`` reads the demo's tables.

The lines that end in ``type: ignore`` are wrong, and each checker has to say so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_type

import pyarrow as pa

import icesql

if TYPE_CHECKING:
    import pandas as pd


def trips_by_city(connection: icesql.Connection, least: float) -> Iterator[tuple[str, int]]:
    """Rows, one by one."""
    cursor = connection.execute(
        "SELECT city, count(*) FROM demo.trips WHERE fare > ? GROUP BY city ORDER BY city", [least]
    )
    assert_type(cursor, icesql.Cursor)
    for city, trips in cursor:
        yield str(city), int(trips)


def as_arrow(connection: icesql.Connection, since: datetime) -> pa.Table:
    """A result as Arrow, and as a stream of batches."""
    query = "SELECT * FROM demo.trips WHERE pickup_at >= :since"
    rows = 0
    for batch in connection.execute(query, {"since": since}).arrow_reader():
        rows += batch.num_rows
    table = connection.execute(query, {"since": since}).arrow()
    assert rows == table.num_rows
    return table


def as_frame(cursor: icesql.Cursor) -> pd.DataFrame:
    """A result as a DataFrame of pandas."""
    return cursor.df()


def one(cursor: icesql.Cursor) -> Any:
    """The only value of a result."""
    row = cursor.fetchone()
    assert_type(row, tuple[Any, ...] | None)
    if row is None:
        raise icesql.ProgrammingError("there is no row")
    assert_type(cursor.fetchall(), list[tuple[Any, ...]])
    return row[0]


def facts(cursor: icesql.Cursor) -> tuple[int, list[str], int]:
    """What a cursor says of its statement."""
    names = [name for name, *_ in cursor.description or []]
    read = sum(report.distinct_data_files for report in cursor.scan_reports)
    for table, snapshots in cursor.snapshots.items():
        assert_type(table, str)
        assert_type([each.id for each in snapshots], list[int | None])
    assert_type(cursor.notes, list[str])
    return cursor.rowcount, names, read


def explained(connection: icesql.Connection, sql: str) -> str:
    """Errors with their attributes."""
    try:
        connection.execute(sql)
    except icesql.SqlSyntaxError as error:
        assert_type(error.line, int | None)
        return f"{error.problem} in line {error.line}"
    except icesql.ColumnNotFoundError as error:
        assert_type(error.similar, tuple[str, ...])
        return ", ".join(error.similar)
    except icesql.CommitConflictError as error:
        return str(error)
    except icesql.Error as error:
        return type(error).__name__
    return "no error"


def wrong(connection: icesql.Connection) -> None:
    """Never called."""
    connection.execute(5)  # type: ignore
    connection.execute("SELECT 1").fetchmany("a")  # type: ignore
    icesql.connect(warehose="a")  # type: ignore
    rows: list[int] = connection.execute("SELECT 1").fetchall()  # type: ignore
    icesql.NoSuchError  # type: ignore
    print(rows)


def main(warehouse: str) -> None:
    """Print what the functions give."""
    with icesql.connect(warehouse=warehouse, settings={"threads": 2}) as connection:
        assert_type(connection, icesql.Connection)
        print(list(trips_by_city(connection, 20)))
        print(as_arrow(connection, datetime(2026, 1, 10, tzinfo=UTC)).num_rows)
        print(one(connection.execute("SELECT count(*) FROM demo.trips")))
        print(facts(connection.execute("SELECT id, fare FROM demo.trips WHERE id < 300")))
        print(explained(connection, "SELECT FROM WHERE"))
        print(explained(connection, "SELECT fair FROM demo.trips"))
        print(explained(connection, "SELECT * FROM demo.nothing"))
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 AS one")
            print(cursor.fetchall(), icesql.paramstyle, icesql.Interval(months=1).months)


if __name__ == "__main__":
    main(sys.argv[1])
