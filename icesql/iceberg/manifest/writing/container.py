"""Avro container files by fastavro."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from icesql.errors import CorruptFileError, ProgrammingError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import parse_avro_schema, without_logical_types
from icesql.iceberg.avro.values import BadAvro, compile_reader
from icesql.iceberg.metadata.json_fields import load_json

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
