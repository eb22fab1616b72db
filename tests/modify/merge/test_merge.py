"""MERGE INTO: spellings, names, values, branches, conflicts, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql import errors

WAYS = [(1, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]


@pytest.fixture
def filled(con: icesql.Connection) -> icesql.Connection:
    con.execute("CREATE TABLE s.t (k INT, a INT, w VARCHAR)")
    con.execute("INSERT INTO s.t VALUES (1, 10, 'one'), (2, 20, 'two'), (NULL, 0, 'none')")
    con.execute("CREATE TABLE s.u (k INT, a INT, w VARCHAR)")
    con.execute("INSERT INTO s.u VALUES (2, 22, 'zwei'), (3, 33, 'drei'), (NULL, -1, 'nichts')")
    return con


def rows(con: icesql.Connection, table: str = "s.t") -> list[tuple[Any, ...]]:
    return sorted(con.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


UPSERTED = [
    (1, 10, "one"),
    (2, 22, "zwei"),
    (3, 33, "drei"),
    (None, -1, "nichts"),
    (None, 0, "none"),
]
U = "(SELECT w, a, k FROM s.u)"


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (None, "s.t USING s.u ON t.k = u.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
        (None, f"s.t x USING {U} y USING (k) WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME"),
        (None, f"s.t USING {U} u ON t.k = u.k WHEN NOT MATCHED THEN INSERT WHEN MATCHED THEN UPDATE"),
        (None, "s.t USING (SELECT k AS c1, a AS c2, w AS c3 FROM s.u) u ON t.k = c1 WHEN MATCHED THEN UPDATE BY POSITION WHEN NOT MATCHED BY TARGET THEN INSERT BY POSITION *"),
        (None, "s.t AS t USING s.u AS u ON (t.k = u.k) WHEN MATCHED THEN UPDATE SET a = u.a, w = u.w WHEN NOT MATCHED THEN INSERT (k, w, a) VALUES (k, u.w, a)"),
        (None, "s.t USING s.u ON s.t.k = s.u.k WHEN MATCHED THEN UPDATE SET t.a = s.u.a, s.t.w = u.w WHEN NOT MATCHED THEN INSERT VALUES (s.u.k, s.u.a, w)"),
        (None, "s.t USING (VALUES (2, 22, 'zwei'), (3, 33, 'drei'), (NULL, -1, 'nichts')) AS u(k, a, w) ON t.k = u.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
        (None, 's.t AS "T x" USING s.u AS "U" ON "T x".k = "U".k WHEN MATCHED THEN UPDATE SET "a" = "U".a, w = "U".w WHEN NOT MATCHED THEN INSERT *'),
        ("spark", "s.t AS `t` USING s.u AS `u x` ON t.k = `u x`.k WHEN MATCHED THEN UPDATE SET t.a = `u x`.a, `w` = `u x`.`w` WHEN NOT MATCHED THEN INSERT (k, a, `w`) VALUES (`k`, `u x`.a, w)"),
        ("spark", "s.t USING s.u ON t.k <=> u.k AND t.k IS NOT NULL WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
        ("snowflake", "s.t USING s.u ON t.k = u.k WHEN MATCHED THEN UPDATE ALL BY NAME WHEN NOT MATCHED THEN INSERT ALL BY NAME"),
        ("trino", "s.t t USING s.u u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = u.a, w = u.w WHEN NOT MATCHED THEN INSERT VALUES (u.k, u.a, u.w)"),
    ],
)  # fmt: skip
def test_spellings(
    catalog: dict[str, Any], filled: icesql.Connection, dialect: str, sql: str
) -> None:
    with icesql.connect(**catalog, dialect=dialect) as con:
        assert con.execute(f"MERGE INTO {sql}").rowcount == 3
    assert rows(filled) == UPSERTED


def test_conditions_that_may_raise_errors_of_their_own(
    catalog: dict[str, Any], filled: icesql.Connection
) -> None:
    """Spark's casts and divisions do; a clause computes nothing for rows that it does not take."""
    filled.execute("INSERT INTO s.u VALUES (1, 11, 'eins')")
    sql = (
        "MERGE INTO s.t USING s.u ON t.k = u.k "
        "WHEN MATCHED AND IF(t.k > 1, t.a / (t.k - 1) = 20, false) "
        "THEN UPDATE SET a = 66 / (t.k - 1), w = concat(u.w, '!') "
        "WHEN MATCHED AND CAST(concat('4', t.a) AS INT) > 500 THEN DELETE "
        "WHEN NOT MATCHED AND CAST(concat('4', length(u.w)) AS INT) > 44 THEN INSERT *"
    )
    with icesql.connect(**catalog, dialect="spark") as con:
        con.execute(sql)
        assert rows(filled) == [
            (1, 10, "one"), (2, 66, "zwei!"), (None, -1, "nichts"), (None, 0, "none"),
        ]  # fmt: skip
        with pytest.raises(icesql.Error, match="zero"):
            con.execute(sql.replace("t.k > 1", "t.k > 0"))


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_values_of_every_kind(con: icesql.Connection, version: int, mode: str) -> None:
    """Fields of structs, defaults, subqueries, CASE, old values, NULL and parameters."""
    default = "DEFAULT 5" if version == 3 else ""
    con.execute(
        f"CREATE TABLE s.t (k BIGINT NOT NULL, p STRUCT<x: INT, q: STRUCT<y: INT, z: VARCHAR>>, d INT {default}, "
        f"l INT[]) TBLPROPERTIES ('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
    )
    con.execute(
        "INSERT INTO s.t VALUES (1, {'x': 1, 'q': {'y': 2, 'z': 'z'}}, 1, [1]), (2, NULL, 2, NULL), (3, NULL, 3, [3])"
    )
    con.execute("CREATE TABLE s.u (n INT)")
    con.execute("INSERT INTO s.u VALUES (7), (8)")
    cursor = con.execute(
        "WITH src AS (SELECT k, k * ? AS v FROM range(1, 6) r(k)) MERGE INTO s.t USING src ON t.k = src.k AND src.k <> ? "
        "WHEN MATCHED AND CASE WHEN t.k = 1 THEN v > ? ELSE false END THEN UPDATE SET p.x = v, t.p.q.z = 'new' || ?, d = d + t.k "
        "WHEN MATCHED AND t.p IS NULL THEN UPDATE SET p.q.y = (SELECT max(n) FROM s.u), d = DEFAULT, l = [v, v] "
        "WHEN NOT MATCHED AND k = 5 THEN INSERT (k, d) VALUES (k, DEFAULT) WHEN NOT MATCHED AND k < ? THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (k, p, l) VALUES (k, {'q': {'z': 'z', 'y': NULL}, 'x': v}, NULL)",
        [10, 3, 9, "er", 4],
    )
    five = 5 if version == 3 else None
    assert cursor.rowcount == 4
    assert rows(con) == [
        (1, {"x": 10, "q": {"y": 2, "z": "newer"}}, 2, [1]),
        (2, {"x": None, "q": {"y": 8, "z": None}}, five, [20, 20]),
        (3, None, 3, [3]),
        (4, {"x": 40, "q": {"y": None, "z": "z"}}, five, None),
        (5, None, five, None),
    ]


