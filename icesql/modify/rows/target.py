"""The table whose rows change, as the statement read it, and its properties for row changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from icesql.catalog.table import Catalog, Table
from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch, start_of
from icesql.commit.validation.validation import Isolation
from icesql.errors import CommitConflictError, ProgrammingError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata_columns import FILE, LINEAGE, POS
from icesql.scan.table_scan import TableScan

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
