"""Write a DataFrame or a stream to a table: the driver plans and commits, tasks write.

    both           path · catalog, uri, warehouse · branch · merge-schema (mergeSchema)
                   snapshot-property.NAME: keys of the snapshot's summary
    batch          wap-id · overwrite-mode: static (default) or dynamic, with mode("overwrite")
    stream         txn-app-id: the writer's name; with the batch number, each row comes once

The planning process, the workers and the committing process share only the bytes that Spark
passes on. Spark also calls abort after a failed commit: the commit itself removes its files.
Source: Iceberg Java ``SparkWriteOptions``, ``SparkWrite`` (the keys of a stream's snapshots).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import field
from msgspec.structs import replace

from icesql.catalog.table import table_from_metadata
from icesql.commit.branches import Branch, branch_head
from icesql.commit.file_changes import FileChanges, as_it_is
from icesql.commit.rows import commit_files
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.datasource.options import (
    CONNECT,
    connect_options,
    flag,
    split_identifier,
    unknown_option,
)
from icesql.datasource.table import find_table
from icesql.engine.result_schema import ResultColumn, ResultType, arrow_schema
from icesql.engine.spark.own_text import declared_columns
from icesql.engine.spark.task_memory import TaskMemory
from icesql.engine.spark.types import declared_batch
from icesql.engine.spark.worker import unpack
from icesql.engine.spark.writing.job import WriteJob, is_repeated, task_numbers, worker_query
from icesql.errors import ProgrammingError, UnsupportedSqlError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.modify.insert import column_sources, insert_evolution, overwrite
from icesql.modify.targets import check_branch, wap_branch
from icesql.scan.changes import ancestors
from icesql.sql.writes.statements import Insert, TableName
from icesql.storage.new_files import Uncommitted
from icesql.write.write_task import WriteTask, write_task_for
from icesql.write.written import Written, reported, types_of

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.catalog.table import Catalog, Table
    from icesql.iceberg.metadata.snapshot import Snapshot

_PROPERTY: Final = "snapshot-property."
_BATCH: Final = ("wap-id", "overwrite-mode")
_STREAM: Final = ("txn-app-id",)
_KNOWN: Final = ("path", *CONNECT, "branch", "merge-schema", *_BATCH, *_STREAM)
_SPELLED: Final = {"mergeschema": "merge-schema"}
# Spark's own options, and Iceberg's for behaviour that icesql always has.
_WITHOUT_EFFECT: Final = ("checkpointlocation", "fanout-enabled", "check-ordering")
_APP: Final = "spark.sql.streaming.queryId"
_EPOCH: Final = "spark.sql.streaming.epochId"
_QUERY: Final = "icesql.stream-query-id"
# Spark aborts while it still ends the other tasks: it lets a Python worker go on for this time
# (``spark.python.task.killTimeout``, 2 s) and a second to end.
_KILL_SECONDS: Final = 3.0
_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_ZONE_PROPERTY: Final = "spark.sql.session.timeZone"


class SessionFacts(Frozen):
    """Facts about the session that registered the source; its processes have no session."""

    memory: TaskMemory
    zone: str
    speculates: bool


class WriteOptions(Frozen):
    """The options of one ``save()`` or ``start()``; "" and None for options that were not given."""

    path: str
    connect: Mapping[str, str]
    branch: str | None = None
    wap_id: str | None = None
    dynamic: bool = False
    merges: bool = False
    app_id: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def write_options(options: Mapping[str, str], *, overwrites: bool, streams: bool) -> WriteOptions:
    """Read options, whose names may have any case. Raises ProgrammingError, without any value."""
    given, properties = dict[str, str](), dict[str, str]()
    for spelled, text in options.items():
        name = _SPELLED.get(spelled.lower(), spelled.lower())
        if name.startswith(_PROPERTY):
            properties[name.removeprefix(_PROPERTY)] = text
        elif name not in _WITHOUT_EFFECT:
            if name not in _KNOWN:
                raise unknown_option(spelled, _KNOWN)
            given[name] = text
    for name in _BATCH if streams else _STREAM:
        if name in given:
            where = "write, not for writeStream" if streams else "writeStream, not for write"
            raise ProgrammingError(f'option "{name}" is for {where}')
    if not given.get("path"):
        raise ProgrammingError('save() needs a table: "catalog.db.table"')
    if streams and not given.get("txn-app-id"):
        raise ProgrammingError(
            'a stream needs option("txn-app-id", …), a name that no other stream has: by it and '
            "the number of a batch icesql knows what is in the table already"
        )
    if "branch" in given and "wap-id" in given:
        raise ProgrammingError("give only one of branch and wap-id")
    mode = given.get("overwrite-mode", "static").lower()
    if mode not in ("static", "dynamic") or ("overwrite-mode" in given and not overwrites):
        raise ProgrammingError(
            'option "overwrite-mode" is static or dynamic, and for mode("overwrite")'
        )
    return WriteOptions(
        given["path"],
        connect_options(given),
        given.get("branch"),
        given.get("wap-id"),
        mode == "dynamic",
        flag("merge-schema", given.get("merge-schema", "false")),
        given.get("txn-app-id", ""),
        properties,
    )


class FrameWrite(Frozen):
    """A planned write. ``connect`` may hold credentials, so the repr is empty."""

    options: WriteOptions
    connect: Mapping[str, Any]
    overwrites: bool
    session: SessionFacts
    task: WriteTask
    columns: tuple[ResultColumn, ...]
    # The metadata file for which the data files are written.
    location: str

    def __repr__(self) -> str:
        return "FrameWrite()"


class Report(Frozen):
    """The files of a task and its plan: each batch of a stream has a plan of its own."""

    written: bytes
    repeated: bool
    mark: str
    location: str
    query_id: str = ""


_REPORTS: Final = msgspec.msgpack.Decoder(Report)


def plan_write(
    options: WriteOptions,
    connect: Mapping[str, Any],
    schema: Any,
    session: SessionFacts,
    *,
    overwrites: bool,
) -> FrameWrite:
    """Plan to write rows of a PySpark StructType, by the names of their columns.

    Raises the errors that INSERT … BY NAME raises before it reads a row.
    """
    connect = {**connect, **options.connect}
    if "/" in options.path or options.path.endswith(".json"):
        raise UnsupportedTableError(
            f"writing to {options.path}: no catalog says which of its metadata files is the "
            "current one"
        )
    catalog, table = find_table(options.path, connect)
    try:
        table = as_it_is(catalog, table)
        location = table.metadata_location
        _branch(options, table)
        names = [each.name for each in schema.fields]
        fields = table.metadata.schema.find_column
        columns = tuple(
            each if (own := fields(each.name)) is None
            else ResultColumn(each.name, _carried(each.type, own.type, each.name))
            for each in declared_columns(schema, names)
        )  # fmt: skip
        statement = _statement(options, overwrites=overwrites)
        evolution = insert_evolution(statement, table, columns)
        if evolution is not None:
            table, _ = evolution.planned(table, QueryContext())
        sources = column_sources(statement, table.metadata.schema, names)
        task = write_task_for(table.metadata, table.storage, sources, zone=session.zone)
        task.assignment.check(arrow_schema(columns))
    finally:
        catalog.close()
    return FrameWrite(options, connect, overwrites, session, task, columns, location)


def _statement(options: WriteOptions, *, overwrites: bool) -> Insert:
    """The INSERT statement that would do the same with a query of these rows."""
    table = TableName(split_identifier(options.path))
    query: Any = None
    return Insert(table, query, by_name=True, overwrite=overwrites, evolves=options.merges)


def _branch(options: WriteOptions, table: Table) -> Branch:
    """The branch to write to. Raises SnapshotNotFoundError, ProgrammingError."""
    if options.branch is not None:
        check_branch(table, options.branch)
        return options.branch
    branch = wap_branch(table, replace(Settings(), wap_id=options.wap_id))
    if options.wap_id is not None and isinstance(branch, str):
        raise ProgrammingError(
            f'option "wap-id": {table.name} has not write.wap.enabled = true, so all would see the '
            "rows"
        )
    return branch


def _carried(given: ResultType, own: t.IcebergType, name: str) -> ResultType:
    """The type of values that Spark passes as numbers because it lacks the table's type."""
    match own, given.kind:
        case t.VariantType(), "varchar":
            raise UnsupportedSqlError(f'writing the column "{name}" (variant) from a DataFrame')
        case t.TimeType(), "bigint":
            return ResultType("time")
        case t.TimestampNanoType(), "bigint":
            return ResultType("timestamp_ns")
        case t.TimestamptzNanoType(), "bigint":
            return ResultType("timestamptz_ns")
        case t.StructType(fields), "struct":
            types = {each.name.lower(): each.type for each in fields}
        case ((t.ListType() | t.MapType()), ("list" | "map")):
            types = {each.name: each.type for each in t.children(own)}
        case _:
            return given
    children = tuple(
        (each, kind if (type := types.get(each.lower())) is None else _carried(kind, type, name))
        for each, kind in given.children
    )
    return replace(given, children=children)


