"""Nothing but the scans of a query is read by what Spark made of its text.

Spark's own analysis decides: each line of its plan is an operator that computes, or is below the
view of a scan. A view's name holds what no text can know, so no text can write such a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from icesql.engine.spark.session.clients import is_connect
from icesql.errors import UnsupportedSqlError

_LINE: Final = re.compile(r"(?P<depth>(?:[ :]  )*(?:[+:]- )?)(?P<operator>.*)")
# They may be the first operator of a plan, which has no place before it.
_SCRIPT: Final = re.compile(r"'?(Script|Relation|View|.*Scan\b)")
_WORD: Final = re.compile(r"!?(\w+)")
_COMPUTING: Final = frozenset(
    re.findall(
        r"\w+",
        """
        Aggregate AsOfJoin CTE CTERelationDef CTERelationRef Deduplicate Distinct DomainJoin Except
        Expand Filter Generate GlobalLimit InlineCTE Intersect Join LateralJoin Limit LocalLimit
        LocalRelation Offset OneRowRelation Project Range Repartition RepartitionByExpression
        ResolvedHint ResolvedInlineTable Sort SubqueryAlias Tail Union UnionLoop UnionLoopRef
        Unpivot Window WindowGroupLimit WithCTE
        """,
    )
)


def check_plan(frame: Any, views: Sequence[str]) -> None:
    """Raise UnsupportedSqlError if a DataFrame reads more than the ``views``."""
    inside: int | None = None
    for number, line in enumerate(_plan(frame).splitlines()):
        match = _LINE.fullmatch(line)
        if match is None or not (match["depth"] or number == 0):
            # What goes on of a literal or a name with line breaks; an operator has its place.
            if not _SCRIPT.match(line):
                continue
            raise _refused(line)
        depth, operator = len(match["depth"]), match["operator"]
        if inside is not None and depth > inside:
            continue
        inside = None
        if any(operator.startswith(f"View (`{view}`,") for view in views):
            inside = depth
            continue
        word = _WORD.match(operator)
        if (word is None or word[1] not in _COMPUTING) and not operator.startswith(("'", "==")):
            raise _refused(operator)


def _refused(operator: str) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"what Spark reads this statement as ({operator[:80].strip()})",
        hint="a query reads its tables and nothing else",
    )


def _plan(frame: Any) -> str:
    if not is_connect(frame.sparkSession):
        return str(frame._jdf.queryExecution().analyzed().toString())
    plan = str(frame._explain_string(extended=True))
    # What follows is made of the analysed plan. A text may hold such a line too: the last counts.
    analysed = plan.rpartition("== Optimized Logical Plan ==")[0]
    if not analysed:
        raise UnsupportedSqlError("Spark's own text on a Spark that tells no plan")
    return analysed
