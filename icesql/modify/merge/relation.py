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

from msgspec import Struct

from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.iceberg.schema import Schema
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import (
    Changed,
    Computed,
    Default,
    OfSource,
    OfTable,
    Value,
    clause_values,
)
from icesql.query.views.expansion import quoted_name
from icesql.sql.sources import Composed
from icesql.sql.writes.merge.composed import Composer
from icesql.sql.writes.merge.statement import BY_SOURCE, MATCHED, NOT_MATCHED, Merge, MergeClause

# The rows that a query covers: all, those of parts of the table, or unmatched source rows.
Part = Literal["all", "table", "source"]
# The last action column's value for a row that matches and that no clause takes.
SEEN: Final = 0
_ACTION: Final = "__do"
# Dialects that need no translation, and functions that give another value at each call.
_OWN: Final = ("", "icesql", "duckdb")
_VOLATILE: Final = re.compile(r"\b(rand|uuid|shuffle|nextval|uniform)", re.IGNORECASE)


def volatile_condition(error: ProgrammingError) -> UnsupportedSqlError | None:
    """An error for a clause whose condition is volatile, by DuckDB's error; else None."""
    if "has side effects" not in str(error) or f'"{_ACTION}' not in str(error):
        return None
    return UnsupportedSqlError(
        "a condition of a MERGE clause with a value that is another one each time, as of "
        "random() or uuid()",
        hint="make it a column of the source: USING (SELECT *, random() AS r FROM …)",
    )


class Action(Struct, frozen=True):
    """The action of a clause on a row that it takes.

    ``goes``: the row of the table is deleted or replaced. ``values`` has one value for each column
    of the new row; None if there is no new row.
    """

    goes: bool
    values: tuple[Value, ...] | None


class Relation(Struct, frozen=True):
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
        self._sees_all = self._once and (
            self._matched[-1].condition is not None
            or any(each.action == "nothing" for each in self._matched)
        )
        self._sees_all = self._sees_all or self._shows_matches
        self._composer = Composer(statement.sql, statement.edits)
        self._names = _free_prefix({each.name for each in schema.fields} | {*source.names})
        conditions = [each.condition for each in self._clauses if each.condition is not None]
        self._repeats = (
            dialect.lower() not in _OWN
            and not statement.given[0]
            and not any(_VOLATILE.search(statement.sql[slice(*each)]) for each in conditions)
        )
        self._places: dict[Value, int] = {}
        self._count = 0
        self._action_place = 0

    def made(self) -> Relation:
        """The query, with the positions of its columns."""
        statement = self._statement
        table, source = statement.target_name, statement.source_name
        composer = self._composer.add("FROM ").copy(statement.target)
        composer.add(f" {self._join()} JOIN {self._source.table.name} AS {source} ")
        if statement.uses_columns:
            composer.add("USING ").copy(statement.join)
        else:
            composer.add("ON (").copy(statement.join).add(")")
        composer.add(" SELECT ")
        located = None
        if self._goes:
            file, pos = (self._column(f"{table}.{each}", f"_{each}") for each in ("_file", "_pos"))
            located = file, pos
        row_id = self._column(f"{table}._row_id", "__row_id") if self._lineage else None
        takes = any(_takes_source(value) for each in self._actions for value in each.values or ())
        takes = takes or self._shows_matches
        source_row = self._column(self._source_row, "__source_row") if takes else None
        for number, (clause, action) in enumerate(
            zip(self._clauses, self._actions, strict=True), 1
        ):
            self._begin()
            self._choice(clause, number)
            self._action_place = self._count
            self._named(f"{self._names}{number}")
            for value in action.values or ():
                self._put(value, number)
        number = len(self._clauses)
        if self._sees_all:
            self._begin()
            self._seen(number)
            self._action_place = self._count
            number += 1
            self._named(f"{self._names}{number}")
        if not self._acts_on_all():
            composer.add(" WHERE ")
            self._action(number)
            composer.add(" IS NOT NULL")
        return Relation(
            composer.made(),
            self._actions,
            self._action_place,
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

    def _join(self) -> str:
        match self._keeps_table, self._keeps_source:
            case True, True:
                return "FULL"
            case True, False:
                return "LEFT"
            case False, True:
                return "RIGHT"
            case _:
                return "INNER"

    def _acts_on_all(self) -> bool:
        """True if every row of an inner join is taken or has to be seen."""
        if self._keeps_table or self._keeps_source:
            return False
        return self._sees_all or self._matched[-1].condition is None

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

    def _action(self, number: int) -> None:
        """Append the number of the clause that takes the row: the alias, or the full expression."""
        if not self._repeats:
            self._composer.add(f"{self._names}{number}")
        elif number > len(self._clauses):
            self._seen(number - 1)
        else:
            self._choice(self._clauses[number - 1], number)

    def _choice(self, clause: MergeClause, number: int) -> None:
        """Append the number of the clause, up to this one, that takes the row."""
        composer = self._composer
        if number > 1:
            composer.add("COALESCE(")
            self._action(number - 1)
            composer.add(", ")
        composer.add(f"CASE WHEN {self._kind(clause.kind)} THEN ")
        if clause.condition is None:
            composer.add(f"{number} END")
        else:
            composer.add("CASE WHEN (").copy(clause.condition).add(f") THEN {number} END END")
        if number > 1:
            composer.add(")")

    def _seen(self, number: int) -> None:
        """Append the number of the clause that takes the row, or SEEN for a match without one."""
        self._composer.add("COALESCE(")
        self._action(number)
        self._composer.add(f", CASE WHEN {self._kind(MATCHED)} THEN {SEEN} END)")

    def _put(self, value: Value, number: int) -> None:
        """Append the value of a clause, unless the query already has it."""
        if value in self._places or isinstance(value, Default | OfSource):
            return
        match value:
            case OfTable(name):
                text = f"{self._statement.target_name}.{self._quoted(name)}"
                self._places[value] = self._column(text, f"__v{self._count}")
            case Computed(span):
                self._begin()
                self._places[value] = self._count
                self._composer.add("CASE WHEN ")
                self._action(number)
                self._composer.add(f" = {number} THEN (").copy(span).add(") END")
                self._named(f"__v{self._count}")
            case Changed(base, fields):
                self._put(base, number)
                for _, inner in fields:
                    self._put(inner, number)

    def _column(self, text: str, name: str) -> int:
        self._begin()
        self._composer.add(text)
        self._named(name)
        return self._count - 1

    def _begin(self) -> None:
        if self._count:
            self._composer.add(", ")

    def _named(self, name: str) -> None:
        self._composer.add(f" AS {name}")
        self._count += 1

    def _quoted(self, name: str) -> str:
        return quoted_name(name, self._dialect)


def _free_prefix(columns: Collection[str]) -> str:
    """A prefix for aliases of actions that no column name has: a column would hide the alias."""
    prefix = _ACTION
    while any(each.lower().startswith(prefix) for each in columns):
        prefix += "_"
    return prefix


def _takes_source(value: Value) -> bool:
    """True if a value contains an unchanged column of the source."""
    if isinstance(value, Changed):
        return any(_takes_source(inner) for _, inner in value.fields)
    return isinstance(value, OfSource)
