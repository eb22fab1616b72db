"""Texts of intervals have the same meaning as in DuckDB."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb
import pytest

from icesql.query.constants.constant import NotConstant
from icesql.query.constants.times import interval_of_text, shift
from tests.tables import read_lines

EPOCH = datetime(1970, 1, 1)


@pytest.mark.parametrize("text", read_lines(__file__, "time_units.tsv"))
@pytest.mark.parametrize("start", ["2026-01-31 12:00:00", "1960-02-29 23:59:59.5"])
def test_a_text_moves_a_time_as_duckdb_does(text: str, start: str) -> None:
    moment = datetime.fromisoformat(start)
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    moved = EPOCH + timedelta(microseconds=shift(micros, interval_of_text(text)))
    sql = "SELECT CAST(? AS TIMESTAMP) + CAST(? AS INTERVAL)"
    assert duckdb.execute(sql, [start, text]).fetchall() == [(moved,)]


@pytest.mark.parametrize("text", ["", "day", "1 fortnight", "1.3 months", "1 day and 2 hours"])
def test_what_is_no_interval_is_told(text: str) -> None:
    with pytest.raises(NotConstant):
        interval_of_text(text)
