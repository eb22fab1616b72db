"""``connection.columns(name)`` takes a name and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.writer.fields import fields
from tests.writer.table import TableWriter

ODD = ['a "quoted" one', "with space", "2024-orders", "select", "a; SET timezone = 'X'", "t --"]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    table = TableWriter(tmp_path, fields("x long"))
    table.commit([table.data_file([{"x": 1}])])
    with icesql.connect() as connection:
        for name in ODD:
            connection.register_table(name, table.metadata_path)
        yield connection


def test_every_name_that_tables_gives_can_be_asked_for(con: Any) -> None:
    assert set(con.tables()) == set(ODD)
    for name in con.tables():
        assert con.columns(name) == ["x"]


def test_names_of_a_catalog(connection: Any) -> None:
    expected = ["id", "name"]
    assert connection.columns("shop.customers") == expected
    assert connection.columns('"shop"."customers"') == expected
    assert connection.columns('shop."customers"') == expected


@pytest.mark.parametrize(
    "name",
    [
        "shop.customers; SET timezone = 'Europe/Vienna'",
        "iceberg_scan('/etc/passwd')",
        '"shop"."customers" VERSION AS OF 1',
        "shop.customers -- and more",
        "",
        '"',
        ".",
    ],
)
def test_text_that_is_no_name_is_no_table(connection: Any, name: str) -> None:
    with pytest.raises(icesql.TableNotFoundError):
        connection.columns(name)
    assert connection.settings.timezone == "UTC"
