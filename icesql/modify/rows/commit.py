"""Writes the row changes of a statement to the table that it read, and commits them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, cast, get_args

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.branches import Branch, start_of
from icesql.commit.conflicts import Isolation
from icesql.commit.file_changes import SchemaChange
from icesql.commit.rows import commit_row_delta
from icesql.errors import CommitConflictError, ProgrammingError, UnsupportedTableError, rows_changed
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import FILE, LINEAGE, POS, Schema
from icesql.modify.rows.new_files import FileNames, FilesOf, GoneRows, NewRows, RowBatch, RowFiles
from icesql.modify.services import Modified, StatementServices
from icesql.scan.plan import TableScan, refuse_repeated
from icesql.scan.planner import plan_snapshot
from icesql.storage.new_files import check_writable
from icesql.write.options import check_table
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks import FileScanTask, ScanContext


# ------------------------------------------------------------------ the table whose rows change


Command = Literal["delete", "update", "merge"]
_MODES = ("copy-on-write", "merge-on-read")
_ISOLATIONS = ("serializable", "snapshot")
# Statements locate rows by columns of these names. Tables of other writers may use the names.
_PLACES = frozenset(each.name for each in (FILE, POS, *LINEAGE))


class RowTarget(Frozen):
    """The target of a change: the commit checks for changes of ``branch`` since ``snapshot``.

    Only rows for which ``row_filter`` may be true conflict; every row that the statement looks for
    satisfies it. ``schema`` adds columns in the same commit; ``table`` already has them.
    """

    catalog: Catalog
    table: Table
    snapshot: Snapshot | None
    command: Command
    branch: Branch
    row_filter: Predicate
    schema: SchemaChange | None = None

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata when the statement read it, including added columns."""
        return self.table.metadata

    @property
    def start_id(self) -> int | None:
        """The id of the snapshot that was read."""
        return None if self.snapshot is None else self.snapshot.snapshot_id

    @property
    def merges_on_read(self) -> bool:
        """True if deleted rows get delete files instead of new data files; v1 has no delete files.

        Raises UnsupportedTableError for a property value that is neither of the two modes.
        """
        mode = self._property("mode", _MODES)
        return mode == "merge-on-read" and self.metadata.format_version > 1

    @property
    def isolation(self) -> Isolation:
        """The isolation level by the table's property. UnsupportedTableError for an unknown one."""
        return cast("Isolation", self._property("isolation-level", _ISOLATIONS))

    def _property(self, name: str, known: tuple[str, ...]) -> str:
        key = f"write.{self.command}.{name}"
        return _chosen(self.metadata.properties, key, known, self.table.name)


def check_modes(properties: Mapping[str, str]) -> None:
    """Raise UnsupportedTableError for an unknown mode or isolation level."""
    for command in get_args(Command):
        _chosen(properties, f"write.{command}.mode", _MODES)
        _chosen(properties, f"write.{command}.isolation-level", _ISOLATIONS)


def _chosen(
    properties: Mapping[str, str], key: str, known: tuple[str, ...], table: str | None = None
) -> str:
    text = properties.get(key, known[0]).lower()
    if text not in known:
        raise UnsupportedTableError(
            f"the table property {key} = {text!r}; it is {' or '.join(known)}", table=table
        )
    return text


def row_target(
    catalog: Catalog,
    scan: TableScan,
    *,
    command: Command,
    branch: Branch,
    alone: bool,
) -> RowTarget:
    """The target that ``scan`` reads. ``alone``: the rows found depend only on this scan and its
    filter, not on other tables.

    Raises ProgrammingError if the scan does not read the current head of the branch, and
    UnsupportedTableError for a column whose name is one of those that locate rows.
    """
    check_row_names(scan.table)
    head = start_of(scan.table.metadata, branch)
    found = None if scan.snapshot is None else scan.snapshot.snapshot_id
    if head != found:
        raise ProgrammingError(
            f"{command.upper()} changes {scan.table.name} as it is now, and the statement reads it "
            "as it was; RESET SNAPSHOT TIME"
        )
    return RowTarget(
        catalog,
        scan.table,
        scan.snapshot,
        command,
        branch,
        scan.row_filter if alone else ALWAYS_TRUE,
    )


