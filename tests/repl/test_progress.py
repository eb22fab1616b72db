from __future__ import annotations

import io

import pytest

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


def test_rate_and_time_left_are_told_after_a_second() -> None:
    half = Progress("fetching", 2, 4, 30 << 20, 60 << 20)
    assert progress_text(half, 0.5) == "fetching 2/4 · 30 MB of 60 MB"
    assert progress_text(half, 3) == "fetching 2/4 · 30 MB of 60 MB · 10 MB/s · 3.00 s left"
    assert progress_text(Progress("spark", 1, 4), 2) == "spark 1/4 · 6.00 s left"
    running = Progress("running", 0, bytes_done=10 << 20, bytes_total=40 << 20)
    assert progress_text(running, 2) == "running 2.00 s · 10 MB of 40 MB · 5 MB/s · 6.00 s left"
    assert progress_text(Progress("running", 0), 2) == "running 2.00 s"


def test_rows_that_are_written_while_a_query_runs_are_one_line() -> None:
    out, now = io.StringIO(), [0.0]
    line = ProgressLine(out, clock=lambda: now[0])
    line(Progress("running", 0, bytes_done=1 << 20, bytes_total=40 << 20))
    assert not line.wrote
    for now[0] in (1.0, 3.0, 5.0):
        line(Progress("writing rows", int(now[0]) * 1000))
        line(Progress("running", 0, bytes_done=10 << 20, bytes_total=40 << 20))
    assert line.wrote
    assert line.done == "writing 5,000 rows · 4.00 s · 10 MB of 40 MB · 2.5 MB/s · 12.00 s left"
    line(Progress("rewriting file groups", 1, 2))
    assert not line.wrote  # a part of it may be committed


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out, now = io.StringIO(), [0.0]
    line = ProgressLine(out, clock=lambda: now[0])
    now[0] = 1.0
    line(Progress("planning a name that is long", 1, 2))
    assert len(out.getvalue().removeprefix("\r\x1b[2K")) == 19
