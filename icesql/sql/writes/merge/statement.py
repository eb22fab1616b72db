"""The statement MERGE INTO."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from icesql.sql.statement import Query, Write
from icesql.sql.writes.merge.composed import Composed, Edits, Span
from icesql.sql.writes.statements import TableName

MATCHED, NOT_MATCHED, BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


class MergeValue(Struct, frozen=True):
    """The value of a column, by its path; ``value`` None is DEFAULT. ``offset`` is the column's."""

    path: tuple[str, ...]
    value: Span | None
    offset: int | None = None


class MergeClause(Struct, frozen=True):
    """WHEN … THEN …: the first one of its kind whose condition is true acts on a row.

    ``kind`` is MATCHED, NOT_MATCHED or BY_SOURCE; ``action`` "update", "delete", "insert" or
    "nothing". ``star`` says where the values come from that the statement does not list: columns of
    the source for "all" columns of the table, for those that have the "name", or by "position";
    "default" for DEFAULT VALUES. ``values`` of INSERT VALUES without a list of columns have empty
    paths.
    """

    kind: str
    action: str
    condition: Span | None = None
    values: tuple[MergeValue, ...] = ()
    star: str = ""
    offset: int | None = None


class JoinKey(Struct, frozen=True):
    """Two columns whose values ON asks to be equal, each as (qualifier or "", name)."""

    one: tuple[str, str]
    other: tuple[str, str]


class Merge(Write, frozen=True):
    """MERGE INTO.

    ``source`` is the query of all rows of the source, whose text is ``source_text``. The other
    parts are places in ``sql``, to be copied with ``edits``: the target with its alias and time,
    and ON or USING (…) as ``join``. ``target_name`` and ``source_name`` are what columns are
    qualified with. ``given`` are the parameters of the statement and how many stand before ON.
    ``keys`` are what ON compares, ``used`` the columns of the source that the statement names, with
    their places; ``taken`` are the values that are a column of the source, or a field in one, by
    its path. ``evolves``: the table gets the columns of the source that it lacks.
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
    taken: tuple[tuple[Span, tuple[str, ...]], ...] = ()
    evolves: bool = False
