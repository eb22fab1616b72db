"""Columns are added, dropped, renamed, moved and widened at any depth; ids of the others stay."""

from __future__ import annotations

import json

import pytest

from icesql.errors import ColumnNotFoundError, ProgrammingError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import (
    NewColumn,
    Position,
    add_column,
    drop_column,
    move_column,
    rename_column,
    set_default,
    set_doc,
    set_identifier_fields,
    set_required,
    widen_column,
)  # fmt: skip
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.columns import schema_updates
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from tests.iceberg.metadata.changes.test_apply import created

F = t.NestedField
POINT = t.StructType((F(6, "x", t.INTEGER), F(7, "y", t.FLOAT)))
SCHEMA = Schema(
    (
        F(1, "id", t.LONG, True), F(2, "d", t.DecimalType(9, 2)), F(3, "s", POINT),
        F(4, "l", t.ListType(8, t.StructType((F(9, "z", t.INTEGER),)))),
        F(5, "m", t.MapType(10, t.STRING, 11, t.StructType((F(12, "w", t.STRING),)))),
    ),
    3,
    (1,),
)  # fmt: skip


def names(schema: Schema) -> list[str]:
    return [schema.name_by_id[each.field_id] for each in t.walk(schema.fields)]


@pytest.mark.parametrize(
    ("path", "position", "order"),
    [
        (("n",), None, ["id", "d", "s", "l", "m", "n"]),
        (("n",), Position("first"), ["n", "id", "d", "s", "l", "m"]),
        (("n",), Position("after", "D"), ["id", "d", "n", "s", "l", "m"]),
        (("n",), Position("before", "d"), ["id", "n", "d", "s", "l", "m"]),
    ],
)
def test_a_column_is_added_at_its_place(path, position, order) -> None:
    made, last = add_column(SCHEMA, 12, NewColumn(path, t.STRING, position=position))
    assert [each.name for each in made.fields] == order
    assert last == 13
    assert made.find_field("n") == F(13, "n", t.STRING)
    assert made.find_field("s.y").field_id == 7


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("s", "n"), "s.n"),
        (("l", "element", "n"), "l.element.n"),
        (("m", "value", "n"), "m.value.n"),
    ],
)
def test_a_column_is_added_inside_others(path, name) -> None:
    nested = t.StructType((F(-1, "a", t.LONG), F(-2, "b", t.ListType(-3, t.LONG))))
    made, last = add_column(SCHEMA, 12, NewColumn(path, nested, doc="why"))
    assert (made.find_field(name).field_id, last) == (13, 16)
    assert [made.find_field(f"{name}.{each}").field_id for each in ("a", "b", "b.element")] == [
        14,
        15,
        16,
    ]
    assert made.find_field(name).doc == "why"


@pytest.mark.parametrize(
    ("column", "error", "told"),
    [
        (NewColumn(("ID",), t.LONG), ProgrammingError, "already"),
        (NewColumn(("n",), t.LONG, required=True), ProgrammingError, "without a DEFAULT"),
        (NewColumn(("m", "key", "n"), t.LONG), ProgrammingError, "keys of a map"),
        (NewColumn(("id", "n"), t.LONG), ColumnNotFoundError, r"id\.n"),
        (NewColumn(("zz", "n"), t.LONG), ColumnNotFoundError, "zz"),
        (NewColumn(("n",), t.LONG, position=Position("after", "zz")), ColumnNotFoundError, "zz"),
    ],
)
def test_a_column_that_cannot_be_added_is_refused(column, error, told) -> None:
    with pytest.raises(error, match=told):
        add_column(SCHEMA, 12, column)


def test_a_default_is_for_old_rows_and_new_ones() -> None:
    made, _ = add_column(SCHEMA, 12, NewColumn(("n",), t.LONG, True, default=7))
    assert (made.find_field("n").initial_default, made.find_field("n").write_default) == (7, 7)
    made = set_default(made, ("n",), 8)
    assert (made.find_field("n").initial_default, made.find_field("n").write_default) == (7, 8)
    made = set_default(made, ("n",), None)
    assert made.find_field("n").initial_default == 7
    assert made.find_field("n").write_default is t.MISSING


def test_columns_are_renamed_moved_described_and_dropped() -> None:
    made = rename_column(SCHEMA, ("s", "X"), "x2")
    assert made.find_field("s.x2").field_id == 6
    assert rename_column(SCHEMA, ("id",), "ID").find_field("ID").field_id == 1
    made = move_column(SCHEMA, ("s", "y"), Position("first"))
    assert [each.name for each in made.find_field("s").type.fields] == ["y", "x"]
    assert set_doc(SCHEMA, ("d",), "much").find_field("d").doc == "much"
    made = drop_column(SCHEMA, ("s", "x"))
    assert "s.x" not in names(made)
    with pytest.raises(ProgrammingError, match="nothing would be left"):
        drop_column(SCHEMA, ("l", "element", "z"))
    with pytest.raises(ProgrammingError, match="identifier field"):
        drop_column(SCHEMA, ("id",))
    with pytest.raises(ProgrammingError, match="already"):
        rename_column(SCHEMA, ("d",), "S")
    with pytest.raises(ColumnNotFoundError, match="did you mean"):
        drop_column(SCHEMA, ("idd",))


@pytest.mark.parametrize(
    ("path", "type"),
    [
        (("s", "x"), t.LONG),
        (("s", "y"), t.DOUBLE),
        (("d",), t.DecimalType(20, 2)),
        (("l", "element", "z"), t.LONG),
    ],
)
def test_types_widen(path, type) -> None:
    made = widen_column(SCHEMA, path, type)
    assert made.find_field(".".join(path)).type == type
    assert names(made) == names(SCHEMA)


