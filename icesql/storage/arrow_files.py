"""ArrowFiles: object stores and HDFS through pyarrow, set up by Iceberg's FileIO properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from icesql.errors import NotSupportedError, StorageError
from icesql.storage.credentials import names_password, redact, without_secrets
from icesql.storage.open import VANISHED, check_size, one_store, split_path
from icesql.storage.stores.client import Body
from icesql.storage.stores.options import account_of, check_signing, first, flag, virtual_addressing

_S3_REASON: Final = re.compile(
    r"HTTP status (\d+)\).*?Unable to parse ExceptionName: (\w+) Message: (.*)", re.DOTALL
)
_GCS_RETRY_SECONDS: Final = 60
# Arguments of pyarrow's file systems: those of S3 by the ends of properties of S3 or of all of AWS.
_S3: Final = {
    "access_key": "access-key-id",
    "secret_key": "secret-access-key",
    "session_token": "session-token",
    "region": "region",
    "role_arn": "role-arn",
    "session_name": "role-session-name",
}
_AZURE: Final = (
    "account-key", "blob-storage-authority", "dfs-storage-authority", "client-id", "client-secret",
    "tenant-id",
)  # fmt: skip
_AZURE_CREDENTIALS: Final = ("adls.account-key", "adls.sas-token", "adls.client-secret")


def check_address(uri: str) -> None:
    """Raise StorageError for ``s3://KEY:SECRET@bucket``: a client would quote it as a bucket."""
    if names_password(uri):
        raise StorageError(
            redact(uri, {}),
            "a path holds no credentials; give them as properties, such as s3.access-key-id and "
            "s3.secret-access-key",
        )