def check_row_names(table: Table) -> None:
    """Raise UnsupportedTableError for a column with a name by which statements locate rows."""
    for each in table.metadata.schema.fields:
        if each.name.lower() in _PLACES:
            raise UnsupportedTableError(
                f'changing rows beside a column "{each.name}", a name that tells rows apart',
                table=table.name,
                hint=f'rename it: ALTER TABLE … RENAME COLUMN "{each.name}" TO …',
            )


def check_same_columns(read: Table, found: Table) -> None:
    """Raise CommitConflictError if the columns changed between ``found``, in which the statement's
    columns were resolved, and ``read``: values would go to other columns."""
    if (read.metadata.schema, read.metadata.format_version) != (
        found.metadata.schema,
        found.metadata.format_version,
    ):
        raise CommitConflictError(
            f"the columns of {found.name} changed meanwhile; nothing was changed, run the "
            "statement again"
        )


# ------------------------------------------------------------------ changes


class ChangedRows(Frozen):
    """The files that were written and committed; ``snapshot_id`` None: nothing was to be done."""

    written: Written
    snapshot_id: int | None

    def modified(self, rows: int) -> Modified:
        """The outcome of the statement, with its number of rows."""
        return replace(Modified.of(self.written, self.snapshot_id), rows=rows)


def change_rows(
    target: RowTarget,
    batches: Iterable[RowBatch],
    services: StatementServices,
    *,
    new: NewRows | None,
    once: bool,
) -> ChangedRows:
    """Change the rows of ``batches``, which are read once, in one commit.

    By the table's properties, files are rewritten without their deleted rows (copy-on-write) or get
    delete files (merge-on-read). ``new`` is required if there are new rows. ``once``: deleting a
    row twice is an error, else it counts once.

    Raises ProgrammingError for such a row, DataError, TypeMismatchError and IntegrityError for
    values that do not fit, CommitConflictError, OperationalError, and what ``batches`` raises;
    then no file is left and the table is unchanged.
    """
    by_deletes = check_target(target)
    files = RowFiles(
        target.metadata,
        target.table.storage,
        files_of(target, services.query),
        GoneRows(once, repeated(target)),
        new,
        FileNames(str(uuid.uuid4())),
        services.query,
    )
    return commit_files(target, files.write(batches, by_deletes=by_deletes), services)


def check_target(target: RowTarget) -> bool:
    """Raise if the rows of a table cannot be changed; return whether to write delete files.

    Reads both properties, so that a bad value raises before any row is read.
    """
    check_table(target.metadata)
    check_writable(target.table.storage)
    by_deletes, _ = target.merges_on_read, target.isolation
    return by_deletes


def repeated(target: RowTarget) -> str:
    """The error text for a row that matches several source rows."""
    others = "the source" if target.command == "merge" else "FROM"
    return (
        f"a row of {target.table.name} matches several rows of {others}, and which of them is to "
        "change it is unclear; make them distinct, nothing was changed"
    )


def files_of(target: RowTarget, query: QueryContext) -> FilesOf:
    """The data files at given paths, as the statement read them, in order, with all their deletes.

    Planned at the first call, without a filter: a filtered plan would leave out deletes of rows
    that the filter does not match.
    """
    plans: list[ScanPlan] = []

    def found(projection: Schema, paths: set[str]) -> tuple[list[FileScanTask], ScanContext]:
        if not plans:
            plans.append(plan_snapshot(target.table, target.snapshot, query))
        (planned,) = plans
        files = [each for each in planned.files if each.data_file.path in paths]
        refuse_repeated(files, target.table.name)
        if len(files) != len(paths):
            raise rows_changed(
                f"{target.table.name} changed while it was read; run the statement again"
            )
        return files, replace(planned.context, projection=projection)

    return found


def commit_files(
    target: RowTarget, changed: Written, services: StatementServices, *, whole: bool = False
) -> ChangedRows:
    """Commit new files; they are removed if that fails. Raises what the commit raises.

    ``whole``: all rows of the removed files are deleted.
    """
    done = commit_row_delta(
        target.catalog,
        target.table,
        added=changed.data,
        deletes=changed.deletes,
        removed=changed.removed,
        referenced=changed.referenced,
        command=target.command if not whole and target.merges_on_read else None,
        start_id=target.start_id,
        row_filter=target.row_filter,
        isolation=target.isolation,
        branch=target.branch,
        rows=changed.rows - changed.gone,
        schema=target.schema,
        query=services.query,
    )
    return ChangedRows(changed, done.snapshot_id)
