"""When Enter runs what is at the prompt, and what it runs."""

from __future__ import annotations

import pytest

from icesql.repl.prompt.typed import inputs, is_complete, runs_by_empty_line


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT 1;  \n",
        "SELECT 1; -- done",
        "SELECT ';' ;",
        "SELECT /* ; */ 1;",
        "SELECT 'it''s';",
        "\\d",
        "",
        "SELECT 1; /* end */",
        "SELECT $$;$$;",
        "show tables",
        "USE sales",
        "describe sales.orders",
        "SET engine = 'local'",
        "?",
        "SELECT 1\n",
        "SELECT a\nFROM t\n  ",
        "SELECT 1; SELECT 2\n",
        "SELECT a\n\\q",
        "SELECT a\nexit",
    ],
)
def test_finished_statements_run_on_enter(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT ';",
        'SELECT "a;',
        "SELECT 1 -- ;",
        "SELECT 1 /* ;",
        "SELECT 1; SELECT 2",
        "SELECT '\n;\n",
        "SELECT (1\n",
        "SELECT $a$ ; $b$;",
        "DELETE FROM t\n",
        "EXPLAIN ANALYZE DELETE FROM t\n",
        "WITH a AS (SELECT 1) INSERT INTO t FROM a\n",
        "SHOW SNAPSHOTS\nFROM t",
        "DESCRIBE SELECT 1",
        "SELECT '\nexit",
    ],
)
def test_unfinished_statements_go_on(text: str) -> None:
    assert not is_complete(text)


def test_a_backslash_escapes_a_quote_where_the_dialect_says_so() -> None:
    assert is_complete("SELECT 'it\\'s; ';", escapes=True)
    assert not is_complete("SELECT 'it\\'s; ';")
    assert is_complete("SELECT '\\\\';", escapes=True)


def test_an_empty_line_runs_queries_and_nothing_that_changes_a_table() -> None:
    assert runs_by_empty_line("SELECT 1;\nFROM t\n")
    assert not runs_by_empty_line("UPDATE t SET a = 1\n")
    assert not runs_by_empty_line("CALL system.expire_snapshots('t')\n")
    assert not runs_by_empty_line("")


@pytest.mark.parametrize(
    ("text", "found", "unfinished"),
    [
        ("SELECT 1;", ["SELECT 1;"], ""),
        ("SELECT 1\n\\dt", ["\\dt"], "SELECT 1"),
        ("SELECT 1;\n\\dt\n\\dn\nSELECT 2;", ["SELECT 1;", "\\dt", "\\dn", "SELECT 2;"], ""),
        ("SELECT '\nexit\n';", ["SELECT '\nexit\n';"], ""),
        ("  exit  ", ["exit"], ""),
        (" \n", [], ""),
    ],
)
def test_commands_stand_on_lines_of_their_own(text: str, found: list[str], unfinished: str) -> None:
    assert inputs(text) == (found, unfinished)
