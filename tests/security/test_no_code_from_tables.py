"""No property of a table, and none that a catalog's server sends, names code that runs here."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.configuration import names_code
from icesql.catalog.open import open_catalog
from icesql.catalog.pyiceberg import PyIcebergCatalog
from icesql.catalog.rest.server import configured
from icesql.catalog.rest.storage_properties import StorageCredential, storage_properties
from icesql.commit.file_changes import change_table
from icesql.errors import NotSupportedError
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.writes.swaps import database
from tests.commit.tables import create
from tests.sessions import answer, fetched

IMPLS = (
    "py-io-impl",
    "py-catalog-impl",
    "py-location-provider",
    "write.py-location-provider.impl",
    "s3.retry-strategy-impl",
    "io-impl",
)


class Loaded:
    """Names of attributes that were read from the module below, and of calls."""

    names: list[str] = []


class Trap(types.ModuleType):
    """A module in which every name is a function that records its calls."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        Loaded.names.append(name)
        return lambda *arguments, **named: Loaded.names.append(f"{name}()")


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setitem(sys.modules, "trap_of_the_test", Trap("trap_of_the_test"))
    Loaded.names = []
    yield "trap_of_the_test.Here"
    assert Loaded.names == [], "a name of a table's property was looked up"


@pytest.fixture
def prod(tmp_path: Path) -> dict[str, Any]:
    """Arguments of a catalog that PyIceberg drives, as it drives those of PostgreSQL and Hive."""
    properties = {
        "py-catalog-impl": "pyiceberg.catalog.sql.SqlCatalog",
        "uri": f"sqlite:///{tmp_path}/c.db",
        "warehouse": str(tmp_path / "wh"),
        "password": "pass-of-the-catalog",
        "s3.region": "eu-west-1",
    }
    return {"properties": properties}


def make_table(prod: dict[str, Any], properties: dict[str, str]) -> None:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    given = prod["properties"]
    theirs = SqlCatalog("prod", uri=given["uri"], warehouse=f"file://{given['warehouse']}")
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", Schema(NestedField(1, "a", LongType())))
    file = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(file.read_text())
    metadata["properties"] = properties
    file.write_text(json.dumps(metadata))
    theirs.close()


@pytest.mark.parametrize("access", [{}, {"service": True}])
@pytest.mark.parametrize("key", IMPLS)
def test_a_property_of_a_table_names_no_class(
    prod: dict[str, Any], trap: str, key: str, access: dict[str, Any]
) -> None:
    make_table(prod, {key: trap, "/victim": "", "--clear": ""})
    with icesql.connect(catalog="prod", **prod, **access) as connection:
        assert fetched(connection, "SELECT * FROM db.t") == []
        assert fetched(connection, "DESCRIBE db.t")


@pytest.mark.parametrize("impl", ["builtins.print", "sys.exit", "no.such.module", "nothing"])
def test_a_class_that_is_there_is_not_called_either(
    prod: dict[str, Any], impl: str, capfd: pytest.CaptureFixture[str]
) -> None:
    make_table(prod, {"py-io-impl": impl})
    assert answer("SELECT count(*) FROM db.t", catalog="prod", **prod, service=True) == [(0,)]
    assert "pass-of-the-catalog" not in "".join(capfd.readouterr())


def test_the_properties_of_a_table_open_no_files(prod: dict[str, Any]) -> None:
    """Each of these would send the user's own token, or what it signs, to the table's writer."""
    lures = {
        "s3.endpoint": "http://evil", "s3.proxy-uri": "http://evil", "s3.region": "evil",
        "gcs.service.host": "http://evil", "adls.blob-storage-authority": "evil",
        "client.profile-name": "evil", "s3.signer.uri": "http://evil", "DEFAULT_SCHEME": "s3",
        "header.X-Evil": "1", "hf.endpoint": "http://evil", "hdfs.host": "evil",
    }  # fmt: skip
    make_table(prod, lures)
    assert answer("SELECT * FROM db.t", catalog="prod", **prod) == []
    catalog = open_catalog("prod", **prod)
    table = catalog.load(("db", "t"))
    catalog.close()
    assert table.storage.properties["s3.region"] == "eu-west-1"
    assert "evil" not in str(table.storage.properties)
    assert "c.db" not in str(table.storage.properties), "what opens the catalog stays here"


def test_a_class_of_the_user_is_the_users(
    prod: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    made: list[dict[str, str]] = []

    class Mine(PyArrowFileIO):
        def __init__(self, properties: dict[str, str]) -> None:
            made.append(properties)
            super().__init__(properties)

    module = types.ModuleType("files_of_mine")
    module.Mine = Mine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "files_of_mine", module)
    make_table(prod, {"py-io-impl": "builtins.print"})
    prod["properties"]["py-io-impl"] = "files_of_mine.Mine"
    assert answer("SELECT * FROM db.t", catalog="prod", **prod) == []
    assert made
    assert all(each["py-io-impl"] == "files_of_mine.Mine" for each in made)


def test_pyiceberg_does_not_commit_by_a_class_of_the_table(tmp_path: Path, trap: str) -> None:
    catalog = database(tmp_path)
    table = create(catalog)
    catalog.kind = "glue"
    provider = "write.py-location-provider.impl"
    with pytest.raises(NotSupportedError, match=r"UNSET TBLPROPERTIES \('write\.py-loc"):
        change_table(catalog, table, lambda base: [u.SetProperties({provider: trap})])
    catalog.kind = "sql"
    table = change_table(catalog, table, lambda base: [u.SetProperties({provider: trap})]).table
    catalog.kind = "glue"
    with pytest.raises(NotSupportedError, match="names a class"):
        change_table(catalog, table, lambda base: [u.SetProperties({"a": "b"})])
    change_table(catalog, table, lambda base: [u.RemoveProperties((provider,))])
    assert provider not in catalog.load(("ns", "t")).metadata.properties
    catalog.close()


def test_a_server_names_no_class_and_none_of_the_users_profiles() -> None:
    sent = {
        **dict.fromkeys(IMPLS, "trap.Here"),
        "client.profile-name": "root",
        "s3.profile-name": "root",
    }
    given = {"uri": "http://127.0.0.1/x"}
    merged = configured("c", given, {"defaults": dict(sent), "overrides": dict(sent)}).properties
    assert merged == given
    region = {"s3.region": "eu-west-1"}
    for table, vended in (
        ({**sent, **region}, []),
        ({}, [StorageCredential("s3://b", {**sent, **region})]),
    ):
        found = storage_properties("c", given, given, table, vended, "s3://b/t")
        # By their prefixes, for the files of the table.
        by_prefix = found.pop("catalog.vended-credentials", "")
        assert found == region
        assert [name for name in sent if f'"{name}"' in by_prefix] == []


def test_a_server_names_no_class_to_a_catalog_of_the_users_own(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    theirs = SqlCatalog("c", **given, **{"py-io-impl": "builtins.print"})
    catalog = PyIcebergCatalog(theirs, "c", given)
    assert "py-io-impl" not in theirs.properties
    catalog.close()


def test_names_of_code_are_known() -> None:
    assert all(map(names_code, IMPLS))
    assert not any(map(names_code, ("s3.region", "write.format.default", "auth", "implement")))
