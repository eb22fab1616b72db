"""The doctor's round over all tables of a catalog: the worst first, and no table ends it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.cli import main
from icesql.context import Progress
from icesql.errors import CatalogError, ProgrammingError, QueryCancelledError
from icesql.health import diagnose as diagnose_module
from icesql.health.finding import CatalogDiagnosis

EVIL = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Any]:
    """A healthy table, a sick one in a nested namespace, and one whose metadata is no JSON."""
    place = tmp_path / "w"
    place.mkdir()
    with icesql.connect(warehouse=str(place), read_only=False) as connection:
        for statement in (
            "CREATE SCHEMA a", "CREATE SCHEMA a.b", "CREATE SCHEMA broken",
            "CREATE TABLE a.healthy (id BIGINT)", "CREATE TABLE a.b.sick (id BIGINT)",
            "CREATE TABLE broken.t (id BIGINT)",
        ):  # fmt: skip
            connection.execute(statement)
        for number in range(6):
            connection.execute(f"INSERT INTO a.b.sick VALUES ({number})")
        for each in (place / "broken" / "t" / "metadata").glob("*.metadata.json"):
            each.write_text("{")
        yield connection


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["doctor", *words])
    return code, capsys.readouterr().out


def place(connection: Any) -> str:
    return str(connection.catalog.folder)


class Tags(HTMLParser):
    """The tags of a page in their order; each closes, unless it is void."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.all: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.all.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_all_tables_the_worst_first(lake: Any) -> None:
    found = lake.doctor()
    assert [each.table for each in found.tables] == ["broken.t", "a.b.sick", "a.healthy"]
    broken, sick, healthy = found.tables
    assert broken.error
    assert not broken.findings
    assert [each.name for each in sick.findings] == ["small files"]
    assert sick.gain.files == 5
    assert sick.gain.requests >= 5
    assert not healthy.findings
    assert found.errors == 1
    assert found.gain == sick.gain


def test_a_table_alone_says_the_same(lake: Any) -> None:
    alone, among = lake.doctor("a.b.sick").to_dict(), lake.doctor().tables[1].to_dict()
    for each in (alone, among, *alone["findings"], *among["findings"]):
        del each["gain"]["planning_seconds"]
    assert alone == among


def test_forms(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, "--all", "--warehouse", place(lake), "--format", "json")[1])
    assert [each["table"] for each in told["tables"]] == ["broken.t", "a.b.sick", "a.healthy"]
    assert told["tables"][0]["error"]
    assert told["gain"]["files"] == 5
    assert told["errors"] == 1
    _, text = run(capsys, "--all", "--warehouse", place(lake))
    assert "3 tables, 1 with findings, 1 with errors" in text
    assert "a.b.sick (1 high): small files" in text
    assert "1 table: nothing found" in text
    _, page = run(capsys, "--all", "--warehouse", place(lake), "--format", "html")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert "a.b.sick" in tags.text


