"""Rewrite syntax of other systems that DuckDB's parser does not accept to DuckDB's.

    GROUP BY a, b WITH ROLLUP | WITH CUBE           GROUP BY ROLLUP (a, b)
    , LATERAL FLATTEN(input => l [, outer => b]) f  , LATERAL (SELECT … unnest(l) …) f
    , TABLE(FLATTEN(l)) f                           the same

FLATTEN is the function on lists: its columns are index, value, this, path and key, which is NULL.
"""

from __future__ import annotations

from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Tokens, before, span_of
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import Change, Sources, spliced

_GROUPS: Final = ("ROLLUP", "CUBE")
_ARGUMENTS: Final = ("input", "outer")


def other_spellings(sql: str, tokens: Tokens) -> tuple[str, Sources] | None:
    """Return the text of a statement in DuckDB's spelling, and its sources; None if unchanged.

    Raises SqlSyntaxError, UnsupportedSqlError for syntax without an equivalent.
    """
    edits: list[Change] = []
    words = TokenCursor(tokens, sql)
    for index, token in enumerate(tokens):
        word = token.word
        if word == "WITH" and words.word(index + 1) in _GROUPS:
            if words.word(index + 2) != "(":
                edits += _grouped(words, index)
        elif word == "LATERAL" and words.word(index + 1) == "FLATTEN":
            edits += _flattened(words, index, index + 1)
        elif word == "TABLE" and words.matches(index + 1, "( FLATTEN"):
            edits += _flattened(words, index, index + 2)
    if not edits:
        return None
    edits.sort()
    last = tokens[0].start
    for start, end, _ in edits:
        if start < last:
            raise unsupported("one of these forms inside of another", start, "write a subquery")
        last = end
    return spliced(sql, *span_of(tokens), edits)


def _grouped(words: TokenCursor, index: int) -> list[Change]:
    """Rewrite ``WITH ROLLUP`` at ``index``, after the keys of a GROUP BY."""
    tokens = words.tokens
    first = before(tokens, index - 1, ("GROUP",)) + 1
    first += words.word(first) == "BY"
    if not 0 < first < index:
        raise syntax_error(
            f"WITH {tokens[index + 1].text} comes after GROUP BY keys", tokens[index]
        )
    kind = tokens[index + 1].word
    if tokens[first].word == "ALL":
        raise unsupported(f"GROUP BY ALL WITH {kind}", tokens[first], "name the columns")
    start, end = tokens[first].start, tokens[index - 1].stop
    return [(start, start, f"{kind} ("), (end, tokens[index + 1].stop, ")")]


def _flattened(words: TokenCursor, first: int, name: int) -> list[Change]:
    """Rewrite the call of FLATTEN that begins at ``first``, with its name at ``name``."""
    tokens, words.index = words.tokens, name + 1
    given, last = _arguments(words), words.index - 1
    if name - first == 2:  # TABLE(FLATTEN(…))
        last += 1
        if words.word(last) != ")":
            raise syntax_error("TABLE(FLATTEN(…)) does not end", tokens[name], (")",))
    if "input" not in given:
        raise syntax_error("FLATTEN needs a list", tokens[name], ("input =>",))
    value = given["input"]
    outer = given.get("outer", "false").upper()
    if outer not in ("TRUE", "FALSE"):
        raise unsupported("OUTER that is no constant", tokens[name], "outer => true")
    # DuckDB has internal errors for several calls of unnest() on a list of another query.
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
    if words.word(first - 1) != "," or not first:
        raise unsupported("OUTER behind this join", tokens[name], "write a comma before LATERAL")
    after = last + (2 if words.word(last + 1) == "AS" else 1)
    if after >= len(tokens) or not tokens[after].is_name:
        raise unsupported("OUTER without an alias", tokens[name], "name it: FLATTEN(…) AS f")
    comma, alias = tokens[first - 1], tokens[after].stop
    return [(comma.start, end, f" LEFT JOIN {query}"), (alias, alias, " ON true")]


def _arguments(words: TokenCursor) -> dict[str, str]:
    """Return the SQL of each argument by its name."""
    found: dict[str, str] = {}

    def read(inner: TokenCursor) -> None:
        at, label = inner.here, "" if found else "input"
        if inner.peek(1) == "=>":
            label = inner.identifier().lower()
            inner.need("=>")
        start, value = inner.index, inner.until()
        for each in value:
            if each.word == "?":
                raise unsupported("a ? in FLATTEN", each, "write $1")
        if label not in _ARGUMENTS or label in found or not value:
            hint = "it takes input => a list, and outer => true"
            raise unsupported(f"this argument of FLATTEN ({label})", at, hint)
        found[label] = inner.written(start, inner.index)

    if not words.skip("( )"):
        words.bracketed(read)
    return found
