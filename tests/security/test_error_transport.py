"""Spark workers send their errors as data behind a mark, never as code."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.engine.spark.worker import (
    CLASSES,
    decode_error,
    encode_error,
    new_mark,
    run,
    worker_error,
)
from tests.rows import rows_of
from tests.security.conftest import Canary

MARK = new_mark()
EXAMPLES = [
    errors.SqlSyntaxError("no", position=(3, 4), expected=("a", "b"), sql="x\ny\nz"),
    errors.TableNotFoundError("t", similar=("u", "v"), hint="h"),
    errors.ColumnNotFoundError("c", table="t"),
    errors.AmbiguousColumnError("c", candidates=("a.c", "b.c")),
    errors.SnapshotNotFoundError("1", table="t", oldest="0", newest="2"),
    errors.UnsupportedSqlError("it", hint="h", position=(1, 2)),
    errors.UnsupportedTableError("it", table="t", path="p"),
    errors.CorruptFileError("/p/'\"\\;{0}\n é \x00 \udc80", "bad", offset=7),
    errors.StorageError("p", "gone"),
    errors.MissingExtraError("it", extra="spark"),
    errors.DataError("1/0"),
    errors.InternalError(""),
]


def forged(data: bytes) -> str:
    return f"{MARK}{base64.b64encode(data).decode()};"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_crosses_whole(error: icesql.Error) -> None:
    text = f"Job aborted: Traceback …\n{worker_error(error, MARK)}\n\tat org.apache.spark.Some(Where.java)"
    text.encode("utf-8")
    found = decode_error(text, MARK)
    assert type(found) is type(error)
    assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))


def test_every_class_of_the_tree_crosses() -> None:
    def below(cls: type[icesql.Error]) -> set[type[icesql.Error]]:
        return {cls}.union(*map(below, cls.__subclasses__()))

    assert {each for each in below(icesql.Error) if each.__module__ == "icesql.errors"} == set(
        CLASSES.values()
    )


def test_a_class_of_another_crosses_as_the_nearest_of_icesql() -> None:
    class Private(errors.StorageError):
        pass

    assert type(decode_error(encode_error(Private("p", "x"), MARK), MARK)) is errors.StorageError


def test_only_the_mark_of_the_query_counts() -> None:
    real = encode_error(errors.DataError("real"), MARK)
    other = encode_error(errors.DataError("forged"), new_mark())
    assert decode_error(other, MARK) is None
    for text in (f"{other} {real}", f"{real} {other}"):
        assert str(decode_error(text, MARK)) == "real"
    assert decode_error("icesql-error:" + real.removeprefix(MARK), MARK) is None


def test_the_last_error_counts() -> None:
    first, last = (encode_error(errors.DataError(each), MARK) for each in ("first", "last"))
    assert str(decode_error(f"{first}\n{last}", MARK)) == "last"
    # One that was cut off is none.
    assert str(decode_error(f"{first}\n{last[:-5]}", MARK)) == "first"


@rows_of(__file__, "malformed_errors.tsv", "text", "times")
def test_what_is_malformed_is_no_error_of_icesql(text: str, times: str) -> None:
    assert decode_error(forged(text.encode("latin-1") * int(times)), MARK) is None


def test_a_pickle_behind_the_mark_itself_is_not_unpickled(canary: Canary) -> None:
    payload = pickle.dumps(canary)
    pickle.loads(payload)
    assert canary.path.exists(), "the payload works, so that the test proves something"
    canary.path.unlink()
    for text in (forged(payload), canary.pickled):
        assert decode_error(text, MARK) is None


def test_a_worker_says_its_errors_behind_the_mark_alone() -> None:
    def job() -> Any:
        yield 1
        raise errors.CorruptFileError("/p", "bad")

    batches = run(job, MARK)
    assert next(batches) == 1
    with pytest.raises(RuntimeError) as caught:
        next(batches)
    assert type(decode_error(str(caught.value), MARK)) is errors.CorruptFileError
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_marks_are_never_the_same() -> None:
    assert len({new_mark() for _ in range(1000)}) == 1000
