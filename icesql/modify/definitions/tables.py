"""DROP TABLE, RENAME and properties: changes of a table as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icesql.catalog.targets import table_to_change
from icesql.commit.change import change_table
from icesql.commit.own_places import folders_of
from icesql.commit.purge import drop_table as drop
from icesql.errors import ProgrammingError, TableNotFoundError, found_at
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.modify.definitions.properties import check_properties
from icesql.modify.modified import Modified
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target, properties_to_unset, renamed_place
from icesql.sql.statement import Drop
from icesql.sql.writes.statements import DropTable, RenameTable, SetProperties


def drop_table(statement: DropTable, services: StatementServices) -> Modified:
    """Drop a temporary table, else one of the catalog. Raises TableNotFoundError."""
    name = statement.table
    made = services.state.temporary
    if made.find(name.parts) is not None:
        made.drop(Drop("TABLE", name.parts[-1], statement.if_exists, name.offset))
        return Modified()
    try:
        with found_at(name.offset):
            catalog, table = services.query.wait_for(
                lambda: table_to_change(services.state.names, name.parts)
            )
    except TableNotFoundError:
        if not statement.if_exists:
            raise
        return Modified(note=f"there is no {name.text}; nothing was done")
    note = drop(
        catalog,
        table,
        purge=statement.purge,
        delete_below=folders_of(services.query.settings.delete_below),
        query=services.query,
    )
    if not statement.purge:
        again = f"('{name.text}', '{table.metadata_location}')"
        note = f"its files stay: CALL system.register_table{again} brings the table back"
    return Modified(note=note)


def rename_table(statement: RenameTable, services: StatementServices) -> Modified:
    """Rename a table in its catalog. Raises CatalogError if the new name exists."""
    catalog, table, _ = find_target(statement.table, services)
    place = renamed_place(catalog, table.identifier, statement.new, "table", services)
    catalog.rename(table.identifier, place)
    return Modified()


def set_properties(statement: SetProperties, services: StatementServices) -> Modified:
    """Set or remove properties; ``format-version`` upgrades the table."""
    catalog, table, _ = find_target(statement.table, services)

    def changes(metadata: TableMetadata) -> list[u.Update]:
        given = dict(statement.set)
        return property_updates(metadata, given, statement.unset, if_exists=statement.if_exists)

    change_table(catalog, table, changes, query=services.query)
    return Modified()


def property_updates(
    metadata: TableMetadata, given: Mapping[str, str], unset: Sequence[str], *, if_exists: bool
) -> list[u.Update]:
    """The updates that set and remove properties. Raises ProgrammingError."""
    there = properties_to_unset(metadata.properties, unset, "table", if_exists=if_exists)
    found: list[u.Update] = []
    given = dict(given)
    version = given.pop("format-version", None)
    if version is not None:
        if not version.isdigit():
            raise ProgrammingError(f"format-version is {version!r}; it can be 1, 2 or 3")
        found.append(u.UpgradeFormatVersion(int(version)))
    if given:
        check_properties(given)
        found.append(u.SetProperties(given))
    if there:
        found.append(u.RemoveProperties(there))
    return found
