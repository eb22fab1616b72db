"""Map each part of a statement to its text of origin, after expansion of views or macros."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from icesql.errors import Error, position
from icesql.frozen import Frozen
from icesql.sql.lexer import Span

# A replacement: start, end, and the text that replaces the characters between them.
Change = tuple[int, int, str]


class Piece(Frozen):
    """Characters of a statement from ``begin`` on, and their start in their source.

    ``source`` is the index of a view, -1 for the user's SQL. ``length`` is 0 for inserted words,
    which replace those of the source.
    """

    begin: int
    source: int
    start: int
    length: int


class Sources(Frozen):
    """The pieces of a statement in order; names and texts of its views (None if translated).

    ``word`` is "view" or "macro". ``under`` are the sources of the text in which the offsets of
    source -1 count; None if that is the user's.
    """

    pieces: tuple[Piece, ...]
    views: tuple[tuple[str, str | None], ...]
    word: str = "view"
    under: Sources | None = None

    def find(self, offset: int) -> Span:
        """Return the source of an offset and the offset in it."""
        index = 0
        if len(self.pieces) > 1:
            index = bisect_right(self.pieces, offset, key=lambda piece: piece.begin) - 1
        piece = self.pieces[max(index, 0)]
        return piece.source, piece.start + min(max(offset - piece.begin, 0), piece.length)

    def original(self, offset: int) -> int:
        """Return the offset in its source of an offset."""
        return self.find(offset)[1]

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Translate the offsets of errors raised in the block to those of their source."""
        try:
            yield
        except Error as error:
            self.place(error)
            raise

    def place(self, error: Error) -> None:
        """Translate the offset of an error in the statement to one in its source."""
        if error.view is not None:
            return
        error.view = ""
        known = error.__dict__
        if known.get("position") is not None:
            return
        name = "offset" if known.get("offset") is not None else "sql_offset"
        offset = known.get(name)
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


class Composed(Frozen):
    """A text composed of words of another one, and the mapping back to it."""

    text: str
    sources: Sources

    def place(self, offset: int) -> int:
        """Return the offset in the other text; inserted words have that of what they replace."""
        return self.sources.original(offset)

    def placing(self) -> AbstractContextManager[None]:
        """Translate the offsets of errors raised in the block to those of the other text."""
        return self.sources.placing()


class Segment(Frozen):
    """Words and their origin; ``length`` is 0 for inserted words."""

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
    """Split a text that starts at offset ``begin`` into segments, with some spans replaced.

    ``edits`` are (start, end, segments), which do not overlap; offsets in the source are smaller
    by ``shift``.
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
    """Return the text of the segments, and its ``Sources``."""
    kept = [each for each in segments if each.words]
    pieces, size = [], 0
    for each in kept:
        pieces.append(Piece(size, each.source, each.start, each.length))
        size += len(each.words)
    text = "".join(each.words for each in kept)
    pieces = pieces or [Piece(0, -1, 0, 0)]
    return text, Sources(tuple(pieces), tuple(views), word, under)


def spliced(sql: str, start: int, stop: int, edits: Iterable[Change]) -> tuple[str, Sources]:
    """Return ``sql`` from ``start`` to ``stop`` with some spans replaced, and its sources.

    ``edits`` are (start, end, words) in offsets of ``sql``, which do not overlap.
    """
    made = [(first, end, [Segment(words, -1, first)]) for first, end, words in edits]
    return joined(edited(sql[start:stop], start, made))
