"""Folders are namespaces, and folders with metadata are tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icesql.catalog.directory import DirectoryCatalog
from icesql.errors import NotSupportedError, TableNotFoundError
from tests.catalog import tables


@pytest.fixture
def catalog(tmp_path: Path) -> DirectoryCatalog:
    for place in ("top", "sales/orders", "sales/eu/orders", "shop.db/items", "both/x", "both.db/y"):
        tables.write(tmp_path / place / "metadata/v1.metadata.json")
    (tmp_path / "sales/orders/data/p=1").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden/metadata").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("not a table")
    return DirectoryCatalog(str(tmp_path), "wh")


def test_namespaces_are_the_folders_at_every_depth(catalog: DirectoryCatalog) -> None:
    found = ["/".join(each) for each in catalog.namespaces()]
    assert found == ["both", "both.db", "empty", "sales", "sales/eu", "shop"]


def test_tables_are_folders_with_metadata(catalog: DirectoryCatalog) -> None:
    found = ["/".join(each) for each in catalog.tables()]
    assert found == ["both/x", "both.db/y", "sales/eu/orders", "sales/orders", "shop/items", "top"]
    assert catalog.tables(("sales",)) == [("sales", "orders")]
    assert catalog.tables(()) == [("top",)]
    assert catalog.tables(("nowhere",)) == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("top", "top"),
        ("sales/eu/orders", "sales/eu/orders"),
        ("shop/items", "shop.db/items"),
        ("shop.db/items", "shop.db/items"),
        ("both.db/y", "both.db/y"),
    ],
)
def test_a_table_is_loaded_by_its_folders(
    catalog: DirectoryCatalog, name: str, folder: str
) -> None:
    table = catalog.load(tuple(name.split("/")))
    assert "/".join(table.identifier) == name
    assert table.metadata_location == f"{catalog.folder}/{folder}/metadata/v1.metadata.json"


def test_case_may_differ_while_only_one_table_is_meant(catalog: DirectoryCatalog) -> None:
    assert catalog.load(("Sales", "ORDERS")).identifier == ("sales", "orders")
    tables.write(Path(catalog.folder) / "SALES/orders/metadata/v1.metadata.json")
    assert catalog.load(("SALES", "orders")).identifier == ("SALES", "orders")
    with pytest.raises(TableNotFoundError):
        catalog.load(("Sales", "ORDERS"))


def test_an_unknown_table_is_refused_with_the_nearest_names(catalog: DirectoryCatalog) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        catalog.load(("orders",))
    assert set(caught.value.similar) == {"sales.orders", "sales.eu.orders"}
    with pytest.raises(TableNotFoundError, match=r"shop\.items"):
        catalog.load(("shop", "item"))
    with pytest.raises(TableNotFoundError, match=r'warehouse .* has "both\.db"\."y"'):
        catalog.load(("zzz",))


@pytest.mark.parametrize("part", ["..", ".", "", "sales/orders", "a\0b"])
def test_names_do_not_climb_out_of_the_warehouse(catalog: DirectoryCatalog, part: str) -> None:
    with pytest.raises(TableNotFoundError):
        catalog.load((part, "orders"))


def test_a_load_sees_the_commit_that_was_made_meanwhile(catalog: DirectoryCatalog) -> None:
    assert catalog.load(("top",)).metadata_location.endswith("/v1.metadata.json")
    tables.write(Path(catalog.folder) / "top/metadata/v2.metadata.json")
    assert catalog.load(("top",)).metadata_location.endswith("/v2.metadata.json")


def test_folders_that_link_in_a_circle_are_walked_once(catalog: DirectoryCatalog) -> None:
    os.symlink(catalog.folder, f"{catalog.folder}/sales/back", target_is_directory=True)
    assert len(catalog.tables()) == 6


def test_dropping_is_refused_because_the_files_are_the_table(catalog: DirectoryCatalog) -> None:
    with pytest.raises(NotSupportedError, match="delete its files"):
        catalog.drop(("top",))
    assert ("top",) in catalog.tables()