def test_values_are_computed_for_the_rows_of_their_clause(filled: icesql.Connection) -> None:
    """What cannot be computed for another row is no error, and types of clauses do not mix."""
    filled.execute(
        "MERGE INTO s.t USING s.u ON t.k = u.k WHEN MATCHED THEN UPDATE SET w = u.a / 4, a = 1.0 "
        "WHEN NOT MATCHED AND w = 'drei' THEN INSERT (k, a, w) VALUES ('4', CASE WHEN w = 'drei' THEN 4 END, w) "
        "WHEN NOT MATCHED THEN INSERT (a) VALUES (CAST('0' || abs(a) AS INT)) "
        "WHEN NOT MATCHED BY SOURCE AND k IS NULL THEN UPDATE SET a = CAST(w || '5' AS INT)"
        .replace("VALUES ('4'", "VALUES (4").replace("w = u.a / 4", "w = (u.a / 4)::VARCHAR")
        .replace("CAST(w || '5' AS INT)", "length(w)")
    )  # fmt: skip
    assert rows(filled) == [
        (1, 10, "one"), (2, 1, "5.5"), (4, 4, "drei"), (None, 1, None), (None, 4, "none"),
    ]  # fmt: skip


def test_frames_and_temporary_tables(filled: icesql.Connection) -> None:
    frame = pa.table({"k": pa.array([2, 9], pa.int64()), "a": [1, 2], "w": ["b", None]})
    sql = "MERGE INTO s.t USING given ON t.k = given.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    filled.register("given", frame)
    assert filled.execute(sql).rowcount == 2
    filled.execute("CREATE TEMP TABLE held AS SELECT 9 AS k, 3 AS a, 'c' AS w")
    assert filled.execute(sql.replace("given", "held")).rowcount == 1
    filled.execute("CREATE TEMP VIEW seen AS SELECT k, a + 1 AS a, w FROM s.t WHERE k = 9")
    assert filled.execute(sql.replace("given", "seen")).rowcount == 1
    assert rows(filled) == [(1, 10, "one"), (2, 1, "b"), (9, 4, "c"), (None, 0, "none")]


