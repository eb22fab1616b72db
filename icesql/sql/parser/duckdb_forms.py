"""Forms of DuckDB's spelling that sqlglot does not read, in forms of the same meaning that it does.

    SELECT a, FROM t GROUP BY a,        trailing commas are left out
    t.g.upper().len()                   len(upper(t.g))
    ROW(a, b) < ANY (…)                 ROW is a function here, not a type
    (a,)                                ROW(a)
    [x + y FOR y IN l]                  y is a variable, no column
    f(j -> '$.a')                       an arrow outside of list functions takes a field of JSON
    USING KEY (k, max(v))               USING KEY (k), which only the text itself may run

Tokens keep their places in the text, so that errors and names point to what the user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.parser.words import ENDS_CLAUSE
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.user_text import ONLY_TEXT

# Schemas of functions: a name after one of these is a function's, not a method's.
SCHEMAS: Final = frozenset({"main", "system", "temp", "memory", "pg_catalog", "information_schema"})

_OPENING: Final = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
    TokenType.R_BRACE: TokenType.L_BRACE,
}
_TEXTS: Final = frozenset(
    {TokenType.STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.HEREDOC_STRING}
    | {TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.BYTE_STRING}
)
_NO_NAMES: Final = frozenset({*_TEXTS, TokenType.NUMBER})
# Operators and keywords before an expression: what follows begins one.
_NO_ITEM_BEFORE_COMMA: Final = frozenset(
    {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET}
    | {TokenType.L_BRACE, TokenType.FROM, TokenType.GROUP_BY, TokenType.ORDER_BY}
)
_AFTER_TRAILING_COMMA: Final = frozenset(
    {TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY}
    | {TokenType.QUALIFY, TokenType.WINDOW, TokenType.LIMIT, TokenType.OFFSET, TokenType.UNION}
    | {TokenType.EXCEPT, TokenType.INTERSECT, TokenType.R_PAREN, TokenType.SELECT}
)
# Words before a parenthesis that is no call's.
_BEFORE_EXPRESSION: Final = ENDS_CLAUSE - {
    TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE,
} | {
    TokenType.IN, TokenType.NOT, TokenType.AND, TokenType.OR, TokenType.CASE, TokenType.WHEN,
    TokenType.ELSE, TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.IS,
    TokenType.DISTINCT, TokenType.VALUES, TokenType.USING, TokenType.L_PAREN, TokenType.L_BRACKET,
    TokenType.L_BRACE, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD,
    TokenType.DPIPE, TokenType.COLON, TokenType.DCOLON, TokenType.COLON_EQ, TokenType.ARROW,
    TokenType.FARROW, TokenType.OVER,
}  # fmt: skip
_ROLLUPS: Final = frozenset({"ROLLUP", "CUBE", "TOTALS"})
# Functions of lists whose arguments may be "x -> …".
_TAKE_ARROWS: Final = frozenset(
    {"list_transform", "array_transform", "list_apply", "array_apply", "apply", "list_filter"}
    | {"array_filter", "filter", "list_reduce", "array_reduce", "reduce", "invoke"}
)
# What a tuple of one value in parentheses is a part of, where it is no row.
_NO_ROW: Final = (
    exp.Values, exp.Group, exp.GroupingSets, exp.Rollup, exp.Cube, exp.Distinct, exp.Window,
)  # fmt: skip


class Forms(Struct, frozen=True):
    """The tokens for sqlglot, and which kinds of nodes ``mend`` has to look for."""

    tokens: list[Token]
    has_comprehension: bool
    has_arrow: bool
    has_row: bool
    has_key_aggregate: bool

    def mend(self, tree: exp.Expr) -> None:
        """Put into ``tree`` what the tokens could not say."""
        if self.has_comprehension:
            for comprehension in list(tree.find_all(exp.Comprehension)):
                _name_variables(comprehension)
        if self.has_arrow:
            for arrow in list(tree.find_all(exp.Lambda)):
                _take_field(arrow)
        if self.has_key_aggregate:
            for cte in tree.find_all(exp.CTE):
                if cte.args.get("key_expressions"):
                    cte.meta[ONLY_TEXT] = "USING KEY with an aggregate"
        if self.has_row:
            for row in list(tree.find_all(exp.Tuple)):
                if len(row.expressions) == 1 and not isinstance(row.parent, _NO_ROW):
                    row.replace(exp.Anonymous(this="row", expressions=row.expressions))


def read_forms(tokens: Sequence[Token]) -> Forms:
    """Rewrite the tokens of one statement. Raises SqlSyntaxError and UnsupportedSqlError."""
    made: list[Token] = []
    has_method = has_for = has_arrow = has_row = False
    for index, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if kind == TokenType.COMMA:
            if before is None or before.token_type in _NO_ITEM_BEFORE_COMMA:
                raise syntax_error('unexpected ","', token, ("an expression",))
            if after is None or after.token_type in _AFTER_TRAILING_COMMA:
                if after is None or after.token_type != TokenType.R_PAREN:
                    continue
                has_row = True
        elif kind == TokenType.STRUCT and after is not None and before is not None:
            if _is(after, "(") and before.token_type not in (TokenType.ALIAS, TokenType.DCOLON):
                token = _like(token, TokenType.VAR, token.text)
        elif kind == TokenType.DOT:
            has_method = has_method or _is_method(tokens, index)
        elif kind == TokenType.FOR:
            has_for = True
        elif kind == TokenType.ARROW:
            has_arrow = True
        elif kind == TokenType.WITH and after is not None and after.text.upper() in _ROLLUPS:
            following = tokens[index + 2] if index + 2 < len(tokens) else None
            if following is None or following.text.upper() not in ("AS", "(", "USING"):
                word = after.text.upper()
                raise unsupported(f"WITH {word}", token, f"write GROUP BY {word} (…)")
        made.append(token)
    if has_method:
        made = _calls_of_methods(made)
    keys = _plain_keys(made)
    return Forms(_with_strpos(keys), has_for, has_arrow, has_row, len(keys) < len(made))


def _plain_keys(tokens: list[Token]) -> list[Token]:
    """Without the aggregates of ``USING KEY (k, max(v))``, which sqlglot does not read."""
    for index in range(len(tokens) - 2):
        if (
            tokens[index].token_type == TokenType.USING
            and tokens[index + 1].text.upper() == "KEY"
            and _is(tokens[index + 2], "(")
        ):
            kept, depth, end = list[Token](), 0, index + 3
            while end < len(tokens):
                token = tokens[end]
                if not depth and _is(token, ")"):
                    break
                opens = _is(token, "(")
                if opens and not depth and kept:
                    kept.pop()  # the name of the aggregate
                    if kept and _is(kept[-1], ","):
                        kept.pop()
                depth += opens
                if not depth:
                    kept.append(token)
                depth -= _is(token, ")")
                end += 1
            if kept and _is(kept[0], ","):
                kept = kept[1:]
            if kept:
                return [*tokens[: index + 3], *kept, *_plain_keys(tokens[end:])]
            return tokens
    return tokens


def _with_strpos(tokens: list[Token]) -> list[Token]:
    """``position(text, part)``, which sqlglot reads as ``position(text IN part)``."""
    for index, token in enumerate(tokens):
        if token.text.lower() == "position" and index + 2 < len(tokens) and _is_word(token):
            inside = _until_closing(tokens, index + 1)
            if any(_is(each, ",") for each in inside):
                tokens[index] = _like(token, TokenType.VAR, "strpos")
    return tokens


def _until_closing(tokens: Sequence[Token], opening: int) -> Iterator[Token]:
    """The tokens between a parenthesis and its end, but not those in brackets of their own."""
    depth = 0
    for token in tokens[opening:] if _is(tokens[opening], "(") else ():
        if token.token_type in _OPENING.values():
            depth += 1
        elif token.token_type in _OPENING:
            depth -= 1
        if not depth:
            return
        if depth == 1:
            yield token


# ------------------------------------------------------------------ methods


def _is_method(tokens: Sequence[Token], dot: int) -> bool:
    """Whether ``.name(`` stands at ``dot``."""
    if not 0 < dot < len(tokens) - 2 or not _is(tokens[dot + 2], "("):
        return False
    return tokens[dot + 1].token_type not in _NO_NAMES and _is_word(tokens[dot + 1])


def _calls_of_methods(tokens: list[Token]) -> list[Token]:
    """``value.name(…)`` as ``name(value, …)``, what is inside and before first."""
    index = 0
    while index < len(tokens):
        if tokens[index].token_type == TokenType.DOT and _is_method(tokens, index):
            start = _operand_start(tokens, index - 1)
            if start is None:
                raise unsupported(
                    f"the method .{tokens[index + 1].text}() of this expression",
                    tokens[index + 1],
                    "put the expression in parentheses",
                )
            if not _is_qualified(tokens, start, index):
                name, opening = tokens[index + 1 : index + 3]
                value, rest = tokens[start:index], tokens[index + 3 :]
                if rest and not _is(rest[0], ")"):
                    # Its place is that of the dot, which is gone.
                    value = [*value, _like(tokens[index], TokenType.COMMA, ",")]
                tokens = [*tokens[:start], name, opening, *value, *rest]
                index += 1
        index += 1
    return tokens


def _is_qualified(tokens: Sequence[Token], start: int, dot: int) -> bool:
    """Whether the names before a dot are a database and schema of functions, or a place in FROM."""
    if start and tokens[start - 1].token_type in (TokenType.FROM, TokenType.JOIN):
        return True
    names = tokens[start:dot:2]
    between = tokens[start + 1 : dot : 2]
    return all(each.token_type == TokenType.DOT for each in between) and all(
        each.token_type not in _NO_NAMES and each.text.lower() in SCHEMAS for each in names
    )


def _operand_start(tokens: Sequence[Token], last: int) -> int | None:
    """Where the operand that ends at ``last`` begins; None where that is not certain."""
    index = last
    while index >= 0:
        token = tokens[index]
        if token.token_type in _OPENING:
            opening = _opening_of(tokens, index)
            if opening is None:
                return None
            before = tokens[opening - 1] if opening else None
            if token.token_type == TokenType.R_PAREN:
                index = opening - 1 if before is not None and _is_call(tokens, opening) else opening
            elif token.token_type == TokenType.R_BRACKET and _ends_operand(before):
                index = opening - 1
                continue
            elif before is not None and before.text.upper() in ("MAP", "ARRAY"):
                index = opening - 1
            else:
                index = opening
        elif token.token_type in _TEXTS:
            before = tokens[index - 1] if index else None
            # DATE '2026-01-01' and the like.
            typed = before is not None and before.token_type not in _BEFORE_EXPRESSION
            if typed and before is not None:
                if not _is_word(before):
                    return None
                index -= 1
        elif token.token_type == TokenType.END:
            opening = _case_of(tokens, index)
            if opening is None:
                return None
            index = opening
        elif token.token_type == TokenType.PLACEHOLDER:
            return index
        elif token.token_type != TokenType.NUMBER and not _is_word(token):
            return None
        elif index and _begins_parameter(tokens, index - 1):
            return index - 1
        joined = tokens[index - 1].token_type if index > 1 else None
        if joined not in (TokenType.DOT, TokenType.DCOLON):
            return index
        index -= 2
    return None


def _opening_of(tokens: Sequence[Token], closing: int) -> int | None:
    depth = 0
    for index in range(closing, -1, -1):
        kind = tokens[index].token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _OPENING.values():
            depth -= 1
            if not depth:
                return index
    return None


def _begins_parameter(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token is the mark of ``$1``, ``$name`` or ``:name``."""
    mark = tokens[index]
    if mark.token_type == TokenType.COLON:
        before = tokens[index - 1] if index else None
        return mark.end + 1 == tokens[index + 1].start and not _ends_operand(before)
    return mark.token_type == TokenType.PARAMETER


def _case_of(tokens: Sequence[Token], end: int) -> int | None:
    """The CASE of an END."""
    depth = 0
    for index in range(end, -1, -1):
        if tokens[index].token_type == TokenType.END:
            depth += 1
        elif tokens[index].token_type == TokenType.CASE:
            depth -= 1
            if not depth:
                return index
    return None


def _is_call(tokens: Sequence[Token], opening: int) -> bool:
    before = tokens[opening - 1]
    return before.token_type not in _BEFORE_EXPRESSION and _is_word(before)


def _ends_operand(token: Token | None) -> bool:
    if token is None or token.token_type in _BEFORE_EXPRESSION:
        return False
    return token.token_type in _OPENING or token.token_type == TokenType.STRING or _is_word(token)


def _is_word(token: Token) -> bool:
    if token.token_type == TokenType.IDENTIFIER:
        return True
    return token.text[:1].isalpha() or token.text[:1] == "_"


def _is(token: Token, text: str) -> bool:
    return token.text == text and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


# ------------------------------------------------------------------ nodes


def _name_variables(comprehension: exp.Comprehension) -> None:
    """Variables become bare names, as those of a lambda are: they are no columns."""
    names: set[str] = set()
    for key in ("expression", "position"):
        variable = comprehension.args.get(key)
        if isinstance(variable, exp.Column):  # sqlglot before 30
            variable = variable.this
            comprehension.set(key, variable)
        if variable:
            names.add(variable.name.lower())
    for part in (comprehension.this, comprehension.args.get("condition")):
        if part is None:
            continue
        for column in list(part.find_all(exp.Column)):
            first, *rest = column.parts
            if first.name.lower() not in names or isinstance(column.this, exp.Star):
                continue
            value: exp.Expr = first.copy()
            for each in rest:
                value = exp.Dot(this=value, expression=each.copy())
            column.replace(value)


def _take_field(node: exp.Lambda) -> None:
    """``f(j -> '$.a')`` is JSON's arrow where ``f`` takes no lambda."""
    call = node.parent
    if len(node.expressions) != 1 or not isinstance(call, exp.Func):
        return
    name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    if name.lower() in _TAKE_ARROWS or isinstance(call, exp.Transform | exp.Filter | exp.Reduce):
        return
    (variable,) = node.expressions
    if isinstance(node.this, exp.Literal):
        column = exp.Column(this=variable.copy())
        node.replace(exp.JSONExtract(this=column, expression=node.this.copy()))
