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


def test_a_report_is_json_under_javas_keys(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a", **id_bounds(1, 9)), data_file("b", **id_bounds(11, 19)))
    built.manifest(position_deletes("p"), sequence_number=2)
    table = built.table()
    found = planned(table, id_is(5), projection=table.metadata.schema.select([2]), ref="audit")
    written = json.loads(json.dumps(found.report.to_dict()))
    assert written.pop("metadata")["ref"] == "audit"
    duration = written["metrics"].pop("total-planning-duration")
    assert duration["time-unit"] == "nanoseconds"
    assert duration["total-duration"] > 0
    assert written == json.loads(Path(__file__).with_name("java_report.json").read_text())


def test_reports_travel(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"))
    report = planned(built.table()).report
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.filter == "true"


def test_files_count_as_often_as_they_are_read_and_once_as_a_path(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"), data_file("b"))
    report = planned(built.table()).report
    assert (report.result_data_files, report.distinct_data_files) == (2, 2)
