"""The files that one commit writes over all its attempts, and which of them are still needed."""

from __future__ import annotations

from collections.abc import Iterable

from icesql.storage.new_file import NewFile, remove_file
from icesql.storage.open import Storage, is_local


class OwnFiles:
    """Manifests and lists under new names; what no attempt that counts uses is deleted."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._written: set[str] = set()

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the table. Raises OperationalError."""
        file = NewFile(self.storage, path)  # refuses a name that is another's
        # Noted before it is whole: a write to a store that fails half-way may leave something.
        self._written.add(path)
        try:
            with file:
                file.write(data)
        except BaseException:
            if is_local(path):
                self._written.discard(path)  # nothing of ours is there under the name
            raise

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that were written and not yet found to be needed or not."""
        return tuple(sorted(self._written))

    def keep_only(self, used: Iterable[str]) -> None:
        """Delete what was written and is not among ``used``; what fails stays as an orphan."""
        for path in self._written.difference(used):
            remove_file(self.storage, path)
        self._written.clear()
