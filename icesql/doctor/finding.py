"""One thing that ails a table, in numbers, with the statement that mends it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from icesql.doctor.statement import Statement

Weight = Literal["high", "medium", "low"]


class Finding(Struct, frozen=True):
    """``name`` is the finding's kind; ``told`` says what is so, ``cost`` what it costs a reader.

    ``mend`` is the statement that mends it; ``refusal`` says why icesql cannot run it where Spark
    can. ``measure`` is the number that it changes: ``now``, and what is promised ``after``, None
    where nothing can be promised.
    """

    name: str
    weight: Weight
    told: str
    cost: str
    mend: Statement = Statement()
    measure: str = ""
    now: float | None = None
    after: float | None = None
    refusal: str = ""

    @property
    def statement(self) -> str:
        """What mends it in icesql; "" where no statement does, or none that icesql runs."""
        return "" if self.refusal else self.mend.icesql

    @property
    def spark_statement(self) -> str:
        """What mends it in Spark, for a catalog that is called ``catalog`` there."""
        return self.mend.spark

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "name": self.name,
            "weight": self.weight,
            "told": self.told,
            "cost": self.cost,
            "statement": self.statement,
            "spark_statement": self.spark_statement,
            "refusal": self.refusal,
            "measure": self.measure,
            "now": self.now,
            "after": self.after,
        }


class Diagnosis(Struct, frozen=True):
    """The findings about ``table`` as of ``snapshot_id``, the heaviest first."""

    table: str
    snapshot_id: int | None
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "findings": [each.to_dict() for each in self.findings],
        }

    def __str__(self) -> str:
        from icesql.doctor.report import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from icesql.doctor.report import as_html

        return as_html(self)


def weight_of(share: float) -> Weight:
    """How much a saving counts that is this share of the whole."""
    return "high" if share >= 0.5 else "medium" if share >= 0.2 else "low"
