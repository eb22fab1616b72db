"""The views that a statement reads, put into its text as WITH queries in front of it.

A view is a WITH query of its own for each place that names it: WITH queries see neither the tables
around them nor the WITH queries of the statement, just as views do not, and conditions reach the
tables in one that is read once. The text that results is read as one statement; ``Sources`` says
whose words each place has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import ProgrammingError
from icesql.query.constants.session_values import GETVARIABLE
from icesql.query.views.temporary import View
from icesql.sql.macros.sources import Piece, Sources
from icesql.sql.parse import parse_expanded, query_tokens
from icesql.sql.positions import unsupported
from icesql.sql.statement import Place, Query, Shown, TableReference
from icesql.sql.user_text import NAME, quoted

_DEEPEST: Final = 64
_MOST_VIEWS: Final = 500
# What tables are called in a translation.
MARK: Final = "__ref_"
_LONGEST: Final = 2_000_000

Find = Callable[[TableReference, Place | None], View | None]


class _Text(Struct):
    """Words and what they are of, as they are put together."""

    parts: list[str]
    pieces: list[Piece]
    # Where words of another place than the session's are, and that place.
    regions: list[tuple[int, int, Place]]
    size: int = 0

    def add(self, words: str, source: int, start: int, length: int | None = None) -> None:
        if words:
            kept = len(words) if length is None else length
            self.pieces.append(Piece(self.size, source, start, kept))
            self.parts.append(words)
            self.size += len(words)


class _Expansion:
    def __init__(self, find: Find, dialect: str | None) -> None:
        self._find, self._dialect = find, dialect
        self._views: list[View] = []
        self._written: list[tuple[str, _Text]] = []
        self._size = 0
        self.shown: dict[int, Shown | Query] = {}

    def whole(self, query: Query) -> tuple[_Text, Sources] | None:
        """The statement with its views; None where it names none."""
        body = self._text(query, -1, None, ())
        if not self._written:
            return None
        made = _Text([], [], [])
        first, second, end = query_tokens(query.text, self._dialect)
        skip, drop, words = 0, 0, "WITH "
        if first.word == "WITH":
            if second is not None and second.word == "RECURSIVE":
                first, words = second, "WITH RECURSIVE "
            skip, drop = first.stop, len(query.text) - end
        made.add(words, -1, query.start, 0)
        for number, (name, text) in enumerate(self._written):
            made.add(f"{', ' if number else ''}{name} AS (", -1, query.start, 0)
            _append(made, text, 0)
            made.add("\n)", -1, query.start, 0)
        made.add("," if skip else " ", -1, query.start, 0)
        _append(made, body, skip, drop)
        shift = made.size - (body.size - drop)
        self.shown = {place + shift: statement for place, statement in self.shown.items()}
        # Places in a translation are nobody's.
        views = tuple(
            (view.name, None if view.dialect is not None else view.query.text)
            for view in self._views
        )
        return made, Sources(tuple(made.pieces), views, under=query.sources)

    def _text(
        self, query: Query, source: int, place: Place | None, above: tuple[str, ...]
    ) -> _Text:
        """The words of a query, names in the place of its views. Places are those of its source.

        ``above`` are the views that it is inside of.
        """
        made = _Text([], [], [])
        # Places in a view count from the beginning of its text.
        origin = query.start if source >= 0 else 0
        last = query.start
        shown: list[tuple[int, Shown | Query]] = []

        def keep(end: int) -> None:
            nonlocal last
            made.add(query.text[last - query.start : end - query.start], source, last - origin)
            last = end

        for start, end, words in self._edits(query, place, above):
            keep(start)
            if isinstance(words, str):
                made.add(words, source, start - origin, 0)
                last = end
            else:
                shown.append((made.size, words))
        keep(query.start + len(query.text))
        if place is not None:
            made.regions.append((0, made.size, place))
        if source < 0:
            self.shown = dict(shown)
        self._size += made.size
        if self._size > _LONGEST:
            raise ProgrammingError(f"the views of this statement have over {_LONGEST:,} characters")
        return made

    def _edits(
        self, query: Query, place: Place | None, above: tuple[str, ...]
    ) -> list[tuple[int, int, str | Shown | Query]]:
        """Replacements of names of views, in order; a statement in FROM is only noted."""
        edits: list[tuple[int, int, str | Shown | Query]] = []
        found = False
        for reference in query.references:
            start, end = reference.offset, reference.end
            if start is None or end is None:
                continue
            if reference.shown is not None and reference.parts[0].startswith("__sh"):
                edits.append((start, start, reference.shown))
                continue
            if reference.path is not None:
                continue
            where = reference.place or place
            view = None if reference.shown is not None else self._find(reference, where)
            alias = reference.given_alias
            after = f" AS {quoted_name(alias, self._dialect)}" if alias else ""
            if view is not None:
                found = True
                name = self._view(view, reference, above)
                edits.append((start, end, f"{name}{after}"))
            elif len(reference.parts) > 1 and alias:
                written = query.text[start - query.start : end - query.start]
                edits.append((start, end, f"{written}{after}"))
        if not found:
            return [edit for edit in edits if not isinstance(edit[2], str)]
        text = query.user_text
        edits += [
            (edit.start, edit.end, f"{quoted(edit.text)}{edit.after}")
            for edit in (text.edits if text is not None else ())
            if edit.kind == NAME
        ]
        return sorted(edits, key=lambda edit: edit[:2])

    def _view(self, view: View, reference: TableReference, above: tuple[str, ...]) -> str:
        """The name of a WITH query of its own for a view."""
        if reference.travel is not None or reference.changes is not None:
            raise unsupported(
                f"time travel on the view {reference.name}",
                reference.offset,
                "put the clause after a table in a query of your own",
            )
        if view.name.lower() in above:
            chain = " → ".join([*above[above.index(view.name.lower()) :], view.name])
            raise ProgrammingError(f'the view "{view.name}" reads itself: {chain}')
        if len(above) >= _DEEPEST:
            raise ProgrammingError(
                f'views are nested more than {_DEEPEST} deep at "{view.name}"; keep the rows of '
                "one with CREATE TEMP TABLE t AS SELECT …"
            )
        if len(self._views) >= _MOST_VIEWS:
            raise ProgrammingError(f"the statement reads more than {_MOST_VIEWS} views")
        if view.schema is not None and reads_variables(view.query):
            raise ProgrammingError(
                f'the view "{view.name}" calls getvariable(): a stored view does not see the '
                "variables of a session; CREATE TEMP VIEW makes one that does"
            )
        source = len(self._views)
        self._views.append(view)
        text = self._text(view.query, source, view.place, (*above, view.name.lower()))
        if view.before:
            text = _wrapped(text, view, source)
        columns = ", ".join(quoted_name(each, self._dialect) for each in view.columns)
        name = f"__view_{len(self._written)}"
        self._written.append((f"{name}({columns})" if columns else name, text))
        return name


def reads_variables(query: Query) -> bool:
    """Whether a query reads variables of the session, which are not for a stored view."""
    return any(each.name.lower() == GETVARIABLE for each in query.tree.find_all(exp.Anonymous))


def _wrapped(text: _Text, view: View, source: int) -> _Text:
    """The text with the SQL that stands around a view's query."""
    made = _Text([], [], [])
    made.add(view.before, source, 0, 0)
    _append(made, text, 0)
    made.add(view.after, source, 0, 0)
    return made


