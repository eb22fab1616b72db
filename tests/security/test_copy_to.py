"""COPY writes only where the owner of a connection allows it, and only results of accepted SQL."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import icesql
from tests.rows import rows_of
from tests.sessions import fetched


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@rows_of(__file__, "failing_queries.tsv", "query")
def test_a_query_that_fails_leaves_nothing(query: str, warehouse: Path, tmp_path: Path) -> None:
    with icesql.connect(warehouse=warehouse, copy_to=tmp_path) as connection:
        for ending in ("csv", "jsonl", "parquet", "arrow"):
            with pytest.raises(icesql.Error):
                connection.execute(f"COPY ({query}) TO '{tmp_path}/x.{ending}'")
    assert names(tmp_path) == []


def test_text_in_paths_names_and_options_stays_text(tmp_path: Path) -> None:
    odd = "a');COPY (SELECT 2) TO 'b.csv"
    with icesql.connect(copy_to=tmp_path) as connection:
        quoted = odd.replace("'", "''")
        connection.execute(
            f'COPY (SELECT 1 AS "x\') TO \'/tmp/y", 2 AS """") TO \'{tmp_path}/{quoted}\' '
            "(DELIMITER '|', NULLSTR ''') --')"
        )
        connection.execute(
            f"COPY (SELECT {{'a\"''': 1}} AS \"'\\\") TO '{tmp_path}/j' (FORMAT json, DATEFORMAT '''')"
        )
    assert names(tmp_path) == [odd, "j"]
    assert (tmp_path / odd).read_text() == 'x\') TO \'/tmp/y|""""\n1|2\n'
    assert (tmp_path / "j").read_text() == '{"\'\\\\":{"a\\"\'":1}}\n'


def test_cancelled_it_leaves_nothing_and_the_connection_works(tmp_path: Path) -> None:
    endless = (
        "SELECT sum(a.range + b.range) FROM range(10000000) a, range(100000) b GROUP BY a.range % 3"
    )
    with icesql.connect(copy_to=tmp_path) as connection:
        cursor = connection.cursor()
        threading.Timer(0.5, cursor.cancel).start()
        with pytest.raises(icesql.QueryCancelledError):
            cursor.execute(f"COPY ({endless}) TO '{tmp_path}/x.parquet'")
        assert names(tmp_path) == []
        connection.execute("SET query_timeout = 0.2")
        with pytest.raises(icesql.QueryCancelledError):
            connection.execute(f"COPY ({endless}) TO '{tmp_path}/x.csv'")
        assert names(tmp_path) == []
        connection.execute("RESET query_timeout")
        assert fetched(connection, f"COPY (SELECT 1) TO '{tmp_path}/x.csv'") == [(1,)]


def test_copies_of_tables_and_their_past(warehouse: Path, tmp_path: Path) -> None:
    with icesql.connect(warehouse=warehouse, copy_to=tmp_path, files=tmp_path) as connection:
        for place, source in enumerate(("shop.orders", "shop.orders VERSION AS OF 'opening'")):
            path = f"{tmp_path}/{place}.parquet"
            count = fetched(connection, f"COPY {source} TO '{path}' (COMPRESSION zstd)")
            rows = f"SELECT * FROM {source} ORDER BY ALL"
            assert fetched(connection, f"FROM '{path}' ORDER BY ALL") == (
                found := fetched(connection, rows)
            )
            assert count == [(len(found),)]
        cursor = connection.execute(f"COPY shop.orders TO '{tmp_path}/x.csv'")
        assert cursor.scan_reports[0].table_name == "shop.orders"
        counted = connection.execute(
            f"COPY (SELECT count(*) AS n FROM shop.orders) TO '{tmp_path}/n.json'"
        )
        assert counted.fetchall() == [(1,)]


def test_both_readers_write_the_same_rows(tmp_path: Path, warehouse: Path) -> None:
    with icesql.connect(warehouse=warehouse, copy_to=tmp_path) as connection:
        connection.execute(f"COPY shop.orders TO '{tmp_path}/a.csv'")
        connection.execute("SET local_reader = 'arrow'")
        connection.execute(f"COPY shop.orders TO '{tmp_path}/b.csv'")
    read = [sorted((tmp_path / name).read_text().splitlines()) for name in ("a.csv", "b.csv")]
    assert read[0] == read[1]
