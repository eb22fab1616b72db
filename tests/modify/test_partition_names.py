"""No statement creates a table whose column has the name of a partition field: Java loads none."""

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
BUCKET = "CREATE TABLE s.t (id INT, x INT) PARTITIONED BY (bucket(4, id))"
ENDPOINTS = [
    *(f"{verb} /v1/{{prefix}}/namespaces" for verb in ("GET", "POST")),
    *(f"{verb} /v1/{{prefix}}/namespaces/{{namespace}}/tables" for verb in ("GET", "POST")),
    *(
        f"{verb} /v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}"
        for verb in ("GET", "POST")
    ),
    TOGETHER,
]


@pytest.fixture
def con(tmp_path) -> Iterator[Any]:
    with icesql.connect(warehouse=str(tmp_path), files=True) as found:
        found.execute("CREATE SCHEMA s")
        yield found


@pytest.fixture
def rest(tmp_path) -> Iterator[Any]:
    """A connection to a server that creates metadata itself, without checking names."""
    with closing(TransactionServer(tmp_path)) as server:
        server.config["endpoints"] = ENDPOINTS
        with icesql.connect(uri=server.uri, files=True) as found:
            found.execute("CREATE SCHEMA s")
            found.server = server
            yield found


@pytest.mark.parametrize("mine_first", [True, False])
def test_a_server_refuses_what_another_session_has_made_meanwhile(
    rest: Any, mine_first: bool
) -> None:
    """Changes of several tables are sent as computed when the transaction read them."""
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


@pytest.mark.parametrize("mine_first", [True, False])
def test_the_other_half_may_come_from_another_session(
    con: Any, tmp_path, monkeypatch, mine_first: bool
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
def test_the_doctor_names_a_table_that_has_it(con: Any, tmp_path, mend: str) -> None:
    shared_by_another(tmp_path)
    with icesql.connect(warehouse=str(tmp_path)) as fresh:
        (found,) = [e for e in fresh.doctor("s.t").findings if e.name == "partition names"]
        assert found.weight == "high"
        assert '"id_bucket" (bucket[4])' in found.told
        fresh.execute("INSERT INTO s.t VALUES (3, 4)")  # the table stays usable
        fresh.execute("ALTER TABLE s.t ADD COLUMN y INT")
        fresh.execute(found.statement if mend == "advice" else mend)
        assert not [e for e in fresh.doctor("s.t").findings if e.name == "partition names"]
        assert fresh.execute("SELECT count(*) FROM s.t").fetchone() == (2,)
