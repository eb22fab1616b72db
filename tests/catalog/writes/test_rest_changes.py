"""Commits to a REST catalog: requests, and the meaning of each response."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.writes.change import TableChange
from icesql.commit.create import create_table
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.updates import AssertTableUuid
from tests.catalog.rest_server import rest
from tests.catalog.writes.rest_writes import WritableServer
from tests.catalog.writes.swaps import TABLE
from tests.catalog.writes.writers import Writers
from tests.commit.tables import written
from tests.scenes import Scene, scenes


@pytest.fixture
def server(tmp_path: Path):
    with closing(WritableServer(tmp_path / "wh")) as made:
        yield made


class RestWriters(Writers):
    """Writers to a REST catalog whose server responds as a scene says."""

    def __init__(self, server: Any, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.server = server
        super().__init__(lambda _: rest(server), folder, patch)
        patch.setattr("icesql.catalog.rest.changes._WAIT_SECONDS", 0.0)

    def answers(self, *words: str) -> None:
        """Set the statuses of the next responses; ``+`` means that the commit is applied first."""
        left = [*words]

        def answer(server: Any, name: Any, body: Any) -> int | None:
            if not left:
                return None
            status = left.pop(0)
            if status.endswith("+"):
                assert server.applied(name, body)[0] == 200
            return int(status.rstrip("+"))

        self.server.before = answer

    def config(self, name: str, value: str) -> None:
        self.server.config[name] = value

    def endpoints(self, text: str) -> None:
        """The server lists only this endpoint."""
        self.server.config["endpoints"] = [text]

    def reopen(self) -> None:
        """Open another catalog, which fetches the configuration again."""
        self.catalog = rest(self.server)

    def limit_answers(self) -> None:
        self.patch.setattr("icesql.catalog.rest.client._LARGEST", 10)

    def go_away(self) -> None:
        self.server.close()
        self.catalog.close()  # and with it the connection that a thread of the server still has

    def hang_up(self) -> None:
        self.server.committed = lambda request, *_: request.connection.shutdown(socket.SHUT_RDWR)

    def create_filled(self, name: str) -> None:
        """A staged table with its first rows."""
        staged = self.staged[name]
        self.table = create_table(
            self.catalog, staged, [written(staged.table, "a", [(1, "x"), (2, "y")])]
        ).table

    def swap_for_another(self) -> None:
        """A change with a requirement for another table."""
        needed = AssertTableUuid("00000000-0000-4000-8000-000000000000")
        change = TableChange((u.SetProperties({"k": "2"}),), (needed,), self.table.storage, 1)
        self.outcome = self.catalog.swap(TABLE, self.table.metadata_location, change)

    def commits(self, count: str) -> None:
        """The number of commits that the server got, all of the same snapshot."""
        assert len(self.server.commits) == int(count)
        ids = {each["updates"][0]["snapshot"]["snapshot-id"] for each in self.server.commits}
        assert len(ids) == 1, "every attempt is the same snapshot"

    def updates(self, *kinds: str) -> None:
        """The updates of the last commit."""
        assert [each["action"] for each in self.server.commits[-1]["updates"]] == [*kinds]

    def requirements(self, *kinds: str) -> None:
        assert [each["type"] for each in self.server.commits[-1]["requirements"]] == [*kinds]

    def identified(self) -> None:
        wanted = {"namespace": ["ns"], "name": "t"}
        assert self.server.commits[-1]["identifier"] == wanted

    def one_key(self, count: str) -> None:
        """The number of requests, all with the same key."""
        assert len(self.server.keys) == int(count)
        assert len({*self.server.keys, None}) == 2

    def queried(self, name: str, value: str) -> None:
        """A parameter in the query string of the last request."""
        assert self.server.asked[-1][2] == {name: [value]}


@scenes(__file__, "rest_changes.scenes")
def test_what_answers_to_a_commit_mean(scene: Scene, server, tmp_path, monkeypatch) -> None:
    writers = RestWriters(server, tmp_path, monkeypatch)
    with closing(writers.catalog):
        writers.play(scene)


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
