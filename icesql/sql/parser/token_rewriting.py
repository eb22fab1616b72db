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

from icesql.sql.files import reader_of
from icesql.sql.parser.duckdb_words import read_as_duckdb
from icesql.sql.parser.words import ENDS_CLAUSE
from icesql.sql.positions import offset_of, syntax_error, unsupported

_AMOUNT: Final = r"-?[0-9]+(\.[0-9]+)?\s*[A-Za-z]+"
_ONE_AMOUNT: Final = (
    r"(?i)\s*[+-]?[0-9]+\s*"
    r"(?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s?\s*"
)
_NO_UNITS: Final = ENDS_CLAUSE | {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.BETWEEN,
    TokenType.LIKE, TokenType.ASC, TokenType.DESC, TokenType.WHEN, TokenType.ELSE, TokenType.END,
}  # fmt: skip
_INTERVAL_UNIT: Final = "ICESQLINTERVAL"
_PLACED: Final = "icesql_parameter_"
_CLOCKS: Final = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"})
_ZONED_NANOS: Final = "TIMESTAMPTZ_NS"
_TYPED: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ"})
_JOIN_WORDS: Final = frozenset(
    {"INNER", "OUTER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "ASOF", "NATURAL"}
    | {"POSITIONAL", "STRAIGHT_JOIN", "GLOBAL", "ANY", "ALL", "DIRECTED"}
)
# After these a colon does not begin a parameter: it stands in a struct, a slice or a prefix alias.
_BEFORE_COLON: Final = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.R_BRACE,
        TokenType.PLACEHOLDER,
    }
)


class Rewriting(Struct, frozen=True):
    """The tokens that sqlglot gets, and what ``mend`` needs to know about those that it did not."""

    tokens: list[Token]
    given: Sequence[Token]
    intervals: list[str]
    sql: str
    duckdb: bool

    def mend(self, tree: exp.Expr, *, files: bool) -> None:
        """Put into ``tree`` what the tokens could not say.

        ``files``: whether 'data.parquet' may be a table. Raises UnsupportedSqlError,
        SqlSyntaxError.
        """
        if self.intervals:
            _mend_intervals(tree, self.intervals)
        if any(token.text.startswith(_PLACED) for token in self.tokens):
            _mend_parameters(tree)
        texts = {each.start for each in self.given if each.token_type == TokenType.STRING}
        for table in list(tree.find_all(exp.Table)):
            self._place(table, texts, files)
        if self.duckdb:
            self._mend_tildes(tree)
            for join in tree.find_all(exp.Join):
                self._check_join(join)

    def _mend_tildes(self, tree: exp.Expr) -> None:
        """``a ~ b`` asks whether b is found in a; older sqlglot takes it for the whole of a."""
        words = {each.text.lower() for each in self.given}
        if words & {"~", "!~"} and "regexp_full_match" not in words:
            for node in list(tree.find_all(exp.RegexpFullMatch)):
                node.replace(exp.RegexpLike(this=node.this, expression=node.expression))

    def colons(self, tree: exp.Expr) -> list[int]:
        """Where the colons of named parameters (``:name``) stand."""
        found = [
            each.start
            for each in self.tokens
            if each.token_type == TokenType.PARAMETER and self.sql[each.start] == ":"
        ]
        # Those that sqlglot took for parameters itself.
        names = {node.name for node in tree.find_all(exp.Placeholder) if node.name}
        if names:
            found += [
                colon.start
                for colon, name in zip(self.given, self.given[1:], strict=False)
                if colon.token_type == TokenType.COLON
                if name.start == colon.end + 1 and name.text in names
            ]
        return found

    def _place(self, table: exp.Table, texts: Collection[int], files: bool) -> None:
        name = table.this
        # A name of more than three parts has a Dot at its end.
        start = offset_of(name if isinstance(name, exp.Func) else table.parts[0])
        if start is not None:
            table.meta.setdefault("start", start)
        if start in texts and isinstance(name, exp.Identifier):
            _read_file(table, name.name, files and len(table.parts) == 1)

    def _check_join(self, join: exp.Join) -> None:
        """A JOIN without a condition, which sqlglot makes a comma."""
        kind = str(join.args.get("kind") or "").upper()
        bare = any(join.args.get(part) for part in ("on", "using", "method"))
        if not bare and kind != "CROSS" and (kind or join.side):
            raise syntax_error(
                "a JOIN without a condition",
                self._join_before(offset_of(join.this)),
                ("ON", "USING", "CROSS JOIN"),
            )
        if kind == "INNER":
            join.set("kind", None)

    def _join_before(self, offset: int | None) -> int | None:
        before = [
            index
            for index, token in enumerate(self.given)
            if token.token_type == TokenType.JOIN and (offset is None or token.start < offset)
        ]
        if not before:
            return offset
        first = before[-1]
        while first and self.given[first - 1].text.upper() in _JOIN_WORDS:
            first -= 1
        return int(self.given[first].start)


