"""Roots hold what lies below them, by every name that the storage would open it by."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from icesql.storage.roots import Roots
from tests.rows import rows_of


@rows_of(__file__, "roots.tsv", "root", "path", "held")
def test_what_a_root_holds(root: str, path: str, held: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "root", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "out").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    names = {"root": folder, "upper": str(folder).upper(), "link": tmp_path / "link"}
    text = path.format(**names).replace("␀", "\0")
    assert Roots.of([root.format(**names)]).hold(text) is (held == "yes")


def test_a_root_may_be_a_link_and_be_named_either_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for root in ("link", "real"):
        roots = Roots.of([tmp_path / root])
        assert roots.hold(f"{tmp_path}/{root}/a")
    assert Roots.of([tmp_path / "link"]).hold(f"{tmp_path}/real/a")


@pytest.mark.parametrize("root", ["", "  ", "a\0b", "s3://", "s3:///x", "s3://b/../x", b"x"])
def test_what_cannot_be_a_root_is_told(root: object) -> None:
    with pytest.raises(ValueError):
        Roots.of([root])  # type: ignore[list-item]


def test_roots_travel_to_workers() -> None:
    roots = Roots.of(["/data", "s3://b/x"])
    assert pickle.loads(pickle.dumps(roots)) == roots


def test_what_is_outside_is_refused_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = Roots.of(["/data"])

    def seen(path: str, *_: object, **__: object) -> str:
        raise AssertionError(f"looked at {path}")

    monkeypatch.setattr("os.path.realpath", seen)
    monkeypatch.setattr("os.lstat", seen)
    assert not roots.hold("/etc/passwd")
    assert not roots.hold("/data/../etc/passwd")
