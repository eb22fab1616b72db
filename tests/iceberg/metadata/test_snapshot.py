"""Snapshots and refs from JSON, and snapshots that are parsed on first access."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from icesql.errors import CorruptFileError
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.metadata.snapshot import LazySnapshots, Snapshot, parse_ref, parse_snapshot

FULL: dict[str, Any] = {
    "snapshot-id": 5,
    "parent-snapshot-id": 4,
    "sequence-number": 3,
    "timestamp-ms": 1000,
    "manifest-list": "l",
    "summary": {"operation": "overwrite", "added-records": "7", "odd": 3, "gone": None},
    "schema-id": 1,
    "first-row-id": 100,
    "added-rows": 7,
    "key-id": "k",
}


def test_a_snapshot_reads_in_full() -> None:
    assert parse_snapshot(FULL) == Snapshot(
        5, 4, 3, 1000, "l", None, "overwrite", {"added-records": "7", "odd": "3"}, 1, 100, 7, "k"
    )


def test_what_v1_writers_left_out_has_its_default() -> None:
    assert parse_snapshot({"snapshot-id": 5, "timestamp-ms": 1, "manifests": []}) == Snapshot(
        5, timestamp_ms=1, manifests=()
    )
    assert parse_snapshot({**FULL, "parent-snapshot-id": -1}).parent_snapshot_id is None


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshot-id": None},
        {"timestamp-ms": "now"},
        {"manifest-list": None},
        {"manifest-list": 5},
        {"manifest-list": None, "manifests": [5]},
        {"manifest-list": None, "manifests": "m"},
        {"summary": []},
        {"schema-id": 1 << 40},
        {"sequence-number": 1.5},
    ],
)
def test_malformed_snapshots_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        parse_snapshot({**FULL, **changes})


def test_snapshots_keep_their_order_and_are_parsed_once() -> None:
    snapshots = LazySnapshots([{**FULL, "snapshot-id": 9}, FULL], "m")
    assert list(snapshots) == [9, 5]
    assert len(snapshots) == 2
    assert 9 in snapshots
    assert 7 not in snapshots
    assert snapshots.get(7) is None
    assert snapshots[9] is snapshots[9]
    assert pickle.loads(pickle.dumps(snapshots)) == snapshots


def test_a_malformed_snapshot_names_its_file_when_it_is_asked_for() -> None:
    snapshots = LazySnapshots([{"snapshot-id": 1}], "s3://b/v1.metadata.json")
    with pytest.raises(CorruptFileError) as caught:
        snapshots[1]
    assert caught.value.path == "s3://b/v1.metadata.json"


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"snapshot-id": "x"}, {"type": "branch"}, {"snapshot-id": 1, "type": "x"}],
)
def test_malformed_refs_are_refused(value: Any) -> None:
    with pytest.raises(Malformed):
        parse_ref("r", value)
