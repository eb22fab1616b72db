"""``format("icesql")`` of PySpark's readers and writers: a Python Data Source over scan tasks.

PySpark's classes are nested in functions, so that they are pickled by value and work in processes
that first have to find icesql. The work is in ``read`` and ``write``, which defines the
options of writers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from icesql.datasource.options import CONNECT
from icesql.datasource.write import SessionFacts
from icesql.engine.spark.errors import MISSING
from icesql.engine.spark.releases import (
    OLDEST_WITH_SOURCES,
    register_source,
    require_release,
)
from icesql.engine.spark.sessions import session_cache
from icesql.engine.spark.start_up import TIME_ZONE, require_pyspark
from icesql.engine.spark.task_memory import memory_of
from icesql.engine.spark.worker import finder, pack
from icesql.engine.spark.writing.task_runs import speculates
from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from icesql.datasource.read import Json

_CONNECT = (*CONNECT, "properties")
# Makes a method that runs in Spark's processes.
Planned = Callable[[Callable[..., Any]], Callable[..., Any]]


def register(session: Any, **connect: Any) -> None:
    """Let ``format("icesql")`` of a session read and write Iceberg tables, also as streams.

    ``connect`` defines where names are looked up, as in ``icesql.connect``: catalog, uri,
    warehouse, properties. It is part of the source, not of its options, so no plan or log shows it.
    Raises ProgrammingError for another name, NotSupportedError if PySpark is too old.
    """
    unknown = set(connect) - set(_CONNECT)
    if unknown:
        raise ProgrammingError(
            f"register() knows {', '.join(_CONNECT)}, not {', '.join(sorted(unknown))}"
        )
    require_pyspark()
    require_release('format("icesql")', OLDEST_WITH_SOURCES)
    given = {name: value for name, value in connect.items() if value is not None}
    chosen = dict(given)
    if "warehouse" in chosen:
        chosen["warehouse"] = str(chosen["warehouse"])
    if "catalog" in chosen:
        chosen["name"] = chosen.pop("catalog")
    source = _data_source(finder(), chosen, pack(_facts(session)))
    register_source(session, source)
    session_cache(session)["connect"] = given


def _facts(session: Any) -> SessionFacts:
    zone = str(session.conf.get(TIME_ZONE) or "UTC")
    memory = memory_of(lambda name: session.conf.get(name, None))
    return SessionFacts(memory, zone, speculates(session))


def _planner(find: Callable[[], None]) -> Planned:
    """A method that runs in Spark's processes, where its errors end with icesql's own line."""
    missing = MISSING

    def planned(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            find()
            failed: Exception
            try:
                from icesql.datasource.read import ReadError
                from icesql.errors import Error, OperationalError

                try:
                    return method(*given, **named)
                except Error as error:
                    failed = ReadError(error)
                except ModuleNotFoundError as error:
                    failed = ReadError(OperationalError(f"{error}{missing}"))
            except ModuleNotFoundError as error:  # icesql itself
                failed = ModuleNotFoundError(f"{error}{missing}")
            raise failed

        return called

    return planned


def _data_source(find: Callable[[], None], connect: dict[str, Any], facts: bytes) -> Any:
    """The DataSource class."""
    from pyspark.sql.datasource import DataSource

    planned = _planner(find)
    batch, stream = _batch_reader(planned), _stream_reader(planned)
    batch_writer, stream_writer = _writers(planned)

    class IcesqlDataSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "icesql"

        def __init__(self, options: dict[str, str]) -> None:
            super().__init__(options)
            # From load(): Spark keeps this object; bytes do not need icesql to be unpickled.
            self._columns: bytes | None = None

        def _request(self) -> Any:
            find()
            from icesql.datasource.table import ReadRequest
            from icesql.engine.spark.worker import unpack

            columns = None if self._columns is None else unpack(self._columns)
            return ReadRequest.of(dict(self.options), connect, columns)

        @planned
        def schema(self) -> str:
            request = self._request()
            from icesql.engine.spark.types import spark_schema
            from icesql.engine.spark.worker import pack

            columns = request.columns()
            self._columns = pack(columns)
            return spark_schema(columns.projection)

        @planned
        def reader(self, schema: Any) -> Any:
            request = self._request()
            from icesql.datasource.read import BatchPlanning
            from icesql.engine.spark.releases import OLDEST_WITH_FILTERS, require_release

            if request.options.push_filters:
                require_release("push-filters=true", OLDEST_WITH_FILTERS)
            return batch(BatchPlanning(request))

        def streamReader(self, schema: Any) -> Any:
            def planning() -> Any:
                request = self._request()
                from icesql.datasource.read import StreamPlanning

                return StreamPlanning(request, takes_limits=stream.takes_limits)

            return stream(planning)

        @planned
        def writer(self, schema: Any, overwrite: bool) -> Any:
            return batch_writer(self._write(schema, overwrite, streams=False))

        @planned
        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            from icesql.engine.spark.releases import OLDEST_WITH_STREAM_WRITERS, require_release

            require_release("writeStream", OLDEST_WITH_STREAM_WRITERS)
            return stream_writer(self._write(schema, overwrite, streams=True))

        def _write(self, schema: Any, overwrites: bool, *, streams: bool) -> bytes:
            from icesql.datasource.write import plan_write, write_options
            from icesql.engine.spark.worker import pack, unpack

            # Bytes, for processes that cannot import icesql yet.
            chosen = write_options(dict(self.options), overwrites=overwrites, streams=streams)
            return pack(plan_write(chosen, connect, schema, unpack(facts), overwrites=overwrites))

    return IcesqlDataSource


def _writers(planned: Planned) -> tuple[Any, Any]:
    """The classes of writers: for a batch and, from PySpark 4.1 on, for a stream."""
    from pyspark.sql import datasource

    class Message(datasource.WriterCommitMessage):
        def __init__(self, report: bytes) -> None:
            self.report = report

    class Writer:
        def __init__(self, plan: bytes) -> None:
            self._plan = plan

        @planned
        def write(self, batches: Iterator[Any]) -> Message:
            from icesql.datasource.write import write_rows

            return Message(write_rows(self._plan, batches))

        @planned
        def commit(self, messages: list[Any], batch: int | None = None) -> None:
            from icesql.datasource.write import commit_rows

            commit_rows(self._plan, [each.report for each in messages], batch)

        @planned
        def abort(self, messages: list[Any], batch: int | None = None) -> None:
            from icesql.datasource.write import abort_rows

            abort_rows(self._plan, [None if each is None else each.report for each in messages])

    class IcesqlWriter(Writer, datasource.DataSourceArrowWriter):
        pass

    of_streams = getattr(datasource, "DataSourceStreamArrowWriter", None)
    return IcesqlWriter, of_streams and type("IcesqlStreamWriter", (Writer, of_streams), {})


def _rows(planned: Planned) -> Callable[[Any], Iterator[Any]]:
    @planned
    def read(partition: Any) -> Iterator[Any]:
        """The batches of a packed job; none for the empty job that Spark adds if there are none."""
        if partition is None or partition.value is None:
            return iter(())
        from icesql.engine.spark.worker import unpack

        batches: Iterator[Any] = unpack(partition.value)()
        return batches

    return read


def _batch_reader(planned: Planned) -> Any:
    from pyspark.sql.datasource import DataSourceReader, InputPartition

    rows = _rows(planned)

    class Pushing:
        """A ``pushFilters`` that PySpark takes for the inherited method.

        PySpark refuses to run a reader that implements it while
        ``spark.sql.python.filterPushdown.enabled`` is off, without informing the reader.
        """

        def __init__(self, push: Callable[[list[Any]], None]) -> None:
            self.__func__ = DataSourceReader.pushFilters
            self._push = push

        def __call__(self, filters: list[Any]) -> Iterable[Any]:
            self._push(filters)
            # Pruning only excludes files without a match: Spark evaluates all filters again.
            return filters

    class IcesqlReader(DataSourceReader):
        def __init__(self, planning: Any) -> None:
            self._planning = planning

        def __getstate__(self) -> dict[str, Any]:
            # Planning ends before the reader is sent to the workers.
            return {}

        @property
        def pushFilters(self) -> Pushing:
            return Pushing(self._planning.push)

        @planned
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(job) for job in self._planning.partitions()]

        def read(self, partition: Any) -> Iterator[Any]:
            return rows(partition)

    return IcesqlReader


def _stream_reader(planned: Planned) -> Any:
    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

    rows = _rows(planned)

    class IcesqlStreamReader(DataSourceStreamReader):
        takes_limits = False

        def __init__(self, planning: Callable[[], Any]) -> None:
            self._start, self._planned = planning, None

        def __getstate__(self) -> dict[str, Any]:
            return {}

        @property
        def _planning(self) -> Any:
            # PySpark hides errors that are raised before the reader exists.
            if self._planned is None:
                self._planned = self._start()
            return self._planned

        def initialOffset(self) -> Json:
            offset: Json = self._planning.initial()
            return offset

        def latestOffset(self, start: Json | None = None, limit: Any = None) -> Json:
            planning = self._planning
            from icesql.datasource.read import Limits

            everything = limit is None or type(limit).__name__ == "ReadAllAvailable"
            offset: Json = planning.latest(start, Limits() if everything else planning.limits)
            return offset

        def getDefaultReadLimit(self) -> Any:
            from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

            limits = self._planning.limits
            if limits.files is not None:
                return ReadMaxFiles(limits.files)
            if limits.rows is not None:
                return ReadMaxRows(limits.rows)
            return ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:
            self._planning.stop_at_newest()

        def partitions(self, start: Json, end: Json) -> list[InputPartition]:
            return [InputPartition(job) for job in self._planning.partitions(start, end)]

        def read(self, partition: Any) -> Iterator[Any]:
            return rows(partition)

    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before PySpark 4.2
        return IcesqlStreamReader

    class IcesqlLimitedReader(IcesqlStreamReader, SupportsTriggerAvailableNow):
        """A reader with limits for each batch, and with a stop at the newest snapshot."""

        takes_limits = True

    return IcesqlLimitedReader
