from __future__ import annotations

import io

from icesql.context import Progress
from icesql.repl.progress import ProgressLine, progress_text


def test_a_quick_answer_draws_nothing() -> None:
    out, now = io.StringIO(), [0.0]
    line = ProgressLine(out, clock=lambda: now[0])
    now[0] = 0.4
    line(Progress("reading", 1, 2))
    line.clear()
    assert out.getvalue() == ""


def test_a_slow_one_is_drawn_now_and_then_and_taken_away() -> None:
    out, now = io.StringIO(), [0.0]
    line = ProgressLine(out, clock=lambda: now[0])
    for now[0] in (0.6, 0.61, 0.62, 0.8):
        line(Progress("reading", 1, 2))
    assert out.getvalue().count("reading 1/2") == 2
    line.clear()
    line.clear()
    assert out.getvalue().endswith("reading 1/2\r\x1b[2K")


def test_progress_names_stage_count_and_size() -> None:
    assert progress_text(Progress("planning", 3)) == "planning 3"
    assert progress_text(Progress("reading", 1000, 2000, 3 << 20)) == "reading 1,000/2,000 · 3 MB"
