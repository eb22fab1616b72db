"""DEFAULT in the VALUES of an INSERT is what the column gets where it is not named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql

TYPES = {
    "INT": ("3", "4"), "BIGINT": ("3", "4"), "DECIMAL(9, 2)": ("1.25", "2.5"), "DOUBLE": ("0.5", "1"),
    "VARCHAR": ("'a'", "'b'"), "BOOLEAN": ("true", "false"),
    "DATE": ("DATE '2026-01-31'", "'2026-02-01'"),
    "TIMESTAMP": ("TIMESTAMP '2026-01-31 10:00:00'", "'2026-02-01 11:00:00'"),
    "TIMESTAMPTZ": ("TIMESTAMPTZ '2026-01-31 10:00:00+00'", "TIMESTAMPTZ '2026-02-01 00:00:00+00'"),
    "UUID": ("'01020304-0506-0708-090a-0b0c0d0e0f10'", "'11020304-0506-0708-090a-0b0c0d0e0f10'"),
    "BLOB": ("'\\xAA'::BLOB", "'\\xBB'::BLOB"), "TIME": ("TIME '10:00:00'", "TIME '11:00:00'"),
}  # fmt: skip


def table(con: icesql.Connection, name: str, type: str, default: str) -> None:
    con.execute(f"CREATE TABLE s.{name} (id INT, a {type} DEFAULT {default}) "
                "TBLPROPERTIES ('format-version' = '3')")  # fmt: skip


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


def test_of_each_type_alone_and_beside_values(con: icesql.Connection) -> None:
    wrong = []
    for number, (type, (default, other)) in enumerate(TYPES.items()):
        for form, omitted in (
            ("VALUES (1, DEFAULT)", "(id) VALUES (1)"),
            (f"VALUES (1, DEFAULT), (2, {other}), (3, default)", f"VALUES (2, {other})"),
        ):
            name = f"t{number}{len(form)}"
            table(con, name, type, default)
            con.execute(f"INSERT INTO s.{name} {form}")
            found = con.execute(f"SELECT id, a FROM s.{name} ORDER BY id").fetchall()
            table(con, f"{name}x", type, default)
            con.execute(f"INSERT INTO s.{name}x {omitted}")
            if "(2" in omitted:
                con.execute(f"INSERT INTO s.{name}x (id) VALUES (1)")
                con.execute(f"INSERT INTO s.{name}x (id) VALUES (3)")
            wanted = con.execute(f"SELECT id, a FROM s.{name}x ORDER BY id").fetchall()
            if found != wanted:
                wrong.append((type, form, found, wanted))
    assert wrong == []


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
def test_where_it_may_stand(con: icesql.Connection, tmp_path: Path, dialect: str | None) -> None:
    table(con, "t", "INT", "7")
    with icesql.connect(warehouse=tmp_path, dialect=dialect) as other:
        other.execute(
            "INSERT INTO s.t (a, id) VALUES (DEFAULT, 1), (5, DEFAULT), (DEFAULT, DEFAULT)"
        )
        other.execute("INSERT INTO s.t VALUES (2, DEFAULT)")
        rows = other.execute("SELECT id, a FROM s.t ORDER BY id, a").fetchall()
        assert sorted(map(str, rows)) == ["(1, 7)", "(2, 7)", "(None, 5)", "(None, 7)"]


def test_what_is_no_such_value(con: icesql.Connection) -> None:
    table(con, "t", "VARCHAR", "'x'")
    con.execute("CREATE TABLE s.n (id INT, l INT[], o STRUCT(x INT))")
    con.execute("INSERT INTO s.n VALUES (1, [1], DEFAULT), (2, DEFAULT, {'x': 3})")
    rows = con.execute("SELECT l, o FROM s.n ORDER BY id").fetchall()
    assert rows == [([1], None), (None, {"x": 3})]
    con.execute("CREATE TABLE s.r (id INT NOT NULL, a INT)")
    con.execute("INSERT INTO s.t VALUES (1, 'DEFAULT'), (2, DEFAULT)")
    assert con.execute("SELECT a FROM s.t ORDER BY id").fetchall() == [("DEFAULT",), ("x",)]
    con.execute("INSERT INTO s.r VALUES (1, DEFAULT)")
    for sql, told in (
        ("INSERT INTO s.r VALUES (DEFAULT, 1)", "required and has no default"),
        ("INSERT INTO s.t VALUES (1, DEFAULT || 'x')", "DEFAULT|syntax"),
        ("INSERT INTO s.t VALUES (1, (DEFAULT))", "DEFAULT|syntax"),
        ("INSERT INTO s.t VALUES (1, DEFAULT) ORDER BY 1", "DEFAULT|syntax"),
        ("INSERT INTO s.t SELECT 1, DEFAULT", "DEFAULT|syntax"),
        ("INSERT INTO s.t VALUES (1, DEFAULT, 3)", "gives 3 columns"),
    ):
        with pytest.raises(icesql.Error, match=told):
            con.execute(sql)
    with pytest.raises(icesql.Error, match="leave the column out"):
        con.cursor().executemany("INSERT INTO s.t VALUES (?, DEFAULT)", [(1,), (2,)])
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(2,)]
