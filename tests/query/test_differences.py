"""DIFF, DIFF SUMMARY and BLAME: their forms, the author of a change, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_table
from tests.writer.fields import fields, spec
from tests.writer.table import TableWriter

FIELDS = fields("id int, city string")
LATER = fields("id long, town string, n int")
BY_CITY = spec("2 identity city")
HOSTILE = "x'); DROP TABLE t; --"


class Made:
    """Two rows; one more, by Spark; one updated and one deleted; new columns, and a branch."""

    def __init__(self, folder: Path) -> None:
        writer = self.writer = TableWriter(folder / "t", FIELDS, spec=BY_CITY)
        first = writer.data_file([{"id": 1, "city": "a"}, {"id": 2, "city": "a"}], partition=("a",))
        writer.commit([first])
        writer.commit([writer.data_file([{"id": 3, "city": "b"}], partition=("b",))])
        writer.snapshots[-1]["summary"] |= {
            "engine-name": "spark", "engine-version": "4.0.1", "spark.app.id": HOSTILE,
        }  # fmt: skip
        moved = writer.data_file([{"id": 2, "city": "c"}], partition=("c",))
        writer.commit([moved, writer.position_deletes([(first, 0), (first, 1)], partition=("a",))])
        writer.tag("side", writer.snapshots[1]["snapshot-id"], kind="branch")
        writer.commit([writer.data_file([{"id": 9, "city": "b"}], partition=("b",))], branch="side")
        writer.set_fields(LATER)
        wide = {"id": 1 << 40, "town": "b", "n": 1}
        writer.commit([writer.data_file([wide], partition=("b",))])
        self.ids = [each["snapshot-id"] for each in writer.snapshots]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[tuple[Any, list[int]]]:
    table = Made(tmp_path_factory.mktemp("differences"))
    with icesql.connect() as connection:
        connection.register_table("t", table.writer.metadata_path)
        yield connection, table.ids


def rows(connection: Any, sql: str, *parameters: Any) -> list[Any]:
    return list(connection.execute(sql, list(parameters) or None).fetchall())


MOVED = [(1, "a", "delete"), (2, "a", "delete"), (2, "c", "insert"), (3, "b", "insert")]


@pytest.mark.parametrize(
    "ends",
    [
        "{0} AND {2}",
        "VERSION {0} AND VERSION {2}",
        "(SELECT min(snapshot_id) FROM t.snapshots) AND {2}",
        "-3 AND -1",
        "'main~3' AND 'HEAD~1'",
        "TIMESTAMP '2023-11-14 22:13:22' AND '2023-11-14 22:13:27'",
        "TIMESTAMP '2023-11-14' + INTERVAL '22:13:22' AND {2}",
        "? AND ?",
    ],
)
def test_a_difference_is_that_of_two_states_in_any_spelling(made: Any, ends: str) -> None:
    connection, ids = made
    given = [ids[0], ids[2]] if "?" in ends else []
    sql = f"SELECT * FROM (DIFF t BETWEEN {ends.format(*ids)}) AS d ORDER BY ALL"
    assert rows(connection, sql, *given) == MOVED
    whole = f"DIFF t BETWEEN {ends.format(*ids)}"
    assert sorted(rows(connection, whole, *given)) == MOVED
    assert sorted(rows(connection, f"WITH d AS ({whole}) FROM d, (SELECT 1 AS one)", *given)) == [
        (*row, 1) for row in MOVED
    ]


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "differences.tsv", 1))
def test_differences_and_who_made_them(made: Any, sql: str, expected: list[Any]) -> None:
    connection, ids = made
    assert rows(connection, sql.format(*ids)) == expected


def test_a_difference_is_a_query_like_any_other(made: Any) -> None:
    connection, ids = made
    ends = f"{ids[0]} AND {ids[2]}"
    plan = rows(connection, f"EXPLAIN DIFF t BETWEEN {ends}")
    assert any("data files: 4 kept" in line for (line,) in plan)
    described = rows(connection, f"DESCRIBE SELECT * FROM (DIFF t BETWEEN {ends})")
    assert [row[0] for row in described] == ["id", "city", "_change_type"]


# A condition on blamed rows skips files, also if it pairs versions of rows.
@pytest.mark.parametrize(
    "sql",
    ["DIFF t BETWEEN {0} AND {1}", "BLAME t WHERE id = 3", "BLAME t KEYED BY (id) WHERE id = 3"],
)
def test_only_the_file_of_the_one_row_is_read(made: Any, sql: str) -> None:
    connection, ids = made
    cursor = connection.execute(sql.format(*ids))
    assert len(cursor.fetchall()) == 1
    assert cursor.scan_reports[0].result_data_files == 1


def test_differences_stand_wherever_a_query_may(made: Any) -> None:
    connection, ids = made
    diff = f"DIFF t BETWEEN {ids[0]} AND {ids[2]}"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW moved AS {diff}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW counted AS SELECT count(*) n FROM ({diff})")
    assert rows(connection, "SELECT * FROM moved ORDER BY ALL") == MOVED
    assert rows(connection, f"SELECT n, _change_type FROM counted, ({diff}) WHERE id = 3") == [
        (4, "insert")
    ]
    connection.execute("PREPARE who AS BLAME t WHERE id = ?")
    assert len(rows(connection, "EXECUTE who(3)")) == 1
    described = [row[0] for row in rows(connection, f"DESCRIBE {diff}")]
    assert described == ["id", "city", "_change_type"]
    assert len(rows(connection, f"SUMMARIZE {diff}")) == 3


def test_blame_goes_back_as_far_as_is_known(tmp_path) -> None:
    writer = Made(tmp_path).writer
    del writer.snapshots[0]
    writer.log = [each for each in writer.log if each["snapshot-id"] != 1000]
    writer.write_metadata()
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        cursor = connection.execute("SELECT id, _change_type FROM (BLAME t)")
        found = set(cursor.fetchall())
        assert {(1, "present"), (2, "present"), (3, "present"), (1, "delete")} <= found
        assert 'commits before snapshot 1001 are expired; rows that were there by then are "present"' in (
            cursor.notes[0]
        )  # fmt: skip
        with pytest.raises(icesql.SnapshotNotFoundError, match="expired"):
            connection.execute("SELECT * FROM t CHANGES FROM TIMESTAMP '2000-01-01'")


def test_row_ids_pair_the_sides_of_an_update_before_identifier_fields(tmp_path) -> None:
    with_row_ids = [*FIELDS, *fields("_row_id long", 2147483540)]
    writer = TableWriter(tmp_path / "t", FIELDS, version=3)
    writer.schemas[0]["identifier-field-ids"] = [2]
    first = writer.data_file([{"id": 1, "city": "a"}, {"id": 2, "city": "b"}])
    other = writer.data_file([{"id": 5, "city": "z"}])
    writer.commit([first, other])
    # The row of id 2 gets another city and keeps its row id; the row of id 1 is unchanged.
    rewritten = [{"id": 1, "city": "a", "_row_id": 0}, {"id": 2, "city": "c", "_row_id": 1}]
    writer.commit([writer.data_file(rewritten, fields=with_row_ids, stats=False)], [first])
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        sql = (
            "SELECT id, city, _change_type FROM t CHANGES FROM VERSION 1000 TO VERSION 1001 "
            "WITH (computeUpdates = true{}) ORDER BY ALL"
        )
        for mode in ("", ", deduplicationMode = netChanges"):
            cursor = connection.execute(sql.format(mode))
            assert cursor.fetchall() == [
                (2, "b", "update_preimage"), (2, "c", "update_postimage"),
            ]  # fmt: skip
            assert cursor.scan_reports[0].result_data_files == 2  # without the unchanged file


def test_a_summary_tells_what_differs_and_reads_no_file(made: Any, tmp_path) -> None:
    table = Made(tmp_path)
    writer, ids = table.writer, table.ids
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    log = [
        {"timestamp-ms": writer.snapshots[0]["timestamp-ms"],
         "metadata-file": f"{writer.folder}/metadata/v2.metadata.json"}
    ]  # fmt: skip
    writer.properties = {"write.format.default": "orc", "s3.secret-access-key": "hush"}
    writer.set_spec([])
    text = Path(writer.metadata_path).read_text()
    Path(writer.metadata_path).write_text(text.replace('"metadata-log": []', f'"metadata-log": {log}'.replace("'", '"')))  # fmt: skip
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        cursor = connection.execute(f"DIFF SUMMARY t BETWEEN {ids[0]} AND 'main'")
        found = cursor.fetchall()
        assert [row[:4] for row in found if row[0] in ("schema", "partition spec")] == [
            ("schema", "id", "id int", "id long"),
            ("schema", "town", "city string", "town string"),
            ("schema", "n", None, "n int"),
            ("partition spec", None, "city", ""),
        ]
        assert ("property", "write.format.default", None, "orc") in [row[:4] for row in found]
        assert "hush" not in str(found)
        counts = {row[1] or row[0]: row[4:] for row in found if row[0] in ("total", "partition")}
        assert counts == {
            "total": (1, 4, 2, 5, 0, 2),
            "city=a": (1, 1, 2, 2, 0, 2),
            "city=b": (0, 2, 0, 2, 0, 0),
            "city=c": (0, 1, 0, 1, 0, 0),
        }
        inside = "SELECT name, files_after FROM (DIFF SUMMARY t BETWEEN -1 AND 'main') WHERE part = 'partition'"
        assert connection.execute(inside).fetchall() == [("city=b", 2)]
        cursor = connection.execute(f"DIFF SUMMARY t BETWEEN {ids[1]} AND 'main'")
        assert (
            "properties and partition spec of snapshot 1001 are no longer known"
            in (cursor.notes[-1])
        )


@pytest.mark.parametrize(("sql", "told"), read_table(__file__, "no_differences.tsv"))
def test_what_cannot_be_compared_is_an_error(made: Any, sql: str, told: str) -> None:
    with pytest.raises(icesql.Error, match=told):
        made[0].execute(sql)


def test_other_dialects_have_the_words(tmp_path) -> None:
    table = Made(tmp_path)
    for dialect in ("spark", "trino", "snowflake"):
        with icesql.connect(dialect=dialect) as connection:
            connection.register_table("t", table.writer.metadata_path)
            sql = f"DIFF t BETWEEN {table.ids[0]} AND {table.ids[2]}"
            assert sorted(rows(connection, sql)) == MOVED
            assert len(rows(connection, "SELECT * FROM (BLAME t WHERE id = 3) AS b")) == 1
            if dialect == "spark":
                connection.execute("SET engine = spark")
                with pytest.raises(icesql.UnsupportedSqlError, match="DIFF on the Spark engine"):
                    connection.execute(sql)
