"""Calls that return values of the session, as each dialect names them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.mark.parametrize(
    ("dialect", "calls"),
    [
        (None, "current_schema(), current_catalog(), current_database(), version()"),
        ("spark", "current_schema(), current_catalog(), current_database(), version()"),
        ("trino", "'shop', current_catalog, 'shop', version()"),
        ("snowflake", "current_schema(), current_database(), 'shop', current_version()"),
    ],
)
def test_a_session_tells_of_itself(warehouse: Path, dialect: str | None, calls: str) -> None:
    with icesql.connect(warehouse=warehouse, dialect=dialect) as connection:
        connection.execute("USE shop")
        found: Any = connection.execute(f"SELECT {calls}").fetchall()
    # The catalog of the warehouse and its namespace have the same name.
    assert found == [("shop", "shop", "shop", metadata.version("icesql"))]


def test_it_is_a_value_as_any_other(warehouse: Path) -> None:
    with icesql.connect(warehouse=warehouse, dialect="spark") as connection:
        query = "SELECT count(*) FROM shop.orders WHERE current_catalog() = 'shop'"
        assert connection.execute(query).fetchall()[0][0] > 0
        cursor = connection.execute("SELECT current_schema(), current_catalog() AS c")
        assert [each[0] for each in cursor.description] == ["current_schema()", "c"]
        assert cursor.fetchall() == [(None, "shop")]
