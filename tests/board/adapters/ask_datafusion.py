"""DataFusion with the table provider of pyiceberg-core, which is Iceberg's Rust library."""

from __future__ import annotations

from protocol import Question, arrow_rows, no_time_travel, select


def answer(question: Question) -> list[list]:
    import pyarrow as pa
    from datafusion import SessionContext
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    no_time_travel(question)
    context = SessionContext()
    table = IcebergDataFusionTable(["db", "t"], "file://" + question["metadata"], {})
    context.register_table("t", table)
    frame = context.sql(select(question, "t"))
    return arrow_rows(pa.Table.from_batches(frame.collect(), schema=frame.schema()))
