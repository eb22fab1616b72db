"""Avro data and delete files: records of a byte range as batches, decoded by fastavro."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroBlock, AvroContainer
from icesql.iceberg.avro.schema import OddSchema, without_logical_types
from icesql.iceberg.avro.values import encode_varint
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.writing.container import avro_bytes
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.read.formats.avro_columns import (
    avro_array,
    avro_record,
)
from icesql.read.formats.decode_errors import decoding
from icesql.read.formats.file_fields import FileField, table_fields
from icesql.read.formats.reader import BATCH_ROWS, FileBatch, check_row_count, sliced
from icesql.scan.tasks.task import ScanContext


class AvroFileReader:
    """An open Avro file."""

    def __init__(self, file: DataFile, context: ScanContext) -> None:
        self.path = context.storage.location(file.path)
        self._data_file = file
        self._stream = context.storage.open(file.path, file.file_size_in_bytes)
        try:
            with decoding(self.path):
                self._container = AvroContainer(self._stream, self.path)
            self._open(context)
        except BaseException:
            self._stream.close()
            raise

    def _open(self, context: ScanContext) -> None:
        try:
            self._record = avro_record(self._container.metadata["avro.schema"])
        except (Malformed, OddSchema) as error:
            raise CorruptFileError(self.path, f"bad Avro schema: {error}") from error
        self.fields, self.missing_is_null = table_fields(self._record.children, self.path, context)

    def batches(
        self,
        wanted: Sequence[FileField],
        part: tuple[int, int] | None = None,
        predicate: Predicate = ALWAYS_TRUE,
    ) -> Iterator[FileBatch]:
        """Rows of the blocks whose sync marker lies in the range (see ``FileReader``)."""
        first: int | None = None
        records: list[Any] = []
        seen, file = 0, self._data_file
        for block in self._blocks(*(part or (0, None))):
            seen = block.first + block.count
            if 0 <= file.record_count < seen:
                # Before decoding: a damaged count could demand any number of empty records.
                check_row_count(file, seen, self.path)
            if not block.count:
                continue
            first = block.first if first is None else first
            records += self._decode(block)
            if len(records) >= BATCH_ROWS // 4:
                yield from self._batches(records, wanted, first)
                first, records = None, []
        if first is not None:
            yield from self._batches(records, wanted, first)
        if part is None:
            check_row_count(file, seen, self.path)

    def _blocks(self, start: int, end: int | None) -> Iterator[AvroBlock]:
        blocks = self._container.blocks(start, end)
        while True:
            with decoding(self.path):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    @cached_property
    def _header(self) -> bytes:
        """The header of an uncompressed container of the stored types, without logical ones."""
        schema = without_logical_types(load_json(self._container.metadata["avro.schema"]))
        return avro_bytes(schema, (), {}, "null", self._container.sync)

    def _decode(self, block: AvroBlock) -> list[Any]:
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType

        counts = encode_varint(block.count) + encode_varint(len(block.data))
        try:
            with decoding(self.path):
                body = self._header + counts + block.data + self._container.sync
                records = list(fastavro.reader(io.BytesIO(body)))
        except (TypeError, AttributeError, SchemaParseException, UnknownType) as error:
            # Nothing but fastavro runs in this block: its errors are about the bytes.
            raise CorruptFileError(self.path, f"bad Avro block: {error}") from error
        if len(records) != block.count:
            raise CorruptFileError(self.path, "an Avro block of fewer records than it says")
        return records

    def _batches(
        self, records: list[Any], wanted: Sequence[FileField], first: int
    ) -> Iterator[FileBatch]:
        arrays: list[pa.Array] = []
        for each in wanted:
            column = self._record.children[each.index]
            values = [record[column.name] for record in records]
            arrays.append(avro_array(column, values, self.path))
        yield from sliced(arrays, len(records), first)

    def close(self) -> None:
        """Release the file."""
        self._stream.close()
