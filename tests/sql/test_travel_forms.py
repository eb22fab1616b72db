"""Every form of time travel in vendors' documentation: its rows, or a refusal by name.

``travel_forms.tsv`` has the forms. A refusal names the form that works instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import icesql
from tests.tables import read_table
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("id long")
AGES = (timedelta(10), timedelta(5), timedelta(3), timedelta(hours=40), timedelta(hours=1))


class Made:
    """The table ``db.t``, connections by dialect, and the values for the forms."""

    def __init__(self, folder: Path) -> None:
        writer = self.writer = TableWriter(folder / "db" / "t", FIELDS)
        now = datetime.now(UTC).replace(microsecond=0)
        row = 0
        self.values: dict[str, object] = {"path": writer.folder}
        for number, age in enumerate(AGES):
            at = now - age
            writer.clock = int(at.timestamp() * 1000) - 1000
            snapshot = writer.commit([writer.data_file([{"id": (row := row + 1)}])])
            self.values |= {
                f"s{number}": snapshot,
                f"ms{number}": int(at.timestamp() * 1000),
                f"seconds{number}": int(at.timestamp()),
                f"time{number}": f"{at:%Y-%m-%d %H:%M:%S}",
                f"iso{number}": f"{at:%Y-%m-%dT%H:%M:%S.000Z}",
                f"compact{number}": f"{at:%Y%m%d%H%M%S}000",
                f"vienna{number}": f"{at.astimezone(ZoneInfo('Europe/Vienna')):%Y-%m-%d %H:%M:%S}",
            }
        self.values["date"] = f"{now - timedelta(2):%Y-%m-%d}"
        writer.tag("q1", self.values["s1"])
        writer.tag("audit", self.values["s1"], kind="branch")
        writer.commit([writer.data_file([{"id": 100 + n} for n in range(10)])], branch="audit")
        self.folder = folder
        self.connections: dict[str, Any] = {}

    def run(self, dialect: str, sql: str) -> list[Any]:
        if dialect not in self.connections:
            self.connections[dialect] = icesql.connect(
                warehouse=str(self.folder), dialect=dialect or None
            )
        return list(self.connections[dialect].execute(sql).fetchall())

    def told(self, dialect: str, form: str) -> str:
        """The number of rows, or the error."""
        text = re.sub(r"\{(\w+)\}", lambda found: str(self.values[found[1]]), form)
        sql = text if text.startswith("SELECT") else f"SELECT count(*) FROM {text}"
        try:
            return str(self.run(dialect, sql)[0][0])
        except icesql.Error as error:
            return str(error)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    table = Made(tmp_path_factory.mktemp("travel"))
    yield table
    for each in table.connections.values():
        each.close()


def test_every_form_gives_its_rows_or_the_spelling_that_does(made: Made) -> None:
    wrong, counts = [], Counter[str]()
    for system, dialect, form, expected in read_table(__file__, "travel_forms.tsv"):
        told = made.told(dialect, form)
        works = expected.isdigit()
        counts["works" if works else "refused"] += 1
        if told != expected if works else (told.isdigit() or expected not in told):
            wrong.append(f"{system} [{dialect}] {form}\n    wanted {expected}\n    told {told}")
    assert not wrong, f"{len(wrong)} of {counts.total()}\n" + "\n".join(wrong)
