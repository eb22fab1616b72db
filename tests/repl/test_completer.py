from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import icesql
from icesql.errors import CatalogError
from icesql.repl.completion_names import ConnectionSource, Known, Names
from icesql.repl.prompt import SqlCompleter, inputs, is_complete, runs_by_empty_line
from icesql.repl.suggestions import spelled, suggestions, word_at
from tests.rows import rows_of
from tests.waits import wait_until

ROOT = Path(__file__).parents[2]
COLUMNS = {"sales.orders": ["id", "region", "Total Amount"], "sales.customers": ["id", "name"]}


class Source:
    asked = 0

    def tables(self, catalog: str | None = None) -> list[str]:
        self.asked += 1
        if catalog is not None:
            return [f"{catalog}.old.orders", f"{catalog}.old.events"]
        return list(COLUMNS)

    def catalogs(self) -> list[str]:
        return ["here", "archive"]

    def columns(self, table: str) -> list[str]:
        return COLUMNS.get(table, [])

    def versions(self, table: str) -> list[Known]:
        found = [Known("'audit'", "branch"), Known("'v1'", "tag"), Known("7012", "2 h ago, append")]
        return found if table in COLUMNS else []

    def times(self, table: str) -> list[Known]:
        return [Known("'2026-01-02 03:04:05'", "2 d ago")] if table in COLUMNS else []

    def values(self, table: str, column: str) -> list[Known]:
        return [Known("'eu'"), Known("'us'")] if column == "region" else []

    def functions(self) -> list[Known]:
        return [Known("regexp_matches"), Known("round")]

    def procedures(self) -> list[Known]:
        about = "(table string, [branch string = main]) · brings small files together"
        return [Known("system.rewrite_data_files", about)]

    def namespaces(self) -> list[str]:
        return ["sales", "web"]

    def paths(self, beginning: str) -> list[str]:
        return [each for each in ("reports/", "reports/q 1.sql") if each.startswith(beginning)]

    def settings(self) -> list[Known]:
        return [Known("engine", "where queries run"), Known("prune")]


class Broken(Source):
    def refuse(self, *_: object) -> list[str]:
        raise CatalogError("no answer")

    tables = catalogs = columns = refuse


def texts(text: str, kind: str | None = None, names: Names | None = None) -> list[str]:
    found = suggestions(text, names or Names(Source()))
    return [each.text for each in found if kind in (None, each.kind)]


@rows_of(__file__, "completed.tsv", "text", "kind", "offered")
def test_what_is_offered(text: str, kind: str, offered: str) -> None:
    found = suggestions(text, Names(Source()))
    wanted = {"any": lambda own: True, "no column": lambda own: own != "column"}
    is_wanted = wanted.get(kind, lambda own: own == kind)
    assert " ¦ ".join(each.text for each in found if is_wanted(each.kind)) == offered


def test_keywords_are_among_what_is_offered() -> None:
    assert "KEYED" in texts("BLAME sales.orders ", "keyword")
    assert "SELECT" in texts("SELECT 1; SEL")
    offered = texts("SELECT id FROM sales.orders W", "keyword")
    assert "WHERE" in offered
    assert all(word.startswith("W") for word in offered)


def test_partition_values_come_before_the_columns() -> None:
    assert texts("SELECT * FROM sales.orders WHERE region = ")[:3] == ["'eu'", "'us'", "id"]


def test_the_text_behind_the_cursor_is_read() -> None:
    found = suggestions("SELECT re", Names(Source()), " FROM sales.orders; SELECT 1")
    assert [each.text for each in found if each.kind == "column"] == ["region"]
    assert [each.text for each in found if each.kind == "function"] == ["regexp_matches("]


def test_a_key_is_quick_with_many_tables() -> None:
    class Many(Source):
        def tables(self, catalog: str | None = None) -> list[str]:
            return [f"ns{i % 50}.table_{i}" for i in range(5000)]

    names = Names(Many())
    suggestions("SELECT * FROM table_4", names)
    spent = []
    for _ in range(9):
        began = time.process_time()
        assert suggestions("SELECT * FROM table_49", names)
        spent.append(time.process_time() - began)
    assert sorted(spent)[4] < 0.1  # 5 ms on an idle machine


def test_no_cut_of_any_statement_breaks_completion() -> None:
    completer, found = SqlCompleter(Names(Source())), list[str]()
    for name in ("accepted.sql", "rejected.sql"):
        found += (ROOT / "grammar" / name).read_text(encoding="utf-8").split(";")
    for path in sorted((ROOT / "tests" / "slt").rglob("*.slt")):
        found += re.split(
            r"^(?:query|statement|----).*", path.read_text("utf-8"), flags=re.MULTILINE
        )
    for text in random.Random(7).sample([each.strip() for each in found], 20):
        for length in range(len(text) + 1):
            before = text[:length]
            for each in completer.get_completions(Document(text, length), CompleteEvent()):
                assert each.text.isprintable(), each
                assert -each.start_position <= length
            assert before.endswith(word_at(before))
            is_complete(before)
            is_complete(before, dialect="spark")
            runs_by_empty_line(before + "\n")
            inputs(before)


def test_the_word_at_the_cursor_is_on_its_line() -> None:
    names = Names(Source())
    assert word_at("SELECT id\n") == ""
    assert "FROM" in [each.text for each in suggestions("SELECT id\n", names)]
    assert word_at("SELECT id\nFR") == "FR"


