"""Daft: read_iceberg of PyIceberg's table, with its SQL on top."""

from __future__ import annotations

from protocol import Question, Task, arrow_rows, select, written_by_appends


def answer(question: Question) -> list[list]:
    import daft
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(question["metadata"])
    frame = daft.read_iceberg(table, snapshot_id=question["snapshot_id"])
    return arrow_rows(daft.sql(select(question, "t"), t=frame).to_arrow())


def write(task: Task) -> str:
    import daft

    return written_by_appends(
        task, lambda rows, table: daft.from_arrow(rows).write_iceberg(table, mode="append")
    )
