"""Progress shows in the cell of a notebook, and nowhere else."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import icesql
from icesql.context import Progress
from icesql.dbapi.notebook import CellProgress, cell_progress, progress_html


class _Cell:
    """What a cell shows, one text after the other."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.now = 0.0

    def display(self, page: str) -> Any:
        self.shown.append(page)
        return self.shown.append

    def clock(self) -> float:
        return self.now


def test_it_shows_after_a_moment_and_is_taken_away() -> None:
    cell = _Cell()
    progress = CellProgress(cell.display, cell.clock)
    for second in (0.0, 0.3, 0.6, 0.7, 0.9):
        cell.now = second
        progress(Progress("reading", int(second * 10), 10))
    assert [page.partition("reading")[2][:5] for page in cell.shown] == [" 6/10", " 9/10"]
    progress.clear()
    progress.clear()
    assert cell.shown[2:] == [""]
    cell.now = 1.0
    progress(Progress("planning", 1, 2))
    assert len(cell.shown) == 3


def test_a_bar_has_a_length_only_where_it_is_known() -> None:
    assert "<progress value='3' max='10'>" in progress_html(Progress("reading", 3, 10))
    assert "<progress" not in progress_html(Progress("running", 3))
    assert "max='4000'" in progress_html(Progress("running", 1, None, 1_000, 4_000))
    assert "<b>" not in progress_html(Progress("<b>", 1))


def test_only_a_kernel_has_cells(monkeypatch: pytest.MonkeyPatch, warehouse: Any) -> None:
    shell: Any = None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert cell_progress() is None
    shell = SimpleNamespace()  # IPython on a terminal
    assert cell_progress() is None
    shell = SimpleNamespace(kernel=object())
    with icesql.connect(warehouse=warehouse) as connection:
        assert isinstance(connection.progress, CellProgress)
        assert connection.execute("SELECT count(*) FROM shop.orders").fetchone() is not None


def test_the_progress_of_a_statement_is_cleared_when_it_waits(connection: Any) -> None:
    cell = _Cell()
    connection.progress = CellProgress(cell.display, lambda: cell.now)

    def tick() -> float:
        cell.now += 1.0
        return cell.now

    connection.progress._clock = tick
    connection.execute("SELECT id, count(*) FROM shop.orders GROUP BY id").fetchall()
    assert cell.shown
    assert cell.shown[-1] == ""


def test_a_commit_says_for_whom_it_waits() -> None:
    shown = progress_html(Progress("not committed", 7, detail="a <b> was first"))
    assert "not committed 7 · a &lt;b&gt; was first" in shown
