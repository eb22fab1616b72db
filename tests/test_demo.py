"""The demo builds a warehouse with a history, shows it, and leaves it to be queried."""

from __future__ import annotations

import io
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.open import open_catalog
from icesql.demo import build, run_demo
from icesql.errors import ProgrammingError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo") / "wh"
    build(place)
    return place


def _theirs(folder: Path, ref: str | None = None) -> Any:
    """The rows as PyIceberg reads them."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("icesql", uri=f"sqlite:///{folder}/catalog.db")
    table = catalog.load_table("demo.trips")
    rows = table.scan(snapshot_id=table.refs()[ref or "main"].snapshot_id).to_arrow()
    catalog.close()
    return rows


def test_the_table_has_a_history_worth_travelling_in(folder: Path) -> None:
    table = open_catalog(warehouse=folder).load(("demo", "trips"))
    main = [table.metadata.snapshot(entry.snapshot_id) for entry in table.metadata.snapshot_log]
    assert [each.operation for each in main if each] == [
        "append",
        "append",
        "overwrite",
        "delete",
        "append",
    ]
    assert {name: ref.kind for name, ref in table.metadata.refs.items()} == {
        "main": "branch",
        "audit": "branch",
        "two-weeks": "tag",
    }
    assert [field.name for field in table.metadata.schema.fields][-1] == "tip"
    assert [str(field.transform) for field in table.metadata.spec.fields] == ["day"]


def test_another_reader_sees_the_rows_that_were_meant(folder: Path) -> None:
    assert _theirs(folder).num_rows == 20 * 200
    assert _theirs(folder, "two-weeks").num_rows == 14 * 200
    assert _theirs(folder, "audit").num_rows == 15 * 200
    assert min(_theirs(folder)["pickup_at"].to_pylist()) == datetime(2026, 1, 2, tzinfo=UTC)


def test_the_rows_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    build(tmp_path / "again")
    order = [("id", "ascending")]
    assert _theirs(folder).sort_by(order).equals(_theirs(tmp_path / "again").sort_by(order))


def test_the_demo_shows_rows_snapshot_and_savings(folder: Path) -> None:
    out = io.StringIO()
    run_demo(folder, out)
    shown = out.getvalue()
    expected = _theirs(folder, "two-weeks")
    import pyarrow.compute as pc

    days = expected.filter(
        pc.and_(
            pc.greater_equal(expected["pickup_at"], datetime(2026, 1, 8, tzinfo=UTC)),
            pc.less(expected["pickup_at"], datetime(2026, 1, 10, tzinfo=UTC)),
        )
    )
    for row in days.group_by("city").aggregate([("fare", "sum")]).to_pylist():
        line = next(line for line in shown.splitlines() if f" {row['city']} " in line)
        assert str(row["fare_sum"]) in line
    assert "(two-weeks), committed" in shown
    assert "DELETE FROM demo.trips WHERE city = 'Cairo'" in shown
    assert _theirs(folder).num_rows == 20 * 200
    assert "1 of 2 manifests and 12 of 14 data files were never opened" in shown
    assert f"icesql --warehouse {folder}" in shown


def test_every_command_it_suggests_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from icesql.cli import main

    out = io.StringIO()
    run_demo(folder, out)
    commands = [line for line in out.getvalue().splitlines() if line.lstrip().startswith("icesql ")]
    with_query = [shlex.split(line) for line in commands if " -c " in line]
    assert len(with_query) == 4
    for _, *arguments in with_query:
        assert main(arguments) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "4000" in shown
    assert "2800" in shown


def test_the_demo_builds_its_folder_and_leaves_it_to_others(tmp_path: Path) -> None:
    out = io.StringIO()
    run_demo(tmp_path / "new", out)
    assert "A new warehouse is in" in out.getvalue()
    with icesql.connect(warehouse=str(tmp_path / "new")) as connection:
        assert connection.execute("SELECT count(*) FROM demo.trips").fetchall() == [(4000,)]


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ProgrammingError, match="not empty"):
        run_demo(tmp_path, io.StringIO())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
