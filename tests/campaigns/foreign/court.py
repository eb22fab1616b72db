"""Judge one suite file: the database that it builds, the copies, and icesql over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import icesql
from tests.campaigns.foreign.answers import (
    Answer,
    Failure,
    Verdict,
    arrow_table,
    ask,
    ask_icesql,
    judge,
    plain_duckdb,
    said,
    time_limit,
)
from tests.campaigns.foreign.copies import MOST_ROWS, Copies, Name, quoted
from tests.campaigns.foreign.findings import Finding
from tests.campaigns.foreign.sqllogictest import Record

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
# Contents of a catalog are worded differently by each system.
_OF_CATALOG = re.compile(r"\binformation_schema\.|\(\s*(show|describe|desc)\b", re.IGNORECASE)
# A WITH statement that changes tables is no query.
_CHANGES = re.compile(
    r"\bas\s+(not\s+)?(materialized\s+)?\(\s*(insert\s|update\s|delete\s+from\b|merge\s+into\b)",
    re.IGNORECASE,
)
_SHOWS = re.compile(r"\s*(show|describe|desc)\b", re.IGNORECASE)
_ORDERS = ("rowid DESC", "hash(rowid)")
_SIDE_EFFECT = re.compile(r"\b(nextval|setval|setseed)\b", re.IGNORECASE)
_NOT_HERE = re.compile(r"\s*(install|load|attach\s+'(https?|s3):)", re.IGNORECASE)
_TIME_ZONE = re.compile(r"\s*set\s+(?:global\s+|session\s+)?timezone\s*(?:=|to)\s*'?([^';]+)", re.I)


class DuckdbCopies(Copies):
    """Copies of the tables and views of a DuckDB."""

    def __init__(self, folder: Path, database: Any) -> None:
        super().__init__(folder, "memory", "main")
        self.database = database

    def names(self) -> list[Name]:
        kinds = (("tables", "table_name"), ("views", "view_name"))
        listed = " UNION ALL ".join(
            f"SELECT schema_name, {name} FROM duckdb_{kind}() WHERE NOT internal "
            "AND database_name IN ('memory', 'temp')" for kind, name in kinds
        )  # fmt: skip
        return self.database.execute(f"{listed} ORDER BY ALL").fetchall()  # type: ignore[no-any-return]

    def columns(self, key: Name) -> dict[str, str]:
        place = ".".join(map(quoted, key))
        described = self.database.execute(f"SELECT * FROM {place} LIMIT 0").description
        return {name: "UUID" * (kind == "UUID") for name, kind, *_ in described}

    def rows(self, key: Name, columns: list[str]) -> pa.Table:
        cells, place = ", ".join(map(quoted, columns)), ".".join(map(quoted, key))
        cursor = self.database.execute(f"SELECT {cells} FROM {place} LIMIT {MOST_ROWS + 1}")
        huge = [name for name, kind, *_ in cursor.description if "HUGEINT" in str(kind)]
        if huge:  # its Arrow form has values beyond the digits of DuckDB's type
            fitting = ", ".join(f"CAST({quoted(each)} AS DECIMAL(38, 0)) AS {quoted(each)}" for each in huge)  # fmt: skip
            cells = f"* REPLACE ({fitting}) FROM (SELECT {cells}"
            cursor = self.database.execute(f"SELECT {cells} FROM {place} LIMIT {MOST_ROWS + 1})")
        return arrow_table(cursor)


class Court:
    """The database that a suite file builds, the copies, and icesql over them."""

    def __init__(self, folder: Path) -> None:
        self.database = plain_duckdb()
        self.database.execute("RESET TimeZone")
        self._connections = {"": self.database}
        self.copies = DuckdbCopies(folder, self.database)
        self.mirror = self.copies.mirror
        settings = {"query_timeout": SECONDS, "memory_limit": "2GB", "threads": 2}
        self.icesql = icesql.connect(**self.copies.arguments, settings=settings)
        self.icesql.execute("USE main")

    def judged(self, where: str, record: Record) -> Iterator[Finding]:
        """Run the record; yield a finding for each SELECT in it."""
        try:
            statements = [
                (str(each.query), _is_select(each))
                for each in self.mirror.extract_statements(record.sql)
            ]
        except duckdb.Error:
            # DuckDB's parser refuses it; icesql should, too.
            statements = [(record.sql, True)]
        for sql, is_select in statements:
            if is_select and _BEGINNINGS.match(sql) and not _CHANGES.search(sql):
                yield self._finding(f"{where}:{record.line}", record.connection, sql)
            else:
                self._prepare(record.connection, sql)

    def _prepare(self, connection: str, sql: str) -> None:
        """Run a statement that creates or changes tables; errors are expected here, too."""
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

    def _finding(self, place: str, connection: str, sql: str) -> Finding:
        """The verdict on a SELECT, and the SQL that recreates its tables."""
        self.copies.database = self._connection(connection)
        try:
            used = self.copies.bring(sql)
        except Exception as error:
            return Finding(place, "uncopied", sql, said(error))
        found = judge(
            lambda: ask(self.mirror, sql, SECONDS),
            lambda: ask_icesql(self.mirror, self.icesql, sql),
            [partial(self._ask_reordered, sql, order) for order in _ORDERS],
        )
        refused = found.word in ("refused", "both", "error")
        other = found.word in ("WRONG", "names") and _OF_CATALOG.search(sql)
        if _SHOWS.match(sql) or other or (refused and _ELSEWHERE.search(sql)):
            found = Verdict("elsewhere")
        made = Finding(place, *found[:1])
        if found.word != "same":
            setup = "\n".join(map(self.copies.as_sql, used)) if found.word != "both" else ""
            made = Finding(place, found.word, sql, found.note, setup)
        if _SIDE_EFFECT.search(sql):
            self._prepare(connection, sql)
        return made

    def _connection(self, name: str) -> Any:
        if name not in self._connections:
            self._connections[name] = self.database.cursor()
        return self._connections[name]

    def _ask_reordered(self, sql: str, order: str) -> Answer | Failure:
        with self.copies.reordered(order):
            return ask(self.mirror, sql, SECONDS)

    def close(self) -> None:
        """Close all that was opened."""
        for each in (self.icesql, self.copies, self.database):
            each.close()


def _is_select(statement: Any) -> bool:
    try:
        return bool(statement.type == duckdb.StatementType.SELECT)
    except ValueError:
        # A kind that the Python module has no name for.
        return False
