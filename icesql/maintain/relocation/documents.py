"""Reads the files that name other files by path, and rewrites these paths.

They are the JSON of table metadata, manifests and their lists, and position deletes; everything
else in them stays unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.container import read_avro_file
from icesql.iceberg.avro.schema import OddSchema, parse_avro_schema
from icesql.iceberg.manifest.avro_files import edited
from icesql.iceberg.manifest.edits import ListedPath, NewPath, edit_manifest
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile, snapshot_manifests
from icesql.iceberg.manifest.schema import by_field_id
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import (
    TableMetadata,
    metadata_document,
    parse_metadata,
)
from icesql.iceberg.puffin import read_puffin_footer
from icesql.iceberg.schema import DELETE_FILE_PATH, DELETE_POS
from icesql.read.formats.reader import decoding
from icesql.storage.new_files import NewFile
from icesql.storage.open import MANIFEST_LIST_BYTES, METADATA_BYTES, Storage
from icesql.write.options import PLACES

if TYPE_CHECKING:
    import pyarrow as pa


# The kinds of objects in the JSON of metadata that have the path of a file, and its key.
_PATHS: Final = (
    ("snapshots", "manifest-list"),
    ("metadata-log", "metadata-file"),
    ("statistics", "statistics-path"),
    ("partition-statistics", "statistics-path"),
)
Path = Callable[[str], str]


class Version(Frozen):
    """A version of a table's metadata: its file, as JSON and read."""

    path: str
    document: dict[str, Any]
    metadata: TableMetadata
    gzipped: bool


def read_version(storage: Storage, path: str, name: str) -> Version:
    """A version of the table of this name. Raises UnsupportedTableError if it is encrypted."""
    data = storage.read(path, most=METADATA_BYTES)
    document = metadata_document(data, path)
    _refuse_encrypted(document, name)
    return Version(path, document, parse_metadata(data, path), data.startswith(b"\x1f\x8b"))


def manifests_and_list(
    storage: Storage, snapshot: Snapshot
) -> tuple[tuple[ManifestFile, ...], bytes]:
    """The manifests of a snapshot, and the bytes of their list; none if it has no list."""
    data = b""

    def read(named: str) -> bytes:
        nonlocal data
        data = storage.read(named, most=MANIFEST_LIST_BYTES)
        return data

    return snapshot_manifests(snapshot, read, storage.location), data


def listed_deletes(data: bytes, location: str) -> list[ListedPath]:
    """The paths that a manifest of deletes lists."""
    found: list[ListedPath] = []

    def note(each: ListedPath) -> NewPath:
        found.append(each)
        return NewPath(each.path, each.referenced)

    edit_manifest(data, location, ManifestContent.DELETES, note)
    return found


def relocated_document(
    document: Mapping[str, Any],
    location: str,
    path: Path,
    metadata_path: Path,
    place: Callable[[str], str | None],
) -> dict[str, Any]:
    """The metadata document of the table moved to ``location``.

    ``path`` maps paths of files, ``metadata_path`` those of metadata files; ``place`` gives the
    new folder for a property of ``PLACES``, None to remove the property.
    """
    moved = copy.deepcopy(dict(document))
    moved["location"] = location
    for kind, key in _PATHS:
        change = metadata_path if kind == "metadata-log" else path
        for entry in _objects(moved, kind):
            if isinstance(entry.get(key), str):
                entry[key] = change(entry[key])
    for snapshot in _objects(moved, "snapshots"):
        if isinstance(snapshot.get("manifests"), list):
            snapshot["manifests"] = [path(each) for each in snapshot["manifests"]]
    properties = moved.get("properties")
    if isinstance(properties, dict):
        for name in PLACES:
            if isinstance(properties.get(name), str):
                found = place(properties[name])
                if found is None:
                    del properties[name]
                else:
                    properties[name] = found
    return moved


