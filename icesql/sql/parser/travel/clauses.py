"""Time-travel clauses, cut out of a statement's tokens before sqlglot parses them.

Every dialect of sqlglot parses some spellings of them, and drops others silently. Therefore sqlglot
parses none of them: a clause is cut out with the offset of the name before it, that of a table or
its alias. The tree then shows whether the name at this offset belongs to a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.sql.keywords import word_set
from icesql.sql.lexer import Token, Tokens
from icesql.sql.positions import unsupported
from icesql.sql.table_name import Parts
from icesql.sql.trees import exp

# Every clause contains one of these words.
STARTS: Final = word_set(
    "FOR SYSTEM_VERSION SYSTEM_TIME TIMESTAMP VERSION SNAPSHOT AS AT BEFORE CHANGES END @ WITH "
    "TABLE_CHANGES TABLE APPENDS VERSIONS SETTINGS DIFF BLAME"
)

ReadValue = Callable[[Tokens], tuple[Any, int]]


class Travels(Frozen):
    """The remaining tokens of a statement, and the clauses by the offsets of the names before them.

    ``tables`` are the calls that replace tables, by the offset of the name: the end of the call,
    and the parts of its table's name.
    """

    tokens: list[Token]
    clauses: dict[int, exp.Version]
    tables: dict[int, tuple[int, Parts]]

    def attach(self, tree: exp.Expr) -> None:
        """Set each clause as ``version`` of its table in ``tree``.

        Raises UnsupportedSqlError for a clause of anything but a table.
        """
        left = dict(self.clauses)
        for node in list(tree.find_all(exp.Identifier, exp.Func)) if left else ():
            clause = left.pop(node.meta.get("start", -1), None)
            if clause is not None:
                _give(node, clause)
        if left:
            first = min(left.values(), key=lambda clause: int(clause.meta["start"]))
            raise _misplaced_on(first.meta.get("inside", ""), first.meta["start"])


MISPLACED: Final = "a time-travel clause at this place"
TWO: Final = "two time-travel clauses on one table"


def cut_travels(tokens: Tokens, sql: str, read_value: ReadValue) -> Travels:
    """Cut the clauses out of the tokens of one statement.

    ``read_value`` reads the operand at the start of tokens and returns its number of tokens.
    Raises SqlSyntaxError and UnsupportedSqlError for a malformed or unsupported clause.
    """
    if not any(token.word in STARTS for token in tokens):
        return Travels(list(tokens), {}, {})
    from icesql.sql.parser.travel.cutter import TravelCutter

    cutter = TravelCutter(tokens, sql, read_value)
    cutter.run()
    return Travels(cutter.kept, cutter.clauses, cutter.tables)


def _give(node: exp.Expr, clause: exp.Version) -> None:
    start = clause.meta["start"]
    owner = node if isinstance(node, exp.Unnest) else node.parent
    if isinstance(owner, exp.TableAlias) and owner.this is node:
        owner = owner.parent
    if isinstance(owner, exp.Dot):
        owner = owner.parent
    if isinstance(owner, exp.Table) and all(node is not each for each in owner.parts[:-1]):
        if owner.args.get("version") is not None:
            raise unsupported(TWO, start)
        owner.set("version", clause)
        return
    raise _misplaced_on(
        "" if isinstance(owner, exp.Select) else type(owner).__name__.upper(), start
    )


_KINDS: Final = {
    **dict.fromkeys(("SUBQUERY", "SELECT", "WITH", "FROM", "("), "a subquery"),
    "UNNEST": "UNNEST", "VALUES": "VALUES", "LATERAL": "LATERAL",
}  # fmt: skip


def _misplaced_on(kind: str, start: int) -> UnsupportedSqlError:
    """Return the error for a clause at ``start`` on something that is not a table.

    ``kind`` is its node or its first word.
    """
    if kind not in _KINDS:
        return unsupported(MISPLACED, start)
    hint = "put the clause after each table inside it"
    return unsupported(f"time travel on {_KINDS[kind]}", start, hint)
