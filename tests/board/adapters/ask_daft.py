"""Daft: read_iceberg of PyIceberg's table, with its SQL on top."""

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
    import daft
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(question["metadata"])
    frame = daft.read_iceberg(table, snapshot_id=question["snapshot_id"])
    return arrow_rows(daft.sql(select(question, "t"), t=frame).to_arrow())


def write(task: Task) -> str:
    import daft

    if task["delete"]:
        raise NotOffered("deleting rows is not supported by this interface")
    table = pyiceberg_table(task)
    for batch in task["batches"]:
        daft.from_arrow(arrow_table(batch)).write_iceberg(table, mode="append")
    return table.refresh().metadata_location


if __name__ == "__main__":
    serve(["daft", "pyiceberg", "pyarrow"], answer, write)