def _objects(document: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    listed = document.get(key)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def _refuse_encrypted(document: Mapping[str, Any], name: str) -> None:
    """Raise UnsupportedTableError for an encrypted table: the copy would not have its keys."""
    properties = document.get("properties")
    keys = isinstance(properties, dict) and properties.get("encryption.key-id")
    if (
        keys
        or document.get("encryption-keys")
        or any(each.get("key-id") is not None for each in _objects(document, "snapshots"))
    ):
        raise UnsupportedTableError("moving a table that is encrypted", table=name)


# ------------------------------------------------------------------ position deletes


Change = Callable[[str], str]

_PATH_ID: Final = DELETE_FILE_PATH.field_id
_NAMES: Final = {DELETE_FILE_PATH.name: _PATH_ID, DELETE_POS.name: DELETE_POS.field_id}
_FIELD_ID: Final = b"PARQUET:field_id"
_CHUNK: Final = 8 << 20
# The most bytes of an Avro delete file, which is read as a whole.
_LARGEST: Final = 1 << 30


class DeleteFacts(Frozen):
    """The facts that a manifest records about a delete file; for a Puffin file only its length."""

    length: int
    path_bounds: tuple[bytes, bytes] | None = None
    column_sizes: Mapping[int, int] | None = None
    split_offsets: tuple[int, ...] | None = None


def relocated_listing(
    listed: ListedPath, new: str, change: Change, facts: DeleteFacts | None
) -> NewPath:
    """The manifest entry for a file whose new path is ``new``.

    ``change`` maps the paths of data files that it names. ``facts`` are those of a rewritten file;
    None if the file no longer exists, or is unchanged.
    """
    referenced = None if listed.referenced is None else change(listed.referenced)
    if not listed.names_files:
        return NewPath(new, referenced)
    if facts is None:
        return NewPath(new, referenced, path_bounds=_moved_bounds(listed, change))
    return NewPath(new, referenced, *astuple(facts))


def _moved_bounds(listed: ListedPath, change: Change) -> tuple[bytes, bytes] | None:
    """The bounds if the file names one path; None for several, whose new bounds are unknown."""
    if listed.path_bounds is None or listed.path_bounds[0] != listed.path_bounds[1]:
        return None
    try:
        moved = change(listed.path_bounds[0].decode()).encode()
    except UnicodeError:
        return None
    return moved, moved


def write_relocated(
    storage: Storage, path: str, file_format: str, change: Change, new: NewFile
) -> None:
    """Write the file at ``path`` to ``new``, with the paths in it mapped by ``change``.

    Rows, their order, all columns and the blobs of a Puffin file are kept. Raises
    UnsupportedTableError for another format, CorruptFileError, StorageError.
    """
    match file_format:
        case "PARQUET":
            _write_parquet(storage, path, change, new)
        case "PUFFIN":
            _write_puffin(storage, path, change, new)
        case "AVRO":
            new.write(_avro(storage, path, change))
        case _:
            raise UnsupportedTableError(
                f"moving position deletes of format {file_format}", path=path
            )


def facts_of(storage: Storage, path: str, file_format: str) -> DeleteFacts:
    """The facts for a manifest about a file that ``write_relocated`` wrote.

    Raises CorruptFileError for an incomplete file.
    """
    length = storage.size(path)
    match file_format:
        case "PARQUET":
            return _parquet_facts(storage, path, length)
        case "AVRO":
            named: set[str] = set()

            def note(name: str) -> str:
                named.add(name)
                return name

            _avro(storage, path, note)
            encoded = sorted(each.encode() for each in named)
            return DeleteFacts(length, (encoded[0], encoded[-1]) if encoded else None)
        case _:
            read_puffin_footer(
                storage.location(path),
                length,
                lambda offset, size: storage.read(path, offset=offset, length=size),
            )
            return DeleteFacts(length)


# ------------------------------------------------------------------ Parquet


def _write_parquet(storage: Storage, path: str, change: Change, new: NewFile) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    location = storage.location(path)
    with decoding(location), storage.open(path) as stream:
        file = pq.ParquetFile(stream, read_dictionary=[DELETE_FILE_PATH.name])
        place = _place_of_path(file.schema_arrow, location)
        schema = file.schema_arrow
        key_values = file.metadata.metadata or {}
        schema = schema.with_metadata(
            {key: value for key, value in key_values.items() if key != b"ARROW:schema"}
        )
        known = cache(change)
        sink = pa.PythonFile(new, mode="w")
        with pq.ParquetWriter(
            sink, schema, compression=_codec(file.metadata), store_schema=False
        ) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                column = table.column(place)
                chunks = [_moved(each, known) for each in column.chunks]
                moved = pa.chunked_array(chunks, column.type)
                table = table.set_column(place, schema.field(place), moved)
                if table.num_rows:
                    writer.write_table(table, row_group_size=table.num_rows)


def _place_of_path(schema: pa.Schema, location: str) -> int:
    """The index of the column with the paths: by field id, else by name."""
    wanted = str(_PATH_ID).encode()
    for place, field in enumerate(schema):
        if (field.metadata or {}).get(_FIELD_ID) == wanted:
            return place
    place = schema.get_field_index(DELETE_FILE_PATH.name)
    if place < 0:
        raise CorruptFileError(location, "position deletes without paths")
    return int(place)


def _moved(chunk: pa.Array, change: Change) -> pa.Array:
    """A chunk of paths, changed; readers refuse NULL."""
    import pyarrow as pa

    is_encoded = pa.types.is_dictionary(chunk.type)
    old = chunk.dictionary if is_encoded else chunk
    paths = [None if each is None else change(each) for each in old.to_pylist()]
    values = pa.array(paths, old.type)
    if not is_encoded:
        return values
    if len({*paths}) < len(paths):  # two spellings of one file
        return values.take(chunk.indices).dictionary_encode()
    return pa.DictionaryArray.from_arrays(chunk.indices, values)


def _codec(metadata: Any) -> str:
    if not metadata.num_row_groups or not metadata.row_group(0).num_columns:
        return "zstd"
    codec = str(metadata.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none"}.get(codec, codec)


def _parquet_facts(storage: Storage, path: str, length: int) -> DeleteFacts:
    import pyarrow.parquet as pq

    from icesql.write.deletes import SCHEMA
    from icesql.write.metrics import FULL, file_metrics

    with decoding(storage.location(path)), storage.open(path) as stream:
        footer = pq.ParquetFile(stream).metadata
        ids = {
            field.name: int((field.metadata or {}).get(_FIELD_ID, _NAMES.get(field.name, -1)))
            for field in footer.schema.to_arrow_schema()
        }
        leaves = [ids.get(footer.schema.column(n).path, -1) for n in range(len(footer.schema))]
    modes = dict.fromkeys(SCHEMA.field_by_id, FULL)
    found = file_metrics(footer, leaves, SCHEMA, modes, [{}] * footer.num_row_groups)
    bounds = None
    if _PATH_ID in found.lower_bounds:
        bounds = found.lower_bounds[_PATH_ID], found.upper_bounds[_PATH_ID]
    return DeleteFacts(length, bounds, found.column_sizes, found.split_offsets)


# ------------------------------------------------------------------ Puffin, Avro


def _write_puffin(storage: Storage, path: str, change: Change, new: NewFile) -> None:
    from icesql.iceberg.puffin import edited_footer

    location, size = storage.location(path), storage.size(path)

    def read(offset: int, length: int) -> bytes:
        return storage.read(path, offset=offset, length=length)

    end, footer = edited_footer(location, size, read, change)
    for offset in range(0, end, _CHUNK):
        new.write(read(offset, min(_CHUNK, end - offset)))
    new.write(footer)


def _avro(storage: Storage, path: str, change: Change) -> bytes:
    location = storage.location(path)
    file = read_avro_file(storage.read(path, most=_LARGEST), location)
    try:
        field = by_field_id(parse_avro_schema(file.schema), _NAMES).get(_PATH_ID)
        if field is None:
            raise OddSchema("position deletes without paths")
        name = field.name

        def edit(record: dict[str, Any]) -> None:
            record[name] = change(str(record[name]))

        return edited(file, edit)
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(location, f"not position deletes: {error}") from error
