"""Which rows a condition leaves out, as an Iceberg predicate that holds for all of them.

A condition leaves out the rows for which it is false or NULL. A file without such a row is one
in which every row satisfies the condition, however much weaker than it the row filter is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.query.constants.constant import Kind
from icesql.query.constants.folding import fold
from icesql.query.pushdown.column_access import Resolve
from icesql.query.pushdown.comparison import all_of, any_of, is_pushable_type
from icesql.query.pushdown.predicate import Translator
from icesql.sql.parser.literal_list import held

if TYPE_CHECKING:
    from icesql.context import QueryContext


def complement(condition: exp.Expr, resolve: Resolve, query: QueryContext) -> Predicate:
    """A predicate that holds for every row for which ``condition`` is not true.

    ALWAYS_TRUE where that is not known. ``resolve`` is that of ``translate``.

    >>> left_out("i > 2 AND name = 'a'")
    i <= 2 OR i IS NULL OR name <> 'a' OR name IS NULL
    >>> left_out("i + 1 > 2")
    true
    """
    return _Complement(Translator(resolve, query, for_explain=False)).of(condition, negated=False)


class _Complement:
    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    def of(self, node: exp.Expr, *, negated: bool) -> Predicate:
        """What follows from ``node`` being false (``negated``: true) or NULL for a row."""
        match node:
            case exp.Paren():
                return self.of(node.this, negated=negated)
            case exp.Not():
                return self.of(node.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = (self.of(part, negated=negated) for part in node.flatten())
                return any_of(parts) if isinstance(node, exp.And) != negated else all_of(parts)
            case exp.Boolean():
                return ALWAYS_TRUE if bool(node.this) == negated else ALWAYS_FALSE
            case exp.Is(expression=exp.Null()):
                return self._translator.implied(node, negated=not negated)  # never NULL itself
            case _:
                found = self._operand(node)
                if found is None or not is_pushable_type(found.type):
                    return ALWAYS_TRUE
                is_null = Leaf(Operation.IS_NULL, Term(found.field_id, found.name))
                return any_of([self._translator.implied(node, negated=not negated), is_null])

    def _operand(self, node: exp.Expr) -> t.NestedField | None:
        """The column of a condition that is NULL where this column is, and nowhere else."""
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                sides = [node.this, node.expression]
            case exp.Between() if not node.args.get("symmetric"):
                sides = [node.this, node.args["low"], node.args["high"]]
            case exp.In() if node.expressions and held(node) is None and not _is_query(node):
                sides = [node.this, *node.expressions]
            case exp.Column():
                found = self._translator.column(node)
                return found if found and isinstance(found.type, t.BooleanType) else None
            case _:
                return None
        columns = [each for each in map(self._translator.column, sides) if each is not None]
        constants = [fold(each, self._translator.query) for each in sides]
        values = [each for each in constants if each is not None and each.kind is not Kind.NULL]
        return columns[0] if len(columns) == 1 and len(values) == len(sides) - 1 else None


def _is_query(node: exp.In) -> bool:
    return any(node.args.get(name) for name in ("query", "unnest", "field"))
