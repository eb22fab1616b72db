"""Tables whose metadata names files of other tenants, with ``confine`` and with the default."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from icesql.errors import AccessDeniedError, Error, StorageError
from tests.security.conftest import one_column
from tests.sessions import answer
from tests.tables import read_table

SECRET = 424242


class Tenants:
    """Two tables of two tenants below one warehouse: ``payroll`` has the secret."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self.payroll = one_column(warehouse / "othertenant/payroll")
        # Names of metadata files count up; these are not also those of the other table.
        self.payroll.commit([])
        self.payroll.commit([])
        data = self.payroll.data_file([{"a": SECRET}])
        self.payroll.commit([data])
        self.secret = data.record["file_path"]
        self.evil = one_column(warehouse / "evil/t")

    def naming(self, path: str) -> str:
        """The evil table's folder, once its one data file is recorded as ``path``."""
        file = self.evil.existing_file(self.secret, path, 1)
        self.evil.commit([file], list(self.evil.live))
        assert self.evil.live == [file]
        return self.evil.folder

    def rows(self, **access: Any) -> list[Any]:
        return answer("SELECT * FROM evil.t", warehouse=self.warehouse, **access)


@pytest.fixture
def tenants(tmp_path: Path) -> Tenants:
    return Tenants(tmp_path / "wh")


SPELLINGS = read_table(__file__, "spellings_of_paths.tsv")


def _spellings(tenants: Tenants) -> dict[str, str]:
    secret, folder = tenants.secret, tenants.evil.folder
    up = os.path.relpath(secret, folder)
    os.makedirs(f"{folder}/data", exist_ok=True)
    os.symlink(secret, f"{folder}/data/link.parquet")
    os.symlink(os.path.dirname(secret), f"{folder}/data/folder")
    names = {
        "secret": secret,
        "folder": folder,
        "inside": os.path.relpath(secret, tenants.warehouse),
        "name": os.path.basename(secret),
        "up": up,
        "percent_up": up.replace("..", "%2e%2e"),
        "quoted": quote(secret, safe=""),
        "slashes": secret.replace("/", "//"),
        "warehouse": tenants.warehouse.name,
    }
    return {way: form.format(**names) for way, _, form in SPELLINGS}


@pytest.mark.parametrize("mode", ["own", "roots", "service"])
def test_confined_no_spelling_reads_the_file_of_another(
    tenants: Tenants, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    access: dict[str, Any] = {
        "own": {"confine": True},
        "roots": {"confine": [tenants.warehouse / "evil"]},
        "service": {"service": True},
    }[mode]
    monkeypatch.chdir(tenants.warehouse)
    for path in _spellings(tenants).values():
        tenants.naming(path)
        with pytest.raises(AccessDeniedError):
            print(path, tenants.rows(**access))


@pytest.mark.parametrize("name", [way for way, how, _ in SPELLINGS if how == "guessed"])
def test_unconfined_no_guess_leaves_the_table(tenants: Tenants, name: str) -> None:
    tenants.naming(_spellings(tenants)[name])
    with pytest.raises(StorageError):
        tenants.rows()


def test_a_recorded_location_that_lies_does_not_widen_a_guess(tmp_path: Path) -> None:
    tenants = Tenants(tmp_path / "wh")
    inside = os.path.relpath(tenants.secret, tenants.warehouse)
    for location, path in [
        ("/x/a/b", f"/x/{inside}"),
        ("s3://bucket/x/a/b", f"s3://bucket/x/{inside}"),
        ("/x/wh2/evil/u", f"/x/wh2/{inside}"),
        ("othertenant/x/y", inside),
    ]:
        tenants.evil.location = location
        tenants.naming(path)
        for access in ({}, {"confine": True}):
            with pytest.raises((StorageError, AccessDeniedError)):
                tenants.rows(**access)


@pytest.mark.parametrize("what", ["copy", "link", "linked folder", "manifest list", "manifest"])
def test_confined_no_metadata_of_another_is_read(tenants: Tenants, what: str) -> None:
    tenants.evil.commit([tenants.evil.data_file([{"a": 1}])])
    folder, theirs = tenants.evil.folder, tenants.payroll.metadata_path
    ours = tenants.evil.metadata_path
    match what:
        case "copy":
            shutil.copy(theirs, ours)
        case "link":
            os.unlink(ours)
            os.symlink(theirs, ours)
        case "linked folder":
            shutil.rmtree(f"{folder}/metadata")
            os.symlink(os.path.dirname(theirs), f"{folder}/metadata")
        case _:
            metadata = json.loads(Path(ours).read_text())
            other = json.loads(Path(theirs).read_text())["snapshots"][-1]["manifest-list"]
            if what == "manifest":
                # The list lies in the table, but it is theirs and names their manifests.
                shutil.copy(other, f"{folder}/metadata/list.avro")
                other = f"{folder}/metadata/list.avro"
            for snapshot in metadata["snapshots"]:
                snapshot["manifest-list"] = other
            Path(ours).write_text(json.dumps(metadata))
    for access in ({"confine": True}, {"confine": [tenants.evil.folder]}, {"service": True}):
        # Their list may name manifests that ours happen to be called as, of another length.
        with pytest.raises(Error if what == "manifest" else AccessDeniedError):
            print(tenants.rows(**access))


def test_a_delete_file_of_another_is_not_read(tenants: Tenants) -> None:
    file = tenants.evil.data_file([{"a": 1}, {"a": 2}])
    deletes = tenants.evil.position_deletes([(file, 0)])
    outside = f"{tenants.payroll.folder}/data/deletes.parquet"
    shutil.copy(deletes.record["file_path"], outside)
    deletes.record["file_path"] = outside
    tenants.evil.commit([file, deletes])
    assert tenants.rows() == [(2,)]
    with pytest.raises(AccessDeniedError):
        tenants.rows(confine=True)


def test_a_confined_table_of_ones_own_is_read(tenants: Tenants, tmp_path: Path) -> None:
    tenants.evil.commit([tenants.evil.data_file([{"a": 7}])])
    for access in (
        {"confine": True},
        {"confine": [tenants.warehouse]},
        {"confine": str(tenants.warehouse)},
        {"service": True},
    ):
        assert tenants.rows(**access) == [(7,)]
    with pytest.raises(AccessDeniedError):
        tenants.rows(confine=[tmp_path / "w"])
    # Moved as a whole, it still is.
    os.rename(tenants.warehouse, tmp_path / "moved")
    tenants.warehouse = tmp_path / "moved"
    assert tenants.rows(confine=True) == tenants.rows() == [(7,)]


def test_a_warehouse_behind_a_link_is_read(tenants: Tenants, tmp_path: Path) -> None:
    tenants.evil.commit([tenants.evil.data_file([{"a": 7}])])
    os.symlink(tenants.warehouse, tmp_path / "link")
    tenants.warehouse = tmp_path / "link"
    for access in ({"confine": True}, {"confine": [tmp_path / "link"]}, {"confine": [tmp_path]}):
        assert tenants.rows(**access) == [(7,)]


def test_the_error_does_not_tell_whether_the_file_is_there(tenants: Tenants) -> None:
    there = Path(tenants.secret)
    absent = there.with_name("x" * len(there.name))
    texts = []
    for path in (there, absent, there.parent):
        tenants.naming(str(path))
        with pytest.raises(Error) as caught:
            tenants.rows(confine=True)
        texts.append(f"{type(caught.value)} {caught.value}".replace(str(path), "PATH"))
    assert len(set(texts)) == 1
