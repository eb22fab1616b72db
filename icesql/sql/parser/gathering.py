"""Long chains of ``c = 1 OR c = 2 …`` and ``c <> 1 AND c <> 2 …`` become one IN list.

DuckDB takes time and memory that grow with the square of the number of such terms: 2 GB for
2,000 of them under AND.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from icesql.sql.parser.literal_list import SHORTEST, LiteralList, dates, hold
from icesql.sql.reading.expressions import TERM
from icesql.sql.trees import exp


def gather(tree: exp.Expr) -> None:
    """Rewrite such chains of ``tree`` in place; NULL makes of both forms the same.

    ``terms`` of a list are the places of what it stands for.
    """
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is not type(node) and _is_long(node):
            _gather(node)


def _is_long(node: exp.Expr) -> bool:
    for _ in range(SHORTEST):
        if type(node.this) is not type(node):
            return False
        node = node.this
    return True


def _gather(chain: exp.Expr) -> None:
    wanted = exp.EQ if isinstance(chain, exp.Or) else exp.NEQ
    rest: list[exp.Expr] = []
    columns: dict[tuple[str, ...], exp.Expr] = {}
    groups: dict[tuple[tuple[str, ...], str], list[Any]] = {}
    members: dict[tuple[tuple[str, ...], str], list[exp.Expr]] = {}
    for part in chain.flatten(unnest=False):
        bare = part.unnest()
        found = _compared(bare) if isinstance(bare, wanted) else None
        if found is None:
            rest.append(part)
            continue
        column, kind, value = found
        name = tuple(f"{each.name}\0{each.args.get('quoted')}" for each in column.parts)
        columns.setdefault(name, column)
        groups.setdefault((name, kind), []).append(value)
        members.setdefault((name, kind), []).append(part)
    made: list[tuple[exp.In, LiteralList]] = []
    parts: list[exp.Expr] = []
    for (name, kind), given in groups.items():
        values = _list(kind, given) if len(given) >= SHORTEST else None
        if values is None:
            rest += members[name, kind]
            continue
        node = exp.In(this=columns[name].copy())
        node.set("terms", tuple(each.unnest().meta.get(TERM) for each in members[name, kind]))
        parts.append(exp.Not(this=node) if wanted is exp.NEQ else node)
        made.append((node, values))
    if not made:
        return
    parts += [each.copy() for each in rest]
    whole: exp.Expr = parts[0]
    for each in parts[1:]:
        whole = type(chain)(this=whole, expression=each)
    # An AND or OR beside it must not take the parts of a shorter chain as its own.
    chain.replace(whole if len(parts) > 1 else exp.Paren(this=whole))
    for node, values in made:
        hold(node, values)


def _compared(node: exp.Expr) -> tuple[exp.Column, str, Any] | None:
    """The column of ``column = literal``, either way around, with the literal and its kind."""
    left, right = node.this.unnest(), node.expression.unnest()
    if not isinstance(left, exp.Column):
        left, right = right, left
    if not isinstance(left, exp.Column) or isinstance(left.this, exp.Star):
        return None
    match right:
        case exp.Literal() if right.is_string:
            return left, "text", right.name
        case exp.Literal():
            return _number(left, right.name)
        case exp.Neg(this=exp.Literal(is_string=False) as inner):
            return _number(left, f"-{inner.name}")
        case exp.Cast(this=exp.Literal(is_string=True) as inner) if not isinstance(
            right, exp.TryCast
        ) and right.to.is_type(exp.DataType.Type.DATE):
            return left, "date", inner.name
        case _:
            return None


def _number(column: exp.Column, text: str) -> tuple[exp.Column, str, Any] | None:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 19:
        return column, "integer", int(text)
    whole, point, part = digits.partition(".")
    if point and (whole + part).isdigit() and (whole + part).isascii() and len(digits) <= 38:
        return column, "decimal", Decimal(text)
    return None


def _list(kind: str, values: list[Any]) -> LiteralList | None:
    if kind == "date":
        return dates(values)
    return LiteralList(kind, tuple(values))
