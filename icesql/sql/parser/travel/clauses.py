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
from icesql.sql.keywords import word_map, word_set
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


# ------------------------------------------------------------------ words of clauses
# By system; some clauses are refused by name.


BEFORE_KINDS: Final = {kind: f"{kind} BEFORE" for kind in ("TIMESTAMP", "VERSION", "OFFSET")}


# These need AS OF or BEFORE after them.
RANGES: Final = word_map("""
FOR SYSTEM VERSION = VERSION
FOR SYSTEM TIME = TIMESTAMP
FOR SYSTEM_VERSION = VERSION
FOR SYSTEM_TIME = TIMESTAMP
FOR TIMESTAMP = TIMESTAMP
FOR TIME = TIMESTAMP
FOR VERSION = VERSION
""")
# Kinds that name a branch, which may be read as of a time.
BRANCH_KINDS: Final = ("BRANCH", "VERSION_REF")
# Words that begin a clause, and the kind of their value.
PHRASES: Final = {
    **{f"{words} AS OF": kind for words, kind in RANGES.items()},
    **{f"{words} BEFORE": BEFORE_KINDS[kind] for words, kind in RANGES.items()},
    **word_map("""
SYSTEM_VERSION AS OF = VERSION
SYSTEM_TIME AS OF = TIMESTAMP
TIMESTAMP AS OF = TIMESTAMP
VERSION AS OF = VERSION
SNAPSHOT AS OF = VERSION
AS OF TIMESTAMP = TIMESTAMP
AS OF VERSION = VERSION
AS OF SYSTEM TIME = TIMESTAMP
AT TIMESTAMP = TIMESTAMP
AT SNAPSHOT = VERSION
AT BRANCH = BRANCH
AT TAG = TAG
AT REFERENCE = VERSION_REF
AT REF = VERSION_REF
"""),
    # A bracket closes these.
    **{
        f"AT ( {kind} =>": kind
        for kind in (*BRANCH_KINDS, "VERSION", "TIMESTAMP", "VERSION_TAG", "TAG", "OFFSET")
    },
    "AT ( SNAPSHOT =>": "VERSION",
    **{f"BEFORE ( {kind} =>": before for kind, before in BEFORE_KINDS.items()},
}
# The same, only before a string literal, as in Dremio and Dolt.
BEFORE_TEXT: Final = {"AS OF": "TEXT", "AT": "TIMESTAMP"}
OTHER_RANGES: Final = ("BETWEEN", "FROM", "ALL", "CONTAINED")
CHANGES_HINT: Final = {
    "VERSION": "use CHANGES FROM VERSION a TO VERSION b for what commits did to rows",
    "TIMESTAMP": "use CHANGES FROM TIMESTAMP a TO TIMESTAMP b for what commits did to rows",
}
# Clauses of other systems that have no meaning for an Iceberg table.
REFUSED: Final = {
    "AS OF SCN": "use VERSION AS OF and the id of a snapshot",
    "VERSIONS BETWEEN": CHANGES_HINT["TIMESTAMP"],
    "AT COMMIT": "use AT SNAPSHOT or AT BRANCH: Nessie's commits are of its catalog",
    "SETTINGS ICEBERG_SNAPSHOT_ID": "write VERSION AS OF and the id of the snapshot behind the "
    "table",
    "SETTINGS ICEBERG_TIMESTAMP_MS": "write TIMESTAMP AS OF epoch_ms(…) behind the table",
}
# The hint for other kinds than versions and times in Snowflake's clauses.
NO_KIND: Final = "use {word} (VERSION => …) or {word} (TIMESTAMP => …)"
