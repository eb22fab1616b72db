"""What the doctor knows of a table: its metadata tables, asked for once. No data file is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from icesql.errors import Error


class Answer(Struct, frozen=True):
    """The rows of a statement and the notes that came with them."""

    rows: Sequence[tuple[Any, ...]]
    notes: Sequence[str] = ()


Ask = Callable[[str], Answer]


class DataFile(Struct, frozen=True):
    """A live file; ``content`` is 0 for data, 1 for position and 2 for equality deletes.

    ``metrics`` are its readable metrics by column.
    """

    content: int
    bytes: int
    rows: int
    partition: str
    metrics: Mapping[str, Mapping[str, Any]]


class Column(Struct, frozen=True):
    """A column at the top of the schema; ``type`` is Iceberg's name of it."""

    name: str
    type: str
    partitioned: str | None


class Facts(Struct, frozen=True):
    """``name`` is the table as SQL names it; ``manifests`` are (content, bytes)."""

    name: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    manifests: tuple[tuple[int, int], ...]
    snapshots: int
    snapshot_id: int | None
    properties: Mapping[str, str]
    log_entries: int

    @property
    def data(self) -> list[DataFile]:
        """The data files."""
        return [each for each in self.files if each.content == 0]

    @property
    def deletes(self) -> list[DataFile]:
        """The delete files."""
        return [each for each in self.files if each.content != 0]

    @property
    def format_version(self) -> int:
        """1 to 3."""
        return int(self.properties.get("format-version", "2"))


def facts_of(table: str, ask: Ask) -> Facts:
    """Ask for all of it. Raises what the statements raise, such as for an unknown table."""
    columns = tuple(
        Column(name, kind, partition)
        for name, kind, _, _, partition, *_ in ask(f"DESCRIBE {table}").rows
    )
    partitioned = any(each.partitioned for each in columns)
    place = "CAST(partition AS VARCHAR)" if partitioned else "''"
    properties = dict(ask(f"SHOW TBLPROPERTIES {table}").rows)
    current = properties.get("current-snapshot-id", "none")
    return Facts(
        table,
        columns,
        tuple(
            DataFile(content, size, rows, where or "", metrics or {})
            for content, size, rows, where, metrics in ask(
                f"SELECT content, file_size_in_bytes, record_count, {place}, readable_metrics "
                f"FROM {table}.files"
            ).rows
        ),
        tuple(ask(f"SELECT content, length FROM {table}.manifests").rows),
        len(ask(f"SHOW SNAPSHOTS FROM {table}").rows),
        int(current) if current.lstrip("-").isdigit() else None,
        properties,
        len(ask(f"SELECT file FROM {table}.metadata_log_entries").rows),
    )


def try_to_ask(ask: Ask, statement: str) -> Answer | None:
    """The answer, None where the table or catalog refuses the statement."""
    try:
        return ask(statement)
    except Error:
        return None
