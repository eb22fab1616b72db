"""Streams of ``format("icesql")``: every appended row once, whatever stops in between."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icesql import errors
from icesql.errors import ProgrammingError, SnapshotNotFoundError, UnsupportedSqlError
from tests.datasource.reads import FIELDS, Query, append, expire, numbers, rows, two_snapshots
from tests.writer.fields import fields
from tests.writer.table import TableWriter


@pytest.fixture
def query(table: TableWriter) -> Any:
    return lambda **options: Query(table, **options)


# ------------------------------------------------------------------ step by step


def cases() -> dict[str, list[list[str]]]:
    """The steps of each case of ``streams.txt``: a word, and what it is of."""
    found: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name("streams.txt").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if word == "case":
            steps = found.setdefault(rest, [])
        elif word and not word.startswith("#"):
            steps.append([word, rest])
    return found


class Steps:
    """A table and a stream of it; a step is a method of its word."""

    def __init__(self, folder: Path) -> None:
        self.table = two_snapshots(folder / "t")
        self.query("")

    def empty(self, _: str) -> None:
        self.table = TableWriter(Path(self.table.folder).with_name("empty"), FIELDS)

    def _options(self, text: str) -> dict[str, str | int]:
        pairs = (each.partition("=")[::2] for each in text.split())
        return {name: self._value(value) for name, value in pairs}

    def _value(self, text: str) -> str | int:
        """A value, or a time in milliseconds: of a snapshot, or of now, and so much later."""
        found = re.fullmatch(r"(?:t(\d)|now)(?:\+(\d+))?", text)
        if found is None:
            return text
        at = self.table.snapshots[int(found[1])]["timestamp-ms"] if found[1] else self.table.clock
        return int(at) + int(found[2] or 0)

    def query(self, options: str) -> None:
        self.stream = Query(self.table, **self._options(options))

    def refused(self, text: str) -> None:
        options, _, error = text.partition(" | ")
        self.fails(error, lambda: self.query(options))

    def fails(self, error: str, run: Callable[[], Any] | None = None) -> None:
        kind, _, text = error.partition(": ")
        with pytest.raises(getattr(errors, kind), match=text):
            (run or self.stream.run)()

    def run(self, expected: str) -> None:
        count, _, batches = expected.partition(" [")
        if count.isdigit():
            assert self.stream.run(int(count)) == ast.literal_eval(f"[{batches}")
        else:
            assert self.stream.run() == ast.literal_eval(expected)

    def read(self, text: str) -> None:
        options, _, expected = text.rpartition("| ")
        assert numbers(self.table, **self._options(options)) == ast.literal_eval(expected)

    def unread(self, text: str) -> None:
        options, _, error = text.partition("| ")
        self.fails(error, lambda: numbers(self.table, **self._options(options)))

    def had(self, expected: str) -> None:
        assert self.stream.rows == ast.literal_eval(expected)

    def plan(self, _: str) -> None:
        assert self.stream.plan()

    def restart(self, options: str) -> None:
        self.stream.restart(**self._options(options))

    def append(self, files: str) -> None:
        words = files.removeprefix("to ").split()
        more = {"branch": words.pop(0)} if files.startswith("to ") else {}
        append(self.table, *(tuple(map(int, each.split(","))) for each in words), **more)

    def replace(self, text: str, operation: str = "replace") -> None:
        added = [self.table.data_file(rows(*map(int, text.split())))] if text else []
        gone = list(self.table.live) if operation == "replace" else [self.table.live[0]]
        self.table.commit(added, gone, operation)

    def overwrite(self, text: str) -> None:
        self.replace(text, "overwrite")

    def delete(self, _: str) -> None:
        self.replace("", "delete")

    def operation(self, name: str) -> None:
        """Another operation of the newest snapshot, or none."""
        summary = self.table.snapshots[-1]["summary"]
        summary.pop("operation")
        summary |= {"operation": name} if name else {}
        self.table.write_metadata()

    def expire(self, snapshots: str) -> None:
        expire(self.table, *map(int, snapshots.split()))

    def rollback(self, snapshot: str) -> None:
        self.table.rollback(int(snapshot))

    def branch(self, text: str, kind: str = "branch") -> None:
        name, snapshot = text.split()
        self.table.tag(name, int(snapshot), kind=kind)

    def tag(self, text: str) -> None:
        self.branch(text, "tag")

    def clock(self, milliseconds: str) -> None:
        self.table.clock += int(milliseconds)

    def column(self, kind: str) -> None:
        self.table.set_fields(fields(f"x {kind}"))


@pytest.mark.parametrize("case", cases())
def test_a_stream_step_by_step(tmp_path: Path, case: str) -> None:
    steps = Steps(tmp_path)
    for word, rest in cases()[case]:
        getattr(steps, word)(rest)


# ------------------------------------------------------------------ exactly once


@pytest.mark.parametrize("limits", [{}, {"max_files_per_batch": 1}, {"max_rows_per_batch": 2}])
@pytest.mark.parametrize("start", ["earliest", "latest", "1001"])
def test_every_row_comes_once_wherever_a_stream_stops(
    query: Any, table: TableWriter, limits: dict[str, int], start: str
) -> None:
    """Stopped before, inside and after every batch, while the table grows and is compacted."""
    expected = {"earliest": [1, 2, 3, 4], "latest": [], "1001": [4]}[start]
    stream = query(stream_from=start, **limits)
    number = 5
    for step in range(12):
        if not stream.plan():
            break
        stream.read()  # the batch fails after its rows were read …
        if step == 1:
            append(table, (number, number + 1), (number + 2,))
            expected += [number, number + 1, number + 2]
        if step == 2:
            live = list(table.live)
            table.commit([table.data_file(rows(*range(1, 8)))], live, "replace")
        stream.restart()  # … and runs again in a new process
        stream.run(batches=1)
    assert sorted(n for batch in stream.run() for n in batch) == expected


def test_the_checkpoint_of_another_reader_is_refused(query: Any) -> None:
    stream = query()
    offset = {"version": 1, "snapshot_id": 1000, "position": 1, "scan_all_files": False}
    stream.offsets, stream.committed = [offset], 1
    with pytest.raises(ProgrammingError, match="written by another reader"):
        stream.run()


def test_available_now_ends_at_what_was_there(query: Any, table: TableWriter) -> None:
    for options, expected in (({}, [[1, 2, 3, 4]]), ({"stream_from": "latest"}, [])):
        stream = query(**options)
        stream.planning.stop_at_newest()
        added = append(table, (9,))
        assert stream.run() == expected
        stream.restart().planning.stop_at_newest()
        assert stream.run() == [*expected, [9]]
        table.rollback(1001)
        expire(table, added)


# ------------------------------------------------------------------ columns that change


def test_columns_stay_as_they_were_when_the_stream_was_loaded(
    query: Any, table: TableWriter
) -> None:
    stream = query(max_files_per_batch=1)
    assert stream.run(batches=1) == [[1, 2]]
    table.set_fields(fields("renamed long"))
    table.commit([table.data_file([{"renamed": 5}])])
    assert stream.run() == [[1, 2], [3], [4], [5]]


def test_limits_that_spark_would_not_keep_are_refused(query: Any, table: TableWriter) -> None:
    from icesql.datasource.read import StreamPlanning
    from icesql.datasource.table import ReadRequest

    options = {"path": table.folder, "streaming-max-rows-per-micro-batch": "5"}
    with pytest.raises(UnsupportedSqlError, match=r"max-rows-per-batch.*4\.2"):
        StreamPlanning(ReadRequest.of(options, {}), takes_limits=False)


def test_before_spark_4_2_the_newest_snapshot_ends_a_batch(query: Any, table: TableWriter) -> None:
    """There ``latestOffset`` is told neither the start nor limits."""
    from icesql.datasource.read import Limits

    for start, expected in (("earliest", [1, 2, 3, 4, 5]), ("latest", [5]), ("1001", [4, 5])):
        stream, found, added = query(stream_from=start), [], 0
        for _ in range(2):
            end = stream.planning.latest(None, Limits())
            stream.offsets.append(end)
            found += stream.restart().read()
            stream.committed += 1
            assert stream.planning.latest(None, Limits()) == end
            added = added or append(table, (5,))
        assert found == expected, start
        table.rollback(1001)
        stream.offsets.append(stream.planning.latest(None, Limits()))
        with pytest.raises(SnapshotNotFoundError, match="rolled back"):
            stream.read()
        expire(table, added)
    stream = query(stream_from_timestamp=table.snapshots[1]["timestamp-ms"])
    stream.offsets.append(stream.planning.latest(None, Limits()))
    assert stream.read() == [4]
    stream.committed += 1
    table.rollback(1000)
    stream.offsets.append(stream.planning.latest(None, Limits()))
    with pytest.raises(SnapshotNotFoundError, match="rolled back"):
        stream.read()


def test_an_idle_stream_opens_no_manifest(
    query: Any, table: TableWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.scan.manifest_reader import ManifestReader

    stream = query()
    assert stream.run() == [[1, 2, 3, 4]]
    monkeypatch.delattr(ManifestReader, "manifests_of")
    assert not stream.restart().plan()
