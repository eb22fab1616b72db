"""A user's own SparkSession: icesql's cache for it, and DataFrames in and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.spark.releases import frame_of_rows, in_session
from icesql.engine.spark.session.required import without_warnings
from icesql.engine.spark.types import spark_type
from icesql.engine.spark.worker import pack
from icesql.quoting import spark_name

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.scan.table_scan import TableScan

_NAME: Final = "_icesql"


def session_cache(session: Any) -> dict[str, Any]:
    """The dictionary that icesql keeps for a session; it ends with the session."""
    # A weak key would not work: the values refer to the session.
    cache: dict[str, Any] = vars(session).setdefault(_NAME, {})
    return cache


def static_frame(session: Any, rows: pa.Table) -> Any:
    """A DataFrame of a session with these rows, in PySpark's types for Arrow's."""
    from pyspark.sql.pandas.types import from_arrow_type

    kinds = [from_arrow_type(each.type, prefer_timestamp_ntz=True) for each in rows.schema]
    names = [f"c{place}" for place in range(len(kinds))]
    ddl = ", ".join(
        f"{spark_name(name)} {kind.simpleString()}" for name, kind in zip(names, kinds, strict=True)
    )
    with without_warnings():
        return frame_of_rows(session, rows.rename_columns(names), ddl).toDF(*rows.column_names)


def in_tasks(session: Any, rows: Iterable[Any], function: Callable[..., Any], schema: str) -> Any:
    """A DataFrame of what ``function`` makes of ``rows``, each of them packed in its own task."""
    import pyarrow as pa

    table = pa.table({"packed": pa.array(list(map(pack, rows)), pa.binary())})
    with without_warnings():
        return frame_of_rows(session, table, "packed BINARY").mapInArrow(function, schema)


def frame_of_scan(scan: TableScan, session: Any) -> Any:
    """The projected columns of a scan's DataFrame, in icesql's ``session``.

    Spark plans and computes the DataFrame under the settings of the user's session, once for each
    call of this function: what was computed for an earlier statement is not used again.
    """
    from pyspark.sql.functions import col, lit

    named = scan.frame.toDF(*(each.name for each in scan.schema.fields))
    columns = [
        col(spark_name(each.name)).cast(spark_type(each.type)).alias(each.name)
        for each in scan.projection.fields
    ]
    return in_session(named.select(*(columns or [lit(None).cast("INT").alias("none")])), session)
