"""Avro container files by fastavro."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

from icesql.errors import ProgrammingError

# fastavro has snappy and zstd only with other packages; every reader knows deflate.
_CODECS: Final = {
    "gzip": "deflate",
    "zstd": "deflate",
    "snappy": "deflate",
    "uncompressed": "null",
}


def avro_bytes(
    schema: Any,
    records: Iterable[Mapping[str, Any]],
    header: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """A container file of records, with ``header`` beside the schema."""
    import fastavro

    out = io.BytesIO()
    # Parsed names would be shared by the schemas of different specs.
    parsed = fastavro.parse_schema(schema, named_schemas={})
    fastavro.writer(out, parsed, records, codec=codec, metadata=dict(header))
    return out.getvalue()


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