def _append(made: _Text, text: _Text, skip: int, drop: int = 0) -> None:
    """Add ``text`` without its first and last characters."""
    shift = made.size - skip
    last = text.size - drop
    whole = "".join(text.parts)[skip:last]
    for piece in text.pieces:
        end = min(piece.begin + piece.length, last)
        if piece.begin <= last and (piece.begin >= skip or end > skip):
            begin = max(piece.begin, skip)
            start = piece.start + begin - piece.begin
            made.pieces.append(Piece(begin + shift, piece.source, start, end - begin))
    made.regions += [(begin + shift, end + shift, place) for begin, end, place in text.regions]
    made.parts.append(whole)
    made.size += len(whole)


def quoted_name(name: str, dialect: str | None) -> str:
    """A name in the quotes of a dialect."""
    return str(exp.to_identifier(name, quoted=True).sql(dialect=_spelling(dialect)))


def _spelling(dialect: str | None) -> str:
    return "duckdb" if (dialect or "icesql").lower() in ("", "icesql") else str(dialect)


def expand(query: Query, find: Find, dialect: str | None, *, files: bool) -> Query:
    """The query with the views that ``find`` knows in its text; the same one without any.

    Raises ProgrammingError for views that read themselves or are nested too deeply,
    UnsupportedSqlError for time travel on one, and what reading the whole text raises.
    """
    work = _Expansion(find, dialect)
    whole = work.whole(query)
    if whole is None:
        return query
    text, sources = whole
    with sources.placing():
        made = parse_expanded(
            "".join(text.parts), dialect=dialect, given=query.given, shown=work.shown, files=files
        )
    references = tuple(_placed(each, text.regions) for each in made.references)
    return replace(
        made, references=references, about=query.about, sources=sources, notes=query.notes
    )


def _placed(reference: TableReference, regions: list[tuple[int, int, Place]]) -> TableReference:
    for begin, end, place in regions:
        if reference.offset is not None and begin <= reference.offset < end:
            return meant(replace(reference, place=place))
    return reference


def meant(reference: TableReference) -> TableReference:
    """The reference of a view's own SQL, for the name that stands for it in a translation."""
    place = reference.place
    if place is None or not place.references or not reference.parts[0].startswith(MARK):
        return reference
    own: TableReference = place.references[int(reference.parts[0].removeprefix(MARK))]
    return replace(
        reference,
        parts=own.parts,
        travel=own.travel,
        metadata_table=own.metadata_table,
        changes=own.changes,
        place=replace(place, references=()),
    )
