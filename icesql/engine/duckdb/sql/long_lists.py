"""Rewrite long lists and chains into a form that DuckDB plans in linear time.

DuckDB needs 17 µs and 5 KB for each literal of an IN list, and almost nothing for an element of a
constant list. For both it converts the operand and the list to a common type. The list becomes a
constant where both forms are known to choose the same type, or types in which all values compare
the same.

For chains DuckDB needs time and memory that grow with the square of the number of terms: 16 s for
3,000 terms of ``(a = 1 AND b > 2)`` under OR, 2 GB for 2,000 of ``a <> 1`` under AND. It searches
the terms for common parts; it does so separately for each piece of a chain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Final, TypeVar

from icesql.engine.duckdb_types import duckdb_type
from icesql.iceberg import types as t
from icesql.quoting import literal
from icesql.sql.edited_text import SQL, Edit
from icesql.sql.lexer import tokens_in
from icesql.sql.parser.literal_list import LiteralList, held, with_lists
from icesql.sql.reading.engine_tree import EngineTree, Node
from icesql.sql.trees import exp

T = TypeVar("T")

_LONGEST: Final = 128
_PIECE: Final = 64
_DIGITS: Final[dict[type[t.IcebergType], int]] = {t.IntegerType: 10, t.LongType: 19}
_MOST_DIGITS: Final = 38
_READ_FROM_TEXT: Final = (
    t.StringType, t.DateType, t.TimestampType, t.TimestamptzType, t.UUIDType, t.IntegerType,
    t.LongType,
)  # fmt: skip
_CONJUNCTIONS: Final = {"CONJUNCTION_OR": "OR", "CONJUNCTION_AND": "AND"}
_VALUES: Final = ("CONSTANT", "PARAMETER")
_OPENING: Final = frozenset({"(", "[", "{", "CASE"})
_CLOSING: Final = frozenset({")", "]", "}", "END"})


def with_constants(run: Callable[[exp.Expr], T], tree: exp.Expr) -> T:
    """``run`` of the tree with its long lists as constants, or as literals where DuckDB accepts
    no subquery.
    """
    import duckdb

    made = with_lists(tree, _constant)
    try:
        return run(made)
    except duckdb.Error:
        # Report the error of the text as written, not of the rewritten one.
        written = with_lists(tree, lambda _, values: values.sql)
        if written == made:
            raise
        return run(written)


def _constant(node: exp.In, values: LiteralList) -> str:
    operand = node.args.get("operand")
    made = None
    if operand is not None and not node.find_ancestor(exp.Lambda, exp.Join):
        made = _typed(values, operand)
    return values.sql if made is None else f"SELECT unnest({made})"


def _typed(values: LiteralList, operand: t.IcebergType) -> str | None:
    """The list as one constant; None where it has to be literals."""
    match values.kind, operand:
        case "text", _ if isinstance(operand, _READ_FROM_TEXT):
            # A string compared with a column of another type is converted to that type.
            texts = f"CAST(CAST({literal(json.dumps(values.values))} AS JSON) AS VARCHAR[])"
            return f"CAST({texts} AS {duckdb_type(operand)}[])"
        case "date", t.DateType() | t.TimestampType() | t.TimestamptzType():
            kind: str | None = "DATE"
        case "integer", t.IntegerType() | t.LongType():
            kind = "BIGINT"
        case "integer", t.FloatType() | t.DoubleType():
            kind = duckdb_type(operand)
        case "integer" | "decimal", t.IntegerType() | t.LongType() | t.DecimalType():
            kind = _decimal_size(values, operand)
        case _:
            kind = None
    written = ", ".join("NULL" if each is None else str(each) for each in values.values)
    return None if kind is None else f"CAST({literal(f'[{written}]')} AS {kind}[])"


def _decimal_size(values: LiteralList, operand: t.IcebergType) -> str | None:
    """The DECIMAL type of the list; None if a type for list and operand exceeds 38 digits."""
    whole, scale = 1, 0
    for each in values.values:
        if each is None:
            continue
        _, digits, exponent = Decimal(each).as_tuple()
        assert isinstance(exponent, int)
        scale = max(scale, -exponent)
        whole = max(whole, len(digits) + exponent)
    if isinstance(operand, t.DecimalType):
        own_whole, own_scale = operand.precision - operand.scale, operand.scale
    else:
        own_whole, own_scale = _DIGITS[type(operand)], 0
    if max(whole, own_whole) + max(scale, own_scale) > _MOST_DIGITS:
        return None
    return f"DECIMAL({whole + scale}, {scale})"


def written_lists(tree: exp.Expr) -> Mapping[int, str]:
    """The written form of each long list of ``tree``, by its offset in the text."""
    nodes = [node for node in tree.find_all(exp.In) if held(node) is not None]
    return {node.meta["list"][0]: node.expressions[0].name for node in nodes if "list" in node.meta}


# ------------------------------------------------------------------ chains


def is_long_chain(node: Node | None, kind: str) -> bool:
    """True if a node of DuckDB's tree is a chain of this kind that ``in_pieces`` cuts."""
    return node is not None and node["type"] == kind and len(node["children"]) > _LONGEST


def in_pieces(tree: EngineTree, chains: list[Node], place: Callable[[int], int]) -> Iterator[Edit]:
    """Edits that cut chains of a text into pieces; ``place`` maps its offsets to the user's SQL.

    A piece is ``coalesce(piece, NULL)``: the same value in a function that the optimizer does not
    look through. Under AND only ``<>`` terms are in pieces: other terms are used to join and prune.
    """
    for node in chains:
        span = tree.span(node)
        if span is None:
            continue
        word = _CONJUNCTIONS[node["type"]]
        breaks = list(_breaks(tree.text, *span, word))
        if len(breaks) != len(node["children"]) - 1:
            continue
        begins = [span[0], *(each + len(word) for each in breaks)]
        for first, last in _runs(node["children"], word):
            begin, end = place(begins[first]), place(breaks[last])
            yield Edit(begin, begin, SQL, " coalesce(")
            yield Edit(end, end, SQL, ", NULL) ")


def _runs(terms: list[Node], word: str) -> Iterator[tuple[int, int]]:
    """The first and last term of each piece; the last term of the chain is in no piece."""

    def fits(at: int) -> bool:
        term = terms[at]
        if word == "AND" and term["type"] == "COMPARE_NOTEQUAL":
            return any(term[side]["class"] in _VALUES for side in ("left", "right"))
        return word == "OR"

    for fit, run in groupby(range(len(terms) - 1), fits):
        places = list(run) if fit else []
        for at in range(0, len(places), _PIECE):
            yield places[at], places[at : at + _PIECE][-1]


def _breaks(sql: str, start: int, end: int, wanted: str) -> Iterator[int]:
    """Offsets of the chain's conjunctions between ``start`` and ``end``, outside of brackets."""
    depth = ranges = 0
    for token in tokens_in(sql, start, end):
        word = token.word
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth -= 1
        elif depth == 0 and word == "BETWEEN":
            ranges += 1
        elif depth == 0 and word == "AND" and ranges:
            ranges -= 1
        elif depth == 0 and word == wanted:
            yield token.start
