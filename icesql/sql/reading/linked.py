"""Read a query so that each sqlglot node is paired with the DuckDB expression it was made from."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import exp

from icesql.sql.acceptance import Accepts
from icesql.sql.lexer import CLOSING, OPENING, Span, tokens_in
from icesql.sql.parser.depth import place_nodes
from icesql.sql.reading.engine_tree import EngineTree
from icesql.sql.reading.queries import QueryReader
from icesql.sql.sources import Segment, joined

# An expression of DuckDB's tree, and the sqlglot node made from it.
Pair: TypeAlias = "tuple[dict[str, Any], exp.Expr]"


class _LinkingReader(QueryReader):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pairs: list[Pair] = []

    def expression(self, found: Any, *, named: bool = False) -> exp.Expr:
        made = super().expression(found, named=named)
        self.pairs.append((found, made))
        return made


def read_linked(tree: EngineTree) -> tuple[exp.Expr, list[Pair]]:
    """Convert the one statement of a tree; record the spans of columns in its text."""
    _, sources = joined([Segment(tree.text, -1, 0, len(tree.text))])
    reader = _LinkingReader(tree, sources, Accepts(calls=False))
    made = reader.query_of(tree.statements[0])
    place_nodes(made, list(tokens_in(tree.text)))
    return made, reader.pairs


def with_brackets(text: str, start: int, end: int) -> Span:
    """Extend a span to include both brackets of each pair. Raises ValueError if one is missing."""
    depth = least = 0
    for token in tokens_in(text, start, end):
        depth += (token.word in OPENING) - (token.word in CLOSING)
        least = min(least, depth)
    for _ in range(-least):
        start = text.rindex("(", 0, start)
    for _ in range(depth - least):
        end = text.index(")", end) + 1
    return start, end
