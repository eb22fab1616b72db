"""Copies to a store and back; the store is a local folder behind pyarrow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.fs as fs
import pytest

import icesql
from icesql import errors
from icesql.storage import remote
from icesql.storage.arrow_files import ArrowFiles
from tests.maintain.relocation.test_copy import copied, history
from tests.maintain.rewrite.tables import rows
from tests.maintain.rewrite.test_run import with_deletes


@pytest.fixture
def bucket(tmp_path, monkeypatch) -> Path:
    """The folder of ``s3://bucket``, which creates folders on demand, as stores do."""
    local = pytest.importorskip("fsspec.implementations.local")
    handler = fs.FSSpecHandler(local.LocalFileSystem(auto_mkdir=True))
    system = fs.SubTreeFileSystem(str(tmp_path / "store"), fs.PyFileSystem(handler))
    monkeypatch.setattr(ArrowFiles, "_connect", lambda *arguments: system)
    monkeypatch.setattr(remote._Opened, "files", lambda self, uri: self.arrow)
    folder = tmp_path / "store" / "bucket"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("version", [1, 2, 3])
def test_to_a_store_and_back(version: int, bucket: Path, tmp_path) -> None:
    table, target = with_deletes(tmp_path, version), "s3://bucket/backup/t"
    done = copied(table.folder, target)
    assert done.metadata_location == f"{target}/metadata/{Path(table.metadata_path).name}"
    place = [("a",)] if table.spec else [()]
    table.append(rows(500, 3, "a"), partition=place[0])
    again = copied(table.folder, target, since="latest")
    assert again.copied == 1
    before = history(table.folder)
    shutil.rmtree(table.folder)
    assert history(target) == before
    with icesql.connect() as con:
        found = con.execute("CALL system.restore_table(?)", [target]).fetchall()
        assert found[0][5] == len(before[table.current])
    copied(target, tmp_path / "restored")
    shutil.rmtree(bucket)
    assert history(tmp_path / "restored") == before


@pytest.mark.parametrize("version", [2, 3])
def test_half_a_file_in_the_copy_is_copied_again(version: int, bucket: Path, tmp_path) -> None:
    table, target = with_deletes(tmp_path, version), "s3://bucket/t"
    copied(table.folder, target)
    files = list((bucket / "t" / "data").iterdir())
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[:-5])
        done = copied(table.folder, target)
        assert done.copied + done.rewritten == 1
        assert file.read_bytes() == whole
    assert history(target) == history(table.folder)


@pytest.mark.parametrize(
    "target", ["s3://bucket/wh/ns/t/copy", "s3a://bucket/wh", "s3://bucket/wh/ns/t/"]
)
def test_a_place_in_the_table_itself_is_refused(target: str, bucket: Path, tmp_path) -> None:
    table = with_deletes(tmp_path, 2)
    copied(table.folder, "s3://bucket/wh/ns/t")
    with pytest.raises(errors.CatalogError, match="lies in the other"):
        copied("s3://bucket/wh/ns/t", target)


def test_two_stores_have_properties_of_their_own(bucket: Path, tmp_path) -> None:
    table = with_deletes(tmp_path, 2)
    seen: list[Any] = []
    real = ArrowFiles.__init__

    def made(self: ArrowFiles, properties: Any) -> None:
        seen.append(dict(properties))
        real(self, properties)

    with pytest.MonkeyPatch.context() as patch, icesql.connect() as con:
        patch.setattr(ArrowFiles, "__init__", made)
        con.execute(
            "CALL system.copy_table(?, 's3://bucket/t', "
            "properties => map('s3.endpoint', 'http://other:1'), verify => true)",
            [table.folder],
        )
    assert seen
    assert all(each["s3.endpoint"] == "http://other:1" for each in seen)
