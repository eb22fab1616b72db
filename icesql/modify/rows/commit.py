"""Write the row changes of a statement, and commit them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from icesql.commit.rows import commit_row_delta
from icesql.errors import rows_changed
from icesql.frozen import Frozen
from icesql.iceberg.schema import Schema
from icesql.modify.modified import Modified
from icesql.modify.rows.changes import GoneRows, NewRows, RowBatch
from icesql.modify.rows.new_files import FileNames, FilesOf, RowFiles
from icesql.modify.rows.target import RowTarget
from icesql.modify.services import StatementServices
from icesql.scan.planner import plan_snapshot
from icesql.scan.repeated_files import refuse_repeated
from icesql.storage.new_file import check_writable
from icesql.write.options import check_table
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks.task import FileScanTask, ScanContext


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
