"""Changes a table as a whole: DROP, RENAME, properties, layout, branches and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec.structs import asdict, replace

from icesql.catalog.targets import table_to_change
from icesql.commit import refs
from icesql.commit.attempts import check_retries
from icesql.commit.deletion import drop_table as drop
from icesql.commit.deletion import folders_of
from icesql.commit.file_changes import change_table
from icesql.commit.manifests.store import ManifestSettings
from icesql.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedTableError,
    found_at,
    similar_names,
)
from icesql.iceberg.evolution.schema_changes import schema_updates, set_identifier_fields
from icesql.iceberg.evolution.spec_changes import (
    PartitionRequest,
    SortRequest,
    SpecHistory,
    changed_spec,
    new_sort_order,
)
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.json_fields import number_property
from icesql.iceberg.metadata.name_mapping import PROPERTY, parse_name_mapping
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata.writing import is_gzipped
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.maintain.deletes.plan import delete_granularity
from icesql.maintain.expire import check_ages
from icesql.modify.rows.commit import check_modes
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import find_target, properties_to_unset, renamed_place
from icesql.query.snapshot_selection import select_snapshot
from icesql.scan.tasks import LOOKBACK, OPEN_FILE_COST, TARGET_SIZE
from icesql.sql.statement import Drop
from icesql.sql.writes.alter_table import (
    ChangeLayout,
    CreateRef,
    DropRef,
    FastForward,
    SetIdentifierFields,
)
from icesql.sql.writes.statements import (
    DropTable,
    PartitionTerm,
    RenameTable,
    SetProperties,
    SortTerm,
)
from icesql.write.options import FORMATS, check_properties_of_table, write_options
from icesql.write.write_task import distribution

# ------------------------------------------------------------------ values of properties
# A value that a later statement would reject is rejected here, by the function that reads it
# there; otherwise users would learn of it from an INSERT. Properties of other engines are not
# checked.


_FILES: Final = ("parquet", "orc", "avro")
_POSITIVE: Final = (TARGET_SIZE, LOOKBACK)
_NUMBERS: Final = (
    OPEN_FILE_COST,
    "write.metadata.previous-versions-max",
    "write.metadata.metrics.max-inferred-column-defaults",
)


def check_properties(given: Mapping[str, str]) -> None:
    """Raise ProgrammingError naming a property whose value a statement could not use."""
    try:
        check_retries(given)
        is_gzipped(given)
        ManifestSettings.of(given)
        check_ages(given)
        check_modes(given)
        check_properties_of_table(given)
        for deletes in (False, True):
            write_options({**given, **dict.fromkeys(FORMATS, "parquet")}, deletes=deletes)
        distribution(given, PartitionSpec(0), is_sorted=False)
        delete_granularity(given)
        if PROPERTY in given:
            parse_name_mapping(given[PROPERTY])
    except (UnsupportedTableError, CorruptFileError) as error:
        raise ProgrammingError(f"cannot set a property that icesql cannot use: {error}") from error
    for name in _NUMBERS:
        number_property(given, name, 0)
    for name in _POSITIVE:
        number_property(given, name, 1, least=1)
    for name in FORMATS:
        text = given.get(name, "parquet")
        if text.lower() not in _FILES:
            raise ProgrammingError(
                f"property {name} is {text!r}; it has to be parquet, orc or avro"
            )


# ------------------------------------------------------------------ DROP, RENAME, properties


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


# ------------------------------------------------------------------ layout


_DISTRIBUTION: Final = "write.distribution-mode"


def change_layout(
    statement: ChangeLayout | SetIdentifierFields, services: StatementServices
) -> Modified:
    """Make the change in one commit; existing files keep their spec and order.

    Raises ProgrammingError, ColumnNotFoundError and TypeMismatchError for invalid changes, such as
    dropping a field that the table does not have, or adding one that it has.
    """
    catalog, table, _ = find_target(statement.table, services)

    def changes(metadata: TableMetadata) -> Sequence[u.Update]:
        if isinstance(statement, SetIdentifierFields):
            return schema_updates(metadata, _identified(statement, metadata.schema))
        return _updates(statement, metadata)

    change_table(catalog, table, changes, query=services.query)
    return Modified()


def _left(statement: ChangeLayout, metadata: TableMetadata) -> ChangeLayout:
    """The statement without the changes that IF [NOT] EXISTS makes unnecessary."""
    history = _history(metadata, metadata.format_version)
    names = {each.name for each in history.spec.fields if each.transform != "void"}

    def is_there(term: PartitionTerm) -> bool:
        found = _dropped(term, history)
        return found in names if isinstance(found, str) else _named(found, history) is not None

    add = tuple(each for each in statement.add if not (each.name in names or is_there(each)))
    return replace(statement, add=add, drop=tuple(filter(is_there, statement.drop)))


def _updates(statement: ChangeLayout, metadata: TableMetadata) -> list[u.Update]:
    statement = _left(statement, metadata) if statement.lenient else statement
    properties = dict(statement.properties)
    found = property_updates(metadata, properties, statement.unset, if_exists=True)
    version = max(
        (each.format_version for each in found if isinstance(each, u.UpgradeFormatVersion)),
        default=metadata.format_version,
    )
    if statement.partitioning is not None or statement.add or statement.drop:
        found += [u.AddPartitionSpec(_spec(statement, metadata, version)), u.SetDefaultSpec()]
    if statement.ordering is not None:
        requests = [sort_request(each, metadata.schema) for each in statement.ordering]
        order_id = 1 + max(metadata.sort_orders, default=0)
        found.append(u.AddSortOrder(new_sort_order(metadata.schema, requests, order_id)))
        found.append(u.SetDefaultSortOrder())
    if statement.distribution is not None:
        found.append(u.SetProperties({_DISTRIBUTION: statement.distribution}))
    return found


def _history(metadata: TableMetadata, version: int) -> SpecHistory:
    return SpecHistory(
        version,
        metadata.schema,
        metadata.spec,
        metadata.specs,
        metadata.last_partition_id,
    )


def _spec(statement: ChangeLayout, metadata: TableMetadata, version: int) -> PartitionSpec:
    history = _history(metadata, version)
    wanted = statement.add
    drop = [_dropped(each, history) for each in statement.drop]
    if statement.partitioning is not None:
        wanted = statement.partitioning
        live = [each for each in history.spec.fields if each.transform != "void"]
        drop = [each.name for each in live]
        if version == 1:
            # In v1 a dropped field stays as void at its position, so a kept field must not move.
            requested = [partition_request(each, history.schema) for each in wanted]
            same = {_named(each, history) for each in requested} - {None}
            drop = [each for each in drop if each not in same]
            wanted = tuple(
                term
                for term, each in zip(wanted, requested, strict=True)
                if _named(each, history) is None
            )
    add = [partition_request(each, history.schema) for each in wanted]
    return changed_spec(history, add=add, drop=drop)


def _named(request: PartitionRequest, history: SpecHistory) -> str | None:
    """The name of the existing partition field with the source and transform of a request."""
    source = history.schema.find_field(request.source, case_sensitive=False).field_id
    for field in history.spec.fields:
        if field.source_ids == (source,) and field.transform == request.transform:
            return field.name
    return None


def _dropped(term: PartitionTerm, history: SpecHistory) -> str | PartitionRequest:
    """The field to drop: by name, which comes first, or by column and transform."""
    if term.transform != "identity":
        return partition_request(term, history.schema)
    names = {each.name.lower(): each.name for each in history.spec.fields}
    name = names.get(term.source.lower())
    if name is not None:
        return name
    if history.schema.find_column(term.source) is None:
        return term.source  # the caller reports it as a missing partition field
    return partition_request(term, history.schema)


def _identified(statement: SetIdentifierFields, schema: Schema) -> Schema:
    requested = set_identifier_fields(schema, statement.paths)
    if not statement.drop:
        return requested
    gone = requested.identifier_field_ids
    for each in gone:
        if each not in schema.identifier_field_ids:
            raise ProgrammingError(f'"{schema.name_by_id[each]}" is no identifier field')
    left = tuple(each for each in schema.identifier_field_ids if each not in gone)
    return replace(schema, identifier_field_ids=left)


def partition_request(term: PartitionTerm, schema: Schema) -> PartitionRequest:
    """The partition field that a term describes. Raises ColumnNotFoundError."""
    return PartitionRequest(_source(term, schema), term.transform, term.name)


def sort_request(term: SortTerm, schema: Schema) -> SortRequest:
    """The sort key that a term describes. Raises ColumnNotFoundError."""
    nulls: dict[bool | None, Literal["nulls-first", "nulls-last"] | None] = {
        None: None,
        True: "nulls-first",
        False: "nulls-last",
    }
    return SortRequest(
        _source(term, schema),
        term.transform,
        "desc" if term.descending else "asc",
        nulls[term.nulls_first],
    )


def _source(term: PartitionTerm | SortTerm, schema: Schema) -> str:
    """The column's name as the table spells it."""
    try:
        field = schema.find_field(term.source, case_sensitive=False)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(
            term.source,
            similar=similar_names(term.source, schema.name_by_id.values()),
            offset=term.offset,
        ) from error
    return schema.name_by_id[field.field_id]


