"""Tests need no durability: commits are not synced to disk."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
