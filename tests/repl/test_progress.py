from __future__ import annotations

import io
from ast import literal_eval

import pytest

from icesql.context import Progress
from icesql.repl.progress import ProgressLine, progress_text, stopped_text
from tests.rows import rows_of


def drawing() -> tuple[io.StringIO, list[float], ProgressLine]:
    """A screen, the time, and a line that draws on one by the other."""
    out, now = io.StringIO(), [0.0]
    return out, now, ProgressLine(out, clock=lambda: now[0])


def test_a_quick_answer_draws_nothing() -> None:
    out, now, line = drawing()
    now[0] = 0.4
    line(Progress("reading", 1, 2))
    line.clear()
    assert out.getvalue() == ""


def test_a_slow_one_is_drawn_now_and_then_and_taken_away() -> None:
    out, now, line = drawing()
    for now[0] in (0.6, 0.61, 0.62, 0.8):
        line(Progress("reading", 1, 2))
    assert out.getvalue().count("reading 1/2") == 2
    line.clear()
    line.clear()
    assert out.getvalue().endswith("reading 1/2\r\x1b[2K")


@rows_of(__file__, "progress.tsv", "stage", "done", "total", "read", "size", "seconds", "told")
def test_what_progress_tells(
    stage: str, done: str, total: str, read: str, size: str, seconds: str, told: str
) -> None:
    counts = map(literal_eval, (done, total))
    read_bytes, all_bytes = (each and each << 20 for each in map(literal_eval, (read, size)))
    progress = Progress(stage, *counts, bytes_done=read_bytes, bytes_total=all_bytes)
    assert progress_text(progress, *filter(None, [literal_eval(seconds)])) == told


def test_rows_that_are_written_while_a_query_runs_are_one_line() -> None:
    _, now, line = drawing()
    line(Progress("running", 0, bytes_done=1 << 20, bytes_total=40 << 20))
    assert not line.wrote
    for now[0] in (1.0, 3.0, 5.0):
        line(Progress("writing rows", int(now[0]) * 1000))
        line(Progress("running", 0, bytes_done=10 << 20, bytes_total=40 << 20))
    assert line.wrote
    assert line.done == "writing 5,000 rows · 4.00 s · 10 MB of 40 MB"
    line(Progress("rewriting file groups", 1, 2))
    assert not line.wrote  # a part of it may be committed


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out, now, line = drawing()
    now[0] = 1.0
    line(Progress("planning a name that is long", 1, 2))
    assert len(out.getvalue().removeprefix("\r\x1b[2K")) == 19


def test_a_catalog_that_does_not_answer_is_said_to_be_waited_for() -> None:
    out, now, line = drawing()
    line.tick()
    assert out.getvalue() == ""
    now[0] = 3.0
    line.tick()
    assert out.getvalue().endswith("waiting 3.00 s · Ctrl-C stops it")
    line(Progress("planning", 1, 4))
    now[0] = 4.0
    line.tick()
    assert "4.00 s" not in out.getvalue()
    now[0] = 8.0
    line.tick()
    assert out.getvalue().endswith("planning 1/4 · waiting 5.00 s")


def test_nothing_is_drawn_over_rows_that_are_shown() -> None:
    out, now, line = drawing()
    line.hush()
    now[0] = 5.0
    line(Progress("reading", 1, 2))
    line.tick()
    assert out.getvalue() == ""
    line.begin()
    now[0] = 6.0
    line(Progress("reading", 2, 2))
    assert "reading 2/2" in out.getvalue()


@pytest.mark.parametrize(
    ("script", "number", "said"),
    [
        ("SELECT 1", 0, "cancelled"),
        ("-- c\n/* d */ delete FROM t", 0, "cancelled; nothing was committed"),
        (
            "INSERT INTO t VALUES (1); UPDATE t SET a = 1",
            1,
            "cancelled; nothing of this statement was committed",
        ),
        ("CALL system.rewrite_data_files('t')", 0, "cancelled"),
        ("SELECT 'open", 0, "cancelled"),
    ],
)
def test_what_was_stopped_says_what_it_left(script: str, number: int, said: str) -> None:
    line = ProgressLine(io.StringIO())
    assert stopped_text("cancelled", line, script, number, None) == said


def test_a_commit_that_was_under_way_is_not_said_to_be_nothing() -> None:
    line = ProgressLine(io.StringIO())
    line(Progress("committing", 1))
    said = stopped_text("cancelled", line, "DELETE FROM t", 0, None)
    assert "it may be committed: look at the snapshots" in said
    line(Progress("not committed", 0))
    said = stopped_text("cancelled", line, "DELETE FROM t", 0, None)
    assert said.endswith("; nothing was committed")
    said = stopped_text("the time was over; nothing was committed", line, "DELETE FROM t", 0, None)
    assert said.count("nothing was committed") == 1


def test_a_commit_says_for_whom_it_waits() -> None:
    line = ProgressLine(io.StringIO())
    line(Progress("committing", 9))
    line(Progress("not committed", 9, detail="others were first"))
    assert not line.committing
    assert line.done == "not committed yet, attempt 9 · others were first"
