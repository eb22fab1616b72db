"""Batch reads of ``format("icesql")`` as tasks: pruned, or of what was appended between."""

from __future__ import annotations

from tests.datasource.reads import (
    planned,
)
from tests.spark.conftest import needs
from tests.writer.table import TableWriter


@needs("4.1", why="filters pushed into Python data sources")
def test_a_pushed_filter_prunes_files(table: TableWriter) -> None:
    from pyspark.sql.datasource import GreaterThan

    from icesql.engine.spark.worker import unpack

    for push, expected in (("true", 1), ("false", 3)):
        planning = planned(table, push_filters=push)
        planning.push([GreaterThan(("x",), 3)])
        jobs = [unpack(partition) for partition in planning.partitions()]
        assert sum(len(job.task.tasks) for job in jobs) == expected


def test_tasks_of_appended_files_carry_no_bounds(table: TableWriter) -> None:
    from icesql.engine.spark.worker import unpack

    jobs = [unpack(job) for job in planned(table, start_snapshot_id=1000).partitions()]
    assert [each.data_file.lower_bounds for job in jobs for each in job.task.tasks] == [None]
