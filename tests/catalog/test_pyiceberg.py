"""Every other catalog is PyIceberg's, set up by .pyiceberg.yaml, with errors in our words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from icesql.catalog.open import open_catalog
from icesql.catalog.pyiceberg import PyIcebergCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.writes.change import TableChange
from icesql.errors import CatalogError, NotSupportedError, StorageError, TableNotFoundError
from icesql.storage.open import Storage
from tests.rows import rows_of


@pytest.fixture
def home(tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose .pyiceberg.yaml knows three catalogs."""
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"""\
catalog:
  shop:
    type: sql
    uri: sqlite:///{warehouse}/catalog.db
  lake:
    type: rest
    uri: http://127.0.0.1:9
    token: t0psecret
  odd:
    type: nonsense
"""
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def foreign(warehouse: Path) -> Any:
    """The shared warehouse through PyIceberg, like a catalog of an unknown kind."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = PyIcebergCatalog(SqlCatalog("shop", uri=f"sqlite:///{warehouse}/catalog.db"), "shop")
    yield catalog
    catalog.close()


def test_a_configured_sqlite_catalog_is_opened_without_pyiceberg(home: Path) -> None:
    catalog = open_catalog("shop")
    assert isinstance(catalog, SqliteCatalog)
    assert ("shop", "orders") in catalog.tables()


def test_a_configured_name_wins_over_what_lies_in_the_warehouse_folder(
    home: Path, warehouse: Path
) -> None:
    """The warehouse is a property of the configured catalog; other names name the folder."""
    with pytest.raises(CatalogError, match="catalog lake"):
        open_catalog("lake", warehouse=warehouse).tables()
    assert isinstance(open_catalog("mine", warehouse=warehouse), SqliteCatalog)


def test_an_unknown_name_is_refused_with_the_configured_ones(home: Path) -> None:
    with pytest.raises(CatalogError, match="did you mean shop"):
        open_catalog("shops")
    with pytest.raises(CatalogError, match="configured are: lake, odd, shop"):
        open_catalog("zzzzzz")


def test_without_any_configuration_the_error_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CatalogError, match=r"\.pyiceberg\.yaml"):
        open_catalog("prod")


def test_a_wrong_kind_is_a_catalog_error(home: Path) -> None:
    with pytest.raises(CatalogError, match="odd"):
        open_catalog("odd")


def test_a_catalog_that_does_not_answer_is_a_catalog_error_without_secrets(home: Path) -> None:
    with pytest.raises(CatalogError, match="catalog lake") as caught:
        open_catalog("lake").tables()
    assert "t0psecret" not in str(caught.value)


def test_a_broken_configuration_file_is_a_catalog_error(home: Path) -> None:
    (home / ".pyiceberg.yaml").write_text("catalog: [")
    with pytest.raises(CatalogError, match=r"\.pyiceberg\.yaml"):
        open_catalog("shop")


@rows_of(__file__, "arguments_of_pyiceberg.tsv", "given", "refused")
def test_a_property_is_no_argument_of_pyicebergs_catalogs(
    home: Path, given: str, refused: str
) -> None:
    with pytest.raises(CatalogError, match=f'"{refused}" is no property.*--catalog NAME'):
        open_catalog(properties=json.loads(given))
    with (home / ".pyiceberg.yaml").open("a") as file:
        file.write(f"  mine: {given}\n")
    with pytest.raises(CatalogError, match=f'catalog mine: "{refused}" is no property'):
        open_catalog("mine")


def test_names_and_tables_are_those_of_the_catalog(foreign: PyIcebergCatalog) -> None:
    assert foreign.namespaces() == [("shop",)]
    assert foreign.tables() == foreign.tables(("shop",))
    assert ("shop", "orders") in foreign.tables()
    table = foreign.load(("shop", "orders"))
    assert table.name == "shop.orders"
    assert os.path.isfile(table.metadata_location)
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    assert table.storage.read(snapshot.manifest_list).startswith(b"Obj\x01")


def test_unknown_tables_bring_the_nearest_names(foreign: PyIcebergCatalog) -> None:
    assert foreign.load(("shop", "ORDERS")).identifier == ("shop", "orders")
    with pytest.raises(TableNotFoundError) as caught:
        foreign.load(("shop", "order"))
    assert caught.value.similar[0] == "shop.orders"
    with pytest.raises(TableNotFoundError):
        foreign.drop(("shop", "order"))


def test_commits_are_refused_where_no_safe_step_is_known(foreign: PyIcebergCatalog) -> None:
    change = TableChange((), (), Storage(), 0)
    foreign.kind = "hive"
    with pytest.raises(
        NotSupportedError, match=r"commits to shop\.orders in a catalog of type hive"
    ):
        foreign.swap(("shop", "orders"), "a", change)


def test_metadata_that_only_the_catalog_may_read_is_taken_from_its_answer(
    foreign: PyIcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = foreign.load(("shop", "types"))

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise StorageError("s3://private", "access denied")

    monkeypatch.setattr("icesql.catalog.pyiceberg.table_from_metadata", refuse)
    sent = foreign.load(("shop", "types"))
    assert sent.metadata.schema == direct.metadata.schema
    assert sent.metadata.current_snapshot_id == direct.metadata.current_snapshot_id
    assert sent.metadata.specs == direct.metadata.specs
    snapshot = sent.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    assert sent.storage.read(snapshot.manifest_list).startswith(b"Obj\x01")


def test_properties_of_the_catalogs_file_io_reach_the_storage(warehouse: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    inner = SqlCatalog(
        "shop", uri=f"sqlite:///{warehouse}/catalog.db", **{"s3.region": "eu-west-1"}
    )
    table = PyIcebergCatalog(inner, "shop").load(("shop", "orders"))
    assert table.storage.properties["s3.region"] == "eu-west-1"
    inner.close()
