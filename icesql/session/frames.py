"""DataFrames and temporary views of Spark as tables that statements can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb_types import duckdb_type
from icesql.engine.result_schema import unique_names
from icesql.engine.spark.own_text import declared_columns
from icesql.errors import ProgrammingError, TableNotFoundError, UnsupportedSqlError
from icesql.iceberg.schema import Schema
from icesql.modify.column_types import result_fields
from icesql.query.metadata_scan import load
from icesql.query.views.temporary import SparkFrame

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.engine.engines import Engines
    from icesql.session.outcome import State
    from icesql.sql.statement import TableReference

# Spark's types of which a table has no column that compares and converts in the same way.
_REFUSED: Final = ("TimeType", "CharType", "VarcharType")


def spark_frame(name: str, frame: Any) -> SparkFrame:
    """A DataFrame under a name; the types of its columns become those of a table. Runs nothing.

    Raises ProgrammingError for a stream and for a DataFrame without columns, UnsupportedSqlError
    for a type that tables do not have.
    """
    if frame.isStreaming:
        raise ProgrammingError(f"{name} is a stream, which has no end; writeStream writes it")
    if not frame.schema.fields:
        raise ProgrammingError("a table without columns cannot be queried")
    for each in frame.schema.fields:
        _check_type(each.dataType, each.name)
    declared = declared_columns(frame.schema, unique_names(frame.columns))
    fields = result_fields(declared)
    described = tuple(
        (each.name, each.type.name, duckdb_type(field.type))
        for each, field in zip(declared, fields, strict=True)
    )
    return SparkFrame(name, described, frame, 0, Schema(fields))


def _check_type(kind: Any, column: str) -> None:
    is_collated = getattr(kind, "collation", None) not in (None, "UTF8_BINARY")
    if is_collated or type(kind).__name__ in _REFUSED:
        raise UnsupportedSqlError(
            f"a DataFrame with column {column} of Spark's type {kind.simpleString()}",
            hint="CAST it to STRING",
        )
    parts = [getattr(kind, each, None) for each in ("elementType", "keyType", "valueType")]
    parts += [each.dataType for each in getattr(kind, "fields", ())]
    for part in parts:
        if part is not None:
            _check_type(part, column)


def spark_view(
    reference: TableReference, state: State, engines: Engines, query: QueryContext
) -> SparkFrame | None:
    """The temporary view of the user's SparkSession that a name without a table means, if any.

    The owner of a connection that limits SQL registers what it may read.
    """
    if not state.access.is_open:
        return None
    inside = reference.place is not None and reference.place.stored
    if inside or reference.path is not None or len(reference.parts) != 1:
        return None
    try:
        load(reference, state.names, query)
    except TableNotFoundError:
        (name,) = reference.parts
        found = query.wait_for(lambda: engines.spark().sessions.temporary_view(name))
        return None if found is None else spark_frame(name, found)
    return None
