"""Texts made of other texts: the edits of a user's query, and the origin of each of its parts.

An engine that speaks the user's dialect runs the text itself, so that no word is lost in the
conversion to a tree. Only what must change is edited, by offset: tables, parameters, time-travel
clauses and names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from icesql.errors import Error, position
from icesql.frozen import Frozen
from icesql.sql.lexer import Span
from icesql.sql.reading.engine_tree import engine_node
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.reading.engine_tree import Node, ParsedText


TABLE: Final = "table"
VALUE: Final = "value"
LIST: Final = "list"
NAME: Final = "name"
SQL: Final = "sql"
CUT: Final = "cut"
ALIAS: Final = "alias"


class Edit(Frozen):
    """A replacement of the characters from ``start`` to ``end`` of the SQL, which may be equal.

    ``kind`` is one of

    table   a table of the tree, ``text`` its name there
    value   a constant, ``text`` its SQL
    list    the items of a long IN list, ``text`` their SQL
    name    parts of a name, ``text`` the one that replaces them, without quotes
    sql     ``text``, such as what follows the star of a select list
    cut     removed: a clause that the engine does not know
    alias   the name that a column would have without the other edits

    ``before`` and ``after`` are SQL around ``text``.
    """

    start: int
    end: int
    kind: str
    text: str = ""
    before: str = ""
    after: str = ""


class UserText(Frozen):
    """The SQL of one query, in DuckDB's spelling, and its edits by offset, which do not overlap.

    ``text`` begins at ``start`` of the SQL that the user gave; all offsets count from its
    beginning. ``columns`` are the spans of select list items without a name of their own,
    ``column_nodes`` are their nodes in DuckDB's tree, by the ends of the spans. ``read`` is the
    parse of the whole text by DuckDB, on which permissions are checked.
    """

    text: str
    start: int
    edits: tuple[Edit, ...] = ()
    columns: tuple[Span, ...] = ()
    read: ParsedText | None = None
    column_nodes: Mapping[int, Node] = {}

    def written(self, start: int, end: int) -> str:
        """Return the user's text from one offset to another."""
        return self.text[start - self.start : end - self.start]

    def with_edits(self, edits: Iterable[Edit]) -> UserText:
        """Return a copy with more edits; an edit inside another is dropped."""
        wanted = sorted((*self.edits, *edits), key=_order)
        kept: list[Edit] = []
        for edit in wanted:
            if not kept or edit.start >= kept[-1].end:
                kept.append(edit)
        return replace(self, edits=tuple(kept))

    def named(self) -> UserText:
        """Return a copy with an alias for each unnamed column that an edit would rename."""
        changed = [edit for edit in self.edits if edit.kind not in (CUT, SQL)]
        if not changed:
            return self
        aliases = [
            Edit(end, end, ALIAS)
            for start, end in self.columns
            if any(start <= edit.start and edit.end <= end for edit in changed)
        ]
        edits = sorted((*self.edits, *aliases), key=lambda each: (each.start, each.end))
        return replace(self, edits=tuple(edits))


def _order(edit: Edit) -> tuple[int, bool, int]:
    """Sort by offset: insertions first, then the longest replacement."""
    return edit.start, edit.end > edit.start, -edit.end


def nameless_columns(
    tree: exp.Expr,
) -> tuple[tuple[Span, ...], dict[int, Node]]:
    """Return the spans of the columns in the select lists of ``tree`` that are named after their
    expressions, and their nodes in DuckDB's tree by the ends of the spans.
    """
    found, nodes = [], {}
    for select in tree.find_all(exp.Select):
        for node in select.expressions:
            place = node.meta.get("place")
            if place is not None and (node.meta.get("is_ours") or not is_named(node)):
                found.append(cast("Span", place))
                read = engine_node(node.unalias())
                if read is not None:
                    nodes[found[-1][1]] = read.value
    return tuple(found), nodes


def is_named(node: exp.Expr) -> bool:
    """True if a select list item has a name of its own, or represents several columns."""
    match node:
        case exp.Alias():
            return True
        case exp.Explode() | exp.Unnest() | exp.Inline():
            return True  # a struct becomes several columns
        case exp.Anonymous() if node.name.lower() in ("unnest", "explode"):
            return True
        case _:
            within = node.walk(prune=lambda each: isinstance(each, exp.Query))
            return any(
                isinstance(each, exp.Columns)
                or (isinstance(each, exp.Star) and not isinstance(each.parent, exp.Count))
                for each in within
            )


# ------------------------------------------------------------------ origins
# Views and macros are expanded in the text; each part keeps its place in the text it came from.


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
