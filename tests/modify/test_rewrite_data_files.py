"""CALL system.rewrite_data_files, and EXPLAIN of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.fixture
def small(con: icesql.Connection) -> icesql.Connection:
    """Six files in each of two partitions, one row each; row 3 is deleted."""
    con.execute(
        "CREATE TABLE s.t (i INT, p TEXT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    con.execute("INSERT INTO s.t VALUES " + ", ".join(f"({n}, 'b')" for n in range(6)))
    for n in range(5):
        con.execute(f"INSERT INTO s.t VALUES ({n}, 'a'), ({n + 10}, 'b')")
    con.execute("DELETE FROM s.t WHERE i = 3 AND p = 'b'")
    return con


def rows(con: icesql.Connection) -> list[Any]:
    return con.execute("SELECT *, _row_id FROM s.t ORDER BY ALL").fetchall()


def counts(con: icesql.Connection) -> dict[str, int]:
    return dict(con.execute("SELECT p, count(DISTINCT _file) FROM s.t GROUP BY p").fetchall())


def test_rows_stay_and_files_become_few(small: icesql.Connection) -> None:
    before = rows(small)
    cursor = small.execute("CALL system.rewrite_data_files(table => 's.t')")
    assert [each[0] for each in cursor.description] == [
        "rewritten_data_files_count",
        "added_data_files_count",
        "rewritten_bytes_count",
        "failed_data_files_count",
        "removed_delete_files_count",
    ]
    ((rewritten, added, size, failed, removed),) = cursor.fetchall()
    assert (rewritten, added, failed, removed) == (11, 2, 0, 1)
    assert size > 0
    assert rows(small) == before
    assert counts(small) == {"a": 1, "b": 1}
    again = small.execute("CALL system.rewrite_data_files('s.t')")
    assert again.fetchall() == [(0, 0, 0, 0, 0)]


def test_where_chooses_files_and_rewrites_all_of_their_rows(small: icesql.Connection) -> None:
    before = rows(small)
    small.execute("CALL system.rewrite_data_files('s.t', where => 'p = ''a'' AND i < 100')")
    assert rows(small) == before
    assert counts(small) == {"a": 1, "b": 6}


def test_where_in_a_dialect_whose_double_quotes_are_of_strings(
    small: icesql.Connection, catalog: dict[str, Any]
) -> None:
    before = rows(small)
    with icesql.connect(**catalog, dialect="spark") as con:
        con.execute("""CALL system.rewrite_data_files('s.t', where => '`p` = "a"')""")
    assert rows(small) == before
    assert counts(small) == {"a": 1, "b": 6}


def test_orders(small: icesql.Connection) -> None:
    before = rows(small)
    every = "options => map('rewrite-all', 'true')"
    small.execute(f"CALL system.rewrite_data_files('s.t', sort_order => 'i DESC', {every})")
    found = small.execute("SELECT i FROM s.t WHERE p = 'b' ORDER BY _file, _pos").fetchall()
    assert [each[0] for each in found] == [14, 13, 12, 11, 10, 5, 4, 2, 1, 0]
    small.execute(f"CALL system.rewrite_data_files('s.t', 'sort', 'zorder(i, p)', {every})")
    assert rows(small) == before
    ids = "SELECT DISTINCT sort_order_id FROM s.t.files WHERE content = 0"
    assert small.execute(ids).fetchall() == [(0,)]
    small.execute("ALTER TABLE s.t WRITE ORDERED BY i")
    small.execute(f"CALL system.rewrite_data_files('s.t', strategy => 'sort', {every})")
    assert small.execute(ids).fetchall() == [(1,)]
    assert rows(small) == before


def test_explain_touches_nothing(small: icesql.Connection, tmp_path: Path) -> None:
    def everything() -> set[Path]:
        return {each for each in tmp_path.rglob("*") if each.is_file()}

    before = everything()
    cursor = small.execute("EXPLAIN CALL system.rewrite_data_files('s.t', where => 'p = ''b''')")
    found = cursor.fetchall()
    assert everything() == before
    actions = [(each[0], each[1]) for each in found]
    assert actions.count(("read", "data file")) == 6
    assert actions.count(("read", "deletion vector")) == 1
    assert actions.count(("remove", "data file")) == 6
    assert actions.count(("remove", "deletion vector")) == 1
    (written,) = [each for each in found if each[0] == "write"]
    assert written[2:3] + written[4:] == (
        "(1 file)",
        10,
        "group 1 (p='b'): in the order of the files",
    )
    reason = next(each[5] for each in found if each[0] == "read")
    assert "bytes, less than 402,653,184" in reason
    assert "6 files" in cursor.notes[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("strategy => 'zorder'", "it can be 'binpack' or 'sort'"),
        ("strategy => 'binpack', sort_order => 'i'", "goes with strategy 'sort'"),
        ("strategy => 'sort'", "the table has no order of its own"),
        ("sort_order => 'zorder(i), p'", "stands alone"),
        ("sort_order => 'p, zorder(i)'", "zorder"),
        ("sort_order => 'hilbert(i, p)'", "is not here"),
        ("sort_order => 'zorder(i, q)'", '"q" not found'),
        ("sort_order => 'q'", '"q" not found'),
        ("sort_order => ''", "it is empty"),
        ("options => map('min-inputs', '1')", "did you mean min-input-files"),
        ("options => map('output-spec-id', '9')", "partition specs 0"),
        ("where => 'q = 1'", '"q" not found'),
        ("where => 'i ='", "cannot be used"),
        ("where => 'i = 1 ORDER BY p'", "more than a condition"),
        ("where => 'i = 1; DROP TABLE s.t'", "more than a condition"),
        ("where => 'i = (SELECT max(i) FROM s.t)'", "reads other tables"),
        ("where => 'i % 2 = 0'", "says nothing about files"),
        ("branch => 'nobody'", "no branch 'nobody'"),
    ],
)
def test_what_cannot_be(lasting: Any, arguments: str, said: str) -> None:
    con, _ = lasting
    con.execute("CREATE TABLE IF NOT EXISTS s.t (i INT, p TEXT)")
    with pytest.raises(icesql.Error) as caught:
        con.execute(f"CALL system.rewrite_data_files('s.t', {arguments})")
    assert said in str(caught.value)


def test_a_connection_that_only_reads_may_explain(small: icesql.Connection, catalog: Any) -> None:
    with icesql.connect(**catalog, read_only=True) as con:
        assert con.execute("EXPLAIN CALL system.rewrite_data_files('s.t')").fetchall()
        with pytest.raises(icesql.Error, match="only reads"):
            con.execute("CALL system.rewrite_data_files('s.t')")


def test_a_branch(small: icesql.Connection) -> None:
    small.execute("ALTER TABLE s.t CREATE BRANCH audit")
    small.execute("CALL system.rewrite_data_files('s.t', branch => 'audit')")
    assert counts(small) == {"a": 5, "b": 6}
    found = small.execute("SELECT count(DISTINCT _file) FROM s.t VERSION AS OF 'audit'").fetchall()
    assert found == [(2,)]
    small.execute("INSERT INTO s.t.branch_audit VALUES (77, 'a')")
    small.execute(
        "CALL system.rewrite_data_files('s.t.branch_audit', options => map('min-input-files', '2'))"
    )
    found = small.execute("SELECT count(DISTINCT _file) FROM s.t VERSION AS OF 'audit'").fetchall()
    assert found == [(2,)]
