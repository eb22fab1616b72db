"""Threads beside a reader: each item once, errors to the reader, nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from icesql.context import QueryContext
from icesql.engine.side_threads import SideThreads
from icesql.errors import QueryCancelledError


def _threads(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == name]


def _until_none(name: str) -> None:
    end = time.monotonic() + 600
    while _threads(name) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _threads(name)


def test_each_item_is_worked_on_once() -> None:
    threads = SideThreads(
        range(1000),
        lambda item: (item, -item),
        QueryContext(),
        name="each-once",
        count=4,
        most_waiting=3,
    )
    made = list(threads.results())
    assert sorted(made) == sorted([*range(1000), *(-item for item in range(1000))])
    assert threads.ended
    _until_none("each-once")


def test_an_error_of_the_work_and_one_of_the_items_come_to_the_reader() -> None:
    def work(item: int) -> Iterator[int]:
        yield item
        if item == 50:
            raise ValueError("item 50")

    threads = SideThreads(range(10_000), work, QueryContext(), name="bad-work", count=3)
    with pytest.raises(ValueError, match="item 50"):
        list(threads.results())
    _until_none("bad-work")

    def items() -> Iterator[int]:
        yield 1
        raise OSError("no more items")

    broken = SideThreads(items(), lambda item: [item], QueryContext(), name="bad-items", count=3)
    with pytest.raises(OSError, match="no more items"):
        list(broken.results())
    _until_none("bad-items")


def test_a_reader_that_leaves_stops_threads_that_wait_for_it() -> None:
    begun: list[int] = []

    def work(item: int) -> Iterator[int]:
        begun.append(item)
        yield item

    threads = SideThreads(range(10_000), work, QueryContext(), name="left", count=3, most_waiting=2)
    results = threads.results()
    next(results)
    results.close()
    assert threads.stopped
    assert not threads.ended
    unread = list(threads.join())
    _until_none("left")
    assert len(begun) < 20
    assert len(unread) <= 2


def test_stop_and_cancel_end_a_reader_that_waits() -> None:
    release = threading.Event()

    def work(item: int) -> Iterator[int]:
        release.wait(10)
        yield item

    query = QueryContext()
    stopped = SideThreads(range(3), work, query, name="stopped", count=2)
    threading.Timer(0.05, stopped.stop).start()
    with pytest.raises(QueryCancelledError):
        next(stopped.results())
    cancelled = SideThreads(range(3), work, query, name="stopped", count=2)
    threading.Timer(0.05, query.cancel.set).start()
    with pytest.raises(QueryCancelledError):
        next(cancelled.results())
    release.set()
    _until_none("stopped")


def test_threads_that_never_began_can_be_joined() -> None:
    threads = SideThreads(range(3), lambda item: [item], QueryContext(), name="never", count=2)
    assert list(threads.join()) == []
