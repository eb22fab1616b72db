"""PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree has to know them.

The user's own text runs. The tree says which tables and columns are read: a statement becomes
``SELECT * FROM`` its source, to which the PIVOT belongs as in the spelling of the FROM clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import unsupported

WORDS: Final = ("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER")
# What may follow the statement, which sqlglot does not read; no table that it names is bound.
_ENDINGS: Final = ("ORDER", "ORDER BY", "LIMIT", "OFFSET")
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"


def before_ending(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a statement that is a PIVOT, maybe after WITH, without ORDER BY and LIMIT."""
    begin = _main_word(tokens)
    first = tokens[begin]
    if first.text.upper() not in WORDS or first.token_type == TokenType.IDENTIFIER:
        return tokens
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        ends = depth == 0 and index > begin + 1 and token.text.upper() in _ENDINGS
        if ends and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            return tokens[:index]
    return tokens


def _main_word(tokens: Sequence[Token]) -> int:
    """The index of the first word of a statement behind its WITH queries."""
    if tokens[0].text.upper() != "WITH" or tokens[0].token_type == TokenType.IDENTIFIER:
        return 0
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth or index == 0 or tokens[index - 1].token_type != TokenType.R_PAREN:
            continue
        word = "" if token.token_type in _QUOTED else token.text.upper()
        if word not in ("AS", ",", "USING", ")", "") and token.token_type != TokenType.COMMA:
            return index
    return 0


def as_selects(tree: exp.Expr) -> exp.Expr:
    """``tree`` with a SELECT for each PIVOT that is a query of its own."""
    for pivot in list(tree.find_all(exp.Pivot)):
        if pivot.arg_key == "pivots" or not isinstance(pivot.this, exp.Table | exp.Subquery):
            continue
        made = exp.Select(expressions=[exp.Star()])
        if pivot is tree:
            tree = made
        else:
            pivot.replace(made)
        source = pivot.this.pop()
        clauses = pivot.args.get("with_")
        if clauses is not None:
            made.set("with_", clauses.pop())
        source.set("pivots", [*(source.args.get("pivots") or ()), pivot])
        made.set("from_", exp.From(this=source))
    return tree


def check_pivot(pivot: exp.Pivot) -> None:
    """Refuse one whose columns only its rows tell. Raises UnsupportedSqlError."""
    if pivot.args.get("unpivot"):
        return
    listed = pivot.args.get("fields") or pivot.expressions
    for each in listed:
        known = isinstance(each, exp.In) and each.expressions and not each.args.get("query")
        if not known or any(isinstance(value, exp.Query | exp.PivotAny) for value in each.walk()):
            raise unsupported("PIVOT without a list of values", pivot, _LISTED)
