"""The tests that SQLAlchemy gives to dialects, run by ``run.py``; what differs is named here."""

from __future__ import annotations

import pytest
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import (
    ComponentReflectionTestExtra,
    InsertBehaviorTest,
    IsolationLevelTest,
    LongNameBlowoutTest,
    TrueDivTest,
    WindowFunctionTest,
)

_NO_COUNTER = "Iceberg counts no keys up: a row names its own"
_DIVISION = "decimal / decimal is a double in DuckDB, right to 15 digits"

DIFFERENT = {
    (InsertBehaviorTest, "test_insert_from_select_autoinc"): _NO_COUNTER,
    (InsertBehaviorTest, "test_insert_from_select_autoinc_no_rows"): _NO_COUNTER,
    (InsertBehaviorTest, "test_no_results_for_non_returning_insert"): _NO_COUNTER,
    (TrueDivTest, "test_truediv_divisor"): _DIVISION,
    (IsolationLevelTest, "test_dialect_user_setting_is_restored"): (
        "the default level is AUTOCOMMIT, which the test leaves out of those it tries"
    ),
    (LongNameBlowoutTest, "test_long_convention_name"): "there are no indexes to have names",
    (ComponentReflectionTestExtra, "test_string_length_reflection"): (
        "Iceberg's string has no length"
    ),
    (WindowFunctionTest, "test_window_range"): "expects rows in order, without ORDER BY",
    (WindowFunctionTest, "test_window_range_numeric"): "expects rows in order, without ORDER BY",
}
for (tests, name), why in DIFFERENT.items():
    setattr(tests, name, pytest.mark.skip(reason=why)(getattr(tests, name)))
