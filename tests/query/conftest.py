"""Tables with metadata only, and queries bound to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.query.bind import bind
from icesql.query.bound import BoundQuery
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.storage.open import Storage
from tests.query.tables import session_of
from tests.writer.fields import fields

ORDERS = (
    "id long, day date, at timestamp, seen timestamptz, region string, amount decimal(10, 2), "
    "place struct<city string, zip int>, tags list<string>"
)


def metadata_json(*schemas: str, **changes: Any) -> dict[str, Any]:
    """Metadata of a table; ``changes`` replace keys, written with _ for -."""
    node = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "/warehouse/t",
        "last-sequence-number": 3,
        "last-updated-ms": 3_000,
        "last-column-id": 200,
        "current-schema-id": len(schemas) - 1,
        "schemas": [
            {"type": "struct", "schema-id": number, "fields": fields(columns)}
            for number, columns in enumerate(schemas)
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
    return node | {key.replace("_", "-"): value for key, value in changes.items()}


def snapshot_json(snapshot_id: int, timestamp_ms: int, schema_id: int = 0) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "sequence-number": 1,
        "timestamp-ms": timestamp_ms,
        "manifest-list": f"/warehouse/t/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": schema_id,
    }


def make_table(name: str, metadata: Mapping[str, Any]) -> Table:
    path = f"/warehouse/{name}/metadata/v1.metadata.json"
    parsed = parse_metadata(json.dumps(metadata).encode(), path)
    return Table((name,), parsed, path, Storage())


# Two schemas, five commits; the one at 3 s was rolled back, 50 is only on a branch.
HISTORY = metadata_json(
    "old int",
    "new int, more string",
    snapshots=[
        snapshot_json(10, 1_000),
        snapshot_json(20, 2_000),
        snapshot_json(30, 3_000, schema_id=1),
        snapshot_json(40, 4_000, schema_id=1),
        snapshot_json(50, 4_500, schema_id=0),
    ],
    snapshot_log=[
        {"timestamp-ms": 1_000, "snapshot-id": 10},
        {"timestamp-ms": 2_000, "snapshot-id": 20},
        {"timestamp-ms": 3_000, "snapshot-id": 30},
        {"timestamp-ms": 3_500, "snapshot-id": 20},
        {"timestamp-ms": 4_000, "snapshot-id": 40},
    ],
    current_snapshot_id=40,
    refs={
        "main": {"snapshot-id": 40, "type": "branch"},
        "audit": {"snapshot-id": 50, "type": "branch"},
        "release": {"snapshot-id": 20, "type": "tag"},
        "20": {"snapshot-id": 30, "type": "tag"},
        "2024": {"snapshot-id": 30, "type": "tag"},
    },
)


@pytest.fixture
def tables() -> dict[str, Table]:
    return {
        "orders": make_table("orders", metadata_json(ORDERS)),
        "people": make_table("people", metadata_json("id long, name string, born date")),
        "clashing": make_table("clashing", metadata_json("a int, A string, b int")),
        "ambiguous": make_table("ambiguous", metadata_json("ab int, AB int")),
        "history": make_table("history", HISTORY),
    }


BindSql = Callable[..., BoundQuery]


@pytest.fixture
def bind_sql(tables: dict[str, Table]) -> BindSql:
    def bound(sql: str, zone: str = "UTC", **settings: Any) -> BoundQuery:
        context = QueryContext(settings=Settings(timezone=zone, **settings))
        (query,) = parse(sql)
        assert isinstance(query, Query)
        return bind(replace(query, for_explain=True), session_of(tables), context)

    return bound
