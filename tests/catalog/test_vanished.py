"""Metadata that goes while a table is used is a StorageError that says what may have happened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import icesql
from icesql.errors import StorageError
from tests.sessions import fetched


@pytest.mark.parametrize("gone", ["snap-*.avro", "*-m0.avro", "*.metadata.json"])
def test_a_metadata_file_that_vanished_is_named(gone: str, warehouse: Path, tmp_path: Path) -> None:
    here = shutil.copytree(warehouse, tmp_path / "moved")
    for path in here.rglob(gone):
        path.unlink()
    with icesql.connect(uri=f"sqlite:///{here}/catalog.db") as connection:
        # The catalog still names the files where they were written, and those are there.
        shutil.move(warehouse, tmp_path / "aside")
        try:
            with pytest.raises(StorageError) as caught:
                fetched(connection, "SELECT * FROM shop.orders")
        finally:
            shutil.move(tmp_path / "aside", warehouse)
    text = str(caught.value)
    assert caught.value.path.rpartition("/")[2].endswith(gone.rpartition("*")[2])
    assert "expired or removed" in text or "neither there nor near" in text
