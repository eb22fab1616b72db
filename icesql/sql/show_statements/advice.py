"""Advice to other engines that changes no row: hints, SORT BY, DISTRIBUTE BY."""

from __future__ import annotations

import re
from typing import Final

from icesql.sql.lexer import COMMENT, SPACE, pieces
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp

# Join methods, numbers of partitions and files, choice of an index: the rows stay the same.
_ADVICE: Final = (
    "BROADCAST|BROADCASTJOIN|MAPJOIN|STREAMTABLE|MERGE|MERGEJOIN|SHUFFLE_MERGE|SHUFFLE_HASH"
    "|SHUFFLE_REPLICATE_NL|COALESCE|REPARTITION|REPARTITION_BY_RANGE|REBALANCE|SKEW|RANGE_JOIN"
    "|SHUFFLE|NOSHUFFLE|STRAIGHT_JOIN|PARALLEL|NO_PARALLEL|ORDERED|LEADING|USE_HASH|USE_NL"
    "|USE_MERGE|INDEX|NO_INDEX|FULL|HASH_JOIN|NO_HASH_JOIN|ALL_ROWS|FIRST_ROWS|CARDINALITY"
)
_ITEM: Final = rf"(?:{_ADVICE})\b\s*+(?:\([^()]*+\))?"
_HINT: Final = re.compile(rf"/\*\+\s*(?:{_ITEM}[\s,]*+)++\*/", re.IGNORECASE)
# Flink's options, which choose a snapshot; see ``travel.options``.
_OPTIONS: Final = re.compile(r"/\*\+\s*OPTIONS\s*\([^()]*\)\s*\*/", re.IGNORECASE)


def read_hints(sql: str, dialect: str) -> tuple[str, dict[int, str]]:
    """Return ``sql`` without hints that only advise, and a note for each, by its offset.

    WITH clauses replace Flink's options; offsets do not change. Raises UnsupportedSqlError for any
    other hint.
    """
    notes: dict[int, str] = {}
    before = ""  # the word or sign before a hint; COMMENT for a comment
    for kind, start, end in pieces(sql, dialect=dialect):
        if kind != COMMENT or not sql.startswith("/*+", start):
            if kind != SPACE:
                before = COMMENT if kind == COMMENT else sql[start:end].upper()
            continue
        if _HINT.fullmatch(sql, start, end):
            shown = " ".join(sql[start + 3 : end - 2].split())
            notes[start] = f"the hint {shown} only advises an engine: it was left out"
            put = ""
        elif _OPTIONS.fullmatch(sql, start, end) and before not in ("SELECT", COMMENT):
            opened = sql.index("(", start)
            put = "WITH".ljust(opened - start) + sql[opened : end - 2]
        else:
            hint = "leave it out; a snapshot is chosen with FOR VERSION AS OF …"
            raise unsupported("an optimizer hint /*+ … */", start, hint)
        sql = sql[:start] + put.ljust(end - start) + sql[end:]
    return sql, notes


def sort_once(tree: exp.Expr) -> None:
    """Turn SORT BY and CLUSTER BY into ORDER BY, and remove DISTRIBUTE BY.

    Rows in a total order are also sorted within each partition, which is all that these clauses
    require. The expressions of DISTRIBUTE BY come last in the order, so that their names are
    resolved. Beside an ORDER BY the clauses stay and are refused, as in Spark.
    """
    for select in tree.find_all(exp.Select):
        clauses = [select.args.get(part) for part in ("sort", "cluster", "distribute")]
        if select.args.get("order") is not None or not any(clauses):
            continue
        items = [item for clause in clauses if clause is not None for item in clause.expressions]
        for part in ("sort", "cluster", "distribute"):
            select.set(part, None)
        made = [
            item if isinstance(item, exp.Ordered) else exp.Ordered(this=item, nulls_first=True)
            for item in items
        ]
        select.set("order", exp.Order(expressions=made))
