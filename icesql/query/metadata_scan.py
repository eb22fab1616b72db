"""Resolve names with a suffix after the table: ``t.snapshots``, ``"t$files"``, ``t.branch_x``.

A table with exactly the whole name always takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.errors import AccessDeniedError, TableNotFoundError
from icesql.frozen import Frozen
from icesql.scan.metadata_tables.schemas import (
    OF_A_SNAPSHOT,
    OF_ALL_SNAPSHOTS,
    SUFFIXES,
    metadata_schema,
)
from icesql.scan.plan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.table_name import name_parts
from icesql.sql.time_travel import AsOf, SnapshotId, TimeTravel, VersionText

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext
    from icesql.sql.statement import TableReference


# Spark's names for a table at a snapshot.
_SELECTOR: Final = (
    r"(?i)(?:branch|tag)_(?P<ref>.+)|snapshot_id_(?P<id>\d{1,40})|at_timestamp_(?P<ms>\d{1,18})"
)


class Found(Frozen):
    """The table, and the metadata table or ref that the name's suffix selects."""

    table: Table
    metadata_table: str | None = None
    travel: TimeTravel | None = None


def load(reference: TableReference, names: SearchPath, query: QueryContext) -> Found:
    """Resolve a reference. Raises the errors of ``names.load``."""
    if reference.path is not None:
        return _by_path(reference, names, query)
    try:
        return Found(names.load(reference.parts, reference.path, query, reference.place))
    except TableNotFoundError as error:
        raised = error
        for owner, name, travel in _meanings(reference.parts):
            try:
                return Found(names.load(owner, None, query, reference.place), name, travel)
            except TableNotFoundError as missing:
                # Prefer the error that suggests a similar table name.
                raised = missing if missing.similar and raised is error else raised
        raise raised from None


def _by_path(reference: TableReference, names: SearchPath, query: QueryContext) -> Found:
    """Resolve ``iceberg_scan('path')`` and similar calls; the path may be a table's name."""
    path = reference.path
    assert path is not None
    try:
        table = names.load(reference.parts, path, query, reference.place)
        return Found(table, reference.metadata_table)
    except (TableNotFoundError, AccessDeniedError) as error:
        if re.search(r"[/\\:]", path) or path.endswith(".json"):
            raise
        raised = error
    try:
        found = load(replace(reference, path=None, parts=name_parts(path)), names, query)
    except TableNotFoundError as missing:
        raise (missing if missing.similar else raised) from None
    if found.metadata_table is not None:
        raise raised
    return replace(found, metadata_table=reference.metadata_table)


_Meaning = tuple[tuple[str, ...], str | None, TimeTravel | None]


def _meanings(parts: tuple[str, ...]) -> Iterator[_Meaning]:
    """Other readings of a name: a table with its metadata table or a snapshot of it."""
    split = _split(parts)
    if split is not None and split[1].lower() in SUFFIXES:
        owner, name = split[0], split[1].lower()
        yield owner, name, None
        for before, travel in _travelled(owner):  # "t@812$files"
            yield before, name, travel
        return
    for owner, travel in _travelled(parts):
        yield owner, None, travel
    if len(parts) == 1 and "." in parts[0]:  # a whole name in quotes, as in BigQuery
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
    """Split a name into table and suffix: at a dollar sign, or before the last part."""
    before, dollar, word = parts[-1].rpartition("$")
    if dollar and before:
        return (*parts[:-1], before), word
    return (parts[:-1], parts[-1]) if len(parts) > 1 else None


def metadata_scan(scan: TableScan, name: str, reference: TableReference) -> TableScan:
    """The scan of the metadata table ``name`` at the snapshot of ``scan``.

    Raises UnsupportedSqlError for time travel on a metadata table of all snapshots.
    """
    if reference.travel is not None and name in OF_ALL_SNAPSHOTS:
        raise unsupported(
            f"time travel on {reference.name}",
            reference.offset,
            f"{name} shows the whole history; filter its rows, or travel on one of "
            f"{', '.join(sorted(OF_A_SNAPSHOT & SUFFIXES))}",
        )
    schema = metadata_schema(name, scan.table.metadata)
    return replace(scan, schema=schema, projection=schema, metadata_table=name)
