from __future__ import annotations

import pytest

from icesql.errors import SnapshotNotFoundError, SqlSyntaxError, placing
from tests.tables import read_cases


def at(ms: int) -> str:
    return f"FOR TIMESTAMP AS OF TIMESTAMPTZ '1970-01-01 00:00:{ms // 1000:02d}.{ms % 1000:03d}+00'"


@pytest.mark.parametrize(
    ("travel", "snapshot_id", "schema_id", "ref"),
    read_cases(__file__, "selected_snapshots.tsv", 1, 2, 3),
)
def test_travel_selects_snapshot_and_schema(travel, snapshot_id, schema_id, ref, bind_sql):
    (scan,) = bind_sql(f"SELECT count(*) FROM history {travel}").scans
    assert scan.snapshot is not None
    assert (scan.snapshot.snapshot_id, scan.schema.schema_id, scan.ref) == (
        snapshot_id,
        schema_id,
        ref,
    )


def test_columns_are_those_of_the_selected_schema(bind_sql):
    (scan,) = bind_sql("SELECT * FROM history VERSION AS OF 10").scans
    assert [column.name for column in scan.projection.fields] == ["old"]


def test_a_travelled_table_is_reported_in_the_session_zone(bind_sql):
    bound = bind_sql("SELECT 1 FROM history VERSION AS OF 'release'", zone="Europe/Berlin")
    assert bound.notes == (
        "history → snapshot 20 (release) committed 1970-01-01 01:00:02 Europe/Berlin",
    )


def test_a_table_that_is_not_travelled_is_not_reported(bind_sql):
    assert bind_sql("SELECT 1 FROM history").notes == ()


def test_an_instant_after_the_last_commit_says_so(bind_sql):
    (note,) = bind_sql(f"SELECT 1 FROM history {at(9_000)}").notes
    assert note.startswith("history → snapshot 40 (main) committed 1970-01-01 00:00:04 UTC")
    assert "1970-01-01 00:00:09 UTC is after the last commit" in note


def test_the_instant_of_the_last_commit_is_not_after_it(bind_sql):
    (note,) = bind_sql(f"SELECT 1 FROM history {at(4_000)}").notes
    assert "after the last commit" not in note


def test_an_instant_before_the_oldest_commit_names_the_reachable_ones(bind_sql):
    with pytest.raises(SnapshotNotFoundError) as caught:
        bind_sql(f"SELECT 1 FROM history {at(999)}", zone="America/New_York")
    assert caught.value.table == "history"
    assert caught.value.oldest == "10 at 1969-12-31 19:00:01 America/New_York"
    assert caught.value.newest == "50 at 1969-12-31 19:00:04.500 America/New_York"
    assert "1969-12-31 19:00:00.999 America/New_York" in str(caught.value)


def test_an_unknown_ref_suggests_the_nearest(bind_sql):
    with pytest.raises(SnapshotNotFoundError) as caught:
        bind_sql("SELECT 1 FROM history VERSION AS OF 'relaese'")
    assert caught.value.similar == ("release",)
    assert 'branch or tag "relaese" not found in table "history"' in str(caught.value)


def test_an_unknown_id_names_oldest_and_newest(bind_sql):
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 77 not found.*oldest: 10 at"):
        bind_sql("SELECT 1 FROM history VERSION AS OF 77")


def test_travel_on_a_table_without_snapshots_says_that_it_has_none(bind_sql):
    with pytest.raises(SnapshotNotFoundError, match="the table has no snapshot yet"):
        bind_sql("SELECT 1 FROM orders VERSION AS OF 1")


def test_a_table_named_twice_is_one_value(bind_sql):
    bound = bind_sql(
        "SELECT 1 FROM history a, HISTORY b, history VERSION AS OF 10 AS c".replace(
            "HISTORY", "history"
        )
    )
    assert bound.scans[0].table is bound.scans[1].table
    assert bound.scans[0].table is bound.scans[2].table
    assert [scan.snapshot.snapshot_id for scan in bound.scans if scan.snapshot] == [40, 40, 10]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("now() - (SELECT INTERVAL 1 DAY)", "subquery"),
        ("ts", "is a name"),
        ("'499162860'", "ambiguous timestamp"),
        ("499162860", "ambiguous timestamp"),
        ("'the other day'", "not a time"),
        ("INTERVAL 1 DAY", "interval"),
    ],
)
def test_a_time_that_is_no_constant_is_an_error_at_its_clause(bind_sql, time, message):
    # No table has this name: the time is evaluated first.
    sql = f"SELECT * FROM absent\n  TIMESTAMP AS OF {time}"
    with pytest.raises(SqlSyntaxError, match=message) as caught, placing(sql):
        bind_sql(sql)
    assert (caught.value.line, caught.value.column) == (2, 3)
