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
from tests.datasource.reads import FIELDS, Query, append, expire, rows, two_snapshots
from tests.writer.table import TableWriter


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return two_snapshots(tmp_path / "t")


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


@pytest.mark.parametrize("start", [{}, {"stream_from": "earliest"}, {"stream_from_timestamp": 0}])
def test_a_start_before_an_expired_history_says_what_it_lacks(
    query: Any, table: TableWriter, start: dict[str, Any]
) -> None:
    """Also of a compaction that the history begins with, of which no row would come."""
    begun = query(**start)
    begun.run()
    expire(table, 1000)
    for _ in range(2):
        with pytest.raises(SnapshotNotFoundError, match=r"1000, the parent .*came before: read"):
            query(**start).run()
    append(table, (5,))
    assert begun.run() == [[1, 2, 3, 4], [5]]  # one that is past it needs nothing of it
    assert query(stream_from="1001").run() == [[4, 5]]
    assert query(stream_from="latest").run() == []
    later = table.snapshots[0]["timestamp-ms"] + 1
    assert query(stream_from_timestamp=later).run() == [[5]]
    table.commit([table.data_file(rows(1, 2, 3, 4, 5))], list(table.live), "replace")
    expire(table, 1001, 1002)
    with pytest.raises(SnapshotNotFoundError, match="the parent of the oldest one"):
        query(**start).run()


def test_an_unknown_start_is_an_error(query: Any) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 77 \(stream-from\).*newest: 1001"):
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
        ({"stream_from": "latest", "stream_from_timestamp": 1}, "only one of"),
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
    from icesql.datasource.stream_read import StreamPlanning
    from icesql.datasource.table import ReadRequest

    options = {"path": table.folder, "streaming-max-rows-per-micro-batch": "5"}
    with pytest.raises(UnsupportedSqlError, match=r"max-rows-per-batch.*4\.2"):
        StreamPlanning(ReadRequest.of(options, {}), takes_limits=False)


def test_before_spark_4_2_the_newest_snapshot_ends_a_batch(query: Any, table: TableWriter) -> None:
    """There ``latestOffset`` is told neither the start nor limits."""
    from icesql.datasource.stream_read import Limits

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
