"""One problem of a table, in numbers, with the statement that fixes it."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import asdict, astuple

from icesql.frozen import Frozen
from icesql.health.statement import Statement

if TYPE_CHECKING:
    from icesql.health.need import Need

Weight = Literal["high", "medium", "low"]
WEIGHTS: Final[tuple[Weight, ...]] = ("high", "medium", "low")


class Gain(Frozen):
    """The savings of a statement, as far as they can be computed; 0 if they cannot.

    ``files`` counts data and delete files of the current snapshot, ``bytes`` the freed bytes in the
    store, ``requests`` the manifests and files that planning and reading the whole table opens.
    ``planning_seconds`` is the saved share of the time that reading the manifests took here.
    """

    files: int = 0
    bytes: int = 0
    requests: int = 0
    planning_seconds: float = 0.0

    def __add__(self, other: Gain) -> Gain:
        return Gain(*map(add, astuple(self), astuple(other)))

    def to_dict(self) -> dict[str, Any]:
        """The gain as JSON values."""
        return asdict(self) | {"planning_seconds": round(self.planning_seconds, 6)}


class Finding(Frozen):
    """``name`` is the kind of problem, ``told`` a description, ``cost`` its cost for readers.

    ``mend`` is the statement that fixes it, that of ``need`` if there is one; ``refusal`` is the
    reason why only Spark can run it. ``measure`` is the number that the statement changes: from
    ``now`` to the predicted ``after``, None if it cannot be predicted. ``gain`` leaves out savings
    by the statements of earlier findings, so that the gains of a table add up.
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
    gain: Gain = Gain()
    need: Need | None = None

    @property
    def statement(self) -> str:
        """icesql's statement that fixes the problem; "" if there is none."""
        return "" if self.refusal else self.mend.icesql

    @property
    def spark_statement(self) -> str:
        """Spark's statement that fixes the problem, with the catalog named ``catalog``."""
        return self.mend.spark

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        shown = (
            "name", "weight", "told", "cost", "statement", "spark_statement", "refusal", "measure",
            "now", "after",
        )  # fmt: skip
        return {each: getattr(self, each) for each in shown} | {"gain": self.gain.to_dict()}


class Diagnosis(Frozen):
    """The findings about ``table`` as of ``snapshot_id``, the heaviest first.

    ``error`` is the reason why a table of a catalog could not be examined, "" if it was.
    """

    table: str
    snapshot_id: int | None
    findings: tuple[Finding, ...]
    error: str = ""

    @property
    def gain(self) -> Gain:
        """The savings of all statements that icesql can run."""
        return sum((each.gain for each in self.findings if each.statement), Gain())

    def is_as_heavy_as(self, weight: Weight) -> bool:
        """True if a finding has this weight or a heavier one, or the table has an error."""
        wanted = WEIGHTS[: WEIGHTS.index(weight) + 1]
        return bool(self.error) or any(each.weight in wanted for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "gain": self.gain.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
            **({"error": self.error} if self.error else {}),
        }

    def __str__(self) -> str:
        from icesql.health.report import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from icesql.health.report import as_html

        return as_html(self)


class CatalogDiagnosis(Frozen):
    """The diagnoses of all tables of a catalog, the worst table first."""

    catalog: str
    tables: tuple[Diagnosis, ...]

    @property
    def gain(self) -> Gain:
        """The savings in all tables."""
        return sum((each.gain for each in self.tables), Gain())

    @property
    def errors(self) -> int:
        """The number of tables that could not be examined."""
        return sum(bool(each.error) for each in self.tables)

    def is_as_heavy_as(self, weight: Weight) -> bool:
        """True if one of the tables is."""
        return any(each.is_as_heavy_as(weight) for each in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        return {
            "catalog": self.catalog,
            "gain": self.gain.to_dict(),
            "errors": self.errors,
            "tables": [each.to_dict() for each in self.tables],
        }

    def page(self, place: str = "") -> str:
        """An HTML page without scripts or external resources; shows ``place`` and the time."""
        from icesql.health.report import as_page

        return as_page(self, place)

    def __str__(self) -> str:
        from icesql.health.report import catalog_as_text

        return catalog_as_text(self)

    def _repr_html_(self) -> str:
        from icesql.health.report import catalog_as_html

        return catalog_as_html(self)


def weight_of(share: float) -> Weight:
    """The weight of a saving that is this share of the whole."""
    return "high" if share >= 0.5 else "medium" if share >= 0.2 else "low"
