"""Every example of the README and the manual runs, on the warehouse that ``icesql demo`` builds.

Blocks: ``console`` holds commands after ``$`` or statements after ``icesql>`` with what they print,
``pycon`` a Python session, ``python`` a script, ``sql`` statements (``sql spark`` in that dialect),
``yaml`` the PyIceberg configuration beside the warehouse, ``yaml dbt`` and ``jinja`` a target and a
model of dbt, ``yml`` catalogs that are not there. In output, ``…`` matches anything; ``812…`` in a
command is the snapshot that was printed last.
"""

from __future__ import annotations

import doctest
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import demo
from tests.processes import ran

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MANUAL = ROOT / "icesql" / "manual"
CHAPTERS = sorted(MANUAL.rglob("*.md"))
DOCUMENTS = [README, *CHAPTERS]
PYTHON_FILE = re.compile(r"python (tests/\S+\.py)")
BENCHMARK = re.compile(r"python tests/benchmarks (\w+)")
FENCED = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(found[2], found[3], id=f"{document.stem}-{_line(text, found.start()) + 1}")
        for document, text in ((each, text_of(each)) for each in DOCUMENTS)
        for found in FENCED.finditer(text)
        if found[1] == language
    ]


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's warehouse and the manual's `.pyiceberg.yaml`."""
    place = tmp_path_factory.mktemp("documents")
    demo.build(place / "icesql-demo")
    configuration = "".join(text for note, text in map(_values, blocks("yaml")) if note is None)
    (place / ".pyiceberg.yaml").write_text(configuration, encoding="utf-8")
    return place


def _values(block: Any) -> tuple[str | None, str]:
    note, text = block.values
    return note, text


def assert_printed(expected: str, printed: str) -> None:
    """Equal up to ``…`` and the spaces at the ends of lines."""
    pattern = "".join(
        ".*?" if part == "…" else re.escape(part) for part in re.split("(…)", expected.strip())
    )
    stripped = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, stripped, re.DOTALL), (
        f"it says:\n{expected}\nit printed:\n{printed}"
    )


@pytest.fixture(scope="module")
def commands(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the command ``icesql`` of an environment that has ``pip install .`` alone."""
    place = tmp_path_factory.mktemp("bin")
    command = place / "icesql"
    command.write_text(f'#!/bin/sh\nexec {plain} -m icesql "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return str(place)


@pytest.mark.parametrize(("note", "text"), blocks("console"))
def test_console(
    note: str | None, text: str, folder: Path, commands: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(folder)
    steps = re.split(r"^(\$|icesql\*?>|icesql @ [^>]*>) ", text, flags=re.MULTILINE)[1:]
    shell, printed, snapshot = None, "", "812…"
    for prompt, step in zip(steps[::2], steps[1::2], strict=True):
        snapshot = ([snapshot, *re.findall(r"\b\d{16,19}\b", printed)])[-1]
        if prompt == "$":
            command, _, expected = step.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = command[:-1] + more
            printed = _printed_by(command.replace("812…", snapshot), folder, commands)
        else:
            shell = shell or _Shell(folder)
            statement, expected = _statement(step)
            printed = shell.say(statement.replace("812…", snapshot))
        assert_printed(expected, printed)
    if shell:
        shell.close()


def _printed_by(command: str, folder: Path, commands: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = ran(
        ["sh", "-c", command],
        cwd=folder,
        env={**environment, "PATH": os.pathsep.join([commands, os.environ["PATH"]])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


class _Shell:
    def __init__(self, folder: Path) -> None:
        from prompt_toolkit.input import DummyInput
        from prompt_toolkit.output import DummyOutput

        from icesql.repl.shell import Shell

        self._connection = icesql.connect(warehouse=folder / "icesql-demo")
        self._out = io.StringIO()
        options = {"input": DummyInput(), "output": DummyOutput()}
        self._shell = Shell(self._connection, out=self._out, session_options=options)

    def say(self, statement: str) -> str:
        self._out.seek(0)
        self._out.truncate()
        self._shell.handle(statement)
        return self._out.getvalue()

    def close(self) -> None:
        self._connection.close()


def _statement(step: str) -> tuple[str, str]:
    """A statement with its ``...>`` lines, and what follows it."""
    first, _, rest = step.partition("\n")
    lines = [first]
    while rest.lstrip().startswith("...>"):
        line, _, rest = rest.partition("\n")
        lines.append(line.lstrip().removeprefix("...>"))
    return "\n".join(lines), rest


@pytest.mark.parametrize(("dialect", "text"), blocks("sql"))
def test_sql(dialect: str | None, text: str, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    with icesql.connect(warehouse=folder / "icesql-demo", dialect=dialect) as connection:
        count = 0
        for cursor in connection.execute_script(text):
            count += 1
            if cursor.description:
                cursor.fetchall()
        assert count


@pytest.mark.parametrize(("note", "text"), blocks("python"))
def test_python(note: str | None, text: str, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    if note == "spark":
        # In a process of its own: a session of Spark outlives its test.
        if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
            pytest.skip("needs Java and pip install '.[spark]'")
        done = ran(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        return
    exec(compile(text, "example", "exec"), {"__name__": "example"})


@pytest.mark.parametrize(("note", "text"), blocks("pycon"))
def test_python_session(note: str | None, text: str, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    test = doctest.DocTestParser().get_doctest(text, {}, "example", None, 0)
    out = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, out=out.write).failed == 0, out.getvalue()


def test_the_model_of_dbt_builds_twice(folder: Path, tmp_path: Path) -> None:
    """Where dbt is not installed, the SQL of its query alone runs."""
    (target,) = (text for note, text in map(_values, blocks("yaml")) if note == "dbt")
    ((_, model),) = map(_values, blocks("jinja"))
    warehouse = tmp_path / "icesql-demo"
    shutil.copytree(folder / "icesql-demo", warehouse)
    if importlib.util.find_spec("dbt") is None or importlib.util.find_spec("dbt.cli") is None:
        source = "{{ source('demo', 'trips').at(version='two-weeks') }}"
        assert source in model
        query = model.partition("}}\n")[2].replace(source, "demo.trips VERSION AS OF 'two-weeks'")
        with icesql.connect(warehouse=warehouse) as connection:
            assert len(connection.execute(query).fetchall()) > 1
        return
    from tests.dbt.suite.run import with_adapter

    project = {
        "profiles.yml": target,
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "models/cities.sql": model,
        "models/sources.yml": "sources: [{name: demo, tables: [{name: trips}]}]\n",
    }
    for name, text in project.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for _ in range(2):
        done = ran(
            [sys.executable, "-m", "dbt.cli.main", "build"],
            cwd=tmp_path,
            env=with_adapter(tmp_path),
            timeout=600,
        )
        assert "PASS=1 WARN=0 ERROR=0" in done.stdout, done.stdout + done.stderr


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {found[1] for each in DOCUMENTS for found in FENCED.finditer(text_of(each))}
    known = "console pycon python sql sh mermaid toml yaml yml jinja json text"
    assert kinds <= {*known.split()}


@pytest.mark.parametrize(("note", "text"), blocks("yml"))
def test_a_catalog_that_is_shown_is_understood(note: str | None, text: str) -> None:
    import yaml

    from icesql.catalog.configuration import kind_of

    for properties in yaml.safe_load(text)["catalog"].values():
        assert kind_of(properties) == properties["type"]
        assert all(isinstance(value, str) for value in properties.values())


# Blocks that need a container tool or a cluster, by their first words.
BY_HAND = ("pip install hatchling", "python -m venv packed")
# Those that need more than this test has, and what runs them.
RUN_ELSEWHERE = {
    "pip install . && icesql demo": "tests/house/test_plain_install.py",
    "pip install '.[test,spark]' && pytest": ".ci/run",
    "python tests/benchmarks all": "tests/benchmarks/__main__.py",
    "python tests/campaigns board": "tests/board/test_board.py",
    "icesql copy sales.orders TO s3://": "tests/stores/test_catalog_store.py",
}


@pytest.mark.parametrize(("note", "text"), blocks("sh"))
def test_commands(note: str | None, text: str, folder: Path, tmp_path: Path) -> None:
    if text.startswith(BY_HAND):
        return
    for begin, file in RUN_ELSEWHERE.items():
        if text.startswith(begin):
            assert (ROOT / file).is_file()
            return
    command = tmp_path / "icesql"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m icesql "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    completions = tmp_path / ".local/share/bash-completion/completions"
    completions.mkdir(parents=True)
    done = ran(
        ["sh", "-ec", text],
        cwd=folder,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]]),
        },
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for file in completions.iterdir():
        assert subprocess.run(["bash", "-n", file], timeout=600, check=False).returncode == 0


@pytest.mark.parametrize(("note", "text"), blocks("toml"))
def test_a_configuration_that_is_shown_is_read(note: str | None, text: str, tmp_path: Path) -> None:
    from icesql.health.policy import read_policy
    from icesql.repl.preferences import read_config

    file = tmp_path / "file.toml"
    file.write_text(text, encoding="utf-8")
    if "[[tables]]" in text:
        assert read_policy(str(file)).rules
    else:
        assert read_config({"ICESQL_CONFIG": str(file)}).connect["warehouse"]


@pytest.mark.parametrize(("note", "text"), blocks("json"))
def test_a_server_that_is_configured_starts(note: str | None, text: str, folder: Path) -> None:
    for server in json.loads(text)["mcpServers"].values():
        arguments = [each.replace("/data/warehouse", "icesql-demo") for each in server["args"]]
        assert server["command"] == "icesql"
        done = ran([sys.executable, "-m", "icesql", *arguments], cwd=folder, timeout=600)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "word",
    ["dbeaver", "odbc", "jdbc", "excel", "metabase", "tableau", "power bi", "airflow", "dagster",
     "ibis", "streamlit", "gdpr", "kafka", "opentelemetry", "cron"],
)  # fmt: skip
def test_what_people_search_for_leads_somewhere(word: str) -> None:
    from icesql.manual.lookup import search

    found = search(word)
    assert found
    assert found[0].topic in ("programs", "recipes")


@pytest.mark.spark
@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs Java and pip install '.[spark]'",
)
def test_changes_are_refused_on_spark_in_the_words_of_the_manual(folder: Path) -> None:
    # The master of all tests: the process may go on with them.
    with icesql.connect(warehouse=folder / "icesql-demo", master="local[2]") as connection:
        connection.execute("SET engine = 'spark'")
        for sql in (
            "SELECT * FROM demo.trips CHANGES FROM VERSION 'two-weeks'",
            "DIFF demo.trips BETWEEN 'two-weeks' AND 'main'",
            "BLAME demo.trips KEYED BY (id) WHERE id = 1",
        ):
            with pytest.raises(icesql.UnsupportedSqlError) as caught:
                connection.execute(sql).fetchall()
            assert "not supported: CHANGES on Spark" in str(caught.value)
            assert "SET engine = 'local'" in str(caught.value)
    assert "not supported: CHANGES on Spark" in text_of(MANUAL / "spark.md")
    assert "CHANGES on Spark" in text_of(MANUAL / "changes.md")


def test_every_setting_is_described() -> None:
    from icesql.config import Settings

    text = text_of(MANUAL / "settings.md")
    assert [name for name in Settings.__struct_fields__ if f"`{name}`" not in text] == []


def test_the_readme_is_a_page_and_the_manual_small() -> None:
    assert len(text_of(README).splitlines()) <= 200
    assert sum(each.stat().st_size for each in MANUAL.rglob("*.*")) <= 1_000_000


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: each.stem)
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", text_of(document))):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        place = (document.parent / file).resolve() if file else document
        if not place.is_file() or (anchor and anchor not in _anchors(text_of(place))):
            broken.append(target)
    assert broken == []


def _anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_chapter_is_in_the_index_and_opens_with_a_title_and_a_sentence() -> None:
    listed = set(re.findall(r"^- \[[^\]]+\]\(([\w/-]+\.md)\)", text_of(MANUAL / "index.md"), re.M))
    there = {each.relative_to(MANUAL).as_posix() for each in CHAPTERS} - {"index.md"}
    assert listed == there
    for each in there:
        assert re.match(r"# \S.*\n\n[^\n#|`-]", text_of(MANUAL / each)), each


def test_the_test_command_is_there_for_a_machine_to_read() -> None:
    lines = text_of(README).splitlines()
    assert "pip install '.[test,spark]' && pytest -n auto" in lines


def test_the_readme_has_a_question_for_each_folder() -> None:
    steps = re.search(r"\n## Inside\n(.*?)\n## ", text_of(README), re.DOTALL)
    assert steps
    named = re.findall(r"`(\w+)`", re.sub(r"\A.*?:\n", "", steps[1], flags=re.DOTALL))
    there = [each.parent.name for each in (ROOT / "icesql").glob("*/__init__.py")]
    assert sorted(named) == sorted(there)
    assert steps[1].count("\n") <= 15


def test_the_picture_has_every_import_between_its_boxes_and_no_other() -> None:
    text = text_of(MANUAL / "how-it-works.md")
    picture = re.search(r"```mermaid\n(.*?)```", text, re.DOTALL)
    assert picture
    drawn: dict[str, set[str]] = {}
    for upper, lower in re.findall(r"^ +(\w+)(?:\[.*?\])? --> (\w+)", picture[1], re.MULTILINE):
        drawn.setdefault(upper, set()).add(lower)
        drawn.setdefault(lower, set())
    imports = {box: _imported_by(box) & drawn.keys() - {box} for box in drawn}
    assert {box: lower - imports[box] for box, lower in drawn.items() if lower - imports[box]} == {}
    below = {box: _reachable(box, drawn) for box in drawn}
    assert {box: found - below[box] for box, found in imports.items() if found - below[box]} == {}


def _imported_by(box: str) -> set[str]:
    place = ROOT / "icesql" / box
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    pattern = re.compile(r"^\s*(?:from|import) icesql\.(\w+)", re.MULTILINE)
    return {name for file in files for name in pattern.findall(file.read_text(encoding="utf-8"))}


def _reachable(box: str, drawn: dict[str, set[str]]) -> set[str]:
    return drawn[box].union(*(_reachable(each, drawn) for each in drawn[box]))


def test_the_scripts_that_it_names_are_there() -> None:
    named = {each for text in map(text_of, DOCUMENTS) for each in PYTHON_FILE.findall(text)}
    assert named
    assert [each for each in sorted(named) if not (ROOT / each).is_file()] == []


def test_the_benchmarks_that_it_names_are_there() -> None:
    named = {each for text in map(text_of, DOCUMENTS) for each in BENCHMARK.findall(text)}
    command = [sys.executable, ROOT / "tests" / "benchmarks"]
    listed = ran(command, check=True).stdout
    assert len(named) > 5
    assert [each for each in sorted(named) if not re.search(rf"^ +{each} ", listed, re.M)] == []
