"""Vectorised transforms give what ``iceberg.transforms`` gives for each value alone."""

from __future__ import annotations

import random
from ast import literal_eval
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from mmh3 import hash as murmur3

from icesql.errors import DataError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.transforms import parse_transform
from icesql.read.columns.arrow_schema import arrow_type
from icesql.write.partition_values import (
    hash_bytes,
    hash_longs,
    internal_array,
    partition_array,
)
from tests.columns import type_of
from tests.tables import read_table

VALUES = {
    type_of(kind): [Decimal(each) if "decimal" in kind else each for each in literal_eval(values)]
    for kind, values in read_table(__file__, "values.tsv")
}
TRANSFORMS = (
    "identity", "void", "year", "month", "day", "hour", "bucket[16]", "bucket[1]", "bucket[97]",
    "truncate[1]", "truncate[3]", "truncate[50]",
)  # fmt: skip
CASES = [
    (transform, type)
    for transform in TRANSFORMS
    for type in VALUES
    if parse_transform(transform).accepts(type)
]


def internal(values: list[Any], type: t.IcebergType) -> pa.Array:
    """Values in internal form, through the Arrow type of the table's columns."""
    kind = arrow_type(type)
    if isinstance(type, t.UUIDType):
        return pa.array(values, pa.binary(16))
    base = {t.DateType: pa.int32(), t.IntegerType: pa.int32()}.get(
        type.__class__,
        pa.int64() if pa.types.is_temporal(kind) else kind,
    )
    return internal_array(pa.array(values, base).cast(kind), type)


@pytest.mark.parametrize(("transform", "type"), CASES, ids=str)
def test_as_for_one_value(transform: str, type: t.IcebergType) -> None:
    known = parse_transform(transform)
    values = [None, *VALUES[type], None]
    found = partition_array(known, type, internal(values, type)).to_pylist()
    assert found == [known.apply(each, type) for each in values]
    sliced = internal(values, type).slice(1, 1)
    assert partition_array(known, type, sliced).to_pylist() == [known.apply(values[1], type)]
    assert len(partition_array(known, type, sliced.slice(0, 0))) == 0


def test_the_hash_is_murmur3() -> None:
    draw = random.Random(7)
    texts = [draw.randbytes(draw.randrange(0, 70)) for _ in range(500)]
    texts += [None, b"", b"x" * 300] * 2
    expected = [murmur3(each or b"", signed=False) for each in texts]
    assert hash_bytes(pa.array(texts, pa.binary())).tolist() == expected
    short = pa.array(texts[:400], pa.binary()).slice(17)
    assert hash_bytes(short).tolist() == expected[17:400]
    numbers = [draw.randrange(-(2**63), 2**63) for _ in range(500)]
    as_bytes = [each.to_bytes(8, "little", signed=True) for each in numbers]
    import numpy as np

    found = hash_longs(np.array(numbers, np.int64)).tolist()
    assert found == [murmur3(each, signed=False) for each in as_bytes]


def test_a_truncation_below_the_type_is_refused() -> None:
    with pytest.raises(DataError, match="-2147483648 has no value"):
        partition_array(
            parse_transform("truncate[100]"), t.INTEGER, pa.array([1, -(2**31)], pa.int32())
        )
    least = pa.array([Decimal("-99")], pa.decimal128(2, 0))
    with pytest.raises(DataError, match="digits"):
        partition_array(parse_transform("truncate[7]"), t.DecimalType(2, 0), least)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_hour_that_no_int_holds_is_refused(sign: int) -> None:
    """It would lie in a partition of another time, where no query looks for it."""
    last = 2**31 * 3_600_000_000 - 1
    hour = parse_transform("hour")
    values = pa.array([last if sign > 0 else -last - 1, None], pa.int64())
    assert partition_array(hour, t.TIMESTAMP, values)[0].as_py() == (2**31 - 1) * sign - (sign < 0)
    beyond = pa.array([0, last + 1 if sign > 0 else -last - 2], pa.int64())
    with pytest.raises(DataError, match="no value under the partition transform hour"):
        partition_array(hour, t.TIMESTAMP, beyond)


def test_what_is_not_known_is_refused() -> None:
    for transform, type in (("zorder", t.LONG), ("bucket[4]", t.DOUBLE), ("hour", t.DATE)):
        with pytest.raises(UnsupportedTableError):
            partition_array(parse_transform(transform), type, pa.array([1]))


@pytest.mark.parametrize("unit", ["month", "year"])
def test_months_of_days_close_together_and_far_apart(unit: str) -> None:
    close = [*range(-800, 800), -1, 0, None]
    far = [-(1 << 31), -1, None, (1 << 31) - 1]
    transform = parse_transform(unit)
    for days in (close, far, [], [None]):
        made = partition_array(transform, t.DATE, pa.array(days, pa.int32()))
        assert made.to_pylist() == [transform.apply(each, t.DATE) for each in days]
