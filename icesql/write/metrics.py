"""The metrics of a data file: which ones the table's properties want, and their values.

They come from the Parquet footer and from counts made while writing. Source: Iceberg's
ParquetMetrics and MetricsConfig; spec, "Data File Fields".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.bounds import (
    encode_bound,
    lower_text,
    minimal_twos_complement,
    upper_bytes,
    upper_text,
)
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.schema import Schema
from icesql.read.formats.parquet import chunk_start
from icesql.write.binary_values import Extent, bounds
from icesql.write.parquet_schema import InnerColumn

# ------------------------------------------------------------------ metrics wanted for each column


_DEFAULT: Final = "write.metadata.metrics.default"
_COLUMN: Final = "write.metadata.metrics.column."
_MOST_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"
_FIELDS: Final = 100
_TRUNCATE: Final = re.compile(r"truncate\(\s*(\d+)\s*\)")


class MetricsMode(Frozen):
    """The metrics to keep of a column: sizes and counts, and bounds of at most ``length``.

    ``length`` is None for full bounds, 0 for none. It counts code points or bytes, and applies to
    strings and binary only.
    """

    counts: bool = True
    length: int | None = 16

    @property
    def has_bounds(self) -> bool:
        """True if bounds are kept."""
        return self.length != 0


NONE: Final = MetricsMode(counts=False, length=0)
COUNTS: Final = MetricsMode(length=0)
FULL: Final = MetricsMode(length=None)
DEFAULT: Final = MetricsMode()


def parse_mode(text: str) -> MetricsMode | None:
    """The mode that ``text`` spells, in any case; None for an unknown one.

    >>> parse_mode("Truncate(5)"), parse_mode("truncate(0)"), parse_mode("half")
    (MetricsMode(counts=True, length=5), None, None)
    """
    plain = text.strip().lower()
    known = {"none": NONE, "counts": COUNTS, "full": FULL}.get(plain)
    found = _TRUNCATE.fullmatch(plain)
    if known is not None or found is None:
        return known
    return MetricsMode(length=int(found[1])) if int(found[1]) > 0 else None


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sorted_ids: Iterable[int] = ()
) -> dict[int, MetricsMode]:
    """The mode of every field at any depth, by field id.

    ``sorted_ids`` are the columns of the sort order whose transforms preserve order: they have
    bounds unless a property of the column says otherwise. An invalid mode is ignored, as in Java.
    """
    given = properties.get(_DEFAULT)
    default = DEFAULT if given is None else parse_mode(given) or DEFAULT
    modes = dict.fromkeys(schema.field_by_id, default)
    most = whole_number(properties.get(_MOST_INFERRED))
    most = _FIELDS if most is None else most
    if given is None and len(schema.field_by_id) > most:
        inferred = set(_first_primitives(schema.fields, most))
        modes = {each: default if each in inferred else NONE for each in modes}
    for each in sorted_ids:
        if each in modes and not modes[each].has_bounds:
            modes[each] = DEFAULT
    for field_id, name in schema.name_by_id.items():
        own = properties.get(_COLUMN + name)
        mode = None if own is None else parse_mode(own)
        if mode is not None:
            modes[field_id] = mode
    return modes


def _first_primitives(fields: tuple[t.NestedField, ...], most: int) -> Iterator[int]:
    """The ids of the first primitive fields, level by level."""
    level, found = list(fields), 0
    while level:
        below: list[t.NestedField] = []
        for each in level:
            inner = t.children(each.type)
            below += inner
            if not inner:
                if found == most:
                    return
                found += 1
                yield each.field_id
        level = below


# ------------------------------------------------------------------ values


class FileMetrics(Frozen):
    """Metrics by field id, as in a DataFile; and the offsets of the row groups."""

    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


def count_nans(table: pa.Table, columns: Sequence[InnerColumn]) -> dict[int, int]:
    """The number of NaN in each of the columns of ``table``, which Parquet does not record.

    NULL does not count.
    """
    return {each.field_id: pc.sum(pc.is_nan(each.of(table))).as_py() or 0 for each in columns}


def file_metrics(
    footer: Any,
    leaf_ids: Sequence[int],
    schema: Schema,
    modes: Mapping[int, MetricsMode],
    nans: Sequence[Mapping[int, int]],
    extents: Sequence[Mapping[int, Extent]] = (),
) -> FileMetrics:
    """The metrics from a ``pyarrow.parquet.FileMetaData``.

    ``leaf_ids`` are the ids of its columns in order, ``nans`` the NaN counts of each row group,
    ``extents`` those of its geometries. A variant has only counts.
    Counts and bounds are for columns outside of lists and maps, and left out for a column
    that a row group has no statistics of.
    """
    sizes, values, nulls, nan_counts = dict[int, int](), dict[int, int](), dict[int, int](), {}
    lower, upper = dict[int, bytes](), dict[int, bytes]()
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    for place, field_id in enumerate(leaf_ids):
        mode = modes.get(field_id, NONE)
        if not mode.counts:
            continue
        chunks = [group.column(place) for group in groups]
        size = sum(chunk.total_compressed_size for chunk in chunks)
        sizes[field_id] = sizes.get(field_id, 0) + size
        if schema.inside_repeated(field_id):
            continue
        statistics = [chunk.statistics for chunk in chunks]
        type = schema.type_of(field_id)
        # pyarrow has no statistics for geometries.
        is_geometry = isinstance(type, t.GeometryType | t.GeographyType)
        if not is_geometry and not all(
            each is not None and each.has_null_count for each in statistics
        ):
            continue
        values[field_id] = sum(chunk.num_values for chunk in chunks)
        found: tuple[bytes | None, bytes | None] | None = None
        if is_geometry:
            own = [each[field_id] for each in extents]
            nulls[field_id] = sum(each.nulls for each in own)
            found = bounds(own) if mode.has_bounds else None
        else:
            nulls[field_id] = sum(each.null_count for each in statistics)
            own_nans = [counts.get(field_id, 0) for counts in nans]
            if field_id in (nans[0] if nans else ()):
                nan_counts[field_id] = sum(own_nans)
            if mode.has_bounds and not isinstance(type, t.VariantType):
                extremes = _extremes(chunks, own_nans)
                found = extremes and _bounds(type, *extremes, mode.length)
        for kept, bound in zip((lower, upper), found or (), strict=False):
            if bound is not None:
                kept[field_id] = bound
    offsets = tuple(chunk_start(group.column(0)) for group in groups if group.num_columns)
    return FileMetrics(sizes, values, nulls, nan_counts, lower, upper, offsets)


def _extremes(chunks: Sequence[Any], nans: Sequence[int]) -> tuple[Any, Any] | None:
    """The least and greatest raw value of a column; None if unknown or if it has no value."""
    least: list[Any] = []
    greatest: list[Any] = []
    for chunk, nan_count in zip(chunks, nans, strict=True):
        statistics = chunk.statistics
        if statistics.has_min_max:
            least.append(_comparable(chunk, statistics.min_raw))
            greatest.append(_comparable(chunk, statistics.max_raw))
        elif statistics.null_count + nan_count < chunk.num_values:
            return None  # values too long for the footer
    if not least:
        return None
    low, high = min(least), max(greatest)
    if isinstance(low, float) and (math.isnan(low) or math.isnan(high)):
        return None
    # The two zeros compare equal: use the negative one below, the positive one above.
    if isinstance(low, float):
        low = -0.0 if low == 0 else low
        high = 0.0 if high == 0 else high
    return low, high


def _comparable(chunk: Any, raw: Any) -> Any:
    """A raw value that compares in its type's order: fixed-length decimals as signed numbers."""
    is_decimal = chunk.statistics.logical_type.type == "DECIMAL"
    return int.from_bytes(raw, "big", signed=True) if is_decimal and isinstance(raw, bytes) else raw


def _bounds(
    type: t.IcebergType, low: Any, high: Any, length: int | None
) -> tuple[bytes | None, bytes | None]:
    """The bounds of a column with these extremes; None for one that there is not."""
    match type:
        case t.StringType():
            try:
                first, last = low.decode("utf-8"), high.decode("utf-8")
            except UnicodeDecodeError:
                return None, None
            cut = last if length is None else upper_text(last, length)
            return lower_text(first, length).encode(), None if cut is None else cut.encode()
        case t.BinaryType():
            return low[:length], high if length is None else upper_bytes(high, length)
        case t.DecimalType():
            return minimal_twos_complement(int(low)), minimal_twos_complement(int(high))
        case _:
            return encode_bound(type, low), encode_bound(type, high)
