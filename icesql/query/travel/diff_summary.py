"""``DIFF SUMMARY t BETWEEN a AND b``: compare two states of a table by metadata alone.

It reads manifests, but no data files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.catalog.current_metadata import read_metadata
from icesql.errors import CorruptFileError, StorageError, found_at
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.query.show_rows.create_table import spec_text, table_properties
from icesql.query.show_rows.of_table import partition_rows, partition_text
from icesql.query.show_rows.request import Rows, ShowRequest
from icesql.query.snapshot_selection import SelectedSnapshot, instant_text, select_snapshot

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.metadata.table_metadata import TableMetadata
    from icesql.iceberg.schema import Schema

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
