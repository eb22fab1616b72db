"""rewrite_manifests: fewer manifests, and nothing of what they list changes."""

from __future__ import annotations

from typing import Any

import pytest

import icesql

ENTRIES = (
    "SELECT status <> 2 AS live, snapshot_id, sequence_number, file_sequence_number, "
    "data_file.file_path AS path, data_file.first_row_id AS ids, data_file.content AS content, "
    "data_file.record_count AS n, data_file.lower_bounds::VARCHAR AS low "
    "FROM s.t.entries WHERE status <> 2 ORDER BY path"
)
ROWS = "SELECT i, p, _row_id, _last_updated_sequence_number FROM s.t ORDER BY i"
MANIFESTS = (
    "SELECT content, partition_spec_id, added_data_files_count + added_delete_files_count, "
    "existing_data_files_count + existing_delete_files_count FROM s.t.manifests"
)


def filled(con: icesql.Connection, version: int, **properties: str) -> None:
    given = {"format-version": str(version), "commit.manifest-merge.enabled": "false"}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in (given | properties).items())
    con.execute(f"CREATE TABLE s.t (i INT, p VARCHAR) PARTITIONED BY (p) TBLPROPERTIES ({told})")
    for number in range(4):
        con.execute(
            f"INSERT INTO s.t VALUES ({number}, 'a'), ({number + 10}, 'a'), "
            f"({number + 20}, 'b'), ({number + 30}, NULL)"
        )


def call(con: icesql.Connection, arguments: str = "'s.t'") -> list[Any]:
    return con.execute(f"CALL system.rewrite_manifests({arguments})").fetchall()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_listed_stays_as_it_was(con: icesql.Connection, version: int) -> None:
    mode = {} if version == 1 else {"write.delete.mode": "merge-on-read"}
    filled(con, version, **mode)
    if version > 1:
        for number in (1, 2):
            con.execute(f"DELETE FROM s.t WHERE i = {number}")
    before = con.execute(ENTRIES).fetchall()
    rows = con.execute(ROWS if version == 3 else "SELECT * FROM s.t ORDER BY i").fetchall()
    deletes = 2 if version > 1 else 0
    plan = con.execute("EXPLAIN CALL system.rewrite_manifests('s.t')").fetchall()
    assert [row[0] for row in plan].count("remove") == 4 + deletes
    assert call(con) == [(4 + deletes, 1 + deletes // 2)]
    found = con.execute(MANIFESTS).fetchall()
    assert sorted(found) == [(0, 0, 0, 12), (1, 0, 0, 2)][: 1 + deletes // 2]
    assert con.execute(ENTRIES).fetchall() == before
    assert con.execute(ROWS if version == 3 else "SELECT * FROM s.t ORDER BY i").fetchall() == rows
    told = con.execute(
        "SELECT operation, summary['entries-processed'], summary['manifests-replaced'], "
        "summary['total-data-files'] FROM s.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).fetchall()
    assert told == [("replace", str(12 + deletes), str(4 + deletes), "12")]
    assert call(con) == [(0, 0)]
    assert con.execute("EXPLAIN CALL system.rewrite_manifests('s.t')").fetchall() == []
    con.execute("INSERT INTO s.t VALUES (99, 'z')")
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(len(rows) + 1,)]


def test_manifests_of_the_target_size_in_the_order_of_partitions(con: icesql.Connection) -> None:
    filled(con, 2)
    (size,) = con.execute("SELECT max(length) FROM s.t.manifests").fetchone()
    con.execute(
        f"ALTER TABLE s.t SET TBLPROPERTIES ('commit.manifest.target-size-bytes' = '{2 * size}')"
    )
    assert call(con) == [(4, 2)]
    found = con.execute(
        "SELECT partition_summaries[1].contains_null, partition_summaries[1].upper_bound "
        "FROM s.t.manifests ORDER BY 2"
    ).fetchall()
    assert found == [(True, "a"), (False, "b")]


def test_what_others_add_meanwhile_is_kept(
    con: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.commit.manifests import rewrite

    filled(con, 3)
    plain, commits = rewrite._ManifestRewrite.updates, iter(range(2))

    def others_first(self: Any, base: Any, attempt: int, now_ms: int) -> Any:
        made = plain(self, base, attempt, now_ms)
        if next(commits, None) is not None:
            con.execute("INSERT INTO s.t VALUES (77, 'z')")
        return made

    monkeypatch.setattr(rewrite._ManifestRewrite, "updates", others_first)
    assert call(con) == [(6, 1)]
    assert con.execute("SELECT count(*) FROM s.t WHERE i = 77").fetchall() == [(2,)]
    listed = {row[0] for row in con.execute("SELECT path FROM s.t.all_manifests").fetchall()}
    from pathlib import Path

    folder = Path(next(iter(listed))).parent
    assert {str(each) for each in folder.glob("*-m*.avro")} == listed, "lost attempts left nothing"
