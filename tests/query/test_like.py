"""LIKE of SHOW: SQL's two wildcards and no others, with expected values from DuckDB."""

from __future__ import annotations

import time
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icesql.query.show_request import is_like

TEXT = st.text("ab%_[]*?.\\", max_size=8)


DUCKDB = duckdb.connect()


@given(TEXT, TEXT)
@example("orders", "[o]rders")
@example("a\\b", "a\\b")
@example("", "%")
@example("aab", "%ab")
def test_it_is_the_like_of_sql(text: str, pattern: str) -> None:
    expected = DUCKDB.execute("SELECT ? LIKE ?", [text, pattern]).fetchone()
    assert (is_like(text, pattern),) == expected


def test_many_wildcards_take_no_time() -> None:
    started = time.monotonic()
    assert not is_like("a" * 2_000, "%a" * 500 + "%b")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("ORD%", 1), ("%s", 3), ("[ot]%", 0), ("order_", 1), ("*", 0), ("_______", 0)],
)
def test_show_tables_like(connection: Any, pattern: str, count: int) -> None:
    assert len(connection.execute(f"SHOW TABLES LIKE '{pattern}'").fetchall()) == count
