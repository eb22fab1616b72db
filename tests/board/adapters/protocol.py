"""What every adapter shares: questions in on stdin, answers out on stdout, a JSON object a line.

Runs in the environment of the engine that is asked, so it imports the standard library alone. A
question holds `metadata` (a file), `columns` (as in SELECT), `where` (SQL or null) and
`snapshot_id` (or null). An answer holds `rows`, or `error` with the class and text of what the
engine raised. The first line out gives the versions of the packages.

The other direction: a task holds `folder`, `batches` of rows of COLUMNS to append one after the other,
`partition` (a column or null) and `delete` (a condition or null), and the answer is one row with the
path of the metadata file of the table that the engine wrote.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pathlib
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any

Question = dict[str, Any]
Task = dict[str, Any]

COLUMNS = {"id": "BIGINT", "name": "STRING", "amount": "DECIMAL(9, 2)", "day": "DATE"}


class NotOffered(Exception):
    """The engine's interface has no way to ask this: a refusal, and the message says of what."""


def not_written(task: Task) -> str:
    """For an engine that writes no table in a folder. Raises: NotOffered."""
    raise NotOffered("writing a table in a local folder is not supported by this interface")


def serve(
    packages: Sequence[str],
    answer: Callable[[Question], Iterable[Any]],
    write: Callable[[Task], str] = not_written,
    start: Callable[[], Any] = lambda: None,
) -> None:
    """Answer the questions of stdin until it ends; rows are sequences of Python values.

    `start` runs before the first question, whose time doesn't count it.

    What the engine itself prints goes to stderr.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(**content: Any) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    start()
    reply(versions={each: metadata.version(each) for each in packages})
    for line in sys.stdin:
        try:
            asked = json.loads(line)
            found = [[write(asked)]] if "folder" in asked else answer(asked)
            rows = [[encoded(cell) for cell in row] for row in found]
        except BaseException as error:  # Rust panics derive from BaseException
            reply(error=type(error).__name__, text=" ".join(str(error).split())[:600])
        else:
            reply(rows=rows)


def select(question: Question, relation: str) -> str:
    """The question as SQL that every engine of the board reads."""
    where = f" WHERE {question['where']}" if question["where"] else ""
    return f"SELECT {question['columns']} FROM {relation}{where}"


def values(batch: Iterable[Sequence[str | None]]) -> str:
    """The rows of a batch after VALUES."""

    def literal(column: str, value: str | None) -> str:
        if value is None:
            return "NULL"
        kind = COLUMNS[column]
        return value if kind == "BIGINT" else f"CAST('{value}' AS {kind})"

    return ", ".join(f"({', '.join(map(literal, COLUMNS, row))})" for row in batch)


def arrow_table(batch: Iterable[Sequence[str | None]]) -> Any:
    """The rows of a batch as a pyarrow.Table."""
    import pyarrow as pa

    types = [pa.int64(), pa.string(), pa.decimal128(9, 2), pa.date32()]
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    made = [
        [None if value is None else _PYTHON[kind](value) for value in column]
        for kind, column in zip(COLUMNS.values(), zip(*batch, strict=True), strict=True)
    ]
    return pa.table(made, schema=schema)


_PYTHON: dict[str, Callable[[str], Any]] = {
    "BIGINT": int,
    "STRING": str,
    "DECIMAL(9, 2)": decimal.Decimal,
    "DATE": datetime.date.fromisoformat,
}


def pyiceberg_table(task: Task) -> Any:
    """An empty table of the task in a new SQLite catalog of PyIceberg's."""
    from pyiceberg.catalog.sql import SqlCatalog

    folder = task["folder"]
    catalog = SqlCatalog(
        "board", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=arrow_table([[None] * len(COLUMNS)]).schema)
    if task["partition"]:
        with table.update_spec() as spec:
            spec.add_identity(task["partition"])
    return table


def latest_metadata(folder: str) -> str:
    """The metadata file that an engine wrote last below `folder`."""
    files = pathlib.Path(folder).rglob("*.metadata.json")
    return str(max(files, key=lambda each: each.stat().st_mtime_ns))


def no_time_travel(question: Question) -> None:
    """For an engine without it. Raises: NotOffered."""
    if question["snapshot_id"] is not None:
        raise NotOffered("time travel is not supported by this interface")


def arrow_rows(table: Any) -> list[list[Any]]:
    """The rows of a pyarrow.Table; with pandas installed, nanoseconds are its timestamps."""
    return [list(row) for row in zip(*(each.to_pylist() for each in table.columns), strict=True)]


def encoded(value: Any) -> Any:
    """A value as JSON: scalars as the text that ``judge.py`` compares, NULL as null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "0x" + bytes(value).hex()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return value.isoformat(sep=" ")
    if isinstance(value, (datetime.date, datetime.time, uuid.UUID)):
        return str(value)
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {_key(encoded(key)): encoded(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        return encoded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [encoded(each) for each in value]
    return repr(value) if isinstance(value, float) else str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)
