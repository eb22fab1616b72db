"""A REST catalog that applies updates to plain JSON, and a gateway before it that fails.

Source: Iceberg REST catalog specification; nothing of icesql or PyIceberg applies an update here.
"""

from __future__ import annotations

import copy
import json
import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.catalog.rest_server import Server

Json = dict[str, Any]
Name = tuple[str, ...]
_LOG = 100
_LISTS = {"schema": "schemas", "spec": "partition-specs", "sort-order": "sort-orders"}
_IDS = {"schema": "schema-id", "spec": "spec-id", "sort-order": "order-id"}
_BASE = "/v1/{prefix}/namespaces"
ENDPOINTS = [
    f"GET {_BASE}", f"POST {_BASE}", f"GET {_BASE}/{{namespace}}", f"DELETE {_BASE}/{{namespace}}",
    f"GET {_BASE}/{{namespace}}/tables", f"POST {_BASE}/{{namespace}}/tables",
    f"GET {_BASE}/{{namespace}}/tables/{{table}}", f"POST {_BASE}/{{namespace}}/tables/{{table}}",
    f"DELETE {_BASE}/{{namespace}}/tables/{{table}}", "POST /v1/{prefix}/transactions/commit",
]  # fmt: skip


class Refused(Exception):
    """A requirement does not hold."""


class Unfit(Exception):
    """A change does not fit the table's format version."""


# ------------------------------------------------------------------ metadata as JSON


def empty() -> Json:
    """What the updates of a new table begin with."""
    return {
        "format-version": 2, "table-uuid": str(uuid.uuid4()), "location": "",
        "last-sequence-number": 0, "last-updated-ms": 0, "last-column-id": 0, "schemas": [],
        "current-schema-id": -1, "partition-specs": [], "default-spec-id": -1,
        "last-partition-id": 999, "sort-orders": [], "default-sort-order-id": -1,
        "properties": {}, "snapshots": [], "refs": {}, "snapshot-log": [], "metadata-log": [],
        "statistics": [], "partition-statistics": [],
    }  # fmt: skip


def check(table: Json | None, needed: Json) -> None:
    """Raise Refused for a requirement that does not hold."""
    kind = needed["type"]
    if kind == "assert-create":
        held = table is None
    elif table is None:
        held = False
    elif kind == "assert-table-uuid":
        held = table["table-uuid"].lower() == needed["uuid"].lower()
    elif kind == "assert-ref-snapshot-id":
        held = table["refs"].get(needed["ref"], {}).get("snapshot-id") == needed["snapshot-id"]
    else:
        own = {
            "assert-last-assigned-field-id": "last-column-id",
            "assert-current-schema-id": "current-schema-id",
            "assert-last-assigned-partition-id": "last-partition-id",
            "assert-default-spec-id": "default-spec-id",
            "assert-default-sort-order-id": "default-sort-order-id",
        }[kind]
        told = {"assert-last-assigned-field-id": "last-assigned-field-id",
                "assert-last-assigned-partition-id": "last-assigned-partition-id"}  # fmt: skip
        held = table[own] == needed[told.get(kind, own)]
    if not held:
        raise Refused(f"{kind} does not hold")


