"""Object stores are reached with the properties that Iceberg's FileIO knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

from icesql.catalog.open import open_table
from icesql.errors import (
    CorruptFileError,
    NotSupportedError,
    StorageError,
    TableNotFoundError,
)
from icesql.storage.open import Storage, os_problem
from tests.catalog import tables
from tests.stores.server import Answer, Store, error

SECRET = "wJalrXUtnFEMIK7MDENG"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("store")
    path = folder / "bucket/t/metadata/v1.metadata.json"
    tables.write(path, location="s3://bucket/t")
    (folder / "bucket/t/data").mkdir()
    (folder / "bucket/t/data/f.bin").write_bytes(bytes(range(100)))
    with Store(folder).running() as running:
        yield running


@pytest.fixture
def storage(store: Store) -> Storage:
    store.clear()
    store.fault = None
    return Storage(
        {
            "s3.endpoint": store.endpoint,
            "s3.access-key-id": "AKIAEXAMPLE",
            "s3.secret-access-key": SECRET,
            "s3.session-token": "TOKENTOKEN",
            "s3.region": "eu-central-1",
            "s3.connect-timeout": "5",
            "s3.request-timeout": "5",
        }
    )


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_s3_is_read_with_the_given_endpoint_and_keys(
    storage: Storage, store: Store, scheme: str
) -> None:
    path = f"{scheme}://bucket/t/data/f.bin"
    assert storage.size(path) == 100
    assert storage.read(path, offset=10, length=3) == bytes([10, 11, 12])
    assert storage.read(path) == bytes(range(100))
    with storage.open(path) as file:
        file.seek(-2, 2)
        assert file.read() == bytes([98, 99])
    proof = store.requests[0].headers["authorization"]
    assert "AKIAEXAMPLE" in proof
    assert "eu-central-1" in proof


def test_the_files_of_a_remote_folder_are_listed(storage: Storage) -> None:
    assert storage.list_folder("s3://bucket/t/metadata") == ["v1.metadata.json"]


@pytest.mark.parametrize("path", ["s3://bucket/t", "s3a://bucket/t/metadata/v1.metadata.json"])
def test_a_remote_table_is_opened_and_read_as_written(storage: Storage, path: str) -> None:
    table = open_table(path, properties=storage.properties)
    assert table.metadata_location.endswith("bucket/t/metadata/v1.metadata.json")
    assert table.storage.location("s3://bucket/t/data/f.bin") == "s3://bucket/t/data/f.bin"
    assert table.storage.size("s3://bucket/t/data/f.bin") == 100
    assert table.name == "t"


def test_a_remote_folder_without_metadata_is_no_table(storage: Storage) -> None:
    with pytest.raises(TableNotFoundError, match="s3://bucket/none"):
        open_table("s3://bucket/none", properties=storage.properties)


def test_a_missing_object_is_a_storage_error_that_names_it(storage: Storage) -> None:
    assert not storage.exists("s3://bucket/none")
    with pytest.raises(StorageError, match="s3://bucket/none") as caught:
        storage.read("s3://bucket/none")
    assert SECRET not in str(caught.value)


def test_a_remote_file_that_ends_too_early_is_corrupt(storage: Storage) -> None:
    with pytest.raises(CorruptFileError) as caught:
        storage.read("s3://bucket/t/data/f.bin", offset=90, length=20)
    assert caught.value.offset == 100


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(NotSupportedError, match="ftp://"):
        Storage().read("ftp://host/file")


def test_requests_signed_by_the_catalog_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="signed by the catalog"):
        Storage({"s3.remote-signing-enabled": "true", "s3.region": "r"}).read("s3://b/f")


def test_keys_of_ones_own_need_no_catalog_to_sign() -> None:
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.region": "r"}
    properties = {**keys, "s3.remote-signing-enabled": "true", "s3.endpoint": "http://127.0.0.1:1"}
    with pytest.raises(StorageError, match="cannot be reached"):
        Storage(properties).read("s3://b/f")


def test_azure_paths_name_account_container_and_key() -> None:
    system, inner = (
        Storage({"adls.account-key": "a2V5"})
        .remote_files()
        .filesystem("abfss://container@account.dfs.core.windows.net/t/f.parquet")
    )
    assert (type(system).__name__, inner) == ("AzureFileSystem", "container/t/f.parquet")


def test_google_paths_are_bucket_and_object() -> None:
    system, inner = (
        Storage({"gcs.anonymous": "true"}).remote_files().filesystem("gs://bucket/t/f.parquet")
    )
    assert (type(system).__name__, inner) == ("GcsFileSystem", "bucket/t/f.parquet")


@pytest.mark.parametrize("verb", ["read", "open", "size", "exists", "list_folder"])
def test_a_refusal_tells_the_reason_of_the_store(storage: Storage, store: Store, verb: str) -> None:
    """Its HEAD says nothing, and its GET says why."""
    why = "The provided token has expired. TOKENTOKEN"
    store.fault = lambda request: (
        Answer(403, b"") if request.method == "HEAD" else error(403, "ExpiredToken", why)
    )
    with pytest.raises(StorageError) as caught:
        getattr(storage, verb)("s3://bucket/t/Data.parquet")
    assert str(caught.value) == (
        "cannot read s3://bucket/t/Data.parquet: ExpiredToken: The provided token has expired. *** "
        "(status 403)"
    )
    assert "TOKENTOKEN" not in repr(caught.value.__cause__) + repr(caught.value.__context__)


def test_azure_without_credentials_is_an_error_and_not_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pyarrow 26 ends the process where it opens a file and finds no credentials."""

    class Azure:
        def get_file_info(self, path: str) -> None:
            raise pyarrow.ArrowException("Failed to get token from DefaultAzureCredential.")

        def open_input_file(self, path: str) -> None:
            raise AssertionError("this would end the process")

    monkeypatch.setattr("pyarrow.fs.AzureFileSystem", lambda account, **_: Azure())
    for verb in ("open", "read", "size"):
        with pytest.raises(StorageError, match="no credentials for Azure were found"):
            getattr(Storage(), verb)("abfss://container@account.dfs.core.windows.net/t/f")


def test_messages_keep_their_case(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        Storage().read(str(tmp_path / "none"))
    error = OSError("AWS Error on Key 'Data/File.parquet'")
    assert os_problem(error) == "AWS Error on Key 'Data/File.parquet'"


def test_a_file_that_vanished_is_told_as_one(storage: Storage) -> None:
    for verb in (storage.read, storage.open):
        with pytest.raises(StorageError, match="no such file; expired or removed while reading"):
            verb("s3://bucket/none")
