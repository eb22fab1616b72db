"""How results are read, whatever engine they are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icesql.engine.reading import Reading
from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import DataError, InterfaceError, QueryCancelledError

COLUMNS = (ResultColumn("x", ResultType("integer")),)


def reading(chunks: list[Any]) -> Reading:
    """Of rows and batches from lists of numbers; an exception among them is raised."""

    def rows() -> Iterator[list[tuple[int]]]:
        for chunk in chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            yield [(x,) for x in chunk]

    def batches() -> Iterator[pa.RecordBatch]:
        for chunk in rows():
            yield pa.record_batch([pa.array([x for (x,) in chunk], pa.int32())], names=["x"])

    return Reading(rows, batches)


def test_rows_come_as_many_as_asked_for_across_chunks() -> None:
    made = reading([[1, 2, 3], [], [4], [5, 6]])
    assert made.rows(2) == [(1,), (2,)]
    assert made.rows(3) == [(3,), (4,), (5,)]
    assert made.rows(None) == [(6,)]
    assert made.rows(None) == []


@pytest.mark.parametrize("count", [None, 5])
def test_rows_that_failed_have_not_ended(count: int | None) -> None:
    made = reading([[1, 2], DataError("bad"), [3]])
    assert made.rows(1) == [(1,)]
    for _ in range(2):
        with pytest.raises(DataError, match="bad"):
            made.rows(count)


def test_rows_that_were_interrupted_stay_cancelled() -> None:
    made = reading([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        made.rows(None)
    with pytest.raises(QueryCancelledError):
        made.rows(None)


def test_arrow_batches_that_failed_have_not_ended() -> None:
    reader = reading([[1], DataError("bad"), [3]]).arrow(lambda: COLUMNS)
    assert reader.read_next_batch().to_pylist() == [{"x": 1}]
    for _ in range(2):
        with pytest.raises(Exception, match="bad"):
            reader.read_next_batch()


def test_the_first_error_of_arrow_is_the_querys_own() -> None:
    with pytest.raises(DataError, match="bad"):
        reading([DataError("bad")]).arrow(lambda: COLUMNS)


def test_a_result_is_read_in_one_way_and_as_arrow_once() -> None:
    as_rows, as_arrow = reading([[1]]), reading([[1]])
    as_rows.rows(1)
    as_arrow.arrow(lambda: COLUMNS)
    with pytest.raises(InterfaceError, match="read as rows"):
        as_rows.arrow(lambda: COLUMNS)
    for again in (lambda: as_arrow.rows(1), lambda: as_arrow.arrow(lambda: COLUMNS)):
        with pytest.raises(InterfaceError, match="read as arrow"):
            again()


def test_a_closed_result_is_read_no_more() -> None:
    made = reading([[1]])
    made.close()
    with pytest.raises(InterfaceError, match="closed"):
        made.rows(None)
