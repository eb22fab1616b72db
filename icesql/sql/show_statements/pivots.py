"""PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree has to know them.

The user's own text runs. The tree says which tables and columns are read; DuckDB's parser makes
``SELECT * FROM`` of a statement, to whose source the PIVOT belongs.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.sql.positions import unsupported

WORDS: Final = ("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER")
_LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"


def check_pivot(pivot: exp.Pivot) -> None:
    """Refuse one whose columns only its rows tell. Raises UnsupportedSqlError."""
    if pivot.args.get("unpivot"):
        return
    listed = pivot.args.get("fields") or pivot.expressions
    for each in listed:
        known = isinstance(each, exp.In) and each.expressions and not each.args.get("query")
        if not known or any(isinstance(value, exp.Query | exp.PivotAny) for value in each.walk()):
            raise unsupported("PIVOT without a list of values", each, _LISTED)
