"""Azure's storage: how it is opened, and a table in Microsoft's emulator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

import icesql
from icesql.errors import NotSupportedError, StorageError
from icesql.storage.stores.options import azure_store
from tests.catalog import real_servers
from tests.rows import rows_of
from tests.sessions import answer, fetched
from tests.stores.published import thousand

PLACE = "lake@account.dfs.core.windows.net"


@rows_of(__file__, "azure_accounts.tsv", "given", "config")
def test_what_opens_an_account(given: str, config: str) -> None:
    store, expected = azure_store(PLACE, json.loads(given)), json.loads(config)
    if expected is None:
        assert store is None
        return
    assert store is not None
    found = {re.sub("^azure_(storage_)?", "", key): value for key, value in store.config.items()}
    assert {**found, **expected} == found
    assert found["container_name"] == "lake"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("AccountName=a", "neither AccountKey nor SharedAccessSignature"),
        ("AccountName=evil/;AccountKey=x", "is no account"),
        ("", "is no account"),
    ],
)
def test_a_connection_string_brings_its_own_credentials(text: str, told: str) -> None:
    """No other credentials are sent to its endpoint."""
    given = {"adls.connection-string": text or "x", "adls.sas-token": "mine"}
    place = "lake@evil#.x" if not text else PLACE
    with pytest.raises(NotSupportedError, match=told):
        azure_store(place, given)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The endpoint of a double and the path of a table in its container ``lake``."""
    folder = tmp_path_factory.mktemp("azure")
    with real_servers.azurite(folder) as endpoint:
        root = f"abfss://lake@{real_servers.AZURE_ACCOUNT}.dfs.core.windows.net/"
        thousand(folder, root)
        real_servers.azure_container(endpoint, folder / "lake", "lake")
        yield endpoint, f"{root}t"


def strings(endpoint: str) -> list[str]:
    name, key = real_servers.AZURE_ACCOUNT, real_servers.AZURE_KEY
    return [
        f"BlobEndpoint={endpoint};AccountName={name};AccountKey={key}",
        f"BlobEndpoint={endpoint};SharedAccessSignature={real_servers.azure_sas()}",
    ]


def test_a_table_in_azures_double(lake: tuple[str, str]) -> None:
    endpoint, path = lake
    for text in strings(endpoint):
        with icesql.connect(properties={"adls.connection-string": text}) as connection:
            connection.execute("SET cache = off")
            sql = f"SELECT count(*), sum(id) FROM iceberg_scan('{path}') WHERE id >= 10"
            assert fetched(connection, sql) == [(990, 499455)]


@pytest.mark.parametrize(
    ("container", "old", "new", "told"),
    [
        ("lake", "sig=", "sig=AAAA", "AuthenticationFailed|AuthorizationFailure"),
        ("gone", "", "", "ContainerNotFound|no such file|not found"),
    ],
)
def test_azures_own_reason_is_told(
    lake: tuple[str, str], container: str, old: str, new: str, told: str
) -> None:
    endpoint, path = lake
    text = strings(endpoint)[1].replace(old, new) if old else strings(endpoint)[1]
    place = path.replace("lake@", f"{container}@")
    with pytest.raises(icesql.Error, match=told) as caught:
        answer(
            f"SELECT * FROM iceberg_scan('{place}')", properties={"adls.connection-string": text}
        )
    assert isinstance(caught.value, StorageError | icesql.TableNotFoundError)
    assert text.partition("sig=")[2] not in str(caught.value)
