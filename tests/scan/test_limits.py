"""Limits on what a query may read: refused after planning, before any data is read."""

from __future__ import annotations

from typing import Any

import pytest

import icesql

SUM = "SELECT sum(amount) FROM shop.orders"


def refused(connection: Any, sql: str) -> str:
    with pytest.raises(icesql.ScanLimitError) as caught:
        connection.execute(sql)
    return str(caught.value)


def test_files_are_counted_over_all_scans(connection: Any) -> None:
    files = len(connection.execute("SELECT file_path FROM shop.orders.files").fetchall())
    assert files > 1
    connection.execute(f"SET max_scan_files = {files}")
    rows = connection.execute(SUM).fetchall()
    said = refused(connection, f"{SUM} UNION ALL {SUM}")
    assert f"would read {2 * files} files, which is more than max_scan_files = {files}" in said
    connection.execute("SET max_scan_files = 1")
    refused(connection, SUM)
    connection.execute("RESET max_scan_files")
    assert connection.execute(SUM).fetchall() == rows


def test_what_reads_less_is_allowed(connection: Any) -> None:
    connection.execute("SET max_scan_files = 1")
    one = f"{SUM} WHERE region = 'eu' AND ordered_on = DATE '2026-01-02'"
    assert connection.execute(one).fetchall()
    # Answers from metadata, and metadata tables, read no data file.
    assert connection.execute("SELECT count(*) FROM shop.orders").fetchall() == [(39,)]
    assert len(connection.execute("SELECT file_path FROM shop.orders.files").fetchall()) > 1


def test_bytes_are_those_of_the_projected_columns(connection: Any) -> None:
    connection.execute("SET max_scan_bytes = '1kB'")
    said = refused(connection, "SELECT * FROM shop.orders")
    assert "bytes, which is more than max_scan_bytes = 1,024" in said
    assert connection.execute("SELECT sum(id) FROM shop.orders").fetchall()[0][0] > 0


def test_a_partition_filter_can_be_required(connection: Any) -> None:
    connection.execute("SET require_partition_filter = on")
    for sql in (SUM, f"{SUM} WHERE id < 5", f"{SUM} WHERE region = 'eu' OR id = 3"):
        said = refused(connection, sql)
        assert "no filter on the partition columns of shop.orders" in said
        assert "filter by ordered_on (identity) or region (identity)" in said
    for sql in (f"{SUM} WHERE region = 'eu'", f"{SUM} WHERE ordered_on > DATE '2026-01-01'"):
        assert connection.execute(sql).fetchall()
    # A table without partitions has nothing to filter by.
    assert connection.execute("SELECT name FROM shop.customers").fetchall()
    connection.execute("SET prune = off")
    assert "prune is off" in refused(connection, f"{SUM} WHERE region = 'eu'")


def test_explain_says_what_would_be_refused(connection: Any) -> None:
    connection.execute("SET max_scan_files = 1")
    cursor = connection.execute(f"EXPLAIN {SUM}")
    assert cursor.fetchall()
    assert any("not allowed to run: the query would read" in note for note in cursor.notes)
    refused(connection, f"EXPLAIN ANALYZE {SUM}")
    # The engine reads from the files for its plan.
    refused(connection, f"EXPLAIN (ENGINE) {SUM}")


def test_a_locked_limit_stays(warehouse: Any) -> None:
    settings = {"max_scan_files": "1"}
    with icesql.connect(warehouse=warehouse, settings=settings, service=True) as connection:
        with pytest.raises(icesql.AccessDeniedError):
            connection.execute("SET max_scan_files = 100")
        refused(connection, SUM)
