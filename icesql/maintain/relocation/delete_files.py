"""Rewrite files that name data files by path with other paths: position deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.container import read_avro_file
from icesql.iceberg.avro.schema import OddSchema, parse_avro_schema
from icesql.iceberg.manifest.edits import ListedPath, NewPath
from icesql.iceberg.manifest.schema import by_field_id
from icesql.iceberg.manifest.writing.container import edited
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icesql.iceberg.puffin.container import read_puffin_footer
from icesql.read.formats.decode_errors import decoding
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage

if TYPE_CHECKING:
    import pyarrow as pa

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

    from icesql.write.file_metrics import file_metrics
    from icesql.write.metrics_config import FULL
    from icesql.write.position_deletes import SCHEMA

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
    from icesql.iceberg.puffin.edits import edited_footer

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
