"""Change partition fields, sort order and identifier fields of a table; no file is rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec.structs import replace

from icesql.commit.change import change_table
from icesql.errors import ColumnNotFoundError, ProgrammingError, similar_names
from icesql.iceberg.evolution.schema_changes import set_identifier_fields
from icesql.iceberg.evolution.spec_changes import SpecHistory, changed_spec
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.columns import schema_updates
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.new_spec import PartitionRequest, SortRequest, new_sort_order
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.modify.definitions.tables import property_updates
from icesql.modify.modified import Modified
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target
from icesql.sql.writes.alter.layout import ChangeLayout, SetIdentifierFields
from icesql.sql.writes.statements import PartitionTerm, SortTerm

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
