"""The columns of a manifest that a filter needed, as bytes to be stored and read again.

Values are encoded as in the manifest, so pruning evaluates them anew each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from icesql.iceberg.manifest.narrow_entries import Columns

_VERSION: Final = 3
_DECODER: Final = msgspec.msgpack.Decoder(
    tuple[int, list[int], dict[str | tuple[str, int], list[bytes]]]
)


def packed(lengths: Sequence[int], columns: Columns) -> bytes:
    """The bytes of columns of entries that have these lengths."""
    return msgspec.msgpack.encode((_VERSION, [*lengths], columns))


def unpacked(data: bytes) -> tuple[list[int], Columns] | None:
    """The lengths and the columns again; None for bytes that ``packed`` did not write."""
    try:
        version, lengths, columns = _DECODER.decode(data)
    except msgspec.DecodeError:
        return None
    fits = all(len(each) in (0, len(lengths)) for each in columns.values())
    return (lengths, columns) if version == _VERSION and fits else None
