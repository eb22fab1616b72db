"""Replace the paths in manifests and manifest lists, leaving everything else as written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.avro.edits import Find, FoundField, edited, find_fields, is_optional
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.entries import DELETED
from icesql.iceberg.manifest.manifest import LIST_NAMES, ManifestContent, read_manifest_file
from icesql.iceberg.manifest.schema import (
    CONTENT,
    DATA_FILE,
    ENTRY_NAMES,
    FILE_FORMAT,
    FILE_NAMES,
    FILE_PATH,
    FILE_SIZE,
    SNAPSHOT_ID,
    STATUS,
    by_field_id,
    pair_fields,
)
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.metadata_columns import DELETE_FILE_PATH

_PATH, _LENGTH, _KEY = 500, 501, 519
_LIST_FIELDS: Final = frozenset({_PATH, _LENGTH, _KEY})
_COLUMN_SIZES, _LOWER, _UPPER, _KEY_METADATA, _SPLITS = 108, 125, 128, 131, 132
_REFERENCED, _OFFSET = 143, 144
_OF_FILES: Final = frozenset(
    {STATUS, SNAPSHOT_ID, CONTENT, FILE_PATH, FILE_FORMAT, FILE_SIZE, _KEY_METADATA}
)
_OF_DELETES: Final = _OF_FILES | {
    _COLUMN_SIZES, _LOWER, _UPPER, _SPLITS, _REFERENCED, _OFFSET,
}  # fmt: skip


class ListedPath(Struct, frozen=True):
    """The fields of an entry about its file. ``file_format`` is in capitals.

    ``path_bounds`` are those of the paths in a position delete file, cut short maybe.
    """

    path: str
    length: int
    content: FileContent
    file_format: str
    is_live: bool
    referenced: str | None = None
    path_bounds: tuple[bytes, bytes] | None = None
    # The snapshot that added or removed the file; None: inherited from the manifest.
    snapshot_id: int | None = None

    @property
    def names_files(self) -> bool:
        """Whether data files are named in the file itself: deletes by position are such."""
        return self.content is FileContent.POSITION_DELETES


class NewPath(Struct, frozen=True):
    """The new path of a file. ``length`` None: the file is the same, byte for byte.

    A rewritten file also has the bounds of the paths in it, its column sizes by field id and the
    offsets of its row groups; None means unknown.
    """

    path: str
    referenced: str | None = None
    length: int | None = None
    path_bounds: tuple[bytes, bytes] | None = None
    column_sizes: Mapping[int, int] | None = None
    split_offsets: Sequence[int] | None = None


def edit_manifest_list(data: bytes, path: str, change: Callable[[str], tuple[str, int]]) -> bytes:
    """A manifest list with the new path and length that ``change`` returns for each manifest.

    Raises CorruptFileError, UnsupportedTableError where something is encrypted.
    """
    file = read_manifest_file(data, path)

    def edit(found: Mapping[int, FoundField]) -> dict[int, Any]:
        if _value(found, _KEY):
            raise UnsupportedTableError("encryption (a manifest is encrypted)", path=path)
        moved, length = change(_text(found, _PATH))
        return {_PATH: moved, **({_LENGTH: length} if _LENGTH in found else {})}

    return edited(file, _finder(file.schema, path, _find_in_list), edit)


def edit_manifest(
    data: bytes,
    path: str,
    content: ManifestContent,
    change: Callable[[ListedPath], NewPath],
) -> bytes:
    """A manifest with the new paths that ``change`` returns; it is called for each entry in order.

    Raises CorruptFileError, UnsupportedTableError where something is encrypted.
    """
    file = read_manifest_file(data, path)

    def edit(found: Mapping[int, FoundField]) -> dict[int, Any]:
        listed = _listed(found, path)
        if (listed.content is FileContent.DATA) != (content is ManifestContent.DATA):
            raise BadAvro(f"a {content.name.lower()} manifest lists a file of another content")
        return _changes(found, listed, change(listed))

    wanted = _OF_FILES if content is ManifestContent.DATA else _OF_DELETES
    find = _finder(file.schema, path, lambda schema: _find_in_manifest(schema, wanted))
    return edited(file, find, edit)


def _finder(schema: bytes, path: str, find: Callable[[AvroNode], Find]) -> Find:
    try:
        return find(parse_avro_schema(schema))
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(path, f"not a manifest: {error}") from error


def _find_in_list(schema: AvroNode) -> Find:
    return find_fields(_numbered(schema, LIST_NAMES), _LIST_FIELDS)


def _find_in_manifest(schema: AvroNode, wanted: frozenset[int]) -> Find:
    entry = _numbered(schema, ENTRY_NAMES)
    file = by_field_id(entry, ENTRY_NAMES).get(DATA_FILE)
    if file is None:
        raise OddSchema("entries without a file")
    return find_fields(entry, wanted, {DATA_FILE: _numbered(file.node, FILE_NAMES)})


def _numbered(node: AvroNode, names: Mapping[str, int]) -> AvroNode:
    """A record, or a union with one, whose fields have their ids, whatever the writer gave."""
    if node.kind == "union":
        items = tuple(
            _numbered(each, names) if each.kind == "record" else each for each in node.items
        )
        return replace(node, items=items)
    ids = {each.name: field_id for field_id, each in by_field_id(node, names).items()}
    fields = tuple(replace(each, field_id=ids.get(each.name)) for each in node.fields)
    return replace(node, fields=fields)


def _listed(found: Mapping[int, FoundField], path: str) -> ListedPath:
    if _value(found, _KEY_METADATA):
        raise UnsupportedTableError("encryption (a file is encrypted)", path=path)
    try:
        content = FileContent(_value(found, CONTENT) or 0)
    except ValueError as error:
        raise BadAvro(f"a file of content {_value(found, CONTENT)}") from error
    bounds = None
    if content is FileContent.POSITION_DELETES:
        lower, upper = (_bound(found.get(each)) for each in (_LOWER, _UPPER))
        bounds = None if lower is None or upper is None else (lower, upper)
    referenced = _value(found, _REFERENCED)
    return ListedPath(
        _text(found, FILE_PATH),
        _value(found, FILE_SIZE) or 0,
        content,
        _text(found, FILE_FORMAT).upper(),
        _value(found, STATUS) != DELETED,
        None if referenced is None else _plain(referenced),
        bounds,
        _value(found, SNAPSHOT_ID),
    )


def _changes(found: Mapping[int, FoundField], listed: ListedPath, new: NewPath) -> dict[int, Any]:
    changes: dict[int, Any] = {FILE_PATH: new.path}
    if listed.referenced is not None:
        changes[_REFERENCED] = new.referenced
    if not listed.names_files:
        return changes
    bounds = new.path_bounds or (None, None)
    for field_id, bound in zip((_LOWER, _UPPER), bounds, strict=True):
        field = found.get(field_id)
        if _bound(field) is not None and field is not None:
            changes[field_id] = _with_value(field, DELETE_FILE_PATH.field_id, bound)
    if new.length is None:
        return changes
    changes[FILE_SIZE] = new.length
    sizes, splits = found.get(_COLUMN_SIZES), found.get(_SPLITS)
    if sizes is not None and sizes.value is not None:
        key, value = pair_fields(sizes.node)
        pairs = (new.column_sizes or {}).items()
        changes[_COLUMN_SIZES] = [{_name(key): one, _name(value): size} for one, size in pairs]
    if splits is not None and splits.value is not None:
        known = [*(new.split_offsets or ())]
        changes[_SPLITS] = None if not known and is_optional(splits.node) else known
    return changes


def _bound(field: FoundField | None) -> bytes | None:
    """The bound of the paths in a position delete file."""
    if field is None or not field.value:
        return None
    key, value = map(_name, pair_fields(field.node))
    for each in field.value:
        if each[key] == DELETE_FILE_PATH.field_id:
            bound = each[value]
            return bound if isinstance(bound, bytes) else None
    return None


def _with_value(field: FoundField, field_id: int, bound: bytes | None) -> list[Any]:
    """The bounds with one replaced for a column; None removes it."""
    key, value = map(_name, pair_fields(field.node))
    return [
        each if each[key] != field_id else {**each, value: bound}
        for each in field.value
        if each[key] != field_id or bound is not None
    ]


def _name(field: Any) -> Any:
    return field.name if field.field_id is None else field.field_id


def _value(found: Mapping[int, FoundField], field_id: int) -> Any:
    field = found.get(field_id)
    return None if field is None else field.value


def _text(found: Mapping[int, FoundField], field_id: int) -> str:
    value = _value(found, field_id)
    if not value:
        raise BadAvro(f"an entry without field {field_id}")
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode()  # Avro allows bytes and strings for each other
    if not isinstance(value, str):
        raise BadAvro(f"a path that is a {type(value).__name__}")
    return value
