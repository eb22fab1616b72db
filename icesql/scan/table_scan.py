"""TableScan: the request of one table reference of a statement to its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from icesql.catalog.table import Table
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate, keep_columns
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import Schema

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.changes import ChangeScan
    from icesql.scan.pruning.counted import Counted
    from icesql.scan.pruning.extremes import Extreme
    from icesql.scan.pruning.file_conditions import FileCondition


class TableScan(Frozen):
    """One table at one snapshot, with what was pushed into it.

    ``snapshot`` is None for a table without rows yet. ``schema`` is the schema to read by (that of
    the snapshot, or the current one of a branch); ``projection`` the output columns: top-level
    columns of ``schema``, and metadata columns by their reserved ids. ``row_filter`` names fields
    of ``schema`` by id and is implied by the WHERE, which is evaluated again over the rows.
    ``file_conditions`` are implied by the WHERE too, and rule out files that ``row_filter`` cannot.
    ``limit`` may be set only if any rows of the scan will do, which an ORDER BY or a WHERE of any
    kind rules out. ``ref`` is the branch or tag of the reference. With ``explain`` the plan records
    why each file was skipped. ``metadata_table`` is the name of a metadata table to read instead of
    the table's own rows. ``extremes`` are the only rows that matter, if any are set. ``counts`` has
    one item for each output of the query if some of them count rows and the others are
    ``extremes``. With either, ``left_out`` holds for every row for which the WHERE is not true.
    ``values_only``: one of several equal rows is enough. ``rows_alike``: equal rows may be
    represented by one row and their number. ``rows`` returns the rows of a statement in FROM that
    is not a table; then ``metadata_table`` names what the statement shows. ``all_deletes``: a
    remaining file has all its deletes, also of rows that the filter excludes. ``changes`` are read
    instead of rows; ``schema`` then has the columns of a change, too. ``frame`` is the DataFrame of
    Spark that is read, with the columns of ``schema`` in their order; ``rows`` then only refuses.
    """

    table: Table
    snapshot: Snapshot | None
    schema: Schema
    projection: Schema
    row_filter: Predicate = ALWAYS_TRUE
    file_conditions: tuple[FileCondition, ...] = ()
    limit: int | None = None
    ref: str | None = None
    explain: bool = False
    metadata_table: str | None = None
    extremes: tuple[Extreme, ...] = ()
    counts: tuple[Counted | None, ...] = ()
    left_out: Predicate = ALWAYS_TRUE
    changes: ChangeScan | None = None
    values_only: bool = False
    rows_alike: bool = False
    all_deletes: bool = False
    rows: Callable[[TableScan, QueryContext], Iterable[tuple[Any, ...]]] | None = None
    frame: Any = None

    def trusted(self, predicate: Predicate) -> Predicate:
        """``predicate`` without columns whose metrics may differ from the values read.

        In a file without field ids a column that the name mapping leaves out reads as NULL,
        whatever counts and bounds the manifest has for it.
        """
        mapping = self.table.metadata.name_mapping
        return predicate if mapping is None else keep_columns(predicate, mapping.field_ids)
