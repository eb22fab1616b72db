"""The table whose rows change, as the statement read it, and how it wants them changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from msgspec import Struct

from icesql.catalog.table import Catalog, Table
from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch, start_of
from icesql.commit.validation.validation import Isolation
from icesql.errors import CommitConflictError, ProgrammingError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.metadata_columns import FILE, LINEAGE, POS
from icesql.scan.table_scan import TableScan

Command = Literal["delete", "update", "merge"]
_MODES = ("copy-on-write", "merge-on-read")
_ISOLATIONS = ("serializable", "snapshot")
# Statements find rows by columns of these names. Tables of other writers may have their own.
_PLACES = frozenset(each.name for each in (FILE, POS, *LINEAGE))


class RowTarget(Struct, frozen=True):
    """The target of a change: the commit looks for changes of ``branch`` since ``snapshot``.

    ``row_filter`` is implied by what the statement looks for in the table: only rows for which
    it may be true conflict. ``schema`` are columns that come with the new rows; ``table`` has them.
    """

    catalog: Catalog
    table: Table
    snapshot: Snapshot | None
    command: Command
    branch: Branch = MAIN
    row_filter: Predicate = ALWAYS_TRUE
    schema: SchemaChange | None = None

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata when the statement read it, with the columns that come."""
        return self.table.metadata

    @property
    def start_id(self) -> int | None:
        """The snapshot that was read."""
        return None if self.snapshot is None else self.snapshot.snapshot_id

    @property
    def merges_on_read(self) -> bool:
        """Whether rows get deletes instead of new files; format version 1 has none.

        Raises UnsupportedTableError for a property that is neither of the two modes.
        """
        mode = self._property("mode", _MODES)
        return mode == "merge-on-read" and self.metadata.format_version > 1

    @property
    def isolation(self) -> Isolation:
        """By the table's property. Raises UnsupportedTableError for another level."""
        return cast("Isolation", self._property("isolation-level", _ISOLATIONS))

    def _property(self, name: str, known: tuple[str, ...]) -> str:
        key = f"write.{self.command}.{name}"
        return _chosen(self.metadata.properties, key, known, self.table.name)


def check_modes(properties: Mapping[str, str]) -> None:
    """Raise UnsupportedTableError for a mode or isolation level that there is not."""
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
    branch: Branch = MAIN,
    alone: bool = False,
) -> RowTarget:
    """The target that ``scan`` reads. ``alone``: what was pushed into the scan is all that the
    statement asks of the table, no other table has a say.

    Raises ProgrammingError where the scan is not of the branch as it is now, and
    UnsupportedTableError where a column has the name of one by which rows are told apart.
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
    """Raise UnsupportedTableError for a column by whose name statements find the places of rows."""
    for each in table.metadata.schema.fields:
        if each.name.lower() in _PLACES:
            raise UnsupportedTableError(
                f'changing rows beside a column "{each.name}", a name that tells rows apart',
                table=table.name,
                hint=f'rename it: ALTER TABLE … RENAME COLUMN "{each.name}" TO …',
            )


def check_same_columns(read: Table, found: Table) -> None:
    """Raise CommitConflictError where a statement, whose columns were looked up in ``found``, read
    the table after somebody had changed them: values would go to other columns."""
    if (read.metadata.schema, read.metadata.format_version) != (
        found.metadata.schema,
        found.metadata.format_version,
    ):
        raise CommitConflictError(
            f"the columns of {found.name} changed meanwhile; nothing was changed, run the "
            "statement again"
        )
