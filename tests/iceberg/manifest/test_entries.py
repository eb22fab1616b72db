"""Columns of entries: lookups by field id, whole files, and pickling."""

from __future__ import annotations

import pickle
from typing import Any

from icesql.iceberg.manifest.entries import ManifestEntries, PlainMaps


def entries(**changes: Any) -> ManifestEntries:
    values: dict[str, Any] = {
        "spec_id": 3,
        "status": [1, 2],
        "snapshot_id": [7, 8],
        "sequence_number": [1, 2],
        "file_sequence_number": [1, None],
        "content": [0, 0],
        "path": ["a", "b"],
        "file_format": ["PARQUET", "ORC"],
        "partition": [(1,), (None,)],
        "record_count": [10, -1],
        "file_size_in_bytes": [100, 200],
        "maps": {"lower_bounds": PlainMaps([{1: b"x"}, None])},
        "rare": {"sort_order_id": {1: 4}},
    }
    return ManifestEntries(**{**values, **changes})


def test_columns_answer_for_every_entry() -> None:
    found = entries()
    assert found.values_of("lower_bounds", 1) == [b"x", None]
    assert found.values_of("lower_bounds", 2) == [None, None]
    assert found.values_of("upper_bounds", 1) == [None, None]  # no file has upper bounds
    assert found.live == [True, False]


def test_a_column_asked_for_twice_is_looked_up_once() -> None:
    found = entries()
    assert found.values_of("lower_bounds", 1) is found.values_of("lower_bounds", 1)


def test_a_file_has_what_its_entry_says() -> None:
    first, second = entries().data_file(0), entries().data_file(1)
    assert (first.path, first.spec_id, first.partition, first.lower_bounds) == (
        "a",
        3,
        (1,),
        {1: b"x"},
    )
    assert (second.record_count, second.sort_order_id, second.lower_bounds) == (-1, 4, None)
    assert first.sort_order_id is None
    assert second.file_sequence_number is None


def test_entries_travel_without_what_was_looked_up() -> None:
    found = entries()
    before = len(pickle.dumps(found))
    found.values_of("lower_bounds", 1)
    _ = found.live
    copy = pickle.loads(pickle.dumps(found))
    assert len(pickle.dumps(found)) == before
    assert copy == found
    assert copy.values_of("lower_bounds", 1) == [b"x", None]
