"""Tables that other systems wrote give the answers that their publishers state.

Each table's cases run by the corpus's own ``check.py``, both ways that icesql can read it. None
is excused.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import icesql
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.query.snapshot_selection import select_snapshot
from icesql.sql.time_travel import AsOf

CORPUS = Path(os.environ.get("ICESQL_CORPUS") or "/nonexistent")


def _lines(name: str) -> list[dict[str, Any]]:
    path = CORPUS / name
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _by_table() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for case in _lines("cases.jsonl"):
        tables.setdefault(case["table"], []).append(case)
    return tables


CASES = _by_table()
each_table = pytest.mark.parametrize("table", CASES or ["without a corpus"])


@pytest.fixture(scope="module")
def check(corpus: Path) -> ModuleType:
    """The corpus's own judge."""
    spec = importlib.util.spec_from_file_location("corpus_check", corpus / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _With:
    """icesql as ``check.py`` uses it, with one setting on every connection."""

    NotSupportedError = icesql.NotSupportedError

    def __init__(self, reader: str) -> None:
        self._reader = reader

    def connect(self, **arguments: Any) -> Any:
        connection = icesql.connect(**arguments)
        connection.execute(f"SET local_reader = '{self._reader}'")
        return connection


@each_table
@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_answers_are_those_of_the_publisher(
    check: ModuleType, corpus: Path, table: str, reader: str
) -> None:
    problems = []
    for case in CASES[table]:
        outcome, detail = check.run_case(_With(reader), case, corpus, "local")
        if outcome != "pass":
            problems.append(f"{case['id']} {outcome}: {case['sql']} | {detail}")
    assert problems == []


@each_table
def test_both_readers_give_the_same_rows_and_schema(
    check: ModuleType, corpus: Path, table: str
) -> None:
    with icesql.connect() as connection:
        connection.execute("SET caches = off")
        for case in CASES[table]:
            connection.execute(f"SET TIME ZONE '{case.get('timezone') or 'UTC'}'")
            connection.register_table("t", str(corpus / case["metadata"]))
            sql = check.with_time_travel(case["sql"], case.get("time_travel"))
            answers = []
            for reader in ("auto", "arrow"):
                connection.execute(f"SET local_reader = '{reader}'")
                answers.append(connection.execute(sql).arrow())
            assert answers[0].schema == answers[1].schema, case["sql"]
            assert _rows(answers[0], case) == _rows(answers[1], case), case["sql"]


def _rows(table: Any, case: dict[str, Any]) -> list[str]:
    # repr tells NaN, -0.0 and decimal scales apart, which == would not.
    rows = [repr(row) for row in zip(*(column.to_pylist() for column in table), strict=True)]
    return rows if case["ordered"] else sorted(rows)


def test_most_scans_are_read_by_the_engine_itself(corpus: Path, check: ModuleType) -> None:
    native, scans = 0, 0
    for cases in CASES.values():
        with icesql.connect() as connection:
            connection.register_table("t", str(corpus / cases[0]["metadata"]))
            try:
                cursor = connection.execute("SELECT * FROM t")
            except icesql.UnsupportedTableError:
                continue  # the cases ask for some of the columns only
            cursor.fetchall()
            scans += len(cursor.scan_groups)
            native += sum(group.startswith("duckdb") for group in cursor.scan_groups)
    assert scans > 40
    assert native / scans >= 0.6


# ------------------------------------------------------------------ time travel by instant


def _logs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables of several snapshots: their row of tables.jsonl with the log and what is left of it."""
    for row in _lines("tables.jsonl"):
        path = CORPUS / row["metadata"]
        if "multi-snapshot" not in row["features"] or ".gz" in path.name:
            continue
        metadata = json.loads(path.read_text(encoding="utf-8"))
        log = [(each["timestamp-ms"], each["snapshot-id"]) for each in metadata["snapshot-log"]]
        present = {snapshot["snapshot-id"] for snapshot in metadata["snapshots"]}
        yield row["table"], {**row, "log": log, "present": present}


LOGS = dict(_logs())


def current_at(row: dict[str, Any], moment: int) -> int | None:
    """The snapshot of the last log entry at or before ``moment`` (ms), None if it is gone."""
    found = None
    for instant, snapshot in row["log"]:
        if instant <= moment:
            found = snapshot
    return found if found in row["present"] else None


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("table", LOGS or ["without a corpus"])
def test_an_instant_reads_the_snapshot_that_was_current_then(
    corpus: Path, table: str, zone: str
) -> None:
    row = LOGS[table]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    with icesql.connect(timezone=zone) as connection:
        connection.register_table("t", str(corpus / row["metadata"]))
        for instant, _ in row["log"]:
            for moment in (instant - 1, instant, instant + 1):
                expected = current_at(row, moment)
                local = (epoch + timedelta(milliseconds=moment)).astimezone(ZoneInfo(zone))
                sql = f"SELECT * FROM t TIMESTAMP AS OF '{local.replace(tzinfo=None)}' LIMIT 0"
                if expected is None:
                    with pytest.raises(icesql.SnapshotNotFoundError):
                        connection.execute(sql)
                    continue
                try:
                    reports = connection.execute(sql).scan_reports
                except (icesql.NotSupportedError, icesql.StorageError):
                    assert row["usability"] != "full"
                    continue
                assert [report.snapshot_id for report in reports] == [expected], sql


@pytest.mark.parametrize("table", LOGS or ["without a corpus"])
def test_an_instant_selects_by_the_log_even_where_files_are_missing(
    corpus: Path, table: str
) -> None:
    row = LOGS[table]
    opened = open_table(str(corpus / row["metadata"]))
    for instant, _ in row["log"]:
        for moment in (instant - 1, instant, instant + 1):
            travel = AsOf(moment * 1000, str(moment))
            expected = current_at(row, moment)
            if expected is None:
                with pytest.raises(icesql.SnapshotNotFoundError):
                    select_snapshot(opened, travel, QueryContext())
            else:
                selected = select_snapshot(opened, travel, QueryContext()).snapshot
                assert selected is not None
                assert selected.snapshot_id == expected
