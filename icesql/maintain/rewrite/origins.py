"""Keep the origins of the rows in new files of a rewrite until their groups are committed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO, Final

import numpy as np
from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile
from icesql.scan.deletes.vectors import Positions
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.row_origins import EncodedOrigins, RowOrigins, decode_origins
from icesql.write.written import Written

_MOST_IN_MEMORY: Final = 32 << 20

# The positions and lengths of a file's origins on disk.
_Places = list[tuple[int, int]]


class Origins:
    """The origins for each task's files; beyond a limit of memory they are in a file of ``folder``.

    The file is unlinked, so that it disappears with the process.
    """

    def __init__(self, folder: str, most_in_memory: int = _MOST_IN_MEMORY) -> None:
        self._folder, self._most, self._bytes = folder, most_in_memory, 0
        self._held: dict[str, EncodedOrigins | _Places] = {}
        self._file: IO[bytes] | None = None

    def take(self, written: Written) -> Written:
        """Keep the origins; return the rest."""
        size = sum(len(part) for each in written.origins for part in each)
        held: tuple[EncodedOrigins | _Places, ...] = written.origins
        if self._bytes + size > self._most:
            held = tuple(self._spilled(each) for each in written.origins)
        else:
            self._bytes += size
        self._held |= dict(zip((each.path for each in written.data), held, strict=False))
        return replace(written, origins=())

    def _spilled(self, origins: EncodedOrigins) -> _Places:
        if self._file is None:
            make_temporary_folder(self._folder)
            with spilling_to(self._folder):
                self._file = tempfile.TemporaryFile(  # noqa: SIM115
                    dir=self._folder, prefix="icesql-origins-"
                )
        places = []
        with spilling_to(self._folder):
            position = self._file.seek(0, 2)
            for each in origins:
                self._file.write(each)
                places.append((position, len(each)))
                position += len(each)
        return places

    def has(self, files: Iterable[DataFile]) -> bool:
        """True if the origins of all these files are known."""
        return self._held.keys() >= {each.path for each in files}

    def of(self, file: DataFile) -> RowOrigins:
        """The origins of the rows of a file."""
        held = self._held[file.path]
        if isinstance(held, list):
            held = tuple(self._read(*place) for place in held)
        return decode_origins(held)

    def live_positions(self, files: Iterable[DataFile], number: int) -> Positions:
        """The positions of a source file whose rows are in these files, sorted."""
        parts = [np.empty(0, np.int64)]
        for each in files:
            starts, lengths, _ = self.of(each).of_source(number)
            if len(starts):
                offsets = np.arange(lengths.sum()) - np.repeat(
                    np.cumsum(lengths) - lengths, lengths
                )
                parts.append(np.repeat(starts, lengths) + offsets)
        return np.sort(np.concatenate(parts))

    def _read(self, position: int, length: int) -> bytes:
        assert self._file is not None
        with spilling_to(self._folder):
            self._file.seek(position)
            return self._file.read(length)

    def forget(self, files: Iterable[DataFile]) -> None:
        """Discard the origins of these files."""
        for each in files:
            held = self._held.pop(each.path, ())
            if not isinstance(held, list):
                self._bytes -= sum(map(len, held))

    def close(self) -> None:
        """Free the disk space. Can be called repeatedly."""
        self._held.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
