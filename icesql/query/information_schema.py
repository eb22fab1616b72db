"""The tables of information_schema, and other rows in FROM that are not of a table.

Only namespaces and tables that the filter allows are listed and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from icesql.catalog.table import StoredView, Table, with_views
from icesql.context import QueryContext
from icesql.errors import (
    AccessDeniedError,
    CorruptFileError,
    TableNotFoundError,
    UnsupportedTableError,
    found_at,
)
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import And, Leaf, Operation, Or, Predicate, Term
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.query.constants.times import micros_of
from icesql.query.show_request import Columns, columns
from icesql.query.views.statements import definition
from icesql.query.views.temporary import SCHEMA, SparkFrame
from icesql.scan.plan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query
from icesql.storage.open import Storage

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Catalog, Identifier, Table
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import TableReference


T = TypeVar("T")
_NAMES: Final = "table_catalog varchar, table_schema varchar, table_name varchar"
_CONSTRAINT: Final = (
    "constraint_catalog varchar, constraint_schema varchar, constraint_name varchar"
)
COLUMNS: Final[dict[str, Columns]] = {
    name: columns(text)
    for name, text in {
        "schemata": "catalog_name varchar, schema_name varchar, schema_owner varchar",
        "tables": f"{_NAMES}, table_type varchar, is_insertable_into varchar, is_typed varchar",
        "columns": (
            f"{_NAMES}, column_name varchar, ordinal_position integer, column_default varchar, "
            "is_nullable varchar, data_type varchar, column_comment varchar, "
            "character_maximum_length integer, numeric_precision integer, "
            "numeric_precision_radix integer, numeric_scale integer, datetime_precision integer"
        ),
        "views": (f"{_NAMES}, view_definition varchar, check_option varchar, is_updatable varchar"),
        # Tools query keys and constraints before they show a table: these are empty, not errors.
        "table_constraints": (
            f"{_CONSTRAINT}, {_NAMES}, constraint_type varchar, is_deferrable varchar, "
            "initially_deferred varchar"
        ),
        "key_column_usage": (
            f"{_CONSTRAINT}, {_NAMES}, column_name varchar, ordinal_position integer, "
            "position_in_unique_constraint integer"
        ),
        "referential_constraints": (
            f"{_CONSTRAINT}, unique_constraint_catalog varchar, unique_constraint_schema varchar, "
            "unique_constraint_name varchar, match_option varchar, update_rule varchar, "
            "delete_rule varchar"
        ),
    }.items()
}
_EMPTY: Final = frozenset({"table_constraints", "key_column_usage", "referential_constraints"})
# Errors of a table without columns to show: deleted meanwhile, corrupt, or not permitted.
_LEFT_OUT: Final = (
    TableNotFoundError, UnsupportedTableError, CorruptFileError, AccessDeniedError,
)  # fmt: skip


def readable(
    load: Callable[[Identifier], T | None], identifiers: list[Identifier], query: QueryContext
) -> Iterator[T]:
    """The tables or views, without unreadable ones. Raises CatalogError, StorageError."""
    for identifier in identifiers:
        query.check()
        try:
            found = load(identifier)
        except _LEFT_OUT:
            continue
        if found is not None:
            yield found


def information(
    name: str, row_filter: Predicate, names: SearchPath, query: QueryContext
) -> Iterator[tuple[Any, ...]]:
    """The rows of ``COLUMNS[name]`` that may pass the filter.

    Tables registered by name are in the schema "". Raises CatalogError, StorageError.
    """
    catalog = names.catalog
    if name in _EMPTY:
        return
    # Field ids are the positions of columns, from 1.
    schemas = _wanted(row_filter, 2)
    if catalog is None or not _has(_wanted(row_filter, 1), catalog.name):
        return
    if name == "schemata":
        for namespace in catalog.namespaces():
            yield catalog.name, ".".join(namespace), None
        return
    wanted, held = _wanted(row_filter, 3), with_views(catalog)
    views = [] if held is None else _listed(held.views, catalog, schemas, wanted, query)
    stored: Iterable[StoredView] = () if held is None else readable(held.load_view, views, query)
    if name == "views":
        for view in stored:
            yield *_named(catalog, view.identifier), definition(view, None), "NONE", "NO"
        return
    found = _listed(catalog.tables, catalog, schemas, wanted, query)
    if name == "tables":
        for kind, can, identifiers in (("BASE TABLE", "YES", found), ("VIEW", "NO", views)):
            for identifier in identifiers:
                yield *_named(catalog, identifier), kind, can, "NO"
        return
    tables: Iterable[Table | StoredView] = chain(readable(catalog.load, found, query), stored)
    for table in tables:
        for place, column in enumerate(table.metadata.schema.fields, start=1):
            nullable = "NO" if column.required else "YES"
            described = (column.name, place, None, nullable, str(column.type), column.doc, None)
            yield *_named(catalog, table.identifier), *described, *_numbers(column.type)


def _named(catalog: Catalog, identifier: Identifier) -> tuple[str, str, str]:
    return catalog.name, ".".join(identifier[:-1]), identifier[-1]


def _numbers(kind: t.IcebergType) -> tuple[int | None, int | None, int | None, int | None]:
    """Precision, its radix and the scale of a number, and the digits of a time's seconds."""
    match kind:
        case t.DecimalType():
            return kind.precision, 10, kind.scale, None
        case t.IntegerType():
            return 32, 2, 0, None
        case t.LongType():
            return 64, 2, 0, None
        case t.FloatType():
            return 24, 2, None, None
        case t.DoubleType():
            return 53, 2, None, None
        case t.DateType():
            return None, None, None, 0
        case t.TimestampNanoType() | t.TimestamptzNanoType():
            return None, None, None, 9
        case t.TimeType() | t.TimestampType() | t.TimestamptzType():
            return None, None, None, 6
        case _:
            return None, None, None, None


def _listed(
    listed: Callable[[Identifier | None], Iterable[Identifier]],
    catalog: Catalog,
    schemas: frozenset[Any] | None,
    names: frozenset[Any] | None,
    query: QueryContext,
) -> list[Identifier]:
    """These names of those that ``listed`` has in these namespaces; None for all."""
    namespaces: list[Identifier | None] = [None]
    if schemas is not None:
        namespaces = [each for each in catalog.namespaces() if ".".join(each) in schemas]
    found: list[Identifier] = []
    for namespace in namespaces:
        query.check()
        found += [each for each in listed(namespace) if _has(names, each[-1])]
    return found


def _has(wanted: frozenset[Any] | None, value: str) -> bool:
    return wanted is None or value in wanted


def _wanted(predicate: Predicate, field_id: int) -> frozenset[Any] | None:
    """The only values of a column for which the predicate may hold; None if not known."""
    match predicate:
        case Leaf(Operation.EQ, term, literal) if _is(term, field_id):
            return frozenset((literal,))
        case Leaf(Operation.IN, term, literal) if _is(term, field_id):
            return frozenset(literal)
        case And(left, right):
            first, second = _wanted(left, field_id), _wanted(right, field_id)
            if first is None or second is None:
                return second if first is None else first
            return first & second
        case Or(left, right):
            first, second = _wanted(left, field_id), _wanted(right, field_id)
            return None if first is None or second is None else first | second
        case _:
            return None


def _is(term: Term, field_id: int) -> bool:
    return term.field_id == field_id and term.transform == "identity"


# ------------------------------------------------------------------ statements in FROM


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
