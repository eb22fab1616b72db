"""EXPLAIN of each feature of planning, as people read it: one .plan file each.

A file holds a comment, a statement, ``----`` and the lines of EXPLAIN; `pytest --update-golden`
rewrites the lines, and people read the diff. Random names and sizes in bytes are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

import icesql
from icesql.iceberg.transforms import Bucket
from icesql.iceberg.types import STRING
from tests.writer.table import TableWriter

FOLDER = Path(__file__).parent
PLANS = sorted(FOLDER.glob("*.plan"))

FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "city", "required": False, "type": "string"},
    {"id": 4, "name": "fare", "required": False, "type": "double"},
]
BY_DAY = [{"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}]
BY_CITY = [{"source-id": 3, "field-id": 1001, "name": "city_bucket", "transform": "bucket[4]"}]


def epoch_days(day: date) -> int:
    return (day - date(1970, 1, 1)).days


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """``trips``: three days by day, one without a day, then two files by bucket of the city.

    The first two days carry position deletes and an equality delete; tag ``first`` is before them.
    ``empty`` has no snapshot. ``wide`` is one unpartitioned file.
    """
    folder = tmp_path_factory.mktemp("plans")
    trips = TableWriter(folder / "trips", FIELDS, spec=BY_DAY)
    days = []
    for number, day in enumerate([date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3), None]):
        rows = [
            {"id": number * 10 + each, "day": day, "city": city, "fare": number * 10.0 + each}
            for each, city in enumerate(["Athens", "Berlin", "Cairo"])
        ]
        days.append(trips.data_file(rows, partition=(None if day is None else epoch_days(day),)))
    trips.commit(days)
    trips.tag("first")
    positions = trips.position_deletes([(days[0], 0)], partition=(epoch_days(date(2026, 1, 1)),))
    keys = trips.equality_deletes([{"id": 11}], [1], partition=(epoch_days(date(2026, 1, 2)),))
    trips.commit([positions, keys])
    trips.set_spec(BY_CITY)
    late = [
        trips.data_file(
            [{"id": 100 + each, "day": date(2026, 2, 1), "city": city, "fare": 1.0}],
            partition=(Bucket(4).apply(city, STRING),),
        )
        for each, city in enumerate(["Delhi", "Essen"])
    ]
    trips.commit(late)
    wide = TableWriter(folder / "wide", FIELDS)
    wide.commit([wide.data_file([{"id": 1, "day": None, "city": "Graz", "fare": 2.5}])])
    empty = TableWriter(folder / "empty", FIELDS)
    with icesql.connect() as opened:
        for name, table in [("trips", trips), ("wide", wide), ("empty", empty)]:
            opened.register_table(name, table.metadata_path)
        yield opened


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_reads_as_it_did(
    path: Path, connection: icesql.Connection, update_golden: bool
) -> None:
    head, _, golden = path.read_text(encoding="utf-8").partition("----\n")
    comment, sql = re.fullmatch(r"((?:#.*\n)+)\n(.*)", head, re.DOTALL).groups()  # type: ignore[union-attr]
    lines = [row[0] for row in connection.execute(sql)]
    found = "".join(f"{line}\n" for line in steady("\n".join(lines)).splitlines())
    if update_golden:
        path.write_text(f"{comment}\n{sql}----\n{found}", encoding="utf-8")
        golden = found
    assert found == golden


def steady(text: str) -> str:
    """``text`` with the names of folders and files, sizes and seconds made the same in each run."""
    names: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        path = match[0]
        kind = "m" if path.endswith(".avro") else "f"
        return names.setdefault(path, f"…/{kind}{1 + len(names)}.{path.rpartition('.')[2]}")

    text = re.sub(r"/\S+?\.(?:avro|parquet|puffin)", numbered, text)
    text = re.sub(r"\d[\d,.]* (bytes|B|kB|MB)\b", r"… \1", text)
    return re.sub(r"\d+\.\d+ s\b", "… s", text)


def test_there_is_a_plan_for_each_feature() -> None:
    assert len(PLANS) >= 15
