"""MERGE WITH SCHEMA EVOLUTION: the columns that its clauses take come with the rows."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change

WAYS = [(2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]
SOURCE = (
    "(SELECT * FROM (VALUES (1, 'neu', 7, {'n': 1, 'x': 5000000000}), "
    "(3, 'drei', 8, {'n': 2, 'x': 2})) v(k, w, m, s))"
)
BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
# The clauses, the columns that the table has then, and its rows.
CASES = {
    BOTH: (
        "k int, w string, a int, s struct<x long, n int>, m int",
        [
            (1, "neu", 10, {"x": 5000000000, "n": 1}, 7),
            (2, "two", 20, {"x": 2, "n": None}, None),
            (3, "drei", None, {"x": 2, "n": 2}, 8),
        ],
    ),
    "WHEN MATCHED THEN UPDATE SET m = u.m WHEN NOT MATCHED THEN INSERT (k, w) VALUES (k, u.w)": (
        "k int, w string, a int, s struct<x int>, m int",
        [(1, "one", 10, {"x": 1}, 7), (2, "two", 20, {"x": 2}, None), (3, "drei", None, None, None)],
    ),
    "WHEN NOT MATCHED THEN INSERT (k, t.m) VALUES (u.k, m)": (
        "k int, w string, a int, s struct<x int>, m int",
        [
            (1, "one", 10, {"x": 1}, None),
            (2, "two", 20, {"x": 2}, None),
            (3, None, None, None, 8),
        ],
    ),
    "WHEN MATCHED THEN UPDATE SET t.s.n = u.s.n, w = u.w || '!'": (
        "k int, w string, a int, s struct<x int, n int>",
        [(1, "neu!", 10, {"x": 1, "n": 1}), (2, "two", 20, {"x": 2, "n": None})],
    ),
    "WHEN MATCHED AND u.m > 7 THEN UPDATE SET * WHEN MATCHED THEN UPDATE SET a = 0": (
        "k int, w string, a int, s struct<x long, n int>, m int",
        [(1, "one", 0, {"x": 1, "n": None}, None), (2, "two", 20, {"x": 2, "n": None}, None)],
    ),
    "WHEN MATCHED THEN UPDATE SET w = u.w WHEN NOT MATCHED BY SOURCE THEN DELETE": (
        "k int, w string, a int, s struct<x int>",
        [(1, "neu", 10, {"x": 1})],
    ),
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN DO NOTHING": (
        "k int, w string, a int, s struct<x int>",
        [(2, "two", 20, {"x": 2})],
    ),
}  # fmt: skip


@pytest.fixture
def filled(con: icesql.Connection, request: Any) -> icesql.Connection:
    version, mode = getattr(request, "param", WAYS[0])
    con.execute(
        "CREATE TABLE s.t (k INT, w VARCHAR, a INT, s STRUCT<x INT>) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 'one', 10, {'x': 1}), (2, 'two', 20, {'x': 2})")
    return con


def found(con: icesql.Connection) -> Any:
    return table_to_change(con._session.state.names, ("s", "t"))[1].metadata


def columns(con: icesql.Connection) -> str:
    def shown(field: Any) -> str:
        if hasattr(field.type, "fields"):
            return f"{field.name} struct<{', '.join(map(shown, field.type.fields))}>"
        return f"{field.name} {field.type}"

    return ", ".join(map(shown, found(con).schema.fields))


@pytest.mark.parametrize("filled", WAYS, indirect=True)
@pytest.mark.parametrize("clauses", CASES)
def test_the_columns_that_clauses_take_come(filled: icesql.Connection, clauses: str) -> None:
    before = found(filled)
    filled.execute(f"MERGE WITH SCHEMA EVOLUTION INTO s.t USING {SOURCE} u ON t.k = u.k {clauses}")
    wanted, rows = CASES[clauses]
    assert columns(filled) == wanted
    for reader in ("auto", "arrow"):
        filled.execute(f"SET local_reader = '{reader}'")
        assert filled.execute("SELECT * FROM s.t ORDER BY k").fetchall() == rows
    after = found(filled)
    assert len(after.metadata_log) == len(before.metadata_log) + 1
    old = filled.execute(f"SELECT * FROM s.t VERSION AS OF {before.current_snapshot_id}")
    assert len(old.fetchall()) == 2


@pytest.mark.parametrize("dialect", ["spark", "trino", "snowflake"])
def test_other_dialects(catalog: dict[str, Any], filled: icesql.Connection, dialect: str) -> None:
    with icesql.connect(**catalog, dialect=dialect) as con:
        con.execute(
            "MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT 1 AS k, 2 AS m, 3 AS o) u "
            "ON t.k = u.k WHEN MATCHED THEN UPDATE SET t.m = u.m, a = 7 "
            "WHEN NOT MATCHED THEN INSERT (k, o) VALUES (u.k, o)"
        )
    rows = filled.execute("SELECT k, w, a, m, o FROM s.t ORDER BY k").fetchall()
    assert rows[0] == (1, "one", 7, 2, None)


def test_a_merge_without_rows_brings_columns(filled: icesql.Connection) -> None:
    done = filled.execute(
        f"MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT * FROM {SOURCE} WHERE k > 9) u "
        f"ON t.k = u.k {BOTH}"
    )
    assert (done.rowcount, done.message) == (0, "0 rows, columns changed")
    assert columns(filled) == "k int, w string, a int, s struct<x long, n int>, m int"
    assert len(found(filled).snapshots) == 1


@pytest.mark.parametrize(
    ("source", "clauses", "message"),
    [
        (SOURCE, "WHEN MATCHED THEN UPDATE SET m = u.m + 1", '"m" not found'),
        (SOURCE, "WHEN MATCHED THEN UPDATE SET q = u.m", '"q" not found'),
        (SOURCE, "WHEN MATCHED THEN UPDATE SET m = u.q", '"q" not found'),
        ("(SELECT 1 AS k, 'x' AS a)", BOTH, 'column "a".*string'),
        ("(SELECT 1 AS k, NULL AS n)", BOTH, '"n" that has only NULL'),
        ("(SELECT 1 AS k, 1 AS _file)", BOTH, "metadata column"),
        ("(VALUES (1), (1)) u(k)", "WHEN MATCHED THEN UPDATE SET *", "several rows"),
    ],
)
def test_a_merge_that_fails_changes_nothing(
    filled: icesql.Connection, source: str, clauses: str, message: str
) -> None:
    before = found(filled)
    alias = "" if source.endswith("(k)") else " u"
    with pytest.raises(errors.Error, match=message):
        filled.execute(
            f"MERGE WITH SCHEMA EVOLUTION INTO s.t USING {source}{alias} ON t.k = u.k {clauses}"
        )
    after = found(filled)
    assert (after.schema, after.snapshots) == (before.schema, before.snapshots)


def test_explain_shows_what_would_change(filled: icesql.Connection) -> None:
    filled.execute("CREATE TABLE s.u AS SELECT * FROM " + SOURCE)
    statement = f"MERGE WITH SCHEMA EVOLUTION INTO s.t USING s.u u ON t.k = u.k {BOTH}"
    lines = [line for (line,) in filled.execute(f"EXPLAIN {statement}").fetchall()]
    assert lines[:4] == [
        'ALTER TABLE "s"."t" ALTER COLUMN "s"."x" TYPE BIGINT;',
        'ALTER TABLE "s"."t" ADD COLUMN "s"."n" INTEGER;',
        'ALTER TABLE "s"."t" ADD COLUMN "m" INTEGER;',
        "scan 0: s.u",
    ]
    assert columns(filled) == "k int, w string, a int, s struct<x int>"
