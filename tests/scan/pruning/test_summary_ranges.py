"""The range of a column by a manifest's summaries holds every value of its files."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.iceberg import types as t
from icesql.iceberg.bounds import encode_bound
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.scan.pruning.file_conditions import ValueRange, summary_ranges
from icesql.scan.spec_scan import SpecScan

_INTS = st.integers(-(1 << 31), (1 << 31) - 1)
_MICROS = st.integers(-(10**16), 10**16)
_CASES = st.one_of(
    st.tuples(st.just(t.INTEGER), st.sampled_from(("identity", "truncate[7]")), st.lists(_INTS)),
    st.tuples(
        st.just(t.DecimalType(38, 2)),
        st.sampled_from(("identity", "truncate[7]")),
        st.lists(st.integers(-(10**37), 10**37).map(lambda n: Decimal(f"{n}E-2"))),
    ),
    st.tuples(st.just(t.STRING), st.sampled_from(("identity", "truncate[2]")), st.lists(st.text())),
    st.tuples(
        st.sampled_from((t.TIMESTAMP, t.TIMESTAMPTZ)),
        st.sampled_from(("identity", "hour", "day", "month", "year")),
        st.lists(_MICROS),
    ),
    st.tuples(
        st.just(t.DATE),
        st.sampled_from(("identity", "day", "month", "year")),
        st.lists(st.integers(-100_000, 100_000)),
    ),
)


def _ranges(kind: t.IcebergType, *fields: tuple[str, list[Any]]) -> dict[int, ValueRange]:
    """The ranges of a column by the summaries of partition values of some transforms of it."""
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField((1,), 1000 + number, text, f"p{number}")
            for number, (text, _) in enumerate(fields)
        ),
    )
    seen = SpecScan.__new__(SpecScan)
    seen.spec = spec
    seen.partition_schema = Schema((t.NestedField(1, "x", kind),))
    results = [parse_transform(text).result_type(kind) for text, _ in fields]
    seen.types = tuple(results)
    summaries = tuple(
        FieldSummary(
            None in values,
            None,
            *(
                encode_bound(result, end(each for each in values if each is not None))
                for end in (min, max)
            ),
        )
        for result, (_, values) in zip(results, fields, strict=True)
    )
    return summary_ranges(ManifestFile("m", partitions=summaries), seen)


@given(_CASES)
def test_every_value_is_in_the_range_of_its_partition_values(
    case: tuple[t.IcebergType, str, list[Any]],
) -> None:
    kind, text, values = case
    if not values:
        return
    transform = parse_transform(text)
    partitions = [transform.apply(each, kind) for each in values]
    if kind == t.INTEGER and min(partitions) < -(1 << 31):
        partitions = [
            each % (1 << 32) - (1 << 32) * (each % (1 << 32) >> 31) for each in partitions
        ]
    for found in _ranges(kind, (text, partitions)).values():
        assert found.low <= min(values) <= max(values) <= found.high
        assert found.nans == t.is_floating(kind)
        assert not found.constant or set(values) == {found.low}


def test_what_old_writers_rounded_up_is_in_the_range() -> None:
    (found,) = _ranges(t.TIMESTAMP, ("hour", [0])).values()
    assert (found.low, found.high) == (-3_600_000_000, 3_600_000_000 - 1)


def test_fields_of_one_column_are_intersected() -> None:
    (found,) = _ranges(t.DATE, ("year", [56]), ("month", [673])).values()
    (month,) = _ranges(t.DATE, ("month", [673])).values()
    assert (found.low, found.high) == (month.low, month.high)


def test_null_and_nan_are_unknown() -> None:
    assert _ranges(t.DOUBLE, ("identity", [1.0, 2.0]))[1] == ValueRange(1.0, 2.0, False, True)
    assert _ranges(t.LONG, ("identity", [1, None]))[1] == ValueRange(1, 1, True, False)
    assert _ranges(t.LONG, ("identity", [1, 1]))[1] == ValueRange(1, 1, False, False, True)


@pytest.mark.parametrize("text", ["bucket[16]", "void"])
def test_other_transforms_say_nothing(text: str) -> None:
    assert _ranges(t.LONG, (text, [3])) == {}
