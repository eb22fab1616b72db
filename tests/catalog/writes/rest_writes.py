"""A REST catalog that commits: PyIceberg checks the requirements and applies the updates."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import update_table_metadata

from tests.catalog.rest_server import Server


class WritableServer(Server):
    """``before`` is called with each commit and may answer it; ``commits`` are what came."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.commits, self.namespaces = folder, [], {("ns",)}
        self.before: Any = None
        self.keys: list[str | None] = []

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        body = json.loads(request.body) if request.body else None
        match request.command, parts:
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
            case "POST", ["tables", "rename"]:
                old = (*body["source"]["namespace"], body["source"]["name"])
                new = (*body["destination"]["namespace"], body["destination"]["name"])
                if old not in self.tables:
                    self.send(request, 404, {"error": {"message": "gone"}})
                elif new in self.tables:
                    self.send(request, 409, {"error": {"message": "there"}})
                else:
                    self.tables[new] = self.tables.pop(old)
                    self.send(request, 204, None)
            case "DELETE", ["namespaces", above, "tables", name]:
                gone = self.tables.pop((*above.split("\x1f"), name), None)
                self.send(request, 404 if gone is None else 204, None)
            case _:
                super().catalog(request, parts, query, headers)

    def created(self, request: Any, name: tuple[str, ...], body: Any) -> None:
        if name in self.tables:
            self.send(request, 409, {"error": {"message": "there is one"}})
            return
        location = body.get("location") or str(self.folder.joinpath(*name))
        made = new_table_metadata(
            Schema.model_validate(body["schema"]),
            PartitionSpec.model_validate(body["partition-spec"]),
            SortOrder.model_validate(body["write-order"]),
            location,
            body["properties"],
        )
        metadata = json.loads(made.model_dump_json())
        if body["stage-create"]:
            self.send(request, 200, {"metadata": metadata})
            return
        self.kept(name, metadata)
        self.send(request, 200, self.tables[name])

    def committed(self, request: Any, name: tuple[str, ...], body: Any) -> None:
        self.commits.append(body)
        answer = self.before(self, name, body) if self.before else None
        if answer is not None:
            self.send(request, answer, {"error": {"message": f"status {answer}"}})
            return
        self.send(request, *self.applied(name, body))

    def applied(self, name: tuple[str, ...], body: Any) -> tuple[int, Any]:
        """The status and the answer of a commit."""
        from pydantic import TypeAdapter
        from pyiceberg.table.update import TableRequirement, TableUpdate

        known = self.tables.get(name)
        base = None if known is None else TableMetadataUtil.parse_obj(known["metadata"])
        requirements = TypeAdapter(list[TableRequirement]).validate_python(body["requirements"])
        try:
            for each in requirements:
                each.validate(base)
        except Exception as error:
            return 409, {"error": {"message": str(error), "type": "CommitFailedException"}}
        updates = TypeAdapter(tuple[TableUpdate, ...]).validate_json(json.dumps(body["updates"]))
        if base is None:
            from pyiceberg.table.metadata import TableMetadataV2 as Empty

            base = Empty.model_construct(
                location="", last_column_id=-1, schemas=[], partition_specs=[], sort_orders=[],
                current_schema_id=-1, default_spec_id=0, last_partition_id=999, refs={},
                default_sort_order_id=0, snapshots=[], snapshot_log=[], metadata_log=[],
                properties={}, last_sequence_number=0, last_updated_ms=0, format_version=2,
                current_snapshot_id=None, statistics=[], partition_statistics=[],
                table_uuid=uuid.uuid4(),
            )  # fmt: skip
            made = update_table_metadata(base, updates, enforce_validation=True)
        else:
            made = update_table_metadata(base, updates)
        self.kept(name, json.loads(made.model_dump_json()))
        return 200, {key: self.tables[name][key] for key in ("metadata", "metadata-location")}

    def kept(self, name: tuple[str, ...], metadata: Any) -> None:
        place = Path(metadata["location"]) / "metadata" / f"{uuid.uuid4()}.metadata.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(metadata))
        self.tables[name] = {"metadata-location": str(place), "metadata": metadata, "config": {}}
