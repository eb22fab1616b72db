"""Which metadata file of a table's folder is the current one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from icesql.errors import CorruptFileError, Error, ScanLimitError, StorageError
from icesql.iceberg.metadata.table_metadata import TableMetadata, parse_document, parse_metadata
from icesql.storage.cache import kept
from icesql.storage.open import METADATA_BYTES, VERSION_HINT_BYTES, Storage

_METADATA: Final = re.compile(r"(?!\.).*\.metadata\.json(?:\.gz)?|metadata\.json(?:\.gz)?")
_ENDS: Final = (".json", ".gz")
_HADOOP: Final = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_CATALOG: Final = re.compile(r"(\d+)-.*\.metadata\.json(?:\.gz)?")
_HINT: Final = re.compile(r"v?(\d{1,18})(?:(?:\.gz)?\.metadata\.json(?:\.gz)?)?")
HINTS: Final = ("version-hint.text", "version-hint.txt")
# Most attempts to find a metadata file while concurrent commits delete the one just found.
_LOOKS: Final = 20
# Kinds of cache entries for a metadata file.
_PARSED: Final = "metadata"
_WRITTEN: Final = "written metadata"
# Size of parsed metadata as a multiple of the bytes of its JSON.
_PARSED_SIZE: Final = 4

Place = TypeVar("Place")
T = TypeVar("T")


def is_metadata_name(name: str) -> bool:
    """Whether a file name is that of table metadata (gzip in both spellings, no .crc)."""
    return _METADATA.fullmatch(name) is not None


def hadoop_version(name: str) -> int | None:
    """N of v<N>.metadata.json, None for any other name."""
    found = _HADOOP.fullmatch(name)
    return int(found[1]) if found else None


def is_later(name: str, other: str) -> bool:
    """True if both names have the same layout and ``name`` has the higher version number."""
    for pattern in (_HADOOP, _CATALOG):
        found, known = pattern.fullmatch(name), pattern.fullmatch(other)
        if found and known:
            return int(found[1]) > int(known[1])
    return False


def hadoop_versions(names: Iterable[str]) -> dict[str, int]:
    """Map each name of the form v<N>.metadata.json to its N.

    Kept fast: after thousands of commits a folder has thousands of names, most of them manifests,
    and each commit lists it several times.
    """
    match = _HADOOP.fullmatch
    return {
        name: int(found[1]) for name in names if name.startswith("v") and (found := match(name))
    }


def metadata_names(names: Iterable[str]) -> tuple[dict[str, int], list[str]]:
    """The names of metadata files: those of the form v<N>, with their N, and the others."""
    ended = [name for name in names if name.endswith(_ENDS)]
    versions = hadoop_versions(ended)
    return versions, [name for name in ended if name not in versions and is_metadata_name(name)]


def hadoop_spellings(version: int) -> tuple[str, ...]:
    """The possible names of a version's metadata file, uncompressed first, then with gzip."""
    start = f"v{version}"
    return (
        f"{start}.metadata.json",
        f"{start}.gz.metadata.json",
        f"{start}.metadata.json.gz",
        f"{start}.gz.metadata.json.gz",
    )


def is_taken(folder: str, version: int) -> bool:
    """Whether a file of a version lies in a folder of this machine."""
    return any(os.path.lexists(f"{folder}/{name}") for name in hadoop_spellings(version))


def hinted_last(folder: str) -> str | None:
    """The path of the current v<N> file in a folder of this machine, by the hint alone.

    A path is returned only if the hint names N, exactly one file of version N exists and none of
    N+1. ``find_current_metadata``, which lists the folder, finds the same file, unless the folder
    also has files that a catalog named. None means that the folder has to be listed.
    """
    try:
        version = read_hint(folder)
    except OSError:
        return None
    if version is None or is_taken(folder, version + 1):
        return None
    paths = [f"{folder}/{name}" for name in hadoop_spellings(version)]
    found = [each for each in paths if os.path.lexists(each)]
    return found[0] if len(found) == 1 and os.path.isfile(found[0]) else None


