"""A text composed of parts of a statement and inserted words, with a map back to the statement."""

from __future__ import annotations

from icesql.sql.sources import Composed, Segment, Sources, edited, joined

Span = tuple[int, int]
# Replacements of spans of the statement, sorted by offset, without overlaps.
Edits = tuple[tuple[int, int, str], ...]


class Composer:
    """Builds a ``Composed`` from a statement; ``under`` are the sources of the statement."""

    def __init__(self, sql: str, edits: Edits = (), under: Sources | None = None) -> None:
        self._sql, self._edits, self._under = sql, edits, under
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
        return Composed(*joined(self._segments, under=self._under))