def test_names_are_asked_for_once_until_forgotten() -> None:
    source = Source()
    names = Names(source)
    for _ in range(3):
        suggestions("SELECT * FROM ", names)
    assert source.asked == 1
    names.forget()
    suggestions("SELECT * FROM ", names)
    assert source.asked == 2


def test_a_catalog_that_fails_offers_no_names() -> None:
    assert suggestions("SELECT * FROM ", Names(Broken())) == []
    assert suggestions("SELECT * FROM t WHERE ", Names(Broken())) != []


def test_a_completion_replaces_the_word_at_the_cursor() -> None:
    completer = SqlCompleter(Names(Source()))
    document = Document("SELECT * FROM sales.or")
    (completion,) = completer.get_completions(document, CompleteEvent())
    assert (completion.text, completion.start_position) == ("sales.orders", -len("sales.or"))


def test_names_are_quoted_where_they_must_be() -> None:
    assert [spelled(name) for name in ("id", "Id", "a b", 'a"b', "1a")] == [
        "id",
        '"Id"',
        '"a b"',
        '"a""b"',
        '"1a"',
    ]


def test_a_catalog_that_does_not_answer_is_not_waited_for() -> None:
    class Slow(Source):
        def __init__(self) -> None:
            self.may_answer = threading.Event()

        def tables(self, catalog: str | None = None) -> list[str]:
            if catalog is not None:
                self.may_answer.wait(30)
            return super().tables(catalog)

    source = Slow()
    names = Names(source, patience=0.05)
    began = time.monotonic()
    assert suggestions("FROM archive.", names) == []
    assert suggestions("FROM sales.o", names) != []
    assert time.monotonic() - began < 25
    source.may_answer.set()
    found = wait_until(lambda: suggestions("FROM archive.", names))
    assert [each.text for each in found] == ["archive.old.orders", "archive.old.events"]
    assert source.asked == 2


class Late(Source):
    """Its tables come after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def tables(self, catalog: str | None = None) -> list[str]:
        time.sleep(self.seconds)
        return super().tables(catalog)


def completed_late(text: str, seconds: float) -> list[str]:
    async def found() -> list[str]:
        completer = SqlCompleter(Names(Late(seconds), patience=0.05))
        completions = completer.get_completions_async(Document(text), CompleteEvent())
        return [each.text async for each in completions]

    return asyncio.run(found())


def test_an_answer_that_comes_just_too_late_is_shown() -> None:
    assert completed_late("SELECT * FROM sales.o", 0.07) == ["sales.orders"]


def test_what_comes_later_joins_what_is_shown() -> None:
    shown = completed_late("SELECT * FROM ", 0.2)
    # The catalogs answer at once, the tables after the first look.
    assert {"archive.", "sales.orders"} <= set(shown)
    assert len(shown) == len(set(shown))


@rows_of(__file__, "offered_functions.tsv", "dialect", "name", "about")
def test_functions_are_offered_with_their_arguments(dialect: str, name: str, about: str) -> None:
    with icesql.connect(dialect=dialect or None) as connection:
        functions = ConnectionSource(connection, dialect).functions()
    found = {each.text: each.about for each in functions}
    assert found.get(name) == about
    # Few are known by their names alone.
    assert dialect or sum(not each for each in found.values()) < len(found) / 10


def test_macros_are_offered_with_their_arguments() -> None:
    with icesql.connect() as connection:
        connection.execute("CREATE MACRO plus(a, b := 2) AS a + b")
        found = {each.text: each.about for each in ConnectionSource(connection).functions()}
        assert found["plus"] == "(a, b) · macro"


def test_procedures_and_namespaces_are_those_of_the_connection(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA ns")
        source = ConnectionSource(connection)
        assert source.namespaces() == ["ns"]
        found = {each.text: each.about for each in source.procedures()}
        assert found["system.fast_forward"].startswith("(table string, branch string, to string)")
        offered = texts("CALL system.expire_snapshots(", names=Names(source))
        assert {"table => ", "older_than => ", "retain_last => "} <= set(offered)


def test_files_are_offered_but_by_a_restricted_shell(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "q1.sql").touch()
    (tmp_path / "reports" / ".hidden").touch()
    with icesql.connect() as connection:
        for may in (True, False):
            source = ConnectionSource(connection, files=may)
            found = [f"{tmp_path}/reports/"] if may else []
            assert source.paths(f"{tmp_path}/rep") == found
            inside = [f"{tmp_path}/reports/q1.sql"] if may else []
            assert source.paths(f"{tmp_path}/reports/") == inside
            assert source.paths(f"{tmp_path}/nothing/x") == []


def test_a_connection_offers_values_without_opening_a_data_file(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path, read_only=False) as connection:
        connection.execute("CREATE SCHEMA ns")
        columns = 'id BIGINT, region VARCHAR, "Odd day" DATE'
        connection.execute(f'CREATE TABLE ns.t ({columns}) PARTITIONED BY (region, "Odd day")')
        connection.execute(
            "INSERT INTO ns.t VALUES (1, 'it''s', DATE '2026-01-02'), (2, 'eu', NULL)"
        )
        for path in tmp_path.rglob("*.parquet"):
            path.unlink()
        source = ConnectionSource(connection)
        assert [each.text for each in source.values("ns.t", "region")] == ["'eu'", "'it''s'"]
        assert [each.text for each in source.values("ns.t", '"Odd day"')] == ["'2026-01-02'"]
        assert source.values("ns.t", "id") == []
        ref, snapshot = source.versions("ns.t")
        assert (ref.text, ref.about) == ("'main'", "branch")
        assert snapshot.about.endswith("append +2")
        assert len(source.times("ns.t")) == 1
