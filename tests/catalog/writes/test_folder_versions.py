"""Versions of a table in a folder: a name that is linked is the table's only if others let it be.

Where old versions are deleted after a commit, the next version of a slow writer may be free again
although others committed it, and many after it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.current_metadata import find_current_metadata, hinted_last
from icesql.catalog.writes import directory as writes
from icesql.storage.open import Storage
from tests.catalog.writes.writers import Writers
from tests.commit.tables import directory
from tests.rows import rows_of
from tests.scenes import Scene, scenes


@pytest.fixture
def writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writers:
    return Writers(directory, tmp_path, monkeypatch)


@scenes(__file__, "folder_versions.scenes")
def test_a_version_is_the_tables_if_others_let_it_be(scene: Scene, writers: Writers) -> None:
    writers.play(scene)


@rows_of(__file__, "hinted_folders.tsv", "hinted", "names")
def test_the_hint_alone_never_says_other_than_a_listing(
    hinted: str, names: str, tmp_path: Path
) -> None:
    for name in names.split():
        (tmp_path / name).touch()
    if hinted != "-":
        (tmp_path / "version-hint.text").write_text(hinted)
    listed = find_current_metadata(str(tmp_path), Storage())
    assert hinted_last(str(tmp_path)) in (None, listed)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of metadata that are listed."""
    found: list[str] = []
    for name in ("listdir", "scandir"):
        real = getattr(os, name)

        def noted(path: Any = ".", real: Any = real) -> Any:
            if str(path).endswith("/metadata"):
                found.append(str(path))
            return real(path)

        monkeypatch.setattr(os, name, noted)
    return found


def test_a_commit_lists_the_folder_once(writers: Writers, listings: list[str]) -> None:
    writers.create()
    writers.commit("a")
    listings.clear()
    for number in range(3):
        writers.commit_now(f"b{number}")
    assert len(listings) == 3
    # A table that was loaded long ago: others may have put files into its folder since.
    writers.load_long_ago()
    listings.clear()
    writers.commit("c")
    assert len(listings) == 1
    writers.live("a", "b0", "b1", "b2", "c")


def test_a_version_that_is_taken_back_leaves_no_hint_of_it(
    writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers.create()
    folder, unlink = str(writers.metadata), os.unlink

    def seen(path: str, **options: Any) -> None:
        unlink(path, **options)
        assert find_current_metadata(folder, Storage())

    writers.after("link", "give_hint 2; take_over 3600000")
    monkeypatch.setattr("os.unlink", seen)
    with pytest.raises(icesql.Error):
        writers.commit("a")
    assert writes.read_hint(folder) in (None, 1)
