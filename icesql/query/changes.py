"""Compare two states of a table: the scan of a range of changes, and DIFF SUMMARY."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.catalog.current_metadata import read_metadata
from icesql.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    SnapshotNotFoundError,
    StorageError,
    found_at,
    similar_names,
)
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.iceberg.metadata.table_metadata import united_partition_type
from icesql.iceberg.schema import BLAME_COLUMNS, CHANGE_COLUMNS, Schema
from icesql.query.show_request import Rows, ShowRequest
from icesql.query.show_table import partition_rows, partition_text, spec_text, table_properties
from icesql.query.snapshot_selection import (
    SelectedSnapshot,
    at_instant,
    instant_text,
    select_snapshot,
)
from icesql.scan.changes import (
    APPEND,
    ChangeScan,
    Commit,
    ancestors,
    change_schema,
    snapshots_after,
)
from icesql.scan.plan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.time_travel import AsOf, AtTime, TimeTravel

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.metadata.table_metadata import TableMetadata
    from icesql.iceberg.schema import Schema
    from icesql.iceberg.types import NestedField
    from icesql.sql.time_travel import ChangeRange


# ------------------------------------------------------------------ common schema
# Neither of the two states has to be the later one.


# A type and a wider one: the type promotions of the specification that change what values mean.
_WIDER = (
    (t.DateType, t.TimestampType),
    (t.DateType, t.TimestampNanoType),
    (t.UnknownType, t.IcebergType),
)


def common_schema(wanted: Schema, other: Schema) -> Schema:
    """The columns of ``wanted`` in types that hold the values of both, matched by field ids.

    A column that is missing or may be NULL in the other state is not required.
    """
    if wanted == other:
        return wanted
    fields = _fields(wanted.fields, other.fields)
    return Schema(fields, wanted.schema_id, wanted.identifier_field_ids)


def _fields(
    wanted: tuple[t.NestedField, ...], other: tuple[t.NestedField, ...]
) -> tuple[t.NestedField, ...]:
    known = {each.field_id: each for each in other}
    made = []
    for field in wanted:
        also = known.get(field.field_id)
        if also is None:
            made.append(replace(field, required=False))
        else:
            kind = _wider(field.type, also.type)
            made.append(replace(field, type=kind, required=field.required and also.required))
    return tuple(made)


def _wider(own: t.IcebergType, other: t.IcebergType) -> t.IcebergType:
    match own, other:
        case t.StructType(), t.StructType():
            return t.StructType(_fields(own.fields, other.fields))
        case t.ListType(), t.ListType():
            required = own.element_required and other.element_required
            kind = _wider(own.element, other.element)
            return replace(own, element=kind, element_required=required)
        case t.MapType(), t.MapType():
            required = own.value_required and other.value_required
            key, value = _wider(own.key, other.key), _wider(own.value, other.value)
            return replace(own, key=key, value=value, value_required=required)
        case _:
            pairs = any(isinstance(own, a) and isinstance(other, b) for a, b in _WIDER)
            return other if pairs or is_widening(own, other) else own


# ------------------------------------------------------------------ changes of a range


def change_scan(
    table: Table, wanted: ChangeRange, query: QueryContext
) -> tuple[TableScan, SelectedSnapshot]:
    """The scan of the changes in the schema of the range's end, and the selected end.

    Raises SnapshotNotFoundError if snapshots of the range are expired or its end does not descend
    from its start, ColumnNotFoundError for a key, UnsupportedSqlError for updates without keys.
    """
    end = select_snapshot(table, _moment(wanted.end, wanted.includes_end, query), query)
    last = end.snapshot
    if not wanted.includes_end and not isinstance(wanted.end, AsOf | AtTime | None):
        last = _parent(table, last)
    commits: tuple[Commit, ...]
    if wanted.direct:
        first = select_snapshot(table, at_instant(wanted.start, query), query)
        same = first.snapshot and last and first.snapshot.snapshot_id == last.snapshot_id
        commits = () if same or last is None else (Commit(first.snapshot, last),)
        end = replace(end, schema=common_schema(end.schema, first.schema))
    elif wanted.blame:
        commits = _known(table, last)
    else:
        commits = _commits(table, wanted, last, query)
    updates = wanted.compute_updates
    keys = _keys(end.schema, commits, wanted) if updates or wanted.blame else ()
    if wanted.blame:
        updates = bool(keys)  # by row ids, every changed row would have to be read
        end = replace(end, note=_blame_note(table, commits, end.note))
    changes = ChangeScan(commits, wanted.deduplication, updates, keys)
    columns: tuple[NestedField, ...] = CHANGE_COLUMNS
    if wanted.direct:
        columns = CHANGE_COLUMNS[:1]
    elif wanted.blame:
        columns = (*CHANGE_COLUMNS, *BLAME_COLUMNS)
    schema = change_schema(end.schema, columns)
    return TableScan(table, last, schema, schema, ref=end.ref, changes=changes), end


def _commits(
    table: Table, wanted: ChangeRange, last: Snapshot | None, query: QueryContext
) -> tuple[Commit, ...]:
    history = _history(table, wanted, last, query)
    before = None
    if history and history[0].parent_snapshot_id is not None:
        before = table.metadata.snapshot(history[0].parent_snapshot_id)
    made = []
    for each in history:
        if not wanted.appends_only or (each.operation or "").lower() == APPEND:
            made.append(Commit(before, each))
        before = each
    return tuple(made)


def _known(table: Table, last: Snapshot | None) -> tuple[Commit, ...]:
    """All known commits; for the first one only its rows if its parent is expired."""
    history = ancestors(table, last)
    if not history:
        return ()
    first = Commit(None, history[0], first_known=history[0].parent_snapshot_id is not None)
    return (first, *(Commit(*pair) for pair in pairwise(history)))


def _blame_note(table: Table, commits: tuple[Commit, ...], note: str | None) -> str | None:
    first = commits[0] if commits else None
    if first is None or not first.first_known or first.after is None:
        return note
    expired = (
        f"{table.name}: commits before snapshot {first.after.snapshot_id} are expired; rows that "
        'were there by then are "present"'
    )
    return expired if note is None else f"{note}; {expired}"


def _history(
    table: Table, wanted: ChangeRange, last: Snapshot | None, query: QueryContext
) -> tuple[Snapshot, ...]:
    """The snapshots of the range, oldest first."""
    if last is None:
        return ()
    start = _moment(wanted.start, not wanted.includes_start, query)
    if start is None:
        return _from_the_beginning(table, last)
    try:
        first = select_snapshot(table, start, query).snapshot
    except SnapshotNotFoundError:
        # The table was empty before the first commit, if that commit is still known.
        log = table.metadata.snapshot_log
        if not isinstance(start, AsOf) or any(
            entry.timestamp_ms <= start.epoch_us // 1000 for entry in log
        ):
            raise
        return _from_the_beginning(table, last)
    assert first is not None
    if wanted.includes_start and not isinstance(start, AsOf):
        if first.parent_snapshot_id is None:
            return _from_the_beginning(table, last)
        after = snapshots_after(table, first.parent_snapshot_id, last)
        if not after or after[0].snapshot_id != first.snapshot_id:
            snapshots_after(table, first.snapshot_id, last)  # raises the reason
        if table.metadata.snapshot(first.parent_snapshot_id) is None:
            raise _expired(table, first)
        return after
    return snapshots_after(table, first.snapshot_id, last)


def _from_the_beginning(table: Table, last: Snapshot) -> tuple[Snapshot, ...]:
    history = ancestors(table, last)
    if history[0].parent_snapshot_id is not None:
        raise _expired(table, history[0])
    return history


def _expired(table: Table, oldest: Snapshot) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(
        f"snapshot {oldest.parent_snapshot_id}, the state before snapshot {oldest.snapshot_id}",
        table=table.name,
        oldest=str(oldest.snapshot_id),
        hint="it is expired, so what that commit changed is not known",
    )


def _moment(travel: TimeTravel | None, included: bool, query: QueryContext) -> TimeTravel | None:
    """The version; a time as it is, or 1 ms earlier if the bound is exclusive."""
    found = at_instant(travel, query)
    if isinstance(found, AsOf) and not included:
        return replace(found, epoch_us=(found.epoch_us // 1000) * 1000 - 1)
    return found


def _parent(table: Table, snapshot: Snapshot | None) -> Snapshot | None:
    if snapshot is None or snapshot.parent_snapshot_id is None:
        return None
    found = table.metadata.snapshot(snapshot.parent_snapshot_id)
    if found is None:
        raise _expired(table, snapshot)
    return found


def _keys(schema: Schema, commits: tuple[Commit, ...], wanted: ChangeRange) -> tuple[int, ...]:
    """The columns that identify versions of one row; none if row ids identify them.

    Raises UnsupportedSqlError if there are neither, and ColumnNotFoundError.
    """
    if not wanted.keys:
        states = [each for commit in commits for each in (commit.before, commit.after)]
        has_ids = all(each is None or each.first_row_id is not None for each in states)
        if wanted.blame or not has_ids:
            own = tuple(schema.identifier_field_ids)
            if own or wanted.blame:
                return own
            raise unsupported(
                "updates of a table without row ids and without identifier fields",
                wanted.offset,
                "name the columns that tell rows apart: KEYED BY (column, …)",
            )
        return ()
    found = []
    for name in wanted.keys:
        column = schema.find_column(name)
        if column is None:
            names = [each.name for each in schema.fields]
            raise ColumnNotFoundError(
                name, table=None, similar=similar_names(name, names), offset=wanted.offset
            )
        found.append(column.field_id)
    return tuple(found)


# ------------------------------------------------------------------ DIFF SUMMARY
# It reads manifests, but no data files.


_NO_COUNTS: Final = (None,) * 6
# Counts of one partition: files, records, and records of delete files.
_Counts = tuple[int, int, int]
_NOTHING: Final[_Counts] = (0, 0, 0)


def diff_summary(request: ShowRequest) -> Rows:
    """One row for each difference.

    ``part`` is "snapshot", "schema", "partition spec", "property", "total" or "partition". NULL
    before or after means that it did not exist then. Raises the errors of loading the table,
    selecting its snapshots and reading manifests.
    """
    reference, query = request.reference, request.query
    wanted = reference.changes
    assert wanted is not None
    table = request.table()
    with found_at(reference.offset):
        before, after = (select_snapshot(table, at, query) for at in (wanted.start, wanted.end))
    rows: Rows = list(_snapshots(before, after, query))
    rows += _schemas(before.schema, after.schema)
    old, new = (_metadata_at(table, each.snapshot) for each in (before, after))
    request.notes += tuple(each.note for each in (before, after) if each.note is not None)
    if old is None or new is None:
        gone = (before if old is None else after).snapshot
        which = "before the first commit" if gone is None else f"of snapshot {gone.snapshot_id}"
        request.notes += (
            f"{table.name}: properties and partition spec {which} are no longer known",
        )
    else:
        rows += _differing("partition spec", {"": spec_text(old)}, {"": spec_text(new)})
        properties = [table_properties(replace(table, metadata=each)) for each in (old, new)]
        for each in properties:
            each.pop("current-snapshot-id", None)
        rows += _differing("property", *properties)
    rows += _partitions(table, before.snapshot, after.snapshot, query)
    return rows


def _snapshots(
    before: SelectedSnapshot, after: SelectedSnapshot, query: QueryContext
) -> Iterator[tuple[Any, ...]]:
    def properties(found: SelectedSnapshot) -> dict[str, str]:
        snapshot = found.snapshot
        if snapshot is None:
            return {}
        parts = {
            "id": str(snapshot.snapshot_id),
            "committed": instant_text(snapshot.timestamp_ms, query),
        }
        return parts if snapshot.operation is None else {**parts, "operation": snapshot.operation}

    yield from _differing("snapshot", properties(before), properties(after))


def _schemas(before: Schema, after: Schema) -> Iterator[tuple[Any, ...]]:
    """Compare columns by id: a renamed column is one row, with both names."""
    old, new = before.field_by_id, after.field_by_id
    for field_id in sorted({*old, *new}):
        texts: list[str | None] = []
        for schema, fields in ((before, old), (after, new)):
            column = fields.get(field_id)
            if column is None:
                texts.append(None)
                continue
            kind = str(column.type).partition("<")[0]  # nested fields have rows of their own
            required = " required" if column.required else ""
            texts.append(f"{schema.name_by_id[field_id]} {kind}{required}")
        if texts[0] != texts[1]:
            name = (after if field_id in new else before).name_by_id[field_id]
            yield "schema", name, *texts, *_NO_COUNTS


def _differing(
    part: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[tuple[Any, ...]]:
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old != new:
            yield part, name or None, old, new, *_NO_COUNTS


def _metadata_at(table: Table, snapshot: Snapshot | None) -> TableMetadata | None:
    """The metadata in which a snapshot was current; None if its file is not known or deleted."""
    metadata = table.metadata
    if snapshot is None:
        return None
    if snapshot.snapshot_id == metadata.current_snapshot_id:
        return metadata
    times = [each.timestamp_ms for each in metadata.metadata_log]
    if snapshot.timestamp_ms not in times:
        return None
    place = len(times) - 1 - times[::-1].index(snapshot.timestamp_ms)
    try:
        found = read_metadata(metadata.metadata_log[place].metadata_file, table.storage)
    except (StorageError, CorruptFileError):
        return None
    return found if snapshot.snapshot_id in found.snapshots else None


def _partitions(
    table: Table, before: Snapshot | None, after: Snapshot | None, query: QueryContext
) -> Iterator[tuple[Any, ...]]:
    old, new = (_counts(table, each, query) for each in (before, after))
    totals = [
        tuple(sum(column) for column in zip(_NOTHING, *counts.values(), strict=True))
        for counts in (old, new)
    ]
    if totals[0] != totals[1]:
        yield "total", None, None, None, *_paired(*totals)
    if not united_partition_type(table.metadata).fields:
        return
    for name in {**old, **new}:
        counts = old.get(name, _NOTHING), new.get(name, _NOTHING)
        if counts[0] != counts[1]:
            yield "partition", name, None, None, *_paired(*counts)


def _paired(before: tuple[int, ...], after: tuple[int, ...]) -> Iterator[int]:
    for pair in zip(before, after, strict=True):
        yield from pair


def _counts(
    table: Table, snapshot: Snapshot | None, query: QueryContext
) -> Mapping[str | None, _Counts]:
    metadata = table.metadata
    if snapshot is None:
        return {}
    has_partitions = bool(united_partition_type(metadata).fields)
    found: dict[str | None, _Counts] = {}
    for row in partition_rows(table, snapshot, query):
        name, counted = None, row
        if has_partitions:
            name, counted = partition_text(row[0], row[1], metadata), row[2:]
        records, files, _, positions, _, equalities = counted[:6]
        known = found.get(name, _NOTHING)
        found[name] = (known[0] + files, known[1] + records, known[2] + positions + equalities)
    return found
