"""The SQL text of the query that joins the table with its source and decides each row's action.

    FROM t RIGHT JOIN source AS s ON (…)
    SELECT t._file, t._pos, t._row_id,
        CASE WHEN t._pos IS NOT NULL THEN CASE WHEN (…) THEN 1 END END AS __do1,
        CASE WHEN __do1 = 1 THEN (…) END AS __v0, …
        COALESCE(__do1, CASE WHEN t._pos IS NULL THEN 2 END) AS __do2, …
    WHERE __do2 IS NOT NULL

A clause is tried for a row that no clause before it has taken; its values are computed only for
rows that it has taken. The parts keep their order in the statement, since parameters are counted
by it.

DuckDB replaces an alias by its expression, and refuses to if the expression can raise an error of
its own, as translations from other dialects do. Then each condition is repeated in full.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal

from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg.schema import Schema
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import (
    Changed,
    Computed,
    OfSource,
    OfTable,
    Value,
    clause_values,
)
from icesql.modify.rows.assignments import Places
from icesql.query.views.expansion import quoted_name
from icesql.sql.edited_text import Composed
from icesql.sql.lexer import Span
from icesql.sql.writes.merge_statement import (
    BY_SOURCE,
    MATCHED,
    NOT_MATCHED,
    Composer,
    Merge,
)

# The rows that a query covers: all, those of parts of the table, or unmatched source rows.
Part = Literal["all", "table", "source"]
# Words of the query, and spans of the statement, which are copied.
Parts = tuple[str | Span, ...]
# The last action column's value for a row that matches and that no clause takes.
SEEN: Final = 0
_ACTION: Final = "__do"
# Dialects that need no translation, and functions that give another value at each call.
_OWN: Final = ("", "icesql", "duckdb")
_VOLATILE: Final = re.compile(r"\b(rand|uuid|shuffle|nextval|uniform)", re.IGNORECASE)


# By whether rows of the table stay that match nothing, and such rows of the source.
_JOINS: Final = {
    (True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT", (False, False): "INNER",
}  # fmt: skip


def volatile_condition(error: ProgrammingError) -> UnsupportedSqlError | None:
    """An error for a clause whose condition is volatile, by DuckDB's error; else None."""
    if "has side effects" not in str(error) or f'"{_ACTION}' not in str(error):
        return None
    return UnsupportedSqlError(
        "a condition of a MERGE clause with a value that is another one each time, as of "
        "random() or uuid()",
        hint="make it a column of the source: USING (SELECT *, random() AS r FROM …)",
    )


class Action(Frozen):
    """The action of a clause on a row that it takes.

    ``goes``: the row of the table is deleted or replaced. ``values`` has one value for each column
    of the new row; None if there is no new row.
    """

    goes: bool
    values: tuple[Value, ...] | None


class Relation(Frozen):
    """The query, and the positions of its columns.

    ``action`` is the position of the clause's number, which counts ``actions`` from 1, or is
    ``SEEN``. The other positions are None where the query has no such column: ``located`` are those
    of the file and the position of a row of the table, ``source_row`` counts rows of the source.
    ``places`` has those of values, except for unchanged source columns. A row of the table that two
    source rows match is an error if one of its actions is among ``taking``, which is empty if
    repeated matches make no difference; ``matching`` has the actions of all matching rows.
    ``keeps_all``: the query also returns rows of the table that match nothing.
    ``shows_matches``: it returns every source row that matches.
    """

    text: Composed
    actions: tuple[Action, ...]
    action: int
    located: tuple[int, int] | None
    row_id: int | None
    source_row: int | None
    places: dict[Value, int]
    matching: tuple[int, ...]
    taking: tuple[int, ...]
    keeps_all: bool
    shows_matches: bool = False


