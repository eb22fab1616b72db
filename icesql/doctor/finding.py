"""One thing that ails a table, in numbers, with the statement that mends it."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct, structs

Weight = Literal["high", "medium", "low"]


class Finding(Struct, frozen=True):
    """``name`` is the finding's kind; ``told`` says what is so, ``cost`` what it costs a reader.

    ``statement`` mends it in icesql, and ``spark_statement`` in Spark; "" where no statement does.
    ``measure`` is the number that it changes: ``now``, and what is promised ``after``, None where
    nothing can be promised.
    """

    name: str
    weight: Weight
    told: str
    cost: str
    statement: str = ""
    measure: str = ""
    now: float | None = None
    after: float | None = None

    @property
    def spark_statement(self) -> str:
        """The statement as Spark spells it, for a catalog that is called ``catalog`` there.

        Spark quotes names with backticks, and a quote in a text with a backslash.
        """
        text = re.sub(r"(^|; )CALL system\.", r"\1CALL catalog.system.", self.statement)
        text = re.sub(r"(^|; )ALTER TABLE ", r"\1ALTER TABLE catalog.", text)
        return text.replace("''", "\\'").replace('"', "`")

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return structs.asdict(self) | {"spark_statement": self.spark_statement}


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


def literal_text(text: str) -> str:
    """The text for between the quotes of a literal in SQL."""
    return text.replace("'", "''")
