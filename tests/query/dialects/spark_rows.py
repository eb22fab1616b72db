"""The rows for tests of Spark's dialect: NULL, NaN, empty, negative, Unicode in every type."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa


def rows() -> pa.Table:
    """The table ``t``, the result of ``spark_rows.sql``."""
    sql = Path(__file__).with_name("spark_rows.sql").read_text(encoding="utf-8")
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        return engine.sql(sql).to_arrow_table()


def write(folder: Path) -> None:
    """Create a warehouse in ``folder`` whose table ``n.t`` has these rows in one file."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = rows()
    made = catalog.create_table("n.t", table.schema)
    made.append(table)
