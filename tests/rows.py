"""Tests that run once for each row of a table."""

from __future__ import annotations

import pytest

from tests.tables import read_lines, read_table


def rows_of(test_file: str, name: str, *columns: str) -> pytest.MarkDecorator:
    """Run a test with each row of the file ``name`` beside it; its cells are these arguments."""
    if len(columns) == 1:
        return pytest.mark.parametrize(columns[0], read_lines(test_file, name))
    return pytest.mark.parametrize(columns, read_table(test_file, name))
