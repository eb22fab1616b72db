"""ORC files: stripes of a byte range as batches.

A stripe belongs to the range that holds its first byte. Arrow reads ORC timestamps as nanoseconds;
a file with timestamps outside 1677 to 2262 is refused. Source: Iceberg spec, "ORC".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import orc

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.read.formats.file_fields import FileField, arrow_fields, table_fields
from icesql.read.formats.parquet import open_data_stream
from icesql.read.formats.reader import FileBatch, check_row_count, decoding, sliced
from icesql.read.formats.thrift import varint
from icesql.scan.tasks import ScanContext

# ------------------------------------------------------------------ the file tail
# Source: ORC v1 specification, "File Tail".


_TAIL_FOOTER: Final = 2
_FOOTER_STRIPES: Final = 3
_STRIPE_OFFSET: Final = 1
_STRIPE_ROWS: Final = 5


class Stripe(Frozen):
    """A stripe: its first byte in the file and how many rows it has."""

    offset: int
    rows: int


def read_stripes(tail: bytes) -> tuple[Stripe, ...]:
    """The stripes of a serialized FileTail, in file order.

    Raises ValueError or IndexError when it is not one.
    """
    stripes = []
    for number, footer in _fields(tail):
        if number != _TAIL_FOOTER or not isinstance(footer, bytes):
            continue
        for inner, stripe in _fields(footer):
            if inner == _FOOTER_STRIPES and isinstance(stripe, bytes):
                facts = {key: value for key, value in _fields(stripe) if isinstance(value, int)}
                stripes.append(Stripe(facts.get(_STRIPE_OFFSET, 0), facts.get(_STRIPE_ROWS, 0)))
    return tuple(stripes)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message; unknown fields are just more of them."""
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        match tag & 7:
            case 0:
                value, position = varint(data, position)
                yield tag >> 3, value
            case 1:
                position += 8
            case 2:
                size, position = varint(data, position)
                if position + size > len(data):
                    raise ValueError("a field of the ORC footer does not fit")
                yield tag >> 3, data[position : position + size]
                position += size
            case 5:
                position += 4
            case other:
                raise ValueError(f"wire type {other} in the ORC footer")


# ------------------------------------------------------------------ files


_FIELD_ID: Final = b"iceberg.id"
_OUT_OF_RANGE: Final = "out of range for nanosecond"


class OrcFileReader:
    """An open ORC file."""

    # Java keeps the microseconds of an ORC timestamp, which has nanoseconds.

    def __init__(self, file: DataFile, context: ScanContext) -> None:
        self.path = context.storage.location(file.path)
        self._stream, _ = open_data_stream(file, context)
        try:
            self._open(file, context)
        except BaseException:
            self._stream.close()
            raise

    def _open(self, file: DataFile, context: ScanContext) -> None:
        with decoding(self.path):
            self._file = orc.ORCFile(self._stream)
            schema, count = self._file.schema, self._file.nrows
            tail = self._file.reader.serialized_file_tail()
            fields = arrow_fields(schema, _FIELD_ID)
            self._stripes: tuple[Stripe, ...] = read_stripes(bytes(tail))
        check_row_count(file, count, self.path)
        # Other engines read the tail at the end of the file by the manifest.
        if isinstance(self._stream, pa.OSFile) and self._stream.size() != file.file_size_in_bytes:
            raise CorruptFileError(
                self.path,
                f"{self._stream.size()} bytes long, the manifest says {file.file_size_in_bytes}",
            )
        self.fields, self.missing_is_null = table_fields(fields, self.path, context)

    def batches(
        self,
        wanted: Sequence[FileField],
        part: tuple[int, int] | None = None,
        predicate: Predicate = ALWAYS_TRUE,
    ) -> Iterator[FileBatch]:
        """Rows of the stripes that begin in the range (see ``FileReader``)."""
        first = 0
        for number, stripe in enumerate(self._stripes):
            if stripe.rows and (part is None or part[0] <= stripe.offset < part[1]):
                arrays = self._read(number, wanted)
                if any(len(array) != stripe.rows for array in arrays):
                    raise CorruptFileError(
                        self.path, f"stripe {number} has a row count that differs from its header"
                    )
                yield from sliced(arrays, stripe.rows, first)
            first += stripe.rows

    def _read(self, stripe: int, wanted: Sequence[FileField]) -> list[pa.Array]:
        if not wanted:
            return []
        names = [each.name for each in self.fields]
        # Arrow selects by dotted path; where that could mean several columns, all are read.
        plain = len(set(names)) == len(names) and not any("." in name for name in names)
        columns = [each.name for each in wanted] if plain else None
        try:
            with decoding(self.path):
                batch = self._file.read_stripe(stripe, columns=columns)
        except CorruptFileError as error:
            if _OUT_OF_RANGE in error.problem:
                raise UnsupportedTableError(
                    "an ORC timestamp outside 1677 to 2262", path=self.path
                ) from error
            raise
        if columns is None:
            return [batch.column(each.index) for each in wanted]
        return [batch.column(each.name) for each in wanted]

    def close(self) -> None:
        """Release the file."""
        self._stream.close()