# ------------------------------------------------------------------ in the tasks


def write_rows(packed: bytes, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Write the rows of a Spark partition; a failure leaves no file."""
    from pyspark import TaskContext

    plan: FrameWrite = unpack(packed)
    rows = iter(batches)
    first = next(rows, None)
    begun = () if first is None else (first,)
    context = TaskContext.get()
    said = None if context is None else context.getLocalProperty(_ZONE_PROPERTY)
    # Instants are in the session's current time zone.
    zones = [getattr(each.type, "tz", None) for batch in begun for each in batch.schema]
    zone = next(filter(None, (*zones, said)), plan.session.zone)
    task = replace(plan.task, assignment=replace(plan.task.assignment, zone=zone))
    declared = (declared_batch(each, plan.columns) for each in chain(begun, rows))
    written = WriteJob(task)(
        declared, arrow_schema(plan.columns), worker_query(plan.session.memory), task_numbers()
    )
    query_id = "" if context is None else context.getLocalProperty(_QUERY_PROPERTY) or ""
    report = Report(written, is_repeated(), task.operation, plan.location, query_id)
    return msgspec.msgpack.encode(report)


# ------------------------------------------------------------------ the commit


class _Delivered(Exception):
    """The table already contains the batch."""


def commit_rows(packed: bytes, reports: Sequence[bytes], batch: int | None = None) -> None:
    """Commit the files of all tasks in one snapshot; ``batch`` is a stream's batch number.

    Raises the errors of a commit. Files stay if it is unknown whether the commit was applied; any
    other failed commit removes them.
    """
    plan: FrameWrite = unpack(packed)
    options, made = plan.options, [_REPORTS.decode(each) for each in reports]
    mark, location = made[0].mark, made[0].location
    with Uncommitted(plan.task.storage, plan.task.locations.folder, mark) as new:
        new.lost = True  # until the written files are known
        catalog, table = find_table(options.path, plan.connect)
        try:
            found = table
            if table.metadata_location != location:
                properties = table.storage.properties
                planned = table_from_metadata(table.identifier, location, properties=properties)
                found = replace(
                    table, metadata=planned.metadata, metadata_location=location, document=None
                )
            new.lost = False
            described = ((each.written, each.repeated or plan.session.speculates) for each in made)
            written = Written.of(reported(described, types_of(found.metadata), new))
            _commit(plan, catalog, found, written, new, made[0].query_id, batch)
        except _Delivered:
            return
        finally:
            catalog.close()


def _commit(
    plan: FrameWrite,
    catalog: Catalog,
    table: Table,
    written: Written,
    new: Uncommitted,
    query_id: str,
    batch: int | None,
) -> None:
    options, summary = plan.options, dict(plan.options.properties)
    statement, branch = _statement(options, overwrites=plan.overwrites), _branch(options, table)
    if batch is not None:
        summary |= {_APP: options.app_id, _EPOCH: str(batch), _QUERY: query_id}

    def check(base: Table, head: Snapshot | None, _: QueryContext) -> None:
        if batch is not None:
            _check_new(base, head, options.app_id, query_id, batch)

    if plan.overwrites:
        check(table, branch_head(table.metadata, branch)[1], QueryContext())
    mode = "dynamic" if options.dynamic else "static"
    query = QueryContext(replace(Settings(), partition_overwrite_mode=mode), summary=summary)
    evolution = insert_evolution(statement, table, plan.columns)
    change = None if evolution is None else evolution.planned(table, query)[1]
    new.hand_over()
    if plan.overwrites:
        services = cast("Any", SimpleNamespace(query=query))
        overwrite(statement, (catalog, table, branch), (), written.files, (), services, change)
        return
    changes = FileChanges("append", written.files, branch=branch, rows=written.rows, schema=change)
    commit_files(catalog, table, changes, query, validate=check)


def _check_new(table: Table, head: Snapshot | None, app_id: str, query_id: str, batch: int) -> None:
    """Raise _Delivered for a batch that is in a snapshot in the history of ``head``."""
    for each in reversed(ancestors(table, head)):
        if each.summary.get(_APP) != app_id:
            continue
        if query_id and each.summary.get(_QUERY, query_id) != query_id:
            raise ProgrammingError(
                f'a stream with another checkpoint wrote to {table.name} as "{app_id}", whose '
                "batches have the same numbers; give this one another txn-app-id"
            )
        last = whole_number(each.summary.get(_EPOCH))
        if last is None:
            raise ProgrammingError(
                f'snapshot {each.snapshot_id} of {table.name} is of the stream "{app_id}" and has '
                "no number of a batch, so nobody knows which batches are there; give this one "
                "another txn-app-id"
            )
        if last >= batch:
            raise _Delivered
        return


def abort_rows(packed: bytes, reports: Sequence[bytes | None]) -> None:
    """Remove the files of a job in which some tasks failed, also those that end meanwhile.

    If no task failed, the commit failed, and has removed its files or must keep them.
    """
    plan: FrameWrite = unpack(packed)
    if None not in reports:
        return
    marks = {_REPORTS.decode(each).mark for each in reports if each is not None}
    for wait in (0.0, _KILL_SECONDS):
        time.sleep(wait)
        for mark in marks or {plan.task.operation}:
            with Uncommitted(plan.task.storage, plan.task.locations.folder, mark) as new:
                new.lost = True
