"""PEP 249, clause by clause, after the public-domain dbapi20 suite (reading parts)."""

from __future__ import annotations

import threading
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest

import icesql

QUERY = "SELECT id, name FROM shop.customers ORDER BY id"
ROWS = [(0, "Ada"), (1, "Grace"), (2, "Edsger"), (3, "Barbara")]


@pytest.fixture
def cursor(connection: Any) -> Any:
    return connection.cursor()


# ------------------------------------------------------------------ module


def test_module_globals() -> None:
    assert icesql.apilevel == "2.0"
    assert icesql.threadsafety in (1, 2, 3)
    assert icesql.paramstyle in ("qmark", "numeric", "named", "format", "pyformat")


def test_module_exceptions_are_those_of_the_pep() -> None:
    assert issubclass(icesql.Warning, Warning)
    assert icesql.Error.__bases__ == (Exception,)
    assert icesql.InterfaceError.__bases__ == icesql.DatabaseError.__bases__ == (icesql.Error,)
    names = "DataError OperationalError IntegrityError InternalError ProgrammingError"
    for name in (*names.split(), "NotSupportedError"):
        assert getattr(icesql, name).__bases__ == (icesql.DatabaseError,)


def test_type_constructors_make_values() -> None:
    assert icesql.Date(2002, 12, 25) == date(2002, 12, 25)
    assert icesql.Time(13, 45, 30) == time(13, 45, 30)
    assert icesql.Timestamp(2002, 12, 25, 13, 45, 30) == datetime(2002, 12, 25, 13, 45, 30)
    assert icesql.DateFromTicks(0) == date.fromtimestamp(0)
    assert icesql.TimeFromTicks(0) == datetime.fromtimestamp(0).time()
    assert icesql.TimestampFromTicks(0) == datetime.fromtimestamp(0)
    assert bytes(icesql.Binary(b"Something")) == b"Something"


# ------------------------------------------------------------------ connection


def test_commit_and_rollback_are_harmless(connection: Any) -> None:
    cursor = connection.execute(QUERY)
    connection.commit()
    connection.rollback()
    assert cursor.fetchall()
    connection.close()
    for call in (connection.commit, connection.rollback):
        with pytest.raises(icesql.InterfaceError):
            call()


def test_exceptions_are_attributes_of_the_connection(connection: Any) -> None:
    for name in ("Warning", "Error", "InterfaceError", "DatabaseError", "ProgrammingError"):
        assert getattr(connection, name) is getattr(icesql, name)


def test_a_closed_connection_answers_nothing(warehouse: Path) -> None:
    connection = icesql.connect(warehouse=str(warehouse))
    cursor = connection.cursor()
    connection.close()
    connection.close()  # closing twice does no harm
    with pytest.raises(icesql.InterfaceError):
        connection.cursor()
    with pytest.raises(icesql.InterfaceError):
        cursor.execute(QUERY)
    with pytest.raises(icesql.InterfaceError):
        connection.commit()


def test_connections_and_cursors_are_context_managers(warehouse: Path) -> None:
    with icesql.connect(warehouse=str(warehouse)) as connection:
        with connection.cursor() as cursor:
            assert cursor.execute(QUERY).fetchall() == ROWS
        with pytest.raises(icesql.InterfaceError):
            cursor.execute(QUERY)
    with pytest.raises(icesql.InterfaceError):
        connection.cursor()


# ------------------------------------------------------------------ cursor


def test_description_is_none_until_a_query_ran(cursor: Any) -> None:
    assert cursor.description is None
    cursor.execute(QUERY)
    assert [len(column) for column in cursor.description] == [7, 7]
    assert [column[0] for column in cursor.description] == ["id", "name"]
    assert cursor.description[0][1] == icesql.NUMBER
    assert cursor.description[1][1] == icesql.STRING
    cursor.execute("SET TIME ZONE 'UTC'")
    assert cursor.description is None


@pytest.mark.parametrize(
    ("column", "type_object"),
    [
        ("flag", "NUMBER"),
        ("small", "NUMBER"),
        ("double", "NUMBER"),
        ("price", "NUMBER"),
        ("text", "STRING"),
        ("blob", "BINARY"),
        ("code", "BINARY"),
        ("day", "DATETIME"),
        ("clock", "DATETIME"),
        ("instant", "DATETIME"),
    ],
)
def test_type_codes_compare_with_type_objects(cursor: Any, column: str, type_object: str) -> None:
    cursor.execute(f"SELECT {column} FROM shop.types")
    code = cursor.description[0][1]
    kinds = ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID")
    equal = [name for name in kinds if code == getattr(icesql, name)]
    # A boolean is no number to PEP 249; it may be a type of its own.
    assert equal == [type_object] or (column == "flag" and equal == [])


