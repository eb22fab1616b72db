"""Files that a task wrote: one description, which travels as bytes, as data and never as code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from icesql.errors import InternalError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.write.row_origins import EncodedOrigins

if TYPE_CHECKING:
    from icesql.storage.uncommitted import Uncommitted

Note: TypeAlias = bytes
# The types of the partition values of a spec that has an id.
Types = Callable[[int], Sequence[t.IcebergType]]


class Written(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """New files of a task, that no commit has yet, and what it did.

    ``data`` are those of rows, ``deletes`` of rows that are gone; ``removed`` data and delete files
    go, ``referenced`` are the paths of data files that get deletes. ``rows`` came, ``gone`` went,
    an updated one is in both. ``origins`` are those of each data file's rows, where these were
    carried. ``apart`` are the paths of other files, and ``notes`` are the task's own.
    """

    data: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    referenced: tuple[str, ...] = ()
    rows: int = 0
    gone: int = 0
    spilled_bytes: int = 0
    origins: tuple[EncodedOrigins, ...] = ()
    apart: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The new files that are for a commit, data and deletes."""
        return self.data + self.deletes

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all new files."""
        return (*(each.path for each in self.files), *self.apart)

    @property
    def bytes(self) -> int:
        """The size of the files that are for a commit."""
        return sum(each.file_size_in_bytes for each in self.files)

    @classmethod
    def of(cls, parts: Iterable[Written]) -> Written:
        """All of them together, in time that grows with their files."""
        columns: Iterable[tuple[Any, ...]] = zip(*map(astuple, parts), strict=True)
        joined: list[Any] = [
            sum(each) if isinstance(each[0], int) else tuple(chain.from_iterable(each))
            for each in columns
        ]
        return cls(*joined)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Written)


def encode_written(written: Written) -> bytes:
    """The bytes of it."""
    return _ENCODER.encode(written)


def decode_written(data: bytes, types: Types) -> Written:
    """The files that these bytes describe; ``types`` are for the partition values of new files.

    Those of removed ones are as they were sent. Raises InternalError for bytes that
    ``encode_written`` did not make.
    """
    with decoding():
        found = _DECODER.decode(data)
        files, deletes = (
            tuple(_with_values(each, types(each.spec_id)) for each in some)
            for some in (found.data, found.deletes)
        )
    return replace(found, data=files, deletes=deletes)


def types_of(metadata: TableMetadata) -> Types:
    """The types of all specs of a table."""
    return lambda spec: partition_types(metadata.specs[spec], metadata.file_schema)


def reported(
    described: Iterable[tuple[bytes, bool]], types: Types, new: Uncommitted
) -> Iterator[Written]:
    """The writing of tasks elsewhere, as their descriptions come; ``new`` gets the files.

    With each comes whether others may be left, of a try that was lost. Before all have come, files
    may be left of any. Raises InternalError for files that a task cannot have written.
    """
    lost, new.lost = new.lost, True
    for data, repeated in described:
        lost = lost or repeated
        found = decode_written(data, types)
        new.report(found.paths)
        yield found
    new.lost = lost


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
