"""Replace the paths in manifests and manifest lists, leaving everything else as written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.schema import AvroField, AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest.avro_files import edited
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
from icesql.iceberg.schema import DELETE_FILE_PATH

_PATH, _LENGTH, _KEY = 500, 501, 519
_COLUMN_SIZES, _LOWER, _UPPER, _KEY_METADATA, _SPLITS = 108, 125, 128, 131, 132
_REFERENCED, _OFFSET = 143, 144
_Fields = Mapping[int, AvroField]


class ListedPath(Frozen):
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


class NewPath(Frozen):
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
    try:
        fields = by_field_id(parse_avro_schema(file.schema), LIST_NAMES)

        def edit(record: dict[str, Any]) -> None:
            found = _by_id(record, fields)
            if found.get(_KEY):
                raise UnsupportedTableError("encryption (a manifest is encrypted)", path=path)
            moved, length = change(_text(found, _PATH))
            _set(record, fields, {_PATH: moved, **({_LENGTH: length} if _LENGTH in found else {})})

        return edited(file, edit)
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(path, f"not a manifest: {error}") from error


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
    try:
        of_entry = by_field_id(parse_avro_schema(file.schema), ENTRY_NAMES)
        if DATA_FILE not in of_entry:
            raise OddSchema("entries without a file")
        fields = by_field_id(of_entry[DATA_FILE].node, FILE_NAMES)

        def edit(record: dict[str, Any]) -> None:
            entry = _by_id(record, of_entry)
            data_file = entry[DATA_FILE] or {}
            found = entry | _by_id(data_file, fields)
            listed = _listed(found, fields, path)
            if (listed.content is FileContent.DATA) != (content is ManifestContent.DATA):
                raise BadAvro(f"a {content.name.lower()} manifest lists a file of another content")
            _set(data_file, fields, _changes(found, fields, listed, change(listed)))

        return edited(file, edit)
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(path, f"not a manifest: {error}") from error


def _by_id(record: Mapping[str, Any], fields: _Fields) -> dict[int, Any]:
    return {field_id: record.get(each.name) for field_id, each in fields.items()}


def _set(record: dict[str, Any], fields: _Fields, changes: Mapping[int, Any]) -> None:
    for field_id, value in changes.items():
        name = fields[field_id].name
        if isinstance(record[name], bytes):
            value = value.encode()  # Avro allows bytes and strings for each other
        record[name] = value


def _listed(found: Mapping[int, Any], fields: _Fields, path: str) -> ListedPath:
    if found.get(_KEY_METADATA):
        raise UnsupportedTableError("encryption (a file is encrypted)", path=path)
    try:
        content = FileContent(found.get(CONTENT) or 0)
    except ValueError as error:
        raise BadAvro(f"a file of content {found.get(CONTENT)}") from error
    bounds = None
    if content is FileContent.POSITION_DELETES:
        lower, upper = (_bound(found, fields, each) for each in (_LOWER, _UPPER))
        bounds = None if lower is None or upper is None else (lower, upper)
    referenced = found.get(_REFERENCED)
    return ListedPath(
        _text(found, FILE_PATH),
        found.get(FILE_SIZE) or 0,
        content,
        _text(found, FILE_FORMAT).upper(),
        found.get(STATUS) != DELETED,
        None if referenced is None else _plain(referenced),
        bounds,
        found.get(SNAPSHOT_ID),
    )


def _changes(
    found: Mapping[int, Any], fields: _Fields, listed: ListedPath, new: NewPath
) -> dict[int, Any]:
    changes: dict[int, Any] = {FILE_PATH: new.path}
    if listed.referenced is not None:
        changes[_REFERENCED] = new.referenced
    if not listed.names_files:
        return changes
    for field_id, bound in zip((_LOWER, _UPPER), new.path_bounds or (None, None), strict=True):
        if _bound(found, fields, field_id) is not None:
            changes[field_id] = _with_bound(found[field_id], fields[field_id].node, bound)
    if new.length is None:
        return changes
    changes[FILE_SIZE] = new.length
    if found.get(_COLUMN_SIZES) is not None:
        key, value = _pair_names(fields[_COLUMN_SIZES].node)
        pairs = (new.column_sizes or {}).items()
        changes[_COLUMN_SIZES] = [{key: one, value: size} for one, size in pairs]
    if found.get(_SPLITS) is not None:
        known = [*(new.split_offsets or ())]
        optional = fields[_SPLITS].node.kind == "union"
        changes[_SPLITS] = None if not known and optional else known
    return changes


def _bound(found: Mapping[int, Any], fields: _Fields, field_id: int) -> bytes | None:
    """The bound of the paths in a position delete file."""
    key, value = _pair_names(fields[field_id].node) if found.get(field_id) else ("", "")
    for each in found.get(field_id) or ():
        if each[key] == DELETE_FILE_PATH.field_id:
            bound = each[value]
            return bound if isinstance(bound, bytes) else None
    return None


def _with_bound(pairs: Sequence[Any], node: AvroNode, bound: bytes | None) -> list[Any]:
    """The bounds with that of the paths replaced; None removes it."""
    key, value = _pair_names(node)
    return [
        each if each[key] != DELETE_FILE_PATH.field_id else {**each, value: bound}
        for each in pairs
        if each[key] != DELETE_FILE_PATH.field_id or bound is not None
    ]


def _pair_names(node: AvroNode) -> tuple[str, str]:
    key, value = pair_fields(node)
    return key.name, value.name


def _text(found: Mapping[int, Any], field_id: int) -> str:
    value = found.get(field_id)
    if not value:
        raise BadAvro(f"an entry without field {field_id}")
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode()  # Avro allows bytes and strings for each other
    if not isinstance(value, str):
        raise BadAvro(f"a path that is a {type(value).__name__}")
    return value
