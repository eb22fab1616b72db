"""Threads of a connection run one query after the other, and keep no state between them."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icesql.context import QueryContext
from icesql.engine import query_thread
from icesql.engine.query_thread import MOST_IDLE, MemoryWatch, Threads, Worker
from icesql.errors import InterfaceError, QueryCancelledError


def names() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("icesql-")]


def settled(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 600
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def worker(
    threads: Threads | None,
    interrupt: Callable[[], None] = lambda: None,
    at_end: Callable[[], None] = lambda: None,
) -> Worker:
    return Worker(interrupt, at_end, MemoryWatch(1 << 40, "test"), threads)


@pytest.fixture
def threads() -> Iterator[Threads]:
    # The threads of connections that other tests left open end by themselves.
    assert settled(lambda: names() == [])
    made = Threads()
    yield made
    made.close()
    assert settled(lambda: names() == [])


def run(of: Worker, function: Callable[[], Any]) -> Any:
    return of.call(function, QueryContext())


def test_the_next_query_has_the_same_thread(threads: Threads) -> None:
    used = set()
    for _ in range(20):
        one = worker(threads)
        used.add(run(one, threading.get_ident))
        one.close()
        assert one.join(600)
        assert settled(lambda: names().count("icesql-idle") == 1)
    assert len(used) == 1


def test_queries_at_once_have_threads_of_their_own_and_few_stay(threads: Threads) -> None:
    workers = [worker(threads) for _ in range(MOST_IDLE + 4)]
    assert len({run(each, threading.get_ident) for each in workers}) == len(workers)
    for each in workers:
        each.close()
    assert settled(lambda: names() == ["icesql-idle"] * MOST_IDLE)


def test_nothing_of_a_query_is_kept_by_an_idle_thread(threads: Threads) -> None:
    class Held:
        pass

    def failing(held: Held) -> None:
        raise ValueError(held)

    held = Held()
    gone = weakref.ref(held)
    one = worker(threads, at_end=lambda held=held: None)  # type: ignore[misc]
    assert run(one, lambda held=held: held) is held
    with pytest.raises(ValueError):
        run(one, lambda held=held: failing(held))
    one.close()
    assert one.join(600)
    del one, held
    gc.collect()
    assert settled(lambda: gone() is None)


def test_a_closed_query_cannot_run_in_the_thread_of_another(threads: Threads) -> None:
    one = worker(threads)
    thread = run(one, threading.get_ident)
    one.close()
    assert one.join(600)
    assert settled(lambda: names() == ["icesql-idle"])
    other = worker(threads)
    assert run(other, threading.get_ident) == thread
    ran = list[int]()
    with pytest.raises(InterfaceError, match="closed"):
        run(one, lambda: ran.append(1))
    other.close()
    assert other.join(600)
    assert ran == []


def test_an_interrupt_of_one_query_leaves_its_thread_to_the_next(threads: Threads) -> None:
    stop = threading.Event()
    one, query = worker(threads, interrupt=stop.set), QueryContext()
    threading.Timer(0.05, query.cancel.set).start()
    with pytest.raises(QueryCancelledError):
        one.call(lambda: stop.wait(60), query)
    assert stop.is_set()
    one.close()
    assert one.join(600)
    other = worker(threads)
    assert run(other, lambda: 7) == 7
    other.close()


def test_a_call_that_hangs_holds_up_no_other_query(threads: Threads) -> None:
    never = threading.Event()
    one, query = worker(threads), QueryContext()
    query.cancel.set()
    with pytest.raises(QueryCancelledError):
        one.call(lambda: never.wait(20), query)
    query = QueryContext(deadline=time.monotonic() + 0.05)
    with pytest.raises(QueryCancelledError):
        one.call(lambda: never.wait(20), query)
    one.close()
    other = worker(threads)
    assert run(other, lambda: 7) == 7
    other.close()
    never.set()


def test_idle_threads_end_after_a_while(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_thread, "IDLE_SECONDS", 0.02)
    for _ in range(20):
        one = worker(threads)
        assert run(one, lambda: 7) == 7
        one.close()
        time.sleep(0.019)
    assert settled(lambda: names() == [])


def test_idle_threads_end_with_their_owner() -> None:
    made = Threads()
    one = worker(made)
    run(one, lambda: 7)
    del made
    assert run(one, lambda: 7) == 7
    one.close()
    assert settled(lambda: names() == [])
    made = Threads()
    one = worker(made)
    run(one, lambda: 7)
    one.close()
    assert settled(lambda: names() == ["icesql-idle"])
    del made
    gc.collect()
    assert settled(lambda: names() == [])


def test_many_at_once_get_their_own_answers(threads: Threads) -> None:
    wrong = list[object]()

    def client(number: int) -> None:
        for step in range(40):
            one = worker(threads)
            found = run(one, lambda number=number, step=step: (number, step))
            if found != (number, step):
                wrong.append(found)
            one.close()

    clients = [threading.Thread(target=client, args=[number]) for number in range(12)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert wrong == []
    assert settled(lambda: len(names()) <= MOST_IDLE)


def test_without_threads_to_share_a_thread_ends_with_its_query() -> None:
    one = worker(None)
    assert run(one, lambda: 7) == 7
    one.close()
    assert settled(lambda: names() == [])
