"""What manifests let suspect is decided by reading: right tables are maintained, wrong ones named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.health import live_files
from icesql.maintain import live_rows as counting
from tests.maintain.rewrite.tables import catalog_of, new_table, rows
from tests.scenes import Scene, Stage, scenes

DAMAGE = {"rows changed", "deletes dropped"}


class Writer(Stage):
    """Another engine, which writes files under names and commits what it likes."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.folder, self.patch = folder, patch
        self.files: dict[str, list[Any]] = {}

    def create(self, version: str) -> None:
        self.table = new_table(self.folder, int(version))

    def ids(self, name: str, *ids: str) -> None:
        """A data file of these ids; ``0..20/2`` are those from 0 to 20 by 2, without 20."""
        found: list[int] = []
        for each in ids:
            span, _, step = each.partition("/")
            first, _, end = span.partition("..")
            found += range(int(first), int(end or int(first) + 1), int(step or 1))
        made = self.table.data_file([{"id": each, "p": "a", "x": 1.0} for each in found])
        self.files[name] = [made]

    def rows(self, name: str, first: str, count: str) -> None:
        self.files[name] = [self.table.data_file(rows(int(first), int(count)))]

    def keys(self, name: str, *ids: str) -> None:
        """Deletes by equality."""
        deleted = [{"id": int(each)} for each in ids]
        self.files[name] = [self.table.equality_deletes(deleted, [1])]

    def positions(self, name: str, *places: str) -> None:
        """Position deletes of ``<file>/<row>``; those of one file in a name with a dot refer to it."""
        cut = (each.split("/") for each in places)
        pairs = [(self.files[file][0], int(row)) for file, row in cut]
        self.files[name] = [self.table.position_deletes(pairs, referenced="." in name)]

    def marks(self, name: str, file: str, *places: str) -> None:
        """The rows of one file as this version of the format marks them."""
        if self.table.version == 3:
            vectors = [(self.files[file][0], [*map(int, places)])]
            self.files[name] = self.table.deletion_vectors(vectors)
        else:
            self.positions(f"{name}.", *(f"{file}/{each}" for each in places))
            self.files[name] = self.files[f"{name}."]

    def commit(self, *words: str) -> None:
        """Files that come, behind ``-`` those that go, and at the end the operation, in brackets."""
        operation = words[-1].strip("()") if words[-1].startswith("(") else None
        names = [each for each in words if not each.startswith("(")]
        cut = names.index("-") if "-" in names else len(names)
        added, removed = (
            [file for name in part for file in self.files[name]]
            for part in (names[:cut], names[cut + 1 :])
        )
        self.table.commit(added, removed, operation)

    def sql(self, text: str) -> None:
        with icesql.connect(warehouse=catalog_of(self.table).folder) as con:
            cursor = con.execute(text)
            self.answer = cursor.fetchall() if cursor.description else []

    def count(self, number: str) -> None:
        assert len(self.answer) == int(number)

    def unread(self) -> None:
        """What is in doubt is too large to be read."""
        self.patch.setattr(live_files, "_MOST_BYTES", 0)

    def damage(self, *words: str) -> None:
        """The damage that the doctor names, with its weight; then a maintenance runs."""
        with icesql.connect(warehouse=catalog_of(self.table).folder) as con:
            found = {each.name: each.weight for each in con.doctor("ns.t").findings}
            actions = ["convert", "compact", "deletes"]
            (self.report,) = con.maintain(["ns.t"], actions=actions).tables
        weights = [f"{name} {weight}" for name, weight in found.items() if name in DAMAGE]
        assert weights == ([" ".join(words)] if words else [])

    def maintained(self) -> None:
        assert self.report.status in ("nothing", "done")
        assert not self.report.note

    def stopped(self) -> None:
        assert self.report.status == "damaged"

    def doubted(self) -> None:
        """The report names the doubt, and nothing stopped."""
        assert self.report.status not in ("damaged", "failed")
        assert "icesql doctor ns.t" in self.report.note


@scenes(__file__, "doubts.scenes")
def test_doubts_are_decided_by_reading(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(tmp_path, monkeypatch).play(scene)


def test_the_keys_of_a_file_are_read_once_for_all_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, 2)
    (f,) = table.append([{"id": each, "p": "a", "x": 1.0} for each in range(0, 100, 2)])
    held: list[Any] = []
    for number in range(6):
        deletes = table.delete_keys(2 * number, 2 * number + 1)
        places = [(f, each) for each in range(number + 1)]
        new = [table.position_deletes(places, referenced=True)]
        table.commit(new, [deletes, *held], "overwrite")
        held = new
    read: list[str] = []
    real = counting.read_file

    def counted(task: Any, *others: Any) -> Any:
        read.append(task.data_file.path)
        return real(task, *others)

    monkeypatch.setattr(counting, "read_file", counted)
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        assert DAMAGE.isdisjoint(each.name for each in con.doctor("ns.t").findings)
    assert len(read) == 1
