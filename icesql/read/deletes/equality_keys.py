"""Equality deletes as groups: per id set and scope one relation key → sequence number.

However many delete files a scan has, a row is deleted when the greatest sequence number of its key
in its scope is greater than the data file's own. Source: Iceberg spec, "Equality Delete Files" and
"Scan Planning".
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import arrow_type, partition_constants
from icesql.read.columns.projection import column_batches, column_reader
from icesql.read.deletes.key_index import KeyIndex, build_key_index
from icesql.read.formats.open import open_reader
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.tasks import FileScanTask, ScanContext, distinct_deletes

# ------------------------------------------------------------------ numbers of deletes and files
# Number deletes and files so that each delete applies as the plan lists, without sequence numbers.
#
# A catalog that plans a scan names the delete files of every data file and sends no sequence
# numbers. icesql numbers the files itself: delete files are put into chains, in each of which
# every file applies wherever the ones before it do, and are numbered along the chain. Streams of
# upserts, where each delete applies to all older data, stay one chain, and any other pairing is
# correct as well.


# Greater than the number of any delete file: no delete of the chain applies.
NO_DELETES: Final = 1 << 62


class Chain(Frozen):
    """Delete files and their numbers, from 1 on by path; and those of data files by path.

    A delete applies to a data file whose number is smaller.
    """

    deletes: tuple[DataFile, ...]
    delete_numbers: Mapping[str, int]
    data_numbers: Mapping[str, int]

    def of_data(self, path: str) -> int:
        """The number of a data file."""
        return self.data_numbers.get(path, NO_DELETES)


def chains(deletes: Sequence[DataFile], tasks: Iterable[FileScanTask]) -> list[Chain]:
    """The chains of ``deletes`` by the tasks that name them; each delete file is in one."""
    members: dict[str, set[str]] = {each.path: set() for each in deletes}
    for task in tasks:
        for delete in task.deletes:
            if delete.content is FileContent.EQUALITY_DELETES and delete.path in members:
                members[delete.path].add(task.data_file.path)
    ordered = sorted(deletes, key=lambda each: len(members[each.path]))
    found: list[list[DataFile]] = []
    # Chains by one file to which their first delete applies, and so do all of its others: where
    # deletes are of 10,000 partitions there are as many chains, and few that one may go on.
    starting: dict[str | None, list[int]] = {}
    for delete in ordered:
        files = members[delete.path]
        # The longest chain first: that of the stream that made most of the table.
        near = [number for path in (None, *files) for number in starting.get(path, ())]
        for number in sorted(near, key=lambda each: (-len(found[each]), each)):
            if members[found[number][-1].path] <= files:
                found[number].append(delete)
                break
        else:
            starting.setdefault(min(files, default=None), []).append(len(found))
            found.append([delete])
    return [_chain(each, members) for each in found]


def _chain(deletes: Sequence[DataFile], members: Mapping[str, set[str]]) -> Chain:
    delete_numbers: dict[str, int] = {}
    data_numbers: dict[str, int] = {}
    number = 0
    previous: set[str] | None = None
    for delete in deletes:
        of_delete = members[delete.path]
        if of_delete != previous:
            number += 1
            for path in of_delete:
                data_numbers.setdefault(path, number - 1)
            previous = of_delete
        delete_numbers[delete.path] = number
    return Chain(tuple(deletes), delete_numbers, data_numbers)


# ------------------------------------------------------------------ groups


PartitionKey: TypeAlias = tuple[int, tuple[Any, ...]]


_NO_KEYS = (t.UnknownType, t.VariantType, t.GeometryType, t.GeographyType)


class KeyColumn(Frozen):
    """A column of an equality key: the leaf field, and the top-level column that leads to it.

    ``column`` holds nothing but the structs on the way; ``steps`` are child numbers inside it.
    """

    leaf: t.NestedField
    column: t.NestedField
    steps: tuple[int, ...]

    @property
    def name(self) -> str:
        """The column's name in key relations."""
        return f"c{self.leaf.field_id}"

    def values(self, array: pa.Array) -> pa.Array:
        """The leaf out of an array of ``column``; NULL below a NULL struct."""
        for step in self.steps:
            array = pc.struct_field(array, [step])
        return array


