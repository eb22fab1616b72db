"""A text made of pieces of a statement and words between them, which knows where they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icesql.errors import Error
from icesql.sql import sources
from icesql.sql.sources import Segment, edited, joined

Span = tuple[int, int]
# Words for the characters between two places of the statement, by place, none inside another.
Edits = tuple[tuple[int, int, str], ...]


class Composed(sources.Composed, frozen=True):
    """A text made of words of the statement."""

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Errors inside of the block get their places in the statement."""
        try:
            yield
        except Error as error:
            known = error.__dict__
            if known.get("position") is None and known.get("line") is None:
                for name in ("offset", "sql_offset"):
                    if known.get(name) is not None:
                        setattr(error, name, self.place(known[name]))
            raise


class Composer:
    """Makes a ``Composed`` of a statement."""

    def __init__(self, sql: str, edits: Edits = ()) -> None:
        self._sql, self._edits = sql, edits
        self._segments: list[Segment] = []

    def add(self, *words: str) -> Composer:
        """Put in words of ours, whose place is behind what is before them."""
        last = self._segments[-1] if self._segments else None
        place = 0 if last is None else last.start + last.length
        self._segments += [Segment(each, -1, place) for each in words]
        return self

    def copy(self, *spans: Span | None) -> Composer:
        """Put in words of the statement; nothing for None."""
        for start, end in filter(None, spans):
            inside = [
                (first, last, [Segment(words, -1, first)])
                for first, last, words in self._edits
                if start <= first and last <= end
            ]
            self._segments += edited(self._sql[start:end], start, inside)
        return self

    def made(self) -> Composed:
        """The text so far."""
        return Composed(*joined(self._segments))
