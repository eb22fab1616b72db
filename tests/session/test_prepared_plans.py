"""A query that comes again is planned once while its tables stay the same, and anew when not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.scan import planner
from icesql.session import prepared

FILES = 20
SUM = "SELECT count(*), sum(x) FROM n.t WHERE id >= 0"
EXPECTED = (FILES * 10, float(sum(range(FILES * 10))))


def insert(connection: Any, number: int) -> None:
    low = number * 10
    connection.execute(
        f"INSERT INTO n.t SELECT i AS id, i::DOUBLE AS x FROM range({low}, {low + 10}) AS r(i)"
    )


def make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with icesql.connect(warehouse=str(folder)) as connection:
        connection.execute("CREATE SCHEMA n")
        connection.execute("CREATE TABLE n.t (id BIGINT, x DOUBLE)")
        for number in range(FILES):
            insert(connection, number)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that are not where they were written, so a copy of them is read where it is."""
    folder = tmp_path_factory.mktemp("plans")
    make(folder / "first")
    return (folder / "first").rename(folder / "then")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy in another place, which a test may change."""
    return shutil.copytree(made, tmp_path / "moved")


@pytest.fixture
def connection(folder: Path) -> Iterator[Any]:
    with icesql.connect(warehouse=str(folder)) as opened:
        yield opened


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The scans that were planned."""
    found: list[Any] = []
    plain = planner.plan

    def noted(scan: Any, query: Any) -> Any:
        found.append(scan)
        return plain(scan, query)

    monkeypatch.setattr(planner, "plan", noted)
    return found


def rows(connection: Any, sql: str = SUM) -> Any:
    return connection.execute(sql).fetchall()[0]


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/*.parquet"))


def test_what_stays_the_same_is_planned_once(connection: Any, planned: list[Any]) -> None:
    assert [rows(connection) for _ in range(8)] == [EXPECTED] * 8
    assert len(planned) == 2  # a text is prepared when it comes for the second time
    cursor = connection.execute(SUM)
    cursor.fetchall()
    (report,) = cursor.scan_reports
    assert report.result_data_files == FILES
    assert cursor.scan_groups == ["duckdb"] * FILES


def test_a_commit_is_planned_anew(tmp_path: Path) -> None:
    make(tmp_path)
    with (
        icesql.connect(warehouse=str(tmp_path)) as connection,
        icesql.connect(warehouse=str(tmp_path)) as other,
    ):
        for _ in range(5):
            rows(connection)
        insert(other, FILES)
        more = (FILES * 10 + 10, float(sum(range(FILES * 10 + 10))))
        assert [rows(connection) for _ in range(5)] == [more] * 5
        connection.execute("DELETE FROM n.t WHERE id >= 200")
        assert [rows(connection) for _ in range(5)] == [EXPECTED] * 5
        connection.execute("DROP TABLE n.t PURGE")
        with pytest.raises(icesql.TableNotFoundError):
            rows(connection)


def test_a_setting_is_planned_anew(connection: Any, planned: list[Any]) -> None:
    for _ in range(5):
        rows(connection)
    before = len(planned)
    connection.execute("SET max_scan_files = 3")
    with pytest.raises(icesql.ScanLimitError):
        rows(connection)
    connection.execute("SET max_scan_files = 50")
    assert rows(connection) == EXPECTED
    assert len(planned) == before + 2


def test_a_data_file_in_the_place_of_another_is_seen(connection: Any, folder: Path) -> None:
    for _ in range(5):
        rows(connection)
    path, new = data_files(folder)[0], folder / "new.parquet"
    sql = f"SELECT id, x + 1000 AS x FROM '{path}'"
    duckdb.sql(f"COPY ({sql}) TO '{new}' (FORMAT parquet, FIELD_IDS {{id: 1, x: 2}})")
    os.replace(new, path)
    assert rows(connection) == (EXPECTED[0], EXPECTED[1] + 10_000)


def test_a_data_file_that_is_gone_is_an_error(connection: Any, folder: Path) -> None:
    for _ in range(5):
        rows(connection)
    path = data_files(folder)[3]
    path.unlink()
    with pytest.raises(icesql.Error, match=path.name):
        rows(connection)


def test_a_table_that_moved_is_planned_where_it_is(
    connection: Any, folder: Path, planned: list[Any]
) -> None:
    for _ in range(5):
        rows(connection)
    before = len(planned)
    os.rename(folder / "n", folder / "gone")
    (folder / "n").mkdir()
    with pytest.raises(icesql.TableNotFoundError):
        rows(connection)
    (folder / "n").rmdir()
    os.rename(folder / "gone", folder / "n")
    assert rows(connection) == EXPECTED
    assert len(planned) <= before + 1


def test_confined_paths_are_looked_up_each_time(folder: Path, planned: list[Any]) -> None:
    with icesql.connect(warehouse=str(folder), confine=[folder]) as connection:
        assert [rows(connection) for _ in range(5)] == [EXPECTED] * 5
    assert len(planned) == 5


def test_parameters_are_planned_each_time(connection: Any, planned: list[Any]) -> None:
    sql = "SELECT x FROM n.t WHERE id = ?"
    found = [connection.execute(sql, [key]).fetchall() for key in range(6)]
    assert found == [[(float(key),)] for key in range(6)]
    assert len(planned) == 6


def test_the_oldest_plans_go_first(
    connection: Any, monkeypatch: pytest.MonkeyPatch, planned: list[Any]
) -> None:
    monkeypatch.setattr(prepared, "_FILE_BYTES", 1_000_000)
    monkeypatch.setattr(prepared, "_MOST_BYTES", 3_500_000 * FILES)
    connection._session.pipeline.drop_prepared()
    texts = [f"{SUM} AND x < {1000 + number}" for number in range(5)]
    for text in texts:
        for _ in range(4):
            assert rows(connection, text) == EXPECTED
    assert len(connection._session.pipeline.prepared) == 3
    planned.clear()
    assert rows(connection, texts[4]) == EXPECTED
    assert planned == []
    assert rows(connection, texts[0]) == EXPECTED
    assert len(planned) == 1


def test_a_plan_of_very_many_files_is_not_kept(
    connection: Any, monkeypatch: pytest.MonkeyPatch, planned: list[Any]
) -> None:
    monkeypatch.setattr(prepared, "_MOST_FILES", FILES)
    assert [rows(connection) for _ in range(5)] == [EXPECTED] * 5
    assert len(planned) == 5
