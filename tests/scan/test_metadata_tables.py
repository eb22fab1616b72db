"""Metadata tables show manifests and metadata JSON; PyIceberg's inspect is the reference."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icesql
from icesql.iceberg import types as t
from icesql.iceberg.bounds import minimal_twos_complement
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.metadata_tables.schemas import (
    OF_A_SNAPSHOT,
    OF_ALL_SNAPSHOTS,
    SUFFIXES,
    metrics_reader,
    metrics_type,
)
from tests.rows import rows_of


def _inspect(warehouse: Path, name: str) -> pa.Table:
    catalog = SqlCatalog("shop", uri=f"sqlite:///{warehouse}/catalog.db")
    return getattr(catalog.load_table("shop.orders").inspect, name)()


def _rows(table: pa.Table, columns: list[str]) -> list[Any]:
    return sorted(map(repr, table.select(columns).to_pylist(maps_as_pydicts="strict")))


@rows_of(__file__, "inspected.tsv", "name", "columns")
def test_tables_say_what_pyiceberg_says(
    warehouse: Path, connection: Any, name: str, columns: str
) -> None:
    expected = _inspect(warehouse, name)
    found = connection.execute(f"SELECT {columns} FROM shop.orders.{name}").arrow()
    assert _rows(found, found.column_names) == _rows(expected, found.column_names)
    assert found.num_rows > 0


@pytest.mark.parametrize("name", sorted(SUFFIXES))
def test_every_table_is_read_whole_and_counted(connection: Any, name: str) -> None:
    rows = connection.execute(f"SELECT * FROM shop.orders.{name}").fetchall()
    counted = connection.execute(f"SELECT count(*) FROM shop.orders.{name}").fetchall()
    assert counted == [(len(rows),)]
    assert rows or name in ("delete_files", "all_delete_files", "position_deletes")


@pytest.mark.parametrize("name", sorted(OF_ALL_SNAPSHOTS & SUFFIXES))
def test_what_shows_all_snapshots_is_not_travelled(connection: Any, name: str) -> None:
    with pytest.raises(icesql.UnsupportedSqlError, match="shows the whole history") as caught:
        connection.execute(f"SELECT * FROM shop.orders.{name} VERSION AS OF 'opening'")
    assert caught.value.position == (1, 15)


@pytest.mark.parametrize("name", sorted(OF_A_SNAPSHOT & SUFFIXES - {"position_deletes"}))
def test_what_shows_one_snapshot_is(connection: Any, name: str) -> None:
    then = connection.execute(f"SELECT * FROM shop.orders.{name} VERSION AS OF 'opening'")
    now = connection.execute(f"SELECT * FROM shop.orders.{name}")
    assert len(then.fetchall()) < len(now.fetchall()) or name == "delete_files"


def test_a_filter_on_partitions_skips_manifests_and_loses_no_row(connection: Any) -> None:
    sql = "SELECT file_path FROM shop.orders.files WHERE \"partition\".region = 'eu' ORDER BY ALL"
    pruned = connection.execute(sql).fetchall()
    connection.execute("SET prune = off")
    assert connection.execute(sql).fetchall() == pruned
    assert pruned


def test_readable_metrics_have_the_types_of_their_columns(connection: Any) -> None:
    row = connection.execute(
        "SELECT min(readable_metrics.id.lower_bound), max(readable_metrics.id.upper_bound),"
        " sum(readable_metrics.id.value_count) FROM shop.orders.files"
    ).fetchone()
    low, high, count = connection.execute(
        "SELECT min(id), max(id), count(*) FROM shop.orders"
    ).fetchone()
    assert row == (low, high, count)


def test_duckdbs_functions_take_a_name_too(warehouse: Path, connection: Any) -> None:
    path = str(warehouse / "shop" / "orders")
    for function in ("iceberg_snapshots", "iceberg_metadata", "iceberg_scan"):
        expected = connection.execute(f"SELECT * FROM {function}(?)", [path]).fetchall()
        for name in ("shop.orders", 'shop."orders"'):
            named = connection.execute(f"SELECT * FROM {function}(?)", [name]).fetchall()
            assert expected
            assert sorted(map(repr, named)) == sorted(map(repr, expected))
    connection.execute("USE shop")
    assert connection.execute("SELECT * FROM iceberg_snapshots('orders')").fetchall()
    with pytest.raises(icesql.TableNotFoundError, match="did you mean"):
        connection.execute("SELECT * FROM iceberg_snapshots('shop.order')")
    with pytest.raises(icesql.TableNotFoundError):
        connection.execute("SELECT * FROM iceberg_metadata('shop.orders.files')")


def test_a_name_needs_no_leave_to_read_paths(warehouse: Path) -> None:
    with icesql.connect(warehouse=str(warehouse), tables_by_path=False) as opened:
        assert opened.execute("SELECT * FROM iceberg_snapshots('shop.orders')").fetchall()
        for path in ("shop.nothing", "./shop/orders"):
            with pytest.raises(icesql.Error, match="no table may be read by this path"):
                opened.execute(f"SELECT * FROM iceberg_snapshots('{path}')")


def test_duckdbs_functions_are_understood(warehouse: Path, connection: Any) -> None:
    path = str(warehouse / "shop" / "orders")
    snapshots = connection.execute(
        "SELECT snapshot_id FROM iceberg_snapshots(?) ORDER BY sequence_number", [path]
    ).fetchall()
    assert (
        snapshots
        == connection.execute(
            "SELECT snapshot_id FROM shop.orders.snapshots ORDER BY committed_at"
        ).fetchall()
    )
    assert (
        connection.execute(
            "SELECT sum(record_count) FROM iceberg_metadata(?) WHERE status <> 'DELETED'", [path]
        ).fetchall()
        == connection.execute("SELECT count(*) FROM shop.orders").fetchall()
    )


def test_a_table_of_such_a_name_wins(tmp_path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    catalog.create_namespace("a.t")
    data = pa.table({"x": pa.array([1], pa.int64())})
    catalog.create_table("a.t", data.schema).append(data)
    catalog.create_table("a.t.snapshots", data.schema).append(data)
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        assert opened.execute("SELECT * FROM a.t.snapshots").fetchall() == [(1,)]
        assert opened.execute("SELECT count(*) FROM a.t.refs").fetchall() == [(1,)]


def test_a_metadata_table_has_no_metadata_columns(connection: Any) -> None:
    with pytest.raises(icesql.ProgrammingError):
        connection.execute("SELECT _file FROM shop.orders.files")


def test_explain_names_the_metadata_table(connection: Any) -> None:
    lines = connection.execute("EXPLAIN SELECT file_path FROM shop.orders.files").fetchall()
    text = "\n".join(line for (line,) in lines)
    assert "shop.orders.files" in text
    assert "columns: file_path" in text


def test_rows_are_made_while_they_are_read_and_no_more_of_them_than_a_limit(
    warehouse: Path, monkeypatch
) -> None:
    opened: list[str] = []
    decoded = ManifestReader._entries

    def counted(self: Any, manifest: Any, *rest: Any) -> Any:
        opened.append(manifest.manifest_path)
        return decoded(self, manifest, *rest)

    monkeypatch.setattr(ManifestReader, "_entries", counted)
    with icesql.connect(warehouse=str(warehouse)) as connection:
        connection.execute("EXPLAIN SELECT * FROM shop.orders.entries")
        assert not opened
        rows = connection.execute("SELECT status FROM shop.orders.entries LIMIT 1").fetchall()
        assert (len(rows), len(opened)) == (1, 1)
        opened.clear()
        rows = connection.execute("SELECT a.status FROM shop.orders.entries a").fetchall()
        assert len(rows) > len(opened) > 1


def test_more_rows_than_a_batch_are_all_there(warehouse: Path, monkeypatch) -> None:
    sql = "SELECT * FROM shop.orders.entries ORDER BY data_file.file_path, status, snapshot_id"
    with icesql.connect(warehouse=str(warehouse)) as connection:
        expected = connection.execute(sql).fetchall()
        monkeypatch.setattr("icesql.read.metadata_table._BATCH_ROWS", 2)
        assert connection.execute(sql).fetchall() == expected
    assert len(expected) > 4


def test_a_bound_of_more_digits_than_its_column_has_is_null() -> None:
    """Other writers add files of wider decimals, whose bounds no column of the table can hold."""
    schema = Schema((t.NestedField(1, "d", t.DecimalType(9, 2)),))
    struct = metrics_type(schema, iter(range(100, 200)))
    bounds = {1: minimal_twos_complement(1234567890125)}
    file = DataFile(
        FileContent.DATA, "x", "PARQUET", 0, (), 1, 1, lower_bounds={1: b"\x7d"},
        upper_bounds=bounds,
    )  # fmt: skip
    (values,) = metrics_reader(schema, struct)(file).values()
    assert list(values.values())[-2:] == [Decimal("1.25"), None]
