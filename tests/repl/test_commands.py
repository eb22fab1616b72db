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
from tests.rows import rows_of


@rows_of(__file__, "commands.tsv", "typed", "name", "argument")
def test_commands_are_read(typed: str, name: str, argument: str) -> None:
    text = typed.replace("⇥", "\t")
    read = parse_command if text.strip().startswith("\\") else in_words
    assert read(text) == (None if name == "-" else Command(name, argument or None))


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


@rows_of(__file__, "command_statements.tsv", "typed", "statement")
def test_commands_about_tables_are_statements(typed: str, statement: str) -> None:
    found = statement_of(parse_command(typed))
    assert found == (None if statement == "-" else statement)


def test_a_comparison_needs_versions() -> None:
    with pytest.raises(ProgrammingError, match="needs a table and versions"):
        statement_of(Command("diff", "t"))


def test_help_names_every_command() -> None:
    for columns in (80, 110):
        lines = help_lines(columns)
        assert all(any(f"  \\{name}" in line for line in lines) for name in COMMANDS)
        assert max(map(len, lines)) < columns