def test_rowcount_is_unknown_while_rows_stream(cursor: Any) -> None:
    assert cursor.rowcount == -1
    cursor.execute(QUERY)
    assert cursor.rowcount in (-1, 4)


def test_fetchone_gives_rows_then_none(cursor: Any) -> None:
    with pytest.raises(icesql.Error):
        cursor.fetchone()
    cursor.execute(QUERY)
    assert [cursor.fetchone() for _ in range(4)] == ROWS
    assert cursor.fetchone() is None
    assert cursor.fetchone() is None


def test_fetchmany_follows_arraysize(cursor: Any) -> None:
    with pytest.raises(icesql.Error):
        cursor.fetchmany(4)
    assert cursor.arraysize == 1
    cursor.execute(QUERY)
    assert cursor.fetchmany() == ROWS[:1]
    cursor.arraysize = 2
    assert cursor.fetchmany() == ROWS[1:3]
    assert cursor.fetchmany(10) == ROWS[3:]
    assert cursor.fetchmany(10) == []


def test_fetchall_gives_what_is_left(cursor: Any) -> None:
    with pytest.raises(icesql.Error):
        cursor.fetchall()
    cursor.execute(QUERY)
    cursor.fetchone()
    assert cursor.fetchall() == ROWS[1:]
    assert cursor.fetchall() == []


def test_a_cursor_is_an_iterator(cursor: Any) -> None:
    assert list(cursor.execute(QUERY)) == ROWS
    with pytest.raises(StopIteration):
        next(cursor)


def test_fetching_after_a_statement_without_rows_is_an_error(cursor: Any) -> None:
    cursor.execute("SET TIME ZONE 'UTC'")
    with pytest.raises(icesql.Error):
        cursor.fetchall()


def test_execute_replaces_the_open_result(cursor: Any) -> None:
    cursor.execute(QUERY).fetchone()
    cursor.execute("SELECT 5")
    assert cursor.fetchall() == [(5,)]


def test_a_failed_execute_leaves_the_cursor_usable(cursor: Any) -> None:
    with pytest.raises(icesql.ProgrammingError):
        cursor.execute("SELECT nothing FROM shop.customers")
    assert cursor.execute(QUERY).fetchall() == ROWS


def test_parameters_are_values_never_text(cursor: Any) -> None:
    sql = "SELECT id FROM shop.customers WHERE name = ?"
    assert cursor.execute(sql, ["Ada"]).fetchall() == [(0,)]
    assert cursor.execute(sql, ("Ada' OR '1' = '1",)).fetchall() == []
    assert cursor.execute(sql, [None]).fetchall() == []
    with pytest.raises(icesql.ProgrammingError):
        cursor.execute(sql, [])
    with pytest.raises(icesql.ProgrammingError):
        cursor.execute(sql, ["Ada", "Grace"])


def test_executemany_of_a_query_is_refused_or_runs_the_last(cursor: Any) -> None:
    # PEP 249 leaves executemany undefined for statements that give rows.
    with pytest.raises((icesql.NotSupportedError, icesql.ProgrammingError)):
        cursor.executemany("SELECT * FROM shop.customers WHERE id = ?", [[0], [1]])


def test_setinputsizes_and_setoutputsize_do_nothing(cursor: Any) -> None:
    cursor.setinputsizes((25,))
    cursor.setoutputsize(1000)
    cursor.setoutputsize(2000, 0)
    assert cursor.execute(QUERY).fetchall() == ROWS


def test_none_is_null(cursor: Any) -> None:
    assert cursor.execute("SELECT NULL").fetchall() == [(None,)]


def test_cursors_of_one_connection_hold_results_of_their_own(connection: Any) -> None:
    first, second = connection.cursor(), connection.cursor()
    first.execute(QUERY)
    assert first.fetchone() == ROWS[0]
    second.execute(QUERY)
    assert second.fetchmany(2) == ROWS[:2]
    assert first.fetchall() == ROWS[1:]
    assert second.fetchall() == ROWS[2:]


def test_threads_may_share_the_module(warehouse: Path) -> None:
    answers: list[Any] = []

    def run() -> None:
        with icesql.connect(warehouse=str(warehouse)) as connection:
            answers.append(connection.execute(QUERY).fetchall())

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert answers == [ROWS] * 6
