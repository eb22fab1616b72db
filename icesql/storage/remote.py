"""RemoteFiles: all access to object stores, for metadata, local engine and Spark's workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

from icesql.errors import CatalogError, Error, StorageError
from icesql.storage.arrow_files import ArrowFiles, check_address
from icesql.storage.credentials import redact, without_secrets
from icesql.storage.open import check_size, is_telling, one_store, split_path
from icesql.storage.stores.client import Body, RefusedError, StoreClient, shared_client
from icesql.storage.stores.options import is_plain_key
from icesql.storage.stores.principal import identity, properties_at

if TYPE_CHECKING:
    import threading

    from icesql.context import QueryContext
    from icesql.storage.cache import Blocks
    from icesql.storage.stores.blocks import Shelf
    from icesql.storage.stores.files import StoredFile
    from icesql.storage.stores.principal import Lease
    from icesql.storage.stores.signed import Signer

T = TypeVar("T")

# obstore's threads do not live in a fork of the process that used it.
_USED_IN: Final[set[int]] = set()
_WHOLE_BYTES: Final = 8 << 20
_FOOTER_BYTES: Final = 128 << 10


class RemoteFiles:
    """Files by URI, by obstore or else by pyarrow; safe for threads.

    ``properties`` have the names that Iceberg's FileIO (Java and PyIceberg) gives them; with none
    the store's own default chain (environment, profile, instance role) finds the credentials.
    ``blocks`` is the cache on disk. With a ``lease`` its properties are used, which change when the
    credentials in them expire or a store refuses them. ``signer`` signs requests to S3 where the
    properties say that the catalog does.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        blocks: Blocks | None = None,
        lease: Lease | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.properties, self.blocks = properties, blocks
        self.lease, self.signer = lease, signer
        # The open clients by the prefix of their properties, and the properties they were made
        # from.
        self._opened: dict[str, _Opened] = {}
        self._current_properties = properties
        # The files that a scan has requested ahead, by URI and length.
        self._ahead: dict[tuple[str, int], StoredFile] = {}
        self._shelves: dict[str, tuple[Any, Shelf | None]] = {}

    def filesystem(self, uri: str) -> tuple[Any, str]:
        """The ``pyarrow.fs.FileSystem`` of ``uri`` and the path inside it."""
        return self._current(uri).arrow.filesystem(uri)

    def get(
        self,
        uri: str,
        start: int = 0,
        end: int | None = None,
        *,
        most: int | None = None,
        left: threading.Event | None = None,
    ) -> Body:
        """Bytes ``start`` to ``end`` (exclusive) in one request; fewer at the end of the object.

        Raises ScanLimitError, before the body is read, for an object of more than ``most`` bytes.
        """
        return self._allowed(
            uri, lambda opened: opened.files(uri).get(uri, start, end, most=most, left=left)
        )

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder ``uri``."""
        return self._allowed(uri, lambda opened: opened.files(uri).exists(uri))

    def size(self, uri: str) -> int:
        """Length in bytes."""
        return self._allowed(uri, lambda opened: opened.files(uri).size(uri))

    def read(self, uri: str, offset: int, length: int | None) -> bytes:
        """Up to ``length`` bytes from ``offset``; fewer at the end of the file."""
        if length == 0:
            return b""
        if length is None:
            return bytes(self.get(uri, offset).data)
        end = offset + length
        shelf, name = self._kept(uri)
        if shelf is None:
            return bytes(self.get(uri, offset, end).data)
        for part in shelf.parts(name):
            if part[0] <= offset and end <= part[1]:
                found = shelf.read_part(name, part, offset, end)
                if found is not None:
                    return found
        data = bytes(self.get(uri, offset, end).data)
        with suppress(OSError):
            shelf.put_part(name, offset, data)
        return data

    def read_whole(self, uri: str, most: int) -> bytes:
        """A file of at most ``most`` bytes, kept on disk if its name exists only once.

        Names such as version-hint.text and v1.metadata.json are written again, and so never kept.
        """
        shelf, name = self._kept(uri)
        if shelf is None:
            return bytes(self.get(uri, most=most).data)
        found = shelf.read_whole(name)
        if found is None:
            found = bytes(self.get(uri, most=most).data)
            with suppress(OSError):
                shelf.put_whole(name, found)
        check_size(uri, len(found), most)
        return found

    def is_kept(self, uri: str) -> bool:
        """Whether ``kept`` would give a file, unless it is evicted first."""
        shelf, name = self._kept(uri)
        return shelf is not None and shelf.whole(name) is not None

    def kept(self, uri: str, most: int) -> bytes | None:
        """The bytes that ``read_whole`` kept of a file on disk; None if there are none."""
        shelf, name = self._kept(uri)
        found = None if shelf is None else shelf.read_whole(name)
        if found is not None:
            check_size(uri, len(found), most)
        return found

    def kept_name(self, uri: str) -> str | None:
        """The key by which ``read_whole`` keeps a file; None for one that it does not keep.

        It includes the store and the principal.
        """
        shelf, name = self._kept(uri)
        return None if shelf is None else f"{shelf.folder}/{name}"

    def _kept(self, uri: str) -> tuple[Shelf | None, str]:
        """The cache for a file whose name exists only once, and its name there; else None, ""."""
        shelf = self.shelf(uri) if is_telling(uri) else None
        return shelf, "" if shelf is None else shelf.name(uri, None)

    def forget(self, uri: str, length: int | None = None) -> bool:
        """Remove a file from the cache, also as one of ``length`` bytes; whether it was there."""
        shelf = self.shelf(uri)
        if shelf is None:
            return False
        found = [shelf.remove(shelf.name(uri, each)) for each in {None, length}]
        return any(found)

    def stream(self, uri: str, length: int) -> BinaryIO:
        """A file with ``length`` bytes by its metadata, as a seekable binary stream.

        The first request fetches a small file whole, of others the end, where footers are.
        """
        from icesql.storage.stores.files import OtherLength, StoredFile, StoredStream

        file = self._ahead.pop((uri, length), None)
        if file is None:
            file = self._opened_file(uri, length, None)
        try:
            file.read_at(length - 8, 8)
        except OtherLength as other:
            # Some writers record a wrong length; readers look whether it is the same file.
            file = StoredFile(self, uri, other.length)
        return cast(BinaryIO, StoredStream(file))

    def prefetch(self, uri: str, length: int, query: QueryContext) -> None:
        """Request the bytes that ``stream`` will read first; ``leave`` ends unused requests."""
        if (uri, length) not in self._ahead:
            self._ahead[uri, length] = self._opened_file(uri, length, query)

    def leave(self) -> None:
        """End the requests for files that were not opened."""
        ahead, self._ahead = self._ahead, {}
        for file in ahead.values():
            file.leave()

    def _opened_file(self, uri: str, length: int, query: QueryContext | None) -> StoredFile:
        from icesql.storage.stores.files import StoredFile

        file = StoredFile(self, uri, length, query=query, whole=length <= _WHOLE_BYTES)
        file.fetch([(max(length - _FOOTER_BYTES, 0), length)])
        return file

    def list_folder(self, uri: str) -> list[str]:
        """Names of the files directly in a folder, sorted."""
        place = uri.rstrip("/")
        return self._allowed(uri, lambda opened: opened.files(place).list_folder(uri))

    def walk(self, uri: str) -> list[tuple[str, int, int]]:
        """Name below the folder, length and time of change (ms since 1970) of all files in it."""
        return self._allowed(uri, lambda opened: opened.arrow.walk(uri))

    def shelf(self, uri: str) -> Shelf | None:
        """The cache for bytes fetched from the store of ``uri``; None if there is none."""
        if self.blocks is None:
            return None
        store = self.blocks.store()
        # Called for each of many files: the part before the key identifies the store.
        end = uri.find("/", uri.find("://") + 3)
        prefix, properties = properties_at(self.properties, uri)
        place = prefix + " " + (uri[:end] if end > 0 else uri)
        known = self._shelves.get(place)
        if known is not None and known[0] is store:
            return known[1]
        shelf = None
        if store is not None:
            scheme, authority, _ = split_path(uri)
            shelf = store.shelf(*identity(one_store(scheme), authority, properties))
        self._shelves[place] = store, shelf
        return shelf

    def _current(self, uri: str) -> _Opened:
        """The open store of a place with its present properties."""
        found = self.properties if self.lease is None else self.lease.current()
        if found is not self._current_properties:
            self._current_properties, self._opened = found, {}
        prefix, properties = properties_at(found, uri)
        opened = self._opened.get(prefix)
        if opened is None or opened.of is not found:
            self._opened[prefix] = opened = _Opened(properties, self.signer, found)
        return opened

    def _allowed(self, uri: str, request: Callable[[_Opened], T]) -> T:
        """Call ``request``; if the store refuses it, once more with renewed credentials."""
        opened = self._current(uri)
        try:
            return request(opened)
        except RefusedError as error:
            if self.lease is None:
                raise
            try:
                renewed = self.lease.renewed(opened.of)
            except CatalogError as failed:
                problem = f"{error.problem}; no new credentials came: {failed}"
                raise StorageError(uri, problem) from error
            if not renewed:
                raise
        return request(self._current(uri))


class _Opened:
    """The clients of one set of properties, by scheme and authority; ``of`` is their source."""

    def __init__(
        self, properties: Mapping[str, str], signer: Signer | None, of: Mapping[str, str]
    ) -> None:
        self.properties, self.of, self.arrow = properties, of, ArrowFiles(properties)
        self._signer = signer
        self._clients: dict[tuple[str, str], StoreClient | None] = {}

    def files(self, uri: str) -> StoreClient | ArrowFiles:
        """The client of obstore; pyarrow's files where it cannot do it."""
        check_address(uri)
        scheme, authority, inner = split_path(uri)
        key = inner.removeprefix("/")
        if key and not is_plain_key(key):
            return self.arrow
        place = scheme, authority
        client = self._clients.get(place)
        if client is None and place not in self._clients:
            if _USED_IN and os.getpid() not in _USED_IN:
                return self.arrow
            try:
                with without_secrets(self.properties):
                    client = self._made(scheme, authority)
            except Error:
                raise
            except Exception as error:  # of obstore's options, and of what finds the region
                raise StorageError(uri, redact(str(error), self.properties)) from error
            if client is not None:
                _USED_IN.add(os.getpid())
            self._clients[place] = client
        return client if client is not None and client.is_usable else self.arrow

    def _made(self, scheme: str, authority: str) -> StoreClient | None:
        if self._signer is not None:
            from icesql.storage.stores.signed import signed_client

            signed = signed_client(scheme, authority, self.properties, self._signer)
            if signed is not None:
                return signed
        return shared_client(scheme, authority, self.properties)
