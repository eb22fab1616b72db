"""A REST catalog of the tests that plans scans: at once, later, in pages, or wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from icesql.catalog.table import Table, table_from_metadata
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.rest_json import parse_predicate, value_json
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import BinaryType, FixedType
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from icesql.scan.spec_scan import SpecScan
from tests.catalog.rest_server import Server

_CONTENTS = {
    FileContent.DATA: "data",
    FileContent.POSITION_DELETES: "position-deletes",
    FileContent.EQUALITY_DELETES: "equality-deletes",
}


# Members of a file's JSON with the same names as attributes of DataFile.
_MEMBERS = [
    "spec_id",
    "file_size_in_bytes",
    "record_count",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
]


class PlanningServer(Server):
    """Plans with icesql's own planner, and sends the JSON of Java's ``ContentFileParser``.

    A plan is ready after ``later`` polls; each response has ``page`` tasks and names ``fan``
    further plan tasks. ``change`` can falsify a response. ``planned`` are the requests,
    ``cancelled`` the cancelled plans.
    """

    def __init__(self) -> None:
        super().__init__()
        self.config["overrides"]["scan-planning-mode"] = "server"
        self.later = 0
        self.page: int | None = None
        self.fan = 1
        self.change: Callable[[dict[str, Any]], Any] = lambda answer: None
        self.planned: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.asked_tasks: list[str] = []
        self._left: dict[str, int] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self._tasks: dict[str, dict[str, Any]] = {}

    def catalog(
        self, request: Any, parts: list[str], query: dict[str, Any], headers: dict[str, str]
    ) -> None:
        match request.command, parts:
            case "POST", ["namespaces", namespace, "tables", name, "plan"]:
                asked = json.loads(self.bodies[id(request)])
                self.planned.append(asked)
                found = self.tables[(*namespace.split("\x1f"), name)]
                plan_id = f"plan {len(self.planned)}/%"
                answer = self._planned(found, asked, plan_id)
                self._answers[plan_id], self._left[plan_id] = answer, self.later
                if self.later:
                    answer = {"status": "submitted", "plan-id": plan_id}
                self._answer(request, answer)
            case "GET", ["namespaces", _, "tables", _, "plan", plan_id]:
                self._left[plan_id] -= 1
                answer = {"status": "submitted"}
                if self._left[plan_id] <= 0:
                    answer = self._answers[plan_id]
                self._answer(request, answer)
            case "DELETE", ["namespaces", _, "tables", _, "plan", plan_id]:
                self.cancelled.append(plan_id)
                self.send(request, 204, None)
            case "POST", ["namespaces", _, "tables", _, "tasks"]:
                task = json.loads(self.bodies[id(request)])["plan-task"]
                self.asked_tasks.append(task)
                self._answer(request, self._tasks[task])
            case _:
                super().catalog(request, parts, query, headers)

    def _answer(self, request: Any, answer: dict[str, Any]) -> None:
        changed = json.loads(json.dumps(answer))
        changed = self.change(changed) or changed
        self.send(request, 200, changed)

    def _planned(
        self, found: dict[str, Any], asked: dict[str, Any], plan_id: str
    ) -> dict[str, Any]:
        table = table_from_metadata(("planned",), found["metadata-location"])
        metadata = table.metadata
        snapshot = metadata.snapshots[asked["snapshot-id"]]
        is_own = asked["use-snapshot-schema"]
        schema = metadata.schema_of(snapshot) if is_own else metadata.schema
        predicate = ALWAYS_TRUE
        if "filter" in asked:
            predicate = parse_predicate(asked["filter"], schema)
        wanted = asked.get("select", [each.name for each in schema.fields])
        chosen = [schema.find_column(name) for name in wanted]
        projection = Schema(tuple(each for each in chosen if each is not None))
        assert len(projection.fields) == len(chosen)
        scan = TableScan(table, snapshot, schema, projection, predicate)
        tasks = [(task.data_file, task.deletes) for task in plan(scan, QueryContext()).files]
        size = self.page or max(len(tasks), 1)
        pages = [tasks[start : start + size] for start in range(0, len(tasks), size)] or [[]]
        names = [f"{plan_id} task {number}" for number in range(len(pages))]
        answers = []
        for number, page in enumerate(pages):
            answer = _scan_tasks(table, page, asked.get("filter"))
            # The responses form a tree: each names the next plan tasks.
            following = names[number * self.fan + 1 : (number + 1) * self.fan + 1]
            if following:
                answer["plan-tasks"] = following
            answers.append(answer)
        self._tasks.update(zip(names, answers, strict=True))
        return {"status": "completed", "plan-id": plan_id, **answers[0]}


def _scan_tasks(table: Table, tasks: list[Any], asked: Any) -> dict[str, Any]:
    deletes: list[DataFile] = []
    sent = []
    for file, of_file in tasks:
        numbers = []
        for delete in of_file:
            if not any(delete is each for each in deletes):
                deletes.append(delete)
            numbers.append(next(n for n, each in enumerate(deletes) if each is delete))
        told: dict[str, Any] = {"data-file": content_file(table, file)}
        if numbers:
            told["delete-file-references"] = numbers
        if asked is not None:
            told["residual-filter"] = asked
        sent.append(told)
    answer: dict[str, Any] = {"file-scan-tasks": sent}
    if deletes:
        answer["delete-files"] = [content_file(table, each) for each in deletes]
    return answer


def content_file(table: Table, file: DataFile) -> dict[str, Any]:
    """A file as Java writes it, without sequence numbers."""
    metadata = table.metadata
    spec = SpecScan(metadata.specs[file.spec_id], ALWAYS_TRUE, metadata.schema, metadata)
    values = [
        None if value is None else partition_json(type, value)
        for type, value in zip(spec.types, file.partition, strict=True)
    ]
    told: dict[str, Any] = {
        "content": _CONTENTS[file.content],
        "file-path": file.path,
        "file-format": file.file_format.lower(),
        "partition": values,
    }
    others = {each.replace("_", "-"): getattr(file, each) for each in _MEMBERS}
    return told | {key: value for key, value in others.items() if value is not None}


def partition_json(type: Any, value: Any) -> Any:
    """A partition value; bytes are in hexadecimal."""
    is_bytes = isinstance(type, BinaryType | FixedType)
    return value.hex() if is_bytes else value_json(type, value)
