"""Find the file that DuckDB failed to read; its error does not always name the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, DatabaseError, Error, StorageError

if TYPE_CHECKING:
    from icesql.scan.tasks.task import CombinedScanTask, FileScanTask, ScanContext

# Limits for reading files again only to find the corrupt one.
_MOST_FILES: Final = 100
_MOST_BYTES: Final = 256 << 20
_NAMED: Final = 3


def check_named_file(cause: Error, scans: Sequence[CombinedScanTask], query: QueryContext) -> None:
    """Read the file that ``cause`` names with ``read/`` and raise the error of that.

    Returns if no file is named or if it can be read.
    """
    name = _file_name(getattr(cause, "path", ""))
    if not name:
        return
    alike = (each for each in _files(scans) if _file_name(each[1].data_file.path) == name)
    _read(islice(alike, _NAMED), cause, query)


def name_bad_file(cause: Error, scans: Sequence[CombinedScanTask], query: QueryContext) -> None:
    """Read the files of scans with ``read/``, whose errors name the file; raise the first error.

    If all files that were read are intact, the error lists names of the scanned files. Returns
    if ``cause`` is not a read error, or already names its file. At most 100 files and 256 MB.
    """
    if isinstance(cause, CorruptFileError | StorageError) or not cause.while_reading:
        return
    _read(_first_files(scans), cause, query)
    if names := names_of(task for _, task in _files(scans)):
        many = f"{', '.join(names[:_NAMED])}, …" if len(names) > _NAMED else ", ".join(names)
        raise _class_of(cause)(f"{cause} (while reading {many})") from cause


def forget_bad_file(error: CorruptFileError, scans: Sequence[CombinedScanTask]) -> bool:
    """Discard cached bytes of the error's file; True if there were any on disk."""
    for context, task in _files(scans):
        for file in (task.data_file, *task.deletes):
            if error.path in (file.path, context.storage.location(file.path)):
                error.was_kept = context.storage.forget(file.path, file.file_size_in_bytes)
                return error.was_kept
    return False


def names_of(tasks: Iterable[FileScanTask]) -> list[str]:
    """The names of data files, without folders."""
    return [_file_name(task.data_file.path) for task in tasks]


def _class_of(error: Error) -> type[Error]:
    """The class of an error if its constructor takes only a message, else DatabaseError."""
    plain = type(error).__init__ is Exception.__init__
    return type(error) if plain else DatabaseError


def _first_files(scans: Sequence[CombinedScanTask]) -> Iterator[tuple[ScanContext, FileScanTask]]:
    size = 0
    for context, task in islice(_files(scans), _MOST_FILES):
        size += task.data_file.file_size_in_bytes
        if size > _MOST_BYTES:
            return
        yield context, task


def _files(scans: Sequence[CombinedScanTask]) -> Iterator[tuple[ScanContext, FileScanTask]]:
    return ((scan.context, task) for scan in scans for task in scan.tasks)


def _read(
    files: Iterable[tuple[ScanContext, FileScanTask]], cause: Error, query: QueryContext
) -> None:
    from icesql.read.task import read_file

    for context, task in files:
        try:
            for _ in read_file(task, context, query):
                pass
        except Error as error:
            raise error from cause


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
