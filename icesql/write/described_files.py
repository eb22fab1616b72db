"""The files of a task as bytes: from a worker to the driver, as data and never as code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from icesql.errors import InternalError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.write.write_task import WriteResult

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(WriteResult)


def encode_result(result: WriteResult) -> bytes:
    """The bytes of a result."""
    return _ENCODER.encode(result)


def decode_result(data: bytes, types: Sequence[t.IcebergType]) -> WriteResult:
    """The result of these bytes; ``types`` are those of the partition values of its files.

    Raises InternalError for bytes that ``encode_result`` did not make.
    """
    with decoding():
        found = _DECODER.decode(data)
        files = tuple(_with_values(each, types) for each in found.files)
    return replace(found, files=files)


@contextmanager
def decoding() -> Iterator[None]:
    """Raise InternalError for bytes of a task that it cannot have encoded."""
    try:
        yield
    except (msgspec.DecodeError, InvalidOperation, KeyError, ValueError) as error:
        raise InternalError(f"the result of a task cannot be decoded: {error}") from error


def _with_values(file: DataFile, types: Sequence[t.IcebergType]) -> DataFile:
    """``file`` with its partition values in internal form: decimals travel as text."""
    pairs = zip(file.partition, types, strict=True)
    return replace(file, partition=tuple(_value(given, each) for given, each in pairs))


def _value(given: Any, type: t.IcebergType) -> Any:
    if given is None:
        return None
    if not isinstance(given, _kind(type)):
        raise ValueError(f"{given!r:.80} is no partition value of type {type}")
    return Decimal(given) if isinstance(type, t.DecimalType) else given


def _kind(type: t.IcebergType) -> Any:
    match type:
        case t.BooleanType():
            return bool
        case t.FloatType() | t.DoubleType():
            return float
        case t.StringType() | t.DecimalType():
            return str
        case t.UUIDType() | t.FixedType() | t.BinaryType():
            return bytes
        case _:
            return int
