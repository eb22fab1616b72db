"""Row changes as SQL over the files that two snapshots of a table do not share.

A row is deleted or inserted by its place: file and position. A row that one commit both deletes and
inserts with the same content is carried over (copy-on-write) and is no change. Net changes combine
all commits by the content of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.engine.duckdb.errors import PAIRED
from icesql.engine.duckdb.relations.relation import Relation, empty_relation, stored_name
from icesql.iceberg import types as t
from icesql.iceberg.schema import BLAME_COLUMNS, CHANGE_COLUMNS, FILE, POS, ROW_ID, Schema
from icesql.iceberg.types import NestedField
from icesql.quoting import literal, quoted
from icesql.scan.changes import ChangePlan, CommitFiles, commit_columns, who_committed
from icesql.scan.tasks import FileScanTask, ScanContext

Read = Callable[[ScanContext, Sequence[FileScanTask]], Relation]

_TYPE, _VERSION, _TIME = (quoted(column.name) for column in CHANGE_COLUMNS)
_ORDINAL: Final = "__ordinal"


def changes_relation(
    plan: ChangePlan, projection: Schema, context: ScanContext, read: Read, name: str
) -> Relation:
    """The changes with the columns of ``projection``; ``read`` returns the live rows of files.

    ``name`` distinguishes the parameters of several scans.
    """
    columns = plan.row_schema.fields
    lineage = plan.changes.compute_updates and not plan.changes.keys
    stored = tuple(replace(each, name=stored_name(each.field_id)) for each in columns)
    if lineage:
        stored = (*stored, replace(ROW_ID, name=stored_name(ROW_ID.field_id)))
    blamed = tuple(each for each in BLAME_COLUMNS if each.field_id in projection.field_by_id)
    parts = _Parts(replace(context, schema=plan.row_schema), Schema(stored), read, blamed, name)
    row = [part for each in columns for part in _identity(each)]
    commits = [parts.commit(each, number) for number, each in enumerate(plan.commits)]
    if plan.changes.deduplication != "none":
        commits = [
            _without_carried(sql, row) if files.removed or files.before else sql
            for sql, files in zip(commits, plan.commits, strict=True)
        ]
    sql = " UNION ALL BY NAME ".join(f"({each})" for each in commits) or parts.nothing()
    if plan.changes.deduplication == "netChanges" and len(commits) > 1:
        sql = _net(sql, row)
    if plan.changes.compute_updates:
        keys = [quoted(stored_name(key)) for key in plan.changes.keys or (ROW_ID.field_id,)]
        net = plan.changes.deduplication == "netChanges"
        problem = (
            f"{PAIRED}updates of rows of which several have one key in "
            f"{'the range' if net else 'a commit'}; KEYED BY (…) with more columns tells them apart"
        )
        sql = _updates(sql, keys if net else [*keys, _ORDINAL], keys, problem)
    known = {each.field_id: quoted(each.name) for each in (*CHANGE_COLUMNS, *BLAME_COLUMNS)}
    selected = ", ".join(
        f"{known.get(each.field_id) or quoted(stored_name(each.field_id))} AS {quoted(each.name)}"
        for each in projection.fields
    )
    return Relation(
        f"SELECT {selected or '1 AS __row'} FROM ({sql})", parts.parameters, parts.registered
    )


class _Parts:
    """Builds the SQL of commits, and collects the parameters and sources of their relations."""

    def __init__(
        self,
        context: ScanContext,
        schema: Schema,
        read: Read,
        blamed: Sequence[NestedField],
        name: str,
    ) -> None:
        self._context, self._schema, self._read, self._blamed = context, schema, read, blamed
        self._name = name
        self.parameters: dict[str, object] = {}
        self.registered: dict[str, object] = {}
        self._names = ", ".join(quoted(each.name) for each in schema.fields)

    def commit(self, files: CommitFiles, ordinal: int) -> str:
        """All rows that a commit deleted or inserted, with the columns about the commit."""
        version, time = commit_columns(files.commit)
        blamed = (
            f"{version} AS {_VERSION}, make_timestamptz({time}) AS {_TIME}, {ordinal} AS {_ORDINAL}"
        )
        who = who_committed(files.commit)
        for column in self._blamed:
            # Values of a summary come from strangers: they are parameters, never SQL.
            name = f"told_{self._name}_{ordinal}_{column.field_id}"
            self.parameters[name] = who[column.field_id]
            blamed += f", CAST(${name} AS VARCHAR) AS {quoted(column.name)}"
        parts = []
        added = "present" if files.commit.first_known else "insert"
        for kind, tasks in (("delete", files.removed), (added, files.added)):
            if tasks:
                parts.append(f"SELECT *, {literal(kind)} AS {_TYPE} FROM ({self._rows(tasks)})")
        if files.before:
            place = [self._unused(each) for each in (FILE, POS)]
            before, after = self._rows(files.before, *place), self._rows(files.after, *place)
            keys = ", ".join(quoted(each.name) for each in place)
            for kind, one, other in (("delete", before, after), ("insert", after, before)):
                parts.append(
                    f"SELECT {self._names}, {literal(kind)} AS {_TYPE} FROM ({one}) x "
                    f"ANTI JOIN (SELECT {keys} FROM ({other})) y USING ({keys})"
                )
        return f"SELECT *, {blamed} FROM ({' UNION ALL BY NAME '.join(f'({p})' for p in parts)})"

    def nothing(self) -> str:
        """No rows, with all columns."""
        columns = Schema((*self._schema.fields, *CHANGE_COLUMNS, *self._blamed))
        return f"SELECT *, 0 AS {_ORDINAL} FROM ({empty_relation(columns).sql})"

    def _unused(self, column: NestedField) -> NestedField:
        """A metadata column under a name that no column of the table has."""
        names = {each.name.lower() for each in self._schema.fields}
        name = column.name
        while name in names:
            name = f"_{name}"
        return replace(column, name=name)

    def _rows(self, tasks: Sequence[FileScanTask], *more: NestedField) -> str:
        columns = (*self._schema.fields, *more)
        relation = self._read(replace(self._context, projection=Schema(columns)), tasks)
        self.parameters |= relation.parameters
        self.registered |= relation.registered
        return relation.sql


def _identity(column: NestedField) -> tuple[str, ...]:
    """SQL of the values that identify a row: for DuckDB, -0.0 equals 0.0."""
    name = quoted(stored_name(column.field_id))
    if isinstance(column.type, t.FloatType | t.DoubleType):
        return name, f"signbit({name})"
    inside = Schema((column,)).field_by_id.values()
    if any(isinstance(each.type, t.FloatType | t.DoubleType) for each in inside):
        return name, f"CAST({name} AS VARCHAR)"
    return (name,)


def _without_carried(sql: str, row: Sequence[str]) -> str:
    """Remove pairs of a delete and an insert of the same row."""
    same = f"PARTITION BY {', '.join(row)}"
    return (
        f"SELECT * EXCLUDE (__nth, __deleted, __inserted) FROM (SELECT *, "
        f"row_number() OVER ({same}, {_TYPE}) AS __nth, "
        f"count(*) FILTER ({_TYPE} = 'delete') OVER ({same}) AS __deleted, "
        f"count(*) FILTER ({_TYPE} = 'insert') OVER ({same}) AS __inserted "
        f"FROM ({sql})) WHERE __nth > least(__deleted, __inserted)"
    )


def _net(sql: str, row: Sequence[str]) -> str:
    """The net changes of all commits: the last of the deletes or inserts, whichever are more."""
    same = f"PARTITION BY {', '.join(row)}"
    return (
        f"SELECT * EXCLUDE (__nth, __deleted, __inserted) FROM (SELECT *, "
        f"row_number() OVER ({same}, {_TYPE} ORDER BY {_ORDINAL} DESC) AS __nth, "
        f"count(*) FILTER ({_TYPE} = 'delete') OVER ({same}) AS __deleted, "
        f"count(*) FILTER ({_TYPE} = 'insert') OVER ({same}) AS __inserted "
        f"FROM ({sql})) WHERE __nth <= CASE {_TYPE} WHEN 'delete' "
        f"THEN __deleted - __inserted ELSE __inserted - __deleted END"
    )


def _updates(sql: str, same_row: Sequence[str], keys: Sequence[str], problem: str) -> str:
    """Mark a delete and an insert of one key, in one commit or net, as an update."""
    same = f"PARTITION BY {', '.join(same_row)}"
    known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    return (
        f"SELECT * EXCLUDE (__deleted, __inserted) REPLACE (CASE "
        f"WHEN NOT ({known}) OR __deleted = 0 OR __inserted = 0 THEN {_TYPE} "
        f"WHEN __deleted > 1 OR __inserted > 1 THEN error({literal(problem)}) "
        f"WHEN {_TYPE} = 'delete' THEN 'update_preimage' ELSE 'update_postimage' END AS {_TYPE}) "
        f"FROM (SELECT *, "
        f"count(*) FILTER ({_TYPE} = 'delete') OVER ({same}) AS __deleted, "
        f"count(*) FILTER ({_TYPE} = 'insert') OVER ({same}) AS __inserted FROM ({sql}))"
    )
