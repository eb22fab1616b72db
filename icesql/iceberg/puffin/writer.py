"""Write Puffin files, deletion vectors above all.

Source: Iceberg spec, "Puffin" and "deletion-vector-v1 blob type".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import field

from icesql.frozen import Frozen
from icesql.iceberg.puffin.container import MAGIC, footer_parts
from icesql.iceberg.puffin.deletion_vector import VECTOR_MAGIC

VECTOR_TYPE: Final = "deletion-vector-v1"
# The reserved field id of the row position, the field that a vector refers to.
_POSITION_ID: Final = 2147483645


class NewBlob(Frozen):
    """One blob to write. Snapshot and sequence number -1: inherited from the snapshot."""

    type: str
    data: bytes
    fields: tuple[int, ...]
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    codec: str | None = None


class PlacedBlob(Frozen):
    """The offset and length of a blob in its file, in bytes."""

    offset: int
    length: int


def puffin_bytes(
    blobs: Sequence[NewBlob], created_by: str
) -> tuple[bytes, tuple[PlacedBlob, ...], int]:
    """A Puffin file, the places of its blobs in order, and the length of its footer."""
    parts, places, described = [MAGIC], [], []
    offset = len(MAGIC)
    for each in blobs:
        places.append(PlacedBlob(offset, len(each.data)))
        described.append(_described(each, offset))
        parts.append(each.data)
        offset += len(each.data)
    footer = {"blobs": described, "properties": {"created-by": created_by}}
    tail = footer_parts(footer, ascii_only=False)
    return b"".join((*parts, *tail)), tuple(places), sum(map(len, tail))


def _described(blob: NewBlob, offset: int) -> dict[str, Any]:
    node: dict[str, Any] = {
        "type": blob.type,
        "fields": [*blob.fields],
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": offset,
        "length": len(blob.data),
    }
    if blob.codec is not None:
        node["compression-codec"] = blob.codec
    return node | ({"properties": dict(blob.properties)} if blob.properties else {})


def deletion_vector_blob(data_file: str, positions: Iterable[int]) -> NewBlob:
    """The vector of the deleted row positions, from 0, of a data file; repeated ones count once.

    ``data_file`` is its path, character for character as its manifest has it. The cardinality is
    a property of the blob.
    """
    from pyroaring import BitMap64

    bitmap = BitMap64(positions)
    bitmap.run_optimize()
    vector = VECTOR_MAGIC + bitmap.serialize()
    length, checksum = len(vector).to_bytes(4, "big"), zlib.crc32(vector).to_bytes(4, "big")
    return NewBlob(
        VECTOR_TYPE,
        length + vector + checksum,
        (_POSITION_ID,),
        properties={"referenced-data-file": data_file, "cardinality": str(len(bitmap))},
    )
