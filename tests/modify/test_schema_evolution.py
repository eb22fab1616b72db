"""WITH SCHEMA EVOLUTION: new columns with new rows in one commit, as by ALTER TABLE and INSERT."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change

OLD = (
    "a INT NOT NULL, f FLOAT, p DECIMAL(9, 2), s STRUCT<x INT, t STRUCT<y INT>>, "
    "l STRUCT<z INT>[], m MAP<VARCHAR, STRUCT<w INT>>, code VARCHAR, PRIMARY_ONE BIGINT"
)
OLD_ROW = "1, 1.5, 1.25, {'x': 1, 't': {'y': 2}}, [{'z': 3}], MAP {'k': {'w': 4}}, '007', 5"
# Columns of a query by name, and how they differ from the table's above.
GIVEN = {
    "new columns of all types": (
        "1 AS a, true AS b, 2::TINYINT AS i8, 3::BIGINT AS l64, 1.5::FLOAT AS f32, "
        "2.5::DOUBLE AS f64, 1.25 AS dec, DATE '2026-01-31' AS day, TIME '01:02:03' AS t, "
        "TIMESTAMP '2026-01-31 01:02:03' AS ts, TIMESTAMPTZ '2026-01-31 01:02:03+00' AS tz, "
        "'é' AS str, uuid() IS NULL AS u, '\\x00'::BLOB AS bin, [1, NULL] AS li, "
        "{'c': 1, 'd': [{'e': 'x'}]} AS st, MAP {'k': 7} AS mp, 1::UBIGINT AS u64, "
        "1::HUGEINT AS huge"
    ),
    "wider types": "5000000000 AS a, 2.5::DOUBLE AS f, 12345678.25::DECIMAL(12, 2) AS p",
    "narrower types": "1::TINYINT AS a, 1.25::DECIMAL(3, 2) AS p, 7::INT AS primary_one",
    "fields at any depth, in another order": (
        "{'n': 1, 't': {'o': 2, 'y': 5000000000}, 'x': 3} AS s, 9 AS first, 1 AS a, "
        "[{'r': [1], 'z': 1}] AS l, MAP {'k': {'v': 1, 'w': 5000000000}} AS m"
    ),
    "only some fields": "1 AS a, {'t': {'q': 1}} AS s, [{'r': 1}] AS l",
    "another case": "1 AS A, 'x' AS CODE, {'X': 5000000000, 'New': 1} AS S",
    "names": """1 AS a, 2 AS "a.b", 3 AS "q""x", 4 AS "select", 5 AS "ü ö", {'x.y': 1} AS s""",
    "no rows": "1 AS a, 2 AS new WHERE false",
}
MAPPING = json.dumps([
    {"field-id": number, "names": [name]}
    for number, name in enumerate(("a", "f", "p", "s", "l", "m", "code", "PRIMARY_ONE"), 1)
])  # fmt: skip
PROPERTIES = (
    f"'schema.name-mapping.default' = '{MAPPING}', "
    "'write.metadata.metrics.max-inferred-column-defaults' = '4', "
    "'write.metadata.metrics.column.a' = 'full'"
)


def metadata(con: icesql.Connection, name: str) -> Any:
    return table_to_change(con._session.state.names, ("s", name))[1].metadata


def data_files(warehouse: Path) -> set[Path]:
    return {*warehouse.rglob("*.parquet")}


def grown(con: icesql.Connection, name: str) -> tuple[Any, ...]:
    """Everything that a schema change affects in metadata."""
    found = metadata(con, name)
    return (
        found.schema.fields,
        found.schema.identifier_field_ids,
        found.last_column_id,
        found.specs,
        found.sort_orders,
        dict(found.properties),
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_it_is_what_alter_and_insert_do(con: icesql.Connection, given: str, version: int) -> None:
    for name in ("one", "two"):
        con.execute(
            f"CREATE TABLE s.{name} ({OLD}) PARTITIONED BY (bucket(4, a)) "
            f"TBLPROPERTIES ('format-version' = '{version}', {PROPERTIES})"
        )
        con.execute(f"ALTER TABLE s.{name} WRITE ORDERED BY code")
        con.execute(f"ALTER TABLE s.{name} SET IDENTIFIER FIELDS a")
        con.execute(f"INSERT INTO s.{name} VALUES ({OLD_ROW})")
    before = metadata(con, "one")
    words = "INSERT WITH SCHEMA EVOLUTION INTO s.{} BY NAME SELECT "
    explained = con.execute("EXPLAIN " + words.format("two") + given)
    plan = [line for (line,) in explained.fetchall()]
    changes = [each for each in plan if each.startswith("ALTER TABLE")]
    assert plan[: len(changes)] == changes
    assert len(plan) > len(changes)
    for each in changes:
        con.execute(each)
    con.execute(f"INSERT INTO s.two BY NAME SELECT {given}")
    con.execute(words.format("one") + given)
    assert grown(con, "one") == grown(con, "two")
    query = "SELECT * FROM s.{} ORDER BY ALL"
    rows = con.execute(query.format("one")).fetchall()
    assert rows == con.execute(query.format("two")).fetchall()
    assert len(rows) == (1 if "WHERE false" in given else 2)
    after = metadata(con, "one")
    commits = len(after.metadata_log) - len(before.metadata_log)
    assert commits == 1, "columns and rows are one commit"
    assert len(after.snapshots) == len(rows)
    if len(rows) == 2:
        assert after.current_snapshot.schema_id == after.current_schema_id
    stats = "SELECT lower_bounds FROM s.{}.files ORDER BY ALL"
    bounds = con.execute(stats.format("one")).fetchall()
    assert bounds == con.execute(stats.format("two")).fetchall()
    fields = {each.name: each for each in after.schema.fields}
    assert fields["a"].required, "NOT NULL stays"


def test_many_columns_at_once(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT)")
    listed = ", ".join(f"{number} AS c{number}" for number in range(1000))
    cursor = con.execute(f"INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT {listed}")
    assert cursor.notes[0].startswith("new columns: c0 INTEGER, c1 INTEGER")
    assert cursor.notes[0].endswith("c9 INTEGER and 990 more")
    assert con.execute("SELECT c0, c999, a FROM s.t").fetchall() == [(0, 999, None)]
    assert metadata(con, "t").last_column_id == 1001


# ------------------------------------------------------------------ random types

LEAVES = {
    "INTEGER": "{n}", "BIGINT": "{n}::BIGINT", "FLOAT": "{n}.5::FLOAT", "DOUBLE": "{n}.5::DOUBLE",
    "DECIMAL(9,2)": "{n}.25::DECIMAL(9,2)", "DECIMAL(12,2)": "{n}.25::DECIMAL(12,2)",
    "VARCHAR": "'v{n}'", "DATE": "DATE '2026-01-31'", "BOOLEAN": "true", "BLOB": "'x'::BLOB",
}  # fmt: skip
NUMBERS = [["INTEGER", "BIGINT"], ["FLOAT", "DOUBLE"], ["DECIMAL(9,2)", "DECIMAL(12,2)"]]


def drawn_type(draw: random.Random, depth: int = 0) -> Any:
    """The name of a leaf type, a dictionary of fields, ["[]", type] or ["MAP", type]."""
    kind = draw.random()
    if depth > 2 or kind < 0.5:
        return draw.choice([*LEAVES])
    if kind < 0.8:
        return {name: drawn_type(draw, depth + 1) for name in draw.sample("pqrs", 2)}
    return [draw.choice(("[]", "MAP")), drawn_type(draw, depth + 1)]


def changed_type(draw: random.Random, type: Any, depth: int = 0) -> Any:
    """A wider or narrower type, with fields added, removed and reordered."""
    if isinstance(type, str):
        return next((draw.choice(pair) for pair in NUMBERS if type in pair), type)
    if isinstance(type, list):
        return [type[0], changed_type(draw, type[1], depth + 1)]
    fields = [(n, changed_type(draw, t, depth + 1)) for n, t in type.items() if draw.random() < 0.9]
    fields += [(n, drawn_type(draw, depth + 1)) for n in draw.sample("pqrstuv", 2) if n not in type]
    draw.shuffle(fields)
    return dict(fields) or type


def drawn_value(type: Any, number: int) -> str:
    if isinstance(type, str):
        return LEAVES[type].format(n=number)
    if isinstance(type, list):
        inner = drawn_value(type[1], number)
        return f"[{inner}, NULL]" if type[0] == "[]" else f"MAP {{'k': {inner}}}"
    return "{" + ", ".join(f"'{n}': {drawn_value(t, number)}" for n, t in type.items()) + "}"


def merged_type(old: Any, new: Any) -> Any:
    if isinstance(old, dict):
        both = {name: merged_type(each, new.get(name, each)) for name, each in old.items()}
        return both | {name: each for name, each in new.items() if name not in old}
    if isinstance(old, list):
        return [old[0], merged_type(old[1], new[1])]
    return next((pair[1] for pair in NUMBERS if {old, new} == {*pair}), old)


@pytest.mark.parametrize("seed", range(20))
def test_random_columns(con: icesql.Connection, seed: int) -> None:
    draw = random.Random(seed)
    types: dict[str, Any] = {"a": drawn_type(draw)}
    for name in ("one", "two"):
        con.execute(f"CREATE TABLE s.{name} AS SELECT {drawn_value(types['a'], 1)} AS a")
    for number in range(2, 6):
        new = changed_type(draw, types)
        listed = ", ".join(f'{drawn_value(each, number)} AS "{n}"' for n, each in new.items())
        words = "INSERT WITH SCHEMA EVOLUTION INTO s.{} BY NAME SELECT "
        for (line,) in con.execute("EXPLAIN " + words.format("two") + listed).fetchall():
            if line.startswith("ALTER TABLE"):
                con.execute(line)
        con.execute(f"INSERT INTO s.two BY NAME SELECT {listed}")
        con.execute(words.format("one") + listed)
        assert grown(con, "one") == grown(con, "two")
        types = merged_type(types, new)
    found = [con.execute(f"SELECT * FROM s.{name}").fetchall() for name in ("one", "two")]
    assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))
    con.execute("SET local_reader = 'arrow'")
    by_arrow = con.execute("SELECT * FROM s.one").fetchall()
    assert sorted(map(repr, by_arrow)) == sorted(map(repr, found[0]))


def test_several_writers_lose_nothing(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    """Each row has the name under which its value is stored; conflicts are retried."""
    con.execute(
        "CREATE TABLE s.t (id INT) TBLPROPERTIES ('commit.retry.num-retries' = '50', "
        "'commit.retry.min-wait-ms' = '1', 'commit.retry.max-wait-ms' = '10')"
    )

    def write(writer: int) -> None:
        with icesql.connect(**catalog) as own:
            for number in range(4):
                name = f"c{(writer + number) % 5}"
                row = f"{writer * 10 + number} AS id, '{name}' AS name, '{name}' AS {name}"
                for _ in range(50):
                    try:
                        own.execute(f"INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT {row}")
                        break
                    except errors.CommitConflictError:
                        continue
                else:
                    raise AssertionError("it conflicts each time")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    names = con.columns("s.t")
    assert sorted(names) == ["c0", "c1", "c2", "c3", "c4", "id", "name"]
    rows = con.execute("SELECT * FROM s.t").fetchall()
    assert len(rows) == 16
    for row in rows:
        found = dict(zip(names, row, strict=True))
        assert found.pop("id") is not None
        own = found.pop("name")
        assert {key: each for key, each in found.items() if each is not None} == {own: own}


@pytest.mark.parametrize(
    "source",
    [
        "SELECT a, n, 1 AS new FROM s.src WHERE n > 1",
        "SELECT a, max(n) AS new FROM s.src GROUP BY a",
        "SELECT a, n AS new FROM s.src UNION ALL SELECT a, 2 FROM s.src",
        "SELECT a, n AS new FROM s.src CHANGES",
        "SELECT count(*) AS new, 1 AS a FROM s.src",
    ],
    ids=["filter", "aggregate", "union", "changes", "count"],
)
@pytest.mark.parametrize("engine", ["auto", "arrow"])
def test_explain_opens_no_file(con: icesql.Connection, source: str, engine: str) -> None:
    con.execute("CREATE TABLE s.grows (a INT)")
    con.execute("CREATE TABLE s.src (a INT, n BIGINT)")
    con.execute("INSERT INTO s.src VALUES (1, 2), (2, 3)")
    con.execute(f"SET local_reader = '{engine}'")
    for statement in (
        f"INSERT WITH SCHEMA EVOLUTION INTO s.grows BY NAME {source}",
        f"MERGE WITH SCHEMA EVOLUTION INTO s.grows t USING ({source}) q ON t.a = q.a "
        "WHEN NOT MATCHED THEN INSERT *",
    ):
        before = con.execute(f"EXPLAIN {statement}").fetchall()
        assert any(line.startswith("ALTER") and "new" in line for (line,) in before)
        files = {each: each.read_bytes() for each in data_files(warehouse_of(con))}
        for each in files:
            each.unlink()
        try:
            after = con.execute(f"EXPLAIN {statement}").fetchall()
        finally:
            for path, data in files.items():
                path.write_bytes(data)
        assert [line for (line,) in after if line.startswith("ALTER")] == [
            line for (line,) in before if line.startswith("ALTER")
        ]


def warehouse_of(con: icesql.Connection) -> Path:
    """The folder with the data files of the table ``s.src``."""
    return Path(metadata(con, "src").location.removeprefix("file://"))


def test_explain_of_a_merge_shows_what_would_change(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (k INT, s STRUCT<x INT>)")
    con.execute("CREATE TABLE s.u AS SELECT 1 AS k, 7 AS m, {'n': 1, 'x': 5000000000} AS s")
    cursor = con.execute(
        "EXPLAIN MERGE WITH SCHEMA EVOLUTION INTO s.t USING s.u u ON t.k = u.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert [line for (line,) in cursor.fetchall()][:4] == [
        'ALTER TABLE "s"."t" ALTER COLUMN "s"."x" TYPE BIGINT;',
        'ALTER TABLE "s"."t" ADD COLUMN "s"."n" INTEGER;',
        'ALTER TABLE "s"."t" ADD COLUMN "m" INTEGER;',
        "scan 0: s.u",
    ]
    assert con.columns("s.t") == ["k", "s"]
