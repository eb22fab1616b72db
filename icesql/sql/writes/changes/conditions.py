"""The table of a change; its alias, other tables and the condition in DELETE and UPDATE."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import word_set
from icesql.sql.lexer import CLOSING, NUMBER, OPENING, Token, Tokens, phrase
from icesql.sql.parser.travel.phrases import PHRASES
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.trees import exp, parts_of
from icesql.sql.writes.statements import TableName

# Clauses that may follow WHERE only in a query.
BEHIND_WHERE: Final = word_set(
    "UNION EXCEPT INTERSECT MINUS GROUP HAVING WINDOW QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT "
    "OFFSET FETCH FOR"
)
RETURNING: Final = (
    "the rows of a commit are in SELECT * FROM t CHANGES FROM VERSION n, the snapshot before it"
)
_HINT: Final = "rows are written to a branch: VERSION AS OF 'branch'"
_PLAIN: Final = word_set("expressions from_ where")


def read_target(words: TokenCursor) -> TableName:
    """``t``, ``t VERSION AS OF 'b'``, ``t FOR SYSTEM_VERSION AS OF 'b'``, ``t@b``,
    ``t @ BRANCH b``, ``t AT (BRANCH => 'b')`` or ``t AT BRANCH b``.

    ``t.branch_b`` is resolved to a table and a branch when the table is looked up. Raises
    SqlSyntaxError, and UnsupportedSqlError for a snapshot or a time.
    """
    at = words.here
    return TableName(words.name("a table"), at, _branch(words))


def _branch(words: TokenCursor) -> str | None:
    if words.skip("@"):
        words.skip("BRANCH")
        return _name(words)
    at = words.here
    for written, kind in PHRASES.items():
        if not words.skip(written):
            continue
        if kind not in ("VERSION", "BRANCH", "VERSION_REF"):
            raise unsupported("writing to the past of a table", at, _HINT)
        found = _name(words)
        if "(" in written:
            words.need(")")
        return found
    return None


def _name(words: TokenCursor) -> str:
    if words.kind(words.index) in ("", NUMBER):
        raise unsupported("writing to a snapshot", words.here, _HINT)
    return words.text_or_name("the name of a branch")


def refuse_endings(tokens: Tokens) -> None:
    """Raise UnsupportedSqlError for ON CONFLICT and RETURNING outside brackets."""
    for place, word in plain_words(tokens):
        token = tokens[place]
        after = tokens[place + 1].word if place + 1 < len(tokens) else ""
        if word == "ON" and after == "CONFLICT":
            raise unsupported("ON CONFLICT", token, "use MERGE")
        if word == "RETURNING":
            raise unsupported("RETURNING", token, RETURNING)


def plain_words(tokens: Tokens) -> Iterator[tuple[int, str]]:
    """Yield the index and word of each token outside brackets and outside CASE … END.

    Stops at an unmatched closing bracket.
    """
    depth = cases = 0
    for index, token in enumerate(tokens):
        word = token.word
        depth += (word in OPENING) - (word in CLOSING)
        if depth < 0:
            return
        if word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word and word not in CLOSING and depth == cases == 0:
            yield index, word


def before_word(tokens: Tokens, *stops: str) -> int:
    """Return the number of tokens before the first of these words outside brackets and CASE."""
    return next((index for index, word in plain_words(tokens) if word in stops), len(tokens))


def alias_of(tokens: Tokens, expected: str) -> Token | None:
    """Return the alias between a table and what follows it. Raises SqlSyntaxError."""
    given = [token for token in tokens if token.word != "AS"]
    if len(given) > 1:
        raise syntax_error(f'unexpected "{given[1].text}"', given[1], (expected,))
    return given[0] if given else None


def check_condition(rows: Query, tokens: Tokens, word: str, more: Collection[str] = ()) -> None:
    """Refuse clauses that may follow WHERE in a query: a UNION would select more rows.

    ``word`` is the statement's first word, ``tokens`` are those of the condition, ``more`` the
    additional parts of the tree that are allowed.
    """
    if isinstance(rows.tree, exp.Select) and parts_of(rows.tree) <= _PLAIN.union(more):
        return
    for place, each in plain_words(tokens):
        if each in BEHIND_WHERE:
            raise unsupported(
                f"{word} … {phrase(tokens, place)}", tokens[place], "put it into a subquery"
            )
    at = tokens[0] if tokens else None
    raise unsupported(f"{word} with more than a condition", at, "put it into a subquery")