class RelationMaker:
    """Makes the query of a statement. ``read`` and errors are as for ``clause_values``.

    The part "table" leaves out source rows that match nothing; if a clause inserts, it returns all
    source rows that match, as only all parts of a table together show which do not. The part
    "source" runs on a table without rows, with the unmatched source rows alone.
    """

    def __init__(
        self,
        statement: Merge,
        schema: Schema,
        source: SourceRows,
        dialect: str,
        *,
        lineage: bool,
        part: Part,
        read: Schema,
    ) -> None:
        self._statement, self._source, self._dialect = statement, source, dialect
        self._clauses = statement.clauses
        self._actions = tuple(
            Action(
                each.action in ("update", "delete"),
                clause_values(each, statement, schema, source.names, read)
                if each.action in ("update", "insert")
                else None,
            )
            for each in self._clauses
        )
        acting = {each.kind for each in self._clauses if each.action != "nothing"}
        self._keeps_table = BY_SOURCE in acting and part != "source"
        self._keeps_source = NOT_MATCHED in acting and part != "table"
        self._shows_matches = NOT_MATCHED in acting and part == "table"
        self._goes = any(each.goes for each in self._actions)
        updates = any(each.action == "update" for each in self._clauses)
        self._lineage = lineage and updates
        self._matched = [each for each in self._clauses if each.kind == MATCHED]
        # A row that several source rows delete is deleted once: no error.
        only_deletes = [(e.action, e.condition) for e in self._matched] == [("delete", None)]
        self._once = MATCHED in acting and not only_deletes
        self._sees_all = self._shows_matches or (
            self._once
            and (
                self._matched[-1].condition is not None
                or any(each.action == "nothing" for each in self._matched)
            )
        )
        self._names = _free_prefix({each.name for each in schema.fields} | {*source.names})
        conditions = [each.condition for each in self._clauses if each.condition is not None]
        self._repeats = (
            dialect.lower() not in _OWN
            and not statement.given[0]
            and not any(_VOLATILE.search(statement.sql[slice(*each)]) for each in conditions)
        )
        self._places: dict[Value, int] = {}
        self._columns: list[Parts] = []

    def made(self) -> Relation:
        """The query, with the positions of its columns."""
        statement = self._statement
        table, source = statement.target_name, statement.source_name
        located = None
        if self._goes:
            file, pos = (self._column(f"_{each}", f"{table}.{each}") for each in ("_file", "_pos"))
            located = file, pos
        row_id = self._column("__row_id", f"{table}._row_id") if self._lineage else None
        takes = self._shows_matches or any(
            isinstance(value, OfSource) for each in self._actions for value in each.values or ()
        )
        source_row = self._column("__source_row", self._source_row) if takes else None
        place = number = 0
        for number, each in enumerate(self._actions, 1):
            place = self._column(f"{self._names}{number}", *self._choice(number))
            for value in each.values or ():
                self._put(value, number)
        if self._sees_all:
            number += 1
            place = self._column(f"{self._names}{number}", *self._seen(number - 1))
        join = _JOINS[self._keeps_table, self._keeps_source]
        on = ("USING ", "") if statement.uses_columns else ("ON (", ")")
        parts: list[str | Span] = [
            "FROM ", statement.target,
            f" {join} JOIN {self._source.table.name} AS {source} {on[0]}", statement.join, on[1],
        ]  # fmt: skip
        for index, column in enumerate(self._columns):
            parts += ", " if index else " SELECT ", *column
        # Every row of an inner join is taken, or has to be seen.
        is_inner = not (self._keeps_table or self._keeps_source)
        if not (is_inner and (self._sees_all or self._matched[-1].condition is None)):
            parts += " WHERE ", *self._action(number), " IS NOT NULL"
        composer = Composer(statement.sql, statement.edits)
        for part in parts:
            composer = composer.add(part) if isinstance(part, str) else composer.copy(part)
        return Relation(
            composer.made(),
            self._actions,
            place,
            located,
            row_id,
            source_row,
            self._places,
            (SEEN, *self._numbers("update", "delete", "nothing")),
            self._numbers("update", "delete") if self._once else (),
            self._keeps_table,
            self._shows_matches,
        )

    def _numbers(self, *actions: str) -> tuple[int, ...]:
        """The numbers of the MATCHED clauses with these actions."""
        return tuple(
            number
            for number, each in enumerate(self._clauses, 1)
            if each.kind == MATCHED and each.action in actions
        )

    @property
    def _source_row(self) -> str:
        return f"{self._statement.source_name}.{self._quoted(self._source.row)}"

    def _kind(self, kind: str) -> str:
        """The condition under which clauses of a kind apply to a row."""
        table = f"{self._statement.target_name}._pos"
        here = self._source_row
        match kind:
            case "NOT MATCHED":
                return f"{table} IS NULL"
            case "NOT MATCHED BY SOURCE":
                return f"{here} IS NULL"
        wanted = [f"{table} IS NOT NULL"] if self._keeps_source else []
        wanted += [f"{here} IS NOT NULL"] if self._keeps_table else []
        return " AND ".join(wanted) or "TRUE"

    def _action(self, number: int) -> Parts:
        """The number of the clause that takes the row: the alias, or the full expression."""
        if not self._repeats:
            return (f"{self._names}{number}",)
        return self._choice(number) if number <= len(self._clauses) else self._seen(number - 1)

    def _choice(self, number: int) -> Parts:
        """The number of the clause, up to this one, that takes the row."""
        clause = self._clauses[number - 1]
        taken: Parts = (f"{number} END",)
        if clause.condition is not None:
            taken = "CASE WHEN (", clause.condition, f") THEN {number} END END"
        taken = f"CASE WHEN {self._kind(clause.kind)} THEN ", *taken
        if number == 1:
            return taken
        return "COALESCE(", *self._action(number - 1), ", ", *taken, ")"

    def _seen(self, number: int) -> Parts:
        """The number of the clause that takes the row, or SEEN for a match without one."""
        seen = f", CASE WHEN {self._kind(MATCHED)} THEN {SEEN} END)"
        return "COALESCE(", *self._action(number), seen

    def _put(self, value: Value | Places | None, number: int) -> None:
        """Append the value of a clause, unless the query already has it."""
        match value:
            case Changed(base, fields):
                self._put(base, number)
                self._put(fields, number)
            case dict():
                for inner in value.values():
                    self._put(inner, number)
            case OfTable(name) if value not in self._places:
                text = f"{self._statement.target_name}.{self._quoted(name)}"
                self._places[value] = self._column(f"__v{len(self._columns)}", text)
            case Computed(span) if value not in self._places:
                parts = "CASE WHEN ", *self._action(number), f" = {number} THEN (", span, ") END"
                self._places[value] = self._column(f"__v{len(self._columns)}", *parts)

    def _column(self, name: str, *parts: str | Span) -> int:
        self._columns.append((*parts, f" AS {name}"))
        return len(self._columns) - 1

    def _quoted(self, name: str) -> str:
        return quoted_name(name, self._dialect)


def _free_prefix(columns: Collection[str]) -> str:
    """A prefix for aliases of actions that no column name has: a column would hide the alias."""
    prefix = _ACTION
    while any(each.lower().startswith(prefix) for each in columns):
        prefix += "_"
    return prefix
