"""One catalog with the table that is killed: made once, put back before each kill."""

from __future__ import annotations

import copy
import os
import shutil
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.kills import reachable
from tests.campaigns.kills.statements import age, build, plant
from tests.catalog.writes.rest_writes import WritableServer

KINDS = ("directory", "sqlite", "rest")
# It reads small tables beside others that do.
_SMALL = {"threads": 1}
_HINT = "version-hint.text"


class SlowServer(WritableServer):
    """``pause`` is called before and after each commit; ``busy`` while one is answered."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pause: Any = None
        self.busy = 0
        self._lock = threading.Lock()

    def answer(self, request: Any) -> None:
        with self._lock:
            self.busy += 1
        try:
            super().answer(request)
        except (ConnectionError, BrokenPipeError):
            pass  # who asked was killed
        finally:
            with self._lock:
                self.busy -= 1

    def applied(self, name: tuple[str, ...], body: Any) -> tuple[int, Any]:
        pause = self.pause or (lambda: None)
        with self._lock:
            pause()
            done = super().applied(name, body)
            pause()
        return done

    def wait(self) -> None:
        """Until no request is being answered."""
        until = time.monotonic() + 30
        while self.busy and time.monotonic() < until:
            time.sleep(0.005)


class Lake:
    """A catalog of one kind in a folder, with ns.t as ``build`` makes it."""

    def __init__(self, folder: Path, kind: str, table: str, rows: int) -> None:
        self.kind = kind
        self.live, self._kept = folder / "live", folder / "kept"
        self.live.mkdir(parents=True)
        self.server: SlowServer | None = None
        warehouse = str(self.live / "wh")
        os.mkdir(warehouse)
        if kind == "directory":
            self.connect: dict[str, Any] = {"warehouse": warehouse}
        elif kind == "sqlite":
            from pyiceberg.catalog.sql import SqlCatalog

            uri = f"sqlite:///{self.live}/c.db"
            SqlCatalog("c", uri=uri, warehouse=warehouse).close()
            self.connect = {"uri": uri, "warehouse": warehouse}
        else:
            self.server = SlowServer(self.live / "wh")
            self.connect = {"uri": self.server.uri}
        with icesql.connect(**self.connect) as con:
            if kind != "rest":  # which begins with one
                con.execute("CREATE SCHEMA ns")
            build(con, table, rows)
            self.place = Path(reachable.local(self._location()))
        plant(self.place)
        age(self.live)
        self._keep()
        self.made, self.snapshots = self.read()

    def close(self) -> None:
        if self.server is not None:
            self.server.close()

    def _keep(self) -> None:
        shutil.copytree(self.live, self._kept, copy_function=_linked)
        if self.server is not None:
            self._tables = copy.deepcopy(self.server.tables)

    def restore(self) -> None:
        """Let everything be as it was made."""
        shutil.rmtree(self.live)
        shutil.copytree(self._kept, self.live, copy_function=_linked)
        if self.server is not None:
            self.server.tables = copy.deepcopy(self._tables)

    def _location(self) -> str:
        if self.kind == "directory":
            return str(self.live / "wh" / "ns" / "t")
        return str(Path(self._metadata_file()).parents[1])

    def _metadata_file(self) -> str:
        if self.kind == "directory":
            return reachable.of_folder(self.live / "wh" / "ns" / "t")
        if self.kind == "sqlite":
            return reachable.of_sqlite(self.live / "c.db", "t")
        assert self.server is not None
        return reachable.local(self.server.tables["ns", "t"]["metadata-location"])

    # ------------------------------------------------------------------ looked at

    def rows(self) -> str:
        """What tells the rows of the table from others."""
        with icesql.connect(**self.connect, settings=_SMALL) as con:
            return _rows(con, "ns.t")

    def read(self) -> tuple[str, dict[int, str]]:
        """As ``rows``, and the same of each snapshot by its id."""
        with icesql.connect(**self.connect, settings=_SMALL) as con:
            ids = con.execute("SELECT snapshot_id FROM ns.t.snapshots").fetchall()
            versions = {each: _rows(con, f"ns.t VERSION AS OF {each}") for (each,) in ids}
            return _rows(con, "ns.t"), versions

    def run(self, sql: tuple[str, ...]) -> None:
        """Run statements to their end, here."""
        with icesql.connect(**self.connect) as con:
            for each in sql:
                con.execute(each)

    def files(self) -> set[str]:
        """All files below the table."""
        return {str(each) for each in self.place.rglob("*") if each.is_file()}

    def needed(self) -> set[str]:
        """Those that the table needs."""
        return reachable.needed(self._metadata_file())

    def orphans(self) -> set[str]:
        """Those that it does not."""
        found = self.files() - self.needed()
        return {each for each in found if not each.endswith(_HINT)}

    def is_refused(self) -> bool:
        """Whether icesql removes no orphans, for metadata that may be of another table."""
        with icesql.connect(**self.connect) as con:
            try:
                con.execute("EXPLAIN CALL system.remove_orphan_files('ns.t')").fetchall()
            except icesql.NotSupportedError as error:
                return "any commit to the table makes it old" in str(error)
        return False

    def remove_orphans(self) -> set[str]:
        """Let icesql remove what it takes for orphans, however young; what it says that it did."""
        age(self.live)
        with icesql.connect(**self.connect) as con:
            rows = con.execute("CALL system.remove_orphan_files('ns.t')").fetchall()
        return {reachable.local(path) for (path,) in rows}


def _rows(con: Any, what: str) -> str:
    found = con.execute(f"SELECT id, p, v, x FROM {what} ORDER BY id, v").arrow()
    made = sha256(str(found.num_rows).encode())
    for name in ("id", "p", "x"):
        made.update(found[name].combine_chunks().to_numpy(zero_copy_only=False).tobytes())
    made.update("\0".join(found["v"].to_pylist()).encode())
    return f"{found.num_rows}:{made.hexdigest()[:16]}"


def _linked(source: str, target: str) -> str:
    """Files of a table are never written twice; what is, gets a copy."""
    if source.endswith((".db", _HINT)):
        return str(shutil.copy2(source, target))
    os.link(source, target)
    return target
