"""Strict metrics: Java's TestStrictMetricsEvaluator where NULL never satisfies a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.iceberg.schema import Schema
from icesql.iceberg.types import INTEGER, NestedField
from icesql.scan.pruning.strict_evaluator import strict_mask
from tests.iceberg.text_forms import read_predicate
from tests.scan.pruning.files import entries_of, read_file
from tests.tables import read_table

SCHEMA, FILE = read_file(read_table(__file__, "strict_file.tsv"))
# A column of the predicates that the file does not have.
WITH_GONE = Schema((*SCHEMA.fields, NestedField(99, "gone", INTEGER)))


def strict(predicate: str, record_count: int = 50, **options: Any) -> bool:
    """Whether all rows of the file satisfy a predicate."""
    entries = entries_of(FILE | {"record_count": record_count})
    (found,) = strict_mask(entries, read_predicate(predicate, WITH_GONE), SCHEMA, **options)
    return found


@pytest.mark.parametrize(("predicate", "expected"), read_table(__file__, "strict.tsv"))
def test_all_rows_match(predicate, expected):
    assert str(strict(predicate)) == expected


def test_empty_file_matches_and_unknown_row_count_does_not():
    assert strict("id = 1", 0)
    assert not strict("id < 80", -1)
    assert not strict("id < 80", among=[])
