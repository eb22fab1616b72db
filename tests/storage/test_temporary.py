"""What is told about a temp_directory that cannot be used."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import icesql
from icesql.errors import OperationalError, ScanLimitError
from icesql.storage.temporary import make_temporary_folder, spilling_to
from tests.sessions import answer, fetched


@pytest.mark.parametrize(
    "folder", ["file", "file/below", "nul\0byte", "/proc/none/here", "/etc/hosts/x"]
)
def test_a_temp_directory_that_cannot_be_made_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    path = os.path.join(tmp_path, folder)
    with pytest.raises(OperationalError, match="temp_directory"):
        answer("SELECT 1", settings={"temp_directory": path})


def test_another_folder_mends_the_connection(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with icesql.connect(settings={"temp_directory": str(tmp_path / "file")}) as connection:
        with pytest.raises(OperationalError, match="set temp_directory"):
            connection.execute("SELECT 1")
        connection.execute(f"SET temp_directory = '{tmp_path}/good'")
        assert fetched(connection, "SELECT 1") == [(1,)]


def test_without_a_folder_that_anybody_chose_queries_run_until_they_would_spill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    large = "SELECT count(*) FROM (SELECT DISTINCT md5(i::VARCHAR) || md5('x') FROM range(2000000) r(i))"
    with icesql.connect(settings={"memory_limit": "64MB", "threads": 1}) as connection:
        assert fetched(connection, "SELECT 1") == [(1,)]
        with pytest.raises(ScanLimitError, match="set temp_directory to a folder"):
            fetched(connection, large)
        connection.execute(f"SET temp_directory = '{tmp_path}/good'")
        assert fetched(connection, large) == [(2_000_000,)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_limit(code: int) -> None:
    with (
        pytest.raises(ScanLimitError, match="no space is left in temp_directory = '/x'"),
        spilling_to("/x"),
    ):
        raise OSError(code, os.strerror(code))


def test_the_error_of_what_is_read_meanwhile_stays_what_it_is() -> None:
    with pytest.raises(ScanLimitError, match="other"), spilling_to("/x"):
        raise ScanLimitError("other")


def test_a_folder_that_is_there_is_no_error(tmp_path: Path) -> None:
    make_temporary_folder(str(tmp_path))
    make_temporary_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
