"""CHANGES: the forms of a range, updates by keys, and refusals."""

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


class Made:
    """Five commits: two rows, one more, an update by rewrite, a delete by position, no change."""

    def __init__(self, folder: Path) -> None:
        writer = self.writer = TableWriter(folder / "t", FIELDS)
        first = writer.data_file([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        writer.commit([first])
        second = writer.data_file([{"id": 3, "v": "c"}])
        writer.commit([second])
        rewritten = writer.data_file([{"id": 1, "v": "a"}, {"id": 2, "v": "B"}])
        writer.commit([rewritten], [first])
        writer.commit([writer.position_deletes([(rewritten, 0)])])
        self.ids = [each["snapshot-id"] for each in writer.snapshots]


@pytest.fixture
def made(tmp_path) -> Iterator[tuple[Any, list[int]]]:
    table = Made(tmp_path)
    with icesql.connect() as connection:
        connection.register_table("t", table.writer.metadata_path)
        yield connection, table.ids


def rows(connection: Any, clause: str, columns: str = "id, v, _change_type") -> list[Any]:
    return connection.execute(f"SELECT {columns} FROM t {clause} ORDER BY ALL").fetchall()


@pytest.mark.parametrize(("clause", "columns", "expected"), read_cases(__file__, "changes.tsv", 2))
def test_what_changed(made: Any, clause: str, columns: str, expected: list[Any]) -> None:
    connection, ids = made
    assert rows(connection, clause.format(*ids), columns) == expected


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("table_changes('t', {1})", "t CHANGES FROM VERSION {1} INCLUSIVE"),
        ("TABLE_CHANGES('t', {1}, {2})", "t CHANGES FROM VERSION {0} TO VERSION {2}"),
        (
            "table_changes('\"t\"', '2000-01-01', TIMESTAMP '2100-01-01') AS c",
            "t CHANGES FROM VERSION {0} INCLUSIVE",
        ),
        (
            "t CHANGES (INFORMATION => DEFAULT) AT (VERSION => {0}) END (VERSION => {3})",
            "t CHANGES FROM VERSION {0} TO VERSION {3} WITH (deduplicationMode = netChanges)",
        ),
        (
            "t CHANGES (INFORMATION => DEFAULT) AT (TIMESTAMP => '2000-01-01'::timestamp)",
            "t CHANGES FROM VERSION {0} INCLUSIVE WITH (deduplicationMode = netChanges)",
        ),
    ],
)
def test_changes_as_other_systems_spell_them(made: Any, other: str, same: str) -> None:
    connection, ids = made

    def found(source: str) -> list[Any]:
        sql = f"SELECT * FROM {source.format(*ids)} WHERE _change_type <> 'none' ORDER BY ALL"
        return list(connection.execute(sql).fetchall())

    assert found(other) == found(same) != []


def test_the_versions_of_a_call_can_be_parameters(made: Any) -> None:
    connection, ids = made
    cursor = connection.execute("SELECT t.id FROM table_changes('t', ?) ORDER BY 1", [ids[3]])
    assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize(("source", "told"), read_table(__file__, "no_change_calls.tsv"))
def test_a_call_that_cannot_be_understood_is_an_error(made: Any, source: str, told: str) -> None:
    connection, _ = made
    with pytest.raises(icesql.Error, match=told):
        connection.execute(f"SELECT * FROM {source}")


def test_a_parameter_and_an_alias_and_a_join(made: Any) -> None:
    connection, ids = made
    sql = (
        "SELECT c.id, t.v FROM t CHANGES FROM VERSION ? AS c JOIN t ON t.id = c.id "
        "WHERE c._change_type = 'insert' ORDER BY c.id"
    )
    assert connection.execute(sql, [ids[0]]).fetchall() == [(2, "B"), (3, "c")]


def test_a_query_reads_only_what_differs(made: Any) -> None:
    connection, ids = made
    cursor = connection.execute(
        f"SELECT * FROM t CHANGES FROM VERSION {ids[0]} TO VERSION {ids[1]}"
    )
    assert cursor.fetchall()
    assert cursor.scan_reports[0].result_data_files == 1


@pytest.mark.parametrize(("clause", "told"), read_table(__file__, "no_change_ranges.tsv"))
def test_a_range_that_cannot_be_told_is_an_error(made: Any, clause: str, told: str) -> None:
    connection, ids = made
    with pytest.raises(icesql.Error, match=told):
        rows(connection, clause.format(*ids))


def test_two_rows_of_one_key_are_no_update(tmp_path) -> None:
    writer = TableWriter(tmp_path / "t", FIELDS)
    first = writer.data_file([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}])
    writer.commit([first])
    writer.commit([writer.data_file([{"id": 1, "v": "c"}])], [first])
    start = writer.snapshots[0]["snapshot-id"]
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        with pytest.raises(icesql.Error, match="several have one key in a commit"):
            rows(
                connection,
                f"CHANGES FROM VERSION {start} KEYED BY (id) WITH (computeUpdates = true)",
            )


def test_the_sign_of_zero_is_a_change(tmp_path) -> None:
    writer = TableWriter(tmp_path / "t", fields("x double, l list<float>"))
    first = writer.data_file([{"x": 0.0, "l": [1.0]}, {"x": 2.0, "l": [0.0]}, {"x": 3.0, "l": []}])
    writer.commit([first])
    changed = [{"x": -0.0, "l": [1.0]}, {"x": 2.0, "l": [-0.0]}, {"x": 3.0, "l": []}]
    writer.commit([writer.data_file(changed)], [first])
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        for mode in ("dropCarryovers", "netChanges"):
            clause = f"CHANGES FROM VERSION 1000 WITH (deduplicationMode = {mode})"
            found = rows(connection, clause, "_change_type, x::varchar, l::varchar")
            assert found == [
                ("delete", "0.0", "[1.0]"), ("delete", "2.0", "[0.0]"),
                ("insert", "-0.0", "[1.0]"), ("insert", "2.0", "[-0.0]"),
            ]  # fmt: skip
