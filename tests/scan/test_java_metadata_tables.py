"""Metadata tables are what Iceberg's Java library says of the same tables; see the campaign.

The tables have every kind of delete, 19 specs and variants. They were written by Iceberg 1.12 and
read by it with Spark 4.1.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.campaigns.java_metadata_tables import compare

RECORDED = Path(__file__).with_name("java_metadata_tables.tar.xz")


def test_they_are_what_java_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    recorded = json.loads((tmp_path / "java.json").read_text(encoding="utf-8"))
    assert len(recorded) == 3 * 15
    for each in recorded:
        each["at"] = str(tmp_path / each["at"])
    wrong = compare(recorded)
    assert not wrong, capsys.readouterr().out
    assert "'the same': 45" in capsys.readouterr().out
