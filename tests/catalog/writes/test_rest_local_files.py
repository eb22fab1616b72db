"""A REST catalog whose tables lie on this machine, in each spelling of their paths."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.catalog.writes.rest_writes import WritableServer
from tests.sessions import answer, fetched

SPELLINGS = ("", "file:", "file://", "file://localhost")


class LocalServer(WritableServer):
    """``location`` and ``metadata`` are prefixes of the paths of tables and metadata files."""

    def __init__(self, folder: Path, location: str, metadata: str) -> None:
        super().__init__(folder)
        self.spelled, self.spelled_metadata = location, metadata

    def created(self, request: Any, name: tuple[str, ...], body: Any) -> None:
        place = self.spelled + str(self.folder.joinpath(*name))
        super().created(request, name, {**body, "location": body.get("location") or place})

    def kept(self, name: tuple[str, ...], metadata: Any) -> None:
        folder = metadata["location"].removeprefix(self.spelled)
        place = Path(folder) / "metadata" / f"{uuid.uuid4()}.metadata.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(metadata))
        self.tables[name] = {
            "metadata-location": f"{self.spelled_metadata}{place}", "metadata": metadata, "config": {},
        }  # fmt: skip


@pytest.fixture(params=SPELLINGS)
def server(request: Any, tmp_path: Path) -> Iterator[LocalServer]:
    made = LocalServer(tmp_path / "w h", request.param, "")
    yield made
    made.close()


@pytest.mark.parametrize("metadata", SPELLINGS)
def test_a_table_at_a_file_url_is_changed(server: LocalServer, metadata: str) -> None:
    server.spelled_metadata = metadata
    with icesql.connect(uri=server.uri, read_only=False) as con:
        con.execute("CREATE TABLE ns.t (id INT, v VARCHAR)")
        con.execute("INSERT INTO ns.t VALUES (1, 'a'), (2, 'b')")
        con.execute("INSERT INTO ns.t VALUES (3, 'c')")
        con.execute("DELETE FROM ns.t WHERE id = 2")
        con.execute("UPDATE ns.t SET v = 'z' WHERE id = 3")
        con.execute("CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))")
        con.execute("CALL system.expire_snapshots('ns.t', older_than => now(), retain_last => 1)")
        assert fetched(con, "SELECT * FROM ns.t ORDER BY id") == [(1, "a"), (3, "z")]
        con.execute("CREATE TABLE ns.u AS SELECT * FROM ns.t")
    assert answer("SELECT count(*) FROM ns.t JOIN ns.u USING (id)", uri=server.uri) == [(2,)]
    folder = server.folder / "ns" / "t"
    assert len(list((folder / "data").rglob("*.parquet"))) == 1, "all others expired"
