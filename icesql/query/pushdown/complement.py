"""The rows that a condition excludes, as an Iceberg predicate that holds for all of them.

A condition excludes the rows for which it is false or NULL. If a file has no such row, each of its
rows satisfies the condition, however much weaker the row filter is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
)
from icesql.query.constants.constant import Kind
from icesql.query.names import Resolve
from icesql.query.pushdown.comparison import all_of, any_of
from icesql.query.pushdown.computed.expression import COMPARISONS, Expression
from icesql.query.pushdown.implied import resolved_in
from icesql.query.pushdown.predicate import Translator, term_of

if TYPE_CHECKING:
    from icesql.context import QueryContext


def complement(condition: Expression, resolve: Resolve, query: QueryContext) -> Predicate:
    """A predicate that holds for every row for which ``condition`` is not true.

    ALWAYS_TRUE if that is not known. ``resolve`` is that of ``implied_by``.

    >>> left_out("i > 2 AND name = 'a'")
    i <= 2 OR i IS NULL OR name <> 'a' OR name IS NULL
    >>> left_out("i + 1 > 2")
    true
    """
    try:
        return _left_out(resolved_in(condition, resolve, query), Translator(query), negated=False)
    except RecursionError:
        return ALWAYS_TRUE


def _left_out(each: Expression, translator: Translator, *, negated: bool) -> Predicate:
    """A predicate implied if ``each`` is false (``negated``: true) or NULL."""
    match each.name:
        case "not":
            return _left_out(each.arguments[0], translator, negated=not negated)
        case "and" | "or":
            parts = (_left_out(part, translator, negated=negated) for part in each.arguments)
            return any_of(parts) if (each.name == "and") != negated else all_of(parts)
        case "literal" if each.value[0] == "BOOLEAN":
            return ALWAYS_TRUE if (each.value[1] == "true") == negated else ALWAYS_FALSE
        case "is null" | "is not null":
            return translator.implied(each, negated=not negated)  # never NULL
        case _:
            found = _operand(each, translator)
            if found is None:
                return ALWAYS_TRUE
            is_null = Leaf(Operation.IS_NULL, term_of(found))
            return any_of([translator.implied(each, negated=not negated), is_null])


def _operand(each: Expression, translator: Translator) -> Expression | None:
    """The only column of a condition that is NULL exactly where this column is NULL."""
    if each.name == "input":
        return each if isinstance(each.value.type, t.BooleanType) else None
    if each.name not in (*COMPARISONS, "between", "in"):
        return None
    columns = [part for part in each.arguments if part.name == "input"]
    constants = [translator.constant(part) for part in each.arguments]
    values = [value for value in constants if value is not None and value.kind is not Kind.NULL]
    return columns[0] if len(columns) == 1 and len(values) == len(constants) - 1 else None
