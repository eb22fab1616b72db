"""The character NUL in names: kept in names of columns and keys of maps, refused in fields."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from tests.tables import read_cases


@pytest.mark.parametrize(("sql", "given"), read_cases(__file__, "nul_fields.tsv", 1))
def test_a_field_with_nul_is_refused(tmp_path: Any, sql: str, given: Any) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA n")
        with pytest.raises(icesql.DataError, match="NUL"):
            connection.execute(sql, given).fetchall()
        assert connection.execute("SHOW TABLES FROM n").fetchall() == []


def test_a_field_with_nul_is_refused_in_the_dialect_of_spark() -> None:
    with (
        icesql.connect(dialect="spark") as connection,
        pytest.raises(icesql.DataError, match="NUL"),
    ):
        connection.execute("SELECT named_struct('a\0b', 1)").fetchall()


@pytest.mark.parametrize("sql", ['(id INT, "a\0b" INT)', '(s STRUCT("a\0b" INT))'])
def test_a_column_of_a_table_has_no_nul(tmp_path: Any, sql: str) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA n")
        with pytest.raises(icesql.ProgrammingError, match="NUL"):
            connection.execute(f"CREATE TABLE n.t {sql}")
        connection.execute("CREATE TABLE n.t (id INT)")
        with pytest.raises(icesql.ProgrammingError, match="NUL"):
            connection.execute('ALTER TABLE n.t ADD COLUMN "a\0b" INT')


def test_names_of_columns_and_keys_of_maps_keep_it() -> None:
    with icesql.connect() as connection:
        sql = "SELECT MAP {'a\0b': 1} AS \"m\0n\", 'x\0y' AS \"m\0o\""
        cursor = connection.execute(sql)
        assert [each[0] for each in cursor.description] == ["m\0n", "m\0o"]
        assert cursor.fetchall() == [([("a\0b", 1)], "x\0y")]
        assert connection.execute(sql).arrow().schema.names == ["m\0n", "m\0o"]
        assert connection.execute("SELECT json_object('a\0b', 1)").fetchone() == (
            '{"a\\u0000b":1}',
        )
