"""Show values, bounds and predicates to people, as EXPLAIN prints them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.calendar import date_text, time_text, timestamp_text
from icesql.iceberg.expressions.predicate import SETS, UNARY, And, Leaf, Or, Predicate
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import (
    TimeTransform,
    Transform,
    parse_transform,
    uuid_text,
)

LONGEST_TEXT: Final = 40
MOST_LITERALS: Final = 10


def render_value(value_type: t.IcebergType, value: Any) -> str:
    """One value in internal form: dates and times as ISO text, strings quoted and shortened.

    Never fails: a value that is not of its type is shown as Python writes it.
    """
    if value is None:
        return "NULL"
    match value_type:
        case t.BooleanType() if isinstance(value, bool):
            return "true" if value else "false"
        case t.DateType() if isinstance(value, int):
            return date_text(value)
        case t.TimeType() if isinstance(value, int):
            return time_text(value, 6)
        case t.AnyTimestamp() if isinstance(value, int):
            return timestamp_text(value, value_type)
        case t.UUIDType() if isinstance(value, bytes) and len(value) == 16:
            return uuid_text(value)
        case t.DecimalType():
            return f"{value:f}" if hasattr(value, "as_tuple") else str(value)
        case t.StringType() if isinstance(value, str):
            shown = value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
            return "'" + "".join(map(_printable, shown.replace("'", "''"))) + "'"
        case t.FixedType() | t.BinaryType() if isinstance(value, bytes):
            digits = value.hex()
            return (
                f"X'{digits[: LONGEST_TEXT - 1]}…'"
                if len(digits) > LONGEST_TEXT
                else f"X'{digits}'"
            )
        case _:
            return str(value)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def render_leaf(leaf: Leaf, show: Callable[[Any], str] = repr) -> str:
    """One comparison with its literals through ``show``; long IN lists show their first ones."""
    text = f"{leaf.term} {leaf.operation.value}"
    if leaf.operation in UNARY:
        return text
    if leaf.operation not in SETS:
        return f"{text} {show(leaf.literal)}"
    shown = [show(each) for each in heapq.nsmallest(MOST_LITERALS, leaf.literal)]
    more = len(leaf.literal) - len(shown)
    rest = f", … {more} more" if more else ""
    return f"{text} ({', '.join(shown)}{rest})"


def render_column_leaf(leaf: Leaf, schema: Schema) -> str:
    """A comparison of a column of ``schema`` or of a transform of one."""
    source = schema.field_by_id.get(leaf.term.field_id)
    if source is None:
        return render_leaf(leaf)
    transform = parse_transform(leaf.term.transform)
    return render_leaf(leaf, partial(_render_transformed, transform, source.type))


def render_partition_leaf(leaf: Leaf, spec: PartitionSpec, schema: Schema) -> str:
    """A comparison of a partition value of ``spec``, as projections give them."""
    for each in spec.fields:
        if each.field_id == leaf.term.field_id:
            return render_leaf(leaf, partial(render_partition_value, each, schema=schema))
    return render_leaf(leaf)


def render_partition_value(field: PartitionField, value: Any, *, schema: Schema) -> str:
    """A partition value: units of time as dates ("2017-12"), others as the value itself."""
    source = schema.field_by_id.get(field.source_id)
    return _render_transformed(
        parse_transform(field.transform), t.UNKNOWN if source is None else source.type, value
    )


def _render_transformed(transform: Transform, source_type: t.IcebergType, value: Any) -> str:
    if isinstance(transform, TimeTransform) and isinstance(value, int):
        return transform.human(value, source_type)
    return render_value(transform.result_type(source_type), value)


def render_predicate(predicate: Predicate, schema: Schema) -> str:
    """A predicate on the columns of ``schema``, with as few parentheses as it needs."""
    return _render(predicate, lambda leaf: render_column_leaf(leaf, schema))


def _render(predicate: Predicate, leaf_text: Callable[[Leaf], str]) -> str:
    match predicate:
        case And(left, right):
            sides = (left, right)
            texts = [(_render(side, leaf_text), isinstance(side, Or)) for side in sides]
            return " AND ".join(f"({text})" if is_or else text for text, is_or in texts)
        case Or(left, right):
            return f"{_render(left, leaf_text)} OR {_render(right, leaf_text)}"
        case Leaf():
            return leaf_text(predicate)
        case _:
            return str(predicate)
