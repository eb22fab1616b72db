"""What scenes say of the findings of the doctor about the table ns.t."""

from __future__ import annotations

from icesql.health.finding import Finding
from tests.scenes import Session


class Doctored(Session):
    """``looked_for`` are the names of findings that count, all of them if it is empty."""

    looked_for: tuple[str, ...] = ()

    def findings(self) -> list[Finding]:
        """The findings now; ``says`` and others are of the first of these."""
        found = self.con.doctor("ns.t").findings
        self.found = [each for each in found if not self.looked_for or each.name in self.looked_for]
        return self.found

    def names(self, wanted: str = "") -> None:
        """The names of all findings, separated by commas."""
        assert ", ".join(each.name for each in self.findings()) == wanted

    def lacks(self, name: str) -> None:
        assert name not in [each.name for each in self.con.doctor("ns.t").findings]

    def says(self, attribute: str, text: str) -> None:
        """What is part of an attribute of the finding."""
        assert text in str(getattr(self.found[0], attribute))

    def omits(self, attribute: str, text: str) -> None:
        assert text not in str(getattr(self.found[0], attribute))

    def advises(self, statement: str = "") -> None:
        assert self.found[0].statement == statement

    def follow(self) -> None:
        self.sql(self.found[0].statement)
