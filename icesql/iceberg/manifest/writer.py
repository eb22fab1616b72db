"""Write manifests and manifest lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict, replace

from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.bounds import encode_bound, unscaled
from icesql.iceberg.manifest.avro_files import avro_bytes, decimal_bytes, entry_schema, list_schema
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.manifest.schema import MAPS
from icesql.iceberg.metadata.writing import schema_json, spec_fields_json
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema

# Entries of a manifest that is written: added, carried over, or removed.
#
# Source: Iceberg spec, "Manifests"; Java ``GenericManifestEntry`` and ``ManifestWriter``.


class ManifestEntry(Frozen):
    """A file and its status; None is inherited from the manifest list.

    ``snapshot_id`` is the snapshot that added the file, of a DELETED entry the one that removed it.
    """

    status: int
    snapshot_id: int
    sequence_number: int | None
    file_sequence_number: int | None
    file: DataFile

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the table."""
        return self.status != DELETED


def added_entry(
    file: DataFile, snapshot_id: int, sequence_number: int | None = None
) -> ManifestEntry:
    """A new file. Its sequence number is inherited, so that a retry need not write it again.

    A rewrite that keeps the age of its rows gives ``sequence_number``.
    """
    return ManifestEntry(ADDED, snapshot_id, sequence_number, None, file)


def existing_entry(file: DataFile, snapshot_id: int) -> ManifestEntry:
    """A file of an older manifest, with all its inherited values made explicit.

    ``snapshot_id`` is recorded as the adding snapshot if the old manifest does not name one.
    """
    adder = snapshot_id if file.snapshot_id is None else file.snapshot_id
    return ManifestEntry(EXISTING, adder, file.sequence_number, file.file_sequence_number, file)


def deleted_entry(file: DataFile, snapshot_id: int) -> ManifestEntry:
    """A file of an older manifest that snapshot ``snapshot_id`` removes."""
    return ManifestEntry(
        DELETED, snapshot_id, file.sequence_number, file.file_sequence_number, file
    )


# Summaries of the partition values of each field in a whole manifest.
#
# Source: Iceberg spec, "Manifest Lists"; Java ``PartitionSummary``.


def field_summaries(
    partitions: Iterable[tuple[Any, ...]], types: Sequence[t.IcebergType]
) -> tuple[FieldSummary, ...]:
    """A summary for each partition field of a spec over the tuples of all entries.

    Bounds are exact and leave out nulls and NaN; they are None if there are no other values.
    """
    distinct = set(partitions)
    return tuple(
        _summary(type, {each[place] for each in distinct}) for place, type in enumerate(types)
    )


def _summary(type: t.IcebergType, values: set[Any]) -> FieldSummary:
    has_null = None in values or UNSTORED in values
    has_nan = any(each.__class__ is float and each != each for each in values)
    known = [each for each in values if each is not None and each is not UNSTORED and each == each]
    if not known:
        return FieldSummary(has_null, has_nan)
    lower, upper = min(known), max(known)
    if t.is_floating(type):
        # Zeros of both signs are one value here, and two in Java's order.
        lower, upper = lower or -0.0, upper or 0.0
    return FieldSummary(has_null, has_nan, encode_bound(type, lower), encode_bound(type, upper))


# A number that the commit gives to a manifest when it knows it.
UNASSIGNED: Final = -1
# The block length that Java writes in v1, which no reader uses.
_BLOCK_SIZE: Final = 64 << 20


class ManifestForm(Frozen):
    """The form that all manifests of one spec and content in a commit share.

    ``schema`` is the table's, ``types`` has the type of each partition field of ``spec``, whose
    column may be gone from it; ``codec`` is Avro's name for the compression.
    """

    format_version: int
    spec: PartitionSpec
    schema: Schema
    types: tuple[t.IcebergType, ...]
    content: ManifestContent = ManifestContent.DATA
    codec: str = "deflate"


def write_manifest(
    entries: Sequence[ManifestEntry], form: ManifestForm, *, path: str, snapshot_id: int
) -> tuple[bytes, ManifestFile]:
    """A manifest of at least one entry for ``path``, which snapshot ``snapshot_id`` adds.

    Its sequence numbers are UNASSIGNED; the lowest is, too, unless a live entry says its own.
    """
    version, spec = form.format_version, form.spec
    names = [avro_name(each.name) for each in spec.fields]
    convert = [_stored(type) for type in form.types]
    header = {
        "schema": _text(schema_json(form.schema)),
        "partition-spec": _text(spec_fields_json(spec.fields)),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(version),
    }
    if version > 1:
        header["content"] = form.content.name.lower()
    records = (_record(each, version, names, convert) for each in entries)
    schema = entry_schema(version, spec, form.types)
    data = avro_bytes(schema, records, header, form.codec)
    return data, _described(entries, form, path, len(data), snapshot_id)


