"""Insert the views that a statement reads into its text, as WITH queries before it.

Each use of a view becomes a WITH query of its own: WITH queries see neither the tables around
them nor the WITH queries of the statement, just like views, and conditions reach the tables
of a WITH query that is read once. The resulting text is parsed as one statement; ``Sources``
maps each offset to the source of its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import ProgrammingError
from icesql.query.constants.session_values import GETVARIABLE
from icesql.query.views.temporary import View
from icesql.quoting import quoted
from icesql.sql.edited_text import NAME, Change, Segment, Sources, edited, joined
from icesql.sql.lexer import promised_name
from icesql.sql.parse import parse_expanded, query_tokens
from icesql.sql.positions import unsupported
from icesql.sql.show import PREFIX
from icesql.sql.statement import Place, Query, Shown, TableReference

_DEEPEST: Final = 64
_MOST_VIEWS: Final = 500
# The prefix of table names in a translation.
MARK: Final = "__ref_"
_LONGEST: Final = 2_000_000

Find = Callable[[TableReference, Place | None], View | None]


class _Expansion:
    def __init__(self, find: Find, dialect: str | None) -> None:
        self._find, self._dialect = find, dialect
        self._views: list[View] = []
        self._written: list[tuple[str, list[Segment]]] = []
        self._size = 0

    def whole(self, query: Query) -> tuple[str, Sources] | None:
        """The statement with its views; None if it names no view."""
        body = self._text(query, -1, None, ())
        if not self._written:
            return None
        first, second, end = query_tokens(query.text, self._dialect)
        words, after = "WITH ", " "
        if first.word == "WITH":
            if second is not None and second.word == "RECURSIVE":
                first, words = second, "WITH RECURSIVE "
            skip, after, head, last = first.stop, ",", body[0], body[-1]
            body[0] = Segment(head.words[skip:], -1, head.start + skip, head.length - skip)
            kept = last.words[: len(last.words) - len(query.text) + end]
            body[-1] = Segment(kept, -1, last.start, len(kept))
        made: list[Segment] = []
        for name, text in self._written:
            made += [Segment(f"{words}{name} AS (", -1, query.start), *text]
            made.append(Segment("\n)", -1, query.start))
            words = ", "
        # Offsets in a translation do not refer to a text of the user.
        views = [
            (view.name, None if view.dialect is not None else view.query.text)
            for view in self._views
        ]
        made += [Segment(after, -1, query.start), *body]
        return joined(made, views, under=query.sources)

    def placed(self, reference: TableReference, sources: Sources) -> TableReference:
        """A reference of the whole text with the place in which its name is resolved."""
        source = -1 if reference.offset is None else sources.find(reference.offset)[0]
        return (
            reference if source < 0 else meant(replace(reference, place=self._views[source].place))
        )

    def _text(
        self, query: Query, source: int, place: Place | None, above: tuple[str, ...]
    ) -> list[Segment]:
        """The text of a query with names in place of its views. Offsets are those of its source.

        ``above`` are the views that contain it.
        """
        # Offsets in a view start at the beginning of its text.
        shift = query.start if source >= 0 else 0
        edits = [
            (start, end, [Segment(words, source, start - shift)])
            for start, end, words in self._edits(query, place, above)
        ]
        made = edited(query.text, query.start, edits, source, shift)
        self._size += sum(len(each.words) for each in made)
        if self._size > _LONGEST:
            raise ProgrammingError(f"the views of this statement have over {_LONGEST:,} characters")
        return made

    def _edits(self, query: Query, place: Place | None, above: tuple[str, ...]) -> list[Change]:
        """The edits that replace the names of views."""
        edits: list[Change] = []
        found = False
        for reference in query.references:
            start, end = reference.offset, reference.end
            if start is None or end is None:
                continue
            if reference.path is not None or _shown(reference) is not None:
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
            return []
        text = query.user_text
        return edits + [
            (edit.start, edit.end, f"{quoted(edit.text)}{edit.after}")
            for edit in (text.edits if text is not None else ())
            if edit.kind == NAME
        ]

    def _view(self, view: View, reference: TableReference, above: tuple[str, ...]) -> str:
        """Add a WITH query for one use of a view; return its name."""
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
            text = [Segment(view.before, source, 0), *text, Segment(view.after, source, 0)]
        columns = ", ".join(quoted_name(each, self._dialect) for each in view.columns)
        name = f"__view_{len(self._written)}"
        self._written.append((f"{name}({columns})" if columns else name, text))
        return name


def reads_variables(query: Query) -> bool:
    """Whether a query reads variables of the session, which a stored view may not do."""
    return any(each.name.lower() == GETVARIABLE for each in query.tree.find_all(exp.Anonymous))


def quoted_name(name: str, dialect: str | None) -> str:
    """A name in the quotes of a dialect."""
    return str(exp.to_identifier(name, quoted=True).sql(dialect=promised_name(dialect)))


def whole(name: str, dialect: str | None) -> Query:
    """A query of all rows of a view."""
    return parse_expanded(
        f"SELECT * FROM {quoted_name(name, dialect)}",
        dialect=dialect,
        given=(None, 0),
        shown={},
        files=False,
    )


def expand(query: Query, find: Find, dialect: str | None, *, files: bool) -> Query:
    """The query with the views that ``find`` knows in its text; unchanged without any.

    Raises ProgrammingError for views that read themselves or are nested too deeply,
    UnsupportedSqlError for time travel on one, and the errors of parsing the whole text.
    """
    work = _Expansion(find, dialect)
    whole = work.whole(query)
    if whole is None:
        return query
    text, sources = whole
    with sources.placing():
        made = parse_expanded(
            text, dialect=dialect, given=query.given, shown=_statements(query, sources), files=files
        )
    references = tuple(work.placed(each, sources) for each in made.references)
    return replace(
        made,
        references=references,
        about=query.about,
        sources=sources,
        notes=query.notes,
        for_explain=query.for_explain,
    )


def _shown(reference: TableReference) -> Shown | Query | None:
    """The statement in FROM that the name replaces; None for other references."""
    return reference.shown if reference.parts[0].startswith(PREFIX) else None


def _statements(query: Query, sources: Sources) -> dict[int, Shown | Query]:
    """The statements in the FROM of a query, by the offsets of their names in the whole text."""
    return {
        piece.begin + start - piece.start: statement
        for each in query.references
        if (start := each.offset) is not None and (statement := _shown(each)) is not None
        for piece in sources.pieces
        if piece.source < 0 and piece.start <= start < piece.start + piece.length
    }


def meant(reference: TableReference) -> TableReference:
    """The reference in a view's own SQL for its placeholder name in a translation."""
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
