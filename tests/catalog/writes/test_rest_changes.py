"""Commits to a REST catalog: what is sent, and what each answer means."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

import icesql
from icesql.catalog.writes.change import Conflict, TableChange, Unknown
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.create import create_table, stage_table
from icesql.errors import (
    CatalogError,
    CommitConflictError,
    CommitStateUnknownError,
    NotSupportedError,
    TableNotFoundError,
)  # fmt: skip
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.requirements import AssertTableUuid
from tests.catalog.rest_server import rest
from tests.catalog.writes.rest_writes import WritableServer
from tests.catalog.writes.swaps import TABLE, swapped
from tests.commit.tables import FAST, SCHEMA, create, fake, files_on_disk, live, written


@pytest.fixture
def server(tmp_path: Path):
    with closing(WritableServer(tmp_path / "wh")) as made:
        yield made


@pytest.fixture
def catalog(server):
    with closing(rest(server)) as made:
        yield made


@pytest.fixture(autouse=True)
def no_waits(monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.changes._WAIT_SECONDS", 0.0)


def test_what_is_added_has_an_id_of_its_own(server) -> None:
    """As Java sends it: a server may take the ids as they come, and compare them."""
    with icesql.connect(uri=server.uri) as con:
        con.execute("CREATE TABLE ns.t (a INT)")
        for name in "bc":
            con.execute(f"ALTER TABLE ns.t ADD COLUMN {name} INT")
            con.execute(f"ALTER TABLE ns.t ADD PARTITION FIELD {name}")
            con.execute(f"ALTER TABLE ns.t WRITE ORDERED BY {name}")
    metadata = server.tables["ns", "t"]["metadata"]
    assert [each["schema-id"] for each in metadata["schemas"]] == [0, 1, 2]
    assert [each["spec-id"] for each in metadata["partition-specs"]] == [0, 1, 2]
    assert [each["order-id"] for each in metadata["sort-orders"]] == [0, 1, 2]


def test_a_table_is_made_filled_and_read(catalog, server) -> None:
    table = create(catalog, partitioned=True)
    assert table.metadata.spec.fields[0].name == "p"
    done = commit_append(catalog, table, [written(table, "a", [(1, "x")], ("x",))])
    assert done.table.metadata.current_snapshot_id == done.snapshot_id
    assert live(done.table) == {"a"}
    (sent,) = server.commits
    assert [each["action"] for each in sent["updates"]] == ["add-snapshot", "set-snapshot-ref"]
    assert [each["type"] for each in sent["requirements"]] == [
        "assert-table-uuid", "assert-current-schema-id", "assert-ref-snapshot-id",
    ]  # fmt: skip
    assert sent["identifier"] == {"namespace": ["ns"], "name": "t"}


def test_a_table_is_made_with_its_first_rows_in_one_step(catalog, server) -> None:
    staged = stage_table(catalog, TABLE, SCHEMA, properties=FAST)
    assert server.tables == {}
    files = [written(staged.table, "a", [(1, "x"), (2, "y")])]
    done = create_table(catalog, staged, files)
    assert done.table.metadata.current_snapshot_id == done.snapshot_id
    assert [each["type"] for each in server.commits[0]["requirements"]] == ["assert-create"]
    with pytest.raises(CatalogError, match="already"):
        stage_table(catalog, TABLE, SCHEMA)


def test_who_is_second_goes_on_what_the_first_left(catalog) -> None:
    table = create(catalog)
    stale = catalog.load(TABLE)
    commit_append(catalog, table, [fake("a")])
    done = commit_append(catalog, stale, [fake("b")])
    assert live(done.table) == {"a", "b"}


def failing(*statuses):
    """Answers of these statuses before anything is done, then none."""
    left = list(statuses)
    return lambda server, name, body: left.pop(0) if left else None


@pytest.mark.parametrize("status", [409, 503, 429])
def test_what_was_not_done_is_tried_again(catalog, server, status) -> None:
    table = create(catalog)
    server.before = failing(status, status)
    done = commit_append(catalog, table, [fake("a")])
    assert live(done.table) == {"a"}
    assert len(server.commits) == 3
    ids = {each["updates"][0]["snapshot"]["snapshot-id"] for each in server.commits}
    assert ids == {done.snapshot_id}, "every attempt is the same snapshot"


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("status", [500, 502, 504, 408, 507, 520, 524])
def test_what_may_have_been_done_is_looked_up(catalog, server, status, is_done) -> None:
    """What nobody knows deletes nothing."""

    def answer(server, name, body):
        assert not is_done or server.applied(name, body)[0] == 200
        return status

    table = create(catalog)
    server.before = answer
    if is_done:
        assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
        assert len(server.commits) == 1
        return
    with pytest.raises(CommitStateUnknownError, match="outcome is unknown"):
        commit_append(catalog, table, [fake("a")])
    assert len(files_on_disk(table, "*.avro")) == 2


def test_a_key_makes_it_safe_to_send_again(server, catalog) -> None:
    server.config["idempotency-key-lifetime"] = "PT30M"
    table = create(catalog)
    server.before = failing(500, 502)
    done = commit_append(catalog, table, [fake("a")])
    assert live(done.table) == {"a"}
    assert len(server.keys) == 3
    assert len(set(server.keys)) == 1
    assert server.keys[0]


@pytest.mark.parametrize("second", [403, 404, 409, 503])
def test_what_is_refused_when_it_is_sent_again_may_have_been_done(server, catalog, second) -> None:
    statuses = [500, second]

    def done_and_failed(server, name, body):
        if len(statuses) == 2:
            assert server.applied(name, body)[0] == 200
        return statuses.pop(0) if statuses else None

    server.config["idempotency-key-lifetime"] = "PT30M"
    table = create(catalog, **{"commit.retry.num-retries": "0"})
    server.before = done_and_failed
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}


def test_an_answer_that_does_not_end_leaves_the_outcome_open(catalog, server, monkeypatch) -> None:
    table = create(catalog)
    monkeypatch.setattr("icesql.catalog.rest.client._LARGEST", 10)
    assert isinstance(swapped(catalog, table, "1"), Unknown)


@pytest.mark.parametrize(
    ("status", "error"), [(400, CatalogError), (404, TableNotFoundError), (501, NotSupportedError)]
)
def test_what_is_refused_is_not_tried_again(catalog, server, status, error) -> None:
    table = create(catalog)
    server.before = failing(status)
    with pytest.raises(error):
        commit_append(catalog, table, [fake("a")])
    assert len(server.commits) == 1
    assert files_on_disk(table, "*.avro") == set()


def test_a_server_that_is_away_was_sent_nothing(catalog, server) -> None:
    table = create(catalog)
    server.close()
    catalog.close()  # and with it the connection that a thread of the server still has
    with pytest.raises(CatalogError, match="cannot reach"):
        commit_append(catalog, table, [fake("a")])
    assert files_on_disk(table, "*.avro") == set()


def test_a_connection_that_breaks_leaves_the_outcome_open(catalog, server) -> None:
    table = create(catalog)

    def hang_up(request, name, body):
        request.connection.shutdown(socket.SHUT_RDWR)

    server.committed = hang_up
    assert isinstance(swapped(catalog, table, "1"), Unknown)


def test_properties_change_under_their_requirements(catalog, server) -> None:
    table = create(catalog)
    done = change_table(catalog, table, lambda base: [u.SetProperties({"a": "1"})])
    assert done.table.metadata.properties["a"] == "1"
    assert [each["type"] for each in server.commits[-1]["requirements"]] == ["assert-table-uuid"]
    conflict = TableChange(
        (u.SetProperties({"a": "2"}),),
        (AssertTableUuid("00000000-0000-4000-8000-000000000000"),),
        table.storage,
        1,
    )
    assert isinstance(catalog.swap(TABLE, table.metadata_location, conflict), Conflict)


def test_what_is_purged_is_the_servers(catalog, server) -> None:
    create(catalog)
    catalog.drop(TABLE, purge=True)
    assert server.asked[-1][2] == {"purgeRequested": ["true"]}


def test_endpoints_that_a_server_lacks_are_refused(server, catalog) -> None:
    table = create(catalog)
    other = rest(server)
    server.config["endpoints"] = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
    with pytest.raises(NotSupportedError, match="does not list POST"):
        commit_append(other, table, [fake("a")])
    for call in (
        lambda: other.create_namespace(("x",)), lambda: other.drop_namespace(("x",)),
        lambda: other.rename(TABLE, ("ns", "u")), lambda: stage_table(other, ("ns", "n"), SCHEMA),
    ):  # fmt: skip
        with pytest.raises(NotSupportedError, match="does not list"):
            call()
    other.close()


def test_a_conflict_of_a_new_table_is_told(catalog, server) -> None:
    first, second = (stage_table(catalog, TABLE, SCHEMA) for _ in range(2))
    create_table(catalog, first)
    with pytest.raises(CommitConflictError, match="cannot create"):
        create_table(catalog, second)
