"""Structs whose fields differ only in case: every name is kept, on both readers."""

from __future__ import annotations

import pytest

import icesql
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields(
    "id int, st struct<A long, a long, b long>, ls list<struct<x long, X long>>, "
    "mp map<string, struct<k long, K long>>, "
    "o struct<In struct<v long, V long>, in struct<v long, V long>>, C long, c long"
)
ROWS = [
    {
        "id": 1,
        "st": {"A": 1, "a": 2, "b": 3},
        "ls": [{"x": 4, "X": 5}, None],
        "mp": [("m", {"k": 6, "K": 7})],
        "o": {"In": {"v": 8, "V": 9}, "in": {"v": 10, "V": 11}},
        "C": 12,
        "c": 13,
    },
    {"id": 2, "st": None, "ls": None, "mp": None, "o": None, "C": None, "c": None},
    {"id": 3, "st": {"A": None, "a": 0, "b": 0}, "ls": [], "mp": [], "o": {"In": None, "in": None},
     "C": 0, "c": 1},
]  # fmt: skip


@pytest.fixture(scope="module", params=["auto", "arrow"])
def connection(request, tmp_path_factory):
    table = TableWriter(tmp_path_factory.mktemp("alike"), FIELDS)
    table.commit([table.data_file(ROWS)])
    with icesql.connect(settings={"local_reader": request.param}) as opened:
        opened.register_table("t", table.metadata_path)
        yield opened


def test_rows_have_every_field(connection):
    found = connection.execute("SELECT id, st, ls, mp, o FROM t ORDER BY id").fetchall()
    assert found == [tuple(row[name] for name in ("id", "st", "ls", "mp", "o")) for row in ROWS]
    cursor = connection.execute("SELECT * FROM t ORDER BY id")
    assert [each[0] for each in cursor.description] == ["id", "st", "ls", "mp", "o", "C", "c"]
    assert cursor.fetchall() == [tuple(row.values()) for row in ROWS]


def test_arrow_has_the_names_of_the_table(connection):
    table = connection.execute("SELECT st, ls, mp, o FROM t ORDER BY id").arrow()
    assert [each.name for each in table.schema.field("st").type] == ["A", "a", "b"]
    assert [each.name for each in table.schema.field("ls").type.value_type] == ["x", "X"]
    assert [each.name for each in table.schema.field("mp").type.item_type] == ["k", "K"]
    assert str(table.schema).isascii()
    assert table.num_rows == 3


@pytest.mark.parametrize(
    ("expression", "name", "value"), read_cases(__file__, "struct_names.tsv", 1, 2)
)
def test_the_spelling_of_the_table_wins(connection, expression, name, value):
    cursor = connection.execute(f"SELECT {expression} FROM t WHERE id = 1")
    if name is not None:
        assert cursor.description[0][0] == name
    assert cursor.fetchall() == [(value,)]


def test_conditions_and_derived_tables(connection):
    for sql, expected in {
        "SELECT id FROM t WHERE st.a = 2": [(1,)],
        "SELECT id FROM t WHERE st.A = 2": [],
        "SELECT id FROM t WHERE st.a = 0 AND st.A IS NULL": [(3,)],
        "SELECT a FROM (SELECT st.a FROM t WHERE id = 1)": [(2,)],
        "SELECT q.s.a FROM (SELECT st AS s FROM t WHERE id = 1) q": [(2,)],
        'SELECT "C", "c" FROM t WHERE id = 1': [(12, 13)],
        "SELECT C, c FROM t WHERE id = 1": [(12, 13)],
        "SELECT id FROM t WHERE c = 13 AND C = 12": [(1,)],
    }.items():
        assert connection.execute(sql).fetchall() == expected, sql


def test_what_cannot_be_told_apart_is_refused(connection):
    for sql in ('SELECT o."iN" FROM t', "SELECT o.IN.v FROM t"):
        with pytest.raises(icesql.AmbiguousColumnError, match="In"):
            connection.execute(sql).fetchall()
    with pytest.raises(icesql.NotSupportedError, match="only in case"):
        connection.execute("SELECT ls[1].X FROM t").fetchall()
