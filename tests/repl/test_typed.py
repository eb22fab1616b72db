"""When Enter runs what is at the prompt, and what it runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        "SELECT $a_1$ ; $a_1$;",
        "SELECT 1 /* /* ; */ ' */;",
        "SELECT 1 -- delete it later\n",
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
        "SELECT a\n\\! echo it's\n;",
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
        "SELECT 1 /* /* */ ;",
        "DELETE FROM t\n",
        "EXPLAIN ANALYZE DELETE FROM t\n",
        "WITH a AS (SELECT 1) INSERT INTO t FROM a\n",
        "SHOW SNAPSHOTS\nFROM t",
        "\\timing\nDELETE FROM t",
        "exit\nDELETE FROM t",
        "DESCRIBE SELECT 1",
        "SELECT '\nexit",
    ],
)
def test_unfinished_statements_go_on(text: str) -> None:
    assert not is_complete(text)


def test_a_backslash_escapes_a_quote_where_the_dialect_says_so() -> None:
    assert is_complete("SELECT 'it\\'s; ';", dialect="spark")
    assert is_complete("SELECT 'it\\'s; ';", dialect="snowflake")
    assert not is_complete("SELECT 'it\\'s; ';", dialect="trino")
    assert not is_complete("SELECT 'it\\'s; ';")
    assert is_complete("SELECT '\\\\';", dialect="spark")


def test_an_empty_line_runs_queries_and_nothing_that_changes_a_table() -> None:
    assert runs_by_empty_line("SELECT 1;\nFROM t\n")
    assert not runs_by_empty_line("UPDATE t SET a = 1\n")
    assert not runs_by_empty_line("CALL system.expire_snapshots('t')\n")
    assert not runs_by_empty_line("")


@pytest.mark.parametrize(
    ("text", "found", "unfinished"),
    [
        ("SELECT 1;", ["SELECT 1;"], ""),
        ("SELECT 1\n\\dt", ["\\dt"], "SELECT 1\n"),
        ("SELECT 1 -- one\n  a\n\\dt  ", ["\\dt"], "SELECT 1 -- one\n  a\n"),
        ("SELECT 1 -- one\n\\dt\n;", ["\\dt", "SELECT 1 -- one\n;"], ""),
        ("SELECT 1 --\u2028\\dt\n;", ["SELECT 1 --\u2028\\dt\n;"], ""),
        ("SELECT\nhelp\nFROM t;", ["SELECT\nhelp\nFROM t;"], ""),
        ("SELECT a,\nhelp", ["help"], "SELECT a,\n"),
        ("help\nSELECT 1;", ["help", "SELECT 1;"], ""),
        ("SELECT 1;\n\\dt\n\\dn\nSELECT 2;", ["SELECT 1;", "\\dt", "\\dn", "SELECT 2;"], ""),
        ("SELECT '\nexit\n';", ["SELECT '\nexit\n';"], ""),
        ("  exit  ", ["exit"], ""),
        (" \n", [], ""),
    ],
)
def test_commands_stand_on_lines_of_their_own(text: str, found: list[str], unfinished: str) -> None:
    assert inputs(text) == (found, unfinished)


# Lines, and whether each is a command where no quote or comment is open.
_LINES = st.sampled_from([
    [("SELECT a", False)],
    [("DELETE FROM t WHERE a = 1 -- one", False)],
    [("AND b = 2", False)],
    [("  OR c = 'it''s' -- x;", False)],
    [("AND id = 3;", False)],
    [("COMMIT;  -- done", False)],
    [(";", False)],
    [("", False)],
    [("SHOW", False)],
    [("x = '", False), ("\\timing", False), ("exit", False), ("'", False)],
    [("/* ;", False), ("\\dt", False), ("*/ -- '", False)],
    [("$a$", False), ("\\q", False), ("$a$ ,", False)],
    [("\\timing", True)],
    [("  \\x on  ", True)],
    [("\\! echo it's -- /*", True)],
    [("help", True)],
])  # fmt: skip


@given(st.lists(_LINES, max_size=12), st.data())
def test_what_runs_is_what_stands_on_the_screen(
    pieces: list[list[tuple[str, bool]]], data: st.DataObject
) -> None:
    """Each line is typed and ended by Enter, or several are pasted; no line is lost or joined."""
    lines = [each for piece in pieces for each in piece]
    screen = ""
    ran: list[str] = []
    commands: list[str] = []
    for number, (line, is_command) in enumerate(lines):
        screen += line
        is_pasted = line != "help" and number + 1 < len(lines) and data.draw(st.booleans())
        if is_pasted or not is_complete(screen):
            assert is_pasted or not is_command, "Enter runs a command"
            screen += "\n"
            continue
        screen = entered(screen, ran, commands)
    screen = entered(screen, ran, commands)
    kept = [line.strip() for line, is_command in lines if line.strip() and not is_command]
    shown = [each.strip() for text in (*ran, screen) for each in text.split("\n")]
    assert [each for each in shown if each] == kept
    assert commands == [line.strip() for line, is_command in lines if is_command]


def entered(screen: str, ran: list[str], commands: list[str]) -> str:
    """What the next prompt begins with, after the text of this one was run."""
    found, left = inputs(screen)
    for each in found:
        (commands if each.startswith("\\") or each == "help" else ran).append(each)
    return left
