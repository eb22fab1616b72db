"""What is kept of what was typed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from icesql.repl.prompt import HistoryFile, holds_secret
from tests.rows import rows_of


def kept(path: Path) -> list[str]:
    """Oldest first."""
    return list(HistoryFile(path).load_history_strings())[::-1]


@rows_of(__file__, "kept.tsv", "text", "is_kept")
def test_a_statement_with_a_secret_is_not_kept(text: str, is_kept: str, tmp_path: Path) -> None:
    if "map(" not in text:
        assert holds_secret(text) is (is_kept == "no")
    history = HistoryFile(tmp_path / "h")
    history.append_string(text)
    assert kept(tmp_path / "h") == [text] * (is_kept == "yes")
    assert history.get_strings() == [text]  # this shell knows it


def test_a_blank_in_front_keeps_it_out(tmp_path: Path) -> None:
    HistoryFile(tmp_path / "h").append_string(" SELECT 1")
    assert kept(tmp_path / "h") == []


def test_the_file_is_that_of_prompt_toolkit(tmp_path: Path) -> None:
    texts = ["SELECT 1;", "SELECT\n  'é 日本',\n\n+1;", "\\dt"]
    for each in texts:
        HistoryFile(tmp_path / "ours").append_string(each)
        FileHistory(str(tmp_path / "theirs")).append_string(each)
    assert kept(tmp_path / "ours") == kept(tmp_path / "theirs") == texts
    assert list(FileHistory(str(tmp_path / "ours")).load_history_strings())[::-1] == texts


def test_shells_that_are_open_at_once_do_not_mix_their_statements(tmp_path: Path) -> None:
    path = tmp_path / "h"
    texts = [[f"SELECT '{shell}{number}',\n{'x' * 9000};" for number in range(30)]
             for shell in "abcd"]  # fmt: skip
    threads = [
        threading.Thread(target=lambda own=own: [HistoryFile(path).append_string(x) for x in own])  # type: ignore[misc]
        for own in texts
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = kept(path)
    assert sorted(found) == sorted(text for own in texts for text in own)
    assert [x for x in found if x in texts[0]] == texts[0]


def test_of_a_long_file_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icesql.repl.prompt._MOST_BYTES", 300)
    history = HistoryFile(tmp_path / "h")
    for number in range(50):
        history.append_string(f"SELECT {number},\n {number};")
    found = kept(tmp_path / "h")
    assert found == [f"SELECT {n},\n {n};" for n in range(50 - len(found), 50)]
    assert 3 < len(found) < 9


def test_a_file_that_cannot_be_read_or_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", Path("/dev/full"), tmp_path / "gone" / "h"):
        history = HistoryFile(path)
        history.append_string("SELECT 1")
        assert list(history.load_history_strings()) == []
    history = HistoryFile(tmp_path / "h")
    history.append_string("SELECT '\udcc3'")  # half of a character
    assert kept(tmp_path / "h") == ["SELECT '?'"]
    assert os.stat(tmp_path / "h").st_mode & 0o077 == 0
