"""A second writer: what it does to a table of rows that another statement is about to change."""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icesql.commit.attempts as attempts
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.table import Catalog, Table
from icesql.commit.rows import commit_row_delta
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile, FileContent


def opened(given: dict[str, Any], *name: str) -> tuple[Catalog, Table]:
    """The catalog of these arguments of ``connect``, and a table of it."""
    catalog: Catalog
    if "uri" in given:
        path = given["uri"].removeprefix("sqlite:///")
        catalog = SqliteCatalog(path, "c", properties={"warehouse": given["warehouse"]})
    else:
        catalog = DirectoryCatalog(given["warehouse"])
    return catalog, catalog.load(name)


def delete_by_key(
    given: dict[str, Any],
    keys: Sequence[int],
    *name: str,
    spec_id: int | None = None,
    partition: tuple[Any, ...] = (),
) -> None:
    """Commit an equality delete on field 1, a BIGINT, with bounds, as Flink does."""
    catalog, table = opened(given, *(name or ("s", "t")))
    path = f"{table.metadata.location}/data/eq-{uuid.uuid4()}.parquet"
    field = pa.field("id", pa.int64(), False, metadata={b"PARQUET:field_id": b"1"})
    local = path.removeprefix("file://")
    os.makedirs(os.path.dirname(local), exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(keys, pa.int64())}, schema=pa.schema([field])), local)
    spec = table.metadata.default_spec_id if spec_id is None else spec_id
    file = DataFile(
        FileContent.EQUALITY_DELETES, path, "PARQUET", spec, partition, len(keys),
        os.path.getsize(local),
        value_counts={1: len(keys)},
        null_value_counts={1: 0},
        lower_bounds={1: struct.pack("<q", min(keys))},
        upper_bounds={1: struct.pack("<q", max(keys))},
        equality_ids=(1,),
    )  # fmt: skip
    start = table.metadata.current_snapshot_id
    query = QueryContext()
    commit_row_delta(catalog, table, deletes=[file], start_id=start, command="delete", query=query)


def before_next_commit(monkeypatch: Any, action: Callable[[], Any]) -> None:
    """Have ``action`` done after the files of the next commit are written, and before it."""
    real = attempts._tried

    def once(*given: Any) -> Any:
        monkeypatch.setattr(attempts, "_tried", real)
        action()
        return real(*given)

    monkeypatch.setattr(attempts, "_tried", once)
