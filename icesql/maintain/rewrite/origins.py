"""Keep the origins of the rows in new files of a rewrite until their groups are committed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile
from icesql.scan.deletes.vectors import Positions
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.row_origins import RowOrigins, decode_origins
from icesql.write.written import Written

_MOST_IN_MEMORY: Final = 32 << 20


class Origins:
    """The origins for each task's files; beyond a limit of memory they are in a file of ``folder``.

    The file is unlinked, so that it disappears with the process.
    """

    def __init__(self, folder: str, most_in_memory: int = _MOST_IN_MEMORY) -> None:
        self._folder, self._most, self._end = folder, most_in_memory, 0
        # The positions and lengths of a file's origins.
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115
            most_in_memory, dir=folder, prefix="icesql-origins-"
        )

    def take(self, written: Written) -> Written:
        """Keep the origins; return the rest."""
        with spilling_to(self._folder):
            self._file.seek(self._end)
            for file, origins in zip(written.data, written.origins, strict=False):
                places = self._places[file.path] = []
                for each in origins:
                    places.append((self._end, len(each)))
                    self._end += len(each)
                    if self._end > self._most:
                        make_temporary_folder(self._folder)
                    self._file.write(each)
        return replace(written, origins=())

    def has(self, files: Iterable[DataFile]) -> bool:
        """True if the origins of all these files are known."""
        return self._places.keys() >= {each.path for each in files}

    def of(self, file: DataFile) -> RowOrigins:
        """The origins of the rows of a file."""
        return decode_origins(tuple(self._read(*each) for each in self._places[file.path]))

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
        with spilling_to(self._folder):
            self._file.seek(position)
            return self._file.read(length)

    def forget(self, files: Iterable[DataFile]) -> None:
        """Discard the origins of these files."""
        for each in files:
            self._places.pop(each.path, None)
        if not self._places:
            self._end = 0

    def close(self) -> None:
        """Free the disk space. Can be called repeatedly."""
        self._places.clear()
        self._file.close()
