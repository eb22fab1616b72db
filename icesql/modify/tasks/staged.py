"""The rows of a query of Spark, written by its tasks where all machines can read them.

They are asked for once, and none comes to the driver: it maps the files as the tasks do.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

import msgspec
import pyarrow as pa
from msgspec import Struct

from icesql.context import QueryContext
from icesql.modify.tasks.broadcast import write_rows
from icesql.storage.open import Storage
from icesql.storage.uncommitted import Uncommitted
from icesql.write.described_files import decoding
from icesql.write.locations import DataLocations, data_locations

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.engine.protocol import Result, RowsResult


class StagedFile(Struct, frozen=True):
    """The rows of the part of a result that has a number."""

    number: int
    path: str


_DECODER: Final = msgspec.msgpack.Decoder(StagedFile)


class StageJob(Struct, frozen=True):
    """Writes the rows of a part of a result into a file beside those of a table."""

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
        """The file; nothing where there is no row. See ``engine.protocol.RowsJob``."""
        rows = (each for each in batches if each.num_rows)
        first = next(rows, None)
        if first is None:
            return b""
        number, attempt = numbers
        path = self.locations.path(f"rows-{self.operation}-{number:05d}-{attempt}.arrow")

        def all_rows() -> Iterator[pa.RecordBatch]:
            yield first
            for each in rows:
                query.check()
                yield each

        write_rows(all_rows(), schema, self.storage, path)
        return msgspec.msgpack.encode(StagedFile(number, path))


def stage(result: Result, table: Table) -> tuple[str, ...] | None:
    """The files with all rows of a result, in the order of its parts, beside those of ``table``.

    None where the rows come to this process, and then nothing was read. Raises what the query and
    writing raise, and then no file is left.
    """
    if not hasattr(result, "run_over_rows"):
        return None
    storage, locations = table.storage, data_locations(table.metadata)
    operation = str(uuid.uuid4())
    new = Uncommitted(storage, locations.folder, operation)

    def collect(described: Iterable[tuple[bytes, bool]]) -> list[StagedFile]:
        before, new.lost = new.lost, True  # where it is tried again, this left files
        found = []
        for data, repeated in described:
            before = before or repeated
            if data:
                with decoding():
                    found.append(_DECODER.decode(data))
        new.lost = before
        return found

    with new:
        files = cast("RowsResult", result).run_over_rows(
            StageJob(storage, locations, operation), collect
        )
        if files is None:
            return None
        paths = tuple(each.path for each in sorted(files, key=lambda each: each.number))
        new.report(paths)
        new.hand_over()
    return paths
