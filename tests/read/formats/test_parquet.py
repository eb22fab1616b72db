"""Parquet files: splits, row-group pruning, positions and damage."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import (
    CorruptFileError,
    QueryCancelledError,
    StorageError,
    UnsupportedTableError,
)
from icesql.iceberg.expressions.predicate import And, Operation, Or, Predicate, evaluate
from icesql.iceberg.schema import POS
from icesql.iceberg.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
)
from icesql.read.formats.open import open_reader
from icesql.read.task import read_file, read_task
from icesql.scan.tasks import FileScanTask
from tests.read.read_tables import (
    arrow_field,
    column,
    context,
    data_file,
    leaf,
    position_deletes,
    rows,
    task_of,
    values,
    whole,
    write_parquet,
)

A = "1 a long"


def test_every_row_belongs_to_exactly_one_split_however_the_file_is_cut(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(1000))], rows_per_group=90)
    file = data_file(path)
    size = file.file_size_in_bytes
    scan = context(A)
    for step in (1, 7, 100, 333, size - 1, size):
        cuts = [*range(0, size, step)]
        tasks = [FileScanTask(file, start, min(step, size - start)) for start in cuts]
        assert sorted(values(scan, *tasks)) == [*range(1000)], step


def test_a_wrong_file_size_in_the_manifest_loses_no_rows(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(1000))], rows_per_group=90)
    file = data_file(path, file_size_in_bytes=1000)
    halves = [FileScanTask(file, 0, 500), FileScanTask(file, 500, 500)]
    assert values(A, *halves) == [*range(1000)]


def test_positions_count_row_groups_that_are_skipped(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(1000))], rows_per_group=100)
    file = data_file(path)
    scan = context(A, projection=[POS])
    residual = Or(leaf(Operation.EQ, 1, 250), leaf(Operation.GT, 1, 997))
    deletes = position_deletes(tmp_path, [(path, 250), (path, 998)])
    assert values(scan, whole(file, residual=residual)) == [250, 998, 999]
    assert values(scan, whole(file, [deletes], residual)) == [999]


def test_row_groups_outside_the_residual_are_not_read(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(1000))], rows_per_group=100)
    scan = context(A)
    source = open_reader(data_file(path), scan)
    batches = source.batches(source.fields, predicate=leaf(Operation.EQ, 1, 250))
    assert [(batch.first, batch.count) for batch in batches] == [(200, 100)]
    source.close()


def test_batches_hold_at_most_65536_rows(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(200_000))])
    sizes = [batch.num_rows for batch in read_task(task_of(A, path))]
    assert max(sizes) <= 65_536
    assert sum(sizes) == 200_000


def test_no_columns_still_give_the_number_of_live_rows(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(100_000))])
    deletes = position_deletes(tmp_path, [(path, 5)])
    scan = context(A, projection=[])
    task = task_of(scan, whole(data_file(path), [deletes]))
    assert sum(batch.num_rows for batch in read_task(task)) == 99_999


def test_two_level_lists_are_read(tmp_path) -> None:
    path = write_parquet(
        tmp_path,
        "1 l list<2 int>",
        [[[1, 2], [], None]],
        use_compliant_nested_type=False,
    )

    scan = context("1 l list<2 long>")
    assert values(scan, path) == [[1, 2], [], None]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_codecs(tmp_path, codec: str) -> None:
    path = write_parquet(tmp_path, A, [[1, 2]], compression=codec)
    assert values(A, path) == [1, 2]


# ------------------------------------------------------------------ residuals and pruning

COLUMNS: dict[int, tuple[Any, pa.DataType, st.SearchStrategy[Any]]] = {
    1: (LONG, pa.int32(), st.integers(-3, 3)),
    2: (DOUBLE, pa.float64(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf])),
    3: (STRING, pa.string(), st.sampled_from(["", "a", "ab", "é", "\U0001f600", "zz"])),
    4: (
        DecimalType(20, 2),
        pa.decimal128(9, 2),
        st.sampled_from([Decimal(n) / 4 for n in (-4, 0, 5)]),
    ),
    5: (DATE, pa.date32(), st.integers(-2, 2)),
    6: (TIMESTAMP, pa.timestamp("ms"), st.integers(-2000, 2000)),
    7: (BINARY, pa.binary(), st.sampled_from([b"", b"\x00", b"\xff\xff", b"ab"])),
    8: (FLOAT, pa.float32(), st.sampled_from([math.nan, 0.0, -1.5, 2.0])),
    9: (TIMESTAMP, pa.date32(), st.integers(-2, 2)),
}
FIELDS = [arrow_field(f"c{key}", stored, key) for key, (_, stored, _) in COLUMNS.items()]
SCHEMA = [column(key, f"c{key}", type) for key, (type, _, _) in COLUMNS.items()]
DAY = 86_400_000_000


def internal(key: int, value: Any) -> Any:
    """A stored test value in the internal form of its column."""
    if value is None:
        return None
    return {6: lambda v: v * 1000, 9: lambda v: v * DAY}.get(key, lambda v: v)(value)


def stored_array(key: int, column_values: list[Any]) -> pa.Array:
    type = COLUMNS[key][1]
    if key in (5, 9):
        return pa.array(column_values, pa.int32()).view(type)
    if key == 6:
        return pa.array(column_values, pa.int64()).view(type)
    return pa.array(column_values, type)


row_groups = st.lists(
    st.lists(
        st.tuples(*(st.none() | strategy for _, _, strategy in COLUMNS.values())),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=3,
)
COMPARISONS = [
    Operation.LT,
    Operation.LT_EQ,
    Operation.GT,
    Operation.GT_EQ,
    Operation.EQ,
    Operation.NOT_EQ,
]


@st.composite
def a_leaf(draw: st.DrawFn) -> Predicate:
    key = draw(st.sampled_from(sorted(COLUMNS)))
    literals = COLUMNS[key][2].filter(lambda value: value == value).map(lambda v: internal(key, v))
    choices = [*COMPARISONS, Operation.IN, Operation.NOT_IN, Operation.IS_NULL, Operation.NOT_NULL]
    if key == 3:
        choices += [Operation.STARTS_WITH, Operation.NOT_STARTS_WITH]
    if key in (2, 8):
        choices += [Operation.IS_NAN, Operation.NOT_NAN]
    operation = draw(st.sampled_from(choices))
    if operation in (Operation.IN, Operation.NOT_IN):
        return leaf(operation, key, frozenset(draw(st.lists(literals, min_size=1, max_size=3))))
    if operation in (
        Operation.IS_NULL,
        Operation.NOT_NULL,
        Operation.IS_NAN,
        Operation.NOT_NAN,
    ):
        return leaf(operation, key)
    return leaf(operation, key, draw(literals))


predicates = st.recursive(
    a_leaf(),
    lambda inner: st.builds(And, inner, inner) | st.builds(Or, inner, inner),
    max_leaves=4,
)


@settings(max_examples=150)
@given(groups=row_groups, predicate=predicates)
def test_residuals_keep_exactly_the_rows_that_satisfy_them(
    tmp_path_factory,
    groups: list[list[tuple[Any, ...]]],
    predicate: Predicate,
) -> None:
    path = str(tmp_path_factory.mktemp("residual") / "f.parquet")
    schema = pa.schema(FIELDS)
    with pq.ParquetWriter(path, schema) as writer:
        for group in groups:
            arrays = [
                stored_array(key, [row[place] for row in group])
                for place, key in enumerate(COLUMNS)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    everything = [row for group in groups for row in group]
    expected = [
        position
        for position, row in enumerate(everything)
        if evaluate(
            predicate, {key: internal(key, row[place]) for place, key in enumerate(COLUMNS)}.get
        )
    ]
    scan = context(SCHEMA, projection=[POS])
    assert values(scan, whole(data_file(path), residual=predicate)) == expected


def test_a_residual_on_a_column_the_file_lacks_sees_the_default(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [[1, 2]])
    scan = context(
        [column(1, "a"), column(2, "b", initial_default=5), column(3, "c")],
        projection=A,
    )
    file = data_file(path)
    assert values(scan, whole(file, residual=leaf(Operation.EQ, 2, 5))) == [1, 2]
    assert values(scan, whole(file, residual=leaf(Operation.EQ, 2, 6))) == []
    assert values(scan, whole(file, residual=leaf(Operation.IS_NULL, 3))) == [1, 2]
    assert values(scan, whole(file, residual=leaf(Operation.GT, 3, 0))) == []


def test_a_residual_reaches_into_a_struct(tmp_path) -> None:
    stored = "1 s struct<2 x long>"
    path = write_parquet(tmp_path, stored, [[{"x": 1}, None, {"x": 5}]], rows_per_group=1)
    scan = context("1 s struct<2 x long>")
    file = data_file(path)
    assert values(scan, whole(file, residual=leaf(Operation.GT, 2, 2))) == [{"x": 5}]
    assert values(scan, whole(file, residual=leaf(Operation.IS_NULL, 2))) == [None]


def test_a_transformed_term_filters_nothing_here(tmp_path) -> None:
    from icesql.iceberg.expressions.predicate import Leaf, Term

    path = write_parquet(tmp_path, A, [[1, 2]])
    bucket = Leaf(Operation.EQ, Term(1, "a", "bucket[4]"), 3)
    assert values(A, whole(data_file(path), residual=bucket)) == [1, 2]


# ------------------------------------------------------------------ trouble


def test_a_missing_file_is_a_storage_error_that_names_it(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [[1]])
    file = data_file(path)
    Path(path).unlink()
    with pytest.raises(StorageError) as raised:
        rows(A, file)
    assert raised.value.path == path


def test_an_encrypted_file_is_refused(tmp_path) -> None:
    file = data_file(write_parquet(tmp_path, A, [[1]]), key_metadata=b"k")
    with pytest.raises(UnsupportedTableError, match="encryption"):
        rows(A, file)


def test_a_file_with_other_rows_than_the_manifest_counts_is_corrupt(tmp_path) -> None:
    file = data_file(write_parquet(tmp_path, A, [[1]]), record_count=2)
    with pytest.raises(CorruptFileError, match="holds 1 rows, the manifest counts 2"):
        rows(A, file)


def test_damage_is_a_corrupt_file_or_the_same_rows(tmp_path) -> None:
    import random

    fields = "1 a long, 2 b string"
    path = Path(
        write_parquet(
            tmp_path,
            fields,
            [list(range(500)), [str(n) * 3 for n in range(500)]],
            rows_per_group=100,
            write_page_checksum=True,
        )
    )
    whole_bytes = path.read_bytes()
    file = data_file(str(path))
    scan = context("1 a long, 2 b string")
    expected = rows(scan, file)
    dice = random.Random(5)
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole_bytes)
        at = dice.randrange(len(damaged))
        if dice.random() < 0.3:
            del damaged[at:]
        else:
            damaged[at : at + dice.randrange(1, 30)] = bytes(dice.randrange(1, 30))
        path.write_bytes(damaged)
        try:
            found = rows(scan, file)
        except (CorruptFileError, UnsupportedTableError) as error:
            refused += str(path) in str(error)
        else:
            # Footer statistics and key-value metadata do not touch rows.
            assert len(found) == len(expected)
    assert refused > 100


def test_a_bug_in_projection_surfaces_as_a_bug(tmp_path, monkeypatch) -> None:
    import icesql.read.columns.projection as projection

    def broken(*_: Any, **__: Any) -> Any:
        raise TypeError("a bug")

    monkeypatch.setattr(projection, "leaf_reader", broken)
    path = write_parquet(tmp_path, A, [[1]])
    with pytest.raises(TypeError, match="a bug"):
        rows(A, path)


def test_a_cancelled_query_stops_between_batches(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [list(range(200_000))])
    query = QueryContext(settings=Settings())
    scan = context(A)
    batches = read_file(whole(data_file(path)), scan, query)
    next(batches)
    query.cancel.set()
    with pytest.raises(QueryCancelledError):
        next(batches)


def test_closing_the_iterator_releases_the_file(tmp_path) -> None:
    import os

    path = write_parquet(tmp_path, A, [list(range(200_000))])

    def open_files() -> int:
        folder = Path("/proc/self/fd")
        return sum(os.path.realpath(each) == path for each in folder.iterdir())

    if not Path("/proc/self/fd").exists():
        pytest.skip("open files can be counted under /proc only")
    batches = read_task(task_of(A, path))
    next(batches)
    assert open_files() > 0
    batches.close()  # type: ignore[attr-defined]
    assert open_files() == 0


def test_tasks_survive_pickling(tmp_path) -> None:
    import pickle

    path = write_parquet(tmp_path, A, [[1, 2]])
    residual = leaf(Operation.GT, 1, 1)
    task = task_of(A, whole(data_file(path), residual=residual))
    (batch,) = read_task(pickle.loads(pickle.dumps(task)))
    assert batch.to_pylist() == [{"a": 2}]
