"""SqliteReader: a SQLite file that stays open, for queries that never wait for a writer."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

from icesql.errors import CatalogError

# How long a reader waits for a writer to finish.
_BUSY_SECONDS: Final = 10.0


class WouldWait(Exception):
    """The query would block: repeat it on a thread whose caller can be cancelled."""


class SqliteReader:
    """One connection to a SQLite file, read-only, for one query at a time from any thread.

    Each query sees the state committed when it begins. The file is reopened if another file has
    replaced it, and in a forked process. A file in WAL mode is not kept open: its writers could
    not remove their log.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._opened: tuple[int, ...] | None = None
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """The connection. Raises WouldWait while a writer has the file, and on any failure."""
        with self._lock:
            try:
                yield self._current()
            except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
                self._disconnect()
                raise WouldWait from error

    def close(self) -> None:
        """Close the file, after the running query."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _current(self) -> sqlite3.Connection:
        found = os.stat(self._file)
        identity = os.getpid(), found.st_dev, found.st_ino
        if self._closed:
            raise WouldWait
        if self._database is None or self._opened != identity:
            self._disconnect()
            self._database = connect(self._file, "ro", timeout=0, check_same_thread=False)
            self._opened = identity
            if self._database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                self._disconnect()
                raise WouldWait
        return self._database

    def _disconnect(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()


def connect(file: str, mode: str, **options: Any) -> sqlite3.Connection:
    """As ``sqlite3.connect``; bytes values and text that is not UTF-8 raise DataError.

    The mode is "ro" to read, "rw" to write to a file that exists, "rwc" to any.
    """
    uri = f"file:{quote(file)}?mode={mode}"
    database: sqlite3.Connection = sqlite3.connect(uri, uri=True, **options)
    database.text_factory = _text
    database.row_factory = _row
    return database


@contextmanager
def opened(file: str) -> Iterator[sqlite3.Connection]:
    """A connection to a SQLite file, read-only. Raises CatalogError, also for failing queries."""
    _undo_unfinished(file)
    try:
        with closing(connect(file, "ro", timeout=_BUSY_SECONDS)) as database:
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite's messages contain damaged names without escaping.
        raise CatalogError(f"SQLite catalog {file}: {error}") from error


def _undo_unfinished(file: str) -> None:
    """Roll back the unfinished commit of a writer that was killed.

    SQLite does so on any read, but a read-only connection may not, and fails. If the rollback
    fails here, the next read reports the error.
    """
    if os.path.exists(f"{file}-journal"):
        with (
            suppress(sqlite3.Error),
            closing(connect(file, "rw", timeout=_BUSY_SECONDS)) as database,
        ):
            database.execute("SELECT name FROM sqlite_master").fetchone()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise sqlite3.DataError(f"a text that is not UTF-8: {data[:80]!r}") from error


def _row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    for value in row:
        if isinstance(value, bytes):
            raise sqlite3.DataError(f"bytes where a text belongs: {value[:80]!r}")
    return row
