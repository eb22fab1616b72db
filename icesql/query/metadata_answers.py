"""Answer what metadata alone can answer, without starting an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.errors import (
    AccessDeniedError,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedTableError,
)
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE
from icesql.scan.metadata_tables.schemas import (
    OF_A_SNAPSHOT,
    OF_ALL_SNAPSHOTS,
    SUFFIXES,
    metadata_schema,
)
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.table_name import name_parts
from icesql.sql.time_travel import AsOf, SnapshotId, TimeTravel, VersionText

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.table_scan import TableScan
    from icesql.sql.parser.row_count import RowCount
    from icesql.sql.statement import TableReference

_PARTS: Final = frozenset({"kind", "hint", "expressions", "operation_modifiers", "from_"})
_TABLE_PARTS: Final = frozenset({"this", "alias"})


class MetadataAnswer(Struct, frozen=True):
    """One result row; ``names`` are the output columns, all of type long."""

    names: tuple[str, ...]
    row: tuple[int, ...]


def answer_from_metadata(bound: BoundQuery, query: QueryContext) -> MetadataAnswer | None:
    """The answer to ``SELECT count(*) FROM t`` at any snapshot, None when an engine has to work.

    Nothing is answered so where every file is to be verified. Raises what planning raises.
    """
    if query.settings.verify == "full":
        return None
    names = _counts(bound)
    if names is None:
        return None
    from icesql.scan.pruning.metadata_count import count_rows

    rows = count_rows(bound.scans[0], query)
    return None if rows is None else MetadataAnswer(names, (rows,) * len(names))


def with_counts(bound: BoundQuery) -> BoundQuery:
    """The same where planning may count the rows of files that no delete file needs read."""
    names = _counts(bound)
    if names is None:
        return bound
    from icesql.scan.pruning.metadata_count import Counted

    scan = replace(bound.scans[0], counts=(Counted(),) * len(names), left_out=ALWAYS_FALSE)
    return replace(bound, scans=(scan,))


def answer_row_count(
    statement: RowCount, names: SearchPath, query: QueryContext
) -> tuple[TableScan, int] | None:
    """The scan of the table and how many rows it has.

    None where the files have to be read, and where no table has the name.

    Raises what else ``names.load`` and planning raise.
    """
    from icesql.query.snapshot_selection import select_snapshot
    from icesql.scan.pruning.metadata_count import count_rows
    from icesql.scan.table_scan import TableScan

    if query.settings.verify == "full" or query.settings.snapshot_pinned:
        return None
    try:
        table = names.load(statement.parts, None, query)
    except (ProgrammingError, UnsupportedTableError):
        return None  # the parser knows where in the SQL it is, and what a view is
    selected = select_snapshot(table, None, query)
    schema = selected.schema
    scan = TableScan(table, selected.snapshot, schema, schema, ref=selected.ref)
    count = count_rows(scan, query)
    return None if count is None else (scan, count)


def _counts(bound: BoundQuery) -> tuple[str, ...] | None:
    """The output names when every output is ``count(*)`` over one unfiltered scan."""
    from sqlglot import exp

    from icesql.query.names import scan_index

    tree = bound.tree
    if not isinstance(tree, exp.Select) or len(bound.scans) != 1 or bound.about:
        return None
    if bound.scans[0].row_filter is not ALWAYS_TRUE or not tree.expressions:
        return None
    if bound.scans[0].metadata_table is not None or bound.scans[0].changes is not None:
        return None
    if any(value for part, value in tree.args.items() if part not in _PARTS):
        return None
    start = tree.args.get("from_")
    if start is None or scan_index(start.this) != 0:
        return None
    if any(value for part, value in start.this.args.items() if part not in _TABLE_PARTS):
        return None
    alias = start.this.args.get("alias")
    if alias is not None and alias.columns:
        return None
    names = [_count_name(node) for node in tree.expressions]
    found = tuple(name for name in names if name is not None)
    return found if len(found) == len(names) else None


def _count_name(node: exp.Expr) -> str | None:
    """The result name of a count of rows, None for anything else."""
    from sqlglot import exp

    from icesql.query.plain_calls import is_plain_call
    from icesql.sql.reading.expressions import WRITTEN

    if isinstance(node, exp.Alias):
        return None if _count_name(node.this) is None else node.alias
    if not is_plain_call(node, exp.Count):
        return None
    counted = node.this
    if counted is None or (isinstance(counted, exp.Star) and not any(counted.args.values())):
        return "count_star()"
    if isinstance(counted, exp.Literal) and not counted.is_string:
        return f"count({counted.meta.get(WRITTEN, counted.name)})"
    return None


# Names that end in something else than a table: ``t.snapshots``, ``"t$files"``, ``t.branch_x``.
#
# A table of that very name always wins.

# Spark's names of snapshots.
_SELECTOR: Final = (
    r"(?i)(?:branch|tag)_(?P<ref>.+)|snapshot_id_(?P<id>\d{1,40})|at_timestamp_(?P<ms>\d{1,18})"
)


class Found(Struct, frozen=True):
    """The table, and the metadata table or ref that the name's suffix selects."""

    table: Table
    metadata_table: str | None = None
    travel: TimeTravel | None = None


