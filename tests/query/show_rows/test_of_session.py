"""SHOW of the session: settings, functions, all tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.config import Settings
from icesql.storage.credentials import MASK


def test_every_setting_is_shown_with_its_default(connection: Any) -> None:
    connection.execute("SET threads = 3")
    connection.execute("SET prune = off")
    rows = {row[0]: row[1:] for row in connection.execute("SHOW ALL").fetchall()}
    assert set(rows) == set(Settings.__struct_fields__)
    assert rows["threads"][:2] == ("3", None)
    assert rows["prune"][:2] == ("off", "on")
    assert all(description for *_, description in rows.values())
    assert connection.execute("SHOW threads").fetchall() == [("3",)]


def test_what_is_shown_can_be_set_again(connection: Any) -> None:
    for name, value, *_ in connection.execute("SHOW ALL").fetchall():
        if value is not None:
            connection.execute(f"SET {name} = '{value}'")
    assert connection.settings == Settings()


def test_a_service_tells_no_folder(warehouse: Path) -> None:
    with icesql.connect(warehouse=str(warehouse), service=True) as connection:
        rows = dict(row[:2] for row in connection.execute("SHOW ALL").fetchall())
        assert rows["temp_directory"] == MASK
        assert connection.execute("SHOW temp_directory").fetchall() == [(MASK,)]


def test_all_tables_have_their_columns(connection: Any) -> None:
    cursor = connection.execute("SHOW ALL TABLES")
    names = ["database", "schema", "name", "column_names", "column_types", "temporary"]
    assert [column[0] for column in cursor.description] == names
    rows = {row[1:3]: row[3:] for row in cursor.fetchall()}
    assert set(rows) == {("shop", "customers"), ("shop", "orders"), ("shop", "types")}
    assert rows["shop", "customers"] == (["id", "name"], ["long", "string"], False)
    reader = connection.execute("SHOW ALL TABLES").arrow()
    assert str(reader.schema.field("column_names").type) == "list<element: string>"


def test_functions_are_those_of_the_dialect(warehouse: Path, connection: Any) -> None:
    own = {row[0] for row in connection.execute("SHOW FUNCTIONS").fetchall()}
    assert {"list_transform", "strftime"} <= own
    assert "read_text" not in own
    with icesql.connect(warehouse=str(warehouse), dialect="spark") as spark:
        theirs = {row[0] for row in spark.execute("SHOW FUNCTIONS").fetchall()}
    assert "date_format" in theirs
    assert "strftime" not in theirs
    assert "now" in own


@pytest.mark.parametrize(
    ("dialect", "known"), [("trino", "strpos"), ("athena", "strpos"), ("snowflake", "iff")]
)
def test_functions_are_those_that_a_dialect_may_call(dialect: str, known: str) -> None:
    with icesql.connect(dialect=dialect) as connection:
        names = {row[0] for row in connection.execute("SHOW FUNCTIONS").fetchall()}
        assert known in names
        # DuckDB has it, but calls of it in this dialect are refused.
        assert "list_transform" not in names
