"""Views of catalogs: the choice of their SQL, the resolution of names, and restrictions."""

from __future__ import annotations

import shutil
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import (
    CorruptFileError,
    Error,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedSqlError,
    UnsupportedTableError,
)
from icesql.iceberg.metadata.views import parse_view
from tests.query.views.stored import metadata, write
from tests.tables import read_cases, read_table

ID = {"id": "long"}


@pytest.fixture(scope="module")
def folder(warehouse: Path, tmp_path_factory) -> Path:
    """The warehouse with views: in several dialects, over each other, and broken ones."""
    place = tmp_path_factory.mktemp("views") / "w"
    shutil.copytree(warehouse, place)
    for name, sql, columns, more in read_cases(__file__, "held_views.tsv", 2, 3):
        representations = literal_eval(sql.replace("{place}", str(place)))
        write(place, name, metadata(representations, columns, **more))
    return place


@pytest.fixture
def views(folder: Path) -> Iterator[Any]:
    """A connection that may read files."""
    with icesql.connect(warehouse=folder, files=True) as opened:
        yield opened


def rows(connection: Any, sql: str) -> list[Any]:
    return list(connection.execute(sql).fetchall())


@pytest.mark.parametrize(("view", "same"), read_table(__file__, "stored_views.tsv"))
def test_a_view_gives_the_rows_of_its_sql(views: Any, view: str, same: str) -> None:
    wanted = rows(views, f"FROM ({same}) ORDER BY ALL")
    if view == "shop.spark":
        years = rows(views, "SELECT id, strftime(ordered_on, '%Y') FROM shop.orders")
        wanted = [(*row[:2], dict(years)[row[0]]) for row in wanted]
    assert rows(views, f"SELECT * FROM {view} ORDER BY ALL") == wanted
    assert wanted


def test_the_sql_of_the_connections_own_dialect_comes_first(folder: Path) -> None:
    lowest = "SELECT min(id) FROM shop.both"
    for dialect, least in ((None, 1), ("duckdb", 1), ("spark", 1001)):
        with icesql.connect(warehouse=folder, dialect=dialect) as connection:
            first = rows(connection, "SELECT min(id) FROM shop.orders")[0][0]
            assert rows(connection, lowest) == [(first + least - 1,)]
            assert rows(connection, "SELECT a FROM shop.renamed WHERE a = 2") == [(2,)] or dialect
    with (
        icesql.connect(warehouse=folder, dialect="trino") as connection,
        pytest.raises(ProgrammingError, match="has SQL for: spark; this connection reads trino"),
    ):
        connection.execute("SELECT * FROM shop.spark")


def test_columns_are_those_of_the_schema(views: Any) -> None:
    cursor = views.execute("SELECT * FROM shop.renamed")
    assert [each[0] for each in cursor.description] == ["a", "b"]
    kinds = "SELECT typeof(i), typeof(s), typeof(f), typeof(d), typeof(t) FROM shop.wider"
    assert rows(views, kinds) == [("BIGINT", "BIGINT", "DOUBLE", "DECIMAL(9,3)", "VARCHAR")]


def test_conditions_choose_the_files_of_its_tables(views: Any) -> None:
    told = rows(views, "EXPLAIN SELECT id FROM shop.plain WHERE region = 'north'")
    same = "EXPLAIN SELECT id FROM shop.orders WHERE id > 1 AND region = 'north'"
    files = [line for (line,) in told if "files" in line]
    assert files == [line for (line,) in rows(views, same) if "files" in line]
    assert files


