"""Metadata that this process writes, version after version, encoding only the differences.

A table keeps thousands of snapshots, and each version lists all of them: elements of the version
before are neither encoded nor parsed again.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from icesql.iceberg.metadata.json_fields import goes_on
from icesql.iceberg.metadata.json_writer import exact_json, metadata_bytes
from icesql.iceberg.metadata.table_metadata import TableMetadata, parse_document

# The arrays that grow by an element with each snapshot.
_GROWING: Final = ("snapshots", "snapshot-log")


class WrittenMetadata(Struct, frozen=True):
    """A metadata file by its content: the decoded JSON, and the parsed metadata.

    ``arrays`` is the text of the growing arrays, without brackets. Nothing in it may be
    changed.
    """

    document: dict[str, Any]
    metadata: TableMetadata
    arrays: Mapping[str, bytes]

    def items(self, key: str) -> list[Any]:
        """The elements of a growing array that ``arrays`` has the text of."""
        found: list[Any] = self.document[key] if key in self.arrays else []
        return found


class _Array(Struct, frozen=True):
    """A growing array: elements of the base, and the text of what follows them and of all."""

    before: list[Any]
    added: bytes
    whole: bytes


class EncodedMetadata(Struct, frozen=True):
    """The bytes of a metadata file, as ``metadata_bytes`` makes them of its JSON."""

    data: bytes
    base: WrittenMetadata | None
    # The document without the elements of ``arrays``; None where it was encoded as a whole.
    rest: bytes | None = None
    arrays: Mapping[str, _Array] = {}

    def packed(self, *, gzipped: bool) -> bytes:
        """The bytes of the file."""
        return gzip.compress(self.data) if gzipped else self.data

    def written(self, path: str) -> WrittenMetadata | None:
        """The metadata as a reader of the file at ``path`` finds it; None if the file must be read.

        Raises as ``parse_document``.
        """
        if self.rest is None:
            return None
        document: dict[str, Any] = msgspec.json.decode(self.rest)
        for key, each in self.arrays.items():
            document[key] = [*each.before, *msgspec.json.decode(b"[%b]" % each.added)]
        before = None if self.base is None else (self.base.document, self.base.metadata)
        metadata = parse_document(document, path, before)
        return WrittenMetadata(
            document, metadata, {key: each.whole for key, each in self.arrays.items()}
        )


def encoded(document: Mapping[str, Any], base: WrittenMetadata | None = None) -> EncodedMetadata:
    """The file of a document that was made of ``base``. Raises ValueError as ``metadata_bytes``."""
    found: dict[str, _Array] = {}
    for key in _GROWING:
        items = document.get(key)
        if type(items) is list and items:
            array = _array(items, key, base)
            if array is None:
                return EncodedMetadata(metadata_bytes(document), base)
            found[key] = array
    rest = exact_json({**document, **{key: [] for key in found}})
    if rest is None:
        return EncodedMetadata(metadata_bytes(document), base)
    texts = {key: msgspec.Raw(b"[%b]" % each.whole) for key, each in found.items()}
    return EncodedMetadata(msgspec.json.encode({**document, **texts}), base, rest, found)


def _array(items: list[Any], key: str, base: WrittenMetadata | None) -> _Array | None:
    before = [] if base is None else base.items(key)
    text = b"" if base is None or not before else base.arrays[key]
    if not goes_on(items, before):
        before, text = [], b""
    added = exact_json(items[len(before) :])
    if added is None:
        return None
    added = added[1:-1]
    return _Array(before, added, b",".join(each for each in (text, added) if each))