def apply(table: Json, updates: list[Json]) -> Json:
    """The table after updates; ``table`` is not changed."""
    made = copy.deepcopy(table)
    added: dict[str, int] = {}
    now = max(made["last-updated-ms"], time.time_ns() // 1_000_000)
    for each in updates:
        _apply(made, each, added, now)
    made["last-updated-ms"] = now
    return made


def _apply(made: Json, update: Json, added: dict[str, int], now: int) -> None:
    match update["action"]:
        case "assign-uuid":
            made["table-uuid"] = update["uuid"]
        case "upgrade-format-version":
            if update["format-version"] > 2:
                made.setdefault("next-row-id", 0)
            made["format-version"] = update["format-version"]
        case "set-location":
            made["location"] = update["location"]
        case "set-properties":
            made["properties"] |= update["updates"]
        case "remove-properties":
            for each in update["removals"]:
                made["properties"].pop(each, None)
        case "add-schema":
            _add(made, "schema", update["schema"], added)
            made["last-column-id"] = max(made["last-column-id"], _highest(update["schema"]))
        case "add-spec":
            _add(made, "spec", update["spec"], added)
            ids = [each["field-id"] for each in update["spec"]["fields"]]
            made["last-partition-id"] = max([made["last-partition-id"], *ids])
        case "add-sort-order":
            _add(made, "sort-order", update["sort-order"], added)
        case "set-current-schema":
            made["current-schema-id"] = _chosen("schema", update["schema-id"], added)
        case "set-default-spec":
            made["default-spec-id"] = _chosen("spec", update["spec-id"], added)
        case "set-default-sort-order":
            made["default-sort-order-id"] = _chosen("sort-order", update["sort-order-id"], added)
        case "remove-partition-specs":
            gone = update["spec-ids"]
            made["partition-specs"] = [
                s for s in made["partition-specs"] if s["spec-id"] not in gone
            ]
        case "remove-schemas":
            gone = update["schema-ids"]
            made["schemas"] = [s for s in made["schemas"] if s["schema-id"] not in gone]
        case "set-statistics" | "remove-statistics" as action:
            own = [s for s in made["statistics"] if s["snapshot-id"] != update["snapshot-id"]]
            made["statistics"] = own + [update["statistics"]] * (action == "set-statistics")
        case _:
            _apply_snapshots(made, update, now)


def _apply_snapshots(made: Json, update: Json, now: int) -> None:
    refs = made["refs"]
    match update["action"]:
        case "add-snapshot":
            snapshot = update["snapshot"]
            number = snapshot.get("sequence-number", 0)
            if made["format-version"] > 1:
                if number <= made["last-sequence-number"] and snapshot.get("parent-snapshot-id"):
                    raise Refused(f"sequence number {number} is too old")
                made["last-sequence-number"] = max(number, made["last-sequence-number"])
            if made["format-version"] > 2:
                if snapshot.get("first-row-id") is None:
                    raise Unfit("a snapshot of version 3 needs a first row id")
                if snapshot["first-row-id"] < made["next-row-id"]:
                    raise Refused(f"row id {snapshot['first-row-id']} was given before")
                made["next-row-id"] = snapshot["first-row-id"] + snapshot["added-rows"]
            made["snapshots"].append(snapshot)
        case "set-snapshot-ref":
            told = {k: v for k, v in update.items() if k not in ("action", "ref-name")}
            if all(each["snapshot-id"] != told["snapshot-id"] for each in made["snapshots"]):
                raise Unfit(f"{update['ref-name']} cannot be an unknown snapshot")
            refs[update["ref-name"]] = told
            if update["ref-name"] == "main":
                made["current-snapshot-id"] = told["snapshot-id"]
                made["snapshot-log"].append(
                    {"snapshot-id": told["snapshot-id"], "timestamp-ms": now}
                )
        case "remove-snapshot-ref":
            refs.pop(update["ref-name"], None)
            if update["ref-name"] == "main":
                made["current-snapshot-id"] = None
        case "remove-snapshots":
            gone = {*update["snapshot-ids"]}
            made["snapshots"] = [s for s in made["snapshots"] if s["snapshot-id"] not in gone]
            made["snapshot-log"] = [s for s in made["snapshot-log"] if s["snapshot-id"] not in gone]
            for name in [name for name, ref in refs.items() if ref["snapshot-id"] in gone]:
                del refs[name]
        case action:
            raise ValueError(f"no update {action}")


def _add(made: Json, kind: str, given: Json, added: dict[str, int]) -> None:
    known, key = made[_LISTS[kind]], _IDS[kind]

    def content(each: Json) -> Json:
        return {name: value for name, value in each.items() if name != key}

    for each in known:
        if content(each) == content(given):
            added[kind] = each[key]
            return
    unsorted = kind == "sort-order" and not given["fields"]
    least = 0 if kind != "sort-order" or unsorted else 1
    number = 0 if unsorted else max([least - 1, *(each[key] for each in known)]) + 1
    known.append({**content(given), key: number})
    added[kind] = number


def _chosen(kind: str, given: int, added: dict[str, int]) -> int:
    return added[kind] if given == -1 else given


def _highest(schema: Any) -> int:
    """The greatest id of a schema, of whatever is nested in it too."""
    if isinstance(schema, list):
        return max(map(_highest, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    own = [schema[each] for each in ("id", "element-id", "key-id", "value-id") if each in schema]
    return max([0, *own, *map(_highest, schema.values())])


# ------------------------------------------------------------------ the catalog


class Lake:
    """The tables of a catalog; ``events`` are called with the names of what was applied."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables = folder, dict[Name, Json]()
        self.namespaces: set[Name] = set()
        self._lock = threading.Lock()

    def commit(self, changes: list[tuple[Name, Json]]) -> tuple[int, Any]:
        """Apply the changes of all tables, or none: a status and an answer."""
        with self._lock:  # processes ask at once
            return self._commit(changes)

    def _commit(self, changes: list[tuple[Name, Json]]) -> tuple[int, Any]:
        made: dict[Name, Json] = {}
        try:
            for name, body in changes:
                known = self.tables.get(name)
                metadata = None if known is None else known["metadata"]
                for each in body["requirements"]:
                    check(metadata, each)
                if metadata is None and not any(
                    each["type"] == "assert-create" for each in body["requirements"]
                ):
                    return 404, _error("gone", "NoSuchTableException")
                made[name] = apply(metadata or empty(), body["updates"])
        except Refused as error:
            return 409, _error(str(error), "CommitFailedException")
        except Unfit as error:
            return 400, _error(str(error), "ValidationException")
        for name, metadata in made.items():
            self.keep(name, metadata)
        last = self.tables[changes[-1][0]]
        return 200, {key: last[key] for key in ("metadata", "metadata-location")}

    def keep(self, name: Name, metadata: Json) -> None:
        """Make this the table's metadata."""
        known = self.tables.get(name)
        if known is not None:
            line = {
                "metadata-file": known["metadata-location"],
                "timestamp-ms": known["metadata"]["last-updated-ms"],
            }
            metadata["metadata-log"] = [*metadata["metadata-log"], line][-_LOG:]
        if metadata.get("current-snapshot-id") in (None, -1):
            metadata["current-snapshot-id"] = None if metadata["format-version"] > 2 else -1
        if metadata["format-version"] == 1:
            schema, spec = metadata["current-schema-id"], metadata["default-spec-id"]
            metadata["schema"] = next(s for s in metadata["schemas"] if s["schema-id"] == schema)
            metadata["partition-spec"] = next(
                s["fields"] for s in metadata["partition-specs"] if s["spec-id"] == spec
            )
        place = Path(metadata["location"]) / "metadata" / f"{uuid.uuid4()}.metadata.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(metadata))
        self.tables[name] = {"metadata-location": str(place), "metadata": metadata, "config": {}}

    def create(self, name: Name, body: Json) -> tuple[int, Any]:
        """A table by the request that makes one, or what it will be."""
        if name in self.tables:
            return 409, _error("there is one", "AlreadyExistsException")
        given = dict(body.get("properties") or {})
        version = int(given.pop("format-version", "2"))
        spec = body.get("partition-spec") or {"spec-id": 0, "fields": []}
        order = body.get("write-order") or {"order-id": 0, "fields": []}
        place = body.get("location") or str(self.folder.joinpath(*name))
        updates = [
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "add-schema", "schema": body["schema"]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": order},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": place},
            {"action": "set-properties", "updates": given},
        ]  # fmt: skip
        metadata = apply(empty(), updates)
        if body.get("stage-create"):
            return 200, {"metadata": metadata, "config": {}}
        self.keep(name, metadata)
        return 200, self.tables[name]


def _error(message: str, kind: str) -> Json:
    return {"error": {"message": message, "type": kind, "code": 400}}


class Front(Server):
    """Answers requests about a lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        super().__init__()
        self.config["endpoints"] = ENDPOINTS
        self.tables = lake.tables
        self.http.handle_error = lambda *given: None  # type: ignore[method-assign]

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        lake = self.lake
        body = json.loads(request.body) if request.body else None
        match request.command, parts:
            case "GET", ["namespaces", name]:
                here = tuple(name.split("\x1f"))
                known = here in lake.namespaces
                told = {"namespace": [*here], "properties": {}} if known else _error("gone", "")
                self.send(request, 200 if known else 404, told)
            case "POST", ["namespaces"]:
                lake.namespaces.add(tuple(body["namespace"]))
                self.send(request, 200, {"namespace": body["namespace"], "properties": {}})
            case "POST", ["namespaces", above, "tables"]:
                name = (*above.split("\x1f"), body["name"])
                if body.get("stage-create"):
                    self.send(request, *lake.create(name, body))
                else:
                    self.change(request, lambda: lake.create(name, body))
            case "POST", ["namespaces", above, "tables", name]:
                wanted = (*above.split("\x1f"), name)
                self.change(request, lambda: lake.commit([(wanted, body)]))
            case "POST", ["transactions", "commit"]:
                changes = [
                    ((*each["identifier"]["namespace"], each["identifier"]["name"]), each)
                    for each in body["table-changes"]
                ]
                self.change(request, lambda: self.together(changes))
            case "DELETE", ["namespaces", above, "tables", name]:
                gone = lake.tables.pop((*above.split("\x1f"), name), None)
                self.send(request, 404 if gone is None else 204, None)
            case _:
                super().catalog(request, parts, query, headers)

    def together(self, changes: list[tuple[Name, Json]]) -> tuple[int, Any]:
        status, answer = self.lake.commit(changes)
        return (204, None) if status == 200 else (status, answer)

    def change(self, request: Any, change: Callable[[], tuple[int, Any]]) -> None:
        self.send(request, *change())


class Gateway(Front):
    """Before the same lake; ``plan`` says what happens to the next changes that are sent.

    - ``lose``: it is applied, and the answer is a failure of the gateway, or none at all.
    - ``drop``: it is not applied, with the same answers.
    - ``repeat``: it is sent twice, and the second answer is given.
    - ``late``: the client gets a failure, and the change arrives when ``deliver`` is called.
    ``down`` is how many looks at the catalog fail after it. ``between`` is called between the two
    sendings of a repeated one.
    """

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self.plan: list[tuple[str, int, int]] = []
        self.late: list[Callable[[], tuple[int, Any]]] = []
        self.down = 0
        self.told: list[str] = []
        self.between: Callable[[], None] | None = None

    def answer(self, request: Any) -> None:
        if self.down and request.command == "GET":
            self.down -= 1
            request.rfile.read(int(request.headers.get("content-length") or 0))
            self.send(request, 503, {"error": {"message": "no healthy upstream"}})
            return
        super().answer(request)

    def change(self, request: Any, change: Callable[[], tuple[int, Any]]) -> None:
        kind, status, down = self.plan.pop(0) if self.plan else ("pass", 0, 0)
        if kind != "pass":
            self.told.append(f"{kind} {status} {down}")
        self.down = down
        if kind in ("pass", "lose", "repeat"):
            answer = change()
            if kind == "repeat":
                if self.between is not None:
                    self.between()
                answer = change()
            if kind != "lose":
                self.send(request, *answer)
                return
        elif kind == "late":
            self.late.append(change)
        if status == 0:  # the connection ends
            request.close_connection = True
            request.connection.close()
            return
        self.send(request, status, {"error": {"message": "the gateway gives no answer"}})

    def deliver(self) -> None:
        """Let what is late arrive."""
        late, self.late = self.late, []
        for each in late:
            each()


def drawn_fault(chance: random.Random) -> tuple[str, int, int]:
    """What a gateway does to a change: the kind, the status that the client sees, looks that fail."""
    kind = chance.choice(["lose", "lose", "drop", "repeat", "repeat", "late", "late"])
    status = chance.choice([500, 502, 503, 503, 504, 0])
    if kind == "drop":
        status = chance.choice([429, 500, 502, 503, 503, 504, 0])
    return kind, status, chance.choice([0, 0, 0, 1, 4, 9])
