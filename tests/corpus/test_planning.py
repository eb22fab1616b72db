"""Every snapshot of the tables that other systems wrote is planned, and packing keeps every byte."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icesql.catalog.open import open_table
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import StorageError, UnsupportedTableError
from icesql.scan.plan import ScanPlan, TableScan
from icesql.scan.planner import plan
from icesql.scan.pruning.metadata_count import count_rows

SMALL_SPLITS = Settings(split_target_size=1000, split_lookback=2, split_open_file_cost=10)


def snapshots(corpus: Path) -> Iterator[tuple[dict[str, Any], bool, TableScan]]:
    """Each snapshot of each table with data, and whether it is the current one."""
    for line in (corpus / "tables.jsonl").read_text(encoding="utf-8").splitlines():
        described = json.loads(line)
        if described["usability"] != "full":
            continue
        table = open_table(corpus / described["metadata"])
        metadata = table.metadata
        for snapshot in metadata.snapshots.values():
            schema = metadata.schema_of(snapshot)
            scan = TableScan(table, snapshot, schema, schema)
            yield described, snapshot is metadata.current_snapshot, scan


@pytest.fixture(scope="module")
def plans(corpus: Path) -> list[tuple[dict[str, Any], bool, ScanPlan]]:
    query = QueryContext(settings=SMALL_SPLITS)
    planned = []
    for described, current, scan in snapshots(corpus):
        try:
            planned.append((described, current, plan(scan, query)))
        except UnsupportedTableError:
            continue  # refused by name
        except StorageError:
            # Expired snapshots keep their place in the metadata without their files.
            assert not current, described["table"]
    return planned


def test_the_current_snapshot_of_every_table_is_planned(
    corpus: Path, plans: list[tuple[dict[str, Any], bool, ScanPlan]]
) -> None:
    lines = (corpus / "tables.jsonl").read_text(encoding="utf-8").splitlines()
    with_data = {
        described["table"]
        for described in map(json.loads, lines)
        if described["usability"] == "full"
    }
    assert {described["table"] for described, current, _ in plans if current} == with_data
    assert len(plans) > 150


def test_packing_keeps_every_byte_exactly_once(
    plans: list[tuple[dict[str, Any], bool, ScanPlan]],
) -> None:
    for described, _, found in plans:
        ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for combined in found.tasks:
            for task in combined.tasks:
                ranges[task.data_file.path].append((task.start, task.start + task.length))
        # No writer of these tables added one file twice.
        assert len(ranges) == len(found.files), described["table"]
        for whole in found.files:
            pieces = sorted(ranges[whole.data_file.path])
            offsets = whole.data_file.split_offsets or (0,)
            assert pieces[0][0] in (0, offsets[0])
            assert [start for start, _ in pieces[1:]] == [end for _, end in pieces[:-1]]
            assert pieces[-1][1] == whole.data_file.file_size_in_bytes


def test_a_count_from_metadata_is_the_count_of_the_files(
    plans: list[tuple[dict[str, Any], bool, ScanPlan]],
) -> None:
    compared = 0
    for described, _, found in plans:
        rows = count_rows(found.scan, QueryContext())
        if rows is None:
            assert found.report.total_delete_manifests, described["table"]
        else:
            assert rows == found.record_count, described["table"]
            compared += 1
    assert compared > 100


def test_reports_are_json(plans: list[tuple[dict[str, Any], bool, ScanPlan]]) -> None:
    for _, _, found in plans:
        report = json.loads(json.dumps(found.report.to_dict()))
        assert report["metrics"]["result-data-files"]["value"] == len(found.files)


def test_pruning_off_plans_the_same_files_without_a_filter(
    corpus: Path, plans: list[tuple[dict[str, Any], bool, ScanPlan]]
) -> None:
    query = QueryContext(settings=Settings(prune=False))
    for described, _, found in plans:
        everything = plan(found.scan, query)
        assert [task.data_file.path for task in everything.files] == [
            task.data_file.path for task in found.files
        ], described["table"]
