"""``icesql maintain``: a line for each table, a report, and codes for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icesql.cli import main
from icesql.config import state_file
from tests.health.lake import build, connect


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ICESQL_CONFIG", "")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return build(tmp_path / "wh")


def test_all_tables_with_progress_report_and_codes(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--warehouse", str(lake)]
    assert main(["maintain", "--all", "--dry-run", *place]) == 1  # one is damaged
    shown = capsys.readouterr()
    assert "CALL system.rewrite_data_files('ns.small');" in shown.out
    assert not state_file("maintain.jsonl").exists()
    assert main(["maintain", "--all", *place, "--format", "json"]) == 1
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    lines = shown.err.splitlines()
    assert len(lines) == len(report["tables"]) == 11
    assert lines[0].startswith("[1/11] ns.damaged: damaged; missing files: icesql doctor")
    assert any('/11] ns."odd [1]": done; data files 6 → 1' in each for each in lines)
    assert state_file("maintain.jsonl").stat().st_mode & 0o077 == 0
    with connect(lake) as con:
        con.execute("DROP TABLE ns.damaged PURGE")
    assert main(["maintain", "--all", *place]) == 0
    assert capsys.readouterr().out == "10 tables: 10 nothing\n"


def test_a_budget_ends_with_3(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maintain", "ns.small", "--warehouse", str(lake), "--budget", "0s"]) == 3
    assert "1 not begun: the budget is used up" in capsys.readouterr().out


def test_a_history_that_cannot_be_written_is_told(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "history")
    code = main(["maintain", "ns.small", "--warehouse", str(lake), "--history", path])
    assert code == 1
    assert "cannot keep the history of maintenance" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["maintain"], "names of tables, or --all"),
        (["maintain", "--all", "ns.t"], "--all goes with"),
        (["maintain", "--all", "--format", "csv"], "table (text) or json"),
        (["query", "SELECT 1", "--budget", "1h"], "--budget goes with maintain"),
        (["--dry-run", "-c", "SELECT 1"], "--dry-run goes with maintain"),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
