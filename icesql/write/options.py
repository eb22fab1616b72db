"""How and where data files are written, by the table's properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from msgspec import field

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform

_CODECS: Final = {
    "zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "lz4_raw": "lz4",
    "brotli": "brotli", "uncompressed": "none", "none": "none",
}  # fmt: skip
# The default of zlib and Java. pyarrow's default 9 takes ten times as long for columns of repeated
# values and saves a hundredth: 7.5 s for a million rows of four columns, against 0.8.
_GZIP_LEVEL: Final = 6
# Allows Parquet files in a table whose own format is another one.
MIXED: Final = "write.icesql.mix-parquet.enabled"
FORMATS: Final = ("write.format.default", "write.delete.format.default")
_PARQUET: Final = "write.parquet."
_BLOOM: Final = _PARQUET + "bloom-filter-enabled.column."
_BLOOM_FPP: Final = _PARQUET + "bloom-filter-fpp.column."
_MB: Final = 1 << 20


class WriteOptions(Frozen):
    """Sizes are in bytes. ``codec`` is pyarrow's name; ``level`` None is the codec's default.

    ``bloom_filters`` has the share of false positives by the full name of a column.
    """

    codec: str = "gzip"
    level: int | None = None
    target_file_size: int = 512 * _MB
    row_group_size: int = 128 * _MB
    page_size: int = _MB
    page_rows: int = 20_000
    dictionary_size: int = 2 * _MB
    bloom_filters: Mapping[str, float] = field(default_factory=dict)
    without_dictionary: tuple[str, ...] = ()
    without_statistics: tuple[str, ...] = ()


def write_options(properties: Mapping[str, str], *, deletes: bool = False) -> WriteOptions:
    """The options of data files, or of position delete files.

    Data files of a table with format ORC or Avro are Parquet if its property MIXED allows that;
    delete files are Parquet unless a property sets another format. Raises UnsupportedTableError
    naming a property whose value cannot be used.
    """
    _check_format(properties, deletes=deletes)
    given = _below(properties, _PARQUET)
    if deletes:
        given |= _below(properties, "write.delete.parquet.")
    codec = given.get("compression-codec", "gzip").lower()
    if codec not in _CODECS:
        raise UnsupportedTableError(f"the codec {codec} (write.parquet.compression-codec)")
    target = "write.delete.target-file-size-bytes" if deletes else "write.target-file-size-bytes"
    return WriteOptions(
        codec=_CODECS[codec],
        level=_level(given, _CODECS[codec]),
        target_file_size=_positive(properties, target, 64 * _MB if deletes else 512 * _MB),
        row_group_size=_positive(given, "row-group-size-bytes", 128 * _MB),
        page_size=_positive(given, "page-size-bytes", _MB),
        page_rows=_positive(given, "page-row-limit", 20_000),
        dictionary_size=_positive(given, "dict-size-bytes", 2 * _MB),
        bloom_filters=_bloom_filters(properties),
        without_dictionary=_switched_off(properties, "dict-encoding-enabled.column."),
        without_statistics=_switched_off(properties, "stats-enabled.column."),
    )


def _check_format(properties: Mapping[str, str], *, deletes: bool) -> None:
    name = FORMATS[1] if deletes else FORMATS[0]
    form = properties.get(name, "parquet").lower()
    if form == "parquet" or properties.get(MIXED, "false").lower() == "true":
        return
    hint = f"ALTER TABLE … SET TBLPROPERTIES ('{MIXED}' = 'true') allows that"
    if not deletes:
        hint += ", and a merge-on-read DELETE ('write.delete.mode') needs no data file"
    raise UnsupportedTableError(
        f"writing {form} files ({name}): icesql writes Parquet, which may lie beside others",
        hint=hint,
    )


def check_table(metadata: TableMetadata) -> None:
    """Raise UnsupportedTableError for a table that icesql cannot write to."""
    if metadata.encryption_keys:
        raise UnsupportedTableError("writing to an encrypted table")
    check_properties_of_table(metadata.properties)


def check_properties_of_table(properties: Mapping[str, str]) -> None:
    """Raise UnsupportedTableError for a property that prevents writing."""
    if properties.get("encryption.key-id"):
        raise UnsupportedTableError("writing to an encrypted table (encryption.key-id)")
    provider = properties.get("write.location-provider.impl")
    if provider:
        raise UnsupportedTableError(
            f"writing where the Java class {provider} says (write.location-provider.impl)"
        )


def _positive(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key)
    if text is None:
        return default
    if (value := whole_number(text, 1)) is None:
        raise UnsupportedTableError(
            f"the table property {key} = {text[:40]!r}: not a positive number of 64 bits"
        )
    return value


def _level(given: Mapping[str, str], codec: str) -> int | None:
    text = given.get("compression-level")
    if codec not in ("zstd", "gzip", "brotli"):
        return None
    if text is None:
        return _GZIP_LEVEL if codec == "gzip" else None
    if re.fullmatch(r"[+-]?[0-9]{1,4}", text.strip()):
        return int(text)
    raise UnsupportedTableError(
        f"the table property write.parquet.compression-level = {text[:40]!r}: not a level"
    )


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, float]:
    found = {}
    for name, value in _below(properties, _BLOOM).items():
        if value.lower() == "true":
            text = properties.get(_BLOOM_FPP + name, "0.01")
            try:
                share = float(text)
            except ValueError:
                share = 0.0
            if not 0 < share < 1:
                raise UnsupportedTableError(f"the table property {_BLOOM_FPP}{name} = {text!r}")
            found[name] = share
    return found


def _switched_off(properties: Mapping[str, str], part: str) -> tuple[str, ...]:
    switches = _below(properties, _PARQUET + part)
    return tuple(name for name, value in switches.items() if value.lower() == "false")


def _below(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The properties whose names begin with a prefix, by the rest of their names."""
    return {
        key.removeprefix(prefix): value
        for key, value in properties.items()
        if key.startswith(prefix)
    }


# ------------------------------------------------------------------ paths of new data files
# Source: Iceberg's LocationProviders and PartitionSpec.partitionToPath.


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
