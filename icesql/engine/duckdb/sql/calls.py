"""The last check before the engine: every function that a text calls is one that a query may call.

Acceptance has asked about the names in the user's tree. Here it is the text in the engine's own
spelling, so that no dialect, quote or rewriting calls what the user could not have called.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from icesql.errors import UnsupportedSqlError
from icesql.sql.engine_functions import calls, is_known, refusal


def check_calls(sql: str, tree: Any, cursor: Any) -> None:
    """Raise UnsupportedSqlError for a call in ``sql``, written from ``tree``, that is refused.

    A name that neither the table nor the engine knows is left to the engine's own error.
    """
    for name, count in Counter(calls(sql)).items():
        reason = refusal(name)
        if reason is None or count == _declarations(name, tree):
            continue
        if is_known(name) or _exists(name, cursor):
            raise UnsupportedSqlError(f"the function {name}()", hint=reason)


def _declarations(name: str, tree: Any) -> int:
    """How often the tree has ``WITH name (columns) AS``, which looks like a call."""
    from sqlglot import exp

    return sum(
        cte.alias.lower() == name and bool(cte.args["alias"].args.get("columns"))
        for cte in tree.find_all(exp.CTE)
    )


def _exists(name: str, cursor: Any) -> bool:
    found = cursor.execute(
        "SELECT count(*) FROM duckdb_functions() WHERE lower(function_name) = ?", [name]
    )
    # Read to its end: a result that is half read lets the cursor give no Arrow.
    return bool(found.fetchall()[0][0])
