"""A delete file is left out only when no key of it can be in the data file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    DOUBLE,
    LONG,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icesql.scan.deletes.delete_index import Overlap
from tests.iceberg.text_forms import columns
from tests.scan.pruning.files import read_bound
from tests.tables import read_table
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


def kept(kind: str, delete: DataFile, data: DataFile) -> bool:
    (column,) = Overlap(columns(f"key {kind}")).columns_of([1], [delete])
    facts = column.facts_of(data)
    return column.overlapping(facts, [0]) == [0]


def read(kind: str, lower: str, upper: str, nulls: str, nans: str) -> DataFile:
    """A file as a row of the table describes it."""
    type_ = columns(f"key {kind}").type_of(1)
    counts = {name: None if text == "-" else int(text) for name, text in
              (("nulls", nulls), ("nans", nans))}  # fmt: skip
    return described(lower=read_bound(type_, lower), upper=read_bound(type_, upper), **counts)


@pytest.mark.parametrize("row", read_table(__file__, "overlaps.tsv"), ids="-".join)
def test_a_delete_is_kept_where_it_may_hold_a_key_of_the_file(row: list[str]) -> None:
    kind, delete, data = row[0], row[1:5], row[5:9]
    assert str(kept(kind, read(kind, *delete), read(kind, *data))) == row[9]


def test_files_without_counts_or_metrics_keep_the_delete() -> None:
    assert kept("long", described(nulls=10), described(nulls=None, values=None))
    nothing = DataFile(FileContent.DATA, "f", "PARQUET", 0, (), 10, 100)
    assert kept("long", between(LONG, 100, 200), nothing)


@pytest.mark.parametrize(
    ("kind", "written", "delete", "expected"),
    [
        ("long", "int", ("5", "6"), False),
        ("long", "int", ("2", "6"), True),
        ("double", "float", ("5.0", "6.0"), False),
        ("timestamp", "date", ('"1970-01-02T00:00:00"',) * 2, True),
        ("timestamp", "date", ('"1970-01-04T00:00:00"', '"1970-01-05T00:00:00"'), False),
    ],
)
def test_bounds_written_before_a_promotion_are_read_by_their_length(
    kind: str, written: str, delete: tuple[str, str], expected: bool
) -> None:
    data = read(written, *(("1.0", "2.0") if written == "float" else ("1", "2")), "0", "0")
    assert kept(kind, read(kind, *delete, "0", "0"), data) is expected


def test_cut_bounds_of_fixed_values_say_nothing() -> None:
    delete = described(lower=b"abcc", upper=b"abcd")
    assert kept("fixed[4]", delete, described(lower=b"ab", upper=b"ab"))
    assert not kept("fixed[4]", delete, described(lower=b"aaaa", upper=b"aaab"))


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
    remaining = [*column.overlapping(facts, range(len(deletes)))]
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
        found = column.overlapping(facts, range(first, len(deletes)))
        assert [*found] == [index for index in remaining if index >= first]
