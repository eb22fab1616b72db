"""The files that a task wrote, and the origins of their rows, as bytes that are sent.

The bytes are data, never code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import astuple, replace

from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.read.columns.numbers import from_numbers, to_numbers

if TYPE_CHECKING:
    from icesql.storage.new_files import Uncommitted


# ------------------------------------------------------------------ origins of rewritten rows
# A rewrite reads two more columns with its rows, the number of a source file and the position in
# it. They accompany the rows through sorting and dividing, but files do not store them. Origins
# are kept as compressed runs of neighbours: rows that keep their order need a run for each source
# file and gap.


Integers: TypeAlias = npt.NDArray[np.int64]
# The origins of a file's rows, by row group, as ``encode_origins`` returns them.
EncodedOrigins: TypeAlias = tuple[bytes, ...]

# The last columns of rows with origins. No stored column can have such a name.
FIELDS: Final = (pa.field("origin source", pa.int64()), pa.field("origin position", pa.int64()))
_RUNS_AT_ONCE: Final = 1 << 16
_SCHEMA: Final = pa.schema(dict.fromkeys(("source", "position", "length"), pa.int64()))


class RowOrigins(Frozen):
    """Runs of rows in the order of a file: the number of the source file, the position of the first
    row there, and the number of rows."""

    sources: Integers
    positions: Integers
    lengths: Integers

    @classmethod
    def of(cls, sources: Integers, positions: Integers) -> RowOrigins:
        """The origins of rows, from the source and the position of each."""
        if not len(sources):
            return cls(sources, positions, positions)
        breaks = (np.diff(sources) != 0) | (np.diff(positions) != 1)
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        lengths = np.diff(np.append(starts, len(sources)))
        return cls(sources[starts], positions[starts], lengths)

    def divided(self, row: int) -> tuple[RowOrigins, RowOrigins]:
        """Split into the origins of the rows before ``row``, and those of the others."""
        ends = np.cumsum(self.lengths)
        run = int(np.searchsorted(ends, row, side="right"))
        if run == len(ends):
            return self, RowOrigins(*(each[:0] for each in astuple(self)))
        taken = row - int(ends[run] - self.lengths[run])
        first = [each[: run + 1].copy() for each in astuple(self)]
        rest = [each[run:].copy() for each in astuple(self)]
        first[2][-1] = taken
        rest[1][0] += taken
        rest[2][0] -= taken
        if not taken:
            first = [each[:-1] for each in first]
        return RowOrigins(*first), RowOrigins(*rest)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.lengths.sum())

    def of_source(self, source: int) -> tuple[Integers, Integers, Integers]:
        """The runs of one source: their positions there, their lengths, their first rows here."""
        mine = self.sources == source
        firsts = np.cumsum(self.lengths) - self.lengths
        return self.positions[mine], self.lengths[mine], firsts[mine]

    def rows_of(self, source: int, positions: Integers) -> Integers:
        """The rows here, sorted, that come from these sorted positions; positions without a row are
        ignored."""
        starts, lengths, firsts = self.of_source(source)
        if not len(starts):
            return starts
        order = np.argsort(starts, kind="stable")
        starts, lengths, firsts = starts[order], lengths[order], firsts[order]
        run = np.searchsorted(starts, positions, side="right") - 1
        inside = (run >= 0) & (positions - starts[run] < lengths[run])
        run, positions = run[inside], positions[inside]
        return np.sort(firsts[run] + positions - starts[run])


def encode_origins(origins: RowOrigins) -> bytes:
    """Encode the origins of one row group."""
    arrays = [*map(from_numbers, astuple(origins))]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
    return bytes(sink.getvalue())


def decode_origins(groups: EncodedOrigins) -> RowOrigins:
    """Decode the origins of a file. Raises InternalError for other bytes."""
    tables = []
    for each in groups:
        try:
            with pa.ipc.open_stream(each) as reader:
                table = reader.read_all()
        except pa.ArrowException as error:
            raise InternalError(f"a task described its rows in an unknown way: {error}") from error
        if not table.schema.equals(_SCHEMA) or any(each.null_count for each in table.columns):
            raise InternalError(f"a task described its rows in an unknown way: {table.schema}")
        tables.append(table)
    found = pa.concat_tables(tables) if tables else _SCHEMA.empty_table()
    return RowOrigins(*(to_numbers(each.combine_chunks()) for each in found.columns))


class OriginsInOrder:
    """The origins of a stream of rows that go to one file after the other."""

    def __init__(self) -> None:
        # Compressed origins with their numbers of rows, and those that wait for compression.
        self._parts: list[tuple[int, bytes]] = []
        self._waiting: list[RowOrigins] = []
        self._runs = 0

    def add(self, sources: pa.Array, positions: pa.Array) -> None:
        """Add the next rows' origins: int64 without NULL."""
        found = RowOrigins.of(to_numbers(sources), to_numbers(positions))
        self._waiting.append(found)
        self._runs += len(found.lengths)
        if self._runs >= _RUNS_AT_ONCE:
            self._compress()

    def _compress(self) -> None:
        if self._waiting:
            columns = zip(*map(astuple, self._waiting), strict=True)
            found = RowOrigins(*(np.concatenate(each) for each in columns))
            self._parts.append((found.rows, encode_origins(found)))
        self._waiting, self._runs = [], 0

    def of_files(self, rows: Sequence[int]) -> tuple[EncodedOrigins, ...]:
        """The origins for files with these numbers of rows."""
        self._compress()
        found = []
        parts = iter(self._parts)
        count, part = 0, b""
        for wanted in rows:
            of_file = []
            while wanted:
                if not count:
                    count, part = next(parts)
                if count > wanted:
                    first, rest = decode_origins((part,)).divided(wanted)
                    of_file.append(encode_origins(first))
                    count, part = count - wanted, encode_origins(rest)
                    break
                of_file.append(part)
                wanted, count = wanted - count, 0
            found.append(tuple(of_file))
        return tuple(found)


def with_origins(schema: pa.Schema) -> pa.Schema:
    """The schema of rows that carry their origins."""
    return pa.schema([*schema, *FIELDS], metadata=schema.metadata)


# ------------------------------------------------------------------ written files


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
