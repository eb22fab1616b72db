"""The options for writing data files, from the table's properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import field

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.table_metadata import TableMetadata

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
