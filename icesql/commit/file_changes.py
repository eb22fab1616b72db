"""The changes that a commit makes: to the files of a branch, to columns with them, to metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypedDict

from msgspec import field
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit, is_same, now_ms, refreshed
from icesql.commit.branches import Branch
from icesql.commit.requests import changes_nothing, document_of
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata, parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.schema import Schema

# ------------------------------------------------------------------ metadata only


# The result of a commit.


class CommitResult(Frozen):
    """The table after a commit.

    ``snapshot_id`` and ``summary`` (with its "operation") are those of the new snapshot; None and
    empty if the commit added none, or there was nothing to commit.
    """

    table: Table
    snapshot_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata_location(self) -> str:
        """The metadata file of the table after the commit."""
        return self.table.metadata_location


MakeUpdates = Callable[[TableMetadata], Sequence[Update]]


def change_table(
    catalog: Catalog,
    table: Table,
    make_updates: MakeUpdates,
    *,
    files: Sequence[str] = (),
    query: QueryContext | None = None,
) -> CommitResult:
    """Apply the updates that ``make_updates`` returns for the table's metadata, in one commit.

    It is called again with the new metadata whenever another writer was first, so it must depend
    only on its argument; it may raise to refuse the change. Without updates nothing is committed.
    ``files`` are files that the updates name; the caller writes them, and removes them on failure.
    Raises as ``commit_append`` does.
    """
    change = _MetadataChange(make_updates, tuple(files))
    return CommitResult(commit(catalog, table, change, query or QueryContext()))


class _MetadataChange(Frozen):
    """An operation without a snapshot; it can be made again from any later state of the table."""

    make: MakeUpdates
    files: tuple[str, ...]
    snapshot_id: None = None
    reapplies: bool = True

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        updates = tuple(self.make(base.metadata))
        return updates if updates and not changes_nothing(base, updates, now_ms) else ()

    def succeeded(self, table: Table) -> None:
        """Does nothing: there are no files besides the metadata."""

    def failed(self) -> None:
        """Does nothing: there are no files besides the metadata."""


# ------------------------------------------------------------------ columns added with rows
# Another writer may add or rename columns meanwhile. The change is then made again from the new
# schema, and has to give every column the id that it has in the files of the new rows.


# A table after changes that are not yet committed.

# Most attempts to read a table that other writers change meanwhile.
_LOOKS: Final = 20


def applied(table: Table, updates: Sequence[Update], moment: int) -> Table:
    """The table after updates, in memory only. Raises as ``apply_updates``."""
    made = apply_updates(document_of(table), updates, now_ms=moment)
    metadata = parse_metadata(metadata_bytes(made), table.name)
    # The catalog does not know these changes, so it cannot plan scans.
    return replace(table, metadata=metadata, document=made, planning=None)


def as_it_is(catalog: Catalog, table: Table) -> Table:
    """The current table with the JSON of its metadata, whose file may be deleted at any time."""
    for _ in range(_LOOKS):
        found = refreshed(catalog, table)
        try:
            return replace(found, document=document_of(found))
        except StorageError:
            if is_same(refreshed(catalog, table), found):
                raise
    raise CommitConflictError(
        f"{table.name} changes faster than it can be read; run the statement again"
    )


class SchemaChange(Frozen):
    """``make`` returns the updates that add columns to a table; none if it has them already.

    ``planned`` is the schema with which the new files were written.
    """

    make: MakeUpdates
    planned: Schema

    def applied(self, base: Table, moment: int) -> tuple[Table, Sequence[Update]]:
        """The table after the change, in memory, and the updates that make it.

        Raises as ``make``, and CommitConflictError if a column got another id.
        """
        updates = self.make(base.metadata)
        after = applied(base, updates, moment) if updates else base
        given = dict(_paths(after.metadata.schema.fields))
        for path, column in _paths(self.planned.fields):
            other = given.get(path)
            if other is not None and other.field_id != column.field_id:
                raise CommitConflictError(
                    f"the columns of {base.name} changed since the statement looked at them: "
                    f'"{".".join(path)}" has another field id; nothing was changed, run the '
                    "statement again"
                )
        return after, updates


def planned_change(table: Table, make: MakeUpdates) -> tuple[Table, SchemaChange | None]:
    """The table with the columns that ``make`` adds, and the change to commit.

    The change is None if the table has them already. Raises as ``make``.
    """
    updates = make(table.metadata)
    if not updates:
        return table, None
    after = applied(table, updates, max(now_ms(), table.metadata.last_updated_ms))
    return after, SchemaChange(make, after.metadata.schema)


def _paths(
    fields: Sequence[t.NestedField], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], t.NestedField]]:
    """Every field with its path: lower-case names from the outermost field."""
    for column in fields:
        path = (*before, column.name.lower())
        yield path, column
        yield from _paths(t.children(column.type), path)


# ------------------------------------------------------------------ files


class FileChanges(Frozen, dict=True):
    """Data files and delete files to add to a branch and to remove from it.

    ``operation`` is the snapshot's operation: append, overwrite, delete or replace.
    ``sequence_number`` is the data sequence number that rewritten data keeps; None for new rows.
    ``delete_ages`` are the sequence numbers, by path, of added delete files that rewrite old
    deletes. ``borrowed``: the files to add are part of the table already, so a failed commit keeps
    them. ``rows`` is the change in the number of live rows as the statement counted it; None if it
    did not count. ``deletes_read``: removed position delete files were read, and the added delete
    files contain their positions in live data files. ``converted`` are the paths of removed
    equality delete files whose deletes the added files contain as positions, and of position delete
    files without a position in a live data file. ``schema`` adds columns in the same commit, even
    without files.
    """

    operation: str
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    branch: Branch = MAIN
    summary: Mapping[str, str] = field(default_factory=dict)
    sequence_number: int | None = None
    borrowed: bool = False
    delete_ages: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    deletes_read: bool = False
    converted: frozenset[str] = frozenset()
    schema: SchemaChange | None = None

    @cached_property
    def added_data(self) -> tuple[DataFile, ...]:
        """The data files to add, each path once."""
        return _once(data_of(self.added))

    @cached_property
    def added_deletes(self) -> tuple[DataFile, ...]:
        """The delete files and vectors to add."""
        return _once(each for each in self.added if each.content is not FileContent.DATA)

    @cached_property
    def removed_keys(self) -> frozenset[FileKey]:
        """The keys of the files to remove."""
        return frozenset(map(file_key, self.removed))

    @property
    def has_no_files(self) -> bool:
        """True if no file is added or removed."""
        return not self.added and not self.removed


class ChangeOptions(TypedDict, total=False):
    """The fields of ``FileChanges`` that are those of the statement, with the same meaning."""

    branch: Branch
    rows: int | None
    schema: SchemaChange | None


# The path; for a deletion vector also its offset and size in the Puffin file.
FileKey = tuple[str, int | None, int | None]


def file_key(file: DataFile) -> FileKey:
    """The key that identifies a file in a table."""
    if file.is_deletion_vector:
        return file.path, file.content_offset, file.content_size_in_bytes
    return file.path, None, None


def data_of(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """The data files among these files."""
    return tuple(each for each in files if each.content is FileContent.DATA)


def _once(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    found: dict[FileKey, DataFile] = {}
    for each in files:
        found.setdefault(file_key(each), each)
    return tuple(found.values())
