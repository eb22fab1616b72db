"""Readers of the Python Data Source: planning beside the driver, reading in the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from icesql.engine.spark.table import TableSource, predicate_of
from icesql.engine.spark.types import spark_schema
from icesql.engine.spark.worker import ScanJob, pack, run, unpack
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.spark.stream import IcesqlStreamReader


class Planning:
    """What one ``load()`` asks for."""

    def __init__(self, options: Mapping[str, str], connect: Mapping[str, Any]) -> None:
        self._source = TableSource(options, connect)

    def schema(self) -> str:
        """The DDL of the columns."""
        return spark_schema(self._source.scan(self._source.table()).projection)

    def reader(self) -> IcesqlReader:
        """For a batch read."""
        return IcesqlReader(self._source)

    def stream_reader(self) -> IcesqlStreamReader:
        """For a stream."""
        from icesql.engine.spark.stream import IcesqlStreamReader

        return IcesqlStreamReader(self._source)


class _Pushing:
    """``pushFilters`` as something that PySpark takes for the inherited one.

    PySpark refuses to run a reader that implements it while
    ``spark.sql.python.filterPushdown.enabled`` is off, and does not tell the reader which it is.
    """

    def __init__(self, reader: IcesqlReader) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._reader = reader

    def __call__(self, filters: list[Any]) -> Iterable[Any]:
        self._reader.push(filters)
        # Pruning only leaves out what cannot match: Spark evaluates all of them again.
        return filters


class IcesqlReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Plans a scan into one partition for each combined task, and reads those."""

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._filter: Predicate = ALWAYS_TRUE

    @property
    def pushFilters(self) -> _Pushing:
        """What PySpark calls where it pushes filters."""
        return _Pushing(self)

    def push(self, filters: Sequence[Any]) -> None:
        """Prune by these filters."""
        scan = self._source.scan(self._source.table())
        self._filter = predicate_of(filters, scan.schema)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each combined task."""
        scan = replace(self._source.scan(self._source.table()), row_filter=self._filter)
        return [InputPartition(pack(ScanJob(task))) for task in self._source.tasks(scan)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; of an empty one, which Spark makes when there are none."""
        if partition is None or partition.value is None:
            return iter(())
        return run(unpack(partition.value))
