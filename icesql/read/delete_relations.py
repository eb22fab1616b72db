"""Load the deletes of a scan once: positions per data file, and equality keys."""

from __future__ import annotations

from collections.abc import Iterable

from icesql.context import QueryContext
from icesql.scan.task import FileScanTask, ScanContext


class DeleteRelations:
    """The deletes of a scan; shared by all its files."""

    def __init__(
        self, context: ScanContext, tasks: Iterable[FileScanTask], query: QueryContext
    ) -> None:
        self.context, self.query = context, query
