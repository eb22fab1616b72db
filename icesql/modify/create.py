"""CREATE TABLE, also of a query's rows, and namespaces made and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.catalog.targets import make_missing_catalog, namespace_place, new_place
from icesql.commit.create import (
    Replacement,
    StagedTable,
    create_table,
    replace_table,
    stage_replacement,
    stage_table,
)
from icesql.commit.file_changes import CommitResult
from icesql.engine.result_schema import ResultColumn
from icesql.errors import (
    CatalogError,
    DataError,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.name_mapping import PROPERTY
from icesql.iceberg.schema import Schema
from icesql.modify.alter_table import check_properties, partition_request, sort_request
from icesql.modify.column_types import column_fields, result_fields
from icesql.modify.rows.new_files import rows_here, write_files
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import find_named, read_of
from icesql.sql.writes.statements import (
    ColumnDefinition,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    PartitionTerm,
    SortTerm,
    TableName,
)
from icesql.storage.new_files import check_writable
from icesql.write.assignment import stored_array
from icesql.write.casts import Misfit, refuse_infinity
from icesql.write.options import PLACES
from icesql.write.parquet_schema import stored_fields
from icesql.write.partition_values import internal_array
from icesql.write.write_task import write_task_for

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.scan.plan import TableScan
    from icesql.sql.statement import Query

# Two tables that write to one folder would lose files to each other's orphan removal.
_OF_ITS_PLACE: Final = (*PLACES, PROPERTY)


def create(statement: CreateTable, services: StatementServices) -> Modified:
    """Create a table; with a query, the table appears together with its rows, or not at all.

    Columns that are listed before a query are filled by position, as INSERT does.

    Raises CatalogError where it exists or its namespace is missing, ProgrammingError for columns
    and properties that no table can have, and what running the query raises.
    """
    catalog, identifier = new_place(services.state.names, statement.table.parts)
    before = None
    if statement.if_not_exists or statement.or_replace:
        with suppress(TableNotFoundError):
            before = catalog.load(identifier)
        if before is not None and statement.if_not_exists:
            return Modified(note=f"{statement.table.text} already exists; nothing was done")
        if before is not None:
            check_writable(before.storage)
    if statement.must_exist and before is None:
        raise TableNotFoundError(statement.table.text, offset=statement.table.offset)
    place = _Place(catalog, identifier, before)
    if statement.query is not None:
        return _create_as(statement, place, services)
    if statement.like is not None:
        statement, schema = _alike(statement, statement.like, services)
    else:
        schema = Schema(fields_of(statement.columns, services))
    _finish(place, _stage(statement, place, schema), (), services)
    return Modified()


def _alike(
    statement: CreateTable, like: TableName, services: StatementServices
) -> tuple[CreateTable, Schema]:
    """The statement with the partitioning, order and properties of the table after LIKE."""
    _, table, _ = find_named(like, services)
    metadata = table.metadata
    names = metadata.schema.name_by_id
    partitioning = tuple(
        PartitionTerm(names[each.source_id], each.transform, each.name)
        for each in metadata.spec.fields
        if each.transform.lower() != "void"
    )
    order = metadata.sort_orders.get(metadata.default_sort_order_id)
    ordering = tuple(
        SortTerm(
            names[each.source_ids[0]],
            each.transform,
            each.direction == "desc",
            each.null_order == "nulls-first",
        )
        for each in (() if order is None else order.fields)
    )
    kept = {key: each for key, each in metadata.properties.items() if key not in _OF_ITS_PLACE}
    kept["format-version"] = str(metadata.format_version)
    made = replace(
        statement,
        partitioning=partitioning,
        ordering=ordering,
        properties=(*kept.items(), *statement.properties),
    )
    return made, metadata.schema


class _Place(Frozen):
    """The place of a new table in a catalog, and the existing table that it replaces."""

    catalog: Catalog
    identifier: tuple[str, ...]
    before: Table | None = None


def _stage(statement: CreateTable, place: _Place, schema: Schema) -> StagedTable | Replacement:
    partitioning = [partition_request(each, schema) for each in statement.partitioning]
    ordering = [sort_request(each, schema) for each in statement.ordering]
    properties: Mapping[str, str] = dict(statement.properties)
    check_properties(properties)
    if place.before is not None:
        if statement.location not in (None, place.before.metadata.location):
            raise UnsupportedSqlError(
                "LOCATION of a table that is replaced", offset=statement.table.offset
            )
        return stage_replacement(place.before, schema, partitioning, ordering, properties)
    return stage_table(
        place.catalog,
        place.identifier,
        schema,
        partitioning,
        ordering,
        properties,
        location=statement.location,
    )


def _finish(
    place: _Place,
    staged: StagedTable | Replacement,
    files: Sequence[DataFile],
    services: StatementServices,
    scans: Sequence[TableScan] = (),
    rows: int | None = None,
) -> CommitResult:
    """Commit the new table with its files; ``scans`` are those of the query that gave the rows."""
    if isinstance(staged, Replacement):
        base = staged.base
        own = read_of(scans, base, base.metadata.current_snapshot_id) is not None
        return replace_table(
            place.catalog,
            staged,
            files,
            reads_itself=own,
            rows=rows,
            query=services.query,
        )
    return create_table(place.catalog, staged, files, rows=rows, query=services.query)


def fields_of(
    columns: tuple[ColumnDefinition, ...], services: StatementServices
) -> tuple[t.NestedField, ...]:
    """The fields of columns, with their defaults; see ``column_fields``."""
    return column_fields(columns, services.dialect, partial(default_value, services=services))


def default_value(
    column: ColumnDefinition, type: t.IcebergType, services: StatementServices
) -> Any:
    """The value of DEFAULT, in internal form."""
    assert column.default is not None
    value, place = constant_of(column.default, services), (column.name, column.offset)
    return constant_value(place, type, value, services, "default")


def constant_of(query: Query, services: StatementServices) -> pa.Array:
    """Evaluate a constant with the engine; ``random()`` gives another value at each call."""
    with closing(services.run(query)[0]) as result:
        return result.arrow_reader().read_all().column(0).combine_chunks()


def constant_value(
    column: tuple[str, int | None],
    type: t.IcebergType,
    values: pa.Array,
    services: StatementServices,
    what: str,
) -> Any:
    """Convert the engine's value for a column, by its name and offset, to internal form."""
    name, offset = column
    field = t.NestedField(1, name, type)
    if not stored_fields((field,)) or t.children(type):
        if values.null_count == len(values):
            return None
        raise UnsupportedSqlError(f"a {what} of type {type}", hint="leave it out", offset=offset)
    try:
        refuse_infinity(values)
        made = stored_array(field, values, services.query.settings.timezone)
    except Misfit as misfit:
        raise DataError(f'the {what} of column "{name}" ({type}): {misfit.reason}') from misfit
    return internal_array(made, type)[0].as_py()


