"""Clauses of INSERT that select the rows to replace, or the partition."""

from __future__ import annotations

from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import ROWS_WORDS, word_set
from icesql.sql.lexer import Tokens
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import spliced
from icesql.sql.statement import Query
from icesql.sql.trees import parts_of
from icesql.sql.writes.definitions import constant_query
from icesql.sql.writes.statements import PartitionValue, TableName


def read_partition(words: TokenCursor) -> tuple[PartitionValue, ...]:
    """Read ``PARTITION (p = 1, q)``: values for some columns, only names for others."""
    if not words.comes("PARTITION ("):
        return ()
    words.index += 1

    def entry(inner: TokenCursor) -> PartitionValue:
        at = inner.here
        name = inner.column()
        value = None
        if inner.skip("="):
            tokens = inner.until()
            if not tokens:
                raise inner.unexpected("a constant")
            value = constant_query(inner, tokens)
        return PartitionValue(name, value, at)

    return tuple(words.bracketed(entry))


def read_replaced(
    words: TokenCursor, table: TableName, after_table: int, *, by_name: bool
) -> tuple[Query, Query]:
    """Read the condition and the query of REPLACE WHERE, from the word WHERE on.

    The rows to delete are selected by the first query, as in DELETE. The second, of the new rows,
    has the condition as an additional column, so that a row that does not satisfy it is found.
    """
    words.need("WHERE")
    start = words.here
    tokens = _condition(words)
    if not tokens:
        raise words.unexpected("a condition")
    if words.token is None:
        raise words.unexpected("SELECT", "VALUES", "a query")
    sql = words.sql
    assert table.offset is not None
    name = sql[table.offset : after_table]
    stop = tokens[-1].stop
    condition = sql[start:stop]
    alias = _last_name(words, table)
    begin = f"SELECT _file, _pos FROM {name} AS {alias} WHERE "
    gone = words.parse.composed(*spliced(sql, start, stop, [(start, start, begin)]), again=True)
    if parts_of(gone.tree) != {"expressions", "from_", "where"}:
        raise unsupported("REPLACE WHERE with more than a condition", start, "use a subquery")
    union = "UNION ALL BY NAME" if by_name else "UNION ALL"
    first, end = words.token.start, words.tokens[-1].stop
    begin = f"SELECT *, ({condition}) FROM (SELECT * FROM {name} WHERE false {union} ("
    around = [(first, first, begin), (end, end, f")) AS {alias}")]
    return gone, words.parse.composed(*spliced(sql, first, end, around))


def _last_name(words: TokenCursor, table: TableName) -> str:
    """Return the last part of the table's name, quoted as the user did."""
    first = next(n for n, each in enumerate(words.tokens) if each.start == table.offset)
    last = words.tokens[first + 2 * (len(table.parts) - 1)]
    return words.sql[last.start : last.stop]


def _condition(words: TokenCursor) -> Tokens:
    """Return the tokens before the query, which begins outside brackets and CASE."""
    start, depth = words.index, 0
    while (token := words.token) is not None:
        text = words.peek()
        if depth == 0 and text in ROWS_WORDS and text != "(" and not _is_inside(words):
            break
        if depth == 0 and text == "(" and words.index > start and _is_query(words):
            break
        depth += (text in ("(", "[")) - (text in (")", "]"))
        words.index += 1
        if depth < 0:
            raise syntax_error('unexpected ")"', token, ())
    return words.tokens[start : words.index]


def _is_inside(words: TokenCursor) -> bool:
    """True if such a word belongs to the condition: IS DISTINCT FROM, TIMESTAMP WITH TIME ZONE."""
    before = words.tokens[words.index - 1].word if words.index else ""
    return (words.peek() == "FROM" and before.endswith("DISTINCT")) or (
        words.peek() == "WITH" and words.peek(1) in ("TIME", "LOCAL")
    )


def _is_query(words: TokenCursor) -> bool:
    """True if the next bracket contains the query, not a part of the condition."""
    before = words.tokens[words.index - 1].word
    ahead = 1
    while words.peek(ahead) == "(":
        ahead += 1
    return words.peek(ahead) in ROWS_WORDS and before not in _BEFORE_SUBQUERY


_BEFORE_SUBQUERY = word_set(
    "IN EXISTS ANY ALL SOME AND OR NOT = < > <= >= <> != + - * / LIKE BETWEEN IS ARRAY"
)
