"""Where a tree has to be written back, proof that it says no less than the user's text.

sqlglot's tree may have no place for a word: a third argument, IGNORE NULLS. Whoever writes it back
would run another query. So what DuckDB reads in both texts is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlglot import exp

from icesql.engine.duckdb.sql.engine_tree import EngineTree, parse
from icesql.engine.duckdb.sql.splice import renamed_sql
from icesql.errors import SqlSyntaxError
from icesql.sql.positions import unsupported


def check_nothing_lost(user: EngineTree, tree: exp.Expr, cursor: Any) -> None:
    """Raise UnsupportedSqlError if ``tree``, written back, has less than ``user``."""
    try:
        written = parse(cursor, renamed_sql(tree, {}))
    except SqlSyntaxError:
        lost = True
    else:
        lost = bool(_parts(user) - _parts(written))
    if lost:
        raise unsupported(
            "one of these words in a query over nanosecond times, UUIDs or fields whose names "
            "differ only in case",
            None,
            "CAST such columns to TIMESTAMP or VARCHAR in a nested query, and use the words there",
        )


def _parts(tree: EngineTree) -> Counter[str]:
    """How many columns, values and modifiers of calls DuckDB reads."""
    found: Counter[str] = Counter()
    for node in tree.walk():
        value = node.value
        match value.get("class"):
            case "COLUMN_REF":
                found["column"] += 1
            case "CONSTANT" | "PARAMETER":
                found["value"] += 1
            case "FUNCTION":
                found["filter"] += value.get("filter") is not None
                found["distinct"] += bool(value.get("distinct"))
                found["order"] += bool((value.get("order_bys") or {}).get("orders"))
            case "WINDOW":
                found["ignore nulls"] += bool(value.get("ignore_nulls"))
                found["filter"] += value.get("filter_expr") is not None
                found["distinct"] += bool(value.get("distinct"))
            case _:
                pass
    return found
