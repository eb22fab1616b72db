"""Polars: scan_iceberg with its SQL on top."""

from __future__ import annotations

from protocol import Question, Task, arrow_rows, select, written_by_appends


def answer(question: Question) -> list[list]:
    import polars

    frame = polars.scan_iceberg(question["metadata"], snapshot_id=question["snapshot_id"])
    with polars.SQLContext(t=frame) as context:
        return arrow_rows(context.execute(select(question, "t")).collect().to_arrow())


def write(task: Task) -> str:
    import polars

    return written_by_appends(
        task, lambda rows, table: polars.from_arrow(rows).write_iceberg(table, mode="append")
    )
