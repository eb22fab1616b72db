"""Stream the Arrow batches of a DataFrame, by the method that its session supports."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.spark.incremental_collect import WAVE_BYTES, open_waves
from icesql.engine.spark.releases import arrow_schema, received, table_of
from icesql.engine.spark.session.clients import is_connect

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from icesql.engine.spark.progress import SparkJobs
    from icesql.scan.plan import ScanPlan


# Bytes in Arrow per byte of a data file, roughly: lineitem of TPC-H has 4.3.
_ARROW_BYTES: Final = 4


def stream(
    frame: Any, jobs: SparkJobs, expected_bytes: int | None
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of ``frame`` in its order, computed as they are read; closing it ends the jobs.

    ``expected_bytes`` is an estimate of their size, None without one.
    """
    with jobs.watched():
        if is_connect(frame.sparkSession):
            yield from _connect_batches(frame, jobs)
            return
        waves = open_waves(frame, jobs, expected_bytes)
        if waves is None:
            yield from table_of(frame).to_batches(max_chunksize=65_536)
            return
        with closing(waves):
            yield from waves


def expected_bytes(tree: exp.Expr, plans: Sequence[ScanPlan]) -> int | None:
    """A rough upper bound of the bytes of a query's rows in Arrow; None if there is none."""
    from sqlglot import exp

    if any(plan.scan.frame is not None for plan in plans):
        return None
    size = _ARROW_BYTES * sum(plan.report.projected_bytes for plan in plans)
    reducing = exp.Where, exp.Join, exp.Group, exp.AggFunc, exp.Distinct, exp.Limit, exp.Having
    return size if size <= WAVE_BYTES or not tree.find(*reducing) else None


def _connect_batches(frame: Any, jobs: SparkJobs) -> Iterator[pa.RecordBatch]:
    """Batches from the server as they arrive: partition by partition, with gRPC's flow control."""
    from pyspark.sql.types import StructType

    try:
        # The methods that implement DataFrame.toLocalIterator.
        tables = received(frame, frame.sparkSession.client.to_table_as_iterator)
    except AttributeError:
        yield from table_of(frame).to_batches(max_chunksize=65_536)
        return
    schema = None
    ended = False
    try:
        for each in tables:
            if isinstance(each, StructType):
                schema = arrow_schema(each)
                continue
            table = each if schema is None else each.cast(schema)
            yield from table.to_batches()
        ended = True
    finally:
        if not ended:
            jobs.cancel()
        tables.close()


def plan_lines(frame: Any) -> list[str]:
    """Spark's physical plan of a DataFrame, as ``DataFrame.explain`` prints it."""
    if is_connect(frame.sparkSession):
        text = frame._explain_string(mode="formatted")
    else:
        # The method behind DataFrame.explain, which prints instead.
        jvm = frame.sparkSession.sparkContext._jvm
        text = jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted")
    return str(text).splitlines()
