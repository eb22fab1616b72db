"""Names for completion, fetched in the background once and cached until a statement runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icesql.config import time_zone
from icesql.dbapi.connection import macros_of
from icesql.frozen import Frozen
from icesql.quoting import literal
from icesql.repl.render import shortened, text_of
from icesql.repl.table_history import Commit, age, rows_text, snapshots_of

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection


class Known(Frozen):
    """A name or value, and the description beside it."""

    text: str
    about: str = ""


class Lookup:
    """A request for names or completions, in a daemon thread; one that fails has none."""

    def __init__(self, look_up: Callable[[], list[Any]]) -> None:
        self.found: list[Any] = []
        self.done = threading.Event()
        threading.Thread(
            target=self._run, args=(look_up,), name="icesql-names", daemon=True
        ).start()

    def _run(self, look_up: Callable[[], list[Any]]) -> None:
        with suppress(Exception):  # a prompt without suggestions is better than none
            self.found = look_up()
        self.done.set()


class Names:
    """Names fetched once and kept until ``forget``; a catalog that fails offers none.

    A catalog that does not respond within ``patience`` seconds offers none for now: a later
    response is used the next time. No second request is sent while one is pending.
    """

    def __init__(self, source: ConnectionSource, patience: float = 1.0) -> None:
        self.source, self._patience = source, patience
        self._lookups: dict[tuple[str, ...], Lookup] = {}
        # How often ``patience`` ran out before a response.
        self.given_up = 0

    def known(self, kind: str, *given: str) -> list[Any]:
        """The names that the source's method ``kind`` returns, such as ``columns`` of a table."""
        key = (kind, *given)
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = Lookup(partial(getattr(self.source, kind), *given))
        if not lookup.done.wait(self._patience):
            self.given_up += 1
        return lookup.found

    def forget(self) -> None:
        """Fetch the names again next time, since a statement may have changed them.

        A pending request is kept.
        """
        self._lookups = {
            key: lookup
            for key, lookup in self._lookups.items()
            if not lookup.done.is_set() or key[0] == "functions"
        }


# ------------------------------------------------------------------ from a connection


# The arguments of a function, as the text beside its name in the menu.

_WIDEST: Final = 72
_TABLES: Final = {
    "spark": "spark", "databricks": "spark", "hive": "spark", "trino": "trino",
    "presto": "trino", "athena": "trino", "snowflake": "snowflake",
}  # fmt: skip
# Functions that DuckDB's parser knows and its catalog does not.
_BY_PARSER: Final = {
    "coalesce": "(value, …)", "row_number": "() OVER (…)", "rank": "() OVER (…)",
    "dense_rank": "() OVER (…)", "percent_rank": "() OVER (…)", "cume_dist": "() OVER (…)",
    "ntile": "(buckets) OVER (…)", "lag": "(value[, offset[, default]]) OVER (…)",
    "lead": "(value[, offset[, default]]) OVER (…)", "first_value": "(value) OVER (…)",
    "last_value": "(value) OVER (…)", "nth_value": "(value, n) OVER (…)",
}  # fmt: skip


def arguments_of_functions(dialect: str) -> dict[str, str]:
    """The arguments, result and purpose of each function of a dialect that knows them."""
    if dialect.lower() in _TABLES:
        return _from_table(_TABLES[dialect.lower()])
    from icesql.engine.duckdb.signatures import signatures

    found = {
        name: f"{each.arguments} · {each.description}" if each.description else each.arguments
        for name, each in signatures().items()
    }
    found |= _BY_PARSER
    return {name: shortened(text, _WIDEST) for name, text in found.items()}


def _from_table(name: str) -> dict[str, str]:
    """From the tables of ``grammar/``: the first form, and whether there are others."""
    from icesql.sql.grammar import table_rows

    found: dict[str, str] = {}
    for row in table_rows(name):
        if row.name not in found:
            gives = "" if row.gives.startswith("$") or row.gives == "any" else f" → {row.gives}"
            found[row.name] = f"({row.takes}){gives}"
        elif not found[row.name].endswith(", …"):
            found[row.name] += ", …"
    return found


_MOST_SNAPSHOTS: Final = 100
_MOST_VALUES: Final = 200
_MOST_PATHS: Final = 1000


