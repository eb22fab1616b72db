"""Where sqlglot reads a token as another thing than the engine: rewritten before, mended after.

Nothing of sqlglot's parser is replaced, so it may be compiled, and may be of any release.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.acceptance import FILES_HINT, FORMATS_HINT
from icesql.sql.files import reader_of
from icesql.sql.parser.words import ENDS_CLAUSE
from icesql.sql.positions import of_files, offset_of

_AMOUNT: Final = r"(?<![0-9])[0-9]++(?:\.[0-9]++)?+\s*+[A-Za-z]"
_ONE_AMOUNT: Final = (
    r"(?i)\s*[+-]?[0-9]+\s*"
    r"(?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s?\s*"
)
_NO_UNITS: Final = ENDS_CLAUSE | {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.BETWEEN,
    TokenType.LIKE, TokenType.ASC, TokenType.DESC, TokenType.WHEN, TokenType.ELSE, TokenType.END,
}  # fmt: skip
_INTERVAL_UNIT: Final = "ICESQLINTERVAL"
_ZONED_NANOS: Final = "TIMESTAMPTZ_NS"
_TYPED: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ"})


class Rewriting(Struct, frozen=True):
    """The tokens that sqlglot gets, and what ``mend`` needs to know about those that it did not."""

    tokens: list[Token]
    given: Sequence[Token]
    intervals: list[str]

    def mend(self, tree: exp.Expr, *, files: bool) -> None:
        """Put into ``tree`` what the tokens could not say.

        ``files``: whether 'data.parquet' may be a table. Raises UnsupportedSqlError,
        SqlSyntaxError.
        """
        if self.intervals:
            _mend_intervals(tree, self.intervals)
        texts = {each.start for each in self.given if each.token_type == TokenType.STRING}
        for table in list(tree.find_all(exp.Table)):
            self._place(table, texts, files)

    def _place(self, table: exp.Table, texts: Collection[int], files: bool) -> None:
        name = table.this
        # A name of more than three parts has a Dot at its end.
        start = offset_of(name if isinstance(name, exp.Func) else table.parts[0])
        if start is not None:
            table.meta.setdefault("start", start)
        if start in texts and isinstance(name, exp.Identifier):
            read_file(table, name.name, files=files and len(table.parts) == 1)


def read_file(table: exp.Table, text: str, *, files: bool) -> None:
    """Make a call of ``FROM 'data.parquet'``. Raises UnsupportedSqlError for other texts."""
    start = table.meta["start"]
    reader = reader_of(text)
    if reader is None or not files:
        hint = FILES_HINT if reader else FORMATS_HINT
        if _is_metadata(text) or "://" in text or not (reader or files):
            hint = f"a table's folder or its metadata file is read with iceberg_scan('{text}')"
        raise of_files(f"a file as a table: '{text}'", start, hint)
    function = exp.Anonymous(this=reader, expressions=[exp.Literal.string(text)])
    # As DuckDB has it: the file's name up to its first dot.
    stem = text.rsplit("/", 1)[-1].partition(".")[0] or text
    function.meta.update(start=start, stop=table.parts[0].meta["end"] + 1, alias=stem)
    table.set("this", function)


def _is_metadata(path: str) -> bool:
    """A table's metadata file, which ends as other files of JSON do."""
    return path.removesuffix(".gz").endswith(".metadata.json")


def rewrite_tokens(tokens: Sequence[Token], sql: str) -> Rewriting:
    """The tokens of another dialect than DuckDB's."""
    made: list[Token] = []
    intervals: list[str] = []
    skipped = False
    for index, token in enumerate(tokens):
        kind = token.token_type
        before = made[-1] if made else None
        if skipped:
            skipped = False
            continue
        if kind == TokenType.STRING and before is not None:
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if before.token_type == TokenType.INTERVAL and _is_whole_text(token.text, following):
                # sqlglot keeps the first amount of '1 day 02:00:00' or '3 days ago' and drops the
                # rest; the unit of '30 min' becomes a name after it, and '1.5 hours' an integer.
                intervals.append(token.text)
                token = _like(token, kind, f"{len(intervals) - 1} {_INTERVAL_UNIT}")
        elif kind == TokenType.VAR and token.text.upper() == _ZONED_NANOS:
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if following is not None and following.token_type == TokenType.STRING:
                made += _typed_literal(token, following)
                skipped = True
                continue
        elif token.text.upper() in _TYPED and _is_typed_literal(tokens, index):
            # DATE '2026-01-01'::TEXT would cast the text inside of the literal.
            made += [
                _like(token, TokenType.L_PAREN, "("),
                token,
                tokens[index + 1],
                _like(tokens[index + 1], TokenType.R_PAREN, ")"),
            ]
            skipped = True
            continue
        made.append(token)
    return Rewriting(made, tokens, intervals)


def _is_typed_literal(tokens: Sequence[Token], index: int) -> bool:
    following = tokens[index + 1 : index + 3]
    return [each.token_type for each in following] == [TokenType.STRING, TokenType.DCOLON]


def _is_whole_text(text: str, following: Token | None) -> bool:
    if not re.search(_AMOUNT, text):
        # Older sqlglot takes any word for the unit of '02:00:00'.
        return following is not None and following.token_type in _NO_UNITS
    return not re.fullmatch(_ONE_AMOUNT, text)


def _typed_literal(name: Token, text: Token) -> list[Token]:
    """A type that sqlglot does not know by name, before a literal as the others stand."""
    return [
        _like(name, TokenType.VAR, "CAST"),
        _like(name, TokenType.L_PAREN, "("),
        text,
        _like(name, TokenType.ALIAS, "AS"),
        _like(name, TokenType.VAR, _ZONED_NANOS),
        _like(text, TokenType.R_PAREN, ")"),
    ]


def _mend_intervals(tree: exp.Expr, texts: Sequence[str]) -> None:
    for interval in tree.find_all(exp.Interval):
        unit = interval.args.get("unit")
        if isinstance(unit, exp.Var) and unit.name == _INTERVAL_UNIT:
            interval.set("this", exp.Literal.string(texts[int(interval.this.name)]))
            interval.set("unit", None)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)
