"""The calls of a text as ``call_sizes`` estimates them, read from DuckDB's own tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from icesql.engine.duckdb.sql.call_sizes import Call
from icesql.engine.duckdb.sql.checked import Facts
from icesql.errors import UnsupportedSqlError
from icesql.sql.engine_functions import SCHEMAS
from icesql.sql.reading.engine_tree import Node


def calls_of(facts: Facts, names: frozenset[str]) -> list[Call]:
    """The calls of functions ``names``, except those in FROM.

    Raises UnsupportedSqlError for a call by the engine's own schema, which no macro hides.
    """
    found = []
    for node in facts.calls:
        name = str(node["function_name"]).lower()
        if name not in names:
            continue
        path = [str(each).lower() for each in node["qualified_name"]["path"]]
        if len(path) > 1 and path[0] == "system":
            raise UnsupportedSqlError("a function by its schema", hint=f"write {name}(…)")
        arguments = [_argument(each["expression"]) for each in node["arguments"]]
        if len(path) > 1 and path[0] not in SCHEMAS:
            arguments.insert(0, exp.Column())  # city.repeat(2)
        found.append(Call(name, tuple(arguments), facts.has_lambda))
    return found


def _argument(node: Node) -> exp.Expr:
    """A literal as such, all else as a column."""
    match node["class"]:
        case "CONSTANT":
            kind, text = node["literal"]["kind"], node["literal"].get("text")
            if text is None or kind == "NULL_LITERAL":
                return exp.Null()
            if kind == "BOOLEAN":
                return exp.Boolean(this=text == "true")
            return exp.Literal.string(text) if kind == "STRING" else exp.Literal.number(text)
        case "FUNCTION" if node["function_name"] == "-" and len(node["arguments"]) == 1:
            return exp.Neg(this=_argument(node["arguments"][0]["expression"]))
        case _:
            return exp.Column()


def rows_at_once(facts: Facts, scanned: int | None, vector: int) -> int:
    """How many rows the engine computes together at most; ``scanned`` rows come from one table."""
    if facts.makes_rows:
        return vector
    if not facts.tables:
        return 1
    return vector if facts.tables > 1 or scanned is None else max(min(scanned, vector), 1)


def largest_array(arrays: Sequence[Node]) -> tuple[str, int] | None:
    """The array type of fixed length with the most elements, and how many; None without any."""
    found: tuple[str, int] | None = None
    for node in arrays:
        elements, sizes = 1, ""
        inner: Any = node
        while inner["type_name"].lower() == "array" and len(inner["children"]) == 2:
            size = inner["children"][1].get("literal", {}).get("text") or "1"
            elements *= int(size) if size.isdigit() else 1
            sizes = f"[{size}]{sizes}"
            inner = inner["children"][0]
            if "type_name" not in inner:
                break
        if elements > (found[1] if found is not None else 1):
            found = f"{inner.get('type_name', '')}{sizes}", elements
    return found
