"""A reference that means a metadata table: ``t.snapshots``, ``"t$files"``, ``iceberg_metadata()``.

A table of that very name always wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import TableNotFoundError
from icesql.scan.metadata_tables.schemas import (
    OF_A_SNAPSHOT,
    OF_ALL_SNAPSHOTS,
    SUFFIXES,
    metadata_schema,
)
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.sql.statement import TableReference


def load(
    reference: TableReference, names: SearchPath, query: QueryContext
) -> tuple[Table, str | None]:
    """The table of a reference, and the metadata table of it that is meant, if one is.

    Raises what ``names.load`` raises.
    """
    if reference.metadata_table is not None:
        return names.load(reference.parts, reference.path, query), reference.metadata_table
    try:
        return names.load(reference.parts, reference.path, query), None
    except TableNotFoundError as error:
        split = _split(reference.parts)
        if split is None:
            raise
        owner, name = split
        if name not in SUFFIXES:
            raise
        try:
            return names.load(owner, None, query), name
        except TableNotFoundError as missing:
            # What is wrong is the table's name, where that can be told.
            raise (missing if missing.similar else error) from None


def _split(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
    """The name of a table and the word behind it: after a dollar sign, or the last part."""
    before, dollar, word = parts[-1].rpartition("$")
    if dollar and before:
        return (*parts[:-1], before), word.lower()
    return (parts[:-1], parts[-1].lower()) if len(parts) > 1 else None


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
