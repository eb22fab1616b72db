"""Time-travel clauses, cut out of a statement's tokens before sqlglot parses them.

Every dialect of sqlglot parses some spellings of them, and drops others silently. Therefore sqlglot
parses none of them: a clause is cut out, and the name before it, that of a table or its alias, is
marked. The tree then shows whether the marked name belongs to a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.errors import UnsupportedSqlError
from icesql.sql.lexer import Token
from icesql.sql.positions import offset_of, syntax_error, unsupported
from icesql.sql.trees import exp

# Every clause contains one of these words.
STARTS: Final = frozenset({
    "FOR", "SYSTEM_VERSION", "SYSTEM_TIME", "TIMESTAMP", "VERSION", "SNAPSHOT", "AS", "AT",
    "BEFORE", "CHANGES", "END", "@", "WITH", "TABLE_CHANGES", "TABLE", "APPENDS", "VERSIONS",
    "SETTINGS", "DIFF", "BLAME",
})  # fmt: skip

ReadValue = Callable[[Sequence[Token]], tuple[Any, int]]


class Travels(Struct, frozen=True):
    """The remaining tokens of a statement, and the clauses by the marks of their tables.

    ``tables`` are the calls that replace tables, by the offset of the name: the end of the call,
    and the parts of its table's name.
    """

    tokens: list[Token]
    clauses: dict[str, exp.Version]
    tables: dict[int, tuple[int, tuple[str, ...]]]

    def attach(self, tree: exp.Expr) -> None:
        """Set each clause as ``version`` of its table in ``tree``, and remove the marks.

        Raises UnsupportedSqlError for a clause of anything but a table.
        """
        own = tree.find(exp.Version, exp.HistoricalData)
        if own is not None:
            raise unsupported(MISPLACED, offset_of(own))
        if not self.clauses:
            return
        left = dict(self.clauses)
        for node in list(tree.find_all(exp.Identifier, exp.Anonymous)):
            name = node.this
            before, mark, number = name.rpartition(MARK) if isinstance(name, str) else ("", "", "")
            clause = left.pop(mark + number, None)
            if clause is None:
                continue
            node.set("this", before)
            _give(node, clause)
        if left:
            raise unsupported(MISPLACED, min(each.meta["start"] for each in left.values()))


MISPLACED: Final = "a time-travel clause at this place"
TWO: Final = "two time-travel clauses on one table"
# A tokenizer puts a zero byte into a name only if the text has one.
MARK: Final = "\0travel"


def is_mark(token: Token) -> bool:
    """True if a token is the mark of a clause after parentheses without an alias."""
    return token.text.startswith(MARK)


def cut_travels(tokens: Sequence[Token], sql: str, read_value: ReadValue) -> Travels:
    """Cut the clauses out of the tokens of one statement.

    ``read_value`` reads the operand at the start of tokens and returns its number of tokens.
    Raises SqlSyntaxError and UnsupportedSqlError for a malformed or unsupported clause.
    """
    if MARK in sql:
        raise syntax_error("a zero byte", sql.index(MARK))
    if not any(token.word in STARTS for token in tokens):
        return Travels(list(tokens), {}, {})
    from icesql.sql.parser.travel.cutter import TravelCutter

    cutter = TravelCutter(tokens, sql, read_value)
    cutter.run()
    return Travels(cutter.kept, cutter.clauses, cutter.tables)


def _give(node: exp.Expr, clause: exp.Version) -> None:
    start = clause.meta["start"]
    owner = node.parent
    if isinstance(owner, exp.TableAlias) and owner.this is node:
        owner = owner.parent
    if isinstance(owner, exp.Dot):
        owner = owner.parent
    if isinstance(owner, exp.Table):
        if owner.args.get("version") is not None:
            raise unsupported(TWO, start)
        owner.set("version", clause)
        return
    raise misplaced_on(owner, start)


def misplaced_on(node: exp.Expr | None, start: int) -> UnsupportedSqlError:
    """Return the error for a clause at ``start`` on something that is not a table."""
    kind = None if node is None else _kinds().get(type(node))
    if kind is None:
        return unsupported(MISPLACED, start)
    hint = "put the clause after each table inside it"
    return unsupported(f"time travel on {kind}", start, hint)


def _kinds() -> dict[type[exp.Expr], str]:
    return {
        exp.Subquery: "a subquery",
        exp.Unnest: "UNNEST",
        exp.Values: "VALUES",
        exp.Lateral: "LATERAL",
    }
