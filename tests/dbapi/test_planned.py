"""What is asked to be explained by others does not run, whatever stands before the query."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.dbapi.planned import explain_only
from icesql.errors import ProgrammingError

COUNT = "SELECT max(id) FROM shop.orders"


@pytest.mark.parametrize(
    "words",
    [
        "ANALYZE",
        "analyze",
        "(ANALYZE)",
        "( FORMAT json, ANALYZE )",
        "(ENGINE)",
        "(FORMAT html)",
        "FILE 'x.parquet'",
        "/* a /* nested */ comment */ ANALYZE",
        "(/**/ANALYZE/**/)",
        "-- a comment that ends with a carriage return\rANALYZE",
        "\u00a0\x0b\n\tANALYZE",
        "() ANALYZE",
    ],
)
def test_words_of_explain_are_refused(connection: Any, words: str) -> None:
    cursor = connection.cursor()
    with pytest.raises(ProgrammingError, match="without words of EXPLAIN"):
        explain_only(cursor, f"{words} {COUNT}")
    assert cursor.description is None


@pytest.mark.parametrize(
    "sql",
    [
        f"EXPLAIN ANALYZE {COUNT}",
        f"EXPLAIN {COUNT}",
        f"{COUNT}; {COUNT}",
        f"{COUNT}; EXPLAIN ANALYZE {COUNT}",
        f"\ufeffANALYZE {COUNT}",
        f"{{# no comment in DuckDB #}} ANALYZE {COUNT}",
        "DELETE FROM shop.orders",
        "ANALYZE shop.orders",
        "",
        ";",
    ],
)
def test_what_is_no_query_is_refused(connection: Any, sql: str) -> None:
    with pytest.raises(icesql.Error):
        explain_only(connection.cursor(), sql)


@pytest.mark.parametrize(
    "sql", [COUNT, f"({COUNT})", f"(({COUNT}))", f"/* x */ {COUNT}", f"WITH a AS ({COUNT}) FROM a"]
)
def test_a_query_is_planned(connection: Any, sql: str) -> None:
    cursor = explain_only(connection.cursor(), sql)
    (report,) = cursor.scan_reports
    assert report.total_data_manifests > 0
    shown = "\n".join(row[0] for row in cursor.fetchall())
    assert "scan 0: shop.orders" in shown
    assert "read:" not in shown
