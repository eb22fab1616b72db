"""What the doctor knows of a table: its metadata, read once. No data file is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error
from icesql.health.compaction import Compaction
from icesql.health.live_files import LiveFiles, live_files

# Types whose order is that of their bounds, and by which people look rows up.
_ORDERED: Final = re.compile(r"int|long|float|double|decimal.*|date|timestamp.*|string|uuid|time")


class Answer(Struct, frozen=True):
    """The rows of a statement and the notes that came with them."""

    rows: Sequence[tuple[Any, ...]]
    notes: Sequence[str] = ()


Ask = Callable[[str], Answer]


class Column(Struct, frozen=True):
    """A column at the top of the schema; ``type`` is Iceberg's name of it."""

    name: str
    type: str
    is_identity: bool = False


class Facts(Struct, frozen=True):
    """``parts`` are those of the table's name; ``last_good`` snapshots that mend damage."""

    parts: tuple[str, ...]
    table: Table
    columns: tuple[Column, ...]
    files: LiveFiles
    compaction: Compaction
    last_good: frozenset[int] = frozenset()

    @property
    def properties(self) -> Mapping[str, str]:
        """Those of the table."""
        return self.table.metadata.properties

    @property
    def format_version(self) -> int:
        """1 to 3."""
        return self.table.metadata.format_version


def facts_of(
    parts: Sequence[str],
    table: Table,
    query: QueryContext,
    last_good: frozenset[int] = frozenset(),
) -> Facts:
    """Read all of it. Raises errors of stores, and CorruptFileError."""
    metadata = table.metadata
    identity = {
        each.source_id for each in metadata.spec.fields if str(each.transform) == "identity"
    }
    columns = tuple(
        Column(each.name, str(each.type), each.field_id in identity)
        for each in metadata.schema.fields
    )
    ordered = [each.name for each in columns if _ORDERED.fullmatch(each.type)]
    files = live_files(table, ordered, query)
    return Facts(tuple(parts), table, columns, files, Compaction(table, query), last_good)


def try_to_ask(ask: Ask, statement: str) -> Answer | None:
    """The answer, None where the table or catalog refuses the statement."""
    try:
        return ask(statement)
    except Error:
        return None