def _read_file(table: exp.Table, text: str, files: bool) -> None:
    """``FROM 'data.parquet'``."""
    start = table.meta["start"]
    reader = reader_of(text) if files else None
    if reader is None:
        raise unsupported(
            f"a file as a table: '{text}'",
            start,
            f"a table's folder or its metadata file is read with iceberg_scan('{text}')",
        )
    function = exp.Anonymous(this=reader, expressions=[exp.Literal.string(text)])
    # As DuckDB has it: the file's name up to its first dot.
    stem = text.rsplit("/", 1)[-1].partition(".")[0] or text
    function.meta.update(start=start, alias=stem)
    table.set("this", function)


def rewrite_tokens(tokens: Sequence[Token], sql: str, *, duckdb: bool) -> Rewriting:
    """``duckdb``: the tokens are of DuckDB's spelling."""
    made: list[Token] = []
    intervals: list[str] = []
    skipped = False
    given, tokens = tokens, read_as_duckdb(tokens) if duckdb else tokens
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
        elif not duckdb:
            pass
        elif kind == TokenType.HEX_STRING and sql[token.start] == "0":
            # 0xFF is a number and x'FF' is bytes in DuckDB.
            token = _like(token, TokenType.NUMBER, str(int(token.text, 16)))
        elif kind == TokenType.JOIN and not _is_join_word(before):
            made.append(_like(token, TokenType.INNER, "INNER"))
        elif kind == TokenType.COLON and _is_parameter(made, token, tokens, index):
            # A prefix alias (a: expression) would take any word for its name, also SELECT.
            made += _placed_parameter(token, tokens[index + 1])
            skipped = True
            continue
        elif kind == TokenType.PLACEHOLDER:
            made += _placed_parameter(token, None)
            continue
        elif (
            kind == TokenType.PARAMETER
            and token.text != "@"  # a snapshot of a table (t@ref), or sqlglot's absolute value
            and _is_name_of(token, tokens, index + 1)
        ):
            made += _placed_parameter(token, tokens[index + 1])
            skipped = True
            continue
        elif kind.name in _CLOCKS and _is_bare(before, tokens, index):
            # sqlglot says the place of a call, and not that of a word that is one.
            made += [token, _like(token, TokenType.L_PAREN, "(")]
            token = _like(token, TokenType.R_PAREN, ")")
        made.append(token)
    return Rewriting(made, given, intervals, sql, duckdb)


def _is_typed_literal(tokens: Sequence[Token], index: int) -> bool:
    following = tokens[index + 1 : index + 3]
    return [each.token_type for each in following] == [TokenType.STRING, TokenType.DCOLON]


def _is_whole_text(text: str, following: Token | None) -> bool:
    if not re.search(_AMOUNT, text):
        # Older sqlglot takes any word for the unit of '02:00:00'.
        return following is not None and following.token_type in _NO_UNITS
    return not re.fullmatch(_ONE_AMOUNT, text)


def _is_join_word(before: Token | None) -> bool:
    return before is not None and before.text.upper() in _JOIN_WORDS


def _is_parameter(made: Sequence[Token], colon: Token, tokens: Sequence[Token], index: int) -> bool:
    if not made or made[-1].token_type in _BEFORE_COLON or index + 1 >= len(tokens):
        return False
    in_bracket = made[-1].token_type == TokenType.L_BRACKET
    if in_bracket and len(made) > 1 and made[-2].token_type in _BEFORE_COLON:
        return False  # a slice, and not a list
    name = tokens[index + 1]
    adjoins = name.start == colon.end + 1
    if in_bracket and name.token_type == TokenType.NUMBER:
        return False  # the end of a slice; names there stand in parentheses by now
    return adjoins and name.text.replace("_", "a").isalnum() and name.token_type != TokenType.STRING


def _is_name_of(sign: Token, tokens: Sequence[Token], index: int) -> bool:
    if index >= len(tokens) or tokens[index].start != sign.end + 1:
        return False
    text = tokens[index].text
    return text.replace("_", "a").isalnum() and tokens[index].token_type != TokenType.STRING


def _placed_parameter(sign: Token, name: Token | None) -> list[Token]:
    """A parameter whose name says where it stands; ``name`` is None for a question mark."""
    end = (sign if name is None else name).end + 1
    label = "" if name is None else name.text
    placed = f"{_PLACED}{sign.start}_{end}_{label}"
    return [_like(sign, TokenType.PARAMETER, "$"), _like(name or sign, TokenType.VAR, placed)]


def _mend_parameters(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.Placeholder, exp.Parameter):
        inner = node.this
        name = inner if isinstance(inner, str) else inner.name if inner is not None else ""
        if not name.startswith(_PLACED):
            continue
        start, end, label = name.removeprefix(_PLACED).split("_", 2)
        node.meta.update(start=int(start), stop=int(end))
        node.set("this", label or None)


def _is_bare(before: Token | None, tokens: Sequence[Token], index: int) -> bool:
    """Whether a word is a call of its own, and no name and no call in parentheses."""
    if before is not None and before.token_type in (TokenType.DOT, TokenType.ALIAS):
        return False
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    return following is None or following.token_type not in (TokenType.L_PAREN, TokenType.DOT)


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
