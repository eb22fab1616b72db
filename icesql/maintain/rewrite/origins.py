"""Where the rows of all new files of a rewrite come from, until their groups are committed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO, Final

from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.row_origins import EncodedOrigins, RowOrigins, decode_origins
from icesql.write.written import Written

_MOST_IN_MEMORY: Final = 32 << 20


class Origins:
    """Those of each task's files; what is too much for memory lies in a file of ``folder``.

    The file has no name, so that it is gone with the process.
    """

    def __init__(self, folder: str, most_in_memory: int = _MOST_IN_MEMORY) -> None:
        self._folder, self._most, self._bytes = folder, most_in_memory, 0
        self._held: dict[str, EncodedOrigins | _Spilled] = {}
        self._file: IO[bytes] | None = None

    def take(self, written: Written) -> Written:
        """The same without origins, which are kept here."""
        size = sum(len(part) for each in written.origins for part in each)
        held: tuple[EncodedOrigins | _Spilled, ...] = written.origins
        if self._bytes + size > self._most:
            held = tuple(self._spilled(each) for each in written.origins)
        else:
            self._bytes += size
        self._held |= dict(zip((each.path for each in written.data), held, strict=False))
        return replace(written, origins=())

    def _spilled(self, origins: EncodedOrigins) -> _Spilled:
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
        return _Spilled(places)

    def has(self, files: Iterable[DataFile]) -> bool:
        """Whether it is known where the rows of all these files come from."""
        return self._held.keys() >= {each.path for each in files}

    def of(self, file: DataFile) -> RowOrigins:
        """Where the rows of a file come from."""
        held = self._held[file.path]
        if isinstance(held, _Spilled):
            held = tuple(self._read(*place) for place in held.places)
        return decode_origins(held)

    def _read(self, position: int, length: int) -> bytes:
        assert self._file is not None
        with spilling_to(self._folder):
            self._file.seek(position)
            return self._file.read(length)

    def forget(self, files: Iterable[DataFile]) -> None:
        """These files need no more of it."""
        for each in files:
            held = self._held.pop(each.path, ())
            if not isinstance(held, _Spilled):
                self._bytes -= sum(map(len, held))

    def close(self) -> None:
        """Give the disk back. Harmless when repeated."""
        self._held.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


class _Spilled:
    """Where the parts of a file's origins lie."""

    def __init__(self, places: list[tuple[int, int]]) -> None:
        self.places = places
