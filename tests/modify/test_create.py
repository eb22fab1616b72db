"""CREATE TABLE and related statements, through the catalogs that icesql writes to."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import namespace_place, table_to_change

BOTH = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)


@BOTH
@pytest.mark.parametrize("tolerant", [True, False])
def test_a_schema_that_another_makes_in_between(
    catalog: dict[str, Any], tolerant: bool, monkeypatch
) -> None:
    with icesql.connect(**catalog) as con, icesql.connect(**catalog) as other:
        opened = namespace_place(con._session.state.names, ("between",))[0]
        make = opened.create_namespace

        def late(namespace: Any) -> None:
            monkeypatch.undo()
            other.execute("CREATE SCHEMA between")
            make(namespace)

        monkeypatch.setattr(opened, "create_namespace", late)
        if tolerant:
            assert con.execute("CREATE SCHEMA IF NOT EXISTS between").notes
        else:
            with pytest.raises(errors.CatalogError, match="already exists"):
                con.execute("CREATE SCHEMA between")
        assert ("between",) in opened.namespaces()


# ------------------------------------------------------------------ permissions


def test_a_registered_table_has_no_catalog(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    location = table_to_change(con._session.state.names, ("s", "t"))[1].metadata_location
    con.register_table("r", location)
    with pytest.raises(errors.UnsupportedTableError, match="registered by its path"):
        con.execute("INSERT INTO r VALUES (1)")
