"""One suite file in court: the database that it builds, the copies, and icesql over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import icesql
from tests.campaigns.foreign.answers import Answer, answer_of
from tests.campaigns.foreign.copies import Copies
from tests.campaigns.foreign.duckdb_reference import ask, plain_duckdb, time_limit
from tests.campaigns.foreign.iceberg_catalog import IcebergCatalog
from tests.campaigns.foreign.sqllogictest import Record
from tests.campaigns.foreign.verdicts import Failure, Verdict, judge, said

SECONDS = 15.0
_BEGINNINGS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*"
    r"(select|with|from|values|table|pivot|unpivot|describe|desc|summarize|show)\b",
    re.IGNORECASE | re.DOTALL,
)
_ELSEWHERE = re.compile(
    r"\b(duckdb_\w+|pragma_\w+|parquet_\w+|read_\w+|sniff_csv|glob|sql_auto_complete|which_secret"
    r"|seq_scan|parse_\w+_log\w*|sqlsmith\w*|reduce_sql_statement|getvariable|current_setting"
    r"|pg_\w+|has_\w+_privilege|sleep\w*|stats|nextval|currval|query|query_table)\s*\("
    r"|\b(information_schema|pg_catalog)\.|\b(pg_\w+|sqlite_master|sqlite_schema)\b"
    r"|\bfrom\s+'|^\s*(show|describe|desc)\b|\(\s*(show|describe|desc)\b",
    re.IGNORECASE,
)
# What a catalog holds is told in the words of each system.
_OF_CATALOG = re.compile(r"\binformation_schema\.|\(\s*(show|describe|desc)\b", re.IGNORECASE)
# A WITH query that changes tables is no query.
_CHANGES = re.compile(
    r"\bas\s+(not\s+)?(materialized\s+)?\(\s*(insert\s|update\s|delete\s+from\b|merge\s+into\b)",
    re.IGNORECASE,
)
_SHOWS = re.compile(r"\s*(show|describe|desc)\b", re.IGNORECASE)
_ORDERS = ("rowid DESC", "hash(rowid)")
_SIDE_EFFECT = re.compile(r"\b(nextval|setval|setseed)\b", re.IGNORECASE)
_NOT_HERE = re.compile(r"\s*(install|load|attach\s+'(https?|s3):)", re.IGNORECASE)
_TIME_ZONE = re.compile(r"\s*set\s+(?:global\s+|session\s+)?timezone\s*(?:=|to)\s*'?([^';]+)", re.I)


class Court:
    """One suite file: the database it builds, the copies, and icesql over them."""

    def __init__(self, folder: Path) -> None:
        self.database = duckdb.connect(
            config={"threads": 2, "memory_limit": "2GB", "autoinstall_known_extensions": False}
        )
        self.database.execute("SET enable_progress_bar = false")
        self.connections = {"": self.database}
        self.mirror = plain_duckdb()
        self.iceberg = IcebergCatalog(folder)
        self.copies = Copies(self.iceberg, self.mirror)
        self.icesql = icesql.connect(
            uri=self.iceberg.uri,
            files=True,
            settings={"query_timeout": SECONDS, "memory_limit": "2GB", "threads": 2},
        )
        self.icesql.execute("USE main")

    def prepare(self, connection: str, sql: str) -> None:
        """Run what makes or changes tables; what fails, fails there too."""
        if _NOT_HERE.match(sql):
            return
        if zone := _TIME_ZONE.match(sql):
            with suppress(duckdb.Error, icesql.Error):
                self.mirror.execute(f"SET TimeZone = '{zone[1].strip()}'")
                self.icesql.execute(f"SET timezone = '{zone[1].strip()}'")
        database = self._connection(connection)
        with suppress(Exception), time_limit(database, SECONDS):
            database.execute(sql).fetchall()
        self.copies.changed()

    def verdict(self, connection: str, sql: str) -> tuple[Verdict, str]:
        """The verdict on a SELECT, and the SQL that makes its tables again."""
        try:
            self.copies.bring(self._connection(connection), sql)
        except Exception as error:
            return Verdict("uncopied", said(error)), ""
        found = judge(
            lambda: ask(self.mirror, sql, SECONDS),
            lambda: self._ask_icesql(sql),
            [partial(self._ask_reordered, sql, order) for order in _ORDERS],
        )
        refused = found.word in ("refused", "both", "error")
        other = found.word in ("WRONG", "names") and _OF_CATALOG.search(sql)
        if _SHOWS.match(sql) or other or (refused and _ELSEWHERE.search(sql)):
            found = Verdict("elsewhere")
        setup = "" if found.word in ("same", "both") else self._setup(sql)
        if _SIDE_EFFECT.search(sql):
            self.prepare(connection, sql)
        return found, setup

    def _setup(self, sql: str) -> str:
        with suppress(Exception):
            used = self.copies.bring(self.database, sql)
            return "\n".join(self.copies.as_sql(key) for key in used)
        return ""

    def _connection(self, name: str) -> Any:
        if name not in self.connections:
            self.connections[name] = self.database.cursor()
        return self.connections[name]

    def _ask_icesql(self, sql: str) -> Answer | Failure:
        try:
            cursor = self.icesql.execute(sql)
            if cursor.description is None:
                return Answer((), ())
            return answer_of(cursor.arrow())
        except Exception as error:
            return Failure(error)

    def _ask_reordered(self, sql: str, order: str) -> Answer | Failure:
        with self.copies.reordered(order):
            return ask(self.mirror, sql, SECONDS)

    def close(self) -> None:
        """Close all that was opened and delete the copies."""
        self.icesql.close()
        self.mirror.close()
        self.database.close()
        self.iceberg.remove()


def judged_statements(court: Court, record: Record) -> Iterator[tuple[str, Verdict, str]]:
    """Run the record; each SELECT of it with its verdict."""
    try:
        statements = [
            (str(each.query), _is_select(each))
            for each in court.mirror.extract_statements(record.sql)
        ]
    except duckdb.Error:
        # DuckDB's parser refuses it; icesql should as well.
        statements = [(record.sql, True)]
    for sql, is_select in statements:
        if is_select and _BEGINNINGS.match(sql) and not _CHANGES.search(sql):
            yield sql, *court.verdict(record.connection, sql)
        else:
            court.prepare(record.connection, sql)


def _is_select(statement: Any) -> bool:
    try:
        return bool(statement.type == duckdb.StatementType.SELECT)
    except ValueError:
        # A kind that the Python module has no name for.
        return False


@contextmanager
def in_court(folder: Path) -> Iterator[Court]:
    """A court whose copies lie in ``folder``."""
    with closing(Court(folder)) as court:
        yield court
