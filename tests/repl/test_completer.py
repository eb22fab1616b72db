from __future__ import annotations

import threading
import time

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from icesql.errors import CatalogError
from icesql.repl.completer import Names, SqlCompleter, quoted, suggestions

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


class Broken:
    def tables(self, catalog: str | None = None) -> list[str]:
        raise CatalogError("no answer")

    def catalogs(self) -> list[str]:
        raise CatalogError("no answer")

    def columns(self, table: str) -> list[str]:
        raise CatalogError("no answer")


def texts(text: str, kind: str | None = None) -> list[str]:
    return [each.text for each in suggestions(text, Names(Source())) if kind in (None, each.kind)]


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
    assert texts("\\timing ") == []


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
    assert time.monotonic() - began < 5
    source.may_answer.set()
    until = time.monotonic() + 10
    while not (found := suggestions("FROM archive.", names)) and time.monotonic() < until:
        time.sleep(0.01)
    assert [each.text for each in found] == ["archive.old.orders", "archive.old.events"]
    assert source.asked == 2
