"""Forms of other systems that DuckDB's parser does not have, written as it has them.

    GROUP BY a, b WITH ROLLUP | WITH CUBE           GROUP BY ROLLUP (a, b)
    , LATERAL FLATTEN(input => l [, outer => b]) f  , LATERAL (SELECT … unnest(l) …) f
    , TABLE(FLATTEN(l)) f                           the same

FLATTEN is that of lists: it has the columns index, value, this, path and key, which is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.sql.lexer import CLOSING, OPENING, Token
from icesql.sql.macros.sources import Sources, spliced
from icesql.sql.positions import syntax_error, unsupported

_GROUPS: Final = ("ROLLUP", "CUBE")
_ARGUMENTS: Final = ("input", "outer")
# (start, end, words) in the places of the text.
_Edit = tuple[int, int, str]


def other_spellings(sql: str, tokens: Sequence[Token]) -> tuple[str, Sources] | None:
    """The text of a statement in DuckDB's spelling, and its sources; None where it is that.

    Raises SqlSyntaxError, UnsupportedSqlError for what has no such spelling.
    """
    edits: list[_Edit] = []
    for index, token in enumerate(tokens):
        word = token.word
        if word == "WITH" and _word(tokens, index + 1) in _GROUPS:
            if _word(tokens, index + 2) != "(":
                edits += _grouped(tokens, index)
        elif word == "LATERAL" and _word(tokens, index + 1) == "FLATTEN":
            edits += _flattened(sql, tokens, index, index + 1)
        elif word == "TABLE" and [_word(tokens, index + n) for n in (1, 2)] == ["(", "FLATTEN"]:
            edits += _flattened(sql, tokens, index, index + 2)
    if not edits:
        return None
    edits.sort()
    last = tokens[0].start
    for start, end, _ in edits:
        if start < last:
            raise unsupported("one of these forms inside of another", start, "write a subquery")
        last = end
    return spliced(sql, tokens[0].start, tokens[-1].stop, edits)


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].word if index < len(tokens) else ""


def _grouped(tokens: Sequence[Token], index: int) -> list[_Edit]:
    """``WITH ROLLUP`` at ``index``, behind the keys of a GROUP BY."""
    depth, first = 0, None
    for each in range(index - 1, -1, -1):
        text = tokens[each].word
        depth += (text in CLOSING) - (text in OPENING)
        if depth < 0:
            break
        if depth == 0 and tokens[each].word == "GROUP":
            first = each + 1
            break
    first = None if first is None else first + (_word(tokens, first) == "BY")
    if first is None or first >= index:
        raise syntax_error(
            f"WITH {tokens[index + 1].text} stands behind GROUP BY keys", tokens[index]
        )
    kind = tokens[index + 1].word
    if tokens[first].word == "ALL":
        raise unsupported(f"GROUP BY ALL WITH {kind}", tokens[first], "name the columns")
    start, end = tokens[first].start, tokens[index - 1].stop
    return [(start, start, f"{kind} ("), (end, tokens[index + 1].stop, ")")]


def _flattened(sql: str, tokens: Sequence[Token], first: int, name: int) -> list[_Edit]:
    """FLATTEN whose name is at ``name``, in a call that begins at ``first``."""
    given, last = _arguments(sql, tokens, name)
    if name - first == 2:  # TABLE(FLATTEN(…))
        last += 1
        if _word(tokens, last) != ")":
            raise syntax_error("TABLE(FLATTEN(…)) does not end", tokens[name], (")",))
    if "input" not in given:
        raise syntax_error("FLATTEN needs a list", tokens[name], ("input =>",))
    value = given["input"]
    outer = given.get("outer", "false").upper()
    if outer not in ("TRUE", "FALSE"):
        raise unsupported("OUTER that is no constant", tokens[name], "outer => true")
    # Of several calls of unnest() over a list of another query DuckDB has internal errors.
    each = (
        "{'index': flattened_at - 1, 'value': flattened, "
        f"'this': {value}, 'key': CAST(NULL AS VARCHAR), 'path': '[' || (flattened_at - 1) || ']'}}"
    )
    query = (
        'LATERAL (SELECT flattened."index", flattened."value", flattened.this, flattened."key", '
        f"flattened.path FROM (SELECT unnest(list_transform({value}, "
        f"lambda flattened, flattened_at: {each})) AS flattened))"
    )
    start, end = tokens[first].start, tokens[last].stop
    if outer == "FALSE":
        return [(start, end, query)]
    if _word(tokens, first - 1) != "," or not first:
        raise unsupported("OUTER behind this join", tokens[name], "write a comma before LATERAL")
    after = last + (2 if _word(tokens, last + 1) == "AS" else 1)
    if after >= len(tokens) or not tokens[after].is_name:
        raise unsupported("OUTER without an alias", tokens[name], "name it: FLATTEN(…) AS f")
    comma, alias = tokens[first - 1], tokens[after].stop
    return [(comma.start, end, f" LEFT JOIN {query}"), (alias, alias, " ON true")]


def _arguments(sql: str, tokens: Sequence[Token], name: int) -> tuple[dict[str, str], int]:
    """The SQL of each argument by its name, and the token that ends the call."""
    if _word(tokens, name + 1) != "(":
        raise syntax_error("FLATTEN takes a list", tokens[name], ("(",))
    found: dict[str, str] = {}
    depth, first = 0, name + 2
    for index in range(name + 1, len(tokens)):
        text = tokens[index].word
        if text == "?":
            raise unsupported("a ? in FLATTEN", tokens[index], "write $1")
        depth += (text in OPENING) - (text in CLOSING)
        if depth == 0 and first >= index:
            return found, index
        if not (depth == 0 or (depth == 1 and text == ",")) or first >= index:
            continue
        label, start = "input" if not found else "", first
        if _word(tokens, first + 1) == "=>":
            label, start = tokens[first].text.lower(), first + 2
        if label not in _ARGUMENTS or label in found or start >= index:
            hint = "it takes input => a list, and outer => true"
            raise unsupported(f"this argument of FLATTEN ({label})", tokens[first], hint)
        found[label] = sql[tokens[start].start : tokens[index - 1].stop]
        first = index + 1
        if depth == 0:
            return found, index
    raise syntax_error("FLATTEN does not end", tokens[name], (")",))
