"""A text made of pieces of a statement and words between them, which knows where they were."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from icesql.errors import Error

Span = tuple[int, int]
# Words for the characters between two places of the statement, by place, none inside another.
Edits = tuple[tuple[int, int, str], ...]


class Composed(Struct, frozen=True):
    """``text``, and the pieces of it: (place in it, place in the statement, length)."""

    text: str
    pieces: tuple[tuple[int, int, int], ...]

    def place(self, offset: int) -> int:
        """Where in the statement a character comes from; for words of ours, what is before."""
        index = bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1
        begin, start, length = self.pieces[max(index, 0)]
        return start + min(max(offset - begin, 0), length)

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Errors inside of the block get their places in the statement."""
        try:
            yield
        except Error as error:
            told = error.__dict__
            if told.get("position") is None and told.get("line") is None:
                for name in ("offset", "sql_offset"):
                    if told.get(name) is not None:
                        setattr(error, name, self.place(told[name]))
            raise


class Composer:
    """Makes a ``Composed`` of a statement."""

    def __init__(self, sql: str, edits: Edits = ()) -> None:
        self._sql, self._edits = sql, edits
        self._parts: list[str] = []
        self._pieces: list[tuple[int, int, int]] = []
        self._size = 0

    def add(self, *words: str) -> Composer:
        """Put in words of ours."""
        for each in words:
            self._parts.append(each)
            self._size += len(each)
        return self

    def copy(self, *spans: Span | None) -> Composer:
        """Put in words of the statement; nothing for None."""
        for span in spans:
            if span is None:
                continue
            start, end = span
            for first, last, words in self._inside(start, end):
                self._piece(start, first)
                self.add(words)
                start = last
            self._piece(start, end)
        return self

    def _inside(self, start: int, end: int) -> Iterable[tuple[int, int, str]]:
        return [each for each in self._edits if start <= each[0] and each[1] <= end]

    def _piece(self, start: int, end: int) -> None:
        self._pieces.append((self._size, start, end - start))
        self.add(self._sql[start:end])

    def made(self) -> Composed:
        """The text so far."""
        return Composed("".join(self._parts), tuple(self._pieces) or ((0, 0, 0),))
