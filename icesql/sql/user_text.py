"""A query as its user wrote it, and the edits with which an engine runs it.

An engine that speaks the user's dialect runs the text itself, so that no word is lost in the
conversion to a tree. Only what must change is edited, by offset: tables, parameters, time-travel
clauses and names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

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
