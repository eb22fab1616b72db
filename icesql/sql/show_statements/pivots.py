"""PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree has to know them.

The user's own text runs. The tree says which tables and columns are read; DuckDB's parser makes
``SELECT * FROM`` of a statement, to whose source the PIVOT belongs.

``PIVOT t ON c USING sum(x)`` has a column for each value of c. Until these are read one text holds
the place of their list: ``ON c IN ('…')``; see ``query.pivot_values``.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.sql.positions import unsupported

LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"
# The list of values that are not read yet, of a character that no keyboard has.
UNREAD: Final = "('\ue000values\ue000')"


def check_pivot(pivot: exp.Pivot) -> None:
    """Refuse one whose columns only its rows say. Raises UnsupportedSqlError."""
    if pivot.args.get("unpivot"):
        return
    listed = pivot.args.get("fields") or pivot.expressions
    for each in listed:
        known = isinstance(each, exp.In) and each.expressions and not each.args.get("query")
        if not known or any(isinstance(value, exp.Query | exp.PivotAny) for value in each.walk()):
            raise unsupported("PIVOT without a list of values", each, LISTED)
