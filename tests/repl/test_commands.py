from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.repl.commands import (
    COMMANDS,
    Command,
    help_lines,
    in_words,
    parse_command,
    statement_of,
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("\\d", Command("d")),
        ("\\d sales.orders;", Command("d", "sales.orders")),
        ("  \\snapshots  orders ", Command("snapshots", "orders")),
        ("\\q", Command("q")),
        ("\\quit", Command("q")),
        ("\\help", Command("?")),
        ("\\timing off", Command("timing", "off")),
        ("\\!ls -l;", Command("!", "ls -l;")),
        ("\\! ls", Command("!", "ls")),
        ("\\set a 1", Command("set", "a 1")),
        ("\\d\tsales.orders", Command("d", "sales.orders")),
        ("\\h", Command("?")),
    ],
)
def test_commands_are_read(text: str, command: Command) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("exit", Command("q")),
        ("quit;", Command("q")),
        (".tables", Command("dt")),
        (".schema sales.orders", Command("schema", "sales.orders")),
        (".mode csv", Command("format", "csv")),
        (".read a.sql", Command("i", "a.sql")),
        (".5", None),
        ("?", Command("?")),
        ("help()", Command("?")),
        ("help('merge');", Command("?", "merge")),
        ("HELP orphan files", Command("?", "orphan files")),
        ("exit_code", None),
    ],
)
def test_words_of_other_shells_are_commands(text: str, command: Command | None) -> None:
    assert in_words(text) == command


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\\snapshot t", "unknown command \\snapshot; did you mean \\snapshots?"),
        ("\\xyz", "unknown command \\xyz; \\? lists the commands"),
        ("\\snapshots", "\\snapshots needs a name: \\snapshots TABLE"),
        ("\\q now", "\\q takes no argument"),
    ],
)
def test_wrong_commands_say_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        parse_command(text)
    assert str(caught.value) == problem


def test_an_unknown_command_with_a_dot_is_no_sql() -> None:
    with pytest.raises(ProgrammingError, match=r"unknown command \.nonsense"):
        in_words(".nonsense")


def test_commands_about_tables_are_statements() -> None:
    assert statement_of(Command("d")) == "SHOW TABLES"
    assert statement_of(Command("d", "a.b")) == "DESCRIBE a.b"
    assert statement_of(Command("branches", "t")) == "SHOW BRANCHES FROM t"
    assert statement_of(Command("dt", "or*")) == "SHOW TABLES LIKE 'or%'"
    assert statement_of(Command("df", "it's")) == "SHOW FUNCTIONS LIKE '%it''s%'"
    assert statement_of(Command("diff", "t audit 7")) == "DIFF t BETWEEN 'audit' AND 7"
    assert statement_of(Command("diff", "t -1")) == "DIFF t BETWEEN -1 AND 'main'"
    assert (
        statement_of(Command("changes", "t v1 v2"))
        == "SELECT * FROM t CHANGES FROM VERSION 'v1' TO VERSION 'v2'"
    )
    with pytest.raises(ProgrammingError, match="needs a table and versions"):
        statement_of(Command("diff", "t"))
    assert statement_of(Command("timing")) is None


def test_help_names_every_command() -> None:
    for columns in (80, 110):
        lines = help_lines(columns)
        assert all(any(f"  \\{name}" in line for line in lines) for name in COMMANDS)
        assert max(map(len, lines)) < columns
