"""Roots hold what lies below them, by every name that the storage would open it by."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from icesql.storage.roots import Roots


@pytest.mark.parametrize(
    "path",
    [
        "{root}", "{root}/", "{root}/a", "{root}/a/b.parquet", "{root}//a", "{root}/./a",
        "{root}/a/../b", "file:{root}/a", "file://{root}/a", "file:///{root}/a", "FILE:{root}/a",
        "file://localhost{root}/a", "{root}/%2e%2e", "{root}/a%20b", "file:{root}/a%20b",
        "{root}/..a", "{root}/a..", "{root}/...",
    ],
)  # fmt: skip
def test_a_local_root_holds_what_is_below(path: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    assert Roots.of([root]).hold(path.format(root=root))


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "{root}x", "{root}x/a", "{root}.", "{root}./a", "{root} /a",
        "{root}/..", "{root}/../x", "{root}/a/../../x", "file:{root}/../x", "file:{root}/%2e%2e/x",
        "file:{root}/%2E%2E%2Fx", "file:{root}/a/%2e%2e/%2e%2e/x", "file://host{root}/a",
        "file://..{root}", "{upper}/a", "{root}\0/a", "{root}/a\0", "s3://{root}/a",
        "s3:{root}/a", "http://localhost{root}/a", "root/a", "./root", "~/a", "{root}/../root2/a",
        "{link}", "{link}/a", "{root}/out/p", "{root}/out",
    ],
)  # fmt: skip
def test_a_local_root_holds_nothing_else(path: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    upper = str(root).upper()
    text = path.format(root=root, upper=upper, link=tmp_path / "link")
    assert not Roots.of([root]).hold(text)


@pytest.mark.parametrize(
    "path",
    ["s3://b/wh", "s3://b/wh/", "s3a://b/wh/t/data/x.parquet", "s3n://b/wh/a%20b", "S3://b/wh/t"],
)
def test_a_remote_root_holds_what_is_below(path: str) -> None:
    assert Roots.of(["s3://b/wh/"]).hold(path)


@pytest.mark.parametrize(
    "path",
    [
        "s3://b", "s3://b/", "s3://b/w", "s3://b/wh2/x", "s3://b/whx", "s3://B/wh/x", "s3://b/WH/x",
        "s3://b./wh/x", "s3://b/wh/../x", "s3://b/wh/./x", "s3://b/wh//x", "s3://b//wh/x",
        "s3://b/wh/%2e%2e/x", "s3://b/wh/%2E%2E%2fx", "s3://b/x%2f..%2fwh/x", "s3://b/wh/..%5cx",
        "s3://key:secret@b/wh/x", "s3://b@evil/wh/x", "s3://b:80/wh/x", "s3:/b/wh/x", "s3:b/wh/x",
        "gs://b/wh/x", "http://b/wh/x", "https://b/wh/x", "hdfs://b/wh/x", "abfss://b/wh/x",
        "/b/wh/x", "b/wh/x", "file://b/wh/x", "s3://b/wh/\0",
    ],
)  # fmt: skip
def test_a_remote_root_holds_nothing_else(path: str) -> None:
    assert not Roots.of(["s3://b/wh"]).hold(path)


def test_a_whole_bucket_and_a_container_may_be_roots() -> None:
    roots = Roots.of(["s3://b", "abfss://c@account.dfs.core.windows.net/x"])
    assert roots.hold("s3://b/anything/x")
    assert roots.hold("abfs://c@account.dfs.core.windows.net/x/y")
    assert not roots.hold("abfs://d@account.dfs.core.windows.net/x/y")


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
