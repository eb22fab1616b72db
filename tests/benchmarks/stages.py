"""TPC-H on Spark as stages: DuckDB computes in tasks, and Spark alone exchanges their rows.

A stage reads the files of a table, or the rows of earlier stages, whose rows go to every task of
later stages, are exchanged by a key, or go to the driver; ``stages.tsv`` has its SQL. Rows travel as
Arrow in binary values of at most 4 MB. For an exchange DuckDB hashes the key to a part, and Spark
receives an integer which its own hash sends to that part. The task of a part puts its rows into
tables of DuckDB, which spill, and runs the SQL over them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace
from process import HERE, ROOT
from worker import encoded_rows

from tests.tables import read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.scan.tasks import FileScanTask

SCHEMA: Final = "part INT, payload BINARY"
MEMORY: Final = 512 << 20
# A row of an exchange, and what a task keeps of a part before it sends it.
LARGEST: Final = 4 << 20
KEPT: Final = 1 << 20
# What a task puts into a table of DuckDB at once.
AT_ONCE: Final = 16 << 20
# A table of at most so many bytes is read by the driver.
READ_HERE: Final = 32 << 20
PART: Final = "__part"


class Stage(Struct, frozen=True):
    """One line of the table; ``keys`` are those of an exchange."""

    name: str
    reads: tuple[str, ...]
    goes: str
    sql: str

    @property
    def keys(self) -> str | None:
        return None if self.goes in ("all", "driver") else self.goes


def stages_of(query: str, limit: str) -> list[Stage]:
    return [
        Stage(name, tuple(reads.split(",")), goes, sql)
        for each, name, only, reads, goes, sql in read_table(__file__, "stages.tsv")
        if each == query and only in ("both", limit)
    ]


class Work(Struct, frozen=True):
    """A stage in a task: its SQL, the rows that every task gets, and the integers of the parts."""

    stage: Stage
    sent: Mapping[str, Sequence[bytes]]
    parts: tuple[int, ...]
    peaks: str
    tables: Any = ()  # of a stage that reads a table: its name, and the task without files

    def over(self, files: Sequence[FileScanTask]) -> Iterator[tuple[int, bytes]]:
        """The rows of a stage over files of its table."""
        from icesql.engine.spark.fragments.job import FragmentJob
        from icesql.engine.spark.task_memory import TaskMemory

        work = self

        class Job(FragmentJob, frozen=True):
            """Reads as fragments do; its batches are in DuckDB's own types."""

            def _run(self, query: Any, cursor: Any, streams: list[Any]) -> Iterator[Any]:
                from icesql.engine.duckdb.described import register
                from icesql.engine.duckdb.relations.footer import FooterCache
                from icesql.engine.duckdb.task_rows import task_relation

                ((name, task),) = self.tables
                relation = task_relation(cursor, 0, task, query, streams, FooterCache())
                for each, source in relation.registered.items():
                    register(cursor, each, source)
                sql = f"WITH {name} AS NOT MATERIALIZED ({relation.sql}) {work.stage.sql}"
                used = {k: v for k, v in relation.parameters.items() if f"${k}" in sql}
                yield from work.batches(cursor, sql, used)

        name, task = self.tables
        limit = TaskMemory(total=2 * (MEMORY + (256 << 20)), slots=2)
        read = replace(task, tasks=tuple(files))
        yield from self.split(Job(self.stage.sql, ((name, read),), "UTC", (), limit)())

    def gathered(self, payloads: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """The rows of a stage over all rows of a part, whose payloads come in any order."""
        import duckdb
        import pyarrow as pa

        settings = {"memory_limit": f"{MEMORY >> 20}MiB", "threads": 1}
        with duckdb.connect(config=settings) as connection:
            kept: dict[str, list[pa.Table]] = {}
            made = set[str]()

            def flush(name: str) -> None:
                connection.register("__rows", pa.concat_tables(kept.pop(name)))
                begin = f"INSERT INTO {name}" if name in made else f"CREATE TABLE {name} AS"
                connection.execute(f"{begin} FROM __rows")
                connection.unregister("__rows")
                made.add(name)

            for payload in payloads:
                name, rows = decoded(payload)
                kept.setdefault(name, []).append(rows)
                if sum(each.nbytes for each in kept[name]) > AT_ONCE:
                    flush(name)
            for name in [*kept]:
                flush(name)
            if made >= {*self.stage.reads}:
                yield from self.split(self.batches(connection, self.stage.sql, {}))

    def batches(
        self, cursor: Any, sql: str, parameters: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        for name, payloads in self.sent.items():
            # A table has statistics, by which DuckDB orders joins.
            cursor.register("__rows", table_of(payloads))
            cursor.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM __rows")
            cursor.unregister("__rows")
        if self.stage.keys is not None:
            part = f"(hash({self.stage.keys}) % {len(self.parts)})::UTINYINT AS {PART}"
            sql = f"SELECT *, {part} FROM ({sql})"
        with cursor.sql(sql, params=parameters or None).to_arrow_reader(1 << 16) as reader:
            yield empty(reader.schema)
            yield from reader

    def split(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
        """Rows as payloads, each with the integer of its part; at least an empty one for each part."""
        import numpy as np
        import pyarrow as pa

        count = len(self.parts) if self.stage.keys is not None else 1
        kept: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
        sizes = [0] * count

        def flush(part: int) -> Iterator[tuple[int, bytes]]:
            table = pa.Table.from_batches(kept[part]).combine_chunks()
            kept[part], sizes[part] = [], 0
            step = max(1, table.num_rows * LARGEST // max(table.nbytes, 1))
            for start in range(0, max(table.num_rows, 1), step):
                yield self.parts[part], encoded(self.stage.name, table.slice(start, step))

        for batch in batches:
            ends = [0, batch.num_rows]
            if self.stage.keys is not None:
                numbers = batch.column(batch.num_columns - 1).to_numpy()
                order = np.argsort(numbers, kind="stable")
                ends = [*np.searchsorted(numbers, range(count), sorter=order), batch.num_rows]
                batch = batch.take(pa.array(order)).select(range(batch.num_columns - 1))
            for part, (start, end) in enumerate(pairwise(ends)):
                if end > start or not kept[part]:
                    kept[part].append(batch.slice(start, end - start))
                    sizes[part] += batch.nbytes * (end - start) // max(batch.num_rows, 1)
                if sizes[part] > KEPT:
                    yield from flush(part)
        for part in range(count):
            if kept[part]:
                yield from flush(part)
        peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
        with open(self.peaks, "a") as file:
            file.write(f"{peak[1] if peak else 0}\n")


def empty(schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def encoded(name: str, rows: pa.Table) -> bytes:
    """The rows of a stage in Arrow's stream format, after its name."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    sink.write(name.encode().ljust(8))
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def decoded(payload: bytes) -> tuple[str, pa.Table]:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(payload)[8:]) as stream:
        return payload[:8].decode().strip(), stream.read_all()


def table_of(payloads: Iterable[bytes]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([decoded(each)[1] for each in payloads])


def in_task(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: rows are packed files, or parts with payloads."""
    import pyarrow as pa

    from icesql.engine.spark.worker import unpack

    work: Work = unpack(packed)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is this task's own
    if work.tables:
        found = (
            row
            for batch in batches
            for files in batch.column(0).to_pylist()
            for row in work.over(unpack(files))
        )
    else:
        payloads = (each.as_py() for batch in batches for each in batch.column(1))
        found = work.gathered(payloads)
    kinds = pa.int32(), pa.binary()
    for row in found:
        arrays = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["part", "payload"])


def mapper(work: Work) -> Callable[[Any], Iterator[Any]]:
    from icesql.engine.spark.worker import pack

    packed, folders = pack(work), [str(ROOT), str(HERE)]

    def run(batches: Any) -> Iterator[Any]:
        import sys

        sys.path += [each for each in folders if each not in sys.path]
        from stages import in_task

        yield from in_task(packed, batches)

    return run


class Stages:
    """Runs queries of TPC-H by their names."""

    def __init__(self, session: Any, connection: Any, limit: str, parts: int, peaks: Path) -> None:
        self._session, self._connection, self._limit = session, connection, limit
        self._peaks = peaks
        found = session.sql(
            f"SELECT part, min(n) FROM (SELECT CAST(id AS INT) AS n, "
            f"pmod(hash(CAST(id AS INT)), {parts}) AS part FROM range({100 * parts})) GROUP BY part"
        ).collect()
        self._parts = tuple(number for _, number in sorted(map(tuple, found)))
        self._plan = cache(self._planned)

    def __call__(self, query: str) -> dict[str, Any]:
        import duckdb

        self._peaks.write_text("")
        sent: dict[str, list[bytes]] = {}
        frames: dict[str, Any] = {}
        for stage in stages_of(query, self._limit):
            if stage.name == "result":
                with duckdb.connect() as connection:
                    for name in stage.reads:
                        connection.register(name, table_of(sent[name]))
                    rows = connection.execute(stage.sql).fetchall()
            elif stage.keys is not None:
                frames[stage.name] = self._frame(stage, sent, frames)
            else:
                sent[stage.name] = self._collected(stage, sent, frames)
        peaks = [int(line) >> 10 for line in self._peaks.read_text().split()]
        return {"rows": encoded_rows(rows), "task MB": max(peaks, default=0)}

    def _work(self, stage: Stage, sent: Mapping[str, list[bytes]]) -> Work:
        used = {name: each for name, each in sent.items() if re.search(rf"\b{name}\b", stage.sql)}
        return Work(stage, used, self._parts, str(self._peaks))

    def _collected(
        self, stage: Stage, sent: Mapping[str, list[bytes]], frames: Mapping[str, Any]
    ) -> list[bytes]:
        (table, *_) = stage.reads
        if table not in frames:
            plan, tasks = self._plan(table, _columns(table, stage.sql))
            if plan.projected_bytes <= READ_HERE:
                work = self._over(stage, sent, table, plan)
                return [payload for _, payload in work.over(tasks.whole(0).tasks)]
        return [bytes(row.payload) for row in self._frame(stage, sent, frames).collect()]

    def _over(self, stage: Stage, sent: Any, table: str, plan: Any) -> Work:
        from icesql.scan.tasks import CombinedScanTask

        return replace(self._work(stage, sent), tables=(table, CombinedScanTask((), plan.context)))

    def _frame(
        self, stage: Stage, sent: Mapping[str, list[bytes]], frames: Mapping[str, Any]
    ) -> Any:
        import pyarrow as pa

        from icesql.engine.spark.releases import frame_of_rows
        from icesql.engine.spark.worker import pack

        (table, *others) = stage.reads
        if table in frames:
            frame, work = frames[table], self._work(stage, sent)
            for each in others:
                frame = frame.union(frames[each])
            frame = frame.repartition(len(self._parts), "part")
        else:
            plan, tasks = self._plan(table, _columns(table, stage.sql))
            work = self._over(stage, sent, table, plan)
            packed = pa.array([pack(each.tasks) for each in tasks[0]], pa.binary())
            frame = frame_of_rows(self._session, pa.table({"files": packed}), "files BINARY")
        return frame.mapInArrow(mapper(work), SCHEMA)

    def _planned(self, table: str, columns: str) -> tuple[Any, Any]:
        """The plan of a scan of these columns, and its tasks."""
        from icesql.engine.spark.engine import SparkEngine
        from icesql.engine.spark.tasks import SparkTasks, parallelism

        class Planned(Exception):
            pass

        found = []

        def execute(_: Any, bound: Any, plans: Any, query: Any) -> None:
            found.extend(plans)
            raise Planned

        original, SparkEngine.execute = SparkEngine.execute, execute  # type: ignore[method-assign]
        try:
            self._connection.execute(f"SELECT {columns} FROM {table}")
        except Planned:
            pass
        finally:
            SparkEngine.execute = original  # type: ignore[method-assign]
        return found[0], SparkTasks(found, parallelism(self._session))


def _columns(table: str, sql: str) -> str:
    prefix = "ps" if table == "partsupp" else table[0]
    if f"{table}.*" in sql:
        return "*"
    return ", ".join(sorted(set(re.findall(rf"\b{prefix}_\w+", sql))))


def leave_joins(limit: int) -> None:
    """Leave joins with sides above ``limit`` bytes to Spark, as a cluster of many tasks would."""
    from icesql.engine.spark.fragments.choice import FragmentChoice

    original = FragmentChoice._fits

    def fits(self: Any, scans: Sequence[int]) -> bool:
        small = all(self._plans[each].projected_bytes <= limit for each in scans)
        return small and original(self, scans)

    FragmentChoice._fits = fits  # type: ignore[method-assign]
