"""Rows of the tables about files: the entries of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.schema import Schema
from icesql.scan.metadata_tables.manifest_walk import ManifestWalk, Row
from icesql.scan.metadata_tables.readable_metrics import metrics_reader
from icesql.storage.credentials import redact_urls

# The file is what ``ManifestEntries.data_file`` gives, where a column needs it.
Column = Callable[[ManifestEntries, int, Any], Any]

_OF_ENTRIES: Final = frozenset(
    {
        "status", "snapshot_id", "sequence_number", "file_sequence_number", "file_format",
        "file_size_in_bytes",
    }
)  # fmt: skip
_STATUS: Final = ("EXISTING", "ADDED", "DELETED")
_CONTENT: Final = ("EXISTING", "POSITION_DELETES", "EQUALITY_DELETES")


class FileRows:
    """The columns of ``projection``, in order, for entries of the manifests of a walk.

    ``data_schema`` is the schema whose columns ``readable_metrics`` shows.
    """

    def __init__(self, projection: Schema, data_schema: Schema, walk: ManifestWalk) -> None:
        self._walk, self._data_schema = walk, data_schema
        self._needs_file = False
        self._columns = [self._column(each) for each in projection.fields]

    def live(self, manifests: Sequence[ManifestFile]) -> Iterator[Row]:
        """The files that are part of a table."""
        for entries, index in self._walk.live(manifests):
            yield self._row(entries, index)

    def all(self, manifests: Sequence[ManifestFile]) -> Iterator[Row]:
        """Every entry, those of deleted files too."""
        for _, entries in self._walk.entries_of(manifests):
            yield from (self._row(entries, i) for i in range(entries.count))

    def _row(self, entries: ManifestEntries, index: int) -> Row:
        file = entries.data_file(index) if self._needs_file else None
        return tuple(column(entries, index, file) for column in self._columns)

    def _column(self, field: t.NestedField) -> Column:
        match field.name, field.type:
            case "data_file", t.StructType(fields):
                children = [(each.field_id, self._column(each)) for each in fields]
                return lambda entries, index, file: {
                    field_id: column(entries, index, file) for field_id, column in children
                }
            case "readable_metrics", t.StructType() as struct:
                self._needs_file = True
                read = metrics_reader(self._data_schema, struct)
                return lambda entries, index, file: read(file)
            case "partition", _:
                return lambda entries, index, file: self._walk.partition_of(entries, index)
            case "content", _:
                return lambda entries, index, file: int(entries.content[index])
            case "file_path", _:
                return lambda entries, index, file: redact_urls(entries.path[index])
            case "record_count", _:
                return lambda entries, index, file: max(entries.record_count[index], 0)
            case "spec_id", _:
                return lambda entries, index, file: entries.spec_id
            case name, _ if name in _OF_ENTRIES:
                return lambda entries, index, file: getattr(entries, name)[index]
            case name, _:
                self._needs_file = True
                return lambda entries, index, file: getattr(file, name)


def engine_metadata(manifests: Sequence[ManifestFile], walk: ManifestWalk) -> Iterator[Row]:
    """As DuckDB's ``iceberg_metadata`` has them: every entry beside its manifest."""
    for manifest, entries in walk.entries_of(manifests):
        kind = "DATA" if manifest.content is ManifestContent.DATA else "DELETE"
        for index in range(entries.count):
            yield (
                redact_urls(manifest.manifest_path),
                manifest.sequence_number,
                kind,
                _STATUS[entries.status[index]],
                _CONTENT[entries.content[index]],
                redact_urls(entries.path[index]),
                entries.file_format[index],
                max(entries.record_count[index], 0),
            )
