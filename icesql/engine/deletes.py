"""Deletes of plain files as anti joins: positions by file and row, keys by sequence number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.relation import PlainFiles, Relation
from icesql.engine.stream import ArrowSource
from icesql.iceberg.data_file import FileContent

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.read.delete_relations import DeleteRelations
    from icesql.read.equality_keys import EqualityGroup
    from icesql.scan.task import FileScanTask

# Up to this many key rows a group is handed over whole, which tells DuckDB its size.
_SMALL_GROUP_ROWS: Final = 1_000_000
# A CASE over file numbers is cheaper than a join up to about this many branches.
_MOST_BRANCHES: Final = 50


def live_rows(files: PlainFiles, relations: DeleteRelations) -> Relation:
    """The relation of ``files`` without their deleted rows.

    Reads the delete files; their errors are icesql's own. Positions count for a file by its
    number in the list, keys when their greatest sequence number is above the file's.
    """
    suffix: list[str] = []
    registered: dict[str, Any] = {}
    positions = _positions(files.tasks, relations)
    if positions is not None:
        name = f"__positions_{files.prefix}"
        registered[name] = positions
        suffix.append(
            f' ANTI JOIN "{name}" AS p ON f.file_index = p.file AND f.file_row_number = p.pos'
        )
    facts = _FileFacts(files.tasks)
    for number, group in enumerate(relations.equality_groups):
        name = f"__keys_{files.prefix}_{number}"
        registered[name] = _keys(group)
        suffix.append(_anti_join(name, f"e{number}", group, facts))
    if facts.columns:
        name = f"__files_{files.prefix}"
        registered[name] = facts.table()
        suffix.insert(0, f' JOIN "{name}" AS d ON f.file_index = d.file')
    plain = files.select("".join(suffix))
    return Relation(plain.sql, plain.parameters, registered)


def _positions(tasks: Sequence[FileScanTask], relations: DeleteRelations) -> pa.Table | None:
    import pyarrow as pa

    has_positions = (
        any(delete.content is FileContent.POSITION_DELETES for delete in task.deletes)
        for task in tasks
    )
    found = [
        (number, relations.positions(task))
        for number, (task, wanted) in enumerate(zip(tasks, has_positions, strict=True))
        if wanted
    ]
    parts = [(number, rows) for number, rows in found if rows is not None and len(rows)]
    if not parts:
        return None
    files = pa.chunked_array(
        [pa.repeat(pa.scalar(number, pa.uint64()), len(rows)) for number, rows in parts]
    )
    return pa.table({"file": files, "pos": pa.chunked_array([rows for _, rows in parts])})


def _keys(group: EqualityGroup) -> Any:
    import pyarrow as pa

    if group.row_count <= _SMALL_GROUP_ROWS:
        return pa.Table.from_batches(list(group.batches()), schema=group.schema)
    return ArrowSource(group.schema, group.batches)


def _anti_join(name: str, alias: str, group: EqualityGroup, facts: _FileFacts) -> str:
    keys = [column.name for column in group.columns]
    source = f'"{name}"'
    if len({file.sequence_number for file in group.files}) > 1:
        # One row a key, however many commits deleted it: cost stays linear in the keys.
        scope = [*keys, *([] if group.is_global else ["partition"])]
        columns = ", ".join(scope)
        source = (
            f"(SELECT {columns}, max(sequence_number) AS sequence_number "
            f"FROM {source} GROUP BY {columns})"
        )
    conditions = [f"f.{key} IS NOT DISTINCT FROM {alias}.{key}" for key in keys]
    if not group.is_global:
        ordinal = facts.expression([group.partition_of(task.data_file) for task in facts.tasks])
        conditions.append(f"{alias}.partition = {ordinal}")
    oldest_delete = min(file.sequence_number for file in group.files)
    numbers = [task.sequence_number for task in facts.tasks]
    if max(numbers) >= oldest_delete:
        conditions.append(f"{alias}.sequence_number > {facts.expression(numbers)}")
    return f" ANTI JOIN {source} AS {alias} ON {' AND '.join(conditions)}"


class _FileFacts:
    """Integers of each file as SQL: constants, a CASE over the file's number, or a joined table."""

    def __init__(self, tasks: Sequence[FileScanTask]) -> None:
        self.tasks = tasks
        self.columns: dict[str, list[int | None]] = {}

    def expression(self, values: list[int | None] | list[int]) -> str:
        distinct = set(values)
        if len(distinct) == 1:
            return _sql_integer(values[0])
        runs = _runs(values)
        if len(runs) <= _MOST_BRANCHES:
            branches = " ".join(
                f"WHEN f.file_index < {end} THEN {_sql_integer(value)}" for end, value in runs[:-1]
            )
            return f"CASE {branches} ELSE {_sql_integer(runs[-1][1])} END"
        name = f"v{len(self.columns)}"
        self.columns[name] = list(values)
        return f"d.{name}"

    def table(self) -> pa.Table:
        import pyarrow as pa

        columns: dict[str, Any] = {"file": pa.array(range(len(self.tasks)), pa.uint64())}
        for name, values in self.columns.items():
            columns[name] = pa.array(values, pa.int64())
        return pa.table(columns)


def _runs(values: Sequence[int | None]) -> list[tuple[int, int | None]]:
    """(end, value) of each stretch of equal neighbours."""
    runs: list[tuple[int, int | None]] = []
    for number, value in enumerate(values):
        if runs and runs[-1][1] == value:
            runs[-1] = number + 1, value
        else:
            runs.append((number + 1, value))
    return runs


def _sql_integer(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else str(value)


def by_sequence_number(tasks: Sequence[FileScanTask]) -> list[FileScanTask]:
    """The tasks ordered so that files of one sequence number and partition are neighbours."""
    return sorted(tasks, key=lambda task: (task.sequence_number, repr(task.data_file.partition)))
