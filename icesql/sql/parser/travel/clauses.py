"""Time-travel clauses, cut out of a statement's tokens before sqlglot parses them.

Every dialect of sqlglot knows some spellings of them, and drops others without a word. So none of
them parses any: a clause is cut out, and the name before it, which is that of a table or its
alias, is marked. The tree then shows whether the marked name is one of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.errors import UnsupportedSqlError
from icesql.sql.lexer import Token
from icesql.sql.positions import offset_of, syntax_error, unsupported
from icesql.sql.trees import exp

# Words without which no clause can be.
STARTS: Final = frozenset({
    "FOR", "SYSTEM_VERSION", "SYSTEM_TIME", "TIMESTAMP", "VERSION", "SNAPSHOT", "AS", "AT",
    "BEFORE", "CHANGES", "END", "@", "WITH", "TABLE_CHANGES", "TABLE", "APPENDS", "VERSIONS",
    "SETTINGS", "DIFF", "BLAME",
})  # fmt: skip

ReadValue = Callable[[Sequence[Token]], tuple[Any, int]]


class Travels(Struct, frozen=True):
    """The tokens that are left of a statement, and the clauses by the marks of their tables.

    ``tables`` are the calls that stand for tables, by the places of their names: where each ends,
    and the parts of the name of its table.
    """

    tokens: list[Token]
    clauses: dict[str, exp.Version]
    tables: dict[int, tuple[int, tuple[str, ...]]]

    @property
    def spans(self) -> dict[int, int]:
        """Where each clause begins in the SQL, and where it ends."""
        return {each.meta["start"]: each.meta["end"] for each in self.clauses.values()}

    def attach(self, tree: exp.Expr) -> None:
        """Give each clause to its table in ``tree`` as ``version``, and take the marks away.

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
            mark = _mark_in(name) if isinstance(name, str) else ""
            clause = left.pop(mark, None) if mark else None
            if clause is None:
                continue
            node.set("this", name.removesuffix(mark))
            _give(node, clause)
        if left:
            raise unsupported(MISPLACED, min(each.meta["start"] for each in left.values()))


MISPLACED: Final = "a time-travel clause at this place"
TWO: Final = "two time-travel clauses on one table"
# A zero byte is in no name that a tokenizer makes of text without one.
MARK: Final = "\0travel"


def _mark_in(name: str) -> str:
    at = name.rfind(MARK)
    return name[at:] if at >= 0 else ""


def is_mark(token: Token) -> bool:
    """Whether a token is the mark of a clause after parentheses that nothing names."""
    return token.text.startswith(MARK)


def cut_travels(tokens: Sequence[Token], sql: str, read_value: ReadValue) -> Travels:
    """Take the clauses out of the tokens of one statement.

    ``read_value`` reads an operand from the beginning of tokens and says how many they are.
    Raises SqlSyntaxError and UnsupportedSqlError for a clause that cannot be understood.
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
    """The error for a clause at ``start`` of something that is no table."""
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
