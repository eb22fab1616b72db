"""Creates a table, staged first so that its data can be written before it becomes visible."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import TableChange
from icesql.commit.attempts import now_ms
from icesql.commit.change import CommitResult
from icesql.commit.files import FileChanges
from icesql.commit.outcomes.fixed import Part, commit_fixed
from icesql.commit.retries import check_retries
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.context import QueryContext
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.evolution.fresh_ids import with_fresh_ids
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import RESERVED_PROPERTIES, apply_updates
from icesql.iceberg.metadata.changes.requirements import AssertCreate
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.sort_order import SortOrder
from icesql.iceberg.metadata.table_metadata import NEWEST_FORMAT, parse_metadata
from icesql.iceberg.new_spec import PartitionRequest, SortRequest, new_sort_order, new_spec
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage

_FORMAT: Final = "format-version"
_CODEC: Final = "write.parquet.compression-codec"


class StagedTable(Frozen):
    """A table that does not exist yet; ``table`` is its future state, for writing its files."""

    table: Table
    updates: tuple[u.Update, ...]


def stage_table(
    catalog: Catalog,
    identifier: Sequence[str],
    schema: Schema,
    partitioning: Sequence[PartitionRequest] = (),
    ordering: Sequence[SortRequest] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    *,
    location: str | None = None,
) -> StagedTable:
    """Prepare ``create_table``; nothing is written or visible to others before that.

    The ids of ``schema`` only distinguish its fields (and name identifier fields): the table gets
    fresh ones. The property ``format-version``, 1 to 3, is 2 by default. Raises CatalogError if the
    namespace is missing or the table exists; ProgrammingError, TypeMismatchError and
    ColumnNotFoundError for an invalid table definition.
    """
    version = new_version(properties, 2, 1, "1, 2 or 3")
    own = own_properties(properties)
    check_retries(own)
    fresh = with_fresh_ids(schema)
    made: tuple[u.Update, ...] = (
        u.AssignUuid(str(uuid.uuid4())),
        u.UpgradeFormatVersion(version),
        *definition(fresh, new_spec(fresh, partitioning), new_sort_order(fresh, ordering)),
        u.SetProperties({_CODEC: "zstd", **own}),
    )
    updates_sent = made if location is None else (*made, u.SetLocation(location))
    # Report an invalid definition before the catalog is called.
    apply_updates(None, (*made, u.SetLocation(location or "x")), now_ms=0)
    place = catalog.place_new(identifier, _change(updates_sent, Storage()))
    updates = (*made, u.SetLocation(place.location))
    return StagedTable(_staged(identifier, updates, place.storage), updates)


def definition(schema: Schema, spec: PartitionSpec, order: SortOrder) -> tuple[u.Update, ...]:
    """The updates that give a table its columns, partitioning and order."""
    return (
        u.AddSchema(schema),
        u.SetCurrentSchema(),
        u.AddPartitionSpec(spec),
        u.SetDefaultSpec(),
        u.AddSortOrder(order),
        u.SetDefaultSortOrder(),
    )


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties besides the format version. ProgrammingError for one that cannot be set."""
    own = {key: text for key, text in properties.items() if key != _FORMAT}
    reserved = RESERVED_PROPERTIES.intersection(own)
    if reserved:
        raise ProgrammingError(f"property {min(reserved)} is not one that can be set")
    return own


def create_table(
    catalog: Catalog,
    staged: StagedTable,
    files: Sequence[DataFile] = (),
    *,
    rows: int | None = None,
    query: QueryContext | None = None,
) -> CommitResult:
    """Create a staged table, with its first snapshot if there are ``files``, in one step.

    ``rows`` is the number of rows in the files, if known. Raises CommitConflictError if a table of
    its name was created meanwhile; ``files`` are deleted then, as for any certain failure, and kept
    for CommitStateUnknownError.
    """
    table, context = staged.table, query or QueryContext()
    operation = None
    updates = staged.updates
    if files:
        changes = FileChanges("append", tuple(files), rows=rows)
        operation = SnapshotOperation(table, changes, context)
        try:
            updates = (*updates, *operation.updates(table, 1, now_ms()))
        except BaseException:
            operation.failed()
            raise
    part = Part(table, _change(updates, table.storage), operation, is_new=True)
    made = commit_fixed(catalog, [part], context)
    return CommitResult(made) if operation is None else operation.result(made)


def _change(updates: Sequence[u.Update], storage: Storage) -> TableChange:
    return TableChange(tuple(updates), (AssertCreate(),), storage, now_ms())


def _staged(identifier: Sequence[str], updates: Sequence[u.Update], storage: Storage) -> Table:
    document = apply_updates(None, updates, now_ms=now_ms())
    metadata = parse_metadata(metadata_bytes(document), ".".join(identifier))
    return Table(tuple(identifier), metadata, "", storage)


def new_version(properties: Mapping[str, str], usual: int, least: int, known: str) -> int:
    """The format version that properties give a table. Raises ProgrammingError."""
    text = properties.get(_FORMAT, str(usual))
    if text not in {str(each) for each in range(least, NEWEST_FORMAT + 1)}:
        raise ProgrammingError(f"{_FORMAT} is {text!r}; it can be {known}")
    return int(text)
