"""Streams of ``format("icesql")`` as queries of Spark, with sinks that fail."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.datasource.reads import (
    append,
    rows,
)
from tests.spark.conftest import needs
from tests.writer.table import TableWriter

LIMITS = needs("4.2", why="batches within limits")


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
    """A query that has read something, or has ended."""
    trigger = options.pop("trigger", {"availableNow": True})
    reader = session.readStream.format("icesql")
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    writer = reader.load(table.folder).writeStream.foreachBatch(sink).trigger(**trigger)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    while True:
        query = writer.start()
        while query.isActive and not query.recentProgress:
            time.sleep(0.05)
        # Spark waits ten seconds for the process of a source; a busy machine may need longer.
        if "failed to connect back" not in str(query.exception()):
            return query


@LIMITS
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


@LIMITS
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


@LIMITS
def test_what_a_stream_refuses_is_told_in_its_error(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    table.commit([], [table.live[0]], "delete")
    query = start(session, table, tmp_path, Sink(), max_files_per_batch=9)
    with pytest.raises(StreamingQueryException, match=r"operation is delete.*on-delete"):
        query.awaitTermination(120)