class ArrowFiles:
    """One pyarrow file system per scheme and authority, made on first use.

    ``properties`` have the names that Iceberg's FileIO (Java and PyIceberg) gives them; with none
    the store's own default chain (environment, profile, instance role) finds the credentials.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self._systems: dict[tuple[str, str], Any] = {}

    def filesystem(self, uri: str) -> tuple[Any, str]:
        """The file system of ``uri`` and the path inside it; StorageError if there is none."""
        check_address(uri)
        scheme, authority, inner = split_path(uri)
        key = scheme, authority
        if key not in self._systems:
            with self.reaching(uri):
                self._systems[key] = self._connect(uri, scheme, authority)
        match one_store(scheme):
            case "hdfs":
                return self._systems[key], inner
            case "abfs":
                container = authority.partition("@")[0] if "@" in authority else ""
                return self._systems[key], f"{container}{inner}" if container else inner.lstrip("/")
            case _:
                return self._systems[key], authority + inner

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder ``uri``."""
        return bool(self._info(uri).type.name != "NotFound")

    def size(self, uri: str) -> int:
        """Length in bytes."""
        size = self._info(uri).size
        if size is None:
            raise StorageError(uri, "no such file")
        return int(size)

    def get(
        self,
        uri: str,
        start: int = 0,
        end: int | None = None,
        *,
        most: int | None = None,
        left: object = None,
    ) -> Body:
        """Bytes ``start`` to ``end`` (exclusive); fewer at the end of the file.

        ``left`` cannot end it. Raises ScanLimitError for a file of more than ``most`` bytes.
        """
        system, inner = self.filesystem(uri)
        with self.reaching(uri), system.open_input_file(inner) as file:
            size = file.size()
            check_size(uri, size, most)
            length = max(min(size if end is None else end, size) - start, 0)
            return Body(memoryview(file.read_at(length, start)), size)

    def list_folder(self, uri: str) -> list[str]:
        """Names of the files directly in a folder, sorted."""
        return sorted(each.base_name for each in self._files(uri, recursive=False)[1])

    def walk(self, uri: str) -> list[tuple[str, int, int]]:
        """Name below the folder, length and time of change (ms since 1970) of all files in it."""
        base, files = self._files(uri, recursive=True)
        untimed = next((each for each in files if each.mtime_ns is None), None)
        if untimed is not None:
            raise StorageError(uri, f"the store does not say when {untimed.path} changed")
        return [
            (each.path[len(base) + 1 :], each.size or 0, each.mtime_ns // 1_000_000)
            for each in files
            if each.path.startswith(f"{base}/")
        ]

    def _files(self, uri: str, *, recursive: bool) -> tuple[str, list[Any]]:
        """The path of a folder in its file system, and pyarrow's descriptions of its files."""
        from pyarrow.fs import FileSelector, FileType

        system, inner = self.filesystem(uri)
        base = inner.rstrip("/")
        with self.reaching(uri):
            selector = FileSelector(base, allow_not_found=True, recursive=recursive)
            found = system.get_file_info(selector)
        return base, [each for each in found if each.type == FileType.File]

    def _info(self, uri: str) -> Any:
        system, inner = self.filesystem(uri)
        with self.reaching(uri):
            return system.get_file_info(inner)

    @contextmanager
    def reaching(self, uri: str) -> Iterator[None]:
        """Translate pyarrow's errors about ``uri`` to StorageError, without secrets."""
        from pyarrow import ArrowException

        with without_secrets(self.properties):
            try:
                yield
            except (OSError, ValueError, ImportError, TypeError, ArrowException) as error:
                problem = redact(self._reason(uri, error), self.properties)
                raise StorageError(uri, problem) from error

    def _reason(self, uri: str, error: Exception) -> str:
        """The store's reason; it refuses a HEAD without one, so a second request gets it."""
        if isinstance(error, FileNotFoundError):
            return VANISHED
        text = str(error)
        scheme, authority, inner = split_path(uri)
        system = self._systems.get((scheme, authority))
        if system is not None and "ACCESS_DENIED" in text and "no response body" in text.lower():
            from pyarrow.fs import FileSelector

            try:  # a listing below the name of a file: nothing, or the reason
                system.get_file_info(FileSelector(authority + inner, allow_not_found=True))
            except OSError as failed:
                text = str(failed)
        if "DefaultAzureCredential" in text:
            return (
                "no credentials for Azure were found; set adls.account-key, adls.sas-token, "
                "adls.token, adls.connection-string or adls.client-id, adls.client-secret and "
                "adls.tenant-id, or log in with az"
            )
        if "libjvm" in text:
            return "HDFS needs Java and Hadoop's native client; set JAVA_HOME and HADOOP_HOME"
        unknown = _S3_REASON.search(text)
        text = text.partition("\n")[0]
        return f"{unknown[2]}: {unknown[3]} (status {unknown[1]})" if unknown else text

    def _connect(self, uri: str, scheme: str, authority: str) -> Any:
        match one_store(scheme):
            case "s3":
                return self._s3(authority)
            case "gs":
                return self._gcs()
            case "hdfs":
                return self._hdfs(scheme, authority)
            case "abfs":
                system = self._azure(authority)
                if not any(name.startswith(_AZURE_CREDENTIALS) for name in self.properties):
                    # Opening a file ends the process if the default chain finds nothing;
                    # ``get_file_info`` raises (pyarrow 26).
                    system.get_file_info(f"{authority.partition('@')[0]}/metadata")
                return system
            case _:
                raise NotSupportedError(f"not supported: storage scheme {scheme}:// ({uri})")

    def _s3(self, bucket: str) -> Any:
        from pyarrow import fs

        given = self.properties
        check_signing(given)
        options: dict[str, Any] = {
            **{key: first(given, f"s3.{end}", f"client.{end}") for key, end in _S3.items()},
            "endpoint_override": given.get("s3.endpoint"),
            "proxy_options": given.get("s3.proxy-uri"),
            "connect_timeout": _seconds(given, "s3.connect-timeout"),
            "request_timeout": _seconds(given, "s3.request-timeout"),
            "force_virtual_addressing": virtual_addressing(given),
            "anonymous": flag(given, "s3.anonymous") or None,
        }
        if options["region"] is None and options["endpoint_override"] is None:
            options["region"] = region_of(bucket)
        return fs.S3FileSystem(**{name: v for name, v in options.items() if v is not None})

    def _gcs(self) -> Any:
        from datetime import UTC, datetime, timedelta

        from pyarrow.fs import GcsFileSystem

        given: Mapping[str, str] = self.properties
        # By default the client retries for a quarter of an hour to reach a missing store.
        options: dict[str, Any] = {"retry_time_limit": timedelta(seconds=_GCS_RETRY_SECONDS)}
        if token := given.get("gcs.oauth2.token"):
            options["access_token"] = token
            # pyarrow wants an expiry with a token; without one the store decides.
            seconds = float(given.get("gcs.oauth2.token-expires-at") or 253402214400000) / 1000
            options["credential_token_expiration"] = datetime.fromtimestamp(seconds, UTC)
        if location := given.get("gcs.default-bucket-location"):
            options["default_bucket_location"] = location
        if host := given.get("gcs.service.host"):
            options["scheme"], _, rest = host.partition("://")
            options["endpoint_override"] = rest
        if flag(given, "gcs.anonymous"):
            options["anonymous"] = True
        return GcsFileSystem(**options)

    def _hdfs(self, scheme: str, authority: str) -> Any:
        from pyarrow.fs import HadoopFileSystem

        given = self.properties
        host, _, port = authority.partition(":")
        name = given.get("hdfs.host") or host
        return HadoopFileSystem(
            host=f"{scheme}://{name}" if scheme != "hdfs" and name else name or "default",
            port=int(given.get("hdfs.port") or port or 0),
            user=given.get("hdfs.user"),
            kerb_ticket=given.get("hdfs.kerberos_ticket"),
        )

    def _azure(self, authority: str) -> Any:
        from pyarrow import fs

        given = self.properties
        host = authority.rpartition("@")[2]
        account = account_of(authority, given)
        sas = given.get("adls.sas-token") or given.get(f"adls.sas-token.{host}")
        options: dict[str, Any] = {
            **{each.replace("-", "_"): given.get(f"adls.{each}") for each in _AZURE},
            "sas_token": sas or given.get(f"adls.sas-token.{account}"),
        }
        return fs.AzureFileSystem(account, **{name: v for name, v in options.items() if v})


def region_of(bucket: str) -> str:
    """The region of an S3 bucket. Raises what pyarrow does."""
    from pyarrow import fs

    return str(fs.resolve_s3_region(bucket))


def _seconds(properties: Mapping[str, str], name: str) -> float | None:
    return float(properties[name]) if properties.get(name) else None
