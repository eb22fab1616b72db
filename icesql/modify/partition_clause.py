"""``INSERT … PARTITION (p = 1, q)``: the constants that every row gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.modify.create import constant_of, constant_value
from icesql.modify.services import StatementServices
from icesql.modify.targets import column_named
from icesql.sql.writes.statements import Insert

if TYPE_CHECKING:
    from icesql.write.write_task import WriteTask


class FixedValue(Frozen):
    """A column and its constant value in internal form."""

    field: t.NestedField
    value: Any


def partition_values(
    statement: Insert, metadata: TableMetadata, services: StatementServices
) -> tuple[FixedValue, ...]:
    """The constants of PARTITION, in its order.

    Raises ProgrammingError for a column that is no identity partition field,
    ColumnNotFoundError, and DataError for a value that the column cannot hold.
    """
    own = {each.source_id for each in metadata.spec.fields if each.transform.lower() == "identity"}
    found = []
    for each in statement.partition:
        field = column_named(each.name, metadata.schema, each.offset)
        if field.field_id not in own:
            raise ProgrammingError(
                f'PARTITION names "{field.name}", by whose values {statement.table.text} is not '
                "partitioned; INSERT INTO t REPLACE WHERE takes any condition"
            )
        if each.value is not None:
            # Evaluated once, so that the new rows go to the partition whose rows are replaced.
            constant, place = constant_of(each.value, services), (field.name, each.offset)
            value = constant_value(place, field.type, constant, services, "value")
            found.append(FixedValue(field, value))
    return tuple(found)


def as_defaults(task: WriteTask, values: Sequence[FixedValue]) -> WriteTask:
    """A write task that gives the constants to every row, wherever the rows are written."""
    fixed = {each.field.field_id: each.value for each in values}
    if not fixed:
        return task
    old = task.assignment
    fields = tuple(
        replace(each, write_default=fixed[each.field_id]) if each.field_id in fixed else each
        for each in old.schema.fields
    )
    sources = tuple(
        None if each.field_id in fixed else source
        for each, source in zip(old.schema.fields, old.sources, strict=True)
    )
    made = replace(old, schema=replace(old.schema, fields=fields), sources=sources)
    return replace(task, assignment=made)
