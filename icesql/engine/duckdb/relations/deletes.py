"""Deletes as anti joins in DuckDB: positions by file and row, keys by sequence number.

Facts of each file, such as its sequence number, are SQL over the file's number in its list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.relations.relation import (
    PlainFiles,
    Relation,
    escape_glob,
    parquet_function,
)
from icesql.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.read.deletes.equality_keys import EqualityGroup
    from icesql.read.deletes.scan_deletes import DeleteRelations
    from icesql.scan.tasks import FileScanTask


# ------------------------------------------------------------------ integers of each file


# The element of a list costs no more than a join up to about this many files.
_MOST_LISTED: Final = 500


class FileFacts:
    """Facts about ``count`` files, in the order in which a function aliased ``reader`` reads them.

    A fact is a constant if all files agree, else an element of a list, and for many files a column
    of a table that has to be registered as ``name``.
    """

    def __init__(self, count: int, reader: str, name: str) -> None:
        self._count, self._reader, self._name = count, reader, name
        self._columns: list[Sequence[int | None]] = []

    def expression(self, values: Sequence[int | None]) -> str:
        """SQL for ``values[file_index]``."""
        if len(set(values)) == 1:
            return _sql_integer(values[0])
        if len(values) <= _MOST_LISTED:
            listed = ", ".join(map(_sql_integer, values))
            return f"([{listed}])[CAST({self._reader}.file_index AS BIGINT) + 1]"
        self._columns.append(values)
        return f'"{self._name}".v{len(self._columns) - 1}'

    @property
    def join(self) -> str:
        """The join after the function in FROM, for the expressions used so far."""
        if not self._columns:
            return ""
        return f' JOIN "{self._name}" ON {self._reader}.file_index = "{self._name}".file'

    @property
    def registered(self) -> dict[str, ArrowStream]:
        """The table to register, by its name; empty if no expression needs it."""
        if not self._columns:
            return {}
        import pyarrow as pa

        columns = {"file": pa.array(range(self._count), pa.uint64())}
        for number, values in enumerate(self._columns):
            columns[f"v{number}"] = pa.array(values, pa.int64())
        return {self._name: of_unknown_size(pa.table(columns))}


def of_unknown_size(table: pa.Table) -> ArrowStream:
    """A table whose number of rows is hidden from DuckDB.

    DuckDB's plans assume one row for files that are read by field id. A join partner of known size
    would become the probe side, and DuckDB would build the hash table from the files' rows.
    """
    return ArrowStream(table.schema, lambda: iter(table.to_batches()))


def _sql_integer(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else str(value)


# ------------------------------------------------------------------ anti joins


def live_rows(
    files: PlainFiles, relations: DeleteRelations, is_duckdb: Callable[[EqualityGroup], bool]
) -> Relation:
    """The relation of ``files`` without their deleted rows.

    Position deletes match a file by its number in the list, equality deletes a row if their
    greatest sequence number is above the file's. DuckDB reads the keys of groups for which
    ``is_duckdb`` is true; ``read/`` reads and checks position deletes, and raises the errors
    about them.
    """
    suffix: list[str] = []
    parameters: dict[str, Any] = {}
    registered: dict[str, Any] = {}
    positions = _positions(files.tasks, relations)
    if positions is not None:
        name = f"__positions_{files.prefix}"
        registered[name] = positions
        suffix.append(
            f' ANTI JOIN "{name}" AS p ON f.file_index = p.file AND f.file_row_number = p.pos'
        )
    facts = FileFacts(len(files.tasks), "f", f"__files_{files.prefix}")
    for number, group in enumerate(relations.equality_groups):
        keys = _Keys(group, files, facts, f"keys_{files.prefix}_{number}")
        suffix.append(keys.anti_join(f"e{number}", by_duckdb=is_duckdb(group)))
        parameters.update(keys.parameters)
        registered.update(keys.registered)
    registered.update(facts.registered)
    live = files.select("".join([facts.join, *suffix]))
    return Relation(live.sql, {**live.parameters, **parameters}, registered)


def _positions(tasks: Sequence[FileScanTask], relations: DeleteRelations) -> ArrowStream | None:
    import numpy as np
    import pyarrow as pa

    from icesql.read.columns.numbers import from_numbers

    numbers, parts = [], []
    for number, task in enumerate(tasks):
        rows = relations.positions(task)
        if rows is not None and len(rows):
            numbers.append(number)
            parts.append(rows)
    if not parts:
        return None
    files = np.repeat(np.array(numbers, np.uint64), [len(rows) for rows in parts])
    columns = {"file": from_numbers(files), "pos": from_numbers(np.concatenate(parts))}
    return of_unknown_size(pa.table(columns))


class _Keys:
    """The keys of one group as SQL, with its parameters and registered sources."""

    def __init__(
        self, group: EqualityGroup, files: PlainFiles, facts: FileFacts, name: str
    ) -> None:
        self._group, self._files, self._facts, self._name = group, files, facts, name
        self._tasks = tasks = files.tasks
        self._columns = [quoted(column.name) for column in group.columns]
        if not group.is_global:
            self._columns.append("partition")
        numbers = [group.delete_number(file) for file in group.files]
        # Deletes that are newer than all data need no comparison.
        self._of_data = [group.data_number(task.data_file) for task in tasks]
        self._compared = max(self._of_data) >= min(numbers)
        self._numbers = len(set(numbers))
        self.parameters: dict[str, Any] = {}
        self.registered: dict[str, Any] = {}

    def anti_join(self, alias: str, *, by_duckdb: bool) -> str:
        source = self._read_by_duckdb() if by_duckdb else self._streamed()
        if self._compared and self._numbers > 1:
            # One row per key, however many commits deleted it: the cost stays linear in the keys.
            columns = ", ".join(self._columns)
            source = (
                f"SELECT {columns}, max(sequence_number) AS sequence_number "
                f"FROM ({source}) GROUP BY {columns}"
            )
        group, facts = self._group, self._facts
        conditions = [
            f"{self._files.stored(each.column)} IS NOT DISTINCT FROM {alias}.{quoted(each.name)}"
            for each in group.columns
        ]
        if not group.is_global:
            ordinals = [group.partition_of(task.data_file) for task in self._tasks]
            conditions.append(f"{alias}.partition = {facts.expression(ordinals)}")
        if self._compared:
            conditions.append(f"{alias}.sequence_number > {facts.expression(self._of_data)}")
        return f" ANTI JOIN ({source}) AS {alias} ON {' AND '.join(conditions)}"

    def _streamed(self) -> str:
        name = f"__{self._name}"
        self.registered[name] = ArrowStream(self._group.schema, self._group.batches)
        return f'SELECT * FROM "{name}"'

    def _read_by_duckdb(self) -> str:
        group = self._group
        facts = FileFacts(len(group.files), "k", f"__files_{self._name}")
        selected = [f"k.{quoted(column.name)}" for column in group.columns]
        if not group.is_global:
            ordinals = [group.partition_of(file) for file in group.files]
            selected.append(f"{facts.expression(ordinals)} AS partition")
        if self._compared:
            numbers = [group.delete_number(file) for file in group.files]
            selected.append(f"{facts.expression(numbers)} AS sequence_number")
        storage = group.context.storage
        parameter = f"{self._name}_files"
        self.parameters[parameter] = [escape_glob(storage.location(f.path)) for f in group.files]
        self.registered.update(facts.registered)
        function = parquet_function(parameter, [column.leaf for column in group.columns])
        return f"SELECT {', '.join(selected)} FROM {function} AS k{facts.join}"
