"""The command of a plain ``pip install .`` runs a statement of each kind, and what it advises."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

from tests.catalog.rest_server import Server
from tests.processes import ran

# One process: each statement in a fork that has imported nothing but the command's own start.
IN_FORKS = """\
import json, os, sys
from icesql.cli import main
from icesql.postponed import postpone_imports
postpone_imports()
for arguments in json.load(sys.stdin):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print("exit", os.waitstatus_to_exitcode(status), "of", arguments[-1], flush=True)
"""

MADE = Path(__file__).with_name("made.sql").read_text(encoding="utf-8")
KINDS = Path(__file__).with_name("kinds.sql").read_text(encoding="utf-8").splitlines()


def run(plain: Path, place: Path, statements: list[list[str]]) -> str:
    done = ran(
        [str(plain), "-c", IN_FORKS],
        input=json.dumps(statements),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def warehouse(plain: Path, folder: Path) -> list[str]:
    (folder / "wh").mkdir()
    (folder / "rows.csv").write_text("a,b,ts\n900,p1,2026-01-02 03:04:05\n")
    options = ["--warehouse", "wh", "--files", ".", "--format", "csv"]
    told = run(plain, folder, [[*options, "-c", MADE]])
    assert "exit 0 of" in told, told
    return options


def failures(told: str) -> list[str]:
    lines = told.splitlines()
    return [
        "\n".join(lines[max(number - 3, 0) : number + 1])
        for number, line in enumerate(lines)
        if line.startswith("exit ") and not line.startswith("exit 0 ")
    ]


def test_nothing_but_what_the_project_asks_for_is_there(plain: Path, tmp_path: Path) -> None:
    program = (
        "import importlib.util as u, icesql, duckdb, pyarrow\n"
        "names = ('pandas', 'polars', 'pyiceberg', 'pytest', 'sqlalchemy', 'pyspark', 'mcp', 'boto3')\n"
        "print([each for each in names if u.find_spec(each)], icesql.__file__)"
    )
    done = ran([str(plain), "-c", program], cwd=tmp_path)
    assert done.stdout.startswith("[] "), done.stdout + done.stderr
    assert str(plain.parents[1]) in done.stdout


def test_a_statement_of_each_kind_runs(plain: Path, tmp_path: Path) -> None:
    options = warehouse(plain, tmp_path)
    copying = ["--copy-to", "."]
    told = run(plain, tmp_path, [[*options, *copying, "-c", each] for each in KINDS])
    assert failures(told) == []
    assert told.count("exit 0 of") == len(KINDS)


def test_what_the_doctor_advises_runs(plain: Path, tmp_path: Path) -> None:
    options = warehouse(plain, tmp_path)
    count = "SELECT count(*) FROM m.t"
    asked = [*options[:-1], "json", "doctor", "m.t"]
    told = run(plain, tmp_path, [asked, [*options, "-c", count]])
    findings = json.loads(told[told.index("{") : told.rindex("}") + 1])["findings"]
    advised = [each["statement"] for each in findings if each["statement"]]
    assert any("rewrite_data_files" in each for each in advised)
    told += run(plain, tmp_path, [[*options, "-c", each] for each in [*advised, count]])
    assert failures(told) == []
    assert told.split("count_star()\n")[1].split()[0] == told.split("count_star()\n")[2].split()[0]


CONFIGURED = """\
catalog:
  lite:
    type: sql
    uri: sqlite:///{place}/new.db
    warehouse: {place}/files
  server:
    type: rest
    uri: {uri}
  proven:
    type: rest
    uri: {uri}
    auth: {{type: custom, impl: some.Manager}}
  lake:
    type: glue
  meta:
    type: hive
    uri: thrift://localhost:9083
  memory:
    type: in-memory
"""


def test_pyiceberg_comes_with_the_kinds_that_need_it(plain: Path, tmp_path: Path) -> None:
    with closing(Server()) as server:
        see_which_catalogs_open(plain, tmp_path, server.uri)


def see_which_catalogs_open(plain: Path, tmp_path: Path, uri: str) -> None:
    text = CONFIGURED.format(place=tmp_path, uri=uri)
    (tmp_path / ".pyiceberg.yaml").write_text(text)
    made = "CREATE SCHEMA m; CREATE TABLE m.t AS SELECT 7 AS a; SELECT a FROM m.t"
    works = [
        ["--uri", f"sqlite:///{tmp_path}/new.db", "--warehouse", "files", "-c", made],
        ["--catalog", "lite", "-c", "SELECT a FROM m.t"],
        ["--catalog", "server", "-c", "SHOW SCHEMAS"],
        ["demo"],
    ]
    told = run(plain, tmp_path, works)
    assert failures(told) == []
    missing = {"lake": "glue", "meta": "hive", "memory": "pyiceberg", "proven": "pyiceberg"}
    for catalog, extra in missing.items():
        told = run(plain, tmp_path, [["--catalog", catalog, "-c", "SHOW SCHEMAS"]])
        assert "exit 1 of" in told, told
        assert f"pip install '.[{extra}]'" in told, told