def _described(
    entries: Sequence[ManifestEntry],
    form: ManifestForm,
    path: str,
    length: int,
    snapshot_id: int,
) -> ManifestFile:
    files, rows = [0, 0, 0], [0, 0, 0]
    for each in entries:
        files[each.status] += 1
        rows[each.status] += each.file.record_count
    sequence_numbers = [each.sequence_number for each in entries if each.is_live]
    explicit = [number for number in sequence_numbers if number is not None]
    return ManifestFile(
        path,
        manifest_length=length,
        partition_spec_id=form.spec.spec_id,
        content=form.content,
        sequence_number=UNASSIGNED,
        min_sequence_number=min(explicit, default=UNASSIGNED),
        added_snapshot_id=snapshot_id,
        added_files_count=files[ADDED],
        existing_files_count=files[EXISTING],
        deleted_files_count=files[DELETED],
        added_rows_count=rows[ADDED],
        existing_rows_count=rows[EXISTING],
        deleted_rows_count=rows[DELETED],
        partitions=field_summaries((each.file.partition for each in entries), form.types),
    )


def _text(node: Any) -> str:
    return json.dumps(node, separators=(",", ":"))


# ------------------------------------------------------------------ records

Convert = Callable[[Any], Any]


def _stored(type: t.IcebergType) -> Convert:
    """A converter of a partition value to the value that Avro stores."""
    if isinstance(type, t.DecimalType):
        size, scale = decimal_bytes(type.precision), type.scale
        return lambda value: unscaled(value, scale).to_bytes(size, "big", signed=True)
    return lambda value: value


def _record(
    entry: ManifestEntry, version: int, names: Sequence[str], convert: Sequence[Convert]
) -> dict[str, Any]:
    record: dict[str, Any] = {"status": entry.status, "snapshot_id": entry.snapshot_id}
    if version > 1:
        record["sequence_number"] = entry.sequence_number
        record["file_sequence_number"] = entry.file_sequence_number
    file = entry.file
    partition = {
        name: None if value is None or value is UNSTORED else to_avro(value)
        for name, to_avro, value in zip(names, convert, file.partition, strict=True)
    }
    is_data = file.content is FileContent.DATA
    record["data_file"] = {
        **asdict(file),
        "file_path": file.path,
        "partition": partition,
        "block_size_in_bytes": _BLOCK_SIZE,
        **{name: _pairs(getattr(file, name)) for name in MAPS.values()},
        # Of a tuple fastavro takes the first item for the name of a type.
        "split_offsets": None if file.split_offsets is None else [*file.split_offsets],
        "equality_ids": None if file.equality_ids is None else [*file.equality_ids],
        "sort_order_id": file.sort_order_id if is_data else None,
        # A new file counts its rows from where the commit places it.
        "first_row_id": file.first_row_id if is_data and entry.status != ADDED else None,
    }
    return record


def _pairs(values: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    if values is None:
        return None
    return [{"key": key, "value": value} for key, value in values.items()]


# ------------------------------------------------------------------ manifest lists
# Source: Iceberg spec, "Manifest Lists" and "Row Lineage"; Java ``ManifestListWriter``.


class ListHeader(Frozen):
    """The snapshot that a list is of; ``first_row_id`` is the table's next one, in v3 only."""

    format_version: int
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    first_row_id: int | None = None


def write_manifest_list(
    manifests: Sequence[ManifestFile], header: ListHeader
) -> tuple[bytes, tuple[ManifestFile, ...], int]:
    """The bytes of the list, its manifests as listed, and the number of row ids it assigns.

    Manifests of this snapshot get its sequence number; in v3 data manifests without a first row
    id get one, also those older than row ids. Except in v1, the counts of all manifests are known.
    """
    listed, following = [], header.first_row_id or 0
    for each in manifests:
        made = _numbered(each, header)
        is_data = made.content is ManifestContent.DATA
        if header.format_version >= 3 and is_data and made.first_row_id is None:
            made = replace(made, first_row_id=following)
            following += (made.existing_rows_count or 0) + (made.added_rows_count or 0)
        listed.append(made)
    parent = header.parent_snapshot_id
    about = {
        "snapshot-id": str(header.snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "format-version": str(header.format_version),
    }
    if header.format_version > 1:
        about["sequence-number"] = str(header.sequence_number)
    if header.format_version > 2:
        about["first-row-id"] = str(header.first_row_id or 0)
    data = avro_bytes(list_schema(header.format_version), map(_row, listed), about)
    return data, tuple(listed), following - (header.first_row_id or 0)


def _numbered(manifest: ManifestFile, header: ListHeader) -> ManifestFile:
    own = header.sequence_number if header.format_version > 1 else 0
    if UNASSIGNED not in (manifest.sequence_number, manifest.min_sequence_number):
        return manifest
    if manifest.added_snapshot_id != header.snapshot_id:
        raise InternalError(f"manifest {manifest.manifest_path} has no sequence number")
    lowest = manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=own,
        min_sequence_number=own if lowest == UNASSIGNED else lowest,
    )


def _row(manifest: ManifestFile) -> dict[str, Any]:
    summaries = manifest.partitions
    return asdict(manifest) | {
        "added_snapshot_id": manifest.added_snapshot_id or 0,
        "partitions": None if summaries is None else [asdict(each) for each in summaries],
    }