def test_a_view_sees_nothing_of_the_session(views: Any) -> None:
    before = rows(views, "SELECT * FROM shop.plain ORDER BY ALL")
    views.execute("CREATE TEMP VIEW orders AS SELECT 7 AS id, 'x' AS region")
    views.execute("USE shop")
    assert rows(views, "SELECT count(*) FROM orders") == [(1,)]
    assert rows(views, "SELECT * FROM plain ORDER BY ALL") == before
    assert rows(views, "SELECT count(*) FROM plain, orders") == [(len(before),)]
    views.execute("CREATE TEMP TABLE mine AS SELECT 1 AS id")
    views.register_table("mine", "/nowhere")
    with pytest.raises(TableNotFoundError, match=r'in view "shop\.outside"'):
        views.execute("SELECT * FROM shop.outside")
    views.execute("CREATE TEMP VIEW over AS SELECT count(*) AS n FROM plain")
    assert rows(views, "SELECT n FROM over") == [(len(before),)]


@pytest.mark.parametrize(("view", "kind", "message"), read_table(__file__, "broken_views.tsv"))
def test_what_a_view_cannot_be_is_told(views: Any, view: str, kind: str, message: str) -> None:
    with pytest.raises(getattr(icesql, kind)) as caught:
        views.execute(f"SELECT * FROM shop.{view}")
    assert message in str(caught.value)


def test_lists_of_names_tell_of_views(views: Any) -> None:
    assert ("shop.plain", False) in rows(views, "SHOW VIEWS")
    assert rows(views, "SHOW VIEWS FROM shop LIKE 'PL%'") == [("shop.plain", False)]
    assert "shop.plain" not in [name for (name,) in rows(views, "SHOW TABLES")]
    text = "SELECT id, region FROM orders WHERE id > 1"
    where = "WHERE table_schema = 'shop' AND table_name = 'plain'"
    held = f"SELECT table_catalog, view_definition FROM information_schema.views {where}"
    assert rows(views, held) == [("shop", text)]
    held = f"SELECT table_type FROM information_schema.tables {where}"
    assert rows(views, held) == [("VIEW",)]
    held = f"SELECT column_name, data_type FROM information_schema.columns {where} ORDER BY ALL"
    assert rows(views, held) == [("id", "long"), ("region", "string")]
    described = [("id", "long", True, 1, None, None), ("region", "string", True, 2, None, None)]
    assert rows(views, "DESCRIBE shop.plain") == described
    assert rows(views, "SELECT * FROM (DESCRIBE shop.plain)") == described
    assert rows(views, "SHOW COLUMNS FROM shop.plain LIKE 'R%'") == [
        ("region", "string", None, None)
    ]
    made = f'CREATE VIEW shop.plain ("id", "region") AS {text}'
    assert rows(views, "SHOW CREATE VIEW shop.plain") == [(made,)]
    told = {row[0]: row[1] for row in rows(views, "DESCRIBE EXTENDED shop.both")}
    assert (told["Dialects"], told["View Text"]) == ("spark, duckdb", "SELECT id FROM orders")
    renamed = rows(views, "SHOW TBLPROPERTIES shop.renamed")
    assert renamed == [("spark.query-column-names", "id,region")]
    with pytest.raises(UnsupportedSqlError, match="SHOW HISTORY of the view"):
        views.execute("SHOW HISTORY shop.plain")


def test_a_view_that_is_replaced_is_read_anew(folder: Path) -> None:
    with icesql.connect(warehouse=folder) as connection:
        for number in (1, 2, 3, 4):
            write(folder, "changing", metadata({"duckdb": f"SELECT {number}::BIGINT AS id"}, ID))
            assert rows(connection, "SELECT id FROM shop.changing") == [(number,)]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"format-version": 2}, UnsupportedTableError, "format version 2"),
        ({"current-version-id": 7}, CorruptFileError, "none of its versions"),
        ({"schemas": []}, CorruptFileError, "none of its schemas"),
        ({"versions": 3}, CorruptFileError, "versions"),
        ({"view-uuid": None}, CorruptFileError, "view-uuid"),
    ],
)
def test_metadata_that_is_broken_is_told(
    change: dict[str, Any], kind: type[Error], message: str
) -> None:
    import json

    made = {**metadata({"duckdb": "SELECT 1"}, ID), **change}
    with pytest.raises(kind, match=message):
        parse_view(json.dumps(made).encode(), "v.json")
