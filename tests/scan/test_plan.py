"""A plan's tasks, counts of rows and bytes, computed on first use."""

from __future__ import annotations

import pytest

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import ProgrammingError
from icesql.iceberg.schema import FILE, POS, Schema
from icesql.scan.plan import projected_leaves
from icesql.scan.tasks import TARGET_SIZE
from tests.scan.metadata_only import (
    MetadataOnly,
    column,
    data_file,
    planned,
    position_deletes,
)


def test_tasks_are_split_and_packed_by_the_tables_properties(tmp_path) -> None:
    built = MetadataOnly(
        tmp_path, properties={TARGET_SIZE: "400", "read.split.open-file-cost": "0"}
    )
    built.manifest(data_file("a"), data_file("b", split_offsets=[4, 300, 900]))
    found = planned(built.table())
    ranges = sorted(
        (task.data_file.path, task.start, task.length) for one in found.tasks for task in one.tasks
    )
    assert ranges == [
        ("a", 0, 400), ("a", 400, 400), ("a", 800, 200),
        ("b", 4, 296), ("b", 300, 600), ("b", 900, 100),
    ]  # fmt: skip
    assert all(one.context is found.context for one in found.tasks)


def test_settings_override_the_properties(tmp_path) -> None:
    built = MetadataOnly(tmp_path, properties={TARGET_SIZE: "400"})
    built.manifest(data_file("a"))
    query = QueryContext(settings=Settings(split_target_size=1 << 20))
    assert len(planned(built.table(), query=query).tasks) == 1


def test_a_property_that_is_no_number_fails_where_tasks_are_made(tmp_path) -> None:
    built = MetadataOnly(tmp_path, properties={TARGET_SIZE: "much"})
    built.manifest(data_file("a"))
    found = planned(built.table())
    assert len(found.files) == 1
    with pytest.raises(ProgrammingError, match="'much'"):
        found.tasks


def test_rows_are_counted_only_when_the_manifests_know(tmp_path) -> None:
    for number, (entries, expected) in enumerate(
        [
            ([data_file("a"), data_file("b", record_count=3)], 13),
            ([data_file("a"), data_file("b", record_count=-1)], None),
        ]
    ):
        built = MetadataOnly(tmp_path / str(number))
        built.manifest(*entries)
        assert planned(built.table()).record_count == expected
    built.manifest(position_deletes("p"), sequence_number=2)
    assert planned(built.table()).record_count is None


def test_projected_bytes_are_those_of_the_projected_columns(tmp_path) -> None:
    built = MetadataOnly(tmp_path, fields=[column(1, "id"), column(2, "region", "string")])
    built.manifest(
        data_file("a", column_sizes={1: 70, 2: 300}),
        data_file("no region", column_sizes={1: 70}),
        data_file("nothing known"),
    )
    table = built.table()
    schema = table.metadata.schema
    assert planned(table, projection=schema.select([1])).projected_bytes == 70 + 70 + 1000
    assert planned(table, projection=schema.select([2])).projected_bytes == 300 + 0 + 1000
    assert planned(table).projected_bytes == 3000
    nothing_stored = Schema((FILE, POS))
    assert planned(table, projection=nothing_stored).projected_bytes == 0


def test_the_leaves_of_nested_columns_are_what_is_stored(tmp_path) -> None:
    nested = {
        "type": "struct",
        "fields": [
            column(3, "x"),
            {
                "id": 4, "name": "l", "required": False,
                "type": {"type": "list", "element-id": 5, "element": "long", "element-required": True},
            },
        ],
    }  # fmt: skip
    built = MetadataOnly(tmp_path, fields=[column(1, "id"), column(2, "s", nested)])
    schema = built.table().metadata.schema
    assert projected_leaves(schema) == (1, 3, 5)
