from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.repl.commands import (
    COMMANDS,
    Command,
    help_text,
    is_complete,
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
    ],
)
def test_commands_are_read(text: str, command: Command) -> None:
    assert parse_command(text) == command


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


def test_commands_about_tables_are_statements() -> None:
    assert statement_of(Command("d")) == "SHOW TABLES"
    assert statement_of(Command("d", "a.b")) == "DESCRIBE a.b"
    assert statement_of(Command("snapshots", "t")) == "SHOW SNAPSHOTS FROM t"
    assert statement_of(Command("timing")) is None


def test_help_names_every_command() -> None:
    assert all(f"\\{name}" in help_text() for name in COMMANDS)


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
    ],
)
def test_unfinished_statements_go_on(text: str) -> None:
    assert not is_complete(text)
