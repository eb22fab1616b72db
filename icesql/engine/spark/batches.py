"""Stream the Arrow batches of a DataFrame, by the method that its session supports.

A classic session collects partitions in waves. All uses of PySpark's internals are in this file;
``open_waves`` returns None if they are missing.
"""

from __future__ import annotations

import queue
import struct
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.spark.errors import spark_exceptions
from icesql.engine.spark.releases import (
    arrow_schema,
    java_settings,
    local_socket,
    received,
    table_of,
)
from icesql.engine.spark.sessions import is_connect
from icesql.frozen import Frozen

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from icesql.engine.spark.progress import SparkJobs
    from icesql.scan.plan import ScanPlan


# ------------------------------------------------------------------ waves
# Collecting all partitions in one job keeps the whole result in the JVM, and a reader that pauses
# would block Spark's scheduler, which writes it. A wave is a separate job over partitions of one
# RDD: shuffles below it run only once. The running waves keep the cluster busy, the reader gets
# their rows in order, and the amount of unread rows is limited.


# Waves that run or wait for the reader, in addition to the one that is being read.
_LANES: Final = 3
WAVE_BYTES: Final = 64 << 20
_LENGTH: Final = struct.Struct("!i")


def open_waves(frame: Any, jobs: SparkJobs, expected_bytes: int | None) -> Waves | None:
    """The rows of ``frame``; this thread runs the stages below its last one.

    ``expected_bytes`` is an estimate of their size, None without one. Returns None if this PySpark
    lacks the methods, or if its threads in Java are not those of Python.
    """
    from py4j.clientserver import ClientServer
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    session = frame.sparkSession
    context = session.sparkContext
    if not isinstance(context._gateway, ClientServer):
        return None
    try:
        jvm = _Jvm.of(session)
        jvm.adopt_thread()
        jobs.join()
        rdd = frame._jdf.toArrowBatchRdd()
    except (ImportError, AttributeError):
        return None
    except (Py4JJavaError, Py4JNetworkError):
        raise
    except Py4JError as error:
        if "does not exist" in str(error):
            return None
        raise
    # Messages from the JVM contain batches without their schema.
    return Waves(jvm, rdd, arrow_schema(frame.schema), jobs, expected_bytes)


class _Jvm(Frozen):
    """Spark's own methods that implement ``DataFrame.toArrow`` and ``SparkContext.runJob``."""

    session: Any
    context: Any
    settings: Any
    run_job: Any
    range: Any
    to_list: Any

    @staticmethod
    def of(session: Any) -> _Jvm:
        jvm = session.sparkContext._jvm
        settings = jvm.java.util.Properties()
        settings.putAll(java_settings(session))
        return _Jvm(
            session,
            session.sparkContext._jsc.sc(),
            settings,
            jvm.PythonRDD.runJob,
            jvm.java.util.stream.IntStream.range,
            jvm.java.util.stream.Collectors.toList,
        )

    def adopt_thread(self) -> None:
        """Make jobs of this thread run under the session's settings, as Spark's actions do."""
        self.session._jvm.SparkSession.setActiveSession(self.session._jsparkSession)
        self.context.setLocalProperties(self.settings.clone())


