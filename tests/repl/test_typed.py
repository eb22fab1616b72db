"""When Enter runs what is at the prompt, and what it runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icesql.repl.prompt import inputs, is_complete, runs_by_empty_line
from tests.rows import rows_of
from tests.tables import read_table


@rows_of(__file__, "entered.tsv", "dialect", "text", "then")
def test_what_enter_does(dialect: str, text: str, then: str) -> None:
    typed = text.replace("⏎", "\n")
    assert is_complete(typed, dialect=dialect or None) is (then == "runs")


def test_an_empty_line_runs_queries_and_nothing_that_changes_a_table() -> None:
    assert runs_by_empty_line("SELECT 1;\nFROM t\n")
    assert not runs_by_empty_line("UPDATE t SET a = 1\n")
    assert not runs_by_empty_line("CALL system.expire_snapshots('t')\n")
    assert not runs_by_empty_line("")


@rows_of(__file__, "inputs.tsv", "text", "found", "unfinished")
def test_commands_stand_on_lines_of_their_own(text: str, found: str, unfinished: str) -> None:
    text, found, unfinished = (each.replace("⏎", "\n") for each in (text, found, unfinished))
    assert inputs(text) == (found.split(" ¦ ") if found else [], unfinished)


# Lines, and whether each is a command where no quote or comment is open.
_LINES = st.sampled_from(
    [
        [(line, command == "yes") for line in lines.split("⏎")]
        for command, lines in read_table(__file__, "typed_lines.tsv")
    ]
)


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