@pytest.mark.parametrize(
    ("path", "type"),
    [
        (("id",), t.INTEGER),
        (("id",), t.STRING),
        (("d",), t.DecimalType(8, 2)),
        (("d",), t.DecimalType(20, 3)),
        (("s",), t.STRING),
        (("s", "y"), t.INTEGER),
    ],
)
def test_types_do_not_change_otherwise(path, type) -> None:
    with pytest.raises(TypeMismatchError, match="types only widen"):
        widen_column(SCHEMA, path, type)


def test_elements_and_values_widen() -> None:
    schema = Schema(
        (F(1, "l", t.ListType(2, t.INTEGER)), F(3, "m", t.MapType(4, t.STRING, 5, t.FLOAT)))
    )
    assert widen_column(schema, ("l", "element"), t.LONG).find_field("l.element") == F(
        2, "element", t.LONG
    )
    assert widen_column(schema, ("m", "value"), t.DOUBLE).find_field("m.value").type == t.DOUBLE
    with pytest.raises(ProgrammingError, match="keys"):
        widen_column(schema, ("m", "key"), t.BINARY)


def test_not_null_only_goes_away() -> None:
    plain = set_identifier_fields(SCHEMA, [])
    assert not set_required(plain, ("id",), False).find_field("id").required
    with pytest.raises(ProgrammingError, match="cannot make"):
        set_required(SCHEMA, ("d",), True)
    with pytest.raises(ProgrammingError, match="identifier"):
        set_required(SCHEMA, ("id",), False)


# ------------------------------------------------------------------ as updates of a table


def table(version=2, schema=None, spec=None, **properties):
    flat = schema or Schema((F(1, "id", t.LONG, True), F(2, "name", t.STRING), F(3, "day", t.DATE)))
    spec = spec or PartitionSpec(0, (PartitionField((3,), 1000, "day", "day_day"),))
    return created(version, spec, schema=flat, properties=properties)


def changed(document, make):
    base = parse_metadata(metadata_bytes(document), "x")
    updates = schema_updates(base, make(base.schema))
    after = apply_updates(document, updates, now_ms=9)
    return updates, after, parse_metadata(metadata_bytes(after), "x")


def test_a_change_is_a_new_schema() -> None:
    document = table()
    updates, after, _metadata = changed(
        document, lambda schema: add_column(schema, 3, NewColumn(("n",), t.LONG))[0]
    )
    assert [type(each).__name__ for each in updates] == ["AddSchema", "SetCurrentSchema"]
    assert (after["current-schema-id"], after["last-column-id"], len(after["schemas"])) == (1, 4, 2)
    updates, _, _ = changed(after, lambda schema: schema)
    assert updates == ()
    dropped = changed(after, lambda schema: drop_column(schema, ("n",)))[2]
    assert (dropped.current_schema_id, dropped.last_column_id) == (0, 4), "4 is never given again"


def test_a_source_of_the_partitioning_stays() -> None:
    with pytest.raises(ProgrammingError, match=r'partitioned by it \("day_day"\)'):
        changed(table(), lambda schema: drop_column(schema, ("day",)))


def test_properties_follow_their_columns() -> None:
    document = table(
        **{
            "write.metadata.metrics.column.name": "full", "write.metadata.metrics.column.id": "none",
            "write.parquet.bloom-filter-enabled.column.name": "true", "write.metadata.metrics.column.x": "y",
        }
    )  # fmt: skip
    _, after, _ = changed(document, lambda schema: rename_column(schema, ("name",), "title"))
    assert after["properties"] == {
        "write.metadata.metrics.column.title": "full", "write.metadata.metrics.column.id": "none",
        "write.parquet.bloom-filter-enabled.column.title": "true", "write.metadata.metrics.column.x": "y",
    }  # fmt: skip
    _, after, _ = changed(document, lambda schema: drop_column(schema, ("name",)))
    assert "write.metadata.metrics.column.name" not in after["properties"]


def test_the_name_mapping_keeps_old_names() -> None:
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]
    document = table(**{"schema.name-mapping.default": json.dumps(mapping)})
    _, after, _ = changed(document, lambda schema: rename_column(schema, ("name",), "title"))
    (_, second, _) = json.loads(after["properties"]["schema.name-mapping.default"])
    assert second == {"field-id": 2, "names": ["name", "title"]}


def test_a_name_in_the_mapping_means_one_column() -> None:
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]
    document = table(**{"schema.name-mapping.default": json.dumps(mapping)})
    _, after, _metadata = changed(
        document,
        lambda schema: add_column(
            rename_column(schema, ("name",), "title"), 3, NewColumn(("name",), t.LONG)
        )[0],
    )
    found = {
        each["field-id"]: each["names"]
        for each in json.loads(after["properties"]["schema.name-mapping.default"])
    }
    assert found == {1: ["id"], 2: ["title"], 3: ["day"], 4: ["name"]}


def test_defaults_need_format_version_3() -> None:
    def make(schema):
        return add_column(schema, 3, NewColumn(("n",), t.LONG, default=1))[0]

    with pytest.raises(TypeMismatchError, match="needs format version 3"):
        changed(table(2), make)
    assert changed(table(3), make)[2].schema.find_field("n").initial_default == 1
    assert u.LAST_ADDED == -1
