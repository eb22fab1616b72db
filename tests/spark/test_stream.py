"""Streams of ``format("icesql")``: every appended row once, whatever stops in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icesql.errors import (
    ProgrammingError,
    SnapshotNotFoundError,
    TypeMismatchError,
    UnsupportedSqlError,
    UnsupportedTableError,
)
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "x", "required": False, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]


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


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    """Snapshots 1000 (files 1+2 and 3) and 1001 (file 4)."""
    made = TableWriter(tmp_path / "t", FIELDS)
    append(made, (1, 2), (3,))
    append(made, (4,))
    return made


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
        from icesql.engine.spark.stream import StreamPlanning
        from icesql.engine.spark.table import TableSource

        self.options |= options
        named = {name.replace("_", "-"): str(value) for name, value in self.options.items()}
        source = TableSource.of({"path": self.table.folder, **named}, {})
        self.planning = StreamPlanning(TableSource(source.options, {}, source.columns()))
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
        from icesql.engine.spark.worker import unpack

        start, end = self.start_of(self.committed), self.offsets[self.committed]
        jobs = [unpack(job) for job in self.planning.partitions(start, end)]
        return sorted(n for job in jobs for batch in job() for n in batch["x"].to_pylist())

    def run(self, batches: int = 1_000) -> list[list[int]]:
        """Run to the end; the rows of all batches so far that had any."""
        while batches and self.plan():
            self.rows.append(self.read())
            self.committed += 1
            batches -= 1
        assert batches != 0 or self.committed < 1_000, "a stream that never ends"
        return [each for each in self.rows if each]


@pytest.fixture
def query(spark_here: None, table: TableWriter) -> Any:
    return lambda **options: Query(table, **options)


# ------------------------------------------------------------------ where a stream starts


def test_a_stream_starts_where_the_options_say(query: Any, table: TableWriter) -> None:
    first, second = (each["timestamp-ms"] for each in table.snapshots)
    for options, expected in (
        ({}, [[1, 2, 3, 4]]),
        ({"stream_from": "Earliest"}, [[1, 2, 3, 4]]),
        ({"stream_from": "latest"}, []),
        ({"stream_from": 1001}, [[4]]),
        ({"stream_from_timestamp": 0}, [[1, 2, 3, 4]]),
        ({"stream_from_timestamp": first}, [[1, 2, 3, 4]]),
        ({"stream_from_timestamp": first + 1}, [[4]]),
        ({"stream_from_timestamp": second}, [[4]]),
        ({"stream_from_timestamp": second + 1}, []),
    ):
        assert query(**options).run() == expected, options


def test_a_stream_of_the_future_waits_for_it(query: Any, table: TableWriter) -> None:
    stream = query(stream_from_timestamp=table.clock + 5_000)
    assert stream.run() == []
    append(table, (5,))
    assert stream.run() == []
    table.clock += 60_000
    append(table, (6,))
    assert stream.restart().run() == [[6]]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_table_without_a_snapshot_gives_its_first(
    spark_here: None, tmp_path: Path, start: str
) -> None:
    table = TableWriter(tmp_path / "new", FIELDS)
    stream = Query(table, stream_from=start)
    assert stream.run() == []
    first = append(table, (1,))
    append(table, (2,))
    assert stream.restart().run() == [[1, 2]]

    other = Query(TableWriter(tmp_path / "expired", FIELDS), stream_from=start)
    assert other.run() == []
    first = append(other.table, (1,))
    append(other.table, (2,))
    expire(other.table, first)
    with pytest.raises(SnapshotNotFoundError, match=r"the first snapshot, .* expired"):
        other.run()


def test_latest_holds_what_it_found_until_rows_come(query: Any, table: TableWriter) -> None:
    stream = query(stream_from="latest")
    assert stream.run() == []
    append(table, (5,))
    assert stream.restart().run() == [[5]]


def test_an_unknown_start_is_an_error(query: Any) -> None:
    with pytest.raises(SnapshotNotFoundError, match="snapshot 77"):
        query(stream_from=77).run()


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


def test_a_first_batch_that_runs_again_starts_where_it_did(query: Any, table: TableWriter) -> None:
    stream = query()
    assert stream.plan()
    expire(table, 1000)
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1000, .* expired"):
        stream.restart().run()
    stream = query(stream_from="latest")
    assert stream.plan()
    append(table, (5,))
    assert stream.restart().run() == [[5]]


def test_the_checkpoint_of_another_reader_is_refused(query: Any) -> None:
    stream = query()
    offset = {"version": 1, "snapshot_id": 1000, "position": 1, "scan_all_files": False}
    stream.offsets, stream.committed = [offset], 1
    with pytest.raises(ProgrammingError, match="written by another reader"):
        stream.run()


def test_limits_split_a_snapshot_over_batches(query: Any, table: TableWriter) -> None:
    assert query(max_files_per_batch=1).run() == [[1, 2], [3], [4]]
    assert query(max_rows_per_batch=1).run() == [[1, 2], [3], [4]]
    assert query(max_rows_per_batch=3).run() == [[1, 2, 3], [4]]
    both = query(streaming_max_files_per_micro_batch=2, streaming_max_rows_per_micro_batch=3)
    assert both.run() == [[1, 2, 3], [4]]


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


# ------------------------------------------------------------------ changes other than appends


def test_compaction_gives_no_rows(query: Any, table: TableWriter) -> None:
    table.commit([table.data_file(rows(1, 2, 3, 4))], list(table.live), "replace")
    assert query().run() == [[1, 2, 3, 4]]
    assert query(stream_from=1002).run() == []
    stream = query(max_files_per_batch=1)
    append(table, (5,))
    assert stream.run() == [[1, 2], [3], [4], [5]]


@pytest.mark.parametrize("operation", ["overwrite", "delete", None])
def test_overwrites_and_deletes_fail_or_are_skipped(
    query: Any, table: TableWriter, operation: str | None
) -> None:
    added = [table.data_file(rows(9))] if operation != "delete" else []
    table.commit(added, [table.live[0]], operation or "overwrite")
    if operation is None:
        del table.snapshots[-1]["summary"]["operation"]
        operation = "overwrite"
    append(table, (10,))
    stream = query()
    with pytest.raises(UnsupportedTableError, match=f"on-{operation}"):
        stream.run()
    assert stream.rows == [[1, 2, 3, 4]], "what came before is read"
    assert stream.restart(**{f"on_{operation}": "skip"}).run() == [[1, 2, 3, 4], [10]]
    iceberg = {f"streaming_skip_{operation}_snapshots": "true"}
    assert query(**iceberg).run() == [[1, 2, 3, 4, 10]]
    assert query(stream_from=1003).run() == [[10]]
    other = {"overwrite": "delete", "delete": "overwrite"}[operation]
    with pytest.raises(UnsupportedTableError, match="operation is"):
        query(**{f"on_{other}": "skip"}).run()


def test_a_stream_from_latest_may_start_behind_an_overwrite(query: Any, table: TableWriter) -> None:
    table.commit([table.data_file(rows(9))], list(table.live), "overwrite")
    stream = query(stream_from="latest")
    assert stream.run() == []
    append(table, (10,))
    assert stream.restart().run() == [[10]]


def test_an_unknown_operation_is_refused(query: Any, table: TableWriter) -> None:
    append(table, (5,))
    table.snapshots[-1]["summary"]["operation"] = "upsert"
    table.write_metadata()
    with pytest.raises(UnsupportedTableError, match="operation is upsert"):
        query(stream_from=1002, on_overwrite="skip", on_delete="skip").run()


# ------------------------------------------------------------------ histories that change


def test_an_expired_snapshot_is_an_error_that_says_what_to_do(
    query: Any, table: TableWriter
) -> None:
    stream = query(max_files_per_batch=1)
    stream.run(batches=2)
    append(table, (5,))
    expire(table, 1000)
    with pytest.raises(
        SnapshotNotFoundError, match=r"snapshot 1000, .*expired.*another checkpoint"
    ):
        stream.restart().run()


def test_a_gap_in_the_history_is_no_rollback(query: Any, table: TableWriter) -> None:
    stream = query(stream_from=1000, max_files_per_batch=1)
    stream.run(batches=1)
    append(table, (5,))
    table.tag("kept", 1000)
    expire(table, 1001)
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1000, .*expired"):
        stream.restart().run()


def test_a_rollback_behind_the_stream_is_an_error(query: Any, table: TableWriter) -> None:
    stream = query()
    assert stream.run() == [[1, 2, 3, 4]]
    table.rollback(1000)
    with pytest.raises(SnapshotNotFoundError, match="rolled back"):
        stream.restart().run()
    append(table, (5,))
    with pytest.raises(SnapshotNotFoundError, match="rolled back"):
        stream.restart().run()


def test_a_rollback_before_the_stream_is_none_of_its_business(
    query: Any, table: TableWriter
) -> None:
    stream = query(max_files_per_batch=2)
    assert stream.run(batches=1) == [[1, 2, 3]]
    table.rollback(1000)
    append(table, (5,))
    assert stream.restart().run() == [[1, 2, 3], [5]]


def test_a_branch_is_followed(query: Any, table: TableWriter) -> None:
    table.tag("audit", 1000, kind="branch")
    table.tag("2024", 1000, kind="branch")
    append(table, (7,), branch="audit")
    append(table, (8,))
    stream = query(branch="audit", stream_from=1000)
    assert stream.run() == [[1, 2, 3, 7]]
    append(table, (9,), branch="audit")
    assert stream.restart().run() == [[1, 2, 3, 7], [9]]
    assert query(branch="2024").run() == [[1, 2, 3]]
    assert query(branch="main").run() == [[1, 2, 3, 4, 8]]
    with pytest.raises(SnapshotNotFoundError, match="did you mean"):
        query(branch="audits")
    table.tag("opening", 1000)
    with pytest.raises(SnapshotNotFoundError, match="opening is a tag"):
        query(branch="opening")


# ------------------------------------------------------------------ columns that change


def test_columns_stay_as_they_were_when_the_stream_was_loaded(
    query: Any, table: TableWriter
) -> None:
    stream = query(max_files_per_batch=1)
    assert stream.run(batches=1) == [[1, 2]]
    table.set_fields([{"id": 1, "name": "renamed", "required": False, "type": "long"}])
    table.commit([table.data_file([{"renamed": 5}])])
    assert stream.run() == [[1, 2], [3], [4], [5]]


def test_a_column_of_another_type_is_an_error(query: Any, table: TableWriter) -> None:
    table.set_fields([{"id": 1, "name": "x", "required": False, "type": "int"}])
    stream = query(stream_from="latest")
    assert stream.run() == []
    table.set_fields([{"id": 1, "name": "x", "required": False, "type": "long"}])
    with pytest.raises(TypeMismatchError, match="was int at load"):
        stream.run()


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"snapshot_id": 1000}, "not for readStream; stream-from says"),
        ({"start_snapshot_id": 1000}, "not for readStream"),
        ({"stream_from": "soon"}, "not earliest, latest or a snapshot id"),
        ({"stream_from_timestamp": "noon"}, "not a whole number"),
        ({"stream_from": "latest", "stream_from_timestamp": 1}, "not both"),
        ({"max_files_per_batch": 0}, "not a positive number"),
        ({"max_files_per_trigger": 5}, "did you mean max-files-per-batch"),
        ({"streaming_skip_delete_snapshots": "yes"}, "not true or false"),
        ({"on_delete": "ignore"}, "not fail or skip"),
    ],
)
def test_options_are_checked(query: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ProgrammingError, match=text):
        query(**options)


def test_limits_that_spark_would_not_keep_are_refused(query: Any, table: TableWriter) -> None:
    from icesql.engine.spark.stream import StreamPlanning
    from icesql.engine.spark.table import TableSource

    options = {"path": table.folder, "streaming-max-rows-per-micro-batch": "5"}
    with pytest.raises(UnsupportedSqlError, match=r"max-rows-per-batch.*4\.2"):
        StreamPlanning(TableSource.of(options, {}), takes_limits=False)


def test_before_spark_4_2_the_newest_snapshot_ends_a_batch(query: Any, table: TableWriter) -> None:
    """There ``latestOffset`` is told neither the start nor limits."""
    from icesql.engine.spark.stream import Limits

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
    from icesql.scan.manifest_source import ManifestSource

    stream = query()
    assert stream.run() == [[1, 2, 3, 4]]
    monkeypatch.delattr(ManifestSource, "manifests_of")
    assert not stream.restart().plan()


# ------------------------------------------------------------------ on Spark


class SinkError(Exception):
    pass


class Sink:
    """Collects the rows of batches; fails in the batches of ``failing``, once each."""

    def __init__(self, *failing: int) -> None:
        self.failing, self.batches = set(failing), {}

    def __call__(self, frame: Any, batch: int) -> None:
        found = sorted(row.x for row in frame.collect())
        if batch in self.failing:
            self.failing.remove(batch)
            raise SinkError(f"batch {batch}")
        assert batch not in self.batches
        self.batches[batch] = found

    @property
    def rows(self) -> list[list[int]]:
        return [each for _, each in sorted(self.batches.items()) if each]


def start(session: Any, table: TableWriter, folder: Path, sink: Sink, **options: Any) -> Any:
    trigger = options.pop("trigger", {"availableNow": True})
    reader = session.readStream.format("icesql")
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    writer = reader.load(table.folder).writeStream.foreachBatch(sink).trigger(**trigger)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def test_a_failing_sink_gets_its_batch_again(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    sink = Sink(0, 2)
    for _ in range(2):
        query = start(session, table, tmp_path, sink, max_files_per_batch=1)
        with pytest.raises(StreamingQueryException, match="SinkError"):
            query.awaitTermination(120)
        table.commit([table.data_file(rows(1, 2, 3, 4))], list(table.live), "replace")
    append(table, (5,))
    query = start(session, table, tmp_path, sink, max_files_per_batch=1)
    assert query.awaitTermination(120)
    assert sink.rows == [[1, 2], [3], [4], [5]]


def test_a_stream_runs_by_every_trigger(session: Any, table: TableWriter, tmp_path: Path) -> None:
    """``once`` takes no heed of limits, as Spark has it."""
    sink = Sink()
    query = start(session, table, tmp_path, sink, max_files_per_batch=1, trigger={"once": True})
    assert query.awaitTermination(120)
    assert sink.rows == [[1, 2, 3, 4]]
    append(table, (5,), (6,))
    trigger = {"processingTime": "0 seconds"}
    query = start(session, table, tmp_path, sink, max_files_per_batch=1, trigger=trigger)
    query.processAllAvailable()
    append(table, (7,))
    query.processAllAvailable()
    query.stop()
    assert sink.rows == [[1, 2, 3, 4], [5], [6], [7]]


def test_latest_survives_a_stop_before_any_row(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    sink = Sink()
    for expected in ([], [[5]]):
        query = start(session, table, tmp_path, sink, stream_from="latest")
        assert query.awaitTermination(120)
        assert sink.rows == expected
        append(table, (5,))


def test_an_option_of_batch_reads_is_told_in_the_error(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    query = start(session, table, tmp_path, Sink(), snapshot_id=1000)
    with pytest.raises(StreamingQueryException, match="is for read, not for readStream") as raised:
        query.awaitTermination(120)
    assert "UnboundLocalError" not in str(raised.value)


def test_what_a_stream_refuses_is_told_in_its_error(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    table.commit([], [table.live[0]], "delete")
    query = start(session, table, tmp_path, Sink(), max_files_per_batch=9)
    with pytest.raises(StreamingQueryException, match=r"operation is delete.*on-delete"):
        query.awaitTermination(120)
