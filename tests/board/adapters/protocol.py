"""Parts that the adapters share: the text of a question, and the writing of a table.

An adapter has ``answer``, for one that writes tables ``write``, and ``session`` where starting takes
time. It runs in the environment of its engine, and imports that inside these functions.

A question holds `metadata` (a file), `columns` (as in SELECT), `where` (SQL or null) and
`snapshot_id` (or null). A task holds `folder`, `batches` of rows of COLUMNS to append one after the
other, `partition` (a column or null) and `delete` (a condition or null); its answer is one row with
the path of the metadata file of the table that the engine wrote.
"""

from __future__ import annotations

import datetime
import decimal
import importlib
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Question = dict[str, Any]
Task = dict[str, Any]

COLUMNS = {"id": "BIGINT", "name": "STRING", "amount": "DECIMAL(9, 2)", "day": "DATE"}


class NotOffered(Exception):
    """The engine's interface has no way to ask this: a refusal, and the message says of what."""


def opened(adapter: str) -> Callable[[dict[str, Any]], Iterable[Any]]:
    """Start the engine of an adapter; return the function that answers questions and tasks."""
    module = importlib.import_module(adapter)
    getattr(module, "session", lambda: None)()

    def run(asked: dict[str, Any]) -> Iterable[Any]:
        if "folder" not in asked:
            return module.answer(asked)
        if not hasattr(module, "write"):
            raise NotOffered("writing a table in a local folder is not supported by this interface")
        return [[module.write(asked)]]

    return run


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


def written_by_sql(run: Callable[[str], Any], task: Task, name: str, place: str = "") -> str:
    """A task in Spark's SQL."""
    columns = ", ".join(f"{each} {kind}" for each, kind in COLUMNS.items())
    partition = f" PARTITIONED BY ({task['partition']})" if task["partition"] else ""
    run(f"CREATE TABLE {name} ({columns}) USING iceberg{partition}{place}")
    for batch in task["batches"]:
        run(f"INSERT INTO {name} VALUES {values(batch)}")
    if task["delete"]:
        run(f"DELETE FROM {name} WHERE {task['delete']}")
    return latest_metadata(task["folder"])


def written_by_appends(task: Task, append: Callable[[Any, Any], Any]) -> str:
    """A task by ``append``, of Arrow tables to one of PyIceberg's."""
    if task["delete"]:
        raise NotOffered("deleting rows is not supported by this interface")
    table = pyiceberg_table(task)
    for batch in task["batches"]:
        append(arrow_table(batch), table)
    return table.refresh().metadata_location


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
