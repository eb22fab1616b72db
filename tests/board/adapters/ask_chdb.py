"""chDB: ClickHouse in a process, with its table function for Iceberg in a local folder."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from protocol import Question, Task, arrow_rows, latest_metadata, select, values


def answer(question: Question) -> list[list]:
    import chdb
    import pyarrow as pa

    metadata = Path(question["metadata"])
    settings = [f"iceberg_metadata_file_path = 'metadata/{metadata.name}'"]
    if question["snapshot_id"] is not None:
        settings.append(f"iceberg_snapshot_id = {question['snapshot_id']}")
    relation = f"icebergLocal('{metadata.parents[1]}', SETTINGS {settings[0]})"
    # Its strings are bytes, which need not be text.
    options = ", ".join(["output_format_arrow_string_as_string = 0", *settings[1:]])
    result = chdb.query(f"{select(question, relation)} SETTINGS {options}", "Arrow")
    rows = arrow_rows(pa.ipc.open_file(result.bytes()).read_all())
    return [[_text(cell) for cell in row] for row in rows]


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, dict):
        return {name: _text(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text(each) for each in value]
    return value


@functools.cache
def session() -> Any:
    from chdb.session import Session

    return Session()


def write(task: Task) -> str:
    columns = (
        "id Int64, name Nullable(String), amount Nullable(Decimal(9, 2)), day Nullable(Date32)"
    )
    partition = f" PARTITION BY ({task['partition']})" if task["partition"] else ""
    name = "w" + Path(task["folder"]).name
    engine = f"ENGINE = IcebergLocal('{task['folder']}/t/')"
    ask = session().query
    ask("SET allow_insert_into_iceberg = 1, write_full_path_in_iceberg_metadata = 1")
    ask(f"CREATE TABLE {name} ({columns}) {engine}{partition}")
    for batch in task["batches"]:
        rows = values(batch).replace("AS STRING", "AS String").replace("AS DATE", "AS Date32")
        ask(f"INSERT INTO {name} VALUES {rows}")
    if task["delete"]:
        ask(f"ALTER TABLE {name} DELETE WHERE {task['delete']}")
    return latest_metadata(task["folder"])
