"""Object stores are reached with the properties that Iceberg's FileIO knows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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

METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/t",
    "last-sequence-number": 0,
    "last-updated-ms": 1_700_000_000_000,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}],
        }
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
}
OBJECTS = {
    "/bucket/t/metadata/v1.metadata.json": json.dumps(METADATA).encode(),
    "/bucket/t/data/f.bin": bytes(range(100)),
}
SECRET = "wJalrXUtnFEMIK7MDENG"


class _Store(BaseHTTPRequestHandler):
    """As much of S3 as reading takes."""

    protocol_version = "HTTP/1.1"
    seen: list[str] = []

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        type(self).seen.append(self.headers.get("Authorization", ""))
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            prefix = "/bucket/" + query.get("prefix", [""])[0]
            keys = "".join(
                f"<Contents><Key>{name.removeprefix('/bucket/')}</Key><Size>{len(data)}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                for name, data in OBJECTS.items()
                if name.startswith(prefix)
            )
            xml = f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>{keys.count("<Key>")}</KeyCount>{keys}</ListBucketResult>'
            self._send(200, xml.encode(), body=body)
            return
        data = OBJECTS.get(self.path.partition("?")[0])
        if data is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", body=body)
        elif wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1]
            self._send(
                206,
                part,
                body=body,
                range=f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}",
            )
        else:
            self._send(200, data, body=body)

    def _send(self, status: int, data: bytes, *, body: bool, range: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if range:
            self.send_header("Content-Range", range)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def storage(endpoint: str) -> Storage:
    return Storage(
        {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "AKIAEXAMPLE",
            "s3.secret-access-key": SECRET,
            "s3.region": "eu-central-1",
            "s3.connect-timeout": "5",
            "s3.request-timeout": "5",
        }
    )


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_s3_is_read_with_the_given_endpoint_and_keys(storage: Storage, scheme: str) -> None:
    _Store.seen.clear()
    path = f"{scheme}://bucket/t/data/f.bin"
    assert storage.size(path) == 100
    assert storage.read(path, offset=10, length=3) == bytes([10, 11, 12])
    assert storage.read(path) == bytes(range(100))
    with storage.open(path) as file:
        file.seek(-2, 2)
        assert file.read() == bytes([98, 99])
    assert "AKIAEXAMPLE" in _Store.seen[0]
    assert "eu-central-1" in _Store.seen[0]


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
    system, inner = Storage({"adls.account-key": "a2V5"}).filesystem(
        "abfss://container@account.dfs.core.windows.net/t/f.parquet"
    )
    assert (type(system).__name__, inner) == ("AzureFileSystem", "container/t/f.parquet")


def test_google_paths_are_bucket_and_object() -> None:
    system, inner = Storage({"gcs.anonymous": "true"}).filesystem("gs://bucket/t/f.parquet")
    assert (type(system).__name__, inner) == ("GcsFileSystem", "bucket/t/f.parquet")


class _Refusing(BaseHTTPRequestHandler):
    """A store whose HEAD says nothing and whose GET says why, as S3's do."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        why = "The provided token has expired. TOKENTOKEN"
        self._send(f"<Error><Code>ExpiredToken</Code><Message>{why}</Message></Error>".encode())

    def _send(self, body: bytes) -> None:
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.mark.parametrize("verb", ["read", "open", "size", "exists", "list_folder"])
def test_a_refusal_tells_the_reason_of_the_store(verb: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    storage = Storage(
        {
            "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
            "s3.access-key-id": "AKIAEXAMPLE",
            "s3.secret-access-key": SECRET,
            "s3.session-token": "TOKENTOKEN",
            "s3.region": "eu-central-1",
        }
    )
    with pytest.raises(StorageError) as caught:
        getattr(storage, verb)("s3://bucket/t/Data.parquet")
    server.shutdown()
    server.server_close()
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
