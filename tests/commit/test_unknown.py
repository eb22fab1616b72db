"""Commits of unknown outcome: no table loses a file, and no row is added twice.

By SQL, in addition to the rows of ``test_known``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.catalog.writes.gateways import HANGS_UP, Gateway, Relay

UNSURE = [502, 503, HANGS_UP]


@pytest.fixture(autouse=True)
def no_waits(monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.changes._WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.client._FIRST_WAIT", 0.0)
    monkeypatch.setattr("icesql.commit.attempts.RetryPolicy.wait_seconds", lambda *_: 0.0)


@pytest.fixture
def server(tmp_path) -> Iterator[Gateway]:
    with closing(Gateway(tmp_path / "wh")) as made:
        with icesql.connect(uri=made.uri) as con:
            for name in "tu":
                con.execute(f"CREATE TABLE ns.{name} (a INT)")
                con.execute(f"INSERT INTO ns.{name} VALUES (1)")
        yield made


def insert(con: icesql.Connection) -> None:
    con.execute("INSERT INTO ns.t VALUES (2)")


def grow(con: icesql.Connection) -> None:
    con.execute("INSERT WITH SCHEMA EVOLUTION INTO ns.t BY NAME SELECT 2 AS a, 3 AS n")


def create(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE ns.c AS SELECT 2 AS a")


def together(con: icesql.Connection) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO ns.t VALUES (2)")
    con.execute("INSERT INTO ns.u VALUES (2)")
    con.execute("COMMIT")


# The statements by name, and the tables that they change.
ASKED: dict[str, tuple[Callable[[icesql.Connection], None], str]] = {
    "insert": (insert, "t"),
    "grow": (grow, "t"),
    "create": (create, "c"),
    "together": (together, "tu"),
}
asked = pytest.mark.parametrize("what", ASKED)


def rows(server: Gateway, name: str) -> list[int]:
    """The rows of a table in a new connection."""
    with icesql.connect(uri=server.uri) as con:
        return [row[0] for row in con.execute(f"SELECT a FROM ns.{name} ORDER BY a").fetchall()]


def run(server: Gateway, what: str) -> icesql.Error | None:
    with icesql.connect(uri=server.uri) as con:
        try:
            ASKED[what][0](con)
        except icesql.Error as error:
            return error
    return None


def changed(server: Gateway, what: str) -> None:
    for name in ASKED[what][1]:
        assert rows(server, name) == ([2] if name == "c" else [1, 2])


def unchanged(server: Gateway, what: str) -> None:
    for name in ASKED[what][1]:
        if name == "c":
            assert ("ns", "c") not in server.tables
        else:
            assert rows(server, name) == [1]


@asked
@pytest.mark.parametrize("answer", [500, 504, 408, 499, *UNSURE])
def test_what_was_applied_and_can_be_seen_went_well(
    server: Gateway, what: str, answer: int
) -> None:
    server.relays = [Relay("once", answer)]
    assert run(server, what) is None
    assert server.changed == 5, "it was sent once"
    changed(server, what)


@asked
def test_a_busy_server_is_asked_again(server: Gateway, what: str) -> None:
    server.relays = [Relay("never", 503), Relay("never", 503)]
    assert run(server, what) is None
    assert server.changed == 4 + 3
    changed(server, what)


@asked
def test_a_late_request_before_its_repetition(server: Gateway, what: str) -> None:
    """The repetition conflicts with the first request, which is then found applied."""

    def arrive() -> None:
        assert set(server.deliver()) <= {200, 204}

    server.relays, server.after = [Relay("late", 503), Relay("once")], None
    original = server._relayed

    def relayed(*arguments: Any) -> None:
        if server.late:
            arrive()
        original(*arguments)

    server._relayed = relayed  # type: ignore[method-assign]
    assert run(server, what) is None
    changed(server, what)


@asked
def test_a_server_that_stays_busy_may_have_the_request_still(server: Gateway, what: str) -> None:
    server.relays = [Relay("late", 503)] * 20
    error = run(server, what)
    assert isinstance(error, icesql.CommitStateUnknownError)
    unchanged(server, what)
    answers = server.deliver()
    assert answers[0] in (200, 204)
    assert set(answers[1:]) == {409}, "all are the same snapshot"
    changed(server, what)


@asked
def test_the_gateway_repeats_a_request(server: Gateway, what: str) -> None:
    """The response is that of the repetition, which conflicted with the first request."""
    server.relays = [Relay("twice")]
    assert run(server, what) is None
    changed(server, what)


@asked
@pytest.mark.parametrize("answer", [400, 403, 409])
def test_what_is_refused_when_it_is_sent_again_is_no_better_known(
    server: Gateway, what: str, answer: int
) -> None:
    server.relays = [Relay("late", 503), *[Relay("never", answer)] * 10]
    error = run(server, what)
    assert isinstance(error, icesql.CommitStateUnknownError)
    assert set(server.deliver()) <= {200, 204}
    changed(server, what)


def moved(server: Gateway) -> None:
    with icesql.connect(uri=server.uri) as other:
        other.execute("INSERT INTO ns.t VALUES (9)")
        other.execute("INSERT INTO ns.t VALUES (10)")


@pytest.mark.parametrize("answer", UNSURE)
def test_a_table_that_moved_on_without_the_snapshot_takes_another_attempt(
    server: Gateway, answer: int
) -> None:
    server.relays, server.after = [Relay("late", answer)], lambda: moved(server)
    assert run(server, "insert") is None
    assert server.deliver() == [409], "what its base was cannot be again"
    assert rows(server, "t") == [1, 2, 9, 10]


@pytest.mark.parametrize("answer", UNSURE)
def test_others_committed_on_top_of_it(server: Gateway, answer: int) -> None:
    server.relays, server.after = [Relay("once", answer)], lambda: moved(server)
    assert run(server, "insert") is None
    assert rows(server, "t") == [1, 2, 9, 10]


@pytest.mark.parametrize("answer", [409, *UNSURE])
def test_a_transaction_that_a_server_applied_by_half(server: Gateway, answer: int) -> None:
    server.relays = [Relay("half", answer)]
    error = run(server, "together")
    assert isinstance(error, icesql.CommitStateUnknownError)
    assert "ns.t changed and the rest did not" in str(error)
    assert rows(server, "t") == [1, 2]
    assert rows(server, "u") == [1]


def test_a_name_in_other_letters_is_another_table(server: Gateway) -> None:
    with icesql.connect(uri=server.uri) as con:
        con.execute('CREATE TABLE ns."C" AS SELECT 9 AS a')
    server.relays = [Relay("late", 504)]
    assert isinstance(run(server, "create"), icesql.CommitStateUnknownError)
    server.deliver()
    assert rows(server, "c") == [2]


@pytest.mark.parametrize("answer", [502, 503])
def test_an_empty_table_that_may_be_there(server: Gateway, answer: int) -> None:
    server.relays = [Relay("once", answer)]
    with icesql.connect(uri=server.uri) as con:
        with pytest.raises(icesql.CommitStateUnknownError, match="whether the table is there"):
            con.execute("CREATE TABLE ns.c (a INT)")
        con.execute("INSERT INTO ns.c VALUES (2)")
    assert rows(server, "c") == [2]


# ------------------------------------------------------------------ changes without a snapshot


@pytest.mark.parametrize("answer", UNSURE)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ns.t ADD COLUMN b INT",
        "ALTER TABLE ns.t SET TBLPROPERTIES ('k' = '1')",
        "ALTER TABLE ns.t CREATE BRANCH dev",
    ],
)
def test_a_change_of_metadata_that_can_be_seen_went_well(
    server: Gateway, statement: str, answer: int
) -> None:
    server.relays = [Relay("once", answer)]
    with icesql.connect(uri=server.uri) as con:
        con.execute(statement)
    assert server.changed == 5


def test_a_change_of_metadata_that_arrives_late(server: Gateway) -> None:
    server.relays = [Relay("late", 504)]
    with icesql.connect(uri=server.uri) as con:
        with pytest.raises(icesql.CommitStateUnknownError, match="outcome is unknown"):
            con.execute("ALTER TABLE ns.t ADD COLUMN b INT")
        server.deliver()
        assert con.execute("SELECT * FROM ns.t").fetchall() == [(1, None)]


# ------------------------------------------------------------------ what others do meanwhile


def expired(server: Gateway, keep: int) -> None:
    """Another session removes all snapshots but the last ones."""
    metadata = server.tables["ns", "t"]["metadata"]
    gone = {each["snapshot-id"] for each in metadata["snapshots"][:-keep]}
    metadata["snapshots"] = metadata["snapshots"][-keep:]
    metadata["snapshot-log"] = [
        each for each in metadata["snapshot-log"] if each["snapshot-id"] not in gone
    ]


@pytest.mark.parametrize(
    ("relay", "error", "is_replaced"),
    [
        # The request was sent twice, and the response is that of the second time.
        ("once", icesql.CommitStateUnknownError, True),
        ("never", icesql.CommitConflictError, False),
    ],
)
def test_a_replacement_that_was_refused_before_another_change(
    server: Gateway, relay: Any, error: type[icesql.Error], is_replaced: bool
) -> None:
    def later() -> None:
        with icesql.connect(uri=server.uri) as other:
            other.execute("ALTER TABLE ns.t ADD COLUMN b INT")

    server.relays, server.after = [Relay(relay, 409)], later
    with icesql.connect(uri=server.uri) as con:
        with pytest.raises(error):
            con.execute("CREATE OR REPLACE TABLE ns.t (a INT)")
        assert (con.execute("SELECT count(*) FROM ns.t").fetchone() == (0,)) is is_replaced


def test_a_snapshot_that_expired_is_known_by_what_was_made_of_it(server: Gateway) -> None:
    def later() -> None:
        with icesql.connect(uri=server.uri) as other:
            other.execute("INSERT INTO ns.t VALUES (9)")
        expired(server, 1)

    server.relays, server.after = [Relay("once", 504)], later
    assert run(server, "insert") is None
    assert rows(server, "t") == [1, 2, 9]


def test_a_snapshot_that_may_have_been_among_those_that_expired(server: Gateway) -> None:
    def later() -> None:
        moved(server)
        expired(server, 1)

    server.relays, server.after = [Relay("once", 504)], later
    error = run(server, "insert")
    assert isinstance(error, icesql.CommitStateUnknownError)
    assert rows(server, "t") == [1, 2, 9, 10]


def test_a_table_that_was_rolled_back_has_the_snapshot_still(server: Gateway) -> None:
    def later() -> None:
        with icesql.connect(uri=server.uri) as other:
            first = other.execute("SELECT min(committed_at) FROM ns.t.snapshots").fetchone()
            assert first is not None
            metadata = server.tables["ns", "t"]["metadata"]
            start = metadata["snapshots"][0]["snapshot-id"]
            other.execute(f"CALL system.rollback_to_snapshot('ns.t', {start})")

    server.relays, server.after = [Relay("once", 504)], later
    assert run(server, "insert") is None, "it was committed, and then undone"
    assert rows(server, "t") == [1]


def test_a_table_that_was_dropped_shows_nothing(server: Gateway) -> None:
    def later() -> None:
        server.tables["ns", "old"] = server.tables.pop(("ns", "t"))

    server.relays, server.after = [Relay("once", 504)], later
    assert isinstance(run(server, "insert"), icesql.CommitStateUnknownError)
    assert rows(server, "old") == [1, 2]


def test_another_table_of_the_name_shows_nothing(server: Gateway) -> None:
    def later() -> None:
        server.tables["ns", "old"] = server.tables.pop(("ns", "t"))
        server.tables["ns", "t"] = server.tables["ns", "u"]

    server.relays, server.after = [Relay("once", 504)], later
    assert isinstance(run(server, "insert"), icesql.CommitStateUnknownError)
    assert rows(server, "old") == [1, 2]


# ------------------------------------------------------------------ what stops the statement


@asked
@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_what_stops_the_looks_deletes_nothing(
    server: Gateway, what: str, stop: type[BaseException], monkeypatch
) -> None:
    def stopped(*_: Any) -> None:
        raise stop

    server.relays, server.looks = [Relay("late", 504)], []
    monkeypatch.setattr("icesql.commit.attempts.wait", stopped)
    error = run(server, what)
    assert isinstance(error, icesql.CommitStateUnknownError)
    server.deliver()
    changed(server, what)


def test_what_stops_the_wait_before_another_attempt(server: Gateway, monkeypatch) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("icesql.commit.attempts.wait", stopped)
    server.relays = [Relay("late", 503)]
    assert isinstance(run(server, "insert"), icesql.CommitStateUnknownError)
    server.deliver()
    changed(server, "insert")


def test_a_session_that_dies_with_its_request_leaves_a_table_that_reads(server: Gateway) -> None:
    """No session checks the outcome: the files exist whenever the request is applied."""

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    server.relays = [Relay("late", HANGS_UP)]
    with icesql.connect(uri=server.uri) as con, pytest.MonkeyPatch.context() as patched:
        patched.setattr("icesql.commit.attempts._looked_up", lambda *_, **__: die())
        with pytest.raises(icesql.CommitStateUnknownError):
            con.execute("INSERT INTO ns.t VALUES (2)")
    server.deliver()
    changed(server, "insert")


# ------------------------------------------------------------------ files that no snapshot names


def test_statistics_that_may_be_the_table_s_stay(server: Gateway) -> None:
    server.relays = [Relay("late", 504)]
    with icesql.connect(uri=server.uri) as con:
        with pytest.raises(icesql.CommitStateUnknownError, match="outcome is unknown") as caught:
            con.execute("CALL system.compute_table_stats('ns.t')")
        assert [Path(each).exists() for each in caught.value.files] == [True]
        server.deliver()
        assert len(server.tables["ns", "t"]["metadata"]["statistics"]) == 1


@pytest.mark.parametrize("answer", UNSURE)
def test_a_registered_table_that_can_be_seen(server: Gateway, answer: int) -> None:
    place = server.tables["ns", "t"]["metadata-location"]
    server.config["endpoints"].append("POST /v1/{prefix}/namespaces/{namespace}/register")
    server.relays = [Relay("once", answer)]
    with icesql.connect(uri=server.uri) as con:
        con.execute(f"CALL system.register_table('ns.r', '{place}')")
        assert con.execute("SELECT a FROM ns.r").fetchall() == [(1,)]
