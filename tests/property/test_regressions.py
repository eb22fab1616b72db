"""The smallest tables of what random histories brought to light, each read both ways."""

from __future__ import annotations

import pytest

import icesql
from tests.writer.table import TableWriter


def field(field_id, name, kind, **more):
    return {"id": field_id, "name": name, "required": False, "type": kind, **more}


def rows(table, reader, sql="SELECT * FROM t"):
    with icesql.connect(settings={"local_reader": reader}) as con:
        con.register_table("t", table.metadata_path)
        return sorted(con.execute(sql).fetchall(), key=repr)


both_readers = pytest.mark.parametrize("reader", ["auto", "arrow"])


@both_readers
@pytest.mark.parametrize("format", ["parquet", "avro", "orc"])
def test_key_columns_may_stand_in_any_order_in_the_delete_file(tmp_path, reader, format):
    # The columns of the delete file follow the schema, 2 before 1.
    table = TableWriter(tmp_path, [field(2, "s", "string"), field(1, "k", "float")])
    table.commit([table.data_file([{"s": "a", "k": 1.0}, {"s": "b", "k": 2.0}])])
    table.commit([table.equality_deletes([{"s": "a", "k": 1.0}], [1, 2], format=format)])
    assert rows(table, reader) == [("b", 2.0)]


@both_readers
def test_keys_may_be_children_that_their_struct_has_lost(tmp_path, reader):
    def struct(*children):
        return [field(1, "p", {"type": "struct", "fields": list(children)}), field(2, "v", "int")]

    kept, gone = field(3, "kept", "int"), field(4, "gone", "string")
    table = TableWriter(tmp_path, struct(kept, gone))
    rows_ = [{"p": {"kept": 1, "gone": "a"}, "v": 1}, {"p": {"kept": 1, "gone": "b"}, "v": 2}]
    table.commit([table.data_file(rows_)])
    table.commit([table.equality_deletes([{"p": {"gone": "a"}}], [4])])
    table.set_fields(struct(kept))
    assert rows(table, reader) == [({"kept": 1}, 2)]
