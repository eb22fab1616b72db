"""The report counts what Java's ScanReport counts, under its keys."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from tests.scan.metadata_only import (
    MetadataOnly,
    data_file,
    id_bounds,
    id_is,
    planned,
    position_deletes,
)

JAVA_METRICS = {
    "total-planning-duration", "result-data-files", "result-delete-files", "total-data-manifests",
    "total-delete-manifests", "scanned-data-manifests", "skipped-data-manifests",
    "total-file-size-in-bytes", "total-delete-file-size-in-bytes", "skipped-data-files",
    "skipped-delete-files", "scanned-delete-manifests", "skipped-delete-manifests",
    "indexed-delete-files", "equality-delete-files", "positional-delete-files", "dvs",
}  # fmt: skip


def test_a_report_is_json_under_javas_keys(tmp_path: Path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a", **id_bounds(1, 9)), data_file("b", **id_bounds(11, 19)))
    built.manifest(position_deletes("p"), sequence_number=2)
    table = built.table()
    found = planned(table, id_is(5), projection=table.metadata.schema.select([2]), ref="audit")
    written = json.loads(json.dumps(found.report.to_dict()))
    metrics = written.pop("metrics")
    metadata = written.pop("metadata")
    assert written == {
        "table-name": "t",
        "snapshot-id": 7,
        "filter": "id = 5",
        "schema-id": 0,
        "projected-field-ids": [2],
        "projected-field-names": ["region"],
    }
    assert metadata["ref"] == "audit"
    assert metrics.keys() == JAVA_METRICS
    duration = metrics.pop("total-planning-duration")
    assert duration["time-unit"] == "nanoseconds"
    assert duration["total-duration"] > 0
    values = {name: each["value"] for name, each in metrics.items() if each["value"]}
    assert values == {
        "result-data-files": 1,
        "result-delete-files": 1,
        "total-data-manifests": 1,
        "total-delete-manifests": 1,
        "scanned-data-manifests": 1,
        "scanned-delete-manifests": 1,
        "skipped-data-files": 1,
        "total-file-size-in-bytes": 1000,
        "total-delete-file-size-in-bytes": 1000,
        "indexed-delete-files": 1,
        "positional-delete-files": 1,
    }
    assert metrics["total-file-size-in-bytes"]["unit"] == "bytes"
    assert metrics["dvs"] == {"unit": "count", "value": 0}


def test_reports_travel(tmp_path: Path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"))
    report = planned(built.table()).report
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.filter == "true"


def test_files_count_as_often_as_they_are_read_and_once_as_a_path(tmp_path: Path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"), data_file("b"))
    report = planned(built.table()).report
    assert (report.result_data_files, report.distinct_data_files) == (2, 2)
