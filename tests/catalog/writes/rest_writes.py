"""A REST catalog that commits: it checks requirements and applies updates to plain JSON.

Source: Iceberg REST catalog specification; nothing of icesql or PyIceberg applies an update here.
"""

from __future__ import annotations

import copy
import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Final

from tests.catalog.rest_server import Server

Json = dict[str, Any]
Name = tuple[str, ...]
_LOG: Final = 100
# For each kind: its list in the metadata, its id field, and the field with the current id.
_KINDS: Final = {
    "schema": ("schemas", "schema-id", "current-schema-id"),
    "spec": ("partition-specs", "spec-id", "default-spec-id"),
    "sort-order": ("sort-orders", "order-id", "default-sort-order-id"),
}


class Refused(Exception):
    """A requirement does not hold."""


class Unfit(Exception):
    """A change does not fit the table's format version."""


class WritableServer(Server):
    """``before`` is called with each commit and can respond to it; ``commits`` records commits."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.commits = folder, []
        self.namespaces = {("ns",)}
        self.before: Any = None
        self.keys: list[str | None] = []
        self.lock = threading.RLock()  # several processes send requests at the same time

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        body = json.loads(request.body) if request.body else None
        match request.command, parts:
            case "GET", ["namespaces", name]:
                here = tuple(name.split("\x1f"))
                known = here in self.namespaces or any(each[:-1] == here for each in self.tables)
                answer = {"namespace": [*here], "properties": {}} if known else _error("gone")
                self.send(request, 200 if known else 404, answer)
            case "POST", ["namespaces"]:
                name = tuple(body["namespace"])
                status = 409 if name in self.namespaces else 200
                self.namespaces.add(name)
                self.send(request, status, {"namespace": [*name], "properties": {}})
            case "DELETE", ["namespaces", name] if tuple(name.split("\x1f")) in self.namespaces:
                inside = [each for each in self.tables if each[:-1] == tuple(name.split("\x1f"))]
                if not inside:
                    self.namespaces.discard(tuple(name.split("\x1f")))
                self.send(request, 409 if inside else 204, None)
            case "POST", ["namespaces", above, "tables"]:
                self.created(request, (*above.split("\x1f"), body["name"]), body)
            case "POST", ["namespaces", above, "tables", name]:
                self.keys.append(headers.get("idempotency-key"))
                self.committed(request, (*above.split("\x1f"), name), body)
            case "POST", ["transactions", "commit"]:
                self.send(request, *self.together(body["table-changes"]))
            case "POST", ["tables", "rename"]:
                old = (*body["source"]["namespace"], body["source"]["name"])
                new = (*body["destination"]["namespace"], body["destination"]["name"])
                if old not in self.tables:
                    self.send(request, 404, _error("gone"))
                elif new in self.tables:
                    self.send(request, 409, _error("there"))
                else:
                    self.tables[new] = self.tables.pop(old)
                    self.send(request, 204, None)
            case "DELETE", ["namespaces", above, "tables", name]:
                gone = self.tables.pop((*above.split("\x1f"), name), None)
                self.send(request, 404 if gone is None else 204, None)
            case _:
                super().catalog(request, parts, query, headers)

    def created(self, request: Any, name: Name, body: Json) -> None:
        if name in self.tables:
            self.send(request, 409, _error("there is one", "AlreadyExistsException"))
            return
        properties = dict(body.get("properties") or {})
        version = int(properties.pop("format-version", "2"))
        updates = [
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "add-schema", "schema": body["schema"]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": body.get("partition-spec") or {"fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": body.get("write-order") or {"fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location",
             "location": body.get("location") or str(self.folder.joinpath(*name))},
            {"action": "set-properties", "updates": properties},
        ]  # fmt: skip
        metadata = apply(None, updates)
        if body.get("stage-create"):
            self.send(request, 200, {"metadata": metadata, "config": {}})
            return
        self.kept(name, metadata)
        self.send(request, 200, self.tables[name])

    def committed(self, request: Any, name: Name, body: Json) -> None:
        self.commits.append(body)
        answer = self.before(self, name, body) if self.before else None
        if answer is not None:
            self.send(request, answer, _error(f"status {answer}"))
            return
        self.send(request, *self.applied(name, body))

    def applied(self, *changes: Any) -> tuple[int, Any]:
        """Apply a name and the body of its commit, or several, all or none: status and answer."""
        made: dict[Name, Json] = {}
        with self.lock:
            try:
                for name, body in zip(changes[::2], changes[1::2], strict=True):
                    metadata = self.tables.get(name, {}).get("metadata")
                    for each in body["requirements"]:
                        check(metadata, each)
                    if metadata is None and not body["requirements"]:
                        return 404, _error("gone", "NoSuchTableException")
                    made[name] = apply(metadata, body["updates"])
            except Refused as error:
                return 409, _error(str(error), "CommitFailedException")
            except Unfit as error:
                return 400, _error(str(error), "ValidationException")
            for name, metadata in made.items():
                known = self.tables.get(name)
                if known is not None:
                    line = {"metadata-file": known["metadata-location"],
                            "timestamp-ms": known["metadata"]["last-updated-ms"]}  # fmt: skip
                    metadata["metadata-log"] = [*metadata["metadata-log"], line][-_LOG:]
                self.kept(name, metadata)
        last = self.tables[changes[-2]]
        return 200, {key: last[key] for key in ("metadata", "metadata-location")}

    def together(self, changes: list[Json]) -> tuple[int, Any]:
        """The status and the answer of a transaction over several tables."""
        named = (((*e["identifier"]["namespace"], e["identifier"]["name"]), e) for e in changes)
        status, answer = self.applied(*(part for each in named for part in each))
        return (204, None) if status == 200 else (status, answer)

    def kept(self, name: Name, metadata: Json) -> None:
        place = Path(metadata["location"]) / "metadata" / f"{uuid.uuid4()}.metadata.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(metadata))
        self.tables[name] = {"metadata-location": str(place), "metadata": metadata, "config": {}}


def _error(message: str, kind: str = "") -> Json:
    return {"error": {"message": message, "type": kind, "code": 400}}


# ------------------------------------------------------------------ metadata as JSON


def _empty() -> Json:
    """What the updates of a new table begin with."""
    text = Path(__file__).with_name("new_table.json").read_text()
    return {**json.loads(text), "table-uuid": str(uuid.uuid4())}


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
        told = kind.removeprefix("assert-")
        own = {
            "last-assigned-field-id": "last-column-id",
            "last-assigned-partition-id": "last-partition-id",
        }
        held = table[own.get(told, told)] == needed[told]
    if not held:
        raise Refused(f"{kind} does not hold")


def apply(table: Json | None, updates: list[Json]) -> Json:
    """The table after updates, a new one for None; ``table`` is not changed."""
    made = _empty() if table is None else copy.deepcopy(table)
    added: dict[str, int] = {}
    now = max(made["last-updated-ms"], time.time_ns() // 1_000_000)
    for each in updates:
        _apply(made, each, added, now)
    made["last-updated-ms"] = now
    if made.get("current-snapshot-id") in (None, -1):
        made["current-snapshot-id"] = None if made["format-version"] > 2 else -1
    if made["format-version"] == 1:
        schema, spec = made["current-schema-id"], made["default-spec-id"]
        made["schema"] = next(s for s in made["schemas"] if s["schema-id"] == schema)
        specs = (s["fields"] for s in made["partition-specs"] if s["spec-id"] == spec)
        made["partition-spec"] = next(specs)
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
        case "add-schema" | "add-spec" | "add-sort-order" as action:
            kind = action.removeprefix("add-")
            _add(made, kind, update[kind], added)
            if kind == "schema":
                made["last-column-id"] = max(made["last-column-id"], _highest(update[kind]))
            elif kind == "spec":
                ids = [each["field-id"] for each in update[kind]["fields"]]
                made["last-partition-id"] = max([made["last-partition-id"], *ids])
        case "set-current-schema" | "set-default-spec" | "set-default-sort-order" as action:
            kind = action.split("-", 2)[2]
            given = update[f"{kind}-id"]
            made[_KINDS[kind][2]] = added[kind] if given == -1 else given
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
    place, key, _ = _KINDS[kind]
    known = made[place]

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


def _highest(schema: Any) -> int:
    """The greatest id of a schema, of whatever is nested in it too."""
    if isinstance(schema, list):
        return max(map(_highest, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    own = [schema[each] for each in ("id", "element-id", "key-id", "value-id") if each in schema]
    return max([0, *own, *map(_highest, schema.values())])
