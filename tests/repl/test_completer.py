from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import icesql
from icesql.errors import CatalogError
from icesql.repl.completing.names import Known, Names
from icesql.repl.completing.prompt import SqlCompleter
from icesql.repl.completing.source import ConnectionSource
from icesql.repl.completing.suggest import quoted, suggestions, word_at
from icesql.repl.prompt.typed import inputs, is_complete, runs_by_empty_line

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
    def tables(self, catalog: str | None = None) -> list[str]:
        raise CatalogError("no answer")

    def catalogs(self) -> list[str]:
        raise CatalogError("no answer")

    def columns(self, table: str) -> list[str]:
        raise CatalogError("no answer")


def texts(text: str, kind: str | None = None, names: Names | None = None) -> list[str]:
    found = suggestions(text, names or Names(Source()))
    return [each.text for each in found if kind in (None, each.kind)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ",
        "SELECT * FROM sales.orders o JOIN ",
        "SHOW SNAPSHOTS FROM ",
        "DESCRIBE ",
        "DIFF SUMMARY ",
        "SELECT * FROM (BLAME ",
    ],
)
def test_tables_come_where_a_table_may_stand(text: str) -> None:
    assert texts(text) == ["sales.orders", "sales.customers", "here.", "archive."]


def test_a_table_is_found_by_its_last_part() -> None:
    assert texts("SELECT * FROM sales.o") == ["sales.orders"]
    assert texts("SELECT * FROM cust") == ["sales.customers"]


def test_columns_of_the_named_tables_come_in_a_condition() -> None:
    assert texts("SELECT * FROM sales.orders WHERE ", "column") == [
        "id",
        "region",
        '"Total Amount"',
    ]
    assert texts("SELECT * FROM sales.orders WHERE re", "column") == ["region"]
    assert texts("SELECT * FROM sales.orders WHERE total", "column") == ['"Total Amount"']


def test_what_compares_a_table_knows_its_columns_and_words() -> None:
    assert texts("BLAME sales.customers WHERE ", "column") == ["id", "name"]
    assert "region" in texts("DIFF sales.orders BETWEEN 1 AND 2 WHERE reg", "column")
    assert texts("DIFF su") == ["SUMMARY"]
    assert "KEYED" in texts("BLAME sales.orders ", "keyword")
    assert texts("SELECT * FROM sales.orders CHANGES F", "keyword") == ["FROM"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM sales.orders VERSION AS OF ", ["'audit'", "'v1'", "7012"]),
        ("SELECT * FROM sales.orders FOR VERSION AS OF 'a", ["'audit'"]),
        ("SELECT * FROM sales.orders VERSION AS OF 70", ["7012"]),
        ("SELECT * FROM nothing VERSION AS OF x", []),
        ("SELECT * FROM sales.orders TIMESTAMP AS OF ", ["'2026-01-02 03:04:05'"]),
        ("SELECT * FROM sales.orders FOR SYSTEM_TIME AS OF '2026", ["'2026-01-02 03:04:05'"]),
        ("DIFF sales.orders BETWEEN 'v", ["'v1'"]),
        ("DIFF SUMMARY sales.orders BETWEEN 'v1' AND ", ["'audit'", "'v1'", "7012"]),
        ("SELECT * FROM sales.orders CHANGES FROM VERSION 'v1' TO VERSION 7", ["7012"]),
        ("SET ", ["engine", "prune"]),
        ("SELECT 1; RESET en", ["engine"]),
        ("SET engine = ", ["local", "spark", "auto"]),
        ("SET engine = s", ["spark"]),
        ("SELECT * FROM sales.orders WHERE region = '", ["'eu'", "'us'"]),
        ("SELECT * FROM sales.orders o WHERE id > 1 AND o.region = 'e", ["'eu'"]),
        ("SELECT * FROM sales.orders.snap", ["sales.orders.snapshots"]),
        ("CALL ", ["system.rewrite_data_files("]),
        ("CALL system.rew", ["system.rewrite_data_files("]),
        (
            "CALL system.rewrite_data_files(",
            ["table => ", "branch => ", "'sales.orders'", "'sales.customers'"],
        ),
        ("CALL system.rewrite_data_files('sales.orders', br", ["branch => "]),
        ("SHOW TABLES IN ", ["sales", "web"]),
        ("USE w", ["web"]),
        ("\\x ", ["on", "off", "auto"]),
        ("\\format js", ["json", "jsonl"]),
        ("\\engine s", ["spark"]),
        ("\\timing ", ["on", "off"]),
        ("\\? mai", ["maintain"]),
        ("help sq", ["sqlalchemy"]),
        ("\\i rep", ["reports/", "reports/q 1.sql"]),
        ("\\o reports/q 1", ["reports/q 1.sql"]),
        ("\\at ", ["off", "'yesterday 12:00'", "audit", "v1"]),
        ("\\at a", ["audit"]),
        ("\\diff sales.orders ", ["'audit'", "'v1'", "7012"]),
        ("\\changes sales.orders v1 7", ["7012"]),
    ],
)
def test_values_come_where_a_value_may_stand(text: str, found: list[str]) -> None:
    offered = [each for each in suggestions(text, Names(Source())) if each.kind != "column"]
    assert [each.text for each in offered] == found


def test_partition_values_come_before_the_columns() -> None:
    assert texts("SELECT * FROM sales.orders WHERE region = ")[:3] == ["'eu'", "'us'", "id"]
    assert texts("SELECT * FROM sales.orders WHERE id = ", "value") == []


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
    names, found = Names(Source()), list[str]()
    for name in ("accepted.sql", "rejected.sql"):
        found += (ROOT / "grammar" / name).read_text(encoding="utf-8").split(";")
    for path in sorted((ROOT / "tests" / "slt").rglob("*.slt")):
        found += re.split(
            r"^(?:query|statement|----).*", path.read_text("utf-8"), flags=re.MULTILINE
        )
    for text in random.Random(7).sample([each.strip() for each in found], 20):
        for length in range(len(text) + 1):
            before = text[:length]
            for each in suggestions(before, names, text[length:]):
                assert each.text.isprintable(), each
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