def read_hint(folder: str) -> int | None:
    """The version that the hint in a folder of this machine names; None without a usable hint.

    Raises OSError if the hint cannot be read.
    """
    try:
        with open(f"{folder}/{HINTS[0]}", "rb") as file:
            text = file.read(VERSION_HINT_BYTES).decode("ascii", errors="replace")
    except FileNotFoundError:
        return None
    return hinted_version(text)


def newer_of_catalog(
    folder: str, others: Sequence[str], than: TableMetadata, storage: Storage
) -> str | None:
    """The path of a catalog-named file in a folder of v<N> files, if it is the current one.

    ``others`` are the names of all catalog-named files there, ``than`` is the metadata of the
    current v<N> file. Raises as ``read_metadata``.
    """
    if not others:
        return None

    def read(name: str) -> TableMetadata:
        return read_metadata(f"{folder}/{name}", storage)

    last = _last_updated(_catalog_current(others, None) or others, read)
    return f"{folder}/{last}" if read(last).last_updated_ms > than.last_updated_ms else None


def hinted_version(text: str) -> int | None:
    """The version that the text of a hint names; None if it names none."""
    found = _HINT.fullmatch(text.strip())
    return int(found[1]) if found else None


def find_current_metadata(folder: str, storage: Storage) -> str | None:
    """Path of the current metadata file in ``folder`` (the one called metadata), None without any.

    Files of the Hadoop layout (v<N>) follow the hint: the version it names, then N+1, N+2, … as
    long as they exist, for the hint may lag; without a usable hint the greatest N. A hint above
    every version there raises StorageError: the file of a commit is gone. Files that a
    catalog named (<N>-<uuid>) go by N, then by the time they were written; only their catalog
    knows for certain, so a commit that failed may be taken for the last one. Where both kinds or
    neither are there, the time of the last update inside the files decides.
    Source: Iceberg Java ``HadoopTableOperations``.
    """

    def path(name: str) -> str:
        return f"{folder.rstrip('/')}/{name}"

    before = None
    for _ in range(_LOOKS):
        try:
            listed = storage.list_folder(folder)
        except StorageError:
            if storage.exists(folder):
                raise
            return None
        versions, others = metadata_names(listed)
        if not versions and not others:
            return None
        hint = next((_hint(storage, path(name)) for name in HINTS if name in listed), None)
        hinted = hinted_version(hint or "")
        highest = max([*versions.values(), *_catalog_numbers(others).values()], default=0)
        if not versions or hinted is None or hinted <= highest:
            break
        # A version that was committed after the folder was listed appears in the next listing.
        if hinted == before:
            return _unlisted(hinted, highest, path, storage)
        before = hinted
    best = [*_hadoop_current(versions, hinted), *_catalog_current(others, hint)] or others
    if len(best) == 1:
        return path(best[0])
    return path(_last_updated(best, lambda name: read_metadata(path(name), storage)))


def _unlisted(version: int, highest: int, path: Callable[[str], str], storage: Storage) -> str:
    """The path of a version that the hint names but the listing of the folder lacks.

    Raises StorageError if no such file exists: that version was committed, so no older one is
    current.
    """
    names = hadoop_spellings(version)
    for name in names:
        if storage.exists(path(name)):
            return path(name)
    raise StorageError(
        path(names[0]),
        f"{HINTS[0]} says that version {version} of the table is the current one, and its file is "
        f"gone; the highest version there is {highest}. Restore {names[0]}; or, to lose what was "
        f"committed since version {highest}, write {highest} into {HINTS[0]}",
    )


def read_where_it_is(
    place: Place, read: Callable[[Place], T], look: Callable[[], Place | None]
) -> T:
    """Call ``read`` with the place of a table, or with a newer place if its file is gone.

    Each commit may delete old metadata files, even between the catalog lookup and the read of the
    file that the catalog named. Raises StorageError if the file of the current place is unreadable.
    """
    for _ in range(_LOOKS):
        try:
            return read(place)
        except StorageError:
            newer = look()
            if newer is None or newer == place:
                raise
            place = newer
    return read(place)


