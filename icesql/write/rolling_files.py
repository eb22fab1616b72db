"""Writes the Parquet files of a partition, each up to the target size; several in parallel."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.storage.new_files import remove_file
from icesql.write.parquet_file import (
    EncodedRows,
    FileShape,
    ParquetFile,
    PlainColumns,
    WrittenFile,
    encode_rows,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from icesql.storage.open import Storage


_FEWEST_ROWS: Final = 1000
_SMALLEST_RATIO: Final = 0.01


class Encoders(Frozen):
    """Threads that encode row groups, at most ``at_once`` of one partition."""

    threads: Executor
    at_once: int


class RollingFiles:
    """The files of one partition, one after the other.

    ``path_of`` gives the path of the next file. A file ends once it has the target size; row groups
    are as large as the options allow, estimated by the encoded size of earlier rows. With
    ``encoders`` several are encoded at once, and written in the order of their rows.
    ``plain_columns`` is shared by the whole write.
    """

    def __init__(
        self,
        storage: Storage,
        shape: FileShape,
        path_of: Callable[[], str],
        encoders: Encoders | None = None,
        plain_columns: PlainColumns | None = None,
    ) -> None:
        self._storage, self._shape, self._path_of = storage, shape, path_of
        self._encoders = encoders
        self._plain_columns = plain_columns or PlainColumns()
        self._file: ParquetFile | None = None
        # Row groups being encoded, with the sizes of their rows in memory.
        self._waiting: deque[tuple[Future[EncodedRows], int]] = deque()
        self._bytes_per_byte = 1.0
        self._plain: frozenset[str] | None = None
        self.written: list[WrittenFile] = []

    def write(self, table: pa.Table) -> None:
        """Write rows, which are kept in memory until they are encoded."""
        if not table.num_rows:
            return
        options = self._shape.options
        if self._plain is None:
            self._plain = self._plain_columns.of(table)
        # Adding up the buffers of many small batches takes as long as writing their bytes.
        row_bytes = table.nbytes / table.num_rows
        start = 0
        while start < table.num_rows:
            size = int((table.num_rows - start) * row_bytes)
            if self._waiting and self._expected(size) > options.target_file_size:
                # The end of the file depends on its actual length.
                self._take_all()
            left = min(options.row_group_size, options.target_file_size - self._expected())
            part = table.slice(start, self._rows_for(table.num_rows - start, size, left))
            start += part.num_rows
            self._encode(part, int(part.num_rows * row_bytes), self._plain)

    def _expected(self, more: int = 0) -> int:
        """The expected length of the file with the waiting rows, and ``more`` bytes of rows."""
        written = 0 if self._file is None else self._file.size
        waiting = sum(size for _, size in self._waiting) + more
        return written + int(waiting * self._bytes_per_byte)

    def _rows_for(self, count: int, size: int, left: int) -> int:
        """How many of ``count`` rows, ``size`` bytes in memory, take about ``left`` in a file."""
        estimate = size * self._bytes_per_byte
        if estimate <= left * 1.1:
            return count
        return max(int(count * left / estimate), _FEWEST_ROWS)

    def _encode(self, rows: pa.Table, size: int, plain: frozenset[str]) -> None:
        """Encode rows with ``size`` bytes in memory."""
        if self._encoders is None:
            self._take(encode_rows(rows, self._shape, plain), size)
            return
        while len(self._waiting) >= self._encoders.at_once:
            self._take_oldest()
        encoded = self._encoders.threads.submit(encode_rows, rows, self._shape, plain)
        self._waiting.append((encoded, size))

    def _take_all(self) -> None:
        while self._waiting:
            self._take_oldest()

    def _take_oldest(self) -> None:
        encoded, size = self._waiting.popleft()
        self._take(encoded.result(), size)

    def _take(self, encoded: EncodedRows, size: int) -> None:
        if self._file is None:
            self._file = ParquetFile(
                self._storage, self._path_of(), self._shape, self._plain or frozenset()
            )
        before = self._file.size
        self._file.add(encoded)
        self._bytes_per_byte = max((self._file.size - before) / max(size, 1), _SMALLEST_RATIO)
        if self._file.size >= self._shape.options.target_file_size:
            self._finish()

    def end_file(self) -> None:
        """Finish the current file; the next row begins another."""
        self._take_all()
        self._finish()

    def _finish(self) -> None:
        if self._file is not None:
            self.written.append(self._file.finish())
            self._file = None

    def abandon(self) -> None:
        """Remove everything that was written."""
        for encoded, _ in self._waiting:
            encoded.cancel()
        self._waiting.clear()
        file, self._file = self._file, None
        if file is not None:
            file.abandon()
        for each in self.written:
            remove_file(self._storage, each.path)
        self.written.clear()


# ------------------------------------------------------------------ threads that write files


_STEP_SECONDS: Final = 0.1


class Rows(Frozen):
    """Rows of one partition for its file; with ``alone`` they get a file of their own."""

    partition: int
    rows: pa.Table
    alone: bool = False


class ParallelWriters:
    """``count`` threads, each with at most one open file, and a queue of one item.

    ``files_of`` creates the files of a partition, by its number. The next call raises the error of
    a thread; then, and after ``abandon``, no file is left.
    """

    def __init__(
        self, count: int, files_of: Callable[[int], RollingFiles], query: QueryContext
    ) -> None:
        self._files_of, self._query = files_of, query
        self._rows: queue.Queue[Rows | None] = queue.Queue(maxsize=1)
        self._made: list[tuple[int, RollingFiles]] = []
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="icesql-write", daemon=True)
            for _ in range(count)
        ]
        self._started = 0

    def put(self, rows: Rows) -> None:
        """Queue rows for writing; waits while every thread is busy."""
        if self._started < len(self._threads):
            self._threads[self._started].start()
            self._started += 1
        self._put(rows)

    def _put(self, item: Rows | None) -> None:
        while True:
            self._check()
            try:
                self._rows.put(item, timeout=_STEP_SECONDS)
            except queue.Full:
                continue
            return

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        self._query.check()

    def finish(self) -> Sequence[tuple[int, WrittenFile]]:
        """Finish all files; return each with its partition's number, in the order of creation."""
        for _ in range(self._started):
            self._put(None)
        for thread in self._threads[: self._started]:
            while thread.is_alive():
                thread.join(_STEP_SECONDS)
                self._check()
        self._check()
        return [(number, file) for number, files in self._made for file in files.written]

    def abandon(self) -> None:
        """Stop the threads and remove every file."""
        self._stop.set()
        for thread in self._threads[: self._started]:
            while thread.is_alive():
                with suppress(queue.Full):  # wake a thread that waits for rows
                    self._rows.put_nowait(None)
                thread.join(_STEP_SECONDS)
        for _, files in self._made:
            files.abandon()

    def _run(self) -> None:
        current: tuple[int, RollingFiles] | None = None
        try:
            while (item := self._rows.get()) is not None and not self._stop.is_set():
                if current is None or current[0] != item.partition:
                    if current is not None:
                        current[1].end_file()
                    current = item.partition, self._files_of(item.partition)
                    self._made.append(current)
                elif item.alone:
                    current[1].end_file()
                current[1].write(item.rows)
                del item
            if current is not None and not self._stop.is_set():
                current[1].end_file()
        except BaseException as error:
            self._error = self._error or error
