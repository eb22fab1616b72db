"""Azure's storage: how it is opened, and a table in Microsoft's own double of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.errors import NotSupportedError, StorageError
from icesql.storage.stores.azure import azure_store
from tests.catalog import real_servers
from tests.stores.published import new_table, publish

PLACE = "lake@account.dfs.core.windows.net"
KEY = "a2V5LW9mLXRoZS1hY2NvdW50"


@pytest.mark.parametrize(
    ("given", "config"),
    [
        ({"adls.account-key": KEY}, {"account_key": KEY}),
        ({"adls.sas-token": "sv=1&sig=x"}, {"sas_key": "sv=1&sig=x"}),
        ({"adls.sas-token.account": "sv=1&sig=x"}, {"sas_key": "sv=1&sig=x"}),
        ({"adls.token": "bearer"}, {"token": "bearer"}),
        ({"adls.account-name": "other", "adls.token": "t"}, {"account_name": "other"}),
        (
            {"adls.client-id": "c", "adls.client-secret": "s", "adls.tenant-id": "t"},
            {"client_id": "c", "client_secret": "s", "tenant_id": "t"},
        ),
        (
            {"adls.connection-string": "AccountName=n;AccountKey=YQ==;EndpointSuffix=x.cn"},
            {"account_name": "n", "account_key": "YQ==", "endpoint": "https://n.blob.x.cn"},
        ),
        (
            {"adls.connection-string": "BlobEndpoint=http://h:1/a;SharedAccessSignature=sv=1&sig=x"},
            {"account_name": "account", "sas_key": "sv=1&sig=x", "endpoint": "http://h:1/a"},
        ),
        (
            {"adls.connection-string": "UseDevelopmentStorage=true"},
            {"account_name": "devstoreaccount1", "endpoint": "http://127.0.0.1:10000/devstoreaccount1"},
        ),
    ],
)  # fmt: skip
def test_what_opens_an_account(given: dict[str, str], config: Mapping[str, str]) -> None:
    store = azure_store(PLACE, given)
    assert store is not None
    found: dict[str, Any] = {
        key.removeprefix("azure_storage_"): v for key, v in store.config.items()
    }
    found = {key.removeprefix("azure_"): value for key, value in found.items()}
    assert {**found, **config} == found
    assert found["container_name"] == "lake"


@pytest.mark.parametrize("given", [{}, {"adls.account-name": "a"}, {"adls.client-id": "c"}])
def test_without_credentials_the_default_chain_is_left_to_pyarrow(given: dict[str, str]) -> None:
    assert azure_store(PLACE, given) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("AccountName=a", "neither AccountKey nor SharedAccessSignature"),
        ("AccountName=evil/;AccountKey=x", "is no account"),
        ("", "is no account"),
    ],
)
def test_a_connection_string_brings_its_own_credentials(text: str, told: str) -> None:
    """No others go to where it leads."""
    given = {"adls.connection-string": text or "x", "adls.sas-token": "mine"}
    place = "lake@evil#.x" if not text else PLACE
    with pytest.raises(NotSupportedError, match=told):
        azure_store(place, given)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The endpoint of a double and the path of a table in its container ``lake``."""
    folder = tmp_path_factory.mktemp("azure")
    with real_servers.azurite(folder) as endpoint:
        rows = pa.table({"id": pa.array(range(1000), pa.int64())})
        table = new_table(folder, "t", rows.schema)
        path = folder / "lake" / "t" / "data" / "00000-0000000000000000.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(rows.cast(table.schema().as_arrow()), path)
        table.add_files([f"file://{path}"])
        root = f"abfss://lake@{real_servers.AZURE_ACCOUNT}.dfs.core.windows.net/"
        publish(folder, table, "t", root)
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
            assert connection.execute(sql).fetchall() == [(990, 499455)]


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
    with (
        icesql.connect(properties={"adls.connection-string": text}) as connection,
        pytest.raises(icesql.Error, match=told) as caught,
    ):
        connection.execute(f"SELECT * FROM iceberg_scan('{place}')").fetchall()
    assert isinstance(caught.value, StorageError | icesql.TableNotFoundError)
    assert text.partition("sig=")[2] not in str(caught.value)
