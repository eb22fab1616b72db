"""Open SQLite files whose texts may be damaged: what is no text is an error of SQLite's own."""

from __future__ import annotations

import sqlite3
from typing import Any


def connect(place: str, **options: Any) -> sqlite3.Connection:
    """As ``sqlite3.connect``; a value of bytes, or a text that is not UTF-8, is a DataError."""
    database: sqlite3.Connection = sqlite3.connect(place, **options)
    database.text_factory = _text
    database.row_factory = _row
    return database


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
