"""The byte ranges of a stored file requested before DuckDB does: they never change rows."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.context import QueryContext
from icesql.engine.duckdb.store_files import ranges_to_read
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.read.formats.parquet_footer import Chunk, RowCounts, SchemaLayout, read_row_counts
from tests.query.pushdown.translation import translate
from tests.tables import read_cases
from tests.writer.fields import fields

GROUPS, ROWS = 4, 10
COLUMNS = "id long, name string, price decimal(12, 2), f double"
SCHEMA = parse_schema({"type": "struct", "fields": fields(COLUMNS)})


def counts(**options: Any) -> tuple[RowCounts, Any]:
    """Four row groups of ids and names in order; their counts by the walker and by pyarrow."""
    number = range(GROUPS * ROWS)
    columns = {
        "id": pa.array(number, pa.int64()),
        "name": pa.array([f"n{each:03d}" for each in number]),
        "price": pa.array(list(number), pa.decimal128(12, 2)),
        "f": pa.array([each / 2 for each in number]),
    }
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(place)})
        for place, (name, array) in enumerate(columns.items(), 1)
    ]
    file = io.BytesIO()
    rows = pa.table(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(rows, file, row_group_size=ROWS, **options)
    return read_row_counts(file, {}), pq.read_metadata(file)


def leaf(operation: Operation, field_id: int, literal: Any) -> Leaf:
    return Leaf(operation, Term(field_id, SCHEMA.field_by_id[field_id].name), literal)


@pytest.mark.parametrize(("condition", "groups"), read_cases(__file__, "row_groups.tsv", 1))
def test_chunks_of_row_groups_that_may_match(condition: str, groups: list[int]) -> None:
    found, metadata = counts()
    predicate = translate(condition, lambda each: SCHEMA.find_column(each.name), QueryContext())
    expected = []
    for group in groups:
        for place in (0, 2):
            chunk = metadata.row_group(group).column(place)
            first = min(chunk.data_page_offset, chunk.dictionary_page_offset or 1 << 60)
            expected.append((first, first + chunk.total_compressed_size))
    assert ranges_to_read(found, [1, 3], predicate.predicate, SCHEMA) == expected


def test_without_statistics_every_row_group_may_match() -> None:
    found, _ = counts(write_statistics=False)
    assert len(ranges_to_read(found, [1], leaf(Operation.EQ, 1, 10), SCHEMA)) == GROUPS


def test_bloom_filters_come_before_what_they_may_rule_out() -> None:
    found, _ = counts(bloom_filter_options={"name": True})
    for operation, literal in ((Operation.EQ, "n015"), (Operation.IN, frozenset({"n015"}))):
        (only,) = ranges_to_read(found, [1, 2], leaf(operation, 2, literal), SCHEMA)
        assert found.groups is not None
        first, size = found.groups[1][1][1].bloom
        assert only == (first, first + size)
        assert size > 0
    assert len(ranges_to_read(found, [1, 2], leaf(Operation.GT, 2, "n015"), SCHEMA)) == 6


def test_sizes_that_cannot_be_are_not_asked_for() -> None:
    layout = SchemaLayout({1: (0,), 2: (1,)}, (True, True))
    chunks = (Chunk(1, -(1 << 40), 1 << 41, 0, None), Chunk(1, 10, -5, 0, None))
    hostile = RowCounts(b"", layout, 100, 50, 1, ((1, chunks), (1, ())))
    assert ranges_to_read(hostile, [1, 2, 9], leaf(Operation.EQ, 1, 1), SCHEMA) == []
