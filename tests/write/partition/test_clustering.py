"""Rows are divided in threads, and keep their order within each partition."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from icesql.errors import DataError
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.write import ordering
from icesql.write.ordering import Clusters, Piece, divide
from icesql.write.parquet_schema import parquet_schema
from tests.columns import columns

SCHEMA = Schema(columns("1 k long, 2 n long"))
IDENTITY = PartitionSpec(0, (PartitionField((1,), 1000, "identity", "k"),))
TRUNCATED = PartitionSpec(0, (PartitionField((1,), 1000, "truncate[10]", "k"),))


def batches(keys: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(keys), size):
        part = keys[start : start + size]
        columns = [pa.array(part), pa.array([*range(start, start + len(part))])]
        yield pa.RecordBatch.from_arrays(columns, schema=parquet_schema(SCHEMA))


@pytest.mark.parametrize("budget", [1, 4_000, 1 << 30])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_keep_their_order(tmp_path, monkeypatch, budget: int, threads: int) -> None:
    chance = random.Random(5)
    keys = [chance.randrange(7) for _ in range(2_000)]

    def slow(*given: Any) -> list[Piece]:
        time.sleep(chance.random() / 500)
        return divide(*given)

    monkeypatch.setattr(ordering, "divide", slow)
    monkeypatch.setattr(ordering, "_CHUNK_BYTES", 1_500)
    found: dict[int, list[int]] = {}
    with ThreadPoolExecutor(threads) as pool:
        clusters = Clusters(IDENTITY, SCHEMA, budget, str(tmp_path), pool)
        for each in batches(keys, 40):
            clusters.add(each)
        for piece in clusters.pieces(1 << 20):
            found.setdefault(piece.values[0], []).extend(piece.rows["n"].to_pylist())
        assert bool(clusters._runs) == (budget < 1 << 30)
        clusters.close()
    assert found == {key: [n for n, each in enumerate(keys) if each == key] for key in range(7)}
    # Partitions come in the order of their first rows.
    assert [*found] == [*dict.fromkeys(keys)]


def test_an_error_of_a_thread_is_raised(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ordering, "_CHUNK_BYTES", 1)
    with ThreadPoolExecutor(2) as pool:
        clusters = Clusters(TRUNCATED, SCHEMA, 1 << 20, str(tmp_path), pool)

        def take_all() -> None:
            for each in batches([*range(50), -(1 << 63), *range(50)], 10):
                clusters.add(each)
            list(clusters.pieces(1 << 20))

        with pytest.raises(DataError, match="no value under the partition transform"):
            take_all()
        clusters.close()
        clusters.close()
