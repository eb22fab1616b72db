"""Reads and streams of ``format("icesql")`` without a JVM, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("x long, s string")


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": number, "s": f"row {number}"} for number in numbers]


def append(table: TableWriter, *files: tuple[int, ...], **more: Any) -> int:
    """One snapshot of a file for each tuple of numbers."""
    snapshot_id: int = table.commit([table.data_file(rows(*each)) for each in files], **more)
    return snapshot_id


def expire(table: TableWriter, *snapshot_ids: int) -> None:
    table.snapshots = [each for each in table.snapshots if each["snapshot-id"] not in snapshot_ids]
    table.log = [each for each in table.log if each["snapshot-id"] not in snapshot_ids]
    table.write_metadata()


def two_snapshots(folder: Path) -> TableWriter:
    """Snapshots 1000 (files 1+2 and 3) and 1001 (file 4)."""
    made = TableWriter(folder, FIELDS)
    append(made, (1, 2), (3,))
    append(made, (4,))
    return made


def source(table: TableWriter | str, **options: Any) -> Any:
    from icesql.datasource.table import ReadRequest

    path = table if isinstance(table, str) else table.folder
    named = {name.replace("_", "-"): str(value) for name, value in options.items()}
    return ReadRequest.of({"path": path, **named}, {})


def planned(table: TableWriter | str, **options: Any) -> Any:
    """The plan of a read that was just loaded."""
    from icesql.datasource.read import BatchPlanning

    return BatchPlanning(loaded(table, **options))


def loaded(table: TableWriter | str, **options: Any) -> Any:
    found = source(table, **options)
    return replace(found, fixed=found.columns())


def values(planning: Any, *between: dict[str, int]) -> list[dict[str, Any]]:
    from icesql.engine.spark.worker import unpack

    jobs = [unpack(job) for job in planning.partitions(*between)]
    return [row for job in jobs for batch in job() for row in batch.to_pylist()]


def numbers(table: TableWriter | str, **options: Any) -> list[int]:
    return sorted(row["x"] for row in values(planned(table, **options)))


class Query:
    """A streaming query as Spark runs it, with its checkpoint, and without a JVM.

    A batch starts at the end of the one before, the first one at the initial offset, which is asked
    for again whenever that batch runs. Its end is written before it runs, and after it that it did.
    """

    def __init__(self, table: TableWriter, **options: Any) -> None:
        self.table, self.options = table, options
        self.offsets: list[dict[str, int]] = []
        self.committed = 0
        self.rows: list[list[int]] = []
        self.restart()

    def restart(self, **options: Any) -> Query:
        from icesql.datasource.read import StreamPlanning

        self.options |= options
        self.planning = StreamPlanning(loaded(self.table, **self.options))
        return self

    def start_of(self, batch: int) -> dict[str, int]:
        return self.offsets[batch - 1] if batch else self.planning.initial()

    def plan(self) -> bool:
        """Write the end of the next batch; False when there is nothing new."""
        if len(self.offsets) > self.committed:
            return True
        start = self.start_of(self.committed)
        end = self.planning.latest(start, self.planning.limits)
        if end == start:
            return False
        self.offsets.append(end)
        return True

    def read(self) -> list[int]:
        """The rows of the batch that was planned."""
        start, end = self.start_of(self.committed), self.offsets[self.committed]
        return sorted(row["x"] for row in values(self.planning, start, end))

    def run(self, batches: int = 1_000) -> list[list[int]]:
        """Run to the end; the rows of all batches so far that had any."""
        while batches and self.plan():
            self.rows.append(self.read())
            self.committed += 1
            batches -= 1
        assert batches != 0 or self.committed < 1_000, "a stream that never ends"
        return [each for each in self.rows if each]
