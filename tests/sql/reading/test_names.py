"""The lists of DuckDB's keywords equal those of the installed DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from icesql.sql.keywords import RESERVED
from icesql.sql.reading.data_types import DUCKDB_NAMES


@pytest.fixture(scope="module")
def engine() -> Any:
    with duckdb.connect() as opened:
        yield opened


def test_reserved_words_are_those_that_duckdb_takes_for_no_name(engine: Any) -> None:
    found = engine.execute(
        "SELECT keyword_name FROM duckdb_keywords() "
        "WHERE keyword_category IN ('reserved', 'type_function')"
    )
    assert {word for (word,) in found.fetchall()} == RESERVED


@pytest.mark.parametrize("name", DUCKDB_NAMES)
def test_two_names_of_a_type_are_one_type(name: str, engine: Any) -> None:
    kinds = [
        engine.execute(f"SELECT typeof(NULL::{each})").fetchone()
        for each in (name, DUCKDB_NAMES[name])
    ]
    assert kinds[0] == kinds[1]