def key_columns(schema: Schema, field_ids: Iterable[int], path: str) -> tuple[KeyColumn, ...]:
    """The key columns of an id set, by ascending id; ``schema`` also holds dropped columns."""
    columns = []
    for field_id in sorted(set(field_ids)):
        leaf = schema.field_by_id.get(field_id)
        if leaf is None:
            raise CorruptFileError(path, f"equality field id {field_id} is in no schema")
        if (
            not isinstance(leaf.type, t.PrimitiveType)
            or isinstance(leaf.type, _NO_KEYS)
            or schema.inside_repeated(field_id)
        ):
            raise UnsupportedTableError(
                f'equality deletes by column "{schema.name_by_id[field_id]}" of type {leaf.type}',
                path=path,
            )
        columns.append(leaf_column(schema, field_id))
    return tuple(columns)


def leaf_column(schema: Schema, field_id: int) -> KeyColumn:
    """The path to a field outside lists and maps."""
    leaf = column = schema.field_by_id[field_id]
    ancestors = schema.ancestors(field_id)
    for parent in ancestors:
        column = replace(parent, type=t.StructType((column,)))
    return KeyColumn(leaf, column, (0,) * len(ancestors))


class EqualityGroup(Frozen, dict=True):
    """All equality deletes of a scan with one id set and one scope, or of one ``chain``.

    With ``partitions`` (scope: the delete file's own spec and partition) relations carry the
    column ``partition``, an ordinal that ``partition_of`` gives for a data file; without
    (global scope) they do not. With a ``chain``, which records the deletes of each file, its
    numbers replace sequence numbers.
    """

    columns: tuple[KeyColumn, ...]
    files: tuple[DataFile, ...]
    partitions: Mapping[PartitionKey, int] | None
    context: ScanContext
    query: QueryContext
    chain: Chain | None = None
    _state: _GroupState = field(default_factory=lambda: _GroupState())

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The equality ids, ascending."""
        return tuple(column.leaf.field_id for column in self.columns)

    @property
    def is_global(self) -> bool:
        """Whether the deletes hold for data files of every spec and partition."""
        return self.partitions is None

    @property
    def row_count(self) -> int:
        """Rows of all delete files as the manifests count them."""
        return sum(max(file.record_count, 0) for file in self.files)

    @property
    def schema(self) -> pa.Schema:
        """``c<field id>`` per key column, [``partition`` int32,] ``sequence_number`` int64."""
        parts = [(column.name, arrow_type(column.leaf.type)) for column in self.columns]
        if self.partitions is not None:
            parts.append(("partition", pa.int32()))
        return pa.schema([*parts, ("sequence_number", pa.int64())])

    def partition_of(self, file: DataFile) -> int | None:
        """The ordinal of a file's partition, None when no delete of the group is in it."""
        if self.partitions is None:
            return None
        return self.partitions.get(partition_of(file))

    def delete_number(self, file: DataFile) -> int:
        """The sequence number of a delete file of the group."""
        return file.sequence_number if self.chain is None else self.chain.delete_numbers[file.path]

    def data_number(self, file: DataFile) -> int:
        """The sequence number of a data file; deletes with a greater number apply to its rows."""
        return file.sequence_number if self.chain is None else self.chain.of_data(file.path)

    def applies_to(self, task: FileScanTask) -> bool:
        """Whether the planner attached a delete file of the group to the task."""
        return any(
            delete.content is FileContent.EQUALITY_DELETES and delete.path in self._paths
            for delete in task.deletes
        )

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Every key of every delete file with its sequence number, duplicates included.

        Small groups are kept, so that several readers of one query read each delete file once.
        """
        if self._state.kept is not None:
            yield from self._state.kept
            return
        limit = self.query.settings.delete_memory_limit // 8
        kept: list[pa.RecordBatch] | None = []
        size = 0
        for file in self.files:
            for batch in self._file_batches(file):
                size += batch.nbytes
                if kept is not None and size <= limit:
                    kept.append(batch)
                else:
                    kept = None
                yield batch
        self._state.kept = kept

    def index(self) -> KeyIndex:
        """Key → greatest sequence number, built on first use."""
        with self._state.lock:
            if self._state.index is None:
                self._state.index = self._build_index()
            return self._state.index

    def _build_index(self) -> KeyIndex:
        settings = self.query.settings
        types = [part.type for part in self.schema][:-1]

        def keys() -> Iterator[tuple[Sequence[pa.Array], int]]:
            for file in self.files:
                for batch in self._file_batches(file):
                    yield batch.columns[:-1], self.delete_number(file)

        return build_key_index(
            types,
            [self.delete_number(file) for file in self.files],
            keys,
            expected=self.row_count,
            memory_limit=settings.delete_memory_limit,
            temp_directory=settings.temp_directory,
        )

    def _file_batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        location, number = self.context.storage.location(file.path), self.delete_number(file)
        constants = partition_constants(file, self.context, location)
        opened = open_reader(file, self.context)
        try:
            readers = [
                column_reader(
                    key.column,
                    opened.fields,
                    constants,
                    location,
                    missing_is_null=opened.missing_is_null,
                )
                for key in self.columns
            ]
            for key, reader in zip(self.columns, readers, strict=True):
                if reader.source is None and key.leaf.field_id not in constants:
                    raise CorruptFileError(
                        location,
                        f'equality column "{key.leaf.name}" (id {key.leaf.field_id}) '
                        "is not in the delete file",
                    )
            for count, columns in column_batches(opened, readers, location):
                self.query.check()
                arrays = [
                    key.values(column) for key, column in zip(self.columns, columns, strict=True)
                ]
                if self.partitions is not None:
                    arrays.append(pa.array(np.full(count, self.partition_of(file), np.int32)))
                arrays.append(pa.array(np.full(count, number, np.int64)))
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        finally:
            opened.close()

    def deleted(
        self, task: FileScanTask, columns: Sequence[pa.Array]
    ) -> npt.NDArray[np.bool_] | None:
        """Which rows of the task's file the group deletes; ``columns`` are the key leaves.

        None when it deletes nothing there.
        """
        count = len(columns[0])
        arrays = list(columns)
        if self.partitions is not None:
            ordinal = self.partition_of(task.data_file)
            if ordinal is None:
                return None
            arrays.append(pa.array(np.full(count, ordinal, np.int32)))
        found = self.index().sequence_numbers(arrays) > self.data_number(task.data_file)
        return found if found.any() else None


class _GroupState(Struct):
    """The state that a group loads lazily."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    index: KeyIndex | None = None
    kept: list[pa.RecordBatch] | None = None


