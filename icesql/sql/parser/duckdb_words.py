"""Where DuckDB takes a word for a name or a bound, and sqlglot for the beginning of something else.

The tokens that sqlglot gets mean the same: bounds of a slice in parentheses, a frame behind an
ORDER BY that orders nothing, and types that no type can be there are names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokens import Token, TokenType

# After these a bracket takes an element or a slice; elsewhere it makes a list.
_SUBSCRIPTED: Final = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR}
)
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_COLONS: Final = frozenset({TokenType.COLON, TokenType.DCOLON})
# sqlglot begins a type or a call with these, whatever follows.
_NAMES_ELSEWHERE: Final = frozenset({TokenType.RANGE, TokenType.MAP, TokenType.INTERVAL})
_AFTER_TYPE: Final = {
    TokenType.RANGE: frozenset({TokenType.L_PAREN}),
    TokenType.MAP: frozenset({TokenType.L_PAREN, TokenType.L_BRACE, TokenType.L_BRACKET}),
}
# Their first argument is an expression; sqlglot takes the name of a column for a unit of time.
_OF_UNITS: Final = frozenset({"date_trunc", "datetrunc", "date_diff", "datediff"})
_FRAMES: Final = frozenset({"GROUPS"})
# What "-" leaves open as the end of a slice.
_LAST: Final = str(2**63 - 1)


def read_as_duckdb(tokens: Sequence[Token]) -> list[Token]:
    """The tokens as sqlglot has to get them; those that it reads like DuckDB stay as they are."""
    made = _keys(_names(tokens))
    if any(token.token_type in _COLONS for token in made):
        made = _slices(made)
    return made


def _names(tokens: Sequence[Token]) -> list[Token]:
    made: list[Token] = []
    for index, token in enumerate(tokens):
        kind = token.token_type
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if _is_unit(token, following, made):
            made += [_like(token, TokenType.L_PAREN, "("), token]
            token = _like(token, TokenType.R_PAREN, ")")
        elif kind in _NAMES_ELSEWHERE and not _is_type(token, following):
            token = _like(token, TokenType.IDENTIFIER, token.text)
        elif (
            token.text.upper() in _FRAMES
            and kind == TokenType.VAR
            and following is not None
            and made
            and made[-1].token_type == TokenType.L_PAREN
            and following.text.upper() in ("BETWEEN", "UNBOUNDED", "CURRENT")
        ):
            # sqlglot takes the word for the name of a window.
            made += [
                _like(token, TokenType.ORDER_BY, "ORDER BY"),
                _like(token, TokenType.NULL, "NULL"),
            ]
        made.append(token)
    return made


def _is_unit(token: Token, following: Token | None, made: Sequence[Token]) -> bool:
    if following is None or following.token_type != TokenType.COMMA or len(made) < 2:
        return False
    call = made[-1].token_type == TokenType.L_PAREN and made[-2].text.lower() in _OF_UNITS
    return call and token.token_type not in (TokenType.STRING, TokenType.NUMBER)


def _is_type(token: Token, following: Token | None) -> bool:
    """Whether a word may be a type, a call or a frame here, and not only a name."""
    kind = token.token_type
    if kind == TokenType.INTERVAL:
        ends = (None, TokenType.FROM, TokenType.COMMA, TokenType.R_PAREN, TokenType.LT)
        return (following.token_type if following is not None else None) not in ends
    if kind == TokenType.RANGE and following is not None:
        frame = following.text.upper() in ("BETWEEN", "UNBOUNDED", "CURRENT")
        if frame or following.token_type == TokenType.NUMBER:
            return True
    return following is not None and following.token_type in _AFTER_TYPE[kind]


def _keys(tokens: list[Token]) -> list[Token]:
    """``USING KEY (k, min(v))``: sqlglot takes names only, so the call is one."""
    for at, token in enumerate(tokens[:-2]):
        is_key = token.token_type == TokenType.USING and tokens[at + 1].text.upper() == "KEY"
        if not is_key or tokens[at + 2].token_type != TokenType.L_PAREN:
            continue
        made, item, depth = list(tokens[: at + 3]), list[Token](), 0
        for number, each in enumerate(tokens[at + 3 :], start=at + 3):
            ends = each.token_type in (TokenType.COMMA, TokenType.R_PAREN) and not depth
            if ends:
                words = "".join(part.text for part in item)
                made += item if len(item) < 2 else [_like(item[0], TokenType.IDENTIFIER, words)]
                item = []
                made.append(each)
            else:
                item.append(each)
            depth += (each.token_type in _OPENING) - (each.token_type in _CLOSING)
            if depth < 0:
                return made + _keys(tokens[number + 1 :])
        return tokens
    return tokens


def _slices(tokens: Sequence[Token]) -> list[Token]:
    made: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        made.append(token)
        at += 1
        if token.token_type != TokenType.L_BRACKET or len(made) < 2:
            continue
        if made[-2].token_type not in _SUBSCRIPTED:
            continue
        parts, end = _parts(tokens, at)
        if len(parts) < 2 or all(map(_is_plain, parts)):
            continue
        for number, part in enumerate(parts):
            if number:
                made.append(_like(tokens[at - 1], TokenType.COLON, ":"))
            made += _bound(part, number)
        at = end
    return made


def _parts(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """The tokens between the colons of a subscript that begins at ``at``, and where it ends."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for number in range(at, len(tokens)):
        token = tokens[number]
        if token.token_type in _CLOSING:
            if not depth:
                return parts, number
            depth -= 1
        elif token.token_type in _OPENING:
            depth += 1
        if token.token_type == TokenType.COLON and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [[]], at


def _is_plain(part: Sequence[Token]) -> bool:
    """True if the bound of a slice is empty or a number, which sqlglot reads as written."""
    numbers = [token for token in part if token.token_type == TokenType.NUMBER]
    return len(part) == len(numbers) < 2 or (
        len(part) == 2 and part[0].token_type == TokenType.DASH and len(numbers) == 1
    )


def _bound(part: Sequence[Token], number: int) -> list[Token]:
    if not part:
        return []
    first, last = part[0], part[-1]
    inner = list(part)
    if number == 1 and len(part) == 1 and first.token_type == TokenType.DASH:
        inner = [_like(first, TokenType.NUMBER, _LAST)]
    opening, closing = (
        _like(first, TokenType.L_PAREN, "("),
        _like(last, TokenType.R_PAREN, ")"),
    )
    return [opening, *inner, closing]


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)
