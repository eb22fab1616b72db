"""The options of ``format("icesql")``: known by name, checked, none ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.errors import (
    ProgrammingError,
    UnsupportedSqlError,
)
from tests.datasource.reads import Query, planned, source
from tests.tables import read_table
from tests.writer.table import TableWriter

READS = {"read": planned, "stream": Query}


@pytest.mark.parametrize(("read", "options", "text"), read_table(__file__, "options.tsv"))
def test_options_are_checked(table: TableWriter, read: str, options: str, text: str) -> None:
    given = dict(each.split("=") for each in options.split("; "))
    with pytest.raises(ProgrammingError, match=text):
        READS[read](table, **given)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("start-timestamp", "changelog"),
        ("versionAsOf", "snapshot-id"),
        ("paths", "one table"),
        ("owner", "VIEW"),
    ],
)
def test_options_of_other_readers_are_refused_by_name(name: str, text: str) -> None:
    from icesql.datasource.options import read_options

    with pytest.raises(UnsupportedSqlError, match=f"{name}.*{text}"):
        read_options({"path": "a/b", name: "1"})


def test_values_of_unknown_options_are_not_repeated(table: TableWriter) -> None:
    with pytest.raises(ProgrammingError, match="no option") as raised:
        source(table, secret_key="hush-hush")
    assert "hush-hush" not in str(raised.value)
    with pytest.raises(ProgrammingError, match="register_spark") as raised:
        source(table, uri="postgresql://me:hush-hush@host/db")
    assert "hush-hush" not in str(raised.value)


def test_options_win_over_what_was_registered(warehouse: Path) -> None:
    from icesql.datasource.table import ReadRequest

    options = {"path": "shop.customers", "warehouse": str(warehouse)}
    found = ReadRequest.of(options, {"warehouse": "/nowhere", "name": "x"})
    assert found.table().identifier == ("shop", "customers")
