"""Descriptions of files between a worker and the driver: whole, and never code."""

from __future__ import annotations

import math
import os
import pickle
from ast import literal_eval
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from icesql.errors import InternalError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.write.written import Written, decode_written, encode_written
from tests.columns import type_of
from tests.tables import read_table


def value(kind: str, text: str) -> Any:
    """The value of a cell: decimals and what Python has no literal of are written as texts."""
    found = literal_eval(text)
    is_text = isinstance(found, str)
    return (
        Decimal(found)
        if is_text and "decimal" in kind
        else float(found)
        if is_text and kind == "double"
        else found
    )


VALUES = [
    (type_of(kind), value(kind, text))
    for kind, text in read_table(__file__, "partition_values.tsv")
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
    return Written((file,), rows=3, gone=9)


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


def test_a_pickle_is_not_unpickled(tmp_path) -> None:
    payload = pickle.dumps(Touch(tmp_path / "canary"))
    with pytest.raises(InternalError):
        decoded(payload)
    assert not (tmp_path / "canary").exists()
    pickle.loads(payload)
    assert (tmp_path / "canary").exists(), "the payload works, so that the test proves something"


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("int", "1"), ("string", 1), ("decimal(9, 2)", "NaN.5"), ("decimal(9, 2)", 1.5),
        ("uuid", "x"), ("double", 1), ("long", [1]),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(kind: str, other: Any) -> None:
    with pytest.raises(InternalError):
        decoded(encode_written(described((other,))), type_of(kind))


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


def test_the_writing_of_several_tasks_is_one_in_their_order() -> None:
    first = Written(referenced=("a", "b"), rows=2, notes=(b"1",))
    second = Written(referenced=("c",), rows=3, gone=1, apart=("d",))
    assert Written.of([]) == Written()
    assert Written.of([first, Written(), second]) == Written(
        referenced=("a", "b", "c"), rows=5, gone=1, apart=("d",), notes=(b"1",)
    )
