"""The paths of new data files: partition folders, or hashed folders for object stores.

Source: Iceberg's LocationProviders and PartitionSpec.partitionToPath.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform

# Properties with the folders of new files.
PLACES: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_HASH_BITS: Final = 20
# The most characters of a folder's name; file systems allow 255 bytes.
_LONGEST_FOLDER: Final = 200
_CUT_ESCAPE: Final = re.compile(r"%[0-9A-F]?\Z")


class DataLocations(Frozen):
    """The paths of a table's new files, in the table's own spelling; picklable.

    ``context`` is the name of the database and table, which hashed paths include if data is
    outside of the table's folder.
    """

    folder: str
    by_hash: bool = False
    partition_folders: bool = True
    context: str = ""

    def path(self, name: str, partition: str = "") -> str:
        """The path of the file ``name`` in a partition's folder, "" without partitions.

        >>> DataLocations("s3://b/t/data").path("f.parquet", "p=1")
        's3://b/t/data/p=1/f.parquet'
        >>> DataLocations("d", by_hash=True).path("a")
        'd/0101/0110/1001/10110010/a'
        """
        inner = f"{partition}/{name}" if partition else name
        if not self.by_hash:
            return f"{self.folder}/{inner}"
        if not self.partition_folders:
            inner = name
        bits = _hash_folders(inner)
        if self.context:
            return f"{self.folder}/{bits}/{self.context}/{inner}"
        return f"{self.folder}/{bits}{'/' if self.partition_folders else '-'}{inner}"


def data_locations(metadata: TableMetadata) -> DataLocations:
    """The locations that the table's properties configure for new data files."""
    properties = metadata.properties
    by_hash = _is_true(properties, "write.object-storage.enabled", default=False)
    own = f"{metadata.location}/data"
    folder = properties.get("write.data.path")
    if folder is None and by_hash:
        folder = properties.get("write.object-storage.path")
    if folder is None:
        folder = properties.get("write.folder-storage.path", own)
    folder = folder.rstrip("/") or "/"
    context = ""
    if by_hash and not f"{folder}/".startswith(f"{metadata.location}/"):
        # The last two folders of a location are usually those of database and table.
        context = "/".join([each for each in metadata.location.split("/") if each][-2:])
    partition_folders = _is_true(properties, "write.object-storage.partitioned-paths", default=True)
    return DataLocations(folder, by_hash, partition_folders, context)


def _is_true(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    return properties.get(key, str(default)).strip().lower() == "true"


def _hash_folders(name: str) -> str:
    """The low 20 bits of the name's hash as four folders.

    >>> _hash_folders("b"), _hash_folders("test.parquet")
    ('1110/0111/1110/00000011', '0110/1010/0011/11101000')
    """
    from mmh3 import hash as murmur3_x86_32

    value = murmur3_x86_32(name.encode("utf-8"), signed=False)
    bits = f"{value & ((1 << _HASH_BITS) - 1):0{_HASH_BITS}b}"
    return "/".join((bits[:4], bits[4:8], bits[8:12], bits[12:]))


def partition_path(
    spec: PartitionSpec, schema: Schema, types: tuple[t.IcebergType, ...], values: tuple[Any, ...]
) -> str:
    """``name=value`` for each field of a partition tuple, "" without fields.

    ``types`` are those of the partition values. Names and values are form-encoded, so that
    ``data#1=val#1`` becomes ``data%231=val%231``, and NULL is ``null``. A text too long for file
    systems is cut: no reader depends on it, and file names are unique without it.
    """
    parts = []
    for each, type, value in zip(spec.fields, types, values, strict=True):
        source = schema.field_by_id.get(each.source_id)
        text = parse_transform(each.transform).human(value, type if source is None else source.type)
        part = f"{_encoded(each.name)}={_encoded(text)}"
        if len(part) > _LONGEST_FOLDER:
            part = _CUT_ESCAPE.sub("", part[:_LONGEST_FOLDER])
        parts.append(part)
    return "/".join(parts)


def _encoded(text: str) -> str:
    """Encode as Java's URLEncoder does."""
    return quote_plus(text, safe="*-._").replace("~", "%7E")