def _create_as(statement: CreateTable, place: _Place, services: StatementServices) -> Modified:
    """Write the rows of the query first, then commit the table together with them."""
    assert statement.query is not None
    result, scans = services.run(statement.query)
    with closing(result):
        reader = rows_here(result)
        version = dict(statement.properties).get("format-version")
        if version is None and place.before is not None:
            version = str(place.before.metadata.format_version)
        schema = _schema_of(statement, result.columns, version == "3", services)
        staged = _stage(statement, place, schema)
        table = staged.table
        sources = tuple(range(len(schema.fields)))
        task = write_task_for(
            table.metadata, table.storage, sources, zone=services.query.settings.timezone
        )
        written = write_files(result, task, services.query, reader)
    done = _finish(place, staged, written.files, services, scans, written.rows)
    return Modified.of(written, done.snapshot_id)


def _schema_of(
    statement: CreateTable,
    columns: Sequence[ResultColumn],
    unknown: bool,
    services: StatementServices,
) -> Schema:
    """The columns that the statement lists, filled by position; without a list, the query's."""
    if not statement.columns:
        return Schema(result_fields(_named(columns), unknown=unknown))
    if len(columns) != len(statement.columns):
        raise ProgrammingError(
            f"the query gives {len(columns)} column{'s' * (len(columns) != 1)}, "
            f"and {statement.table.text} has {len(statement.columns)}"
        )
    return Schema(fields_of(statement.columns, services))


def _named(columns: Sequence[ResultColumn]) -> Sequence[ResultColumn]:
    seen: set[str] = set()
    for each in columns:
        if each.name.lower() in seen:
            raise ProgrammingError(
                f'two columns are called "{each.name}"; give one another name with AS'
            )
        seen.add(each.name.lower())
    return columns


def create_namespace(statement: CreateNamespace, services: StatementServices) -> Modified:
    """Create a namespace, and its SQLite catalog file if missing. CatalogError if it exists."""
    if statement.properties:
        raise UnsupportedSqlError("properties of a namespace", hint="leave them out")
    make_missing_catalog(services.state.names, statement.parts)
    catalog, namespace = namespace_place(services.state.names, statement.parts)
    is_there = Modified(note=f"{'.'.join(namespace)} already exists; nothing was done")
    if statement.if_not_exists and _has_namespace(catalog, namespace):
        return is_there
    try:
        catalog.create_namespace(namespace)
    except CatalogError:
        # Another writer may have created it meanwhile.
        if statement.if_not_exists and _has_namespace(catalog, namespace):
            return is_there
        raise
    return Modified()


def drop_namespace(statement: DropNamespace, services: StatementServices) -> Modified:
    """Drop a namespace without tables. Raises CatalogError if it has some, or does not exist."""
    catalog, namespace = namespace_place(services.state.names, statement.parts)
    if statement.if_exists and not _has_namespace(catalog, namespace):
        return Modified(note=f"there is no {'.'.join(namespace)}; nothing was done")
    catalog.drop_namespace(namespace)
    return Modified()


def _has_namespace(catalog: Catalog, namespace: Sequence[str]) -> bool:
    return tuple(namespace) in set(catalog.namespaces())
