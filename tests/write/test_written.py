"""Descriptions of files between a worker and the driver: whole, and never code."""

from __future__ import annotations

import math
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from icesql.errors import InternalError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.write.written import Written, decode_written, encode_written

VALUES: list[tuple[t.IcebergType, Any]] = [
    (t.BOOLEAN, True),
    (t.INTEGER, -(2**31)),
    (t.LONG, 2**63 - 1),
    (t.FLOAT, 1.5),
    (t.DOUBLE, -0.0),
    (t.DOUBLE, math.inf),
    (t.DecimalType(38, 2), Decimal("-1234567890123456789012345678901234.50")),
    (t.DecimalType(9, 2), Decimal("0.10")),
    (t.DATE, -5),
    (t.TIMESTAMPTZ, 1),
    (t.STRING, "é/=\x00"),
    (t.UUID, bytes(range(16))),
    (t.BINARY, b"\xff\x00"),
    (t.STRING, None),
]


def described(partition: tuple[Any, ...] = ()) -> Written:
    file = DataFile(
        FileContent.DATA,
        "s3://b/t/data/f.parquet",
        "PARQUET",
        7,
        partition,
        3,
        2**40,
        column_sizes={1: 5},
        value_counts={1: 3},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"\x00\xff"},
        upper_bounds={1: b""},
        split_offsets=(4, 2**33),
        sort_order_id=1,
    )
    return Written((file,), rows=3, spilled_bytes=9)


def decoded(data: bytes, *types: t.IcebergType) -> Written:
    return decode_written(data, {7: types}.__getitem__)


def test_every_value_comes_back_as_it_was() -> None:
    given = described(tuple(value for _, value in VALUES))
    found = decoded(encode_written(given), *(type for type, _ in VALUES))
    assert found == given
    assert repr(found) == repr(given)


def test_nan_is_a_partition_too() -> None:
    found = decoded(encode_written(described((math.nan,))), t.DOUBLE)
    assert math.isnan(found.files[0].partition[0])


class Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_is_not_unpickled(tmp_path: Path) -> None:
    payload = pickle.dumps(Touch(tmp_path / "canary"))
    with pytest.raises(InternalError):
        decoded(payload)
    assert not (tmp_path / "canary").exists()
    pickle.loads(payload)
    assert (tmp_path / "canary").exists(), "the payload works, so that the test proves something"


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (t.INTEGER, "1"),
        (t.STRING, 1),
        (t.DecimalType(9, 2), "NaN.5"),
        (t.DecimalType(9, 2), 1.5),
        (t.UUID, "x"),
        (t.DOUBLE, 1),
        (t.LONG, [1]),
    ],
)
def test_a_value_of_another_type_is_refused(type: t.IcebergType, value: Any) -> None:
    with pytest.raises(InternalError):
        decoded(encode_written(described((value,))), type)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode({"data": [{"path": 1}]}),
        msgspec.msgpack.encode({"data": "f", "rows": 1}),
        msgspec.msgpack.encode({"other": 1}),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"x")),
    ],
)
def test_malformed_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InternalError):
        decoded(data)


def test_a_tuple_of_another_length_is_refused() -> None:
    with pytest.raises(InternalError):
        decoded(encode_written(described((1,))), t.INTEGER, t.INTEGER)
