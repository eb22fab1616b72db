"""The statement MERGE INTO, and texts composed of its parts and inserted words."""

from __future__ import annotations

from typing import Any

from icesql.frozen import Frozen
from icesql.sql.lexer import Span
from icesql.sql.sources import Change, Composed, Segment, Sources, edited, joined
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.statements import TableName

# Replacements of spans of the statement, sorted by offset, without overlaps.
Edits = tuple[Change, ...]
MATCHED, NOT_MATCHED, BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


class MergeValue(Frozen):
    """The value of a column, by its path; ``value`` None is DEFAULT. ``offset`` is the column's."""

    path: Parts
    value: Span | None
    offset: int | None = None


class MergeClause(Frozen):
    """WHEN … THEN …: the first one of its kind whose condition is true acts on a row.

    ``kind`` is MATCHED, NOT_MATCHED or BY_SOURCE; ``action`` "update", "delete", "insert" or
    "nothing". ``star`` chooses the values that the statement does not list: source columns for
    "all" columns of the table, for those with the same "name", or by "position"; "default" is
    DEFAULT VALUES. ``values`` of INSERT VALUES without a column list have empty
    paths.
    """

    kind: str
    action: str
    condition: Span | None = None
    values: tuple[MergeValue, ...] = ()
    star: str = ""
    offset: int | None = None


class JoinKey(Frozen):
    """Two columns that ON compares for equality, each as (qualifier or "", name)."""

    one: tuple[str, str]
    other: tuple[str, str]


class Merge(Write):
    """MERGE INTO.

    ``source`` is the query of all rows of the source, whose text is ``source_text``. The other
    parts are spans of ``sql``, to be copied with ``edits``: the target with its alias and time,
    and ON or USING (…) as ``join``. ``target_name`` and ``source_name`` are the qualifiers of
    columns. ``given`` are the parameters of the statement and the number of those before ON.
    ``keys`` are the columns that ON compares, ``used`` the source columns that the statement names,
    with their offsets. ``taken`` are the values that are a source column, or a field of one, with
    its path. ``evolves``: add columns of the source that the table lacks to it.
    """

    table: TableName
    sql: str
    source: Query
    source_text: Composed
    target: Span
    target_name: str
    source_name: str
    join: Span
    uses_columns: bool
    clauses: tuple[MergeClause, ...]
    edits: Edits
    given: tuple[Any, int]
    keys: tuple[JoinKey, ...] = ()
    used: tuple[tuple[str, int], ...] = ()
    taken: tuple[tuple[Span, Parts], ...] = ()
    evolves: bool = False


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
