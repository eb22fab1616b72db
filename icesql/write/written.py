"""The description of files that a task wrote; it is sent as bytes, which are data, never code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import astuple, replace

from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.write.row_origins import EncodedOrigins

if TYPE_CHECKING:
    from icesql.storage.uncommitted import Uncommitted

Note: TypeAlias = bytes
# Gives the types of the partition values of the spec with an id.
Types = Callable[[int], Sequence[t.IcebergType]]


class Written(Frozen, omit_defaults=True, forbid_unknown_fields=True):
    """A task's new files, which are not committed yet, and its row counts.

    ``data`` are data files, ``deletes`` delete files; ``removed`` data and delete files are to be
    removed, ``referenced`` are the paths of data files that get deletes. ``rows`` were added,
    ``gone`` were deleted, an updated row counts in both. ``origins`` are those of each data file's
    rows, if rows carried them. ``apart`` are paths of other files; ``notes`` are the task's own
    data.
    """

    data: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    referenced: tuple[str, ...] = ()
    rows: int = 0
    gone: int = 0
    origins: tuple[EncodedOrigins, ...] = ()
    apart: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The new files to commit, data and delete files."""
        return self.data + self.deletes

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all new files."""
        return (*(each.path for each in self.files), *self.apart)

    @property
    def bytes(self) -> int:
        """The size of the files to commit."""
        return sum(each.file_size_in_bytes for each in self.files)

    @classmethod
    def of(cls, parts: Iterable[Written]) -> Written:
        """The sum of all parts, in linear time."""
        columns: Iterable[tuple[Any, ...]] = zip(*map(astuple, parts), strict=True)
        joined: list[Any] = [
            sum(each) if isinstance(each[0], int) else tuple(chain.from_iterable(each))
            for each in columns
        ]
        return cls(*joined)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Written)


def encode_written(written: Written) -> bytes:
    """The description as bytes."""
    return _ENCODER.encode(written)


def decode_written(data: bytes, types: Types) -> Written:
    """Decode a description; ``types`` are for the partition values of new files.

    Removed files keep their values as sent. Raises InternalError for bytes that
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
    """The partition types of all specs of a table."""
    return lambda spec: partition_types(metadata.specs[spec], metadata.file_schema)


def reported(
    described: Iterable[tuple[bytes, bool]], types: Types, new: Uncommitted
) -> Iterator[Written]:
    """The descriptions of remote tasks as they arrive; registers their files with ``new``.

    Each comes with a flag whether an earlier, lost attempt may have left files. Until all
    descriptions have arrived, any task may have left files. Raises InternalError for files that a
    task cannot have written.
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
    """Raise InternalError for a task's result that cannot be decoded."""
    try:
        yield
    except (msgspec.DecodeError, InvalidOperation, KeyError, ValueError) as error:
        raise InternalError(f"the result of a task cannot be decoded: {error}") from error


def _with_values(file: DataFile, types: Sequence[t.IcebergType]) -> DataFile:
    """``file`` with its partition values in internal form: decimals are sent as text."""
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
