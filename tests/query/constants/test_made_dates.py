"""Dates computed by make_date()."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("made", ["20454", "(ordered_on - DATE '1970-01-01')::INT", "2026, 1, 2"])
def test_they_may_be_made_of_days(connection: Any, made: str) -> None:
    sql = f"SELECT count(*) FROM shop.orders WHERE ordered_on <> make_date({made})"
    connection.execute("SET prune = off")
    expected = connection.execute(sql).fetchall()
    connection.execute("SET prune = on")
    assert connection.execute(sql).fetchall() == expected
