"""Of which text each part of a statement is, once views or macros were put into it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from icesql.errors import Error, position


class Piece(Struct, frozen=True):
    """Characters of a statement from ``begin`` on, and where they stand in their source.

    ``source`` is the index of a view, -1 for the user's SQL. ``length`` is 0 for words that stand
    for others.
    """

    begin: int
    source: int
    start: int
    length: int


class Sources(Struct, frozen=True):
    """The pieces of a statement in order; names and texts of its views, None of a translation.

    ``word`` is "view" or "macro". ``under`` are the sources of the text that places of source -1
    count in, None where that is the user's.
    """

    pieces: tuple[Piece, ...]
    views: tuple[tuple[str, str | None], ...]
    word: str = "view"
    under: Sources | None = None

    def find(self, offset: int) -> tuple[int, int]:
        """The source of a place and the place in it."""
        index = bisect_right(self.pieces, offset, key=lambda piece: piece.begin) - 1
        piece = self.pieces[max(index, 0)]
        return piece.source, piece.start + min(max(offset - piece.begin, 0), piece.length)

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Errors inside of the block get their places in the text that they are of."""
        try:
            yield
        except Error as error:
            self.place(error)
            raise

    def place(self, error: Error) -> None:
        """Move the place of an error from the statement into the text it is of."""
        if error.view is not None:
            return
        error.view = ""
        told = error.__dict__
        if told.get("position") is not None:
            return
        name = "offset" if told.get("offset") is not None else "sql_offset"
        offset = told.get(name)
        if offset is None:
            return
        source, place = self.find(offset)
        if source < 0:
            setattr(error, name, place)
            if self.under is not None:
                error.view = None
                self.under.place(error)
            return
        label, text = self.views[source]
        setattr(error, name, None)
        error.view = label
        line, column = position(text or "", place)
        where = "" if text is None else f" (line {line}, column {column})"
        message = f'in {self.word} "{label}"{where}: {error}'
        error.args = (message,)


class Composed(Struct, frozen=True):
    """A text made of words of another one, and their way back."""

    text: str
    sources: Sources

    def place(self, offset: int) -> int:
        """The place in the other text of a character; for words of ours, of what they stand for."""
        return self.sources.find(offset)[1]


class Segment(Struct, frozen=True):
    """Words, and what they are of; ``length`` is 0 for words that stand for others."""

    words: str
    source: int
    start: int
    length: int = 0


def edited(
    text: str,
    begin: int,
    edits: Iterable[tuple[int, int, Sequence[Segment]]],
    source: int = -1,
    shift: int = 0,
) -> list[Segment]:
    """A text that begins at the place ``begin``, with segments in the place of some of its words.

    ``edits`` are (first, end, segments), none inside of another; places in the source are less by
    ``shift``.
    """
    made: list[Segment] = []
    last, stop = begin, begin + len(text)
    for first, end, segments in (*sorted(edits, key=lambda each: each[:2]), (stop, stop, ())):
        words = text[last - begin : first - begin]
        made += [Segment(words, source, last - shift, len(words)), *segments]
        last = end
    return made


def joined(
    segments: Iterable[Segment],
    views: Sequence[tuple[str, str | None]] = (),
    word: str = "view",
    under: Sources | None = None,
) -> tuple[str, Sources]:
    """The text of segments, and its sources, as ``Sources`` has them."""
    kept = [each for each in segments if each.words]
    pieces, size = [], 0
    for each in kept:
        pieces.append(Piece(size, each.source, each.start, each.length))
        size += len(each.words)
    text = "".join(each.words for each in kept)
    pieces = pieces or [Piece(0, -1, 0, 0)]
    return text, Sources(tuple(pieces), tuple(views), word, under)


def spliced(
    sql: str, start: int, stop: int, edits: Iterable[tuple[int, int, str]]
) -> tuple[str, Sources]:
    """``sql`` from ``start`` to ``stop`` with other words at some places, and its sources.

    ``edits`` are (first, end, words) in the places of ``sql``, none inside of another.
    """
    made = [(first, end, [Segment(words, -1, first)]) for first, end, words in edits]
    return joined(edited(sql[start:stop], start, made))
