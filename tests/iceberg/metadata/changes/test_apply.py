"""Table metadata after updates; PyIceberg reads the result."""

from __future__ import annotations

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from tests.iceberg.metadata.changes.documents import BY_ID, ONE, ORDER, Document, created
from tests.scenes import Scene, scenes


@scenes(__file__, "apply.scenes")
def test_updates_make_metadata(scene: Scene) -> None:
    Document().play(scene)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_is_read_as_it_was_made(version) -> None:
    made = parse_metadata(metadata_bytes(created(version, order=ORDER)), "x")
    assert (made.schema, made.spec, made.sort_orders[1]) == (ONE, BY_ID, ORDER)


def test_a_column_keeps_both_of_its_defaults() -> None:
    filled = Schema((t.NestedField(1, "x", t.LONG, initial_default=7, write_default=8),))
    (field,) = created(3, PartitionSpec(), schema=filled)["schemas"][0]["fields"]
    assert (field["initial-default"], field["write-default"]) == (7, 8)
