"""Rewrite tokens that sqlglot and the engine read differently; repair the tree after parsing.

sqlglot's parser is not patched, so it may be compiled and of any release.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from icesql.frozen import Frozen
from icesql.sql.files import read_file
from icesql.sql.keywords import word_set
from icesql.sql.lexer import ENDS_CLAUSE, TEXT, Token, Tokens
from icesql.sql.positions import offset_of
from icesql.sql.trees import exp

_AMOUNT: Final = r"(?<![0-9])[0-9]++(?:\.[0-9]++)?+\s*+[A-Za-z]"
_ONE_AMOUNT: Final = (
    r"(?i)\s*[+-]?[0-9]+\s*"
    r"(?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s?\s*"
)
_NO_UNITS: Final = ENDS_CLAUSE | word_set(
    "GROUP ORDER AND OR NOT IS IN BETWEEN LIKE ASC DESC WHEN ELSE END"
)
_INTERVAL_UNIT: Final = "ICESQLINTERVAL"
_TYPED: Final = word_set("DATE TIME TIMESTAMP TIMESTAMPTZ TIMESTAMP_NTZ")


class Rewriting(Frozen):
    """The tokens for sqlglot, and the original ones for ``mend``."""

    tokens: list[Token]
    given: Tokens
    intervals: list[str]

    def mend(self, tree: exp.Expr, *, files: bool) -> None:
        """Restore in ``tree`` what the rewritten tokens could not express.

        ``files``: whether 'data.parquet' may be a table. Raises UnsupportedSqlError,
        SqlSyntaxError.
        """
        if self.intervals:
            _mend_intervals(tree, self.intervals)
        texts = {each.start for each in self.given if each.kind == TEXT}
        for table in list(tree.find_all(exp.Table)):
            self._place(table, texts, files)

    def _place(self, table: exp.Table, texts: Collection[int], files: bool) -> None:
        name = table.this
        # A name with more than three parts ends in a Dot node.
        start = offset_of(name if isinstance(name, exp.Func) else table.parts[0])
        if start is not None:
            table.meta.setdefault("start", start)
        if start in texts and isinstance(name, exp.Identifier):
            read_file(table, name.name, files=files and len(table.parts) == 1)


def rewrite_tokens(tokens: Tokens, sql: str) -> Rewriting:
    """Rewrite the tokens of a dialect other than DuckDB's."""
    made: list[Token] = []
    intervals: list[str] = []
    skipped = False
    for index, token in enumerate(tokens):
        before = made[-1] if made else None
        if skipped:
            skipped = False
            continue
        if token.kind == TEXT and before is not None:
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if before.word == "INTERVAL" and _is_whole_text(token.text, following):
                # sqlglot keeps the first amount of '1 day 02:00:00' or '3 days ago' and drops the
                # rest; it makes the unit of '30 min' an alias, and '1.5 hours' an integer.
                intervals.append(token.text)
                token = token.like(f"{len(intervals) - 1} {_INTERVAL_UNIT}", TEXT)
        elif token.word in _TYPED and _is_typed_literal(tokens, index):
            # DATE '2026-01-01'::TEXT would cast the string inside the literal.
            made += [
                token.like("("),
                token,
                tokens[index + 1],
                tokens[index + 1].like(")"),
            ]
            skipped = True
            continue
        made.append(token)
    return Rewriting(made, tokens, intervals)


def _is_typed_literal(tokens: Tokens, index: int) -> bool:
    following = tokens[index + 1 : index + 3]
    return [each.kind for each in following[:1]] == [TEXT] and following[-1].word == "::"


def _is_whole_text(text: str, following: Token | None) -> bool:
    if not re.search(_AMOUNT, text):
        # Older sqlglot takes any following word as the unit of '02:00:00'.
        return following is not None and following.word in _NO_UNITS
    return not re.fullmatch(_ONE_AMOUNT, text)


def _mend_intervals(tree: exp.Expr, texts: Sequence[str]) -> None:
    for interval in tree.find_all(exp.Interval):
        unit = interval.args.get("unit")
        if isinstance(unit, exp.Var) and unit.name == _INTERVAL_UNIT:
            interval.set("this", exp.Literal.string(texts[int(interval.this.name)]))
            interval.set("unit", None)
