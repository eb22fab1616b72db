"""No door makes a table in which a column has the name of a partition field: Java loads none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import CommitConflictError, ProgrammingError
from tests.catalog.writes.test_rest_transactions import TOGETHER, TransactionServer

SHARED = r'partition field ".*" \(.*\) has the name of a column'
NESTED = "(id INT, s STRUCT(x INT), l STRUCT(y INT)[], m MAP(VARCHAR, STRUCT(z INT)), ts TIMESTAMP)"
BUCKET = "CREATE TABLE s.t (id INT, x INT) PARTITIONED BY (bucket(4, id))"
DAYS = "CREATE TABLE s.t (id INT, ts TIMESTAMP) PARTITIONED BY (days(ts))"
EVOLUTION = "CREATE TABLE s.t (id INT, x INT)"
ENDPOINTS = [
    *(f"{verb} /v1/{{prefix}}/namespaces" for verb in ("GET", "POST")),
    *(f"{verb} /v1/{{prefix}}/namespaces/{{namespace}}/tables" for verb in ("GET", "POST")),
    *(
        f"{verb} /v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}"
        for verb in ("GET", "POST")
    ),
    TOGETHER,
]

REFUSED = {
    "ADD COLUMN": [DAYS, "ALTER TABLE s.t ADD COLUMN ts_day DATE"],
    "ADD of a nested column": [
        "CREATE TABLE s.t (id INT, s STRUCT(x INT)) PARTITIONED BY (bucket(4, s.x))",
        "ALTER TABLE s.t ADD COLUMN s.x_bucket INT",
    ],
    "RENAME": [BUCKET, "ALTER TABLE s.t RENAME COLUMN x TO id_bucket"],
    "RENAME of the column itself": [BUCKET, "ALTER TABLE s.t RENAME COLUMN id TO id_bucket"],
    "a name that a partition column had": [
        "CREATE TABLE s.t (id INT, name VARCHAR) PARTITIONED BY (name)",
        "ALTER TABLE s.t RENAME COLUMN name TO name1",
        "ALTER TABLE s.t ADD COLUMN name INT",
    ],
    "a field of an older spec": [
        BUCKET,
        "ALTER TABLE s.t DROP PARTITION FIELD id_bucket",
        "ALTER TABLE s.t ADD COLUMN id_bucket INT",
    ],
    "a void field": [
        BUCKET + " TBLPROPERTIES ('format-version' = '1')",
        "ALTER TABLE s.t DROP PARTITION FIELD id_bucket",
        "ALTER TABLE s.t ADD COLUMN id_bucket INT",
    ],
    "ADD PARTITION FIELD": [
        "CREATE TABLE s.t (id INT, x INT)",
        "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS x",
    ],
    "ADD PARTITION FIELD of a nested name": [
        f"CREATE TABLE s.t {NESTED}",
        'ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS "s.x"',
    ],
    "ADD PARTITION FIELD of a name in a list": [
        f"CREATE TABLE s.t {NESTED}",
        'ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS "l.element.y"',
    ],
    "ADD PARTITION FIELD of the short name in a list": [
        f"CREATE TABLE s.t {NESTED}",
        'ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS "l.y"',
    ],
    "ADD PARTITION FIELD of the short name in a map": [
        f"CREATE TABLE s.t {NESTED}",
        'ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS "m.z"',
    ],
    "ADD PARTITION FIELD of a dropped column": [
        "CREATE TABLE s.t (id INT, x INT)",
        "ALTER TABLE s.t DROP COLUMN x",
        "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS x",
    ],
    "CREATE": ["CREATE TABLE s.t (id INT, id_bucket INT) PARTITIONED BY (bucket(4, id))"],
    "CREATE of a nested name": [
        "CREATE TABLE s.t (s STRUCT(x INT, x_bucket INT)) PARTITIONED BY (bucket(4, s.x))"
    ],
    "CTAS": ["CREATE TABLE s.t PARTITIONED BY (bucket(4, id)) AS SELECT 1 AS id, 2 AS id_bucket"],
    "OR REPLACE": [BUCKET, "CREATE OR REPLACE TABLE s.t (id INT, id_bucket INT)"],
    "OR REPLACE of rows": [BUCKET, "CREATE OR REPLACE TABLE s.t AS SELECT 1 AS id_bucket"],
    "evolution on write": [BUCKET, "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 1 AS id, 2 AS id_bucket"],
    "evolution by MERGE": [
        BUCKET,
        "MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT 1 AS id, 2 AS id_bucket) AS n "
        "ON t.id = n.id WHEN NOT MATCHED THEN INSERT *",
    ],
    "COPY with MERGE_SCHEMA": [BUCKET, "COPY s.t FROM '{folder}/new.csv' (MERGE_SCHEMA)"],
    **{
        f"{change} ({name})": [
            f"CREATE TABLE s.t {NESTED}",
            f'ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS "{name}"',
            f"ALTER TABLE s.t {change}",
        ]
        for name, change in [
            ("s.q", "ADD COLUMN s.q INT"),
            ("l.q", "ADD COLUMN l.element.q INT"),
            ("m.q", "ADD COLUMN m.value.q INT"),
            ("s.q", "RENAME COLUMN s.x TO q"),
            ("l.q", "RENAME COLUMN l.element.y TO q"),
            ("m.q", "RENAME COLUMN m.value.z TO q"),
            ("n.y", "RENAME COLUMN l TO n"),
            ("k.y", 'RENAME COLUMN ts TO "k.y"'),
        ]
    },
    "evolution in a transaction": [
        BUCKET, "BEGIN",
        "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 1 AS id, 2 AS id_bucket", "COMMIT",
    ],
    "a transaction": [BUCKET, "BEGIN", "ALTER TABLE s.t ADD COLUMN id_bucket INT", "COMMIT"],
    "two changes of a transaction": [
        "CREATE TABLE s.t (id INT, x INT)", "BEGIN", "ALTER TABLE s.t ADD COLUMN b INT",
        "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS b", "COMMIT",
    ],
}  # fmt: skip
TAKEN = {
    "identity": ["CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p)", "INSERT INTO s.t VALUES (1, 2)"],
    "identity, dropped in version 1": [
        "CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '1')",
        "ALTER TABLE s.t DROP PARTITION FIELD p",
        "ALTER TABLE s.t ADD COLUMN q INT",
    ],
    "identity of a nested column": [
        "CREATE TABLE s.t (id INT, s STRUCT(x INT)) PARTITIONED BY (s.x)",
        "ALTER TABLE s.t ADD COLUMN y INT",
    ],
    "renamed and back": [
        "CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p)",
        "ALTER TABLE s.t RENAME COLUMN p TO q",
        "ALTER TABLE s.t RENAME COLUMN q TO p",
    ],
    "another case": [BUCKET, "ALTER TABLE s.t ADD COLUMN ID_BUCKET INT"],
    "LIKE": [BUCKET, "CREATE TABLE s.u LIKE s.t", "ALTER TABLE s.u ADD COLUMN y INT"],
    "OR REPLACE of the same": [
        "CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p)",
        "CREATE OR REPLACE TABLE s.t (id INT, p INT) PARTITIONED BY (p)",
    ],
}  # fmt: skip


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    with icesql.connect(warehouse=str(tmp_path), files=True) as found:
        found.execute("CREATE SCHEMA s")
        yield found


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Any]:
    """A connection to a server that makes metadata itself, and looks at no names."""
    with closing(TransactionServer(tmp_path)) as server:
        server.config["endpoints"] = ENDPOINTS
        with icesql.connect(uri=server.uri, files=True) as found:
            found.execute("CREATE SCHEMA s")
            found.server = server
            yield found


@pytest.mark.parametrize("catalog", ["con", "rest"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_shared_name_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, catalog: str, name: str
) -> None:
    con = request.getfixturevalue(catalog)
    (tmp_path / "new.csv").write_text("id,id_bucket\n1,2\n")

    def run() -> None:
        for each in REFUSED[name]:
            con.execute(each.replace("{folder}", str(tmp_path)))

    with pytest.raises(ProgrammingError, match=SHARED):
        run()


@pytest.mark.parametrize("mine_first", [True, False])
def test_a_server_refuses_what_another_session_has_made_meanwhile(
    rest: Any, mine_first: bool
) -> None:
    """Changes of several tables are sent as they were made when the transaction read them."""
    rest.execute("CREATE TABLE s.t (id INT, x INT)")
    rest.execute("CREATE TABLE s.u (id INT)")
    column = "ALTER TABLE s.t ADD COLUMN b INT"
    field = "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS b"
    mine, others = (column, field) if mine_first else (field, column)
    rest.execute("BEGIN")
    rest.execute("INSERT INTO s.u VALUES (1)")
    rest.execute(mine)
    with icesql.connect(uri=rest.server.uri) as other:
        other.execute(others)
    with pytest.raises(CommitConflictError):
        rest.execute("COMMIT")
    assert rest.execute("SELECT count(*) FROM s.u").fetchone() == (0,)


@pytest.mark.parametrize("name", TAKEN)
def test_what_java_loads_is_taken(con: Any, name: str) -> None:
    for each in TAKEN[name]:
        con.execute(each)


@pytest.mark.parametrize("mine_first", [True, False])
def test_the_other_half_may_come_from_another_session(
    con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine_first: bool
) -> None:
    from icesql.commit import attempts

    con.execute("CREATE TABLE s.t (id INT, x INT)")
    column = "ALTER TABLE s.t ADD COLUMN b INT"
    field = "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, id) AS b"
    mine, others = (column, field) if mine_first else (field, column)
    real, waiting = attempts.load_to_change, [others]

    def late(*given: Any) -> Any:
        if waiting:
            with icesql.connect(warehouse=str(tmp_path)) as other:
                other.execute(waiting.pop())
        return real(*given)

    monkeypatch.setattr(attempts, "load_to_change", late)
    with pytest.raises(ProgrammingError, match=SHARED):
        con.execute(mine)


def shared_by_another(tmp_path: Path) -> None:
    """Another writer has given a column the name of a partition field."""
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute(BUCKET)
        con.execute("INSERT INTO s.t VALUES (1, 2)")
    newest = max(
        (tmp_path / "s/t/metadata").glob("v*.json"), key=lambda each: each.stat().st_mtime_ns
    )
    document = json.loads(newest.read_text())
    document["schemas"][-1]["fields"][1]["name"] = "id_bucket"
    newest.write_text(json.dumps(document))


@pytest.mark.parametrize("mend", ["advice", "ALTER TABLE s.t DROP COLUMN id_bucket"])
def test_the_doctor_names_a_table_that_has_it(con: Any, tmp_path: Path, mend: str) -> None:
    shared_by_another(tmp_path)
    with icesql.connect(warehouse=str(tmp_path)) as fresh:
        (found,) = [e for e in fresh.doctor("s.t").findings if e.name == "partition names"]
        assert found.weight == "high"
        assert '"id_bucket" (bucket[4])' in found.told
        fresh.execute("INSERT INTO s.t VALUES (3, 4)")  # the table goes on
        fresh.execute("ALTER TABLE s.t ADD COLUMN y INT")
        fresh.execute(found.statement if mend == "advice" else mend)
        assert not [e for e in fresh.doctor("s.t").findings if e.name == "partition names"]
        assert fresh.execute("SELECT count(*) FROM s.t").fetchone() == (2,)