def test_the_source_is_asked_once(filled: icesql.Connection) -> None:
    """Rows that are others each time: the key that is looked for is the one that is written."""
    for _ in range(5):
        filled.execute(
            "MERGE INTO s.t USING (SELECT (random() * 1000000)::INT AS k FROM range(50)) s ON t.k = s.k "
            "WHEN NOT MATCHED THEN INSERT (k, a) VALUES (k, k)"
        )
    assert filled.execute("SELECT count(*) FROM s.t WHERE k <> a AND w IS NULL").fetchone() == (0,)
    assert filled.execute("SELECT count(*) > 200 FROM s.t").fetchone() == (True,)


@pytest.mark.parametrize("call", ["random() < 0.5", "uuid()::VARCHAR <> ''", "random() + t.k > 0"])
@pytest.mark.parametrize(
    "clause",
    [
        "WHEN MATCHED AND {} THEN DELETE",
        "WHEN MATCHED AND {} THEN UPDATE SET a = 1 WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE AND {} THEN DELETE",
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND {} THEN UPDATE SET a = 2",
    ],
)
def test_a_condition_that_is_another_one_each_time_is_refused(
    filled: icesql.Connection, clause: str, call: str
) -> None:
    before = rows(filled)
    with pytest.raises(
        errors.UnsupportedSqlError, match=r"random\(\) or uuid\(\); make it a column"
    ):
        filled.execute(f"MERGE INTO s.t USING (SELECT 2 AS i) s ON t.k = s.i {clause.format(call)}")
    assert rows(filled) == before
    filled.execute(
        "MERGE INTO s.t USING (SELECT 2 AS i, random() AS r) s ON t.k = s.i "
        "WHEN MATCHED AND r < 2 THEN DELETE"
    )
    assert len(rows(filled)) == len(before) - 1


