"""A change of columns is updates of a table; ``columns.slt`` has what becomes of columns."""

from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import (
    NewColumn,
    add_column,
    drop_column,
    schema_updates,
    widen_column,
)  # fmt: skip
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.schema import Schema
from tests.iceberg.metadata.changes.documents import created


def changed(document, make):
    base = parse_metadata(metadata_bytes(document), "x")
    updates = schema_updates(base, make(base.schema))
    after = apply_updates(document, updates, now_ms=9)
    return updates, after, parse_metadata(metadata_bytes(after), "x")


def test_a_change_is_a_new_schema() -> None:
    document = created()
    updates, after, _metadata = changed(
        document, lambda schema: add_column(schema, 2, NewColumn(("n",), t.LONG))[0]
    )
    assert [type(each).__name__ for each in updates] == ["AddSchema", "SetCurrentSchema"]
    assert (after["current-schema-id"], after["last-column-id"], len(after["schemas"])) == (1, 3, 2)
    updates, _, _ = changed(after, lambda schema: schema)
    assert updates == ()
    dropped = changed(after, lambda schema: drop_column(schema, ("n",)))[2]
    assert (dropped.current_schema_id, dropped.last_column_id) == (0, 3), "3 is never given again"


@pytest.mark.parametrize("path", [("l", "element"), ("m", "value")])
def test_the_only_field_that_changes_in_a_list_or_map_stays(path: tuple[str, ...]) -> None:
    schema = Schema(
        (
            t.NestedField(1, "l", t.ListType(2, t.INTEGER)),
            t.NestedField(3, "m", t.MapType(4, t.STRING, 5, t.INTEGER)),
        )
    )
    with pytest.raises(ProgrammingError, match="nothing would be left"):
        drop_column(schema, path)
    wider = widen_column(schema, path, t.LONG)
    assert {str(each.type) for each in wider.fields} & {"list<long>", "map<string, long>"}
