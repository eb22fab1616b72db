"""The result of a task as bytes: from a worker to the driver, as data and never as code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.modify.rows.new_files import ChangedFiles
from icesql.write.described_files import decode_result, decoding, encode_result
from icesql.write.write_task import WriteResult

# Identifies a file of a table: several deletion vectors may share a path.
Key = tuple[str, int | None]


class _TaskResult(Struct, frozen=True):
    """``deletes`` are by their specs, ``removed`` by their keys, as the driver has these files.

    ``matches`` are those of ``OpenRows``.
    """

    data: bytes
    deletes: dict[int, bytes]
    removed: tuple[Key, ...]
    referenced: tuple[str, ...]
    gone: int
    added: int
    matches: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_TaskResult)


def key_of(file: DataFile) -> Key:
    """The key of a file."""
    return file.path, file.content_offset


def encode_changed(changed: ChangedFiles, matches: bytes) -> bytes:
    """The result of a task as bytes; ``matches`` are those of ``OpenRows``."""
    by_spec: dict[int, list[DataFile]] = {}
    for each in changed.deletes:
        by_spec.setdefault(each.spec_id, []).append(each)
    result = _TaskResult(
        encode_result(WriteResult(changed.data)),
        {spec: encode_result(WriteResult((*files,))) for spec, files in by_spec.items()},
        tuple(key_of(each) for each in changed.removed),
        changed.referenced,
        changed.gone,
        changed.added,
        matches,
    )
    return _ENCODER.encode(result)


def decode_changed(
    data: bytes, metadata: TableMetadata, known: Mapping[Key, DataFile]
) -> tuple[ChangedFiles, bytes]:
    """The result of a task and its matches; ``known`` are the files that it was given, by key.

    Raises InternalError for bytes that ``encode_changed`` did not make.
    """
    with decoding():
        result = _DECODER.decode(data)
        removed = tuple(known[each] for each in result.removed)
        deletes = [*_deletes(result.deletes, metadata)]
    files = decode_result(result.data, partition_types(metadata.spec, metadata.schema)).files
    return (
        ChangedFiles(files, (*deletes,), removed, result.referenced, result.gone, result.added),
        result.matches,
    )


def _deletes(by_spec: Mapping[int, bytes], metadata: TableMetadata) -> Iterable[DataFile]:
    for spec_id, data in by_spec.items():
        types = partition_types(metadata.specs[spec_id], metadata.file_schema)
        yield from decode_result(data, types).files
