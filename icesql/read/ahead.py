"""ReadAhead: request the files that a scan will open from the object store before it does.

A reader opens one file after the other, and each would cost a round trip. Local files are not read
ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icesql.context import QueryContext
from icesql.scan.tasks import FileScanTask, ScanContext, distinct_deletes

if TYPE_CHECKING:
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.storage.remote import RemoteFiles

# Limits of pending requests, and of their bytes, ahead of the reader.
_MOST_FILES: Final = 64
_MOST_BYTES: Final = 64 << 20


class ReadAhead:
    """The data files of some tasks in order, and their delete files; ``close`` when done."""

    def __init__(
        self, tasks: Sequence[FileScanTask], context: ScanContext, query: QueryContext
    ) -> None:
        self._context, self._query = context, query
        self._remote = _remote_files(tasks, context)
        self._files = [task.data_file for task in tasks] if self._remote is not None else []
        self._next = 0
        if self._remote is not None:
            self._deletes(self._remote, distinct_deletes(tasks))

    def reach(self, index: int) -> None:
        """Request the files that follow ``index``, which the reader has reached; do not wait."""
        if self._remote is None:
            return
        self._next = max(self._next, index)
        size = 0
        while self._next < min(len(self._files), index + _MOST_FILES):
            file = self._files[self._next]
            size += file.file_size_in_bytes
            if self._next > index and size > _MOST_BYTES:
                return
            self._ask(self._remote, file)
            self._next += 1

    def _deletes(self, remote: RemoteFiles, deletes: Sequence[DataFile]) -> None:
        size = 0
        for file in deletes:
            size += file.file_size_in_bytes
            if size > _MOST_BYTES:
                return
            if file.file_format.upper() != "PUFFIN":  # of those only a blob is read
                self._ask(remote, file)

    def _ask(self, remote: RemoteFiles, file: DataFile) -> None:
        location = self._context.storage.location(file.path)
        remote.prefetch(location, file.file_size_in_bytes, self._query)

    def close(self) -> None:
        """End all pending requests; nothing more is read."""
        if self._remote is not None:
            self._remote.leave()


def _remote_files(tasks: Sequence[FileScanTask], context: ScanContext) -> RemoteFiles | None:
    """The reader of remote files, None if the files are on this machine."""
    storage = context.storage
    if not tasks or storage.reroot is not None:
        return None
    first = tasks[0].data_file.path
    return storage.remote_files() if storage.local_path(first) is None else None
