"""Batch reads of ``format("icesql")`` as tasks: pruned, or of what was appended between."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.errors import (
    ProgrammingError,
    SnapshotNotFoundError,
    UnsupportedTableError,
)
from tests.datasource.reads import (
    numbers,
    planned,
    rows,
    two_snapshots,
)
from tests.spark.conftest import needs
from tests.writer.table import TableWriter


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return two_snapshots(tmp_path / "t")


@needs("4.1", why="filters pushed into Python data sources")
def test_a_pushed_filter_prunes_files(spark_here: None, table: TableWriter) -> None:
    from pyspark.sql.datasource import GreaterThan

    from icesql.engine.spark.worker import unpack

    for push, expected in (("true", 1), ("false", 3)):
        planning = planned(table, push_filters=push)
        planning.push([GreaterThan(("x",), 3)])
        jobs = [unpack(partition) for partition in planning.partitions()]
        assert sum(len(job.task.tasks) for job in jobs) == expected


def test_an_incremental_read_gives_what_was_appended(spark_here: None, table: TableWriter) -> None:
    table.commit([table.data_file(rows(1, 2, 3, 4))], list(table.live), "replace")
    table.commit([table.data_file(rows(5)), table.data_file(rows(6))])
    for start, end, expected in (
        (1000, None, [4, 5, 6]),
        (1000, 1001, [4]),
        (1001, 1002, []),
        (1001, 1003, [5, 6]),
        (1003, None, []),
        (1001, 1001, []),
    ):
        options = {} if end is None else {"end_snapshot_id": end}
        assert numbers(table, start_snapshot_id=start, **options) == expected, (start, end)


def test_tasks_of_appended_files_carry_no_bounds(spark_here: None, table: TableWriter) -> None:
    from icesql.engine.spark.worker import unpack

    jobs = [unpack(job) for job in planned(table, start_snapshot_id=1000).partitions()]
    assert [each.data_file.lower_bounds for job in jobs for each in job.task.tasks] == [None]


def test_an_incremental_read_follows_its_branch(spark_here: None, table: TableWriter) -> None:
    table.tag("audit", 1000, kind="branch")
    table.commit([table.data_file(rows(7))], branch="audit")
    assert numbers(table, start_snapshot_id=1000, branch="audit") == [7]
    with pytest.raises(ProgrammingError, match="1001 is not in branch audit"):
        numbers(table, start_snapshot_id=1000, end_snapshot_id=1001, branch="audit")


def test_an_incremental_read_over_a_delete_fails_or_leaves_it_out(
    spark_here: None, table: TableWriter
) -> None:
    table.commit([], [table.live[0]], "delete")
    table.commit([table.data_file(rows(5))])
    with pytest.raises(UnsupportedTableError, match="on-delete"):
        numbers(table, start_snapshot_id=1000)
    assert numbers(table, start_snapshot_id=1000, on_delete="skip") == [4, 5]
    assert numbers(table, start_snapshot_id=1002) == [5]


def test_an_incremental_read_needs_its_start_in_the_history(
    spark_here: None, table: TableWriter
) -> None:
    table.commit([table.data_file(rows(5))])
    table.rollback(1001)
    table.commit([table.data_file(rows(6))])
    with pytest.raises(SnapshotNotFoundError, match="rolled back or belongs to a branch"):
        numbers(table, start_snapshot_id=1002)
    table.snapshots = table.snapshots[1:]
    table.log = table.log[1:]
    table.write_metadata()
    assert numbers(table, start_snapshot_id=1000) == [4, 6], "what followed it is kept"
    with pytest.raises(SnapshotNotFoundError, match="is expired or never was"):
        numbers(table, start_snapshot_id=999)
    with pytest.raises(SnapshotNotFoundError, match="end-snapshot-id"):
        numbers(table, start_snapshot_id=1001, end_snapshot_id=5)
