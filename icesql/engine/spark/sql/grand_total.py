"""The row of a grand total, which Spark leaves out where no row comes in."""

from __future__ import annotations

from sqlglot import exp

_CHANGE_ROWS = ("having", "qualify", "limit", "offset", "distinct")


def must_have_rows(tree: exp.Expr) -> bool:
    """Whether a query gives a row even of no rows, as ROLLUP, CUBE and the set ``()`` do.

    Said only of what the outermost SELECT does: Spark gives no row there.
    """
    if not isinstance(tree, exp.Select) or any(tree.args.get(each) for each in _CHANGE_ROWS):
        return False
    group = tree.args.get("group")
    if group is None:
        return False
    if group.args.get("rollup") or group.args.get("cube"):
        return True
    return any(
        isinstance(each, exp.Rollup | exp.Cube)
        or (isinstance(each, exp.Tuple) and not each.expressions)
        for each in group.walk()
    )
