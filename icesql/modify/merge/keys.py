"""A filter on the table, from the source's values of the join keys."""

from __future__ import annotations

from typing import Final

from icesql.engine.run_time.keys import values_filter
from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.schema import Schema
from icesql.modify.merge.source import SourceRows
from icesql.modify.result_types import result_fields
from icesql.query.run_time.edges import compare_alike
from icesql.sql.writes.merge.statement import Merge

_KEYS: Final = 8


def matching_filter(statement: Merge, schema: Schema, source: SourceRows) -> Predicate:
    """A filter that every row of the table satisfies that matches a row of the source."""
    found: Predicate = ALWAYS_TRUE
    for key in statement.keys[:_KEYS]:
        for own, other in ((key.one, key.other), (key.other, key.one)):
            field = _of_table(own, statement, schema, source)
            index = _of_source(other, statement, schema, source)
            if field is None or index is None:
                continue
            try:
                (given,) = result_fields((source.columns[index],))
            except UnsupportedSqlError:
                continue
            if not compare_alike(field, given):
                continue
            found &= values_filter(source.values(index), field)
            break
    return found


def table_columns(statement: Merge, schema: Schema, source: SourceRows) -> list[t.NestedField]:
    """The columns of the table that ON or USING compares with the source."""
    found: list[t.NestedField] = []
    for key in statement.keys:
        for own in (key.one, key.other):
            field = _of_table(own, statement, schema, source)
            if field is not None and field not in found:
                found.append(field)
                break
    return found


def _bare(word: str) -> str:
    return word.strip('"`').lower()


def _of_table(
    name: tuple[str, str], statement: Merge, schema: Schema, source: SourceRows
) -> t.NestedField | None:
    qualifier, column = name
    if qualifier and qualifier.lower() != _bare(statement.target_name):
        return None
    elsewhere = {each.lower() for each in source.names}
    if not qualifier and not statement.uses_columns and column.lower() in elsewhere:
        return None
    return schema.find_column(column)


def _of_source(
    name: tuple[str, str], statement: Merge, schema: Schema, source: SourceRows
) -> int | None:
    qualifier, column = name
    if qualifier and qualifier.lower() != _bare(statement.source_name):
        return None
    if not qualifier and not statement.uses_columns and schema.find_column(column) is not None:
        return None
    places = [n for n, each in enumerate(source.names) if each.lower() == column.lower()]
    return places[0] if len(places) == 1 else None
