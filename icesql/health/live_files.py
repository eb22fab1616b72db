"""The live files of a table as columns: sizes, partitions, and bounds of columns as numbers.

Reads manifests into numbers, 16 bytes for each file and column: a table may have 50,000 files with
bounds of 100 columns, which would be gigabytes of objects as rows of ``readable_metrics``. For very
many files the bounds are those of a sample, since decoding ten million takes long.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import nan
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error, QueryCancelledError
from icesql.frozen import Frozen
from icesql.iceberg.bounds import Decode, bound_decoder, decode_bounds
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.schema import POS, Schema
from icesql.iceberg.types import DoubleType, FloatType
from icesql.maintain.deletes.task import divide
from icesql.maintain.live_rows import is_read, live_rows
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.plan import TableScan, scan_context
from icesql.scan.spec_scan import source_schema
from icesql.scan.tasks import FileScanTask
from icesql.write.options import partition_path

Place = tuple[int, tuple[Any, ...]]

_MOST_SAMPLED: Final = 8_000


class ColumnBounds(Struct):
    """The bounds of a column as numbers, an item for each sampled file; NaN if it has none.

    Of these files, ``missing`` have values but no lower bound; ``counted`` of those have a value
    count of the column. ``nan_unknown`` have floating-point bounds and no NaN count.
    """

    low: array[float] = field(default_factory=lambda: array("d"))
    high: array[float] = field(default_factory=lambda: array("d"))
    missing: int = 0
    counted: int = 0
    nan_unknown: int = 0


class LiveFiles(Struct):
    """``bytes`` and ``partitions`` have an item for each data file.

    A partition is an index into ``places``. ``sampled`` has the partition of each file in
    ``bounds``. ``equality`` counts the equality delete files among ``deletes``.
    ``spread`` is the number of partitions in each data manifest of the table's current spec.
    ``seconds`` is how long reading the manifests took.
    """

    bytes: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("l"))
    places: list[Place] = field(default_factory=list)
    bounds: dict[str, ColumnBounds] = field(default_factory=dict)
    sampled: array[int] = field(default_factory=lambda: array("l"))
    manifests: tuple[ManifestFile, ...] = ()
    spread: list[int] = field(default_factory=list)
    rows: int = 0
    deletes: int = 0
    deleted_rows: int = 0
    equality: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """The number of data files."""
        return len(self.bytes)

    def whole(self, count: int) -> int:
        """Extrapolate ``count`` files of the sample to all files."""
        sampled = len(self.sampled)
        return count if sampled == self.count else round(count * self.count / max(sampled, 1))


def live_files(table: Table, columns: Iterable[str], query: QueryContext) -> LiveFiles:
    """The files of the current snapshot, with the bounds of these top-level columns.

    Raises errors of the store, and CorruptFileError.
    """
    metadata = table.metadata
    found = LiveFiles(bounds={name: ColumnBounds() for name in columns})
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return found
    wanted = {
        each.name: _Wanted(
            each.field_id,
            bound_decoder(each.type),
            isinstance(each.type, FloatType | DoubleType),
        )
        for each in metadata.schema.fields
        if each.name in found.bounds
    }
    reader = ManifestReader(table, query)
    start = time.perf_counter()
    found.manifests = reader.manifests_of(snapshot)
    data = [each for each in found.manifests if each.content is ManifestContent.DATA]
    files = sum(each.live_files for each in data)
    # One of so many files, or of so many partitions, is in the sample.
    step = max(1, files // _MOST_SAMPLED)
    numbers: dict[Place, int] = {}
    for manifest, entries in reader.entries_of(found.manifests):
        chosen = _add(found, entries, numbers)
        if chosen and manifest.partition_spec_id == metadata.default_spec_id:
            found.spread.append(len(set(found.partitions[-len(chosen) :])))
        _add_bounds(found, entries, chosen, wanted, step)
    found.places = list(numbers)
    found.seconds = time.perf_counter() - start
    return found


def place_text(table: Table, place: Place) -> str:
    """A partition as in folder names, such as ``day=2026-01-02/region=eu``."""
    spec_id, values = place
    metadata = table.metadata
    spec = metadata.specs[spec_id]
    schema: Schema = source_schema(spec, metadata.schema, metadata)
    stored = tuple(None if value is UNSTORED else value for value in values)
    return partition_path(spec, schema, partition_types(spec, schema), stored)


class _Wanted(Frozen):
    field_id: int
    decode: Decode
    has_nan: bool


def _add(found: LiveFiles, entries: ManifestEntries, numbers: dict[Place, int]) -> list[int]:
    """Add the entries of a manifest; return the indices of its live data files."""
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
    return chosen


def _add_bounds(
    found: LiveFiles,
    entries: ManifestEntries,
    chosen: list[int],
    wanted: Mapping[str, _Wanted],
    step: int,
) -> None:
    """Add the bounds of all files, or of those in each ``step``-th partition or position."""
    first = len(found.partitions) - len(chosen)
    places = found.partitions[first:]
    if step > 1:
        by_place = any(entries.partition[index] for index in chosen[:1])
        kept = [
            number
            for number, place in enumerate(places)
            if (place if by_place else first + number) % step == 0
        ]
        chosen, places = [chosen[each] for each in kept], array("l", (places[n] for n in kept))
    found.sampled.extend(places)
    if not chosen:
        return
    values = _Values(entries, chosen, step > 1)
    for name, each in wanted.items():
        lows = values.of("lower_bounds", each.field_id)
        bounds = found.bounds[name]
        low = decode_bounds(each.decode, lows)
        bounds.low.extend(_on_line(low))
        high = decode_bounds(each.decode, values.of("upper_bounds", each.field_id))
        bounds.high.extend(_on_line(high))
        if None in low:
            counts = "null_value_counts", "nan_value_counts", "value_counts"
            known = (values.of(count, each.field_id) for count in counts)
            rows = (entries.record_count[index] for index in chosen)
            for value, count, nulls, nan, counted in zip(low, rows, *known, strict=True):
                # Bounds do not cover NULL and NaN.
                if value is None and (nulls or 0) + (nan or 0) < count:
                    bounds.missing += 1
                    bounds.counted += counted is not None
        if each.has_nan:
            nans = values.of("nan_value_counts", each.field_id)
            bounds.nan_unknown += sum(
                nan is None and value is not None for nan, value in zip(nans, lows, strict=True)
            )


class _Values(Struct):
    """The values of a column in the chosen entries of a manifest.

    ``one_by_one`` decodes only the maps of chosen entries; decoding a column of all entries is
    faster if all are chosen.
    """

    entries: ManifestEntries
    chosen: list[int]
    one_by_one: bool
    maps: dict[str, list[Mapping[int, Any]]] = {}

    def of(self, name: str, field_id: int) -> list[Any]:
        """The items of one map, such as "lower_bounds"; None for a file without."""
        column = self.entries.maps.get(name)
        if column is None:
            return [None] * len(self.chosen)
        if self.one_by_one:
            maps = self.maps.get(name)
            if maps is None:
                maps = self.maps[name] = [column[index] or {} for index in self.chosen]
            return [each.get(field_id) for each in maps]
        values = column.values_of(field_id)
        if len(self.chosen) < self.entries.count:
            return [values[index] for index in self.chosen]
        return values


def _on_line(values: Sequence[Any]) -> Iterable[float]:
    # Numbers of one size are decoded as a tuple of numbers, which need no conversion.
    return values if isinstance(values, tuple) else map(_line, values)


def _line(value: Any) -> float:
    """A bound in internal form as a number; for a string by its first bytes."""
    match value:
        case None:
            return nan
        case int() | float() | Decimal():
            return float(value)
        case bytes():
            return _first_bytes(value)
        case str():
            return _first_bytes(value[:8].encode())
        case _:
            return _first_bytes(str(value).encode())


def _first_bytes(value: bytes) -> float:
    return float(int.from_bytes(value[:8].ljust(8, b"\0"), "big"))


# ------------------------------------------------------------------ rows of the files


# Limit for data files whose keys are read; beyond it counts are unknown.
_MOST_BYTES: Final = 8 << 30
_ROWS_OF_MEMORY: Final = 32

Deletes: TypeAlias = tuple[DataFile, ...]


class LiveRows:
    """Reads files of ``table``; counts are None if a file cannot be read, or there are too many."""

    def __init__(self, table: Table, query: QueryContext) -> None:
        self._query = query
        schema = table.metadata.schema
        self._context = scan_context(TableScan(table, None, schema, Schema((POS,))))
        self._left = _MOST_BYTES

    def count(self, files: Sequence[tuple[DataFile, Deletes]]) -> int | None:
        """The number of live rows in all of the files."""
        tasks = [FileScanTask(each, 0, each.file_size_in_bytes, gone) for each, gone in files]
        most = max(self._query.settings.memory_limit // _ROWS_OF_MEMORY, 1 << 16)
        total = 0
        try:
            for numbers in divide(tasks, 1, most):
                part = [tasks[each] for each in numbers]
                self._left -= sum(each.length for each in part if is_read(each))
                if self._left < 0:
                    return None
                total += live_rows(part, self._context, self._query)
        except QueryCancelledError:
            raise
        except Error:
            return None
        return total

    def back(self, files: Sequence[tuple[DataFile, Deletes, Deletes]]) -> int | None:
        """How many more rows are live with the second deletes of each file than with the first."""
        lived = self.count([(file, were) for file, were, _ in files])
        live = None if lived is None else self.count([(file, are) for file, _, are in files])
        return None if live is None or lived is None else live - lived