def test_a_large_source_waits_on_disk(
    con: icesql.Connection, tmp_path: Path, monkeypatch: Any
) -> None:
    """Beyond its share of memory it lies in a mapped file, of which no name is left."""
    import icesql.modify.merge.source as module

    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    spilled = []
    real = module._Spilled._on_disk

    def on_disk(self: Any, *given: Any) -> Any:
        spilled.append(1)
        yield from real(self, *given)

    monkeypatch.setattr(module._Spilled, "_on_disk", on_disk)
    folder = tmp_path / "waiting"
    con.execute(f"SET temp_directory = '{folder}'")
    con.execute("CREATE TABLE s.t (k INT, w VARCHAR)")
    con.execute("INSERT INTO s.t SELECT i, NULL FROM range(0, 300000, 3) r(i)")
    cursor = con.execute(
        "MERGE INTO s.t USING (SELECT i AS k, 'w' || i AS w FROM range(200000) r(i)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert cursor.rowcount == 200_000
    assert spilled
    assert not list(folder.rglob("icesql-merge-*"))
    sql = "SELECT count(*), count(*) FILTER (WHERE w = 'w' || k), count(w) FROM s.t"
    assert con.execute(sql).fetchone() == (233_333, 200_000, 200_000)


def test_only_inserts_append(filled: icesql.Connection) -> None:
    filled.execute("MERGE INTO s.t USING s.u ON t.k = u.k WHEN NOT MATCHED THEN INSERT *")
    found = filled.execute("SELECT operation FROM s.t.snapshots ORDER BY committed_at").fetchall()
    assert [each for (each,) in found] == ["append", "append"]
    sql = "MERGE INTO s.t USING s.u ON t.k = u.k WHEN NOT MATCHED AND k IS NOT NULL THEN INSERT *"
    assert filled.execute(sql).message == "0 rows, nothing to commit"
    assert len(rows(filled)) == 5


@pytest.mark.parametrize("target", ["s.t VERSION AS OF 'audit' AS t", "s.t.branch_audit AS t"])
def test_a_branch(filled: icesql.Connection, target: str) -> None:
    filled.execute("ALTER TABLE s.t CREATE BRANCH audit")
    before = rows(filled)
    filled.execute("INSERT INTO s.t.branch_audit VALUES (3, 0, 'of the branch')")
    filled.execute(
        f"MERGE INTO {target} USING s.u ON t.k = u.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert rows(filled) == before
    assert rows(filled, "s.t VERSION AS OF 'audit'") == [(2, 22, "zwei"), (3, 33, "drei")]


def test_a_target_row_that_matches_twice(filled: icesql.Connection) -> None:
    """It is an error if a clause takes it; deleting it twice is not."""
    twice = "MERGE INTO s.t USING (VALUES (2, 1), (2, 2)) v(k, n) ON t.k = v.k "
    before = rows(filled)
    for clauses in (
        "WHEN MATCHED THEN UPDATE SET a = n",
        "WHEN MATCHED AND n = 2 THEN UPDATE SET a = n",
        "WHEN MATCHED AND a > 0 THEN DELETE",
        "WHEN MATCHED AND n = 1 THEN DELETE WHEN MATCHED THEN DO NOTHING",
    ):
        with pytest.raises(errors.ProgrammingError, match=r"match the row with k = 2 in s\.t"):
            filled.execute(twice + clauses)
    assert rows(filled) == before
    assert filled.execute(twice + "WHEN MATCHED AND n > 5 THEN DELETE").rowcount == 0
    assert filled.execute(twice + "WHEN MATCHED THEN DELETE").rowcount == 1
    assert len(rows(filled)) == 2


def test_with_names_are_of_the_source_alone(filled: icesql.Connection) -> None:
    with pytest.raises(errors.UnsupportedSqlError, match="WITH clause outside of USING"):
        filled.execute(
            "WITH q AS (SELECT 2 AS k) MERGE INTO s.t USING q ON t.k = q.k AND t.k IN (SELECT k FROM q) WHEN MATCHED THEN DELETE"
        )


def test_a_limited_connection_merges_nothing(
    filled: icesql.Connection, catalog: dict[str, Any]
) -> None:
    before = rows(filled)
    with icesql.connect(**catalog, read_only=True) as other:
        for start in ("", "WITH q AS (SELECT 1) "):
            with pytest.raises(errors.AccessDeniedError, match="only reads"):
                other.execute(
                    f"{start}MERGE INTO s.t USING s.u ON t.k = u.k WHEN MATCHED THEN DELETE"
                )
    assert rows(filled) == before


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_fields_of_structs_get_defaults(con: icesql.Connection, mode: str) -> None:
    con.execute(
        "CREATE TABLE s.n (k INT, p STRUCT<x: INT>) "
        f"TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = '{mode}')"
    )
    con.execute("INSERT INTO s.n VALUES (1, {'x': 1}), (2, NULL), (3, {'x': 3})")
    con.execute("ALTER TABLE s.n ADD COLUMN p.d INT DEFAULT 42")
    con.execute("UPDATE s.n SET p.d = 7 WHERE k < 3")
    con.execute(
        "MERGE INTO s.n USING (VALUES (1), (2)) v(k) ON n.k = v.k "
        "WHEN MATCHED THEN UPDATE SET p.d = DEFAULT"
    )
    one, two, three = ({"x": x, "d": 42} for x in (1, None, 3))
    assert rows(con, "s.n") == [(1, one), (2, two), (3, three)]


def test_nothing_to_do_is_done(filled: icesql.Connection) -> None:
    before = rows(filled)
    found = filled.execute("MERGE INTO s.t USING s.u ON t.k = u.k WHEN MATCHED THEN DO NOTHING")
    assert found.rowcount == 0
    assert rows(filled) == before
