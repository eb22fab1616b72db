"""Manifest lists and manifests: their bytes become ManifestFiles and ManifestEntries.

Fields are found by field id, whatever the writer called them, and null ids are inherited from the
list as the spec says. Source: Iceberg spec, "Manifest Lists", "Manifests", "Inheritance".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.container import AvroFile, read_avro_file
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro, compile_reader
from icesql.iceberg.manifest.compiled_walk import as_written, read_manifest
from icesql.iceberg.manifest.entries import (
    ADDED,
    DELETED,
    EXISTING,
    ManifestColumns,
    ManifestEntries,
)
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.manifest.schema import LISTED, SUMMARY, by_field_id, names_of
from icesql.iceberg.metadata.json_fields import Malformed, of_file, whole_number
from icesql.iceberg.metadata.snapshot import Snapshot, has_files

if TYPE_CHECKING:
    from icesql.iceberg.manifest.filtered_manifest import NarrowEntries

# The first bytes of a file under Iceberg's AES GCM stream encryption.
_ENCRYPTED: Final = b"AGS1"


class ManifestContent(IntEnum):
    """The kind of files that a manifest lists."""

    DATA = 0
    DELETES = 1


class FieldSummary(Frozen):
    """A summary of the partition values of one field in a whole manifest.

    Bounds are single-value bytes of the partition type and leave out NaN; both None says that all
    values are null or NaN. ``contains_nan`` None is unknown.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


class ManifestFile(Frozen):
    """One manifest of a snapshot; counts that are None are unknown, not zero.

    ``partitions`` has a summary per field of the spec, or is None.
    """

    manifest_path: str
    manifest_length: int | None = None
    partition_spec_id: int = 0
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def has_live_files(self) -> bool:
        """False only if the counts of both files and rows say that every entry is deleted."""
        files = self.added_files_count != 0 or self.existing_files_count != 0
        return files or bool(self.added_rows_count or self.existing_rows_count)

    @property
    def live_files(self) -> int:
        """How many files are in the table; an unknown count is none."""
        return (self.added_files_count or 0) + (self.existing_files_count or 0)

    @property
    def counts(self) -> tuple[tuple[int | None, int | None], ...]:
        """Files and rows by the status of entries: existing, added, deleted."""
        return (
            (self.existing_files_count, self.existing_rows_count),
            (self.added_files_count, self.added_rows_count),
            (self.deleted_files_count, self.deleted_rows_count),
        )

    @property
    def entries_count(self) -> int | None:
        """How many entries the manifest has, None when a count is unknown."""
        known = [files for files, _ in self.counts if files is not None]
        return sum(known) if len(known) == len(self.counts) else None


LIST_NAMES: Final = {
    **names_of(LISTED),
    "added_data_files_count": 504,
    "existing_data_files_count": 505,
    "deleted_data_files_count": 506,
}
_KINDS: Final = {"manifest_path": str, "key_metadata": bytes}
_SUMMARY_NAMES: Final = names_of(SUMMARY)


