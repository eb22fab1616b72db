"""A procedure call that a table needs: its predicted effect, its SQL text, and its finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import field

from icesql.frozen import Frozen
from icesql.health.finding import Finding, Gain, Statement, Weight, call, constant
from icesql.sql.writes.procedure_calls import (
    CallArgument,
    CallProcedure,
    MapValue,
    Value,
)
from icesql.sql.writes.statements import TableName

if TYPE_CHECKING:
    from icesql.health.facts import Facts
    from icesql.maintain.rewrite.plan import RewritePlan


class Instant(Frozen):
    """An instant, in milliseconds since 1970."""

    milliseconds: int

    @property
    def text(self) -> str:
        """The instant as text, in UTC."""
        moment = datetime.fromtimestamp(self.milliseconds // 1000, UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S}.{self.milliseconds % 1000:03d}+00:00"


class Need(Frozen):
    """``name`` is one of ``policy.ACTIONS``, or of the needs that only the doctor reports.

    ``arguments`` are those besides the table. ``promise`` has predicted numbers by the names of
    ``Facts.measures``; unknown ones are left out. ``bytes`` of data files are rewritten, by the
    plan ``rewrite``; ``freed`` bytes of the store are removed. ``refusal`` is the reason why icesql
    cannot do it for the table, "" if it can.
    """

    name: str
    procedure: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    promise: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    refusal: str = ""
    weight: Weight = "low"
    freed: int = 0
    rewrite: RewritePlan | None = None

    def mend(self, parts: Sequence[str]) -> Statement:
        """The statement for the table with this name."""
        shown = {
            name: constant(f"TIMESTAMP '{value.text}'") if isinstance(value, Instant) else value
            for name, value in self.arguments.items()
        }
        return call(self.procedure, parts, **shown)

    def finding(
        self,
        facts: Facts,
        name: str,
        weight: Weight,
        cost: str,
        told: str = "",
        measure: str = "",
        now: float | None = None,
        after: float | None = None,
    ) -> Finding:
        """The doctor's finding that this need fixes; it shows ``reason`` unless ``told`` is given.

        ``now`` and ``after`` default to the measure's current and predicted values.
        """
        if measure and now is None:
            now, after = facts.measures[measure], self.promise.get(measure)
        return Finding(
            name, weight, told or self.reason, cost, self.mend(facts.parts),
            measure.replace("_", " "), now, after, self.refusal, Gain(bytes=self.freed), self,
        )  # fmt: skip

    def call(self, parts: Sequence[str], *, explain: bool = False) -> CallProcedure:
        """The need as a parsed statement, independent of a dialect."""
        given = {"table": TableName(tuple(parts)), **self.arguments}
        arguments = tuple(CallArgument(name, _value(each), 0) for name, each in given.items())
        return CallProcedure(("system", self.procedure), arguments, 0, explain)


def _value(value: Any) -> Value:
    match value:
        case Instant():
            return value.text
        case Mapping():
            return MapValue(tuple(value.items()))
        case _:
            return value  # type: ignore[no-any-return]
