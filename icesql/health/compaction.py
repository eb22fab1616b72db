"""What a compaction would make of a table, by its own plan, which is made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error
from icesql.iceberg.manifest.data_file import DataFile
from icesql.maintain.rewrite.grouping import FileGroup, group_files
from icesql.maintain.rewrite.options import rewrite_options
from icesql.maintain.rewrite.plan import RewriteRequest, plan_rewrite
from icesql.scan.tasks.task import FileScanTask, distinct_deletes
from icesql.write.options import check_table, write_options


class Rewrite(Struct, frozen=True):
    """How many data files a compaction reads, and about how many it makes of them.

    ``older`` of those that it reads are of older partition specs: their rows go to partitions that
    no metadata tells, so nothing can be promised of them.
    """

    read: int
    made: int
    older: int = 0


class Compaction:
    """``by_size`` is the plain one, ``of_all`` the one with ``rewrite-all``, sorted or not.

    Both are None where no plan can be made, such as for a property that is no number.
    """

    def __init__(self, table: Table, query: QueryContext) -> None:
        self._table, self._query = table, query

    @property
    def by_size(self) -> Rewrite | None:
        """Of files that are too small or too large, or have many deletes."""
        return self._planned[0] if self._planned else None

    @property
    def of_all(self) -> Rewrite | None:
        """Of every file."""
        return self._planned[1] if self._planned else None

    @property
    def with_deletes(self) -> int:
        """The data files from which a read takes deleted rows; 0 without a plan."""
        return self._planned[2] if self._planned else 0

    @property
    def refusal(self) -> str:
        """Why icesql writes no files of the table; "" if it does."""
        try:
            check_table(self._table.metadata)
            write_options(self._table.metadata.properties)
        except Error as error:
            return str(error)
        return ""

    @property
    def small_groups(self) -> tuple[FileGroup, ...]:
        """The groups that ``by_size`` is of; none without a plan."""
        return self._planned[3] if self._planned else ()

    @property
    def deletes_left(self) -> tuple[DataFile, ...]:
        """The deletes of the files that ``by_size`` does not rewrite."""
        if self._planned is None:
            return ()
        read = {task.data_file.path for group in self.small_groups for task in group.files}
        return distinct_deletes(
            task for task in self._planned[4] if task.data_file.path not in read
        )

    def groups_by(self, options: Mapping[str, str]) -> tuple[FileGroup, ...]:
        """The groups of a compaction with these options; none without a plan."""
        if self._planned is None:
            return ()
        metadata = self._table.metadata
        spec = metadata.spec
        wanted = rewrite_options(options, metadata)
        return group_files(self._planned[4], spec.spec_id, len(spec.fields), wanted).groups

    @cached_property
    def _planned(
        self,
    ) -> tuple[Rewrite, Rewrite, int, tuple[FileGroup, ...], list[FileScanTask]] | None:
        metadata = self._table.metadata
        try:
            options = rewrite_options({}, metadata)
            whole = rewrite_options({"rewrite-all": "true"}, metadata)
            planned = plan_rewrite(self._table, RewriteRequest(options), self._query)
        except Error:
            return None
        tasks = [task for group in planned.groups for task in group.files]
        tasks += [each.file for each in planned.left]
        spec = metadata.spec
        everything = group_files(tasks, spec.spec_id, len(spec.fields), whole)
        return (
            _sizes(planned.groups),
            _sizes(everything.groups),
            sum(bool(task.deletes) for task in tasks),
            planned.groups,
            tasks,
        )


def _sizes(groups: Sequence[FileGroup]) -> Rewrite:
    return Rewrite(
        sum(len(each.files) for each in groups),
        sum(each.output_files for each in groups),
        sum(len(each.files) for each in groups if each.partition is None),
    )