def snapshot_manifests(
    snapshot: Snapshot,
    read: Callable[[str], bytes],
    locate: Callable[[str], str] | None = None,
) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the order of its list.

    ``read`` gives the bytes of a path; ``locate`` where a path is opened, for errors. Raises
    CorruptFileError, UnsupportedTableError for an encrypted list, and what ``read`` raises.
    """
    if snapshot.manifest_list is None:
        named: dict[str, int] = {}
        for path in snapshot.manifests or ():
            _refuse_repeated(path, named, f"of snapshot {snapshot.snapshot_id}")
        return tuple(
            _inline_manifest(path, snapshot, read(path), locate(path) if locate else path)
            for path in snapshot.manifests or ()
        )
    shown = locate(snapshot.manifest_list) if locate else snapshot.manifest_list
    data = read(snapshot.manifest_list)
    manifests = decode_manifest_list(data, path=shown)
    if not manifests and has_files(snapshot.summary):
        raise CorruptFileError(
            shown, f"an empty manifest list, yet snapshot {snapshot.snapshot_id} has files"
        )
    return manifests


def _inline_manifest(path: str, snapshot: Snapshot, data: bytes, shown: str) -> ManifestFile:
    # Written before there were lists; nothing but the file itself knows its spec.
    file = read_manifest_file(data, shown)
    text = file.metadata.get("partition-spec-id", b"0")
    try:
        spec_id = int(text)
    except ValueError as error:
        raise CorruptFileError(shown, "partition-spec-id is not a number") from error
    return ManifestFile(
        path,
        manifest_length=len(data),
        partition_spec_id=spec_id,
        added_snapshot_id=snapshot.snapshot_id,
    )


def decode_manifest_list(data: bytes, *, path: str) -> tuple[ManifestFile, ...]:
    """The manifests that a manifest list names. Raises CorruptFileError."""
    file = read_manifest_file(data, path)
    try:
        schema = parse_avro_schema(file.schema)
        fields = {each.name: field_id for field_id, each in by_field_id(schema, LIST_NAMES).items()}
        read_row = compile_reader(_with_ids(schema, fields))
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(path, f"not a manifest list: {error}") from error
    manifests: list[ManifestFile] = []
    named: dict[str, int] = {}
    position = 0
    for count, end, offset in file.blocks:
        try:
            for _ in range(count):
                row, position = read_row(file.data, position)
                manifests.append(_manifest_file(row))
                _refuse_repeated(manifests[-1].manifest_path, named, path)
            if position != end:
                raise BadAvro("a block does not end where its records end")
        except (IndexError, BadAvro, UnicodeDecodeError) as error:
            problem = "a block ends early" if isinstance(error, IndexError) else error
            raise CorruptFileError(path, f"bad Avro block: {problem}", offset=offset) from error
    return tuple(manifests)


def _refuse_repeated(manifest: str, named: dict[str, int], path: str) -> None:
    """Note a manifest of the list at ``path``; listed again, its rows would be read twice."""
    number = len(named) + 1
    first = named.setdefault(manifest, number)
    if first != number:
        problem = f"manifest {manifest} is listed twice, as entries {first} and {number}"
        raise CorruptFileError(path, problem)


def _with_ids(schema: AvroNode, ids: Mapping[str, int]) -> AvroNode:
    from msgspec.structs import replace

    return replace(
        schema,
        fields=tuple(replace(each, field_id=ids.get(each.name)) for each in schema.fields),
    )


def _manifest_file(row: Mapping[Any, Any]) -> ManifestFile:
    given = {
        name: value
        for name in ManifestFile.__struct_fields__
        if name != "partitions"
        if (value := _optional(row, LIST_NAMES[name], _KINDS.get(name, int))) is not None
    }
    content = given.get("content", 0)
    if content not in (0, 1):
        raise BadAvro(f"a manifest of content {content}")
    for name in ("manifest_path", "partition_spec_id"):
        if given.get(name, "") == "":
            raise BadAvro(f"a manifest without field {LIST_NAMES[name]}")
    given |= {"content": ManifestContent(content), "partitions": _summaries(row.get(507))}
    return ManifestFile(**given)


def _optional(row: Mapping[Any, Any], field_id: int, kind: type) -> Any:
    value = row.get(field_id)
    if kind is str and type(value) is bytes:
        value = value.decode()  # Avro allows bytes and strings for each other
    elif kind is bytes and type(value) is str:
        value = value.encode()
    if value is not None and type(value) is not kind:
        raise BadAvro(f"field {field_id} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _summaries(rows: Any) -> tuple[FieldSummary, ...] | None:
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(each, dict | None) for each in rows):
        raise BadAvro("partition summaries that are not records")
    if None in rows:
        return None
    summaries = []
    for each in rows:
        if 509 not in each:  # a writer without field ids
            each = {_SUMMARY_NAMES.get(key, key): value for key, value in each.items()}
        summaries.append(
            FieldSummary(
                # Unknown: there may be nulls.
                _optional(each, 509, bool) is not False,
                _optional(each, 518, bool),
                _optional(each, 510, bytes),
                _optional(each, 511, bytes),
            )
        )
    return tuple(summaries)


def decode_manifest(
    data: bytes,
    manifest: ManifestFile,
    *,
    path: str,
    form: PartitionForm,
) -> ManifestEntries:
    """The entries of a manifest, with the values they inherit from the manifest list.

    ``form`` is that of the manifest's spec. Raises CorruptFileError naming ``path``,
    UnsupportedTableError when it is encrypted.
    """
    file = open_manifest(data, manifest, path, form)
    columns = read_manifest(file, form)
    check_entries(columns, manifest, len(data), path)
    return inherit(columns, manifest, path)


def open_manifest(data: bytes, manifest: ManifestFile, path: str, form: PartitionForm) -> AvroFile:
    """The blocks of a manifest, with the schema they were written by.

    Raises as ``decode_manifest`` does.
    """
    return as_written(read_manifest_file(data, path), form, manifest.counts)


def read_manifest_file(data: bytes, path: str) -> AvroFile:
    """The blocks of a manifest or a list. Raises as ``decode_manifest`` does."""
    if data.startswith(_ENCRYPTED):
        raise UnsupportedTableError("encrypted metadata", path=path)
    return read_avro_file(data, path)


def check_entries(
    columns: ManifestColumns, manifest: ManifestFile, size: int | None, path: str
) -> None:
    """Raise CorruptFileError where the manifest contradicts itself or its list.

    ``size`` None means that its length is known to be as listed.
    """
    if not {EXISTING, ADDED, DELETED}.issuperset(columns.status):
        raise CorruptFileError(path, "an entry is neither existing, added nor deleted")
    if "" in columns.path:
        raise CorruptFileError(path, "an entry with an empty file path")
    allowed = {0} if manifest.content is ManifestContent.DATA else {1, 2}
    if not allowed.issuperset(columns.content):
        raise CorruptFileError(
            path, f"a {manifest.content.name.lower()} manifest lists files of another content"
        )
    check_count(manifest, len(columns.status), path)
    # Writers miscount, and a manifest rewritten in place (as when a table moves) has another
    # length; one of another length that another snapshot wrote is another manifest.
    if size is None or manifest.manifest_length in (None, size):
        return
    if manifest.added_snapshot_id is None:
        return
    adders = {
        snapshot_id
        for snapshot_id, status in zip(columns.snapshot_id, columns.status, strict=True)
        if status == ADDED and snapshot_id is not None
    }
    if adders and manifest.added_snapshot_id not in adders:
        listed = f"{manifest.manifest_length} bytes of snapshot {manifest.added_snapshot_id}"
        problem = f"{listed} by the manifest list, found {size} of snapshot {min(adders)}"
        raise CorruptFileError(path, problem)


def check_count(manifest: ManifestFile, found: int, path: str) -> None:
    """Raise CorruptFileError where a manifest has fewer entries than its list says."""
    # A file cut between two blocks is still valid Avro; only the list shows that it is short.
    expected = manifest.entries_count
    if expected is not None and found < expected:
        raise CorruptFileError(path, f"{found} entries where the manifest list says {expected}")


def inherit(columns: ManifestColumns, manifest: ManifestFile, path: str) -> ManifestEntries:
    """The entries with the values inherited from the list. Raises CorruptFileError."""
    inherited = manifest.added_snapshot_id
    sequence_numbers = _sequence_numbers(columns, manifest, path)
    return ManifestEntries(
        spec_id=manifest.partition_spec_id,
        status=columns.status,
        snapshot_id=[inherited if each is None else each for each in columns.snapshot_id],
        sequence_number=sequence_numbers,
        file_sequence_number=_file_sequence_numbers(columns, manifest),
        content=columns.content,
        path=columns.path,
        file_format=[each.upper() for each in columns.file_format],
        partition=columns.partition,
        record_count=of_file(columns.record_count),
        file_size_in_bytes=of_file(columns.file_size_in_bytes),
        maps=columns.maps,
        rare={
            **columns.rare,
            "key_metadata": _keys(columns.rare.get("key_metadata", {})),
            "first_row_id": first_row_ids(columns, columns.rare.get("first_row_id", {}), manifest),
        },
    )


def _keys(given: Mapping[int, bytes]) -> Mapping[int, bytes]:
    """Drop empty keys, which some writers store for a file that is not encrypted."""
    return {index: key for index, key in given.items() if key}


def _sequence_numbers(columns: ManifestColumns, manifest: ManifestFile, path: str) -> list[int]:
    numbers: list[int] = []
    for status, number in zip(columns.status, columns.sequence_number, strict=True):
        if number is None:
            if status != ADDED and manifest.sequence_number != 0:
                raise CorruptFileError(path, "an entry that is not new lacks its sequence number")
            number = manifest.sequence_number
        numbers.append(number)
    return numbers


def _file_sequence_numbers(columns: ManifestColumns, manifest: ManifestFile) -> list[int | None]:
    # Files older than the column keep null: the number of their commit is unknown.
    inherited = manifest.sequence_number
    return [
        inherited if number is None and (status == ADDED or inherited == 0) else number
        for status, number in zip(columns.status, columns.file_sequence_number, strict=True)
    ]


def first_row_ids(
    columns: ManifestColumns | NarrowEntries, given: Mapping[int, int], manifest: ManifestFile
) -> dict[int, int]:
    """The first row id of each entry; ``given`` are those recorded in the entries themselves."""
    following = manifest.first_row_id
    if following is None or manifest.content is not ManifestContent.DATA:
        return {}
    ids: dict[int, int] = {}
    rows = of_file(columns.record_count)
    for index, status in enumerate(columns.status):
        if index in given:
            ids[index] = given[index]
        elif status != DELETED:
            ids[index] = following
            following += max(rows[index], 0)
    return ids


# ------------------------------------------------------------------ content by the list


def doubtful_contents(
    summary: Mapping[str, str], manifests: Sequence[ManifestFile]
) -> list[ManifestFile]:
    """The manifests whose content type must be checked, by the ``summary`` of their snapshot.

    A list with a wrong ``content`` hides rows or brings deleted ones back, and is still valid Avro.
    The totals of the snapshot reveal it; where they match, no manifest is checked.
    """
    live = [each for each in manifests if each.has_live_files]
    by_content = {
        content: [each for each in live if each.content is content] for content in ManifestContent
    }
    deletes = by_content[ManifestContent.DELETES]
    found, deleting = (_live_files(by_content[each]) for each in ManifestContent)
    total = whole_number(summary.get("total-data-files"))
    total_deleting = whole_number(summary.get("total-delete-files"))
    if found is None or total is None:
        # There are no totals to compare: deletes without any data manifest are suspicious enough.
        return [] if by_content[ManifestContent.DATA] or total == 0 else deletes
    if found < total:
        return deletes
    if deleting is not None and total_deleting is not None:
        more, fewer = found - total, total_deleting - deleting
        if more == fewer > 0:
            return by_content[ManifestContent.DATA]
    return []


def _live_files(manifests: Sequence[ManifestFile]) -> int | None:
    """How many live files manifests list, None where that is unknown."""
    total = 0
    for each in manifests:
        if each.added_files_count is None or each.existing_files_count is None:
            return None
        total += each.added_files_count + each.existing_files_count
    return total


def check_content(file: AvroFile, manifest: ManifestFile) -> None:
    """Raise CorruptFileError where a manifest says in its header that it has other content."""
    content = file.metadata.get("content", b"").decode("utf-8", "replace").lower()
    if not content and file.metadata.get("format-version", b"1") == b"1":
        content = "data"
    listed = manifest.content.name.lower()
    if content and content != listed:
        raise CorruptFileError(
            file.path, f"a manifest of {content} that the manifest list says is one of {listed}"
        )
