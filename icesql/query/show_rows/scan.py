"""The scan of a statement in FROM or of a DataFrame of Spark, whose rows are not of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import found_at
from icesql.iceberg import types as t
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.query.constants.time_units import micros_of
from icesql.query.show_rows.information import COLUMNS, information
from icesql.query.show_rows.request import Columns
from icesql.query.views.temporary import SCHEMA, SparkFrame
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query
from icesql.storage.open import Storage

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import TableReference

Row = tuple[Any, ...]

_TYPES: Final[dict[str, t.IcebergType]] = {
    "varchar": t.STRING,
    "bigint": t.LONG,
    "integer": t.INTEGER,
    "boolean": t.BOOLEAN,
    "timestamp": t.TIMESTAMP,
    "timestamptz": t.TIMESTAMPTZ,
}


def shown_scan(reference: TableReference, session: SessionState, query: QueryContext) -> TableScan:
    """The scan of the statement or the DataFrame of a reference.

    A SHOW or DESCRIBE is executed now, a table of information_schema when its rows are read.
    Raises the errors of the statement.
    """
    statement = reference.shown
    if isinstance(statement, SparkFrame):
        return _frame_scan(statement, reference)
    assert statement is not None
    assert not isinstance(statement, Query)
    if statement.what == "INFORMATION_SCHEMA":
        name, columns = statement.name, COLUMNS[statement.name]
        if statement.namespace:
            (catalog,) = statement.namespace
            query.wait_for(lambda: _check_catalog(catalog, reference, session.names))
        return _scan(
            reference.name,
            columns,
            lambda scan, query: information(name, scan.row_filter, session.names, query),
        )
    from icesql.query.show import show

    with found_at(reference.offset):
        columns, found, _ = query.wait_for(lambda: show(statement, session, query))
    return _scan(statement.label, columns, lambda *_: found)


def _check_catalog(name: str, reference: TableReference, names: SearchPath) -> None:
    catalog = names.catalog
    if catalog is None or catalog.name.lower() != name.lower():
        raise unsupported(
            f"information_schema of the catalog {name}",
            reference.offset,
            "it has the tables of the connection's own catalog",
        )


def _scan(
    name: str, columns: Columns, rows: Callable[[TableScan, QueryContext], Iterable[Row]]
) -> TableScan:
    kinds = [kind for _, kind in columns]
    schema = Schema(
        tuple(
            t.NestedField(number, column, _type(kind, number))
            for number, (column, kind) in enumerate(columns, start=1)
        )
    )

    def stored(scan: TableScan, query: QueryContext) -> Iterator[Row]:
        for row in rows(scan, query):
            yield tuple(_stored(value, kind) for value, kind in zip(row, kinds, strict=True))

    return _scan_of(name, schema, stored)


def _frame_scan(frame: SparkFrame, reference: TableReference) -> TableScan:
    def refused(scan: TableScan, query: QueryContext) -> Iterable[Row]:
        if scan.limit != 0:  # DESCRIBE only needs the columns
            raise unsupported(
                f"the DataFrame {frame.name} of Spark on the local engine",
                reference.offset,
                "SET engine = 'spark', or register its toArrow()",
            )
        return ()

    scan = _scan_of(f"{SCHEMA}.{frame.name}", frame.schema, refused)
    return replace(scan, frame=frame.data)


def _scan_of(
    name: str, schema: Schema, rows: Callable[[TableScan, QueryContext], Iterable[Row]]
) -> TableScan:
    metadata = TableMetadata(
        format_version=2,
        # No uuid would be equal to that of a table of format version 1 without one.
        table_uuid="",
        location="",
        last_updated_ms=0,
        last_sequence_number=0,
        schemas={0: schema},
        current_schema_id=0,
        specs={0: PartitionSpec()},
        default_spec_id=0,
    )

    table = Table((name,), metadata, "", Storage())
    return TableScan(table, None, schema, schema, metadata_table=name, rows=rows)


def _type(kind: str, number: int) -> t.IcebergType:
    if kind.endswith("[]"):
        return t.ListType(1000 + number, _TYPES[kind.removesuffix("[]")])
    return _TYPES[kind]


def _stored(value: Any, kind: str) -> Any:
    """A value in the internal form of ``iceberg.types``."""
    if kind.startswith("timestamp") and value is not None:
        return micros_of(value.replace(tzinfo=value.tzinfo or UTC))
    return value
