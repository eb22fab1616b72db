"""A text composed of parts of a statement and inserted words, with a map back to the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icesql.errors import Error
from icesql.sql import sources
from icesql.sql.sources import Segment, edited, joined

Span = tuple[int, int]
# Replacements of spans of the statement, sorted by offset, without overlaps.
Edits = tuple[tuple[int, int, str], ...]


class Composed(sources.Composed, frozen=True):
    """A text composed of words of the statement."""

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Translate the offsets of errors raised in the block to those of the statement."""
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
    """Builds a ``Composed`` from a statement."""

    def __init__(self, sql: str, edits: Edits = ()) -> None:
        self._sql, self._edits = sql, edits
        self._segments: list[Segment] = []

    def add(self, *words: str) -> Composer:
        """Append inserted words; their offset is the end of the words before them."""
        last = self._segments[-1] if self._segments else None
        place = 0 if last is None else last.start + last.length
        self._segments += [Segment(each, -1, place) for each in words]
        return self

    def copy(self, *spans: Span | None) -> Composer:
        """Append spans of the statement; None appends nothing."""
        for start, end in filter(None, spans):
            inside = [
                (first, last, [Segment(words, -1, first)])
                for first, last, words in self._edits
                if start <= first and last <= end
            ]
            self._segments += edited(self._sql[start:end], start, inside)
        return self

    def made(self) -> Composed:
        """Return the text composed so far."""
        return Composed(*joined(self._segments))
