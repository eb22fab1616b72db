"""A cursor tells which snapshots its statement read, and its reads are in the log under its id."""

from __future__ import annotations

import logging
from datetime import UTC

import pytest

import icesql


def test_a_query_names_the_snapshot_of_each_table(connection: icesql.Connection) -> None:
    cursor = connection.execute("SELECT id FROM shop.orders WHERE id > 3")
    ((name, (read,)),) = cursor.snapshots.items()
    assert name == "shop.orders"
    assert read.ref == "main"
    assert read.committed_at is not None
    assert read.committed_at.tzinfo is UTC
    rows = cursor.fetchall()
    again = connection.execute(f"SELECT id FROM shop.orders VERSION AS OF {read.id} WHERE id > 3")
    assert sorted(again.fetchall()) == sorted(rows)
    assert again.snapshots["shop.orders"][0].id == read.id


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM shop.orders",
        "SELECT count(*) AS n, count(*) FROM shop.orders",
        "SELECT max(id) FROM shop.orders",
        "EXPLAIN SELECT * FROM shop.orders",
    ],
)
def test_answers_from_metadata_name_it_too(connection: icesql.Connection, sql: str) -> None:
    (read,) = connection.execute(sql).snapshots["shop.orders"]
    assert (
        read.id
        == connection.execute(
            "SELECT snapshot_id FROM shop.orders.refs WHERE name = 'main'"
        ).fetchone()[0]
    )  # type: ignore[index]


def test_a_table_at_two_times_has_two(connection: icesql.Connection) -> None:
    cursor = connection.execute(
        "SELECT count(*) FROM shop.orders o JOIN shop.orders VERSION AS OF 'opening' p USING (id)"
        " JOIN shop.orders q USING (id)"
    )
    now, then = cursor.snapshots["shop.orders"]
    assert (now.ref, then.ref) == ("main", "opening")
    assert now.id != then.id


def test_no_table_no_snapshot(connection: icesql.Connection) -> None:
    assert connection.cursor().snapshots == {}
    assert connection.execute("SELECT 1").snapshots == {}
    assert connection.execute("SHOW TABLES").snapshots == {}


def test_each_statement_has_an_id_of_its_own(connection: icesql.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.query_id is None
    ids = [cursor.execute("SELECT 1").query_id for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(each is not None and len(each) == 32 for each in ids)


def test_what_was_read_is_logged(
    connection: icesql.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="icesql"):
        cursor = connection.execute("SELECT id FROM shop.orders WHERE region = 'eu'")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "icesql"]
    (read,) = cursor.snapshots["shop.orders"]
    assert line.startswith(f"query {cursor.query_id}: shop.orders: manifests ")
    assert f" · snapshot {read.id} · " in line


def test_a_cursor_shows_its_columns(connection: icesql.Connection) -> None:
    cursor = connection.cursor()
    assert repr(cursor) == "<icesql.Cursor: no result>"
    cursor.execute("SELECT 1 AS one, 'x' AS two")
    assert repr(cursor) == "<icesql.Cursor: a result (one integer, two varchar)>"
    cursor.close()
    assert repr(cursor) == "<icesql.Cursor: closed>"
