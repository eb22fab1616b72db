"""How much of a result the shell shows, and in which layout."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from icesql.repl.display import Display
from icesql.repl.render import Style, write_rows


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Display:
    monkeypatch.setenv("NO_COLOR", "1")
    return Display(Screen(), paged=False, screen=lambda: os.terminal_size((80, 24)))


def text_of(display: Display) -> str:
    assert isinstance(display.out, io.StringIO)
    return display.out.getvalue()


def shown(display: Display, connection: Any, sql: str, **given: bool) -> Any:
    return display.show(connection.execute(sql), lambda: None, **given)


def test_a_long_result_shows_its_first_rows(display: Display, connection: Any) -> None:
    result = shown(display, connection, "SELECT * FROM range(4000) t(n)")
    assert (result.count, result.more, result.counted) == (4000, 3960, True)
    assert text_of(display).splitlines()[-1].strip() == "39"


def test_everything_is_shown_where_it_is_asked_for(display: Display, connection: Any) -> None:
    result = shown(display, connection, "SELECT * FROM range(3000) t(n)", everything=True)
    assert (result.count, result.more) == (3000, 0)
    assert text_of(display).splitlines()[-1].strip() == "2999"


def test_a_long_result_goes_to_the_pager(
    display: Display, connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "paged.txt"
    program = f"import sys; open({str(target)!r}, 'w').write(sys.stdin.read())"
    monkeypatch.setenv("PAGER", f'{sys.executable} -c "{program}"')
    display.paged = True
    result = shown(display, connection, "SELECT * FROM range(4000) t(n)")
    assert (result.count, result.more) == (4000, 0)
    assert len(target.read_text().splitlines()) == 4002
    assert text_of(display) == ""
    shown(display, connection, "SELECT 1 AS one")
    assert text_of(display) == " one\n----\n   1\n"


def test_a_reader_may_leave_the_pager(
    display: Display, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", f'{sys.executable} -c "import sys; sys.stdin.readline()"')
    display.paged = True
    result = shown(display, connection, "SELECT * FROM range(3000000) t(n)")
    assert not result.counted
    assert result.count < 3_000_000


def test_expanded_rows_have_a_column_a_line(display: Display, connection: Any) -> None:
    display.expanded = "on"
    shown(display, connection, "SELECT 1 AS id, NULL AS nothing UNION ALL SELECT 2, NULL")
    assert text_of(display).splitlines() == [
        "-[ row 1 ]---",
        "id      | 1",
        "nothing | NULL",
        "-[ row 2 ]---",
        "id      | 2",
        "nothing | NULL",
    ]


def test_auto_expands_what_is_too_wide(display: Display, connection: Any) -> None:
    display.expanded = "auto"
    columns = ", ".join(f"{i}00000000000000 AS c{i}" for i in range(1, 10))
    shown(display, connection, f"SELECT {columns}")
    assert text_of(display).startswith("-[ row 1 ]")
    shown(display, connection, "SELECT 1 AS one")
    assert " one\n----\n" in text_of(display)


def test_long_texts_give_way_before_ids_times_and_first_columns() -> None:
    out = io.StringIO()
    row = (8127685200612268660, "short name", "x" * 300, "2026-01-01", "y" * 100, 17)
    names = ["id", "name", "long", "day", "other", "a_long_heading_of_a_number"]
    write_rows(out, "table", names, [row], Style(width=110))
    line = out.getvalue().splitlines()[-1]
    assert "8127685200612268660" in line
    assert "short name" in line
    assert "2026-01-01" in line
    assert line.rstrip().endswith("17")
    assert max(map(len, out.getvalue().splitlines())) <= 110


def test_columns_without_room_are_left_out_and_numbers_stay_whole() -> None:
    out = io.StringIO()
    row = [8127685200612268660 + i for i in range(10)]
    write_rows(out, "table", [f"c{i}" for i in range(10)], [row], Style(width=80))
    line = out.getvalue().splitlines()[2]
    assert "8127685200612268662" in line
    assert line.endswith(" …")
    assert len(line) <= 80


def test_html_escapes_what_values_hold() -> None:
    out = io.StringIO()
    write_rows(out, "html", ["a<b", "n"], [("<script>&", 1), (None, 2)], Style())
    assert out.getvalue() == (
        "<table>\n<thead><tr><th>a&lt;b</th><th>n</th></tr></thead>\n<tbody>\n"
        '<tr><td>&lt;script&gt;&amp;</td><td class="number">1</td></tr>\n'
        '<tr><td class="null"></td><td class="number">2</td></tr>\n</tbody>\n</table>\n'
    )
