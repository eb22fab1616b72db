"""How results are read, with any engine."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from icesql.engine.result import Result
from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import DataError, InterfaceError, QueryCancelledError

COLUMNS = (ResultColumn("x", ResultType("integer")),)


class Read(Result):
    """A result of given rows or batches."""

    columns = COLUMNS

    def __init__(
        self,
        chunks: Callable[[], Iterator[Any]],
        batches: Callable[[], Iterator[pa.RecordBatch]],
        ended: Callable[[], None],
    ) -> None:
        super().__init__()
        self._given = chunks, batches, ended

    def _chunks(self) -> Iterator[Any]:
        return self._given[0]()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._given[1]()

    def _finish(self) -> None:
        self._given[2]()


def reading(chunks: Iterable[Any], ended: Callable[[], None] = lambda: None) -> Read:
    """Rows and batches from lists of numbers; an exception among them is raised."""

    def rows() -> Iterator[list[tuple[int]]]:
        for chunk in chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            yield [(x,) for x in chunk]

    def batches() -> Iterator[pa.RecordBatch]:
        for chunk in rows():
            yield pa.record_batch([pa.array([x for (x,) in chunk], pa.int32())], names=["x"])

    return Read(rows, batches, ended)


def test_rows_come_as_many_as_asked_for_across_chunks() -> None:
    made = reading([[1, 2, 3], [], [4], [5, 6]])
    assert made.fetch(2) == [(1,), (2,)]
    assert made.fetch(3) == [(3,), (4,), (5,)]
    assert made.fetch(None) == [(6,)]
    assert made.fetch(None) == []


@pytest.mark.parametrize("count", [None, 5])
def test_rows_that_failed_have_not_ended(count: int | None) -> None:
    made = reading([[1, 2], DataError("bad"), [3]])
    assert made.fetch(1) == [(1,)]
    for _ in range(2):
        with pytest.raises(DataError, match="bad"):
            made.fetch(count)


def test_rows_that_were_interrupted_stay_cancelled() -> None:
    made = reading([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        made.fetch(None)
    with pytest.raises(QueryCancelledError):
        made.fetch(None)


def test_arrow_batches_that_failed_have_not_ended() -> None:
    reader = reading([[1], DataError("bad"), [3]]).arrow_reader()
    assert reader.read_next_batch().to_pylist() == [{"x": 1}]
    for _ in range(2):
        with pytest.raises(Exception, match="bad"):
            reader.read_next_batch()


def test_the_first_error_of_arrow_is_the_querys_own() -> None:
    with pytest.raises(DataError, match="bad"):
        reading([DataError("bad")]).arrow_reader()


def test_a_result_is_read_in_one_way_and_as_arrow_once() -> None:
    as_rows, as_arrow = reading([[1]]), reading([[1]])
    as_rows.fetch(1)
    as_arrow.arrow_reader()
    with pytest.raises(InterfaceError, match="read as rows"):
        as_rows.arrow_reader()
    for again in (lambda: as_arrow.fetch(1), lambda: as_arrow.arrow_reader()):
        with pytest.raises(InterfaceError, match="read as arrow"):
            again()


def test_a_closed_result_is_read_no_more() -> None:
    made = reading([[1]])
    made.close()
    with pytest.raises(InterfaceError, match="closed"):
        made.fetch(None)


@pytest.mark.parametrize("last", [[], [DataError("bad")], [KeyboardInterrupt()]])
@pytest.mark.parametrize("as_arrow", [False, True])
def test_the_engine_hears_once_that_nothing_more_is_wanted(last: list[Any], as_arrow: bool) -> None:
    heard: list[int] = []
    made = reading([[1], *last], lambda: heard.append(1))
    reader = made.arrow_reader() if as_arrow else None
    assert heard == []
    with suppress(DataError, KeyboardInterrupt, pa.ArrowInvalid):
        made.fetch(None) if reader is None else reader.read_all()
    assert heard == [1]
    made.close()
    assert heard == [1]


def test_an_arrow_reader_that_is_dropped_ends_the_reading() -> None:
    heard: list[int] = []
    made = reading([[1], [2]], lambda: heard.append(1))
    reader = made.arrow_reader()
    reader.read_next_batch()
    assert heard == []
    del reader
    assert heard == [1]


def test_rows_are_counted_once_all_are_there() -> None:
    made = reading([[1, 2], [3]])
    made.fetch(3)
    assert made.row_count is None
    assert made.fetch(None) == []
    assert made.row_count == 3


def test_rows_that_are_ready_come_first() -> None:
    made = reading([[1, 2, 3], [4]])
    assert made.fetch(1) == [(1,)]
    assert made.ready.popleft() == (2,)
    assert made.fetch(None) == [(3,), (4,)]
    made.close()
    assert not made.ready


@pytest.mark.parametrize("counts", list(product((1, 2, 3, 7, None), repeat=3)))
def test_chunks_of_any_size_are_read_in_order_however_they_are_asked_for(
    counts: tuple[int | None, ...],
) -> None:
    made = reading([[1, 2, 3], [], [4], [5, 6, 7, 8], []])
    asked = iter(counts)
    found = list[tuple[int]]()
    for count in asked:
        rows = made.fetch(count)
        assert len(rows) == min(8 - len(found), 8 if count is None else count)
        found += rows
        with suppress(IndexError):
            found.append(made.ready.popleft())
    assert found + made.fetch(None) == [(number,) for number in range(1, 9)]
    assert made.row_count == 8


def test_rows_of_a_chunk_that_was_begun_go_with_the_result() -> None:
    made = reading([[1, 2, 3], [4]])
    assert made.fetch(2) == [(1,), (2,)]
    made.close()
    with pytest.raises(InterfaceError, match="closed"):
        made.fetch(1)
    assert not made.ready


def test_rows_that_were_returned_are_not_held() -> None:
    class Value:
        pass

    seen: list[weakref.ref[Value]] = []

    def chunks() -> Iterator[list[tuple[Value]]]:
        for _ in range(2):
            rows = [(Value(),), (Value(),)]
            seen.extend(weakref.ref(value) for (value,) in rows)
            yield rows
            del rows

    made = Read(chunks, lambda: iter(()), lambda: None)
    assert [len(made.fetch(count)) for count in (3, 1)] == [3, 1]
    assert made.fetch(1) == []
    assert [each() for each in seen] == [None] * 4


def test_ten_threads_get_each_row_once() -> None:
    made = reading([list(range(start, start + 97)) for start in range(0, 97 * 60, 97)])
    got: list[tuple[int]] = []
    failed: list[BaseException] = []

    def one_by_one() -> None:
        while True:
            try:
                got.append(made.ready.popleft())
            except IndexError:
                if not (rows := made.fetch(1)):
                    return
                got.extend(rows)

    def many() -> None:
        while rows := made.fetch(13):
            got.extend(rows)

    def run(use: Callable[[], None]) -> None:
        try:
            use()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=((one_by_one, many)[i % 2],)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert failed == []
    assert sorted(got) == [(number,) for number in range(97 * 60)]


def test_whoever_reads_while_it_is_closed_hears_of_it() -> None:
    def chunks() -> Iterator[list[int]]:
        yield [1]
        made.close()  # as another thread would
        yield [2]

    made = reading(chunks())
    with pytest.raises(InterfaceError, match="closed"):
        made.fetch(None)


def test_a_result_that_is_abandoned_waits_for_nothing() -> None:
    class Waiting(Read):
        def close(self) -> None:
            raise AssertionError("a finalizer waits")

    ended: list[bool] = []
    one = Waiting(lambda: iter([[(1,), (2,)]]), lambda: iter(()), lambda: ended.append(True))
    assert one.fetch(1) == [(1,)]
    one.abandon()
    assert ended == [True]
    with pytest.raises(InterfaceError):
        one.fetch(1)
