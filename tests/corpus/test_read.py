"""``read/`` alone on the tables that other systems wrote: row counts of every counted case."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from icesql.catalog.open import open_table
from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import arrow_schema
from icesql.read.task import read_task
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan

COUNTS = ("SELECT COUNT(*) FROM t", "SELECT * FROM t", "SELECT count(*) FROM t")


def snapshot_and_schema(table: Table, travel: dict[str, Any] | None) -> tuple[Snapshot, Schema]:
    metadata = table.metadata
    if travel is None:
        snapshot, schema = metadata.current_snapshot, metadata.schema
    elif "snapshot_id" in travel:
        snapshot = metadata.snapshot(travel["snapshot_id"])
        schema = metadata.schema_of(snapshot) if snapshot else metadata.schema
    elif "ref" in travel:
        ref = metadata.refs[travel["ref"]]
        snapshot = metadata.snapshot(ref.snapshot_id)
        assert snapshot is not None
        schema = metadata.schema if ref.kind == "branch" else metadata.schema_of(snapshot)
    else:
        instant = datetime.fromisoformat(travel["timestamp"].replace(" UTC", "+00:00"))
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        snapshot = metadata.snapshot_as_of(int(instant.timestamp() * 1000))
        schema = metadata.schema_of(snapshot) if snapshot else metadata.schema
    assert snapshot is not None
    return snapshot, schema


def test_every_table_has_the_rows_that_its_writer_counted(corpus: Path) -> None:
    checked, wrong = 0, []
    with (corpus / "cases.jsonl").open() as lines:
        cases = [case for case in map(json.loads, lines) if case["sql"] in COUNTS]
    for case in cases:
        table = open_table(corpus / case["metadata"])
        if table.metadata.current_snapshot is None:
            continue
        snapshot, schema = snapshot_and_schema(table, case.get("time_travel"))
        query = QueryContext()
        scan_plan = plan(TableScan(table, snapshot, schema, schema), query)
        wanted = arrow_schema(schema)
        found = 0
        for task in scan_plan.tasks:
            for batch in read_task(task, query):
                assert batch.schema.equals(wanted, check_metadata=True)
                found += batch.num_rows
        is_count = case["sql"].upper().startswith("SELECT COUNT")
        expected = int(case["expected"][0][0]) if is_count else len(case["expected"])
        checked += 1
        if found != expected:
            wrong.append((case["id"], case["table"], expected, found))
    assert wrong == []
    assert checked > 100


@pytest.mark.parametrize(
    "name",
    [
        "impala/hadoop_catalog/ice/iceberg_v2_delete_equality_nulls",
        "impala/iceberg_v3/iceberg_v3_default_value_avro",
    ],
)
def test_projecting_no_column_counts_the_same_rows(corpus: Path, name: str) -> None:
    with (corpus / "tables.jsonl").open() as lines:
        entry = next(table for table in map(json.loads, lines) if table["table"] == name)
    table = open_table(corpus / entry["metadata"])
    schema = table.metadata.schema
    counts = [
        sum(
            batch.num_rows
            for task in plan(
                TableScan(table, table.metadata.current_snapshot, schema, projection),
                QueryContext(),
            ).tasks
            for batch in read_task(task)
        )
        for projection in (schema, Schema(()))
    ]
    assert counts[0] == counts[1] == entry["rows"]
