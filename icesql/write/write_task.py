"""Write one stream of rows into data files; the same on this machine and in a remote worker."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
from msgspec.structs import asdict

from icesql.context import Progress, QueryContext
from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec, partition_types
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.scan.deletes.delete_index import partition_key
from icesql.storage.new_files import check_writable
from icesql.storage.open import Storage
from icesql.write.assignment import Assignment
from icesql.write.metrics import MetricsMode, metrics_modes
from icesql.write.options import (
    DataLocations,
    WriteOptions,
    check_table,
    data_locations,
    partition_path,
    write_options,
)
from icesql.write.ordering import (
    Clusters,
    Piece,
    SortKey,
    divide,
    partition_columns,
    sort_keys,
    sorted_rows,
)
from icesql.write.parquet_file import FileShape, PlainColumns, WrittenFile
from icesql.write.parquet_schema import parquet_schema
from icesql.write.rolling_files import Encoders, ParallelWriters, RollingFiles, Rows
from icesql.write.written import FIELDS, EncodedOrigins, OriginsInOrder, Written, with_origins

# The distribution of a statement's rows over tasks: ``write.distribution-mode``.

Distribution: TypeAlias = Literal["none", "hash", "range"]
_KEY: Final = "write.distribution-mode"


def distribution(
    properties: Mapping[str, str], spec: PartitionSpec, is_sorted: bool
) -> Distribution:
    """``hash`` sends the rows of a partition to one task, ``range`` gives tasks ranges of rows.

    The default is ``range`` for a table with a sort order, else ``hash`` for one with partitions. A
    mode for which the table has no key becomes ``none``. Raises UnsupportedTableError for others.
    """
    partitioned = not spec.is_unpartitioned
    default = "range" if is_sorted else "hash"
    mode = properties.get(_KEY, default).lower()
    if mode not in ("none", "hash", "range"):
        raise UnsupportedTableError(f"the table property {_KEY} = {mode!r}: none, hash or range")
    if mode == "range" and not is_sorted:
        mode = "hash"
    if mode == "hash" and not partitioned:
        mode = "none"
    return cast("Distribution", mode)


# Bytes of rows: given to a writing thread at once, the least of these for a further encoder, sorted
# at once, and kept in memory for all partitions: twice as much takes 150 MB more and no less time.
_PIECE_BYTES: Final = 64 << 20
_FULL_PIECE_BYTES: Final = 24 << 20
_SORTED_BYTES: Final = 256 << 20
_CLUSTER_BYTES: Final = 128 << 20
_SMALLEST_BUDGET: Final = 1 << 20
_MOST_THREADS: Final = 4
_ROWS_AT_ONCE: Final = 1 << 17


class WriteTask(Frozen):
    """Everything that is necessary to write rows of a table; picklable.

    ``number`` is that of this task in its statement, ``attempt`` distinguishes retries of the task,
    ``operation`` is unique to the statement: together they make file names unique.
    ``sort_order_id`` is 0 if rows are not sorted. ``clustered`` rows come partition by partition,
    so that they are written as they come. ``parallel_files`` limits how many files are written in
    parallel, None for a suitable number: with 1, rows keep their order over files, and several row
    groups of a file are encoded at once. ``distribution`` is how to distribute rows over tasks.
    With ``origins`` the last two columns of the rows are the origin of each row (``row_origins``).
    """

    assignment: Assignment
    spec: PartitionSpec
    locations: DataLocations
    modes: dict[int, MetricsMode]
    options: WriteOptions
    storage: Storage
    operation: str
    number: int
    sort_keys: tuple[SortKey, ...]
    sort_order_id: int
    attempt: int = 0
    clustered: bool = False
    parallel_files: int | None = None
    distribution: Distribution = "none"
    origins: bool = False

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.assignment.schema


def write_task_for(
    metadata: TableMetadata,
    storage: Storage,
    sources: tuple[int | None, ...],
    *,
    zone: str = "UTC",
    spec: PartitionSpec | None = None,
    schema: Schema | None = None,
    number: int = 0,
) -> WriteTask:
    """The task to write rows with a table's current schema, spec, order and properties.

    ``sources`` are the indices of the columns in the batches; see ``Assignment``. ``schema`` is
    given for files with more than the table's columns, such as row lineage. Raises
    UnsupportedTableError for a table or type that icesql cannot write.
    """
    check_table(metadata)
    check_writable(storage)
    spec = metadata.spec if spec is None else spec
    schema = metadata.schema if schema is None else schema
    _check_spec(spec, schema)
    order = metadata.sort_orders.get(metadata.default_sort_order_id)
    keys = () if order is None else sort_keys(order, schema) or ()
    kept = [key.source_id for key in keys if parse_transform(key.transform).preserves_order]
    return WriteTask(
        Assignment(schema, sources, zone),
        spec,
        data_locations(metadata),
        metrics_modes(schema, metadata.properties, kept),
        write_options(metadata.properties),
        storage,
        str(uuid.uuid4()),
        number,
        keys,
        metadata.default_sort_order_id if keys else 0,
        distribution=distribution(metadata.properties, spec, bool(keys)),
    )


def _check_spec(spec: PartitionSpec, schema: Schema) -> None:
    for each in spec.fields:
        source = schema.field_by_id.get(each.source_id)
        transform = parse_transform(each.transform)
        if len(each.source_ids) != 1 or source is None:
            raise UnsupportedTableError(f"writing to a table partitioned by {each.name}")
        if not transform.accepts(source.type):
            raise UnsupportedTableError(
                f"writing to a table partitioned by {each.transform} of {source.name}"
            )


def write_task(
    task: WriteTask,
    batches: Iterable[pa.RecordBatch],
    query: QueryContext | None = None,
    schema: pa.Schema | None = None,
) -> Written:
    """Write all rows of ``batches`` and describe the resulting files.

    ``schema`` is that of the batches, checked before a row is read. Batches in the files' own
    schema are not converted. Memory is bounded for any number of rows and partitions. If anything
    fails, no file is left. Raises what ``Assignment.convert`` raises, OperationalError for a file
    that cannot be written and QueryCancelledError.
    """
    return _Writing(task, query or QueryContext()).run(batches, schema)


class _Writing:
    def __init__(self, task: WriteTask, query: QueryContext) -> None:
        self._task, self._query = task, query
        # The origins of rows that keep their order are kept apart from the rows.
        is_one = not (task.spec.fields or task.sort_keys)
        self._keeps_order = task.clustered or is_one
        self._carries_origins = task.origins and not self._keeps_order
        self._origins = OriginsInOrder() if task.origins and self._keeps_order else None
        self._shape = FileShape(
            task.schema, task.modes, task.options, origins=self._carries_origins
        )
        self._types = partition_types(task.spec, task.schema)
        # Partition tuples by number; () for a table without partitions.
        self._tuples: list[tuple[Any, ...]] = []
        self._lock, self._count = threading.Lock(), 0
        threads = min(query.settings.threads or os.cpu_count() or 1, _MOST_THREADS)
        # Rows without partitions and sort order go to one file after the other.
        parallel_files = task.parallel_files or (1 if is_one else threads)
        budget = max(query.settings.memory_limit // 6, _SMALLEST_BUDGET)
        # Small row groups are slow to read: fewer threads are better.
        beside = max(min(threads, budget // _FULL_PIECE_BYTES) // parallel_files, 1)
        self._pool = ThreadPoolExecutor(parallel_files * beside, "icesql-encode")
        self._encoders = Encoders(self._pool, beside) if beside > 1 else None
        self._plain_columns = PlainColumns()
        self._piece_bytes = min(
            _PIECE_BYTES, max(budget // (parallel_files * beside), _SMALLEST_BUDGET)
        )
        self._budget = budget
        self._writers = ParallelWriters(parallel_files, self._files_of, query)
        self._read = 0

    def run(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema | None) -> Written:
        with self._pool:
            try:
                if schema is not None:
                    self._task.assignment.check(schema)
                self._write(self._converted(batches))
                written = self._writers.finish()
            except BaseException:
                self._writers.abandon()
                raise
        files = tuple(self._data_file(number, each) for number, each in written)
        return Written(
            files,
            rows=self._read,
            origins=self._origins_of([each for _, each in written]),
        )

    def _origins_of(self, files: Sequence[WrittenFile]) -> tuple[EncodedOrigins, ...]:
        if self._carries_origins:
            return tuple(each.origins for each in files)
        # If rows were of several partitions they were reordered, so that origins are unknown.
        if self._origins is None or len(self._tuples) > 1:
            return ()
        return self._origins.of_files([each.rows for each in files])

    def _converted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows in the files' schema; rows with these names and ids already are unchanged."""
        stored = parquet_schema(self._task.schema)
        carried = with_origins(stored)
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                self._query.check()
                part = batch.slice(start, _ROWS_AT_ONCE)
                origins = []
                if self._task.origins:
                    origins = part.columns[-len(FIELDS) :]
                    part = part.select([*range(part.num_columns - len(FIELDS))])
                if not part.schema.equals(stored, check_metadata=True):
                    part = self._task.assignment.convert(part, self._read)
                if self._origins is not None:
                    self._origins.add(*origins)
                elif origins:
                    part = pa.RecordBatch.from_arrays([*part.columns, *origins], schema=carried)
                yield part
                self._read += part.num_rows
                self._query.report(Progress("writing rows", self._read))

    def _write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Pass the rows to the writers."""
        task = self._task
        with closing(self._pieces(batches)) as pieces:
            for piece in pieces:
                # As in Java, -0.0 and 0.0 differ; NaN equals NaN.
                key = partition_key(piece.values)
                if not self._tuples or partition_key(self._tuples[-1]) != key:
                    self._tuples.append(piece.values)
                rows = piece.rows
                if task.sort_keys:
                    rows = sorted_rows(rows, task.schema, task.sort_keys)
                self._writers.put(Rows(len(self._tuples) - 1, rows, bool(task.sort_keys)))

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Generator[Piece, None, None]:
        """The rows in pieces of one partition, those of a partition one after the other."""
        task = self._task
        if self._keeps_order:
            for table in _gathered(batches, self._piece_bytes):
                yield from divide(table, partition_columns(table, task.spec, task.schema))
            return
        clusters = Clusters(
            task.spec,
            task.schema,
            min(_CLUSTER_BYTES, self._budget),
            self._query.settings.temp_directory,
            self._pool,
        )
        with closing(clusters):
            for batch in batches:
                clusters.add(batch)
            # Sorted pieces become one file each, so they are larger.
            sorted_bytes = min(_SORTED_BYTES, self._budget)
            yield from clusters.pieces(sorted_bytes if task.sort_keys else self._piece_bytes)

    def _files_of(self, partition: int) -> RollingFiles:
        task, values = self._task, self._tuples[partition]
        folder = partition_path(task.spec, task.schema, self._types, values)
        return RollingFiles(
            task.storage,
            self._shape,
            lambda: task.locations.path(self._name(), folder),
            self._encoders,
            self._plain_columns,
        )

    def _name(self) -> str:
        with self._lock:
            self._count += 1
            count = self._count
        task = self._task
        return f"{task.number:05d}-{task.attempt}-{task.operation}-{count:05d}.parquet"

    def _data_file(self, partition: int, file: WrittenFile) -> DataFile:
        return DataFile(
            FileContent.DATA,
            file.path,
            "PARQUET",
            self._task.spec.spec_id,
            self._tuples[partition],
            file.rows,
            file.size,
            sort_order_id=self._task.sort_order_id,
            **asdict(file.metrics),
        )


def _gathered(batches: Iterator[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    """Combine batches to tables of about ``most_bytes``."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        size += batch.nbytes
        if size >= most_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
