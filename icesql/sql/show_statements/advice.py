"""Advice to other engines that changes no row: hints, SORT BY, DISTRIBUTE BY."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from icesql.sql.lexer import Token
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


def advice_in(sql: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the spans of hints that only advise, outside quotes and other comments.

    ``tokens`` are those of ``sql``: a hint is between two of them, or is one.
    """
    if "/*+" not in sql:
        return []
    found: list[tuple[int, int]] = []
    last = 0
    for start, end in [*((each.start, each.stop) for each in tokens), (len(sql), len(sql))]:
        if start < last:
            continue
        hint = _HINT.search(sql, last, len(sql)) if "/*+" in sql[last : start + 3] else None
        if hint is not None and hint.start() <= start and sql[last : hint.start()].strip() == "":
            found.append(hint.span())
            last = max(end, hint.end())
        else:
            last = end
    return found


def without(sql: str, places: Sequence[tuple[int, int]]) -> str:
    """Return the text with spaces in place of these spans."""
    for start, end in places:
        sql = sql[:start] + " " * (end - start) + sql[end:]
    return sql


def note_of(hint: str) -> str:
    """Return the note for the user about an ignored hint."""
    inner = " ".join(hint.removeprefix("/*+").removesuffix("*/").split())
    return f"the hint {inner} only advises an engine: it was left out"


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