def load(reference: TableReference, names: SearchPath, query: QueryContext) -> Found:
    """Resolve a reference. Raises as ``names.load``."""
    if reference.path is not None:
        return _by_path(reference, names, query)
    try:
        return Found(names.load(reference.parts, reference.path, query, reference.place))
    except TableNotFoundError as error:
        told = error
        for owner, name, travel in _meanings(reference.parts):
            try:
                return Found(names.load(owner, None, query, reference.place), name, travel)
            except TableNotFoundError as missing:
                # What is wrong is the table's name, where that can be told.
                told = missing if missing.similar and told is error else told
        raise told from None


def _by_path(reference: TableReference, names: SearchPath, query: QueryContext) -> Found:
    """Resolve ``iceberg_scan('path')`` and its like; the path may be a table's name."""
    path = reference.path
    assert path is not None
    try:
        table = names.load(reference.parts, path, query, reference.place)
        return Found(table, reference.metadata_table)
    except (TableNotFoundError, AccessDeniedError) as error:
        if re.search(r"[/\\:]", path) or path.endswith(".json"):
            raise
        told = error
    try:
        found = load(replace(reference, path=None, parts=name_parts(path)), names, query)
    except TableNotFoundError as missing:
        raise (missing if missing.similar else told) from None
    if found.metadata_table is not None:
        raise told
    return replace(found, metadata_table=reference.metadata_table)


_Meaning = tuple[tuple[str, ...], str | None, TimeTravel | None]


def _meanings(parts: tuple[str, ...]) -> Iterator[_Meaning]:
    """Other meanings of a name: a table, and its metadata table or a snapshot of it."""
    split = _split(parts)
    if split is not None and split[1].lower() in SUFFIXES:
        owner, name = split[0], split[1].lower()
        yield owner, name, None
        for before, travel in _travelled(owner):  # "t@812$files"
            yield before, name, travel
        return
    for owner, travel in _travelled(parts):
        yield owner, None, travel
    if len(parts) == 1 and "." in parts[0]:  # a whole name in quotes, as BigQuery has it
        whole = name_parts(parts[0])
        yield whole, None, None
        yield from _meanings(whole)


def _travelled(parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], TimeTravel]]:
    before, at, ref = parts[-1].rpartition("@")
    if at and before and ref:
        yield (*parts[:-1], before), VersionText(ref, may_be_time=True)
        return
    found = re.fullmatch(_SELECTOR, parts[-1]) if len(parts) > 1 else None
    if found is not None:
        yield parts[:-1], _selected(found)


def _selected(found: re.Match[str]) -> TimeTravel:
    if found["ref"] is not None:
        return VersionText(found["ref"])
    if found["id"] is not None:
        return SnapshotId(int(found["id"]))
    return AsOf(int(found["ms"]) * 1000, found["ms"])


def _split(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
    """The name of a table and the word behind it: after a dollar sign, or the last part."""
    before, dollar, word = parts[-1].rpartition("$")
    if dollar and before:
        return (*parts[:-1], before), word
    return (parts[:-1], parts[-1]) if len(parts) > 1 else None


def metadata_scan(scan: TableScan, name: str, reference: TableReference) -> TableScan:
    """The scan of the metadata table ``name`` at the snapshot of ``scan``.

    Raises UnsupportedSqlError for time travel on a table that shows all snapshots.
    """
    if reference.travel is not None and name in OF_ALL_SNAPSHOTS:
        raise unsupported(
            f"time travel on {reference.name}",
            reference.offset,
            f"{name} shows the whole history; filter its rows, or travel on one of "
            f"{', '.join(sorted(OF_A_SNAPSHOT & SUFFIXES))}",
        )
    schema = metadata_schema(name, scan.table.metadata)
    return TableScan(
        table=scan.table,
        snapshot=scan.snapshot,
        schema=schema,
        projection=schema,
        ref=scan.ref,
        metadata_table=name,
    )
