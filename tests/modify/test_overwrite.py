"""INSERT OVERWRITE of partitions, static and dynamic, PARTITION, REPLACE WHERE, CREATE … LIKE."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.catalog.targets import table_to_change

Rows = list[tuple[Any, ...]]
START: Rows = [(1, "a", 10), (2, "a", 11), (3, "b", 10), (4, None, 10)]


def filled(con: icesql.Connection, version: int = 2, mode: str = "copy-on-write") -> None:
    con.execute(
        "CREATE TABLE s.t (i INT, p VARCHAR, q INT) PARTITIONED BY (p, q) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = '{mode}')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 'a', 10), (2, 'a', 11), (3, 'b', 10), (4, NULL, 10)")


def rows(con: icesql.Connection, what: str = "s.t") -> Rows:
    return con.execute(f"SELECT i, p, q FROM {what} ORDER BY i, p, q").fetchall()


CASES: list[tuple[str, str, list[int], Rows]] = [
    ("static", "OVERWRITE s.t SELECT 9, 'a', 10", [1, 2, 3, 4], [(9, "a", 10)]),
    ("static", "OVERWRITE TABLE s.t PARTITION (p = 'a', q = 10) VALUES (9)", [1], [(9, "a", 10)]),
    ("static", "OVERWRITE s.t PARTITION (p = 'a') VALUES (9, 12), (8, 10)", [1, 2], [(8, "a", 10), (9, "a", 12)]),
    ("static", "OVERWRITE s.t PARTITION (p = 'a', q) SELECT 9, 12", [1, 2], [(9, "a", 12)]),
    ("static", "OVERWRITE s.t PARTITION (p = NULL, q = 10) SELECT 9", [4], [(9, None, 10)]),
    ("static", "OVERWRITE s.t PARTITION (p = 'a') SELECT i, q FROM s.t WHERE false", [1, 2], []),
    ("static", "OVERWRITE s.t PARTITION (P = 'c') BY NAME SELECT 1 AS q, 7 AS i", [], [(7, "c", 1)]),
    ("static", "INTO s.t PARTITION (p = 'a', q) VALUES (9, 12)", [], [(9, "a", 12)]),
    ("static", "INTO s.t PARTITION (q = 10, p = 'a') (i) VALUES (9)", [], [(9, "a", 10)]),
    ("dynamic", "OVERWRITE s.t SELECT 9, 'a', 10", [1], [(9, "a", 10)]),
    ("dynamic", "OVERWRITE s.t VALUES (9, NULL, 10), (8, 'b', 10), (7, 'z', 1)", [3, 4], [(7, "z", 1), (8, "b", 10), (9, None, 10)]),
    ("dynamic", "OVERWRITE s.t PARTITION (p = 'a', q) SELECT 9, 11", [2], [(9, "a", 11)]),
    ("dynamic", "OVERWRITE s.t PARTITION (p = 'a', q = 11) SELECT 9", [2], [(9, "a", 11)]),
    ("dynamic", "OVERWRITE s.t SELECT * FROM s.t WHERE false", [], []),
    ("static", "INTO s.t REPLACE WHERE p = 'a' SELECT 9, 'a', 12", [1, 2], [(9, "a", 12)]),
    ("static", "INTO TABLE s.t REPLACE WHERE i % 2 = 1 AND (q < 11) VALUES (9, 'x', 1), (7, 'y', 2)", [1, 3], [(7, "y", 2), (9, "x", 1)]),
    ("static", "INTO s.t BY NAME REPLACE WHERE t.p IS NULL SELECT 3 AS q, 9 AS i, NULL AS p", [4], [(9, None, 3)]),
    ("static", "INTO s.t REPLACE WHERE i IN (SELECT max(i) FROM s.t) OR i > 90 (SELECT 99, 'z', 0)", [4], [(99, "z", 0)]),
    ("static", "INTO s.t REPLACE WHERE p IS DISTINCT FROM 'a' FROM s.t SELECT i, p, q + 1 WHERE p = 'b'", [3, 4], [(3, "b", 11)]),
]  # fmt: skip
KINDS = [(1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[each[1] for each in CASES])
def test_what_goes_and_what_comes(con: icesql.Connection, number: int) -> None:
    setting, sql, gone, more = CASES[number]
    filled(con, *KINDS[number % 3])
    con.execute(f"SET spark.sql.sources.partitionOverwriteMode = '{setting}'")
    con.execute(f"INSERT {sql}")
    found = sorted(rows(con), key=repr)
    assert found == sorted([*(row for row in START if row[0] not in gone), *more], key=repr)
    con.execute("SET local_reader = 'arrow'")
    assert sorted(rows(con), key=repr) == found


def test_parameters_and_branches(con: icesql.Connection) -> None:
    filled(con)
    con.execute("ALTER TABLE s.t CREATE BRANCH audit")
    con.execute("INSERT INTO s.t@audit REPLACE WHERE i < ? VALUES (?, 'a', 10)", [3, 0])
    con.execute("INSERT OVERWRITE s.t.branch_audit PARTITION (p = ?, q = 10) SELECT ?", ["b", 33])
    con.execute("SET partition_overwrite_mode = dynamic")
    con.execute("INSERT OVERWRITE s.t VERSION AS OF 'audit' VALUES (44, NULL, 10)")
    assert rows(con, "s.t@audit") == [(0, "a", 10), (33, "b", 10), (44, None, 10)]
    assert rows(con) == START


def test_the_value_of_a_partition_is_asked_for_once(con: icesql.Connection) -> None:
    """Else rows would go to another partition than the one that was emptied."""
    con.execute("CREATE TABLE s.t (p BIGINT, i INT) PARTITIONED BY (p)")
    for number in range(8):
        con.execute(
            "INSERT OVERWRITE s.t PARTITION (p = (random() * 2)::BIGINT) SELECT ?", [number]
        )
    found = con.execute("SELECT p FROM s.t").fetchall()
    assert len(found) == len(set(found))


def test_an_empty_text_in_sparks_dialect(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    """Spark names a column of the query after it, which DuckDB cannot."""
    filled(con)
    con.execute("INSERT INTO s.t VALUES (5, '', 10)")
    with icesql.connect(**catalog, dialect="spark") as spark:
        spark.execute("INSERT OVERWRITE s.t PARTITION (p = '') SELECT 9, 9")
        assert spark.execute("SELECT '', '', 1").fetchall() == [("", "", 1)]
    assert rows(con) == [*START, (9, "", 9)]


@pytest.mark.parametrize("spelling", ["LIKE s.t", "(LIKE s.t INCLUDING PROPERTIES)"])
def test_a_table_like_another(con: icesql.Connection, spelling: str) -> None:
    con.execute(
        "CREATE TABLE s.t (i INT NOT NULL COMMENT 'key', s STRUCT<x: INT, d: DATE>, p VARCHAR DEFAULT 'x') "
        "PARTITIONED BY (bucket(4, i), p) SORTED BY (i DESC) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    con.execute("ALTER TABLE s.t SET IDENTIFIER FIELDS i")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('write.data.path' = '/nowhere')")
    con.execute(f"CREATE TABLE s.u {spelling} TBLPROPERTIES ('comment' = 'new')")
    old, new = (table_to_change(con._session.state.names, ("s", name))[1].metadata for name in "tu")
    assert new.format_version == 3
    assert new.location != old.location
    assert "write.data.path" not in new.properties
    assert (new.properties["write.delete.mode"], new.properties["comment"]) == (
        "merge-on-read",
        "new",
    )
    assert [str(each.type) for each in new.schema.fields] == [
        str(each.type) for each in old.schema.fields
    ]
    assert len(new.schema.identifier_field_ids) == 1
    assert [(each.name, each.transform) for each in new.spec.fields] == [
        (each.name, each.transform) for each in old.spec.fields
    ]  # fmt: skip
    assert new.sort_orders[new.default_sort_order_id].fields[0].direction == "desc"
    con.execute("INSERT INTO s.u (i) VALUES (1)")
    assert con.execute("SELECT i, p FROM s.u").fetchall() == [(1, "x")]
    assert con.execute("CREATE TABLE IF NOT EXISTS s.u LIKE s.t").notes
