"""Spark's literals with the suffix BD, which older releases of sqlglot round to integers."""

from __future__ import annotations

from decimal import Decimal

import pytest

import icesql
from icesql.sql.parser import dialect


def test_a_decimal_literal_keeps_its_digits_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with icesql.connect(dialect="spark") as connection:
        if dialect._keeps_scales():
            assert connection.execute("SELECT 1.5BD").fetchone() == (Decimal("1.5"),)
        monkeypatch.setattr(dialect, "_keeps_scales", lambda: False)
        with pytest.raises(icesql.SqlSyntaxError, match=r"1\.25BD is not understood; write CAST"):
            connection.execute("SELECT 2, 1.25BD")
        # A cast in the user's text, and a column of that name.
        rows = connection.execute("SELECT CAST(1.5 AS DECIMAL(2, 1)) AS bd").fetchall()
        assert rows == [(Decimal("1.5"),)]
