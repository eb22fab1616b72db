"""Plan compactions of one table with several options; its files are found only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.maintain.rewrite.grouping import group_files
from icesql.maintain.rewrite.options import rewrite_options
from icesql.maintain.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite
from icesql.scan.tasks.task import FileScanTask
from icesql.write.options import check_table, write_options


class Sizes(Frozen):
    """How many data files a compaction reads, and about how many it writes.

    ``older`` of the files read have older partition specs: their rows go to partitions that
    metadata does not show, so their effect cannot be predicted.
    """

    read: int
    made: int
    older: int

    @staticmethod
    def of(plan: RewritePlan) -> Sizes:
        """The sizes of a plan."""
        return Sizes(
            sum(len(each.files) for each in plan.groups),
            sum(each.output_files for each in plan.groups),
            sum(len(each.files) for each in plan.groups if each.partition is None),
        )


class Compaction(Struct):
    """Plans compactions of ``table``; ``first`` is its first plan."""

    table: Table
    first: RewritePlan | None = None

    @property
    def refusal(self) -> str:
        """Why icesql cannot write files of the table; "" if it can."""
        try:
            check_table(self.table.metadata)
            write_options(self.table.metadata.properties)
        except Error as error:
            return str(error)
        return ""

    def plan(self, options: Mapping[str, str], query: QueryContext) -> RewritePlan:
        """Plan a compaction with these options. Raises what planning raises."""
        metadata = self.table.metadata
        request = RewriteRequest(rewrite_options(options, metadata))
        first = self.first
        if first is None:
            first = self.first = plan_rewrite(self.table, request, query)
        if first.request == request:
            return first
        files = all_files(first)
        listed = Counter(each.data_file.path for each in files)
        again = {path for path, count in listed.items() if count > 1}
        spec = metadata.spec
        found = group_files(files, spec.spec_id, len(spec.fields), request.options, again)
        return replace(first, request=request, groups=found.groups, left=found.left)


def all_files(plan: RewritePlan) -> list[FileScanTask]:
    """The files that a plan rewrites, and those that it leaves."""
    read = [task for group in plan.groups for task in group.files]
    return [*read, *plan.left]
