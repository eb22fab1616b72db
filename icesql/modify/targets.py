"""Resolve the table that a statement changes, and the branch that its rows go to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.catalog.targets import new_place, table_to_change
from icesql.commit.branches import Branch, Staged
from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedSqlError,
    found_at,
    similar_names,
)
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.modify.services import Modified, StatementServices
from icesql.sql.writes.statements import TableName
from icesql.storage.new_files import check_writable

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier, Table
    from icesql.config import Settings
    from icesql.iceberg.schema import Schema
    from icesql.iceberg.types import NestedField
    from icesql.scan.plan import TableScan
    from icesql.sql.statement import Query, TableReference

_BRANCH: Final = "branch_"
_WAP: Final = "write.wap.enabled"


def find_target(name: TableName, services: StatementServices) -> tuple[Catalog, Table, Branch]:
    """The catalog, table and branch that a statement writes to; ``t.branch_x`` is branch x of t.

    If the statement names no branch and the table has ``write.wap.enabled``, the settings
    ``wap_branch`` and ``wap_id`` choose the branch. Raises TableNotFoundError,
    SnapshotNotFoundError for a missing branch, and UnsupportedTableError, also for a copy of a
    table.
    """
    catalog, table, branch = find_named(name, services)
    check_writable(table.storage)
    return catalog, table, wap_branch(table, services.query.settings) if branch is None else branch


def find_named(name: TableName, services: StatementServices) -> tuple[Catalog, Table, str | None]:
    """As ``find_target``, but ignores the settings; the branch is None if the name has none."""
    names = services.state.names
    if services.state.temporary.find(name.parts) is not None:
        raise UnsupportedSqlError(
            f"a change of {name.text}, which this session made",
            hint="CREATE OR REPLACE TEMP TABLE … AS SELECT",
            offset=name.offset,
        )
    branch = name.branch
    with found_at(name.offset):
        try:
            catalog, table = services.query.wait_for(lambda: table_to_change(names, name.parts))
        except TableNotFoundError:
            parts, branch = with_branch(name.parts)
            if branch is None or name.branch is not None:
                raise
            catalog, table = services.query.wait_for(lambda: table_to_change(names, parts))
        if branch is not None:
            check_branch(table, branch)
    return catalog, table, branch


def with_branch(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Split a name from the branch that it ends in: ``t.branch_x``, or ``"t@x"`` in quotes."""
    before, last = parts[:-1], parts[-1]
    if before and last.lower().startswith(_BRANCH) and len(last) > len(_BRANCH):
        return before, last[len(_BRANCH) :]
    table, at, branch = last.rpartition("@")
    return ((*before, table), branch) if table and at and branch else (parts, None)


def check_branch(table: Table, branch: str) -> None:
    """Raise ProgrammingError for a tag, SnapshotNotFoundError for a missing branch."""
    refs = table.metadata.refs
    ref = refs.get(branch)
    if ref is not None and ref.kind == "tag":
        raise ProgrammingError(f"{branch!r} is a tag; only a branch takes new snapshots")
    if ref is None and branch != MAIN:
        branches = [each for each, held in refs.items() if held.kind == "branch"]
        raise SnapshotNotFoundError(
            f"branch {branch!r}",
            table=table.name,
            similar=similar_names(branch, branches),
            hint=f"ALTER TABLE {table.name} CREATE BRANCH {branch} makes it",
        )


def column_named(name: str, schema: Schema, offset: int | None) -> NestedField:
    """The column of a name at this offset in the text. Raises ColumnNotFoundError."""
    found = schema.find_column(name)
    if found is None:
        names = [each.name for each in schema.fields]
        raise ColumnNotFoundError(name, similar=similar_names(name, names), offset=offset)
    return found


def without_qualifier(
    path: tuple[str, ...], qualifiers: Iterable[tuple[str, ...]], schema: Schema
) -> tuple[str, ...] | None:
    """The path after a name of the table, if a column follows it; else None."""
    lower = tuple(map(str.lower, path))
    for each in qualifiers:
        rest = path[len(each) :]
        is_one = lower[: len(each)] == tuple(map(str.lower, each))
        if rest and is_one and schema.find_column(rest[0]) is not None:
            return rest
    return None


def renamed_place(
    catalog: Catalog,
    identifier: Identifier,
    new: tuple[str, ...],
    what: str,
    services: StatementServices,
) -> Identifier:
    """The place for a new name of a table or view. Raises ProgrammingError for another catalog."""
    if len(new) == 1:
        return (*identifier[:-1], *new)
    target, place = new_place(services.state.names, new)
    if target is not catalog:
        raise ProgrammingError(f"a {what} cannot be renamed into another catalog")
    return place


def properties_to_unset(
    properties: Mapping[str, str], unset: Sequence[str], what: str, *, if_exists: bool
) -> tuple[str, ...]:
    """Those of ``unset`` that a table or view has. Raises ProgrammingError for a missing one."""
    missing = [key for key in unset if key not in properties]
    if missing and not if_exists:
        raise ProgrammingError(f"the {what} has no property {missing[0]}")
    return tuple(key for key in unset if key in properties)


def wap_branch(table: Table, settings: Settings) -> Branch:
    """The branch for rows if the statement names none: main, or by write-audit-publish."""
    if settings.wap_id is None and settings.wap_branch is None:
        return MAIN
    if table.metadata.properties.get(_WAP, "false").lower() != "true":
        return MAIN
    if settings.wap_id is not None and settings.wap_branch is not None:
        raise ProgrammingError("wap_id and wap_branch are both set; RESET one of them")
    if settings.wap_branch is not None:
        return settings.wap_branch
    assert settings.wap_id is not None
    return Staged(settings.wap_id)


def as_staged(done: Modified, name: TableName | None, services: StatementServices) -> Modified:
    """The outcome of a statement, with a note if write-audit-publish keeps its rows out of main."""
    settings = services.query.settings
    if name is None or (settings.wap_id is None and settings.wap_branch is None):
        return done
    _, table, branch = find_named(name, services)
    to = MAIN if branch is not None else wap_branch(table, services.query.settings)
    if to == MAIN:
        return done
    if isinstance(to, Staged):
        where = f"staged as wap.id {to.wap_id}, which no query reads"
        publish = f"system.publish_changes('{table.name}', '{to.wap_id}')"
    else:
        where = f"in branch {to} alone"
        publish = f"system.fast_forward('{table.name}', 'main', '{to}')"
    notes = done.note, f"{where}: CALL {publish} publishes it"
    return replace(done, note="; ".join(filter(None, notes)))


def read_of(scans: Iterable[TableScan], table: Table, start_id: int | None) -> Predicate | None:
    """A predicate for the rows that scans read of the table's head; None if they read none.

    ``start_id`` is the head of the branch that changes. Scans of a past time, a tag or another
    branch do not count: later changes do not affect their rows.
    """
    own = []
    for each in scans:
        found = None if each.snapshot is None else each.snapshot.snapshot_id
        # Or a newer one: the table was loaded before the query was bound.
        is_now = found == start_id or found not in table.metadata.snapshots
        if is_now and each.table.metadata.table_uuid == table.metadata.table_uuid:
            own.append(each)
    if not own:
        return None
    return own[0].row_filter if len(own) == 1 else ALWAYS_TRUE


def target_of(query: Query, name: TableName, sources: Any = None) -> TableReference:
    """The reference to the statement's table in its query, whose text has these sources."""
    return next(
        each
        for each in query.references
        if name.offset == (each.offset if sources is None else sources.original(each.offset))
    )
