"""icesql."""

from __future__ import annotations

from protocol import COLUMNS, Question, Task, latest_metadata, select, serve, values


def answer(question: Question) -> list[tuple]:
    import icesql

    with icesql.connect() as connection:
        connection.register_table("t", question["metadata"])
        snapshot = question["snapshot_id"]
        relation = "t" if snapshot is None else f"t FOR VERSION AS OF {snapshot}"
        return connection.cursor().execute(select(question, relation)).fetchall()


def write(task: Task) -> str:
    import icesql

    partition = f" PARTITIONED BY ({task['partition']})" if task["partition"] else ""
    with icesql.connect(warehouse=task["folder"], dialect="spark") as connection:
        cursor = connection.cursor()
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        cursor.execute(f"CREATE TABLE db.t ({columns}) USING iceberg{partition}")
        for batch in task["batches"]:
            cursor.execute(f"INSERT INTO db.t VALUES {values(batch)}")
        if task["delete"]:
            cursor.execute(f"DELETE FROM db.t WHERE {task['delete']}")
    return latest_metadata(task["folder"])


if __name__ == "__main__":
    serve(["icesql", "duckdb", "pyiceberg"], answer, write)
