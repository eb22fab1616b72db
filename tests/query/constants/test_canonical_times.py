"""Texts that are read as times for a column, and their values."""

from __future__ import annotations

import pytest

from icesql.iceberg.metadata.schema_json import parse_type
from icesql.query.constants.times import read_for
from tests.tables import read_table


@pytest.mark.parametrize(
    ("column", "text", "expected"), read_table(__file__, "canonical_times.tsv")
)
def test_canonical_texts_are_values(column: str, text: str, expected: str) -> None:
    assert repr(read_for(parse_type(column), text)) == expected
