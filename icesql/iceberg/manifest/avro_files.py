"""The Avro files of manifests and their lists, by fastavro, and their schemas by format version."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from icesql.errors import CorruptFileError, ProgrammingError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import avro_name, parse_avro_schema, without_logical_types
from icesql.iceberg.avro.values import BadAvro, compile_reader
from icesql.iceberg.manifest.schema import ENTRY, FILE, LISTED, SUMMARY, rows_of
from icesql.iceberg.metadata.json_fields import load_json
from icesql.iceberg.partitioning import PartitionSpec

# fastavro has snappy and zstd only with other packages; every reader knows deflate.
_CODECS: Final = {
    "gzip": "deflate",
    "zstd": "deflate",
    "snappy": "deflate",
    "uncompressed": "null",
}
# Zeros after a block: a record that reads on into them does not end where the block ends.
_PADDING: Final = bytes(16)


def avro_bytes(
    schema: Any,
    records: Iterable[Mapping[str, Any]],
    header: Mapping[str, str],
    codec: str = "deflate",
    sync: bytes = b"",
) -> bytes:
    """A container file of records, with ``header`` beside the schema.

    ``sync`` is the marker between blocks, random where it is empty.
    """
    import fastavro

    out = io.BytesIO()
    # Parsed names would be shared by the schemas of different specs.
    parsed = fastavro.parse_schema(schema, named_schemas={})
    fastavro.writer(out, parsed, records, codec=codec, metadata=dict(header), sync_marker=sync)
    return out.getvalue()


def edited(file: AvroFile, edit: Callable[[Any], None]) -> bytes:
    """The container with each record as ``edit`` changes it; equal input gives equal bytes.

    Records are as fastavro gives them, but logical types stay the ints and bytes that carry them.
    The header is carried over; compressed blocks are compressed again, by deflate. Raises
    CorruptFileError, also for a BadAvro of ``edit``; Malformed and OddSchema for the schema.
    """
    compile_reader(parse_avro_schema(file.schema))  # refuses items that take no bytes
    schema = load_json(file.schema)
    header = {
        key: value.decode("utf-8", "replace")
        for key, value in file.metadata.items()
        if key not in ("avro.schema", "avro.codec")
    }
    codec = "null" if file.metadata.get("avro.codec", b"null") == b"null" else "deflate"
    sync = hashlib.md5(file.data, usedforsecurity=False).digest()
    return avro_bytes(schema, _edited_records(file, schema, edit), header, codec, sync)


def _edited_records(file: AvroFile, schema: Any, edit: Callable[[Any], None]) -> Iterator[Any]:
    import fastavro

    plain = fastavro.parse_schema(without_logical_types(schema), named_schemas={})
    begin = 0
    for count, end, offset in file.blocks:
        stream = io.BytesIO(file.data[begin:end] + _PADDING)
        try:
            for _ in range(count):
                record = fastavro.schemaless_reader(stream, plain, None)
                edit(record)
                yield record
            if stream.tell() != end - begin:
                raise BadAvro("a block does not end where its records end")
        except (EOFError, IndexError, ValueError, OverflowError, struct.error) as error:
            problem = f"bad Avro block: {error or 'a block ends early'}"
            raise CorruptFileError(file.path, problem, offset=offset) from error
        begin = end


def manifest_codec(properties: Mapping[str, str]) -> str:
    """Avro's name for the codec of manifests by a table's properties.

    Raises ProgrammingError for an unknown codec.
    """
    name = properties.get("write.manifest.compression-codec", "gzip").lower()
    if name not in _CODECS:
        raise ProgrammingError(
            f"write.manifest.compression-codec is {name!r}; it can be {', '.join(sorted(_CODECS))}"
        )
    return _CODECS[name]


# ------------------------------------------------------------------ schemas
# Source: Iceberg spec, "Manifests" and "Manifest Lists"; Java ``V1Metadata`` to ``V3Metadata``.


_PRIMITIVES: Final[dict[type[t.IcebergType], Any]] = {
    t.BooleanType: "boolean",
    t.IntegerType: "int",
    t.LongType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.StringType: "string",
    t.BinaryType: "bytes",
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimeType: {"type": "long", "logicalType": "time-micros"},
    t.TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    t.TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    t.TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    t.TimestamptzNanoType: {
        "type": "long",
        "logicalType": "timestamp-nanos",
        "adjust-to-utc": True,
    },
    t.UUIDType: {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}


def partition_avro_type(type: t.IcebergType, name: str) -> Any:
    """The Avro type of a partition value. Raises UnsupportedTableError for one that has none."""
    match type:
        case t.DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": f"decimal_{precision}_{scale}",
                "size": decimal_bytes(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case t.FixedType():
            # Java (seen in 1.12) stores their length, too, which the schema does not declare;
            # readers of one form take the other for damage.
            raise UnsupportedTableError(
                f"writing partition field {name!r} of type {type}, which Iceberg's libraries "
                "store in different ways",
            )
        case _:
            found = _PRIMITIVES.get(type.__class__)
            if found is None:
                raise UnsupportedTableError(f"writing partition field {name!r} of type {type}")
            return found


def decimal_bytes(precision: int) -> int:
    """The fewest bytes that hold every decimal of so many digits.

    >>> [decimal_bytes(precision) for precision in (1, 2, 9, 18, 38)]
    [1, 1, 4, 8, 16]
    """
    return (int(10**precision) - 1).bit_length() // 8 + 1


def entry_schema(version: int, spec: PartitionSpec, types: Sequence[t.IcebergType]) -> Any:
    """The schema of the entries of a manifest of a spec with partition values of ``types``."""
    partition = _record("r102", _partition(spec, types))
    data_file = _record("r2", _fields(FILE, version, {"partition": partition}))
    return _record("manifest_entry", _fields(ENTRY, version, {"data_file": data_file}))


def _partition(spec: PartitionSpec, types: Sequence[t.IcebergType]) -> list[Any]:
    fields, named = [], set()
    for each, type in zip(spec.fields, types, strict=True):
        kind = partition_avro_type(type, each.name)
        if isinstance(kind, dict) and "name" in kind:
            # Avro declares a named type once and then names it.
            type_name = kind["name"]
            kind = type_name if type_name in named else kind
            named.add(type_name)
        made = _optional(avro_name(each.name), each.field_id, kind)
        if made["name"] != each.name:
            made["iceberg-field-name"] = each.name
        fields.append(made)
    return fields


def list_schema(version: int) -> Any:
    """The schema of the rows of a manifest list."""
    summaries = _list("508", _record("r508", _fields(SUMMARY, version, {})))
    return _record("manifest_file", _fields(LISTED, version, {"summaries": summaries}))


def _fields(table: str, version: int, named: Mapping[str, Any]) -> list[Any]:
    """The fields of a table in one version; ``named`` has the types that are none of Avro's."""
    made = []
    for name, field_id, needs, kind, *inner in rows_of(table):
        match kind:
            case "map":
                type = _map(*inner)
            case "list":
                type = _list(*inner)
            case _:
                type = named.get(kind, kind)
        match needs[version - 1]:
            case "r":
                made.append(_required(name, int(field_id), type))
            case "o":
                made.append(_optional(name, int(field_id), type))
    return made


def _record(name: str, fields: list[Any]) -> Any:
    return {"type": "record", "name": name, "fields": fields}


def _required(name: str, field_id: int, type: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "field-id": field_id}


def _optional(name: str, field_id: int, type: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type], "default": None, "field-id": field_id}


def _list(element_id: str, item: Any) -> Any:
    return {"type": "array", "items": item, "element-id": int(element_id)}


def _map(key_id: str, value_id: str, value: str) -> Any:
    fields = [_required("key", int(key_id), "int"), _required("value", int(value_id), value)]
    pair = _record(f"k{key_id}_v{value_id}", fields)
    return {"type": "array", "items": pair, "logicalType": "map"}
