"""One commit back: by CALL, by other systems' statements, by the command and in the shell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.repl import run_command
from icesql.repl.run_command import undo
from tests.repl.in_terminal import spawned
from tests.warm import icesql as command

FORMS = (
    "CALL system.rollback_to_snapshot('{t}', -1)",
    "CALL system.rollback_to_snapshot(table => '{t}', snapshot_id => -1)",
    "ROLLBACK TABLE {t} TO VERSION -1",
    "ROLLBACK TABLE {t} TO SNAPSHOT -1",
    "ROLLBACK TABLE {t} TO SNAPSHOT '-1'",
    "RESTORE TABLE {t} TO VERSION AS OF -1",
    "RESTORE {t} TO VERSION AS OF -1",
    "ALTER TABLE {t} EXECUTE rollback_to_snapshot(-1)",
)


def ids(con: icesql.Connection, of: str = "s.t") -> list[int]:
    return [row[0] for row in con.execute(f"SELECT i FROM {of} ORDER BY i")]


def head(con: icesql.Connection, ref: str = "main") -> int:
    found = con.execute(f"SELECT snapshot_id FROM s.t.refs WHERE name = '{ref}'").fetchone()
    assert found is not None
    return int(found[0])


@pytest.fixture
def table(con: icesql.Connection) -> icesql.Connection:
    con.execute("CREATE TABLE s.t AS SELECT * FROM (VALUES (1), (2), (3)) v(i)")
    con.execute("INSERT INTO s.t VALUES (4)")
    con.execute("DELETE FROM s.t WHERE i < 3")
    return con


@pytest.mark.parametrize("catalog", ["rest", "sqlite", "pyiceberg"], indirect=True)
def test_other_catalogs(table: icesql.Connection, catalog: dict[str, Any]) -> None:
    table.execute("ALTER TABLE s.t CREATE BRANCH audit")
    table.execute("INSERT INTO s.t.branch_audit VALUES (9)")
    for _ in range(2):
        table.execute("CALL system.rollback_to_snapshot('s.t.branch_audit', -1)")
    assert ids(table, "s.t VERSION AS OF 'audit'") == [1, 2, 3, 4]
    mistake = head(table)
    table.execute("CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))")
    with icesql.connect(**catalog) as other:
        said: list[str] = []
        assert undo(other, "s.t", said.append, agreed=True)
        assert any(f"snapshot {mistake}" in each for each in said), "the change lies below"
        assert head(other) == mistake
    for form, rows in zip(FORMS[2:4], ([1, 2, 3, 4], [1, 2, 3]), strict=True):
        (note,) = table.execute(form.format(t="s.t")).notes
        assert ids(table) == rows
    with pytest.raises(errors.ProgrammingError, match="no earlier snapshot"):
        table.execute(FORMS[4].format(t="s.t"))
    table.execute(note.partition("forward again: ")[2])
    assert ids(table) == [1, 2, 3, 4]
    table.execute("ALTER TABLE s.t CREATE TAG loaded AS OF VERSION -1")
    table.execute("ALTER TABLE s.t DROP BRANCH audit")
    table.execute("INSERT INTO s.t VALUES (5)")
    table.execute("CALL system.expire_snapshots('s.t', now(), 1)")
    with pytest.raises(errors.ProgrammingError, match="has expired"):
        table.execute(FORMS[5].format(t="s.t"))
    assert ids(table) == [1, 2, 3, 4, 5]
    table.execute("INSERT INTO s.t VALUES (6)")
    table.execute(FORMS[0].format(t="s.t"))
    table.execute("CREATE OR REPLACE TABLE s.t (word VARCHAR)")
    with pytest.raises(errors.ProgrammingError, match="VERSION AS OF") as caught:
        table.execute(FORMS[-1].format(t="s.t"))
    remedy = re.search(r"CREATE OR REPLACE TABLE s\.t AS .* VERSION AS OF \d+", str(caught.value))
    assert remedy is not None
    table.execute(remedy[0])
    assert ids(table) == [1, 2, 3, 4, 5], "main's rows of then, without the insert taken back"


# ------------------------------------------------------------------ the command and the shell


def test_another_writer_between_the_look_and_the_rollback(
    table: icesql.Connection, catalog: dict[str, Any], monkeypatch
) -> None:
    def agrees(_: int) -> bool:
        with icesql.connect(**catalog) as other:
            other.execute("INSERT INTO s.t VALUES (5)")
        return True

    monkeypatch.setattr(run_command, "_agrees", agrees)
    with pytest.raises(errors.CommitConflictError, match="is not at snapshot"):
        undo(table, "s.t", print)
    assert ids(table) == [3, 4, 5]


def test_a_commit_between_the_load_and_the_swap_is_a_conflict(
    table: icesql.Connection, catalog: dict[str, Any], monkeypatch
) -> None:
    from icesql.commit import file_changes as module

    change = module.change_table

    def late(*given: Any, **named: Any) -> Any:
        with icesql.connect(**catalog) as other:
            other.execute("INSERT INTO s.t VALUES (5)")
        return change(*given, **named)

    monkeypatch.setattr(module, "change_table", late)
    with pytest.raises(errors.CommitConflictError, match="is not at snapshot"):
        table.execute("CALL system.rollback_to_snapshot('s.t', -1)")
    assert ids(table) == [3, 4, 5], "what another one committed is not taken back"


@pytest.fixture
def lake(tmp_path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    with icesql.connect(warehouse=folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute('CREATE TABLE s."it\'s" AS SELECT 1 AS i')
        con.execute('INSERT INTO s."it\'s" VALUES (2)')
        con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
        con.execute("INSERT INTO s.t VALUES (2)")
        con.execute("DELETE FROM s.t WHERE i = 1")
    return folder


def now(lake: Path, what: str = "s.t") -> list[int]:
    with icesql.connect(warehouse=lake) as con:
        return ids(con, what)


def test_the_command_asks_and_says_what_it_takes_back(lake: Path) -> None:
    asked = command("--warehouse", lake, "undo", "s.t")
    assert asked.returncode == 1
    assert "--yes" in asked.stderr
    assert "takes back" in asked.stdout
    assert now(lake) == [2]
    last = re.search(r"--snapshot (\d+)", asked.stderr)
    assert last is not None
    done = command("undo", "s.t", "--warehouse", lake, "--yes", "--snapshot", last[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert "forward again: CALL system.set_current_snapshot" in done.stdout
    assert now(lake) == [1, 2]
    again = command("undo", "s.t", "--warehouse", lake, "--yes", "--snapshot", last[1])
    assert again.returncode == 1
    assert "nothing was changed" in again.stderr
    assert now(lake) == [1, 2]
    assert command("undo", "s.t", "--warehouse", lake, "--yes").returncode == 0
    assert now(lake) == [1]
    end = command("undo", "s.t", "--warehouse", lake, "--yes")
    assert end.returncode == 1
    assert "no earlier snapshot" in end.stderr


def test_the_command_takes_a_branch_and_odd_names(lake: Path) -> None:
    with icesql.connect(warehouse=lake) as con:
        con.execute('ALTER TABLE s.t CREATE BRANCH "a.b"')
        con.execute('UPDATE s.t."branch_a.b" SET i = 9')
    done = command("undo", "s.t", "--branch", "a.b", "--warehouse", lake, "--yes")
    assert done.returncode == 0, done.stderr
    assert now(lake, "s.t VERSION AS OF 'a.b'") == now(lake) == [2]
    done = command("undo", 's."it\'s"', "--branch", "main", "--warehouse", lake, "--yes")
    assert done.returncode == 0, done.stderr
    assert now(lake, 's."it\'s"') == [1]
    missing = command("undo", "s.t", "--branch", "none", "--warehouse", lake, "--yes")
    assert missing.returncode == 1
    assert "branch 'none' not found" in missing.stderr


def test_the_command_line_of_undo(lake: Path) -> None:
    for arguments in (["undo"], ["undo", "a", "b"], ["-c", "SELECT 1", "--yes"]):
        assert command("--warehouse", lake, *arguments).returncode == 2
    reads = command("undo", "s.t", "--warehouse", lake, "--yes", "--read-only")
    assert reads.returncode == 1
    assert "only reads" in reads.stderr
    assert now(lake) == [2]
    assert "icesql undo" in command("help", "undo").stdout


def test_the_shell_asks(lake: Path, tmp_path) -> None:
    child = spawned(tmp_path, "--warehouse", str(lake))
    try:
        child.send("\\undo s.t\r")
        child.expect_exact("take it back? [y/N]")
        child.send("n\r")
        child.expect_exact("nothing was changed")
        child.send("\\undo s.t;\r")
        child.expect_exact("take it back? [y/N]")
        child.send("y\r")
        child.expect_exact("is as it was before snapshot")
        child.send("\\undo s.t --yes\r")
        child.expect_exact("is as it was before snapshot")
        child.send("\\undo s.t\r")
        child.expect_exact("no earlier snapshot")
    finally:
        child.close(force=True)
    assert now(lake) == [1]
