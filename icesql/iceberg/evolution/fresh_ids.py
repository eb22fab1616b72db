"""Fresh field ids, as a new table gives them to its columns.

Source: Java ``TypeUtil.assignFreshIds``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from msgspec.structs import replace

from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema


def with_fresh_ids(schema: Schema, first: int = 1) -> Schema:
    """The schema of id 0 with ids from ``first`` on, in place of those that it has.

    All fields of a level are numbered in their order before the children of the first of them.
    """
    numbers = count(first)
    given: dict[int, int] = {}

    def next_id(old: int) -> int:
        # A field without an assigned id may have any number, so an old id may occur twice.
        given[old] = new = next(numbers)
        return new

    fields = fresh_fields(schema.fields, next_id)
    return Schema(fields, 0, tuple(given[each] for each in schema.identifier_field_ids))


def fresh_fields(
    fields: Sequence[t.NestedField], next_id: Callable[[int], int]
) -> tuple[t.NestedField, ...]:
    """Fields with new ids at every depth; ``next_id`` maps each old id to a new one."""
    ids = [next_id(each.field_id) for each in fields]
    return tuple(
        replace(each, field_id=number, type=fresh_type(each.type, next_id))
        for each, number in zip(fields, ids, strict=True)
    )


def fresh_type(type: t.IcebergType, next_id: Callable[[int], int]) -> t.IcebergType:
    """A type with new ids for all fields in it."""
    return t.with_children(type, fresh_fields(t.children(type), next_id))