def test_a_qualifier_narrows_to_its_table() -> None:
    sql = "SELECT * FROM sales.orders o JOIN sales.customers AS c ON o.id = c."
    assert texts(sql, "column") == ["c.id", "c.name"]


def test_keywords_are_those_the_grammar_expects() -> None:
    offered = texts("SELECT id FROM sales.orders W", "keyword")
    assert "WHERE" in offered
    assert all(word.startswith("W") for word in offered)


def test_text_before_a_semicolon_is_another_statement() -> None:
    assert "SELECT" in texts("SELECT 1; SEL")


def test_commands_and_their_tables_are_completed() -> None:
    assert texts("\\sn") == ["\\snapshots"]
    assert texts("\\snapshots sales.c") == ["sales.customers"]
    assert texts("\\dn ") == []
    assert texts("\\nonsense x") == []


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


STATEMENT = """SELECT o.region, "Total Amount" AS x, 'it''s' -- why
FROM sales.orders VERSION AS OF 'v1' o /* and */ JOIN sales.customers c ON o.id = c.id
WHERE o.id IN (1, 2) AND c.name LIKE 'a%' GROUP BY ALL ORDER BY 1 DESC LIMIT 5;"""


def test_no_prefix_of_a_statement_breaks_completion() -> None:
    completer = SqlCompleter(Names(Source()))
    for length in range(len(STATEMENT) + 1):
        document = Document(STATEMENT[:length])
        for completion in completer.get_completions(document, CompleteEvent()):
            assert -completion.start_position <= length


def test_a_completion_replaces_the_word_at_the_cursor() -> None:
    completer = SqlCompleter(Names(Source()))
    document = Document("SELECT * FROM sales.or")
    (completion,) = completer.get_completions(document, CompleteEvent())
    assert (completion.text, completion.start_position) == ("sales.orders", -len("sales.or"))


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quoted(name) for name in ("id", "Id", "a b", 'a"b', "1a")] == [
        "id",
        '"Id"',
        '"a b"',
        '"a""b"',
        '"1a"',
    ]


def test_tables_of_another_catalog_come_behind_its_name() -> None:
    assert texts("SELECT * FROM arch") == ["archive."]
    assert texts("SELECT * FROM archive.") == ["archive.old.orders", "archive.old.events"]
    assert texts("SELECT * FROM ARCHIVE.old.e") == ["archive.old.events"]
    assert texts("SELECT * FROM t JOIN archive.old.o") == ["archive.old.orders"]


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
    until = time.monotonic() + 60
    while not (found := suggestions("FROM archive.", names)) and time.monotonic() < until:
        time.sleep(0.01)
    assert [each.text for each in found] == ["archive.old.orders", "archive.old.events"]
    assert source.asked == 2


def test_an_answer_that_comes_just_too_late_is_shown() -> None:
    class Late(Source):
        def tables(self, catalog: str | None = None) -> list[str]:
            time.sleep(0.07)
            return super().tables(catalog)

    async def found() -> list[str]:
        completer = SqlCompleter(Names(Late(), patience=0.05))
        document = Document("SELECT * FROM sales.o")
        return [
            each.text async for each in completer.get_completions_async(document, CompleteEvent())
        ]

    assert asyncio.run(found()) == ["sales.orders"]


def test_what_comes_later_joins_what_is_shown() -> None:
    class Halting(Source):
        def tables(self, catalog: str | None = None) -> list[str]:
            time.sleep(0.2)
            return super().tables(catalog)

    async def found() -> list[str]:
        completer = SqlCompleter(Names(Halting(), patience=0.05))
        document = Document("SELECT * FROM ")
        return [
            each.text async for each in completer.get_completions_async(document, CompleteEvent())
        ]

    shown = asyncio.run(found())
    # The catalogs answer at once, the tables after the first look.
    assert {"archive.", "sales.orders"} <= set(shown)
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize(
    ("dialect", "name", "about"),
    [
        ("", "date_trunc", "(part VARCHAR, timestamp) · Truncate to specified precision"),
        (
            "",
            "substring",
            "(string VARCHAR, start BIGINT[, length BIGINT]) → VARCHAR · Extracts su…",
        ),
        ("", "lag", "(value[, offset[, default]]) OVER (…)"),
        ("", "now", "() → TIMESTAMP WITH TIME ZONE · Returns the current timestamp"),
        ("spark", "upper", "(string) → string"),
        ("spark", "signum", "(double) → double"),
        ("trino", "starts_with", "(text, text) → boolean"),
    ],
)
def test_functions_are_offered_with_their_arguments(dialect: str, name: str, about: str) -> None:
    with icesql.connect(dialect=dialect or None) as connection:
        found = {
            each.text: each.about for each in ConnectionSource(connection, dialect).functions()
        }
        assert found.get(name) == about
        # Few are known by their names alone.
        if not dialect:
            assert sum(not each for each in found.values()) < len(found) / 10


def test_macros_are_offered_with_their_arguments() -> None:
    with icesql.connect() as connection:
        connection.execute("CREATE MACRO plus(a, b := 2) AS a + b")
        found = {each.text: each.about for each in ConnectionSource(connection).functions()}
        assert found["plus"] == "(a, b) · macro"


def test_procedures_and_namespaces_are_those_of_the_connection(tmp_path: Path) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as connection:
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
    with icesql.connect(warehouse=str(tmp_path), read_only=False) as connection:
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
