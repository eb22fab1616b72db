"""New files of a table: whole or not there, never over another, never outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.errors import AccessDeniedError, OperationalError, UnsupportedTableError
from icesql.storage.new_files import NewFile, check_writable, remove_file
from icesql.storage.open import Reroot, Storage
from icesql.storage.roots import Roots


def test_it_appears_when_finished(tmp_path: Path) -> None:
    path = f"file:{tmp_path}/data/p=1/a.parquet"
    file = NewFile(Storage(), path)
    file.write(b"12")
    file.write(memoryview(b"345"))
    assert [each.name for each in (tmp_path / "data/p=1").iterdir() if each.suffix != ".part"] == []
    assert file.finish() == 5
    assert (tmp_path / "data/p=1/a.parquet").read_bytes() == b"12345"
    file.abandon()
    assert (tmp_path / "data/p=1/a.parquet").exists()
    assert remove_file(Storage(), path)
    assert not remove_file(Storage(), path)


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), NewFile(Storage(), str(tmp_path / "a")) as file:
        file.write(None)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"there")
    with pytest.raises(OperationalError, match="exists"):
        NewFile(Storage(), str(tmp_path / "a"))
    late = NewFile(Storage(), str(tmp_path / "b"))
    (tmp_path / "b").write_bytes(b"there")
    with pytest.raises(OperationalError, match="exists"):
        late.finish()
    assert (tmp_path / "b").read_bytes() == b"there"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_a_store_says_is_told_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage({"s3.secret-access-key": "hush-hush-hush"})

    class Files:
        def filesystem(self, path: str) -> None:
            raise OSError("PUT http://u:hush-hush-hush@store/: no")

    monkeypatch.setattr(storage, "remote_files", Files)
    with pytest.raises(OperationalError, match="cannot write s3://b/a: PUT ") as caught:
        NewFile(storage, "s3://b/a")
    assert "hush" not in str(caught.value)


def test_roots_hold_writes_too(tmp_path: Path) -> None:
    inside = Storage(confine=Roots.of([tmp_path / "t"]))
    for path in (str(tmp_path / "a"), f"{tmp_path}/t/../a", "s3://bucket/a"):
        with pytest.raises(AccessDeniedError):
            NewFile(inside, path)
        assert not remove_file(inside, path)
    with NewFile(inside, str(tmp_path / "t/a")):
        pass
    assert (tmp_path / "t/a").exists()


def test_a_moved_table_is_not_written(tmp_path: Path) -> None:
    here = str(tmp_path)
    check_writable(Storage())
    check_writable(Storage(reroot=Reroot(here, here)))
    check_writable(Storage(reroot=Reroot(f"file://{here}/", here)))
    for recorded in ("s3://bucket/t", "/elsewhere/t"):
        with pytest.raises(UnsupportedTableError, match="says that it lies in"):
            check_writable(Storage(reroot=Reroot(recorded, here)))
