"""A user's own SparkSession: icesql's cache for it, and local rows as its DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icesql.engine.spark.releases import frame_of_rows
from icesql.engine.spark.session.required import without_warnings
from icesql.engine.spark.types import quoted

if TYPE_CHECKING:
    import pyarrow as pa

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
        f"{quoted(name)} {kind.simpleString()}" for name, kind in zip(names, kinds, strict=True)
    )
    with without_warnings():
        return frame_of_rows(session, rows.rename_columns(names), ddl).toDF(*rows.column_names)
