"""DuckDB instances: one per icesql connection, which can read nothing but the scanned files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from icesql.config import Settings, default_temp_directory
from icesql.engine.duckdb.file_systems import OUTPUT_FOLDER, OutputFiles
from icesql.engine.duckdb.relations.footer import time_of_change
from icesql.engine.duckdb.relations.opened_files import STORE_FOLDER
from icesql.engine.duckdb.relations.relation import escape_glob
from icesql.engine.duckdb.sources import keep_in_forks
from icesql.errors import InterfaceError, OperationalError, ScanLimitError
from icesql.quoting import literal
from icesql.storage.temporary import make_temporary_folder

if TYPE_CHECKING:
    from icesql.engine.duckdb.relations.footer import FileFacts
    from icesql.engine.duckdb.relations.kept_relations import KeptLease, KeptRelations
    from icesql.engine.duckdb.store_files import QueryFiles, StoreFiles

# KeptFooters: the Parquet footers that a DuckDB instance keeps between queries, and their size.
# Bytes in DuckDB's memory per byte of a footer. DuckDB counts the chunks of one row group only.
_BYTES_OF_BYTE: Final = 9
# The fraction of the memory limit that footers may take.
_PART: Final = 16
# Settings that an instance starts with if it keeps footers, and that a cursor may change; all
# others are locked. Ranges of a file in the page cache are read as they are needed: collecting
# them first costs up to a quarter more. From a disk it saves as much.
SETTINGS: Final = {"parquet_metadata_cache": True, "disable_parquet_prefetching": True}
_READ_FOOTERS: Final = "SET SESSION parquet_metadata_cache = false"
_PREFETCH: Final = "SET SESSION disable_parquet_prefetching = false"
# The fraction of the memory limit up to which files are assumed to be in the page cache.
_PART_READ: Final = 2


class KeptFooters:
    """The files, by location, whose footers are kept, and when each was modified.

    DuckDB identifies a version of a file by its modification time in whole seconds, which another
    file at the same path may share. Thread-safe.
    """

    def __init__(self, memory_limit: int) -> None:
        self._most = memory_limit // _PART // _BYTES_OF_BYTE
        self._most_read = memory_limit // _PART_READ
        self._files: dict[str, int | None] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def admit(self, cursor: Any, facts: Mapping[str, FileFacts], *, are_fresh: bool) -> bool:
        """Let the query of ``cursor`` keep footers, unless they are too many or files have changed.

        ``facts`` are those of all its files, by location; ``are_fresh``: they were just collected.
        Returns False if the next query needs a new instance.
        """
        changed = {
            location: each.changed if are_fresh else time_of_change(location)
            for location, each in facts.items()
        }
        with self._lock:
            new = changed.keys() - self._files.keys()
            size = sum(facts[each].size for each in new)
            has_room = self._bytes + size <= self._most
            is_known = all(self._files.get(each, at) == at for each, at in changed.items())
            if has_room and is_known:
                self._files |= changed
                self._bytes += size
        if new or not has_room or sum(each.length for each in facts.values()) > self._most_read:
            cursor.execute(_PREFETCH)
        if has_room and is_known:
            return True
        cursor.execute(_READ_FOOTERS)
        return is_known and sum(each.size for each in facts.values()) > self._most


_CLOSED_OFF: Final = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "arrow_lossless_conversion": True,
    # Errors as JSON, with their position in the SQL.
    "errors_as_json": True,
    # Most people write x -> x + 1; without this setting only "lambda x: x + 1" works.
    "lambda_syntax": "ENABLE_SINGLE_ARROW",
}

# DuckDB caches bytes of stores and of local copies in memory that nothing else needs. Without
# this, a second query would copy them twice through Python, at 0.5 ms for a megabyte.
_OF_STORES: Final = {
    "cache_local_files": "true",
    "external_file_cache_local_max_block_size": 4 << 20,
}
# With less memory, queries need all of it for their own data.
_ENOUGH_TO_KEEP: Final = 1 << 30
_CLOSE_SECONDS: Final = 1.0


class Instance:
    """One DuckDB instance that may read below ``folders`` and nothing else.

    Its configuration, time zone included, is locked after the start. ``root`` is a connection
    from ``_started`` that the instance takes over. With ``keeps_footers`` the next query does not
    read the footers of local files again.
    """

    def __init__(
        self,
        folders: frozenset[str],
        settings: Settings,
        root: Any,
        *,
        keeps_footers: bool = False,
    ) -> None:
        import duckdb

        self.folders, self.settings = folders, settings
        self.discarded = False
        try:
            self._root = root
            # DuckDB compares paths as they are written; icesql escapes their wildcards.
            spelled = {*folders, *map(escape_glob, folders), OUTPUT_FOLDER}
            allowed = ", ".join(map(literal, sorted(spelled)))
            self._root.execute(f"SET allowed_directories = [{allowed}]")
            reads_stores = STORE_FOLDER in folders
            self.footers: KeptFooters | None = None
            chosen: dict[str, Any] = {}
            if reads_stores and settings.memory_limit >= _ENOUGH_TO_KEEP:
                chosen |= _OF_STORES
            if keeps_footers and settings.caches and not reads_stores:
                self.footers = KeptFooters(settings.memory_limit)
                chosen |= SETTINGS
                chosen["allowed_configs"] = [*SETTINGS]
            for name, value in chosen.items():
                self._root.execute(f"SET GLOBAL {name} = {value}")
            self._root.execute("SET enable_external_access = false")
            self._root.execute("SET GLOBAL TimeZone = ?", [settings.timezone])
            self._root.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            raise OperationalError(f"cannot start the local engine: {error}") from error
        self._open = 1
        self.outputs = OutputFiles(self._root.register_filesystem)
        self._store_files: StoreFiles | None = None
        self._kept: KeptRelations | None = None
        self._lock = threading.Lock()
        self.ended = threading.Event()
        keep_in_forks(self)

    def cursor(self) -> Any:
        """A new connection to this instance; give it back with ``release``."""
        with self._lock:
            self._open += 1
            return self._root.cursor()

    def release(self, cursor: Any) -> None:
        """Close a cursor; after ``let_go`` the instance ends with its last cursor."""
        cursor.close()
        self._drop()

    def begin_files(self) -> QueryFiles:
        """An empty set of object-store files for one query."""
        from icesql.engine.duckdb.store_files import QueryFiles, StoreFiles

        with self._lock:
            if self._store_files is None:
                self._store_files = StoreFiles(self._root.register_filesystem)
            return QueryFiles(self._store_files)

    def begin_kept(self) -> KeptLease:
        """A lease on the tables in memory that one query reads."""
        from icesql.engine.duckdb.relations.kept_relations import KeptLease, KeptRelations

        with self._lock:
            if self._kept is None:
                self._kept = KeptRelations(self.settings.memory_limit)
            return KeptLease(self._kept)

    def let_go(self) -> None:
        """Release the connection's own hold on this instance."""
        with self._lock:
            is_first, self.discarded = not self.discarded, True
        if is_first:
            self._drop()

    def _drop(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._root.close()
                self.ended.set()


class _Parser:
    """A connection that no query has run on, and its settings at the start."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.root = settings, _started(settings)
        keep_in_forks(self)


def _started(settings: Settings) -> Any:
    """A connection to a new instance, which still has access to files."""
    import duckdb

    from icesql.engine.query_thread import end_before_others

    end_before_others()
    config: dict[str, Any] = {
        **_CLOSED_OFF,
        "memory_limit": f"{settings.memory_limit}B",
        "temp_directory": _own_temp_directory(settings.temp_directory),
    }
    if settings.threads is not None:
        config["threads"] = settings.threads
    try:
        return duckdb.connect(config=config)
    except duckdb.Error as error:
        raise OperationalError(f"cannot start the local engine: {error}") from error


class InstancePool:
    """The instance of an icesql connection.

    The folders that an instance may read are fixed when it starts. So a query that needs another
    folder gets a new instance; open results keep theirs. ``keeps_footers``: see ``Instance``.
    """

    def __init__(self, *, keeps_footers: bool = False) -> None:
        self._keeps_footers = keeps_footers
        self._current: Instance | None = None
        self._parser: _Parser | None = None
        self._started: WeakSet[Instance] = WeakSet()
        self._closed = False
        self._lock = threading.RLock()

    def cursor(self, folders: Iterable[str], settings: Settings) -> tuple[Instance, Any]:
        """A cursor for a query that reads below ``folders``, and the instance to release it to.

        Raises OperationalError, and InterfaceError once the pool is closed.
        """
        # Under one lock: another query could let go of the instance before the cursor exists.
        with self._lock:
            instance = self.acquire(folders, settings)
            return instance, instance.cursor()

    def acquire(self, folders: Iterable[str], settings: Settings) -> Instance:
        """The instance that ``cursor`` uses, until a query needs another one."""
        with self._lock:
            self._check_open()
            wanted = frozenset(folders)
            current = self._current
            if (
                current is not None
                and not current.discarded
                and wanted <= current.folders
                and _same_limits(current.settings, settings)
            ):
                return current
            if current is not None:
                wanted |= current.folders
                current.let_go()
            self._current = Instance(
                wanted, settings, self._fresh(settings).root, keeps_footers=self._keeps_footers
            )
            self._started.add(self._current)
            return self._current

    @contextmanager
    def parsing(self, settings: Settings, *, is_long: bool = False) -> Iterator[Any]:
        """A cursor for the engine's parser only, before it is known which files a query reads.

        Its instance becomes the one that runs queries, so the first query does not wait twice. A
        long text, whose parser may still run after a timeout, gets an instance of its own: it
        blocks neither the next instance nor other threads.
        """
        with self._lock:
            self._check_open()
            current = self._current
            give_back: Callable[[Any], object]
            if current is not None and not current.discarded:
                cursor, give_back = current.cursor(), current.release
            elif is_long:
                cursor = _Parser(settings).root
                give_back = type(cursor).close
            else:
                if self._parser is None:
                    self._parser = _Parser(settings)
                yield self._parser.root
                return
        try:
            yield cursor
        finally:
            give_back(cursor)

    @contextmanager
    def asking(self, settings: Settings) -> Iterator[Any]:
        """A cursor for a query that reads no files, in the time zone of ``settings``."""
        import duckdb

        from icesql.engine.duckdb.errors import is_fatal

        with self._lock:
            self._check_open()
            current = self._current
            if current is None or current.discarded:
                self._parser = self._fresh(settings)
                try:
                    self._parser.root.execute("SET GLOBAL TimeZone = ?", [settings.timezone])
                    yield self._parser.root
                except duckdb.Error as error:
                    if is_fatal(error):
                        self._parser = None
                    raise
                return
            if not _same_limits(current.settings, settings):
                current = self.acquire((), settings)
            cursor = current.cursor()
        try:
            yield cursor
        except duckdb.Error as error:
            if is_fatal(error):
                self.discard(current)
            raise
        finally:
            current.release(cursor)

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")

    def _fresh(self, settings: Settings) -> _Parser:
        """A connection that no query has run on, which the pool no longer holds."""
        parser, self._parser = self._parser, None
        if parser is not None:
            if _same_limits(parser.settings, settings):
                return parser
            parser.root.close()
        return _Parser(settings)

    def discard(self, instance: Instance) -> None:
        """Remove an instance from the pool, such as one that a fatal error broke."""
        with self._lock:
            instance.let_go()
            if self._current is instance:
                self._current = None

    def close(self) -> None:
        """Let go of the current instance and start no other.

        Waits up to a second for cursors that are being released.
        """
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._current.let_go()
                self._current = None
            if self._parser is not None:
                self._parser.root.close()
                self._parser = None
        end = time.monotonic() + _CLOSE_SECONDS
        for instance in list(self._started):
            instance.ended.wait(max(0.0, end - time.monotonic()))


# The settings that are fixed when an instance starts.
_FIXED: Final = attrgetter("memory_limit", "temp_directory", "threads", "timezone", "caches")


def _same_limits(one: Settings, other: Settings) -> bool:
    return bool(_FIXED(one) == _FIXED(other))


def _own_temp_directory(folder: str) -> str:
    """The path of a new folder below ``folder``, which is created; "" disables spilling.

    DuckDB may access the folder that it spills to, so that folder never holds other files.
    DuckDB creates it when it first spills and removes it at the end. If nobody chose a folder
    and the default one cannot be written to, as in a read-only container, nothing is spilled:
    most queries do not need it.
    """
    try:
        make_temporary_folder(folder)
    except ScanLimitError:
        raise
    except OperationalError:
        if folder != default_temp_directory():
            raise
        return ""
    return os.path.join(os.path.abspath(folder), f"{os.getpid()}-{os.urandom(6).hex()}")
