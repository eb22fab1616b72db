"""Commits of tests need not survive a power failure."""

from __future__ import annotations

import os

import pytest

pytest.register_assert_rewrite("tests.commit.steps")


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
