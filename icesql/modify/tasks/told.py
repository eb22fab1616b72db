"""What a task has done, as bytes: from a worker to the driver, as data and never as code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from icesql.errors import InternalError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.modify.rows.new_files import ChangedFiles
from icesql.write.described_files import decode_result, encode_result
from icesql.write.write_task import WriteResult

# What tells files of a table apart: several vectors may share a path.
Key = tuple[str, int | None]


class _Told(Struct, frozen=True):
    """``deletes`` are by their specs, ``removed`` by their keys, as the driver has these files.

    ``own`` is what the statement wants to know besides.
    """

    data: bytes
    deletes: dict[int, bytes]
    removed: tuple[Key, ...]
    referenced: tuple[str, ...]
    gone: int
    added: int
    own: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Told)


def key_of(file: DataFile) -> Key:
    """The key of a file."""
    return file.path, file.content_offset


def encode_changed(changed: ChangedFiles, own: bytes) -> bytes:
    """The bytes of what a task has done."""
    by_spec: dict[int, list[DataFile]] = {}
    for each in changed.deletes:
        by_spec.setdefault(each.spec_id, []).append(each)
    told = _Told(
        encode_result(WriteResult(changed.data)),
        {spec: encode_result(WriteResult((*files,))) for spec, files in by_spec.items()},
        tuple(key_of(each) for each in changed.removed),
        changed.referenced,
        changed.gone,
        changed.added,
        own,
    )
    return _ENCODER.encode(told)


def decode_changed(
    data: bytes, metadata: TableMetadata, known: Mapping[Key, DataFile]
) -> tuple[ChangedFiles, bytes]:
    """What a task has done, and what it told besides; ``known`` are the files that it was given.

    Raises InternalError for bytes that ``encode_changed`` did not make.
    """
    try:
        told = _DECODER.decode(data)
        removed = tuple(known[each] for each in told.removed)
        deletes = [*_deletes(told.deletes, metadata)]
    except (msgspec.DecodeError, KeyError) as error:
        raise InternalError(f"a task told of its files in an unknown way: {error}") from error
    files = decode_result(told.data, partition_types(metadata.spec, metadata.schema)).files
    return (
        ChangedFiles(files, (*deletes,), removed, told.referenced, told.gone, told.added),
        told.own,
    )


def _deletes(by_spec: Mapping[int, bytes], metadata: TableMetadata) -> Iterable[DataFile]:
    for spec_id, data in by_spec.items():
        types = partition_types(metadata.specs[spec_id], metadata.file_schema)
        yield from decode_result(data, types).files
