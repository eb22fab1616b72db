"""An expression as parsed by the engine, reduced to names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from icesql.frozen import Frozen

# Larger expressions are not evaluated for pruning.
MOST_NODES: Final = 200

OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
COMPARISONS: Final = tuple(OPPOSITE)
FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Expression(Frozen):
    """A node: ``name`` of a function or operator in lower case, and its arguments in order.

    Leaves are ``input`` (``value`` is a column of the tree, or once resolved a field of the
    scan), ``literal`` (``value`` is a pair of its kind and its text), ``list`` (``value`` is a
    LiteralList) and ``constant`` (``value`` is a Constant computed by the engine, its one
    argument the expression evaluated). ``cast`` and ``try_cast`` have the type's name in ``value``.
    ``case`` has conditions and values in turn and the ELSE last. ``opaque`` is an unknown
    expression; ``value`` may give the reason.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    value: Any = None

    def walk(self) -> list[Expression]:
        """This node and all nodes below it."""
        found = [self]
        for each in found:
            found.extend(each.arguments)
        return found

    def outermost(self, names: Collection[str]) -> list[Expression]:
        """The nodes with one of these names that are not inside another such node."""
        if self.name in names:
            return [self]
        return [found for each in self.arguments for found in each.outermost(names)]

    def free_parts(self) -> list[Expression]:
        """The largest parts without columns or opaque nodes."""
        if self.is_free:
            return [self]
        return [found for each in self.arguments for found in each.free_parts()]

    def is_column(self, *types: type) -> bool:
        """True for a column of the scan with one of these types."""
        return self.name == "input" and isinstance(self.value.type, types)

    @property
    def inputs(self) -> list[Expression]:
        """Every column in the expression, once for each occurrence."""
        return [each for each in self.walk() if each.name == "input"]

    @property
    def is_free(self) -> bool:
        """True without columns and opaque nodes."""
        return all(each.name not in ("input", "opaque") for each in self.walk())

    @property
    def text(self) -> str | None:
        """The text of a string literal, None for other nodes."""
        if self.name == "literal" and self.value[0] == "STRING":
            return str(self.value[1])
        return None

    @property
    def whole_number(self) -> int | None:
        """The value of an integer literal, None for other nodes."""
        if self.name == "literal" and self.value[0] == "INTEGER":
            return int(self.value[1])
        return None


def literal(kind: str, text: str) -> Expression:
    """A literal of this kind."""
    return Expression("literal", (), (kind, text))


OPAQUE: Final = Expression("opaque")
TRUE: Final = literal("BOOLEAN", "true")
FALSE: Final = literal("BOOLEAN", "false")


def string(text: str) -> Expression:
    """A string literal."""
    return literal("STRING", text)


def whole(number: int) -> Expression:
    """An integer literal."""
    return literal("INTEGER", str(number))


def call(name: str, *arguments: Expression) -> Expression:
    """A call of a function or operator."""
    return Expression(name, arguments)


def conjunction(name: str, parts: list[Expression]) -> Expression:
    """``and`` or ``or`` of several parts; a single part unchanged."""
    return parts[0] if len(parts) == 1 else Expression(name, tuple(parts))


def replaced(
    expression: Expression,
    change: Callable[[Expression], Expression | None],
    names: Collection[str] | None = None,
) -> Expression:
    """The expression with each node replaced for which ``change`` returns another, outer first.

    With ``names``, ``change`` is called only for nodes with one of these names.
    """
    found = change(expression) if names is None or expression.name in names else None
    if found is not None:
        return found
    if not expression.arguments:
        return expression
    return Expression(
        expression.name,
        tuple(replaced(each, change, names) for each in expression.arguments),
        expression.value,
    )
