"""The values of constant expressions, as the engine computes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from icesql.query.constants.casts import cast
from icesql.query.constants.constant import Constant, Kind, NotConstant
from icesql.query.constants.time_units import interval_of_text

if TYPE_CHECKING:
    from icesql.context import QueryContext

K = TypeVar("K")


def evaluated(wanted: Mapping[K, str], query: QueryContext) -> dict[K, Constant]:
    """Evaluate constant SQL expressions, given by key, in one query; none without an engine.

    Expressions for which the engine raises and values without a ``Constant`` are left out.
    """
    if not wanted or query.evaluate is None:
        return {}
    selected = ", ".join(f"typeof({sql}), CAST({sql} AS VARCHAR)" for sql in wanted.values())
    rows = query.evaluate(f"SELECT {selected}", [], query)
    if not rows:
        # One of them fails; the others may still have values.
        each_alone = [{each: sql} for each, sql in wanted.items()] if len(wanted) > 1 else []
        return {k: v for one in each_alone for k, v in evaluated(one, query).items()}
    return {
        each: constant
        for each, kind, text in zip(wanted, rows[0][::2], rows[0][1::2], strict=True)
        if (constant := _constant(kind, text, query)) is not None
    }


def _constant(kind: str, text: str | None, query: QueryContext) -> Constant | None:
    """The value of ``text`` as the type named ``kind``, None where that is not certain."""
    if text is None:
        return Constant(Kind.NULL, None)
    try:
        match kind:
            case "BOOLEAN":
                return Constant(Kind.BOOLEAN, text == "true")
            case "INTERVAL":
                return Constant(Kind.INTERVAL, interval_of_text(text))
            case "DOUBLE":
                return Constant(Kind.DOUBLE, float(text))
            case "TIMESTAMP WITH TIME ZONE":
                kind = "TIMESTAMPTZ"
        return cast(Constant(Kind.TEXT, text), kind, query)
    except (ValueError, OverflowError, ArithmeticError, NotConstant):
        return None
