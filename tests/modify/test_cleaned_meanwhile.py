"""Statements while another session removes old metadata files and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.maintain import expire
from icesql.scan.manifest_reader import ManifestReader

FORGETS = (
    "'write.metadata.delete-after-commit.enabled' = 'true', "
    "'write.metadata.previous-versions-max' = '1'"
)


@pytest.fixture
def both(tmp_path) -> Any:
    given: Any = {"warehouse": str(tmp_path), "files": True, "read_only": False}
    with icesql.connect(**given) as con, icesql.connect(**given) as other:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t (a INT) TBLPROPERTIES ({FORGETS})")
        con.execute("INSERT INTO s.t VALUES (1), (2)")
        yield con, other


def once(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    action: Callable[[], None],
    *,
    after: bool,
) -> None:
    """Call a function before or after the next call of a method."""
    old = getattr(owner, name)

    def wrapper(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, old)
        if not after:
            action()
        found = old(*args, **options)
        if after:
            action()
        return found

    monkeypatch.setattr(owner, name, wrapper)


@pytest.mark.parametrize("text", ["SELECT a FROM s.t", "DELETE FROM s.t WHERE a % 2 = 1"])
def test_the_metadata_file_of_what_is_read_is_gone(both: Any, monkeypatch, text: str) -> None:
    con, other = both

    def commits() -> None:
        for number in (4, 6, 8):
            other.execute(f"INSERT INTO s.t VALUES ({number})")

    once(monkeypatch, ManifestReader, "manifests_of", commits, after=False)
    if text.startswith("SELECT"):
        assert sorted(con.execute(text).fetchall()) == [(1,), (2,)]
    else:
        con.execute("SET conflict_retries = 0")
        with pytest.raises(icesql.errors.CommitConflictError):
            con.execute(text)
    assert len(other.execute("SELECT * FROM s.t").fetchall()) == 5


@pytest.mark.parametrize(
    "text", ["INSERT INTO s.t VALUES (3)", "CALL system.rewrite_manifests('s.t')"]
)
def test_the_snapshot_of_a_commit_is_expired_before_its_clean_up(
    both: Any, monkeypatch, text: str
) -> None:
    con, other = both
    con.execute("INSERT INTO s.t VALUES (3)")

    def expires() -> None:
        other.execute("INSERT INTO s.t VALUES (4)")
        other.execute(
            "CALL system.expire_snapshots('s.t', older_than => now() + INTERVAL 1 HOUR, "
            "retain_last => 1)"
        ).fetchall()

    load = DirectoryCatalog.load_to_change

    def loaded(self: DirectoryCatalog, identifier: Any) -> Any:
        """The table as committed, which another session expires at once."""
        found = load(self, identifier)
        monkeypatch.setattr(DirectoryCatalog, "load_to_change", load)
        expires()
        return found

    once(
        monkeypatch, DirectoryCatalog, "swap",
        lambda: monkeypatch.setattr(DirectoryCatalog, "load_to_change", loaded), after=True,
    )  # fmt: skip
    con.execute(text)
    wanted = 5 if text.startswith("INSERT") else 4
    assert len(con.execute("SELECT * FROM s.t").fetchall()) == wanted


@pytest.mark.parametrize("moment", ["unneeded", "_paths_of_gone"])
def test_two_expiries_at_once(both: Any, monkeypatch, tmp_path, moment: str) -> None:
    con, other = both
    for number in (3, 4, 5):
        con.execute(f"INSERT INTO s.t VALUES ({number})")
    text = (
        "CALL system.expire_snapshots('s.t', older_than => now() + INTERVAL 1 HOUR, "
        "retain_last => {})"
    )

    def expires() -> None:
        other.execute("INSERT OVERWRITE s.t VALUES (6)")
        other.execute(text.format(1)).fetchall()

    once(monkeypatch, expire, moment, expires, after=False)
    con.execute(text.format(2)).fetchall()
    assert con.execute("SELECT * FROM s.t").fetchall() == [(6,)]
    assert len([*tmp_path.rglob("snap-*.avro")]) == 1
