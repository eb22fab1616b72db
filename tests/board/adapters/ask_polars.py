"""Polars: scan_iceberg with its SQL on top."""

from __future__ import annotations

from protocol import (
    NotOffered,
    Question,
    Task,
    arrow_rows,
    arrow_table,
    pyiceberg_table,
    select,
    serve,
)


def answer(question: Question) -> list[list]:
    import polars

    frame = polars.scan_iceberg(question["metadata"], snapshot_id=question["snapshot_id"])
    with polars.SQLContext(t=frame) as context:
        return arrow_rows(context.execute(select(question, "t")).collect().to_arrow())


def write(task: Task) -> str:
    import polars

    if task["delete"]:
        raise NotOffered("deleting rows is not supported by this interface")
    table = pyiceberg_table(task)
    for batch in task["batches"]:
        polars.from_arrow(arrow_table(batch)).write_iceberg(table, mode="append")
    return table.refresh().metadata_location


if __name__ == "__main__":
    serve(["polars", "pyiceberg", "pyarrow"], answer, write)