def read_metadata(path: str, storage: Storage) -> TableMetadata:
    """The parsed metadata file ``path``; CorruptFileError or StorageError name it.

    Parsed metadata is kept in the storage's cache. The key of a file of this machine is its path,
    modification time and size; the key of a file in a store is its path, if files of that name are
    never overwritten.
    """

    def read() -> tuple[TableMetadata, int]:
        data = storage.read(path, most=METADATA_BYTES)
        try:
            return parse_metadata(data, path), _PARSED_SIZE * len(data)
        except CorruptFileError as error:
            error.was_kept = storage.forget(path)
            raise

    return kept(storage.cache, _key(path, storage, _PARSED), read)


def written_document(path: str, storage: Storage) -> dict[str, Any] | None:
    """The JSON that ``keep_written`` kept of ``path``, if the file is still the same.

    Nothing in it may be changed.
    """
    key = _key(path, storage, _WRITTEN)
    found: dict[str, Any] | None = (
        None if storage.cache is None or key is None else storage.cache.get(key)
    )
    return found


def keep_written(
    path: str,
    storage: Storage,
    document: dict[str, Any],
    size: int,
    version: tuple[str, int, int] | None = None,
) -> None:
    """Cache the content of a metadata file that was just written, so that it need not be read.

    ``size`` is that of its text. ``version`` identifies the written file, as
    ``Storage.version_of`` does. None takes the identity of the file that is at ``path`` now, for
    names that no other writer uses.
    """
    if storage.cache is None or _PARSED_SIZE * size > storage.cache.max_bytes:
        return
    with suppress(Error):  # an unreadable file is reported by the next read
        parsed, whole = (
            _key(path, storage, kind) if version is None else (kind, *version)
            for kind in (_PARSED, _WRITTEN)
        )
        if parsed is not None:
            metadata = parse_document(document, path)
            storage.cache.put(parsed, metadata, _PARSED_SIZE * size)
            storage.cache.put(whole, document, size)


def is_parsed(path: str, storage: Storage) -> bool:
    """True if ``read_metadata`` would return parsed metadata from the cache, without a read."""
    key = _key(path, storage, _PARSED)
    return storage.cache is not None and key is not None and storage.cache.get(key) is not None


def forget_metadata(path: str, storage: Storage) -> None:
    """Remove the parsed metadata file ``path`` from the cache after our own commit replaced it.

    Each version lists all snapshots. A session that commits often would fill its cache with unused
    versions: about ten objects for each snapshot of each, which Python's garbage collector visits.
    """
    with suppress(Error):  # its file may be gone
        for kind in (_PARSED, _WRITTEN):
            key = _key(path, storage, kind)
            if storage.cache is not None and key is not None:
                storage.cache.remove(key)


def _key(path: str, storage: Storage, kind: str) -> tuple[str | int, ...] | None:
    version = storage.version_of(path)
    if version is not None:
        return (kind, *version)
    name = storage.kept_name(path)
    return None if name is None else (kind, name)


def _hint(storage: Storage, path: str) -> str | None:
    try:
        data = storage.read(path, most=VERSION_HINT_BYTES)
        return data.decode("ascii", errors="replace").strip()
    except (StorageError, ScanLimitError):
        return None  # writers write the hint on a best-effort basis, so it may be missing


def _hadoop_current(numbered: Mapping[str, int], hinted: int | None) -> list[str]:
    if not numbered:
        return []
    versions = set(numbered.values())
    current = hinted if hinted in versions else max(versions)
    while current + 1 in versions:
        current += 1
    # If one version has several spellings, the uncompressed one wins, as in Java.
    spelled = [name for name, version in numbered.items() if version == current]
    return [min(spelled, key=lambda name: (len(name), name))]


def _catalog_current(names: Iterable[str], hint: str | None) -> list[str]:
    numbered = _catalog_numbers(names)
    highest = max(numbered.values(), default=0)
    newest = [name for name, number in numbered.items() if number == highest]
    hinted = [name for name in newest if hint and name.startswith(hint)]
    return hinted if len(hinted) == 1 else newest


def _catalog_numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: int(found[1]) for name in names if (found := _CATALOG.fullmatch(name))}


def _last_updated(names: Iterable[str], read: Callable[[str], TableMetadata]) -> str:
    return max(names, key=lambda name: (read(name).last_updated_ms, name))