class Waves:
    """An iterator of Arrow batches. One thread reads and closes it."""

    def __init__(
        self, jvm: _Jvm, rdd: Any, schema: pa.Schema, jobs: SparkJobs, expected_bytes: int | None
    ) -> None:
        self._jvm, self._rdd, self._schema, self._jobs = jvm, rdd.toJavaRDD(), schema, jobs
        self._partitions = int(rdd.getNumPartitions())
        self._slots = int(jvm.context.defaultParallelism())
        self._next = 0
        self._size = self._first_size(expected_bytes)
        # The estimated bytes of a partition; waves that were read correct it.
        self._expected = (expected_bytes or 0) / max(1, self._partitions)
        self._read_bytes = self._read_partitions = 0
        self._flying: deque[tuple[range, Future[_Wave]]] = deque()
        self._calls: queue.SimpleQueue[tuple[Future[_Wave], range] | None] = queue.SimpleQueue()
        self._lanes = 0
        self._batches = self._read()
        jobs.waiting = self._partitions

    def _first_size(self, expected_bytes: int | None) -> int:
        most = self._partitions
        if most <= self._slots or (expected_bytes is not None and expected_bytes <= WAVE_BYTES):
            return max(1, most)
        half = -(-self._slots // 2)
        if expected_bytes is None:
            return half
        return max(1, min(half, WAVE_BYTES * most // expected_bytes))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def _read(self) -> Generator[pa.RecordBatch, None, None]:
        while True:
            self._launch()
            if not self._flying:
                return
            partitions, future = self._flying.popleft()
            try:
                wave = future.result()
            except spark_exceptions() as error:
                if len(partitions) > 1 and "spark.driver.maxResultSize" in str(error):
                    self._halve(partitions)
                    continue
                raise
            self._launch()
            yield from wave.batches(self._schema)
            self._adapt(wave.size, len(partitions))

    def _launch(self) -> None:
        while self._next < self._partitions and len(self._flying) < _LANES:
            end = min(self._partitions, self._next + self._size)
            partitions, self._next = range(self._next, end), end
            self._flying.append((partitions, self._submit(partitions)))

    def _halve(self, partitions: range) -> None:
        """Run partitions again in two waves, if they were too large for the driver."""
        middle = partitions.start + len(partitions) // 2
        for part in (range(middle, partitions.stop), range(partitions.start, middle)):
            self._flying.appendleft((part, self._submit(part)))
        self._jobs.waiting += len(partitions)
        self._size = max(1, len(partitions) // 2)

    def _adapt(self, size: int, partitions: int) -> None:
        self._read_bytes += size
        self._read_partitions += partitions
        usual = max(self._expected, self._read_bytes / self._read_partitions)
        fitting = int(WAVE_BYTES / usual) if usual else self._partitions
        self._size = max(1, min(4 * self._size, fitting))

    def _submit(self, partitions: range) -> Future[_Wave]:
        future: Future[_Wave] = Future()
        if len(partitions) == self._partitions:
            # A single wave needs no other thread.
            self._settle(future, partitions)
            return future
        if self._lanes < _LANES:
            self._lanes += 1
            threading.Thread(target=self._lane, name="icesql-wave", daemon=True).start()
        self._calls.put((future, partitions))
        return future

    def _lane(self) -> None:
        """Run one wave after the other."""
        before: tuple[Callable[[], None], ...] = self._jvm.adopt_thread, self._jobs.join
        while (call := self._calls.get()) is not None:
            self._settle(*call, *before)
            before = ()
            del call

    def _settle(
        self, future: Future[_Wave], partitions: range, *before: Callable[[], None]
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            for each in before:
                each()
            future.set_result(self._run(partitions))
        except BaseException as error:
            # ``Future.result`` raises it.
            future.set_exception(error)

    def _run(self, partitions: range) -> _Wave:
        jvm = self._jvm
        wanted = jvm.range(partitions.start, partitions.stop).boxed().collect(jvm.to_list())
        self._jobs.waiting -= len(partitions)
        server = jvm.run_job(jvm.context, self._rdd, wanted)
        file, sock = local_socket((server[0], server[1]))
        return _Wave(server[2], file, sock)

    def close(self) -> None:
        """Cancel the running waves and release all resources."""
        if self._flying or self._next < self._partitions:
            self._jobs.cancel()
        self._next = self._partitions
        self._batches.close()
        for _, future in self._flying:
            if not future.cancel():
                future.add_done_callback(_drop)
        self._flying.clear()
        for _ in range(self._lanes):
            self._calls.put(None)
        self._lanes = 0


class _Wave:
    """The rows of one finished job, which the JVM sends through a socket."""

    def __init__(self, server: Any, file: Any, sock: Any) -> None:
        self._server, self._file, self._sock = server, file, sock
        self.size = 0

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            while (data := self._message()) is not None:
                yield pa.ipc.read_record_batch(pa.py_buffer(data), schema)
            # The stream has no end mark: only Java can confirm that it wrote everything.
            self._server.getResult()
        finally:
            self.close()

    def _message(self) -> bytes | None:
        head = self._file.read(_LENGTH.size)
        if not head:
            return None
        data: bytes = self._file.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
        if len(head) < _LENGTH.size or len(data) < _LENGTH.unpack(head)[0]:
            self._server.getResult()
            raise EOFError("the rows of Spark ended in the middle")
        self.size += len(data)
        return data

    def close(self) -> None:
        self._file.close()
        self._sock.close()


def _drop(future: Future[_Wave]) -> None:
    if future.exception() is None:
        future.result().close()


# ------------------------------------------------------------------ the stream


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
