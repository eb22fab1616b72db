"""One CALL as its procedure is given it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from icesql.errors import ProgrammingError, SnapshotNotFoundError
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.modify.procedures.arguments import Arguments
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_named
from icesql.sql.table_name import name_parts
from icesql.sql.writes.statements import TableName
from icesql.storage.new_file import check_writable

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.iceberg.metadata.snapshot import Snapshot


class Call(Struct, frozen=True):
    """The checked arguments of a CALL, and where its names are looked up.

    ``catalog`` is what stands before ``system``, "" for nothing. ``explain``: nothing may be
    changed, and all that is planned is told. ``now_ms`` is when the statement began, ``head`` the
    snapshot that its branch must be at; None: any.
    """

    arguments: Arguments
    services: StatementServices
    now_ms: int
    catalog: str = ""
    explain: bool = False
    head: int | None = None

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter, None for one that was not given."""
        return self.arguments[name]

    def table_name(self, parameter: str = "table") -> TableName:
        """The table that a parameter names, in the catalog of the CALL."""
        name: TableName = self.arguments[parameter]
        named = self.catalog and name.parts[0].lower() != self.catalog.lower()
        return TableName((self.catalog, *name.parts), name.offset) if named else name

    def target(self) -> tuple[Catalog, Table]:
        """The catalog, and the table freshly loaded.

        Raises TableNotFoundError, UnsupportedTableError, ProgrammingError for a branch.
        """
        catalog, table, branch = self.branch_target()
        if branch != MAIN:
            raise self.arguments.wrong("table", f"names the branch {branch!r}; it takes a table")
        return catalog, table

    def branch_target(self) -> tuple[Catalog, Table, str]:
        """As ``target``, and the branch: ``t.branch_x`` is branch x of t, main without one.

        Write-audit-publish concerns rows, and no procedure. A copy of a table is explained only.
        """
        catalog, table, branch = find_named(self.table_name(), self.services)
        if self.arguments.procedure.changes and not self.explain:
            check_writable(table.storage)
        return catalog, table, branch or MAIN

    def source(self) -> Table:
        """The table that is read, by its name or, where there is a slash, by its path.

        Raises as ``target`` does, AccessDeniedError for a path.
        """
        given = self.arguments["table"]
        if isinstance(given, TableName):
            return find_named(self.table_name(), self.services)[1]
        names, query = self.services.state.names, self.services.query
        if "/" in given:
            name = given.rstrip("/").rpartition("/")[2] or given
            return query.wait_for(lambda: names.open_table((name,), given))
        parts = name_parts(given)
        if not all(parts):
            raise self.wrong("table", f"is {given!r}, which is no name of a table")
        name = TableName(parts, self.arguments.offsets["table"])
        call = replace(self, arguments=self.arguments.with_value("table", name))
        return call.source()

    def named_branch(self) -> tuple[Catalog, Table, str]:
        """As ``branch_target``, where the argument ``branch`` may name the branch, too."""
        catalog, table, branch = self.branch_target()
        named: str | None = self["branch"]
        if named is None:
            return catalog, table, branch
        if branch not in (MAIN, named):
            raise self.wrong("branch", f"is {named!r}, and table names {branch!r}")
        return catalog, table, named

    def snapshot_of(self, table: Table) -> Snapshot | None:
        """The snapshot that ``snapshot_id`` names, else the current one; None without any.

        Raises SnapshotNotFoundError.
        """
        wanted: int | None = self["snapshot_id"]
        if wanted is None:
            return table.metadata.current_snapshot
        found = table.metadata.snapshot(wanted)
        if found is None:
            raise SnapshotNotFoundError(f"snapshot {wanted}", table=table.name)
        return found

    def wrong(self, parameter: str, problem: str) -> ProgrammingError:
        """The error for a value that the procedure cannot take."""
        return self.arguments.wrong(parameter, problem)
