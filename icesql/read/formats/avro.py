"""Avro data and delete files: fields, and records of a byte range as batches, by fastavro."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.avro.container import AvroBlock, AvroContainer
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema, without_logical_types
from icesql.iceberg.avro.values import encode_varint
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.avro_files import avro_bytes
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.read.columns.arrow_schema import offsets
from icesql.read.formats.file_fields import FileField, table_fields
from icesql.read.formats.reader import BATCH_ROWS, FileBatch, check_row_count, decoding, sliced
from icesql.scan.tasks import ScanContext

# ------------------------------------------------------------------ columns
# Logical types are removed from the schema before decoding, so that values are the stored integers
# and bytes: dates beyond year 9999 survive, and nothing is rounded. Source: Iceberg spec, "Avro";
# Avro 1.12 specification.


_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_UUID: Final = pa.binary(16)
_LOGICAL: Final = {
    ("string", "uuid"): _UUID,
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


class AvroColumn(FileField):
    """A field of a file with the kind of its type in the writer schema.

    ``kind`` is Avro's name of the type; "map-array" for Iceberg's maps with other keys than texts,
    which are arrays of key and value, and "union" only for a union of several types.
    """

    children: tuple[AvroColumn, ...] = ()
    kind: str = ""


def avro_record(schema: bytes) -> AvroColumn:
    """The columns of a writer schema (JSON). Raises Malformed or OddSchema."""
    record = _column(parse_avro_schema(schema))
    if record.kind != "record":
        raise Malformed(f"rows are {record.kind}, not records")
    return record


def _column(
    node: AvroNode, index: int = 0, name: str = "", field_id: int | None = None
) -> AvroColumn:
    kind, children = node.kind, tuple[AvroColumn, ...]()
    match node.kind:
        case "union":
            if len(node.branches) == 1:
                return _column(node.branches[0], index, name, field_id)
            kind, type = ("union" if node.branches else "null"), pa.null()
        case "record":
            children = tuple(
                _column(each.node, number, each.name, each.field_id)
                for number, each in enumerate(node.fields)
            )
            type = pa.struct([pa.field(each.name, each.type) for each in children])
        case "array":
            children = (_column(node.items[0], 0, "element", node.ids[0]),)
            type = pa.list_(children[0].type)
            pair = children[0].children
            if node.logical == "map" and [each.name for each in pair] == ["key", "value"]:
                kind, children, type = "map-array", pair, pa.map_(*(each.type for each in pair))
        case "map":
            key_id, value_id = node.ids
            key = _column(AvroNode("string"), 0, "key", key_id)
            children = (key, _column(node.items[0], 1, "value", value_id))
            type = pa.map_(*(each.type for each in children))
        case _:
            type = _leaf_type(node)
    return AvroColumn(index, name, type, field_id, children=children, kind=kind)


def _leaf_type(node: AvroNode) -> pa.DataType:
    kind, logical = node.kind, node.logical
    if logical == "decimal" and kind in ("bytes", "fixed"):
        if not 1 <= node.precision <= 38:
            raise Malformed("decimal without a precision from 1 to 38")
        return pa.decimal128(node.precision, node.scale)
    if kind == "fixed":
        return pa.binary(node.size)
    return _LOGICAL.get((kind, str(logical)), _PLAIN[kind])


def avro_array(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    """Decoded values (None for NULL) as an array of the column's type.

    Raises CorruptFileError for values that the type cannot hold, UnsupportedTableError for a
    union of several types.
    """
    match column.kind:
        case "union":
            raise UnsupportedTableError("an Avro union of several types", path=path)
        case "record":
            return _struct(column, values, path)
        case "array":
            listed = [item for value in values for item in value or ()]
            items = avro_array(column.children[0], listed, path)
            return pa.ListArray.from_arrays(offsets(values), items, type=column.type)
        case "map" | "map-array":
            if column.kind == "map":
                pairs = [pair for value in values for pair in (value or {}).items()]
            else:
                pairs = [(each["key"], each["value"]) for value in values for each in value or ()]
            parts = (
                avro_array(child, [pair[place] for pair in pairs], path)
                for place, child in enumerate(column.children)
            )
            return pa.MapArray.from_arrays(offsets(values), *parts, type=column.type)
        case _:
            return _leaf_array(column, values, path)


def _leaf_array(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    with decoding(path):
        if pa.types.is_decimal(column.type):
            return _decimals(column.type, values)
        if column.kind == "string" and column.type == _UUID:
            raw = [None if value is None else uuid.UUID(value).bytes for value in values]
            return pa.array(raw, _UUID)
        if pa.types.is_temporal(column.type):
            width = pa.int32() if column.type.bit_width == 32 else pa.int64()
            return pa.array(values, width).view(column.type)
        return pa.array(values, column.type)


def _decimals(type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    raw = [
        None
        if value is None
        else int.from_bytes(value, "big", signed=True).to_bytes(16, "little", signed=True)
        for value in values
    ]
    return pa.array(raw, pa.binary(16)).view(type)


def _struct(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    if not column.children:
        return pa.array(values, column.type)
    children = [
        avro_array(each, [None if value is None else value[each.name] for value in values], path)
        for each in column.children
    ]
    return pa.StructArray.from_arrays(children, fields=list(column.type), mask=_mask(values))


def _mask(values: Sequence[Any]) -> pa.Array | None:
    if None not in values:
        return None
    return pa.array([value is None for value in values], pa.bool_())


# ------------------------------------------------------------------ files


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
