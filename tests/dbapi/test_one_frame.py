"""An error of SQL in a script fits a screen: the statement, a mark and one frame of icesql's."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import icesql

ERRORS = [
    "SELECT nope FROM s.t",
    "SELEC 1",
    "SELECT a + FROM s.t",
    "SELECT * FROM s.nope",
    "SELECT nvl(a, 1) FROM s.t",
    "SELECT a || [1] FROM s.t",
    "SELECT CAST(b AS INT) FROM s.t",
    "INSERT INTO s.t VALUES (1)",
    "DROP TABEL s.t",
    "CREATE TABLE s.t (a INT)",
    "SELECT\n  a,\n  nope\nFROM s.t",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    with icesql.connect(warehouse=folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS a, 'x' AS b")
    return folder


def frames(error: BaseException) -> list[str]:
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(str(trace.tb_frame.f_globals["__name__"]))
        trace = trace.tb_next
    return [name for name in found if name.partition(".")[0] == "icesql"]


@pytest.mark.parametrize("sql", ERRORS)
def test_one_frame_of_ours_and_the_statement(lake: Path, sql: str) -> None:
    with icesql.connect(warehouse=lake) as con:
        for run in (
            lambda: con.execute(sql).fetchall(),
            lambda: con.cursor().execute(sql).fetchall(),
            lambda: con.execute(sql).arrow(),
        ):
            with pytest.raises(icesql.Error) as caught:
                run()
            error = caught.value
            assert len(frames(error)) == 1, sql
            assert error.__cause__ is None
            shown = str(error) + "".join(getattr(error, "__notes__", ()))
            if "line " in shown:
                assert any(f"  {line}\n" in shown for line in sql.splitlines()), shown
                assert shown.rstrip().endswith("^"), shown
            again = pickle.loads(pickle.dumps(error))
            assert (str(again), type(again)) == (str(error), type(error))


def test_a_secret_of_the_statement_is_in_no_note(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as con:
        with pytest.raises(icesql.Error) as caught:
            con.execute("SELECT * FROM iceberg_scan('s3://me:hunter2hunter2@bucket/t') WHERE nope")
        assert "hunter2" not in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))


def test_a_script_shows_few_lines_and_all_where_it_is_wanted(lake: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import icesql\ncon = icesql.connect(warehouse={str(lake)!r})\n"
                      "con.execute('SELECT nope FROM s.t')\n")  # fmt: skip
    lines = {}
    for all_frames in ("0", "1"):
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "ICESQL_TRACEBACK": all_frames},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "  SELECT nope FROM s.t\n         ^" in done.stderr
        lines[all_frames] = done.stderr.count("\n")
    assert lines["0"] <= 12
    assert lines["1"] > 30


def test_a_bug_shows_all_frames(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise icesql.InternalError("a bug")

    with icesql.connect(warehouse=lake) as con:
        monkeypatch.setattr("icesql.dbapi.cursor.log_scans", broken)
        with pytest.raises(icesql.InternalError) as caught:
            con.execute("SELECT 1")
        assert len(frames(caught.value)) > 1
