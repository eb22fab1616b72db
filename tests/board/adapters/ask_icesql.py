"""icesql."""

from __future__ import annotations

from protocol import Question, Task, select, written_by_sql


def answer(question: Question) -> list[tuple]:
    import icesql

    with icesql.connect() as connection:
        connection.register_table("t", question["metadata"])
        snapshot = question["snapshot_id"]
        relation = "t" if snapshot is None else f"t FOR VERSION AS OF {snapshot}"
        return connection.cursor().execute(select(question, relation)).fetchall()


def write(task: Task) -> str:
    import icesql

    with icesql.connect(warehouse=task["folder"], dialect="spark") as connection:
        return written_by_sql(connection.cursor().execute, task, "db.t")