def test_names_and_messages_are_strangers(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.execute('CREATE TABLE a."<script>x&" (id BIGINT)')

    def fails(*given: Any) -> Any:
        raise CatalogError(f"of {EVIL}\n2. a.healthy (1 high): forged")

    monkeypatch.setattr("icesql.dbapi.maintenance.diagnose", fails)
    found = lake.doctor()
    for html in (found.page(), found._repr_html_()):
        assert "<script" not in html
        assert "\x1b" not in html
    assert "\x1b" not in str(found)
    assert not [each for each in str(found).splitlines() if each.startswith("2. a.healthy (")]


def test_exit_codes(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--all", "--warehouse", place(lake))
    assert run(capsys, *where)[0] == 1  # a table could not be examined
    lake.execute("CREATE SCHEMA fine")
    for each in (Path(place(lake)) / "broken" / "t").rglob("*.metadata.json"):
        each.unlink()
    (Path(place(lake)) / "broken" / "t" / "metadata").rename(Path(place(lake)) / "gone")
    assert run(capsys, *where)[0] == 0
    assert run(capsys, *where, "--fail-on", "high")[0] == 1
    lake.execute("CALL system.rewrite_data_files('a.b.sick')")
    assert run(capsys, *where, "--fail-on", "low")[0] == 0


@pytest.mark.parametrize("words", [("--all", "t"), ("--fail-on", "high"), ("--all", "--http", "1")])
def test_words_that_do_not_fit(words: tuple[str, ...]) -> None:
    assert main(["doctor", *words]) == 2


def test_a_bug_of_one_table_is_a_line(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = diagnose_module.diagnose

    def fails(parts: Any, *others: Any) -> Any:
        if parts[-1] == "sick":
            raise ZeroDivisionError("of nothing")
        return real(parts, *others)

    monkeypatch.setattr("icesql.dbapi.maintenance.diagnose", fails)
    found = {each.table: each for each in lake.doctor().tables}
    assert "ZeroDivisionError" in found["a.b.sick"].error
    assert not found["a.healthy"].error


def test_a_table_that_is_dropped_meanwhile_is_left_out(lake: Any) -> None:
    def drop(progress: Progress) -> None:
        if progress.stage == "tables" and progress.done == 1:
            lake.progress = None
            lake.execute("DROP TABLE a.healthy PURGE")

    lake.progress = drop
    assert [each.table for each in lake.doctor().tables] == ["broken.t", "a.b.sick"]


def test_cancel_ends_it_and_a_time_limit_only_its_table(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = diagnose_module.diagnose

    def slow(parts: Any, ask: Any, table: Any, query: Any) -> Any:
        if parts[-1] == "sick":
            query.deadline = 0.0
            query.check()
        return real(parts, ask, table, query)

    monkeypatch.setattr("icesql.dbapi.maintenance.diagnose", slow)
    lake.execute("SET query_timeout = 100")
    found = {each.table: each for each in lake.doctor().tables}
    assert "time limit" in found["a.b.sick"].error
    assert not found["a.healthy"].error
    steps: list[Progress] = []

    def cancel(progress: Progress) -> None:
        steps.append(progress)
        thread = threading.Thread(target=lake.cancel)
        thread.start()
        thread.join()

    lake.progress = cancel
    with pytest.raises(QueryCancelledError):
        lake.doctor()
    assert len(steps) == 1
    lake.progress = None
    assert isinstance(lake.doctor(), CatalogDiagnosis)  # the next one is none of it


def test_a_namespace_that_is_refused_is_a_line(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lake.catalog
    real = catalog.tables

    def tables(namespace: Any = None) -> Any:
        if namespace in (None, ("a", "b")):
            raise CatalogError("403 Forbidden")
        return real(namespace)

    monkeypatch.setattr(type(catalog), "tables", lambda self, *given: tables(*given))
    found = {each.table: each for each in lake.doctor().tables}
    assert "403" in found['a.b."*"'].error
    assert not found["a.healthy"].error


def test_names_after_use(lake: Any) -> None:
    """``USE`` leads to another table of a short name, and the round is over the right one."""
    lake.execute("CREATE SCHEMA a.a")
    lake.execute("CREATE TABLE a.a.healthy (id BIGINT)")
    for number in range(6):
        lake.execute(f"INSERT INTO a.a.healthy VALUES ({number})")
    lake.execute("USE a")
    found = lake.doctor()
    name = lake.catalog.name
    sick = {each.table for each in found.tables if each.findings}
    assert sick == {f"{name}.a.b.sick", f"{name}.a.a.healthy"}
    assert all(each.table.startswith(f"{name}.") for each in found.tables)


def test_without_a_catalog() -> None:
    with icesql.connect() as connection:
        with pytest.raises(ProgrammingError):
            connection.doctor()
        with pytest.raises(ProgrammingError, match="no catalog"):
            connection.doctor(catalog="unknown")
        with pytest.raises(ProgrammingError, match="not both"):
            connection.doctor("t", catalog="c")