class ConnectionSource:
    """Where names come from: a connection. Everything may raise its errors; nothing reads data."""

    def __init__(self, connection: Connection, dialect: str = "", *, files: bool = False) -> None:
        """``files`` allows it to list local files, which a restricted shell may not."""
        self._connection, self._dialect, self._files = connection, dialect, files
        # Names as SQL spells them.
        self.tables, self.catalogs = connection.tables, connection.catalogs
        self.columns = connection.columns

    def versions(self, table: str) -> list[Known]:
        """Branches and tags of a table as texts, then its snapshots by number, newest first."""
        refs = [
            Known(literal(name), str(kind).lower())
            for name, kind, *_ in self._rows(f"SHOW REFS FROM {table}")
        ]
        refs.sort(key=lambda each: each.about == "tag")
        now = datetime.now(UTC)
        return refs + [
            Known(str(each.snapshot_id), _commit_text(each, now)) for each in self._snapshots(table)
        ]

    def times(self, table: str) -> list[Known]:
        """The commit times of a table in the session's time zone, newest first."""
        zone = time_zone(self._connection.settings.timezone)
        now = datetime.now(UTC)
        return [
            Known(
                f"'{each.committed_at.astimezone(zone):%Y-%m-%d %H:%M:%S.%f}'",
                _commit_text(each, now),
            )
            for each in self._snapshots(table)
        ]

    def values(self, table: str, column: str) -> list[Known]:
        """The values of an identity partition column, as literals of SQL."""
        wanted = column.strip('"')
        for name, _, _, _, partition, *_ in self._rows(f"DESCRIBE {table}"):
            if name == wanted and partition == "identity":
                break
        else:
            return []
        # The partitions table names the field like the column unless it was given another name.
        rows = self._rows(
            f"SELECT DISTINCT partition.{column} FROM {table}.partitions "
            f"ORDER BY 1 LIMIT {_MOST_VALUES}"
        )
        return [Known(_literal(value), "partition") for (value,) in rows if value is not None]

    def functions(self) -> list[Known]:
        """Functions and their arguments."""

        about, macros = arguments_of_functions(self._dialect), macros_of(self._connection)
        return [Known(name, f"{called} · macro") for name, called in macros.items()] + [
            Known(name, about.get(name.lower(), ""))
            for (name,) in self._rows("SHOW FUNCTIONS")
            if name[:1].isalpha() and name not in macros
        ]

    def settings(self) -> list[Known]:
        """Settings and their purposes."""
        return [Known(name, about or "") for name, _, _, about in self._rows("SHOW ALL")]

    def procedures(self) -> list[Known]:
        """Procedures that CALL runs; "(table string, [branch string = main]) · what it does"."""
        return [
            Known(name, f"{signature[signature.find('(') :]} · {description}")
            for name, signature, _, description in self._rows("SHOW PROCEDURES")
        ]

    def namespaces(self) -> list[str]:
        """Names of the namespaces."""
        return [str(row[0]) for row in self._rows("SHOW NAMESPACES")]

    def paths(self, beginning: str) -> list[str]:
        """Paths that begin so; folders end with a slash, hidden files are left out."""
        if not self._files:
            return []
        folder, name = os.path.split(beginning)
        found = []
        with suppress(OSError), os.scandir(os.path.expanduser(folder) or ".") as entries:
            for entry in entries:
                if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
                    slash = "/" if entry.is_dir() else ""
                    found.append(os.path.join(folder, entry.name) + slash)
        return sorted(found)[:_MOST_PATHS]

    def _snapshots(self, table: str) -> list[Commit]:
        """The newest ones, newest first."""
        found = snapshots_of(self._connection, table)
        return sorted(found, key=lambda each: each.committed_at, reverse=True)[:_MOST_SNAPSHOTS]

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        # As a script, so that an empty list causes no warning at the prompt.
        with next(self._connection.execute_script(sql)) as cursor:
            return cursor.fetchall()


def _commit_text(commit: Commit, now: datetime) -> str:
    since = age(now - commit.committed_at)
    return f"{since} ago, {commit.operation or '?'} {rows_text(commit)}".rstrip()


def _literal(value: Any) -> str:
    text = text_of(value)
    if isinstance(value, bool) or hasattr(value, "__neg__"):
        return text
    return literal(text)
