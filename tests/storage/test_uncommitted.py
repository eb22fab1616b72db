"""New files of a statement: what is not handed over goes, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icesql.errors import CommitStateUnknownError, InternalError
from icesql.storage.new_files import Uncommitted
from icesql.storage.open import Storage


def made(folder: Path, *names: str) -> list[str]:
    for each in names:
        (folder / each).touch()
    return [str(folder / each) for each in names]


def left(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt, CommitStateUnknownError])
def test_what_was_handed_over_stays(tmp_path: Path, error: type[BaseException] | None) -> None:
    a, b, _ = made(tmp_path, "a", "b", "c")
    try:
        with Uncommitted(Storage()) as new:
            new.take([a, b])
            new.hand_over([a])
            new.remove([a])
            if error is not None:
                raise error("what happens")
    except (KeyError, KeyboardInterrupt, CommitStateUnknownError):
        pass
    assert left(tmp_path) == ["a", "c"]


@pytest.mark.parametrize(("ending", "stays"), [
    ("well", ["1-m-used", "2-m-unknown", "other"]),
    ("lost", ["1-m-used", "other"]),
    ("error", ["2-m-unknown", "other"]),
    ("lost and error", ["other"]),
])  # fmt: skip
def test_files_that_nobody_reported(tmp_path: Path, ending: str, stays: list[str]) -> None:
    used, *_ = made(tmp_path, "1-m-used", "2-m-unknown", "other")
    try:
        with Uncommitted(Storage(), str(tmp_path), "-m-") as new:
            new.report([used])
            new.lost = "lost" in ending
            if "error" in ending:
                raise KeyError
            new.hand_over()
    except KeyError:
        pass
    assert left(tmp_path) == stays


def test_one_file_that_cannot_be_removed_keeps_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "1-m-a", "2-m-b", "3-m-c")
    (tmp_path / "4-m-d").symlink_to("nowhere")
    unlink = os.unlink

    def refuse(path: str) -> None:
        if path.endswith("-b"):
            raise PermissionError(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", refuse)
    with Uncommitted(Storage(), str(tmp_path), "-m-") as new:
        new.lost = True
    assert left(tmp_path) == ["2-m-b"]


@pytest.mark.parametrize("path", ["/w/1-m-1", "/w/1-x-1", "/v/1-m-2"])
def test_files_that_a_task_cannot_have_written(path: str) -> None:
    new = Uncommitted(Storage(), "/w/", "-m-")
    new.report(["/w/1-m-1"])
    with pytest.raises(InternalError, match="cannot have written"):
        new.report([path])
