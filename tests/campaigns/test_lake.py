"""A small part of the campaign over a generated lake, with a fixed seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.campaigns.lakes.checks import follow_doctor, rows_are_those_of_the_stream
from tests.campaigns.lakes.lake import Lake
from tests.campaigns.lakes.runs import Maintenance


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)


def test_the_doctor_keeps_its_promises(tmp_path: Path) -> None:
    lake = Lake(tmp_path, seed=3, count=8)
    assert list(rows_are_those_of_the_stream(lake)) == []
    assert list(follow_doctor(lake)) == []


def test_a_run_that_was_killed_goes_on_and_the_next_finds_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, seed=4, count=6)
    maintenance = Maintenance(lake)
    maintenance.run_and_kill(0.7)
    assert maintenance.run()["code"] == 0
    assert list(rows_are_those_of_the_stream(lake)) == []
    maintenance.run()  # what the killed one has half done
    assert {each["status"] for each in maintenance.run()["tables"]} == {"nothing"}
