"""Untrusted names, paths and values cannot send control sequences to a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from icesql.cli import main
from tests import warm
from tests.repl.in_terminal import spawned
from tests.sessions import fetched
from tests.tables import read_table

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "rel\x1b[2J\x9b31m\x07\u202e\u2066\u2028"
# What a terminal and prompt-toolkit exchange by themselves.
OWN = re.compile(r"\r|\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07|\x08")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse folder whose table, tag, column and namespace steer terminals."""
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    folder = tmp_path_factory.mktemp("evil")
    catalog = SqlCatalog("evil", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("n")
    rows = pa.table({"id": [1, 2], f"c{EVIL}": ["x", EVIL]})
    for name in ("evil", f"t{EVIL}"):
        table = catalog.create_table(("n", name), rows.schema, location=f"{folder}/{len(name)}")
        table.append(rows)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, EVIL).commit()
    catalog.close()
    return folder


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.icesql("--warehouse", place, *arguments)


_ALL = [
    (kind, sql.replace("EVIL", EVIL)) for kind, sql in read_table(__file__, "evil_statements.tsv")
]
STATEMENTS = [sql for kind, sql in _ALL if kind == "shown"]
ENGINE = [sql for kind, sql in _ALL if kind == "engine"]


def run_here(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Run the command in this process and return its output: starting another would be slower."""
    main(list(arguments))
    return capfd.readouterr()


def test_no_statement_puts_a_control_character_on_stderr_or_into_a_table(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for statement in STATEMENTS:
        out, err = run_here(capfd, "--warehouse", str(place), "-v", "-c", statement)
        assert out or err
        assert not RAW.search(out + err), (statement, out, err)
    done = run(place, "--debug", "-c", STATEMENTS[3])
    assert "Traceback" in done.stderr
    assert not RAW.search(done.stderr)


def test_the_command_line_itself_is_told_harmlessly(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [EVIL],
        ["--" + EVIL],
        ["-f", f"/no/{EVIL}"],
        ["--set", EVIL],
        ["--format", EVIL],
    ):
        out, err = run_here(capfd, *arguments)
        assert err
        assert not RAW.search(out + err), arguments


ON_A_TERMINAL = """
import sys
from icesql.cli import main
for output_format in sys.argv[3:]:
    print("format", output_format, flush=True)
    main(["--warehouse", sys.argv[1], "--format", output_format, "-c", sys.argv[2]])
"""


def test_a_pipe_gets_the_exact_text_and_a_terminal_none_of_it(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT * FROM n.evil ORDER BY id DESC LIMIT 1"
    assert EVIL in run(place, "--format", "csv", "-c", sql).stdout
    out, _ = run_here(capfd, "--warehouse", str(place), "--format", "json", "-c", sql)
    assert EVIL in json.loads(out)[0].values()
    formats = ["csv", "json", "jsonl", "table", "markdown"]
    shell = pexpect.spawn(
        sys.executable, ["-c", ON_A_TERMINAL, str(place), sql, *formats],
        timeout=600, env={**os.environ, "NO_COLOR": "1"}, encoding="utf-8",
    )  # fmt: skip
    shell.expect(pexpect.EOF)
    for shown in re.split("format ", shell.before)[1:]:
        formats.remove(shown.split()[0])
        assert "rel" in shown
        assert not RAW.search(shown.replace("\r\n", "\n")), shown
    assert not formats


def test_the_shell_and_its_completion_menu_show_none(place: Path, tmp_path: Path) -> None:
    shell = spawned(tmp_path, "--warehouse", str(place), size=(60, 200))
    seen = [shell.before]

    def then(words: str) -> None:
        shell.expect_exact(words)
        seen.append(shell.before)

    for line, answer in (
        ("SELECT * FROM n.evil VERSION AS OF 'rel';", "not found in table"),
        ("\\refs n.evil", "(2 rows"),
        ("\\format csv", "icesql>"),
        ("SELECT * FROM n.evil;", "(2 rows"),
        ("\\nonsense", "unknown command"),
    ):
        shell.send(line + "\r")
        then(answer)
        then("icesql>")
    shell.send("SELECT * FROM n.\t")
    then("evil")
    shell.sendintr()
    # The next prompt begins with this; the last one may be drawn again before, and what is typed
    # between two prompts is not the shell's.
    then("\x1b[?2004h")
    then("icesql>")
    shell.sendeof()
    shell.expect(pexpect.EOF)
    seen.append(shell.before)
    text = OWN.sub("", "".join(seen))
    assert not RAW.search(text), RAW.findall(text)
    assert "rel\x1b" not in "".join(seen)  # and not among the sequences of the shell itself


# ---------------------------------------------------------------------- other doors


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_errors_plans_and_notes_of_the_connection_hold_none(place: Path, reader: str) -> None:
    import icesql

    failed = 0
    with icesql.connect(warehouse=place, settings={"local_reader": reader}) as connection:
        for statement in (*STATEMENTS, *ENGINE):
            cursor = connection.cursor()
            try:
                cursor.execute(statement)
                cursor.fetchall()
            except icesql.Error as error:
                failed, told = failed + 1, str(error)
            else:
                told = ""
            assert not RAW.search(told), (statement, told)
            assert not RAW.search("\n".join(cursor.notes) + cursor.message), statement
        for form in ("", "ANALYZE ", "(FORMAT tree) ", "(ENGINE) ", "(FORMAT html) "):
            sql = f'SELECT "c{EVIL}" FROM n."t{EVIL}" WHERE "c{EVIL}" = \'{EVIL}\''
            rows = fetched(connection, f"EXPLAIN {form}{sql}")
            assert not RAW.search("\n".join(str(row[0]) for row in rows)), form
    assert failed > 12


def test_tools_of_agents_are_told_none(place: Path) -> None:
    import icesql
    from icesql.mcp.tools import Tools, as_error

    table = f'n."t{EVIL}"'
    sql = f'SELECT "c{EVIL}" FROM {table} WHERE "c{EVIL}" = \'{EVIL}\''
    with icesql.connect(warehouse=place, service=True) as connection:
        tools = Tools(connection)
        for answer in (
            tools.explain_query(sql),
            tools.estimate_query(sql),
            tools.query(sql),
            tools.list_tables(),
            tools.describe_table(f"n.t{EVIL}"),
        ):
            assert not RAW.search(answer.text), answer.text
        for refused in (*ENGINE, f"SELECT {EVIL}", f'SELECT "{EVIL}" FROM {table}'):
            for ask in (tools.explain_query, tools.estimate_query, tools.query):
                try:
                    told = ask(refused).text
                except icesql.Error as error:
                    told = as_error(str(error), "")
                assert not RAW.search(told), (refused, told)


def test_documents_of_json_escape_what_drives_a_terminal(tmp_path: Path) -> None:
    import json

    import icesql
    from icesql.errors import json_document

    name = "a\x9b31mb\u202ec\u2028d é　😀"
    text = json_document({name: [name]}, indent=2)
    assert json.loads(text) == {name: [name]}
    with icesql.connect(warehouse=tmp_path) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute(f'CREATE TABLE s.t ("{name}" INT)')
        opened.execute("INSERT INTO s.t VALUES (1)")
        explain = f'EXPLAIN (FORMAT json) SELECT * FROM s.t WHERE "{name}" = 1'
        text += fetched(opened, explain)[0][0]
    assert not any(each in text for each in "\x9b\u202e\u2028")
    assert "é　😀" in text
