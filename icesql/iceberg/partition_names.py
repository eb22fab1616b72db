"""Partition fields with the name of a column: no Java engine loads a table that has one.

Source: Java ``PartitionSpec.Builder``, which checks all specs against the current schema when it
loads a table; other libraries check all schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema


def shared_names(
    schemas: Iterable[Schema], specs: Iterable[PartitionSpec]
) -> dict[tuple[str, int], PartitionField]:
    """The partition fields that have the name of a field of some schema, by that field's id, too.

    An identity field of that very column may have its name, also once version 1 made it void.
    """
    fields = [each for spec in specs for each in spec.fields]
    return {
        (each.name, found): each
        for schema in schemas
        for names in (_names(schema),)
        for each in fields
        if (found := names.get(each.name)) is not None
        if found not in each.source_ids or each.transform.lower() not in ("identity", "void")
    }


def check_partition_names(
    schemas: Iterable[Schema], specs: Iterable[PartitionSpec], known: Iterable[tuple[str, int]] = ()
) -> None:
    """Raise ProgrammingError for a shared name that is not ``known``: the table had it before."""
    allowed = {*known}
    for key, field in shared_names(schemas, specs).items():
        if key not in allowed:
            raise ProgrammingError(
                f'partition field "{field.name}" ({field.transform}) has the name of a column, and '
                "Java's engines load no such table; give the field (AS name) or the column another"
            )


def _names(schema: Schema) -> Mapping[str, int]:
    """Ids by full names, and by those that leave out an element or a value that is a struct."""
    names: dict[str, int] = {}

    def visit(parent: t.IcebergType, full: str, short: str) -> None:
        for each in t.children(parent):
            names[full + each.name] = each.field_id
            names.setdefault(short + each.name, each.field_id)
            inside = isinstance(parent, t.ListType | t.MapType) and each.name != "key"
            is_left_out = inside and isinstance(each.type, t.StructType)
            visit(
                each.type, f"{full}{each.name}.", short if is_left_out else f"{short}{each.name}."
            )

    visit(schema.struct, "", "")
    return names
