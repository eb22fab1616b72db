"""What the doctor knows of a table: its metadata tables, asked for once. No data file is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.doctor.live_files import LiveFiles, live_files
from icesql.errors import Error

# Types whose order is that of their bounds, and by which people look rows up.
ORDERED: Final = re.compile(
    r"int|long|bigint|float|double|decimal.*|date|timestamp.*|string|varchar|uuid|time"
)


class Answer(Struct, frozen=True):
    """The rows of a statement and the notes that came with them."""

    rows: Sequence[tuple[Any, ...]]
    notes: Sequence[str] = ()


Ask = Callable[[str], Answer]


class Column(Struct, frozen=True):
    """A column at the top of the schema; ``type`` is Iceberg's name of it."""

    name: str
    type: str
    partitioned: str | None


class Facts(Struct, frozen=True):
    """``name`` is the table as SQL names it; ``manifests`` are (content, bytes)."""

    name: str
    table: Table
    columns: tuple[Column, ...]
    files: LiveFiles
    manifests: tuple[tuple[int, int], ...]
    snapshots: int
    snapshot_id: int | None
    properties: Mapping[str, str]
    log_entries: int

    @property
    def format_version(self) -> int:
        """1 to 3."""
        return int(self.properties.get("format-version", "2"))


def facts_of(name: str, ask: Ask, open_table: Callable[[], Table], query: QueryContext) -> Facts:
    """Ask for all of it. Raises what the statements raise, such as for an unknown table."""
    columns = tuple(
        Column(column, kind, partition)
        for column, kind, _, _, partition, *_ in ask(f"DESCRIBE {name}").rows
    )
    properties = dict(ask(f"SHOW TBLPROPERTIES {name}").rows)
    table = open_table()
    ordered = [each.name for each in columns if ORDERED.fullmatch(each.type.lower())]
    return Facts(
        name,
        table,
        columns,
        live_files(table, ordered, query),
        tuple(ask(f"SELECT content, length FROM {name}.manifests").rows),
        len(table.metadata.snapshots),
        table.metadata.current_snapshot_id,
        properties,
        len(table.metadata.metadata_log),
    )


def try_to_ask(ask: Ask, statement: str) -> Answer | None:
    """The answer, None where the table or catalog refuses the statement."""
    try:
        return ask(statement)
    except Error:
        return None
