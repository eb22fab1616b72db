"""Write the rows of a Spark query to files, by its tasks, where all machines can read them.

The query runs once, and no row is sent to the driver: it maps the files as the tasks do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.modify.tasks.broadcast import write_rows
from icesql.storage.open import Storage
from icesql.work.run import files_of_tasks
from icesql.write.locations import DataLocations, data_locations
from icesql.write.written import Written, encode_written, reported, types_of

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.engine.protocol import RowsResult
    from icesql.engine.result_reader import Result


class StageJob(Frozen):
    """Writes the rows of one part of a result to a file in the table's data location."""

    storage: Storage
    locations: DataLocations
    operation: str

    def __call__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """Write the file, unless there are no rows. See ``engine.protocol.RowsJob``."""
        rows = (each for each in batches if each.num_rows)
        first = next(rows, None)
        if first is None:
            return encode_written(Written())
        number, attempt = numbers
        path = self.locations.path(f"rows-{self.operation}-{number:010d}-{attempt}.arrow")

        def all_rows() -> Iterator[pa.RecordBatch]:
            yield first
            for each in rows:
                query.check()
                yield each

        write_rows(all_rows(), schema, self.storage, path)
        return encode_written(Written(apart=(path,)))


def stage(result: Result, table: Table) -> tuple[str, ...] | None:
    """Write all rows of a result to files in the data location of ``table``; return their paths.

    Paths are in the order of the result's parts. None if the rows come to this process; then
    nothing was read. Raises what the query and writing raise; then no file is left.
    """
    if not hasattr(result, "run_over_rows"):
        return None
    metadata, storage = table.metadata, table.storage
    types = types_of(metadata)
    with files_of_tasks(metadata, storage) as new:
        written = cast("RowsResult", result).run_over_rows(
            StageJob(storage, data_locations(metadata), new.mark),
            lambda described: Written.of(reported(described, types, new)),
        )
        if written is None:
            return None
        new.hand_over(written.apart)
    # File names have a common prefix, then the number of the part.
    return tuple(sorted(written.apart, key=lambda each: each.rpartition("/")[2]))