# ------------------------------------------------------------------ branches and tags


def change_ref(
    statement: CreateRef | DropRef | FastForward, services: StatementServices
) -> Modified:
    """Make the change in one commit.

    Raises ProgrammingError where the name is taken, or is missing for replacing or dropping, and
    SnapshotNotFoundError.
    """
    catalog, table, _ = find_target(statement.table, services)
    match statement:
        case DropRef(kind=kind, name=name, if_exists=if_exists):
            change = refs.drop_ref(name, kind, if_exists=if_exists)
        case FastForward(branch=branch, to=to):
            change = refs.fast_forward(branch, to)
        case CreateRef(kind=kind, name=name, retention=kept):
            retention = {key: each for key, each in asdict(kept).items() if each is not None}
            empty = not table.metadata.snapshots and name not in table.metadata.refs
            if empty and kind == "branch" and not statement.must_exist and not statement.travel:
                ref = SnapshotRef(0, "branch", **retention)
                refs.create_branch_of_empty(catalog, table, name, ref, services.query)
                return Modified()
            snapshot_id = None
            if statement.travel is not None:
                with found_at(statement.table.offset):
                    found = select_snapshot(table, statement.travel, services.query).snapshot
                snapshot_id = None if found is None else found.snapshot_id
            change = refs.create_ref(
                name,
                kind,
                snapshot_id=snapshot_id,
                if_exists=statement.if_exists,
                must_exist=statement.must_exist,
                **retention,
            )
    before = table.metadata_location
    done = change_table(catalog, table, change, query=services.query)
    if done.metadata_location == before:
        return Modified(note="nothing was to be done")
    return Modified()
