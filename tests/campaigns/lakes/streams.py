"""One table as a stream leaves it, written by the specification, beside the rows it has.

``Stream`` writes with ``tests.writer``, which shares no code with icesql, and keeps the rows of each
snapshot in a dictionary. File names and rows follow from the seed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.writer.table import TableWriter, WrittenFile

DAY_MS = 86_400_000
FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "p", "required": False, "type": "long"},
    {"id": 3, "name": "x", "required": False, "type": "double"},
    {"id": 4, "name": "s", "required": False, "type": "string"},
]
ADDED = {"id": 5, "name": "extra", "required": False, "type": "long"}
BY_P = [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}]

Row = tuple[Any, ...]


class _Named(TableWriter):
    """Names of files from a seed."""

    chance: random.Random

    def _path(self, extension: str) -> tuple[str, str]:
        name = f"data/{self.chance.getrandbits(48):012x}.{extension}"
        return f"{self.folder}/{name}", f"{self.location}/{name}"


class Stream:
    """A table of ``version`` below ``folder``, in ``partitions`` partitions by p, or in none.

    ``rows`` has the live rows by id, ``at`` those of each snapshot, ``orphans`` the paths of files
    that no snapshot needs and that are old. The history begins ``days`` days ago.
    """

    def __init__(
        self, folder: Path, chance: random.Random, version: int, partitions: int = 0,
        days: int = 30, **properties: str,
    ) -> None:  # fmt: skip
        folder.mkdir(parents=True)
        self.folder, self.chance, self.version = folder, chance, version
        self._partitions = partitions
        start = int(time.time() * 1000) - days * DAY_MS
        self.writer = _Named(
            str(folder), [*FIELDS], [*BY_P] if partitions else [], version=version,
            properties={"commit.retry.min-wait-ms": "1", **properties}, start_ms=start,
        )  # fmt: skip
        self.writer.chance = chance
        self.rows: dict[int, Row] = {}
        self.at: dict[int, list[Row]] = {}
        self.orphans: list[Path] = []
        self.young: list[Path] = []
        # Of each data file the ids of its rows by position, and the vector that it has.
        self._files: dict[str, tuple[WrittenFile, list[int]]] = {}
        self._where: dict[int, str] = {}
        self._places: dict[str, dict[int, int]] = {}
        self._vectors: dict[str, tuple[WrittenFile, list[int]]] = {}
        self._next = 0
        self._is_global = False
        self.scale = 1

    # ------------------------------------------------------------------ changes

    def append(self, count: int) -> None:
        """New rows, a file for each partition."""
        count *= self.scale
        ids = [*range(self._next, self._next + count)]
        self._next += count
        self._commit(self._written(ids))

    def upsert(self, count: int, fresh: int = 0) -> None:
        """Older rows of keys are deleted by equality, newer ones come."""
        fresh *= self.scale
        ids = self._some(count)
        fresh_ids = [*range(self._next, self._next + fresh)]
        self._next += fresh
        self._commit([*self._by_equality(ids), *self._written([*ids, *fresh_ids])])

    def delete_by_equality(self, count: int) -> None:
        """Keys go."""
        ids = self._some(count)
        deletes = self._by_equality(ids)
        for each in ids:
            del self.rows[each], self._where[each]
        self._commit(deletes)

    def delete_by_position(self, count: int) -> None:
        """Rows go by their place, by vectors in version 3."""
        places: dict[str, list[int]] = {}
        for each in self._some(count):
            path = self._where.pop(each)
            places.setdefault(path, []).append(self._positions(path)[each])
            del self.rows[each]
        added, removed = [], []
        for path, positions in sorted(places.items()):
            file = self._files[path][0]
            if self.version > 2:
                old = self._vectors.pop(path, None)
                if old is not None:
                    removed.append(old[0])
                    positions = [*old[1], *positions]
                (made,) = self.writer.deletion_vectors([(file, sorted(positions))])
                self._vectors[path] = made, positions
            else:
                made = self.writer.position_deletes(
                    [(file, each) for each in positions], spec_id=file.spec_id,
                    partition=[*file.record["partition"].values()],
                )  # fmt: skip
            added.append(made)
        self._commit(added, removed)

    def add_column(self) -> None:
        """Rows from now on have one more; those of before read NULL."""
        self.writer.set_fields([*self.writer.schema["fields"], ADDED])
        self.rows = {each: (*row, None) for each, row in self.rows.items()}

    def set_spec(self, partitions: int) -> None:
        """Files from now on are in partitions by p; deletes by equality stay without any."""
        self.writer.set_spec([*BY_P])
        self._partitions, self._is_global = partitions, True

    def tag(self, name: str, kind: str = "tag") -> None:
        """A ref at the current snapshot."""
        self.writer.tag(name, kind=kind)

    def wait(self, hours: float) -> None:
        """Time passes, but not into the future, and never back."""
        latest = int(time.time() * 1000) - 600_000
        later = min(self.writer.clock + int(hours * 3_600_000), latest)
        self.writer.clock = max(self.writer.clock, later)

    def leave_orphans(self, old: int, young: int) -> None:
        """What writers that were killed have left."""
        for number in range(old + young):
            place = self.folder / "data" / f"orphan-{number:03}.parquet"
            place.write_bytes(self.chance.randbytes(self.chance.randint(100, 3000)))
            age = self.chance.uniform(4, 30) if number < old else self.chance.uniform(0, 2)
            then = time.time() - age * 86_400
            os.utime(place, (then, then))
            (self.orphans if number < old else self.young).append(place)

    # ------------------------------------------------------------------ one commit

    def _positions(self, path: str) -> dict[int, int]:
        """The place of each row of a file."""
        if path not in self._places:
            self._places[path] = {each: n for n, each in enumerate(self._files[path][1])}
        return self._places[path]

    def _commit(self, added: Sequence[WrittenFile], removed: Sequence[WrittenFile] = ()) -> None:
        snapshot_id = self.writer.commit(added, removed, rewrite=self.chance.random() < 0.2)
        self.at[snapshot_id] = sorted(self.rows.values())

    def _some(self, count: int) -> list[int]:
        return sorted(
            self.chance.sample(sorted(self.rows), min(count * self.scale, len(self.rows)))
        )

    def _written(self, ids: Sequence[int]) -> list[WrittenFile]:
        made = []
        for partition, members in self._by_partition(ids):
            rows = [self._row(each) for each in members]
            names = [each["name"] for each in self.writer.schema["fields"]]
            file = self.writer.data_file(
                [dict(zip(names, row, strict=True)) for row in rows], partition=partition
            )
            path = file.record["file_path"]
            self._files[path] = file, members
            for each, row in zip(members, rows, strict=True):
                self.rows[each], self._where[each] = row, path
            made.append(file)
        return made

    def _by_equality(self, ids: Sequence[int]) -> list[WrittenFile]:
        if self._is_global and ids:
            return [self.writer.equality_deletes([{"id": each} for each in ids], [1], spec_id=0)]
        return [
            self.writer.equality_deletes([{"id": each} for each in members], [1],
                                         partition=partition)
            for partition, members in self._by_partition(ids)
        ]  # fmt: skip

    def _by_partition(self, ids: Sequence[int]) -> list[tuple[tuple[Any, ...], list[int]]]:
        """A key is always in the same partition, as its row is found there by later deletes."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for each in ids:
            key: tuple[Any, ...] = ()
            if self._partitions > 0:
                key = (self._place(each),)
            groups.setdefault(key, []).append(each)
        return sorted(groups.items())

    def _place(self, number: int) -> int:
        """Most rows are in the first partition."""
        return 0 if number % 3 else number // 3 % max(self._partitions, 1)

    def _row(self, number: int) -> Row:
        value = self.chance.randint(0, 1000)
        row = (
            number, self._place(number), None if value % 7 == 0 else value / 4,
            None if value % 11 == 0 else f"v{value}" * (value % 5),
        )  # fmt: skip
        return row if len(self.writer.schema["fields"]) == 4 else (*row, value)
