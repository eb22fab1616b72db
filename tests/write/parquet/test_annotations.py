"""Logical types in a footer are the same, whatever release of pyarrow wrote it."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.errors import UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.read.formats.reader import decoding
from icesql.storage.open import Storage
from icesql.write.options import WriteOptions
from icesql.write.parquet_file import FileShape, ParquetFile
from icesql.write.parquet_footer import annotated, logical_types
from tests.columns import columns, type_of

# Footers up to their number of rows: a time (field 1) and a struct (2) with a time (3).
BY_PYARROW_21 = (
    "1504194c35001806736368656d6115040015042502180174251035021c7c111c2c000000000035021801731502"
    "45040015042500180175251035061c7c111c2c0000000000160000"
)
BY_PYARROW_26 = (
    "1504194c35001806736368656d611504001504250218017455021c7c121c2c0000000000350218017315024504"
    "001504250018017555061c7c121c2c0000000000160000"
)
# And a UUID (1).
UUID_BY_PYARROW_18 = "1504192c35001806736368656d61150200150e15201502180175550200160000"
UUID_BY_PYARROW_26 = "1504192c35001806736368656d61150200150e1520150218017555021cec000000160000"
TIMES = logical_types(columns("1 t time, 3 u time"))
UUIDS = logical_types(columns("1 u uuid"))


def end_of_file(footer: str) -> bytes:
    data = bytes.fromhex(footer)
    return b"pages" + data + struct.pack("<I", len(data)) + b"PAR1"


@pytest.mark.parametrize(
    ("written", "types", "expected"),
    [
        (BY_PYARROW_21, TIMES, BY_PYARROW_26),
        (BY_PYARROW_26, TIMES, BY_PYARROW_26),
        (UUID_BY_PYARROW_18, UUIDS, UUID_BY_PYARROW_26),
        (UUID_BY_PYARROW_26, UUIDS, UUID_BY_PYARROW_26),
        (BY_PYARROW_21, {}, BY_PYARROW_21),
        (BY_PYARROW_21, {7: b"a field that it does not have"}, BY_PYARROW_21),
    ],
)
def test_releases_of_pyarrow_write_one_footer(
    written: str, types: dict[int, bytes], expected: str
) -> None:
    assert annotated(end_of_file(written), types) == end_of_file(expected)


def test_another_reader_finds_the_types_of_the_specification(tmp_path) -> None:
    inner = type_of("struct<4 u time>")
    fields = (
        t.NestedField(1, "t", t.TIME), t.NestedField(2, "s", inner), t.NestedField(3, "v", t.UUID),
    )  # fmt: skip
    shape = FileShape(Schema(fields), {}, WriteOptions(codec="zstd"))
    file = ParquetFile(Storage(), str(tmp_path / "x.parquet"), shape)
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([None], pa.binary(16)))
    kinds = [shape.arrow.field(place).type for place in range(2)]
    columns = [*(pa.array([None], kind) for kind in kinds), uuids]
    file.write(pa.Table.from_arrays(columns, schema=shape.arrow))
    schema = pq.ParquetFile(file.finish().path).schema
    for column in range(2):
        logical = str(schema.column(column).logical_type)
        assert logical == "Time(isAdjustedToUTC=false, timeUnit=microseconds)"
        assert schema.column(column).converted_type == "NONE"
    assert str(schema.column(2).logical_type) == "UUID"


def test_a_variant_needs_a_newer_pyarrow(monkeypatch) -> None:
    monkeypatch.setattr(pa, "__version__", "21.0.0")
    inner = type_of("struct<2 v variant>")
    with pytest.raises(UnsupportedTableError, match=r"variant v with pyarrow 21.*'pyarrow>=22'"):
        FileShape(Schema((t.NestedField(1, "s", inner),)), {}, WriteOptions(codec="zstd"))


@pytest.mark.parametrize(
    "told",
    [
        "Metadata contains Thrift LogicalType that is not recognized",
        "Logical type Variant cannot be applied to group node",
    ],
)
def test_a_type_that_pyarrow_does_not_know_is_no_corrupt_file(told: str) -> None:
    with pytest.raises(UnsupportedTableError, match="variants need"), decoding("f.parquet"):
        raise OSError(told)
