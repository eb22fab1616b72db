"""Summaries of the partition values of each field in a whole manifest.

Source: Iceberg spec, "Manifest Lists"; Java ``PartitionSummary``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.bound_values import encode_bound
from icesql.iceberg.manifest.manifest import FieldSummary
from icesql.iceberg.manifest.partition_values import UNSTORED


def field_summaries(
    partitions: Iterable[tuple[Any, ...]], types: Sequence[t.IcebergType]
) -> tuple[FieldSummary, ...]:
    """A summary for each partition field of a spec over the tuples of all entries.

    Bounds are exact and leave out nulls and NaN; they are None where nothing else is there.
    """
    distinct = set(partitions)
    return tuple(
        _summary(type, {each[place] for each in distinct}) for place, type in enumerate(types)
    )


def _summary(type: t.IcebergType, values: set[Any]) -> FieldSummary:
    has_null = None in values or UNSTORED in values
    has_nan = any(each.__class__ is float and each != each for each in values)
    known = [each for each in values if each is not None and each is not UNSTORED and each == each]
    if not known:
        return FieldSummary(has_null, has_nan)
    lower, upper = min(known), max(known)
    if t.is_floating(type):
        # Zeros of both signs are one value here, and two in Java's order.
        lower, upper = lower or -0.0, upper or 0.0
    return FieldSummary(has_null, has_nan, encode_bound(type, lower), encode_bound(type, upper))
