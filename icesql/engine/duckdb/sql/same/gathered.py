"""IN lists that ``sql.parser.gathering`` made of long chains, which are chains to DuckDB still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from icesql.engine.duckdb.sql.same.types import same_type
from icesql.sql.parser.literal_list import LiteralList, held

Node = Mapping[str, Any]


def chain_of(node: exp.Expr) -> str:
    """DuckDB's name of the chain that ``node`` was made of, "" for every other node."""
    inner = node.this if isinstance(node, exp.Not) else node
    if not isinstance(inner, exp.In) or not inner.meta.get("gathered"):
        return ""
    return "CONJUNCTION_AND" if isinstance(node, exp.Not) else "CONJUNCTION_OR"


def without_gathered(
    parts: Sequence[exp.Expr], others: Sequence[Node], kind: str
) -> tuple[list[exp.Expr], list[exp.Expr], list[Node]]:
    """The lists among ``parts`` that ``others`` hold in full, and what is left of both."""
    same: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    left = list(others)
    for part in parts:
        if chain_of(part) != kind:
            rest.append(part)
            continue
        inner = part.this if isinstance(part, exp.Not) else part
        values = held(inner)
        names = [each.name for each in inner.this.parts]
        wanted = "COMPARE_NOTEQUAL" if isinstance(part, exp.Not) else "COMPARE_EQUAL"
        found, after = set(), []
        for other in left:
            value = None if values is None else _compared(other, wanted, names, values)
            if value is None:
                after.append(other)
            else:
                found.add(value)
        left = after
        if values is not None and found == set(values.values):
            same.append(part)
        else:
            rest.append(part)
    return same, rest, left


def _compared(found: Node, kind: str, names: list[str], values: LiteralList) -> Any:
    """What the column ``names`` is compared with; None for any other condition."""
    if found["type"] != kind:
        return None
    column, literal = found["left"], found["right"]
    if column["type"] != "COLUMN_REF":
        column, literal = literal, column
    if column["type"] != "COLUMN_REF" or list(column["column_names"]) != names:
        return None
    if values.kind == "date":
        date = exp.DataType(this=exp.DataType.Type.DATE)
        if literal["type"] != "OPERATOR_CAST" or literal.get("try_cast"):
            return None
        if not same_type(date, literal["type_expr"]):
            return None
        literal = literal["child"]
    told = literal.get("literal") or {}
    text = str(told.get("text", ""))
    match values.kind, told.get("kind"):
        case ("text" | "date", "STRING"):
            return text
        case ("integer", "INTEGER"):
            return int(text.replace("_", ""))
        case ("decimal", "NUMERIC") if "e" not in text.lower():
            try:
                return Decimal(text.replace("_", ""))
            except InvalidOperation:
                return None
        case _:
            return None
