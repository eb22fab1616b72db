"""Creates a table, staged first so that its data can be written before it becomes visible."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import Conflict, Done, TableChange, Unknown
from icesql.commit.attempts import looks, now_ms, swapped, wait
from icesql.commit.change import CommitResult
from icesql.commit.files import FileChanges
from icesql.commit.outcomes.requests import OpenRequests, Sent, files_of
from icesql.commit.retries import RetryPolicy, check_retries
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.context import Progress, QueryContext
from icesql.errors import CommitConflictError, CommitStateUnknownError, Error, ProgrammingError
from icesql.iceberg.evolution.fresh_ids import with_fresh_ids
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import RESERVED_PROPERTIES, apply_updates
from icesql.iceberg.metadata.changes.requirements import AssertCreate
from icesql.iceberg.metadata.changes.snapshots import snapshot_ids
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import NEWEST_FORMAT, parse_metadata
from icesql.iceberg.new_spec import PartitionRequest, SortRequest, new_sort_order, new_spec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage

_FORMAT: Final = "format-version"
_CODEC: Final = "write.parquet.compression-codec"


class StagedTable(Struct, frozen=True):
    """A table that does not exist yet; ``table`` is its future state, for writing its files."""

    table: Table
    updates: tuple[u.Update, ...]


def stage_table(
    catalog: Catalog,
    identifier: Sequence[str],
    schema: Schema,
    *,
    partitioning: Sequence[PartitionRequest] = (),
    ordering: Sequence[SortRequest] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    location: str | None = None,
) -> StagedTable:
    """Prepare ``create_table``; nothing is written or visible to others before that.

    The ids of ``schema`` only distinguish its fields (and name identifier fields): the table gets
    fresh ones. The property ``format-version``, 1 to 3, is 2 by default. Raises CatalogError if the
    namespace is missing or the table exists; ProgrammingError, TypeMismatchError and
    ColumnNotFoundError for an invalid table definition.
    """
    version = _version(properties)
    own = own_properties(properties)
    check_retries(own)
    fresh = with_fresh_ids(schema)
    made: tuple[u.Update, ...] = (
        u.AssignUuid(str(uuid.uuid4())),
        u.UpgradeFormatVersion(version),
        u.AddSchema(fresh),
        u.SetCurrentSchema(),
        u.AddPartitionSpec(new_spec(fresh, partitioning)),
        u.SetDefaultSpec(),
        u.AddSortOrder(new_sort_order(fresh, ordering)),
        u.SetDefaultSortOrder(),
        u.SetProperties({_CODEC: "zstd", **own}),
    )
    updates_sent = made if location is None else (*made, u.SetLocation(location))
    # Report an invalid definition before the catalog is called.
    apply_updates(None, (*made, u.SetLocation(location or "x")), now_ms=0)
    place = catalog.place_new(identifier, _change(updates_sent, Storage()))
    updates = (*made, u.SetLocation(place.location))
    return StagedTable(_staged(identifier, updates, place.storage), updates)


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
    sent = OpenRequests()
    try:
        if operation is not None:
            updates = (*updates, *operation.updates(table, 1, now_ms()))
        made = _created(catalog, table, _change(updates, table.storage), operation, context, sent)
    except CommitStateUnknownError:
        raise
    except BaseException as error:
        if sent:
            raise _unknown(table, operation, sent) from error
        if operation is not None:
            operation.failed()
        raise
    return CommitResult(made) if operation is None else operation.result(made)


def _created(
    catalog: Catalog,
    table: Table,
    change: TableChange,
    operation: SnapshotOperation | None,
    query: QueryContext,
    sent: OpenRequests,
) -> Table:
    """Send the creation, and return the table once it exists.

    Raises CommitConflictError if another table has its name; and if the outcome of requests is
    still open, which are in ``sent`` then.
    """
    policy = RetryPolicy.of(table.metadata.properties)
    for attempt in count(1):
        query.report(Progress("committing", attempt))
        outcome = swapped(catalog, table, None, change, sent)
        if isinstance(outcome, Done):
            return _looked_at(catalog, table, change, operation)
        refused = CommitConflictError(f"cannot create {table.name}: {outcome.reason}")
        if isinstance(outcome, Conflict) and not outcome.may_be_ours:
            raise refused
        sent.add(Sent(None, change, outcome), outcome.reason)
        repeats = isinstance(outcome, Unknown) and outcome.is_busy and attempt <= policy.repeats
        for _ in looks(query):
            found = _found(catalog, table)
            if found is not None and sent.are_applied(found):
                return found
            if not sent:
                raise refused
            if repeats and found is None:
                break
        else:
            raise refused
        wait(policy.wait_seconds(attempt), query)
    raise AssertionError


def _found(catalog: Catalog, table: Table) -> Table | None:
    """The table of this name; None if it cannot be loaded."""
    try:
        found = catalog.load(table.identifier)
    except Error:
        return None
    # Catalogs match names case-insensitively, so this may be another table.
    return found if found.identifier == table.identifier else None


def _looked_at(
    catalog: Catalog, table: Table, change: TableChange, operation: SnapshotOperation | None
) -> Table:
    try:
        return catalog.load(table.identifier)
    except BaseException as error:
        raise CommitStateUnknownError(
            f"{table.name} was created, but could not be looked at after it: {error}",
            snapshot_ids=snapshot_ids(change.updates),
            files=files_of(operation),
        ) from error


def _unknown(
    table: Table, operation: SnapshotOperation | None, sent: OpenRequests
) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"the creation of {table.name} was sent and its outcome is unknown: {sent.reason}; look "
        "whether the table is there before running the statement again",
        snapshot_ids=sent.snapshot_ids,
        files=sent.files(operation),
    )


def _change(updates: Sequence[u.Update], storage: Storage) -> TableChange:
    return TableChange(tuple(updates), (AssertCreate(),), storage, now_ms())


def _staged(identifier: Sequence[str], updates: Sequence[u.Update], storage: Storage) -> Table:
    document = apply_updates(None, updates, now_ms=now_ms())
    metadata = parse_metadata(metadata_bytes(document), ".".join(identifier))
    return Table(tuple(identifier), metadata, "", storage)


def _version(properties: Mapping[str, str]) -> int:
    text = properties.get(_FORMAT, "2")
    if text not in {str(each) for each in range(1, NEWEST_FORMAT + 1)}:
        raise ProgrammingError(f"{_FORMAT} is {text!r}; it can be 1, 2 or 3")
    return int(text)
