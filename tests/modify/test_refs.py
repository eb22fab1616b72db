"""Branches and tags: made, replaced, moved and dropped; rows written to a branch; audits."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql import errors

DAY = 86_400_000


@pytest.fixture
def table(con: icesql.Connection) -> None:
    """Table s.t with three snapshots."""
    con.execute("CREATE TABLE s.t (a INT)")
    for number in (1, 2, 3):
        con.execute(f"INSERT INTO s.t VALUES ({number})")


def ids(con: icesql.Connection) -> list[int]:
    """The snapshots of main, oldest first."""
    return [
        row[0]
        for row in con.execute("SELECT snapshot_id FROM s.t.history ORDER BY made_current_at")
    ]


def refs(con: icesql.Connection) -> dict[str, tuple[Any, ...]]:
    found = con.execute(
        "SELECT name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, "
        "max_snapshot_age_in_ms FROM s.t.refs"
    ).fetchall()
    return {name: tuple(rest) for name, *rest in found if name != "main"}


def values(con: icesql.Connection, what: str = "s.t") -> list[int]:
    return [row[0] for row in con.execute(f"SELECT a FROM {what} ORDER BY a")]


@pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
def test_what_each_statement_makes(con: icesql.Connection, table: None) -> None:
    first, second, third = ids(con)
    for sql, name, made in (
        ("CREATE BRANCH b", "b", ("BRANCH", third, None, None, None)),
        ("CREATE BRANCH IF NOT EXISTS b RETAIN 1 DAYS", "b", ("BRANCH", third, None, None, None)),
        (
            f"CREATE OR REPLACE BRANCH b AS OF VERSION {first} RETAIN 7 DAYS "
            "WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
            "b",
            ("BRANCH", first, 7 * DAY, 3, 2 * DAY),
        ),
        (
            f"REPLACE BRANCH b AS OF VERSION {second} WITH SNAPSHOT RETENTION 5 HOURS",
            "b",
            ("BRANCH", second, 7 * DAY, 3, 5 * DAY // 24),
        ),
        (
            "CREATE BRANCH c AS OF VERSION 'b' WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
            "c",
            ("BRANCH", second, None, 2, None),
        ),
        (
            f"CREATE TAG v1 AS OF VERSION {first} RETAIN 90 MINUTES",
            "v1",
            ("TAG", first, 90 * 60_000, None, None),
        ),
        (f"CREATE TAG v2 FOR SYSTEM_VERSION AS OF {second}", "v2", ("TAG", second) + 3 * (None,)),
        ("CREATE TAG v3 VERSION AS OF 'v1'", "v3", ("TAG", first) + 3 * (None,)),
        ("CREATE TAG v4 AT (VERSION => 'v2')", "v4", ("TAG", second) + 3 * (None,)),
        ("CREATE TAG v5 FOR TAG AS OF v1", "v5", ("TAG", first) + 3 * (None,)),
        ("CREATE TAG v6 AS OF VERSION 'HEAD~1'", "v6", ("TAG", second) + 3 * (None,)),
        ("CREATE TAG 'end-of-year'", "end-of-year", ("TAG", third) + 3 * (None,)),
        ("CREATE TAG old AS OF TIMESTAMP '2999-01-01'", "old", ("TAG", third) + 3 * (None,)),
        ("REPLACE TAG v1 AS OF VERSION 'b'", "v1", ("TAG", second, 90 * 60_000, None, None)),
    ):  # fmt: skip
        con.execute(f"ALTER TABLE s.t {sql}")
        assert refs(con)[name] == made, sql
    con.execute("CREATE BRANCH d IN TABLE s.t FROM v3")
    assert refs(con)["d"][1] == first
    con.execute("ALTER BRANCH d IN TABLE s.t FAST FORWARD TO main")
    assert refs(con)["d"][1] == third
    con.execute("DROP BRANCH d IN TABLE s.t")
    con.execute("DROP BRANCH IF EXISTS d IN TABLE s.t")
    for name in ("v1", "v2", "v3", "v4", "v5", "v6", "old", "'end-of-year'"):
        con.execute(f"ALTER TABLE s.t DROP TAG {name}")
    con.execute("ALTER TABLE s.t DROP BRANCH IF EXISTS nothing")
    con.execute("ALTER TABLE s.t DROP BRANCH c")
    assert set(refs(con)) == {"b"}


def test_rows_of_a_branch_stay_in_it(con: icesql.Connection, table: None) -> None:
    con.execute("ALTER TABLE s.t CREATE BRANCH audit")
    for number, target in enumerate(
        (
            "s.t.branch_audit", "s.t VERSION AS OF 'audit'", "s.t FOR VERSION AS OF 'audit'",
            "s.t FOR SYSTEM_VERSION AS OF 'audit'", "s.t@audit", "s.t @ BRANCH audit",
            "s.t AT (BRANCH => 'audit')", "s.t AT BRANCH audit", 's."t@audit"',
        ),
        10,
    ):  # fmt: skip
        con.execute(f"INSERT INTO {target} VALUES ({number})")
    con.execute("INSERT INTO s.t@audit (a) SELECT 99")
    assert values(con) == [1, 2, 3]
    on_branch = [1, 2, 3, *range(10, 19), 99]
    assert values(con, "s.t VERSION AS OF 'audit'") == on_branch
    con.execute("DELETE FROM s.t.branch_audit WHERE a = 1")
    con.execute("DELETE FROM s.t VERSION AS OF 'audit' WHERE a > 12 AND a < 90")
    con.execute("DELETE FROM s.t@audit AS x WHERE x.a = 99")
    assert values(con, "s.t VERSION AS OF 'audit'") == [2, 3, 10, 11, 12]
    con.execute("INSERT OVERWRITE s.t.branch_audit VALUES (5)")
    assert values(con, "s.t.branch_audit") == [5]
    con.execute("TRUNCATE TABLE s.t VERSION AS OF 'audit'")
    assert values(con, "s.t.branch_audit") == []
    assert values(con) == [1, 2, 3]
    con.execute("INSERT INTO s.t.branch_audit VALUES (7)")
    con.execute("ALTER BRANCH main IN TABLE s.t FAST FORWARD TO audit")
    assert values(con) == [7]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_branch_of_an_empty_table(con: icesql.Connection, version: int) -> None:
    con.execute(f"CREATE TABLE s.t (a INT) TBLPROPERTIES ('format-version' = '{version}')")
    con.execute("ALTER TABLE s.t CREATE BRANCH audit RETAIN 3 DAYS")
    con.execute("INSERT INTO s.t.branch_audit VALUES (1)")
    assert (values(con), values(con, "s.t.branch_audit")) == ([], [1])
    assert refs(con)["audit"][2] == 3 * DAY
    with pytest.raises(errors.ProgrammingError, match="no snapshot yet"):
        con.execute("ALTER TABLE s.t CREATE TAG v")
    con.execute("ALTER BRANCH main IN TABLE s.t FAST FORWARD TO audit")
    assert values(con) == [1]


def test_rows_wait_for_their_audit(con: icesql.Connection, table: None) -> None:
    con.execute("SET wap.id = 'load-7'")
    con.execute("INSERT INTO s.t VALUES (4)")
    assert values(con) == [1, 2, 3, 4], "the table takes no part"
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    con.execute("INSERT INTO s.t VALUES (5)")
    con.execute("SET spark.wap.id = 'load-8'")
    con.execute("DELETE FROM s.t WHERE a < 3")
    assert values(con) == [1, 2, 3, 4]
    staged = con.execute(
        "SELECT snapshot_id, summary['wap.id'] FROM s.t.snapshots WHERE summary['wap.id'] <> '' "
        "ORDER BY summary['wap.id']"
    ).fetchall()
    assert [each[1] for each in staged] == ["load-7", "load-8"]
    assert [values(con, f"s.t VERSION AS OF {each[0]}") for each in staged] == [
        [1, 2, 3, 4, 5],
        [3, 4],
    ]
    con.execute("RESET wap.id")
    con.execute("INSERT INTO s.t VALUES (6)")
    assert values(con) == [1, 2, 3, 4, 6]


def test_a_branch_of_the_session(con: icesql.Connection, table: None) -> None:
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    assert values(con) == [1, 2, 3]
    con.execute("SET spark.wap.branch = audit")
    assert values(con) == [1, 2, 3]
    con.execute("INSERT INTO s.t VALUES (4)")
    con.execute("DELETE FROM s.t WHERE a = 1")
    assert values(con) == [2, 3, 4]
    assert con.execute("SELECT count(*) FROM s.t").fetchone() == (3,)
    assert values(con, "s.t VERSION AS OF 'main'") == [1, 2, 3]
    con.execute("SET wap_id = 'x'")
    with pytest.raises(errors.ProgrammingError, match="both set"):
        con.execute("INSERT INTO s.t VALUES (5)")
    con.execute("RESET wap_id")
    con.execute("RESET wap_branch")
    assert values(con) == [1, 2, 3]
    assert con.execute("SELECT count(*) FROM s.t").fetchone() == (3,)
