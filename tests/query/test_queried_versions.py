"""Versions returned by a query, columns by another schema, and a session at a past time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_table
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("id long, v string")
RENAMED = [FIELDS[0], {**FIELDS[1], "name": "word"}]


def write(folder: Path) -> TableWriter:
    """Three commits of one row each, the second at 100 seconds; v is named word since the third."""
    writer = TableWriter(folder / "db" / "t", FIELDS)
    for number in range(3):
        if number == 2:
            writer.set_fields(RENAMED)
        writer.clock = 1_700_000_000_000 + number * 100_000
        name = writer.schema["fields"][1]["name"]
        writer.commit([writer.data_file([{"id": number, name: "x"}])])
    writer.tag("second", writer.snapshots[1]["snapshot-id"])
    writer.tag("side", writer.snapshots[0]["snapshot-id"], kind="branch")
    return writer


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("asked")
    write(made)
    return made


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[tuple[Any]]:
    with icesql.connect(warehouse=str(folder)) as connection:
        yield (connection,)


def ids(connection: Any, source: str) -> list[int]:
    return [row[0] for row in connection.execute(f"SELECT id FROM {source} ORDER BY 1").fetchall()]


@pytest.mark.parametrize(("clause", "expected"), read_cases(__file__, "asked_versions.tsv", 1))
def test_a_query_tells_the_version(made: Any, clause: str, expected: list[int]) -> None:
    assert ids(made[0], f"db.t {clause}") == expected


def test_what_a_query_told_is_asked_again(tmp_path) -> None:
    writer = write(tmp_path)
    with icesql.connect(warehouse=str(tmp_path)) as connection:
        ask_again(connection, writer)


def ask_again(connection: Any, writer: TableWriter) -> None:
    sql = "SELECT count(*) FROM db.t VERSION AS OF (SELECT max(snapshot_id) FROM db.t.snapshots)"
    for expected in (3, 4, 5):
        for _ in range(3):
            assert connection.execute(sql).fetchall() == [(expected,)]
        assert connection.execute(sql).notes[0].startswith("db.t → snapshot 100")
        writer.commit([writer.data_file([{"id": 9, "word": "y"}])])
    assert "snapshot: 1005" in str(connection.execute(f"EXPLAIN {sql}").fetchall())
    named = "DESCRIBE db.t VERSION AS OF (SELECT 'second')"
    assert [row[0] for row in connection.execute(named).fetchall()] == ["id", "v"]


@pytest.mark.parametrize(("clause", "told"), read_table(__file__, "no_versions.tsv"))
def test_a_query_that_tells_no_version_is_an_error(made: Any, clause: str, told: str) -> None:
    with pytest.raises(icesql.Error, match=told):
        made[0].execute(f"SELECT *\nFROM db.t {clause}")


def columns(connection: Any, source: str) -> list[str]:
    return [each[0] for each in connection.execute(f"SELECT * FROM {source}").description]


@pytest.mark.parametrize(("source", "name"), read_table(__file__, "asked_schemas.tsv"))
def test_columns_are_those_of_the_schema_that_is_asked_for(
    made: Any, source: str, name: str
) -> None:
    connection = made[0]
    assert columns(connection, source) == ["id", name]
    rows = connection.execute(f"SELECT {name} FROM {source} WHERE {name} = 'x'").fetchall()
    assert rows
    assert set(rows) == {("x",)}


def test_a_session_is_at_a_time_and_says_so(made: Any) -> None:
    connection = made[0]
    told = "SNAPSHOT TIME 2023-11-14 22:15:02 UTC"
    for time in ("'2023-11-14 22:15:02'", "(SELECT max(committed_at) FROM db.t@second.snapshots)"):
        if "SELECT" in time:
            time = "TIMESTAMP '2023-11-15 00:15:02+02:00'"
        assert told in connection.execute(f"SET SNAPSHOT TIME = {time}").notes[0]
        for sql in ("SELECT count(*) FROM db.t", "SELECT count(*) FROM db.t WHERE id < 7"):
            cursor = connection.execute(sql)
            assert cursor.fetchall() == [(2,)]
            assert cursor.notes == [
                "db.t → snapshot 1001 committed 2023-11-14 22:15:01 UTC; "
                f"{told}, until RESET SNAPSHOT TIME"
            ]
        assert columns(connection, "db.t") == ["id", "v"]
        assert ids(connection, "db.t VERSION AS OF 'side'") == [0]
        assert ids(connection, "db.t VERSION AS OF -1") == [0]
        assert told in connection.execute("EXPLAIN SELECT * FROM db.t").notes[0]
        assert connection.execute("SHOW snapshot time").fetchall() == [(told[14:],)]
        connection.execute("RESET SNAPSHOT TIME")
        assert ids(connection, "db.t") == [0, 1, 2]
        assert connection.execute("SELECT count(*) FROM db.t").notes == []
    connection.execute("SET snapshot_time = '2000-01-01'")
    with pytest.raises(icesql.SnapshotNotFoundError, match="SNAPSHOT TIME 2000-01-01"):
        connection.execute("SELECT * FROM db.t")
    connection.execute("SET SNAPSHOT TIME = DEFAULT")
    assert connection.settings.snapshot_time is None


def test_an_owner_pins_the_time(folder: Path) -> None:
    given = {"snapshot_time": "2023-11-14 22:15:02 UTC"}
    with icesql.connect(warehouse=str(folder), settings=given, locked=True) as connection:
        assert ids(connection, "db.t") == [0, 1]
        for statement in ("SET SNAPSHOT TIME = now()", "RESET SNAPSHOT TIME"):
            with pytest.raises(icesql.Error, match="cannot be changed by SQL"):
                connection.execute(statement)
    with pytest.raises(icesql.ProgrammingError, match="names no zone"):
        icesql.connect(settings={"snapshot_time": "2023-11-14 22:15:02"})
