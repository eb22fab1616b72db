"""A delete file is left out only when no key of it can be in the data file."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icesql.scan.deletes.delete_overlap import Overlap
from tests.writer.bounds import encode_bound


def described(
    *,
    lower: bytes | None = None,
    upper: bytes | None = None,
    values: int | None = 10,
    nulls: int | None = 0,
    nans: int | None = None,
    field_id: int = 1,
) -> DataFile:
    def of(value: Any) -> dict[int, Any] | None:
        return None if value is None else {field_id: value}

    return DataFile(
        FileContent.DATA, "f", "PARQUET", 0, (), 10, 100,
        value_counts=of(values), null_value_counts=of(nulls), nan_value_counts=of(nans),
        lower_bounds=of(lower), upper_bounds=of(upper),
    )  # fmt: skip


def between(value_type: IcebergType, low: Any, high: Any, **others: Any) -> DataFile:
    return described(
        lower=encode_bound(value_type, low), upper=encode_bound(value_type, high), **others
    )


def kept(
    value_type: IcebergType, delete: DataFile, data: DataFile, *, required: bool = False
) -> bool:
    schema = Schema((NestedField(1, "key", value_type, required=required),))
    (column,) = Overlap(schema).columns_of([1], [delete])
    facts = column.facts_of(data)
    found = column.overlapping(facts, [0]) == [0]
    # The test for all deletes at once may only say yes where each one of them stays.
    assert found or not column.all_overlap(facts, 0)
    return found


def test_disjoint_bounds_exclude_and_touching_ones_do_not() -> None:
    data = between(LONG, 10, 20)
    assert not kept(LONG, between(LONG, 0, 9), data)
    assert not kept(LONG, between(LONG, 21, 30), data)
    assert kept(LONG, between(LONG, 0, 10), data)
    assert kept(LONG, between(LONG, 20, 30), data)


@pytest.mark.parametrize("nulls", [1, None], ids=["some nulls", "unknown"])
def test_nulls_on_both_sides_keep_the_delete(nulls: int | None) -> None:
    far = between(LONG, 100, 200, nulls=nulls)
    assert kept(LONG, far, between(LONG, 1, 2, nulls=nulls))
    assert not kept(LONG, far, between(LONG, 1, 2, nulls=0))
    assert not kept(LONG, between(LONG, 100, 200), between(LONG, 1, 2, nulls=nulls))


def test_a_required_column_has_no_nulls_whatever_counts_are_missing() -> None:
    far, near = between(LONG, 100, 200, nulls=None), between(LONG, 1, 2, nulls=None)
    assert not kept(LONG, far, near, required=True)
    assert kept(LONG, far, near, required=False)


def test_only_nulls_on_one_side_and_none_on_the_other_exclude() -> None:
    only_nulls = described(nulls=10)
    without = between(LONG, 1, 2)
    assert not kept(LONG, only_nulls, without)
    assert not kept(LONG, without, only_nulls)
    assert kept(LONG, only_nulls, between(LONG, 1, 2, nulls=1))
    assert kept(LONG, only_nulls, described(nulls=None, values=None))


def test_missing_bounds_keep_the_delete() -> None:
    whole = between(LONG, 100, 200)
    assert kept(LONG, whole, described(lower=encode_bound(LONG, 1)))
    assert kept(LONG, described(upper=encode_bound(LONG, 1)), whole)
    assert kept(LONG, whole, DataFile(FileContent.DATA, "f", "PARQUET", 0, (), 10, 100))


def test_nan_equals_nan_outside_all_bounds() -> None:
    near, far = (1.0, 2.0), (5.0, 6.0)
    for nans in (1, None):
        data = between(DOUBLE, *near, nans=nans)
        assert kept(DOUBLE, between(DOUBLE, *far, nans=nans), data)
        assert not kept(DOUBLE, between(DOUBLE, *far, nans=0), data)
    assert not kept(DOUBLE, between(DOUBLE, *far, nans=3), between(DOUBLE, *near, nans=0))


def test_the_two_zeros_are_not_held_apart() -> None:
    assert kept(DOUBLE, between(DOUBLE, -0.0, -0.0, nans=0), between(DOUBLE, 0.0, 0.0, nans=0))


def test_nan_in_a_bound_keeps_the_delete() -> None:
    spoilt = described(lower=struct.pack("<d", float("nan")), upper=struct.pack("<d", 2.0), nans=0)
    assert kept(DOUBLE, between(DOUBLE, 5.0, 6.0, nans=0), spoilt)


def test_bounds_written_before_a_promotion_are_read_by_their_length() -> None:
    as_int = described(lower=struct.pack("<i", 1), upper=struct.pack("<i", 2))
    assert not kept(LONG, between(LONG, 5, 6), as_int)
    assert kept(LONG, between(LONG, 2, 6), as_int)
    as_float = described(lower=struct.pack("<f", 1), upper=struct.pack("<f", 2), nans=0)
    assert not kept(DOUBLE, between(DOUBLE, 5.0, 6.0, nans=0), as_float)
    as_date = described(lower=struct.pack("<i", 1), upper=struct.pack("<i", 2))
    day = 86_400_000_000
    assert kept(TIMESTAMP, between(TIMESTAMP, day, day), as_date)
    assert not kept(TIMESTAMP, between(TIMESTAMP, 3 * day, 4 * day), as_date)


def test_text_bounds_that_were_cut_still_enclose() -> None:
    data = described(lower=b"customer-0000001", upper=b"customer-0000002")
    assert kept(STRING, described(lower=b"customer-0000001-x", upper=b"d"), data)
    assert not kept(STRING, described(lower=b"d", upper=b"e"), data)
    assert not kept(STRING, described(lower=b"", upper=b"a"), data)


def test_bounds_in_an_order_of_their_own_say_nothing() -> None:
    high, low = b"\xf0" + bytes(15), b"\x10" + bytes(15)
    signed = described(lower=high, upper=low)  # Java orders UUIDs as signed numbers
    assert kept(UUID, described(lower=b"\x80" + bytes(15), upper=b"\x81" + bytes(15)), signed)


def test_cut_bounds_of_fixed_values_say_nothing() -> None:
    fixed = FixedType(4)
    cut = described(lower=b"ab", upper=b"ab")
    assert kept(fixed, described(lower=b"abcc", upper=b"abcd"), cut)
    assert not kept(
        fixed, described(lower=b"abcc", upper=b"abcd"), described(lower=b"aaaa", upper=b"aaab")
    )


def test_a_required_child_of_an_optional_struct_may_be_null() -> None:
    child = NestedField(2, "child", LONG, required=True)
    schema = Schema((NestedField(1, "parent", StructType((child,))),))
    far = between(LONG, 100, 200, nulls=None, field_id=2)
    near = between(LONG, 1, 2, nulls=None, field_id=2)
    (column,) = Overlap(schema).columns_of([2], [far])
    assert column.overlapping(column.facts_of(near), [0]) == [0]


def test_columns_without_metrics_are_left_out() -> None:
    schema = Schema(
        (
            NestedField(1, "list", ListType(2, LONG)),
            NestedField(3, "key", LONG),
        )
    )
    assert [each.field_id for each in Overlap(schema).columns_of([1, 2, 3, 99], [])] == [3]


values = st.one_of(st.none(), st.floats(-3, 3, width=16), st.just(float("nan")))
files = st.tuples(st.lists(values, min_size=1, max_size=4), st.booleans(), st.booleans())


def summarized(content: list[float | None], *, bounds: bool, counts: bool) -> DataFile:
    plain = [each for each in content if each is not None and each == each]
    return described(
        lower=encode_bound(DOUBLE, min(plain)) if plain and bounds else None,
        upper=encode_bound(DOUBLE, max(plain)) if plain and bounds else None,
        values=len(content) if counts else None,
        nulls=content.count(None) if counts else None,
        nans=sum(each is not None and each != each for each in content) if counts else None,
    )


@given(st.lists(files, min_size=1, max_size=5), files)
def test_no_delete_that_holds_a_value_of_the_file_is_left_out(
    deletes: list[tuple[list[float | None], bool, bool]],
    data: tuple[list[float | None], bool, bool],
) -> None:
    schema = Schema((NestedField(1, "key", DOUBLE),))
    summaries = [summarized(c, bounds=b, counts=k) for c, b, k in deletes]
    (column,) = Overlap(schema).columns_of([1], summaries)
    content, bounds, counts = data
    facts = column.facts_of(summarized(content, bounds=bounds, counts=counts))
    remaining = column.overlapping(facts, range(len(deletes)))
    for index, (keys, _, _) in enumerate(deletes):
        shares = any(
            (key is None and value is None)
            or (
                key is not None
                and value is not None
                and (key == value or (key != key and value != value))
            )
            for key in keys
            for value in content
        )
        assert index in remaining or not shares
    for first in range(len(deletes)):
        if column.all_overlap(facts, first):
            assert set(range(first, len(deletes))) <= set(remaining)