def equality_groups(
    context: ScanContext, tasks: Iterable[FileScanTask], query: QueryContext
) -> tuple[EqualityGroup, ...]:
    """The groups of all equality delete files attached to the tasks, each file in one group."""
    tasks = tuple(tasks)
    files: dict[str, DataFile] = {}
    for delete in distinct_deletes(tasks):
        if delete.content is FileContent.EQUALITY_DELETES:
            files.setdefault(delete.path, delete)
    members: dict[tuple[tuple[int, ...], bool], list[DataFile]] = {}
    for file in files.values():
        if not file.equality_ids:
            raise CorruptFileError(
                context.storage.location(file.path), "an equality delete file without equality ids"
            )
        spec = context.specs.get(file.spec_id)
        if spec is None:
            raise CorruptFileError(
                context.storage.location(file.path), f"unknown partition spec {file.spec_id}"
            )
        is_global = spec.is_unpartitioned or context.paired
        members.setdefault((tuple(sorted(set(file.equality_ids))), is_global), []).append(file)
    if context.paired:
        return tuple(
            _group(ids, True, chain.deletes, context, query, chain)
            for (ids, _), found in sorted(members.items(), key=itemgetter(0))
            for chain in chains(found, tasks)
        )
    return tuple(
        _group(ids, is_global, found, context, query)
        for (ids, is_global), found in sorted(members.items(), key=itemgetter(0))
    )


def _group(
    ids: tuple[int, ...],
    is_global: bool,
    files: Sequence[DataFile],
    context: ScanContext,
    query: QueryContext,
    chain: Chain | None = None,
) -> EqualityGroup:
    partitions: dict[PartitionKey, int] | None = None
    if not is_global:
        partitions = {}
        for file in files:
            partitions.setdefault(partition_of(file), len(partitions))
    columns = key_columns(context.file_schema, ids, files[0].path)
    return EqualityGroup(columns, tuple(files), partitions, context, query, chain)
