"""The live files of a table as columns: sizes, partitions, and where the bounds of columns lie.

Manifests in, numbers out, 16 bytes a file and column: a table may have 50,000 files with the bounds
of 100 columns, which as rows of ``readable_metrics`` are gigabytes of objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import nan
from typing import Any

from msgspec import Struct, field

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import CorruptFileError
from icesql.iceberg.bounds import Decode, bound_decoder, decode_bounds
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import source_schema, typed_specs
from icesql.write.locations import partition_path

Place = tuple[int, tuple[Any, ...]]


class ColumnBounds(Struct):
    """Where the bounds of a column lie on a line, an item for each data file; NaN without one.

    ``missing`` is the number of files with values and without a lower bound, and ``counted`` how
    many of these have a value count of the column.
    """

    low: array[float] = field(default_factory=lambda: array("d"))
    high: array[float] = field(default_factory=lambda: array("d"))
    missing: int = 0
    counted: int = 0


class LiveFiles(Struct):
    """``bytes`` and ``partitions`` have an item for each data file, as all ``bounds`` have.

    A partition is the number of one in ``places``. ``equality`` counts the delete files by
    equality among ``deletes``.
    """

    bytes: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("l"))
    places: list[Place] = field(default_factory=list)
    bounds: dict[str, ColumnBounds] = field(default_factory=dict)
    rows: int = 0
    deletes: int = 0
    deleted_rows: int = 0
    equality: int = 0

    @property
    def count(self) -> int:
        """The number of data files."""
        return len(self.bytes)


def live_files(table: Table, columns: Iterable[str], query: QueryContext) -> LiveFiles:
    """The files of the current snapshot; ``columns`` are top-level ones whose bounds are wanted.

    Raises errors of the store, and CorruptFileError.
    """
    metadata = table.metadata
    found = LiveFiles(bounds={name: ColumnBounds() for name in columns})
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return found
    wanted = {
        each.name: (each.field_id, bound_decoder(each.type))
        for each in metadata.schema.fields
        if each.name in found.bounds
    }
    reader = ManifestReader(table.storage, query, table.name)
    specs = typed_specs(metadata)

    def spec_of(manifest: ManifestFile) -> tuple[PartitionSpec, Sequence[IcebergType]]:
        if manifest.partition_spec_id not in specs:
            number = manifest.partition_spec_id
            raise CorruptFileError(manifest.manifest_path, f"unknown partition spec {number}")
        return specs[manifest.partition_spec_id]

    numbers: dict[Place, int] = {}
    for _, entries in reader.entries_of(reader.manifests_of(snapshot), spec_of):
        _add(found, entries, wanted, numbers)
    found.places = list(numbers)
    return found


def place_text(table: Table, place: Place) -> str:
    """A partition as folders name it, such as ``day=2026-01-02/region=eu``."""
    spec_id, values = place
    metadata = table.metadata
    spec, types = typed_specs(metadata)[spec_id]
    schema: Schema = source_schema(spec, metadata.schema, metadata)
    stored = tuple(None if value is UNSTORED else value for value in values)
    return partition_path(spec, schema, types, stored)


def _add(
    found: LiveFiles,
    entries: ManifestEntries,
    wanted: Mapping[str, tuple[int, Decode]],
    numbers: dict[Place, int],
) -> None:
    chosen = []
    for index, (live, content) in enumerate(zip(entries.live, entries.content, strict=True)):
        if not live:
            continue
        rows = max(entries.record_count[index], 0)
        if content != 0:
            found.deletes += 1
            found.deleted_rows += rows
            found.equality += content == 2
            continue
        chosen.append(index)
        found.rows += rows
        found.bytes.append(entries.file_size_in_bytes[index])
        place = (entries.spec_id, entries.partition[index])
        found.partitions.append(numbers.setdefault(place, len(numbers)))
    if not chosen:
        return
    whole = len(chosen) == entries.count
    for name, (field_id, decode) in wanted.items():
        lows, highs = entries.lower_bound(field_id), entries.upper_bound(field_id)
        if not whole:
            lows, highs = [lows[i] for i in chosen], [highs[i] for i in chosen]
        bounds = found.bounds[name]
        low = decode_bounds(decode, lows)
        bounds.low.extend(map(_line, low))
        bounds.high.extend(map(_line, decode_bounds(decode, highs)))
        if None not in low:
            continue
        nulls, counts = entries.null_value_count(field_id), entries.value_count(field_id)
        nans = entries.nan_value_count(field_id)
        for index, value in zip(chosen, low, strict=True):
            # NULL and NaN have no place between bounds.
            without = (nulls[index] or 0) + (nans[index] or 0)
            if value is None and without < entries.record_count[index]:
                bounds.missing += 1
                bounds.counted += counts[index] is not None


def _line(value: Any) -> float:
    """Where a bound, in internal form, lies on a line; of a text its first bytes count."""
    match value:
        case None:
            return nan
        case int() | float() | Decimal():
            return float(value)
        case bytes():
            return float(int.from_bytes(value[:8].ljust(8, b"\0"), "big"))
        case _:
            return float(int.from_bytes(str(value).encode()[:8].ljust(8, b"\0"), "big"))
