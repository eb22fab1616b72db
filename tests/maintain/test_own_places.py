"""Files outside of the table's location are not deleted, unless the caller allows it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.commit.rows import commit_append, commit_overwrite
from icesql.storage.roots import Roots
from tests.commit.tables import fake
from tests.tables import read_table

EXPIRE = "CALL system.expire_snapshots(table => 's.t', older_than => now() + INTERVAL 1 DAY{})"


class Lake:
    """A connection, the folder of its table s.t, and a folder of another owner."""

    def __init__(self, kind: str, place: Path) -> None:
        self.kind, self.warehouse, self.victim = kind, place / "lake", place / "victim"
        self.warehouse.mkdir()
        for name in ("thesis.docx", "keys.pem", "docs/inner.txt"):
            (self.victim / name).parent.mkdir(parents=True, exist_ok=True)
            (self.victim / name).write_text(name)
        self.con = self.connect()
        self.con.execute("CREATE SCHEMA s")
        self.con.execute("CREATE TABLE s.t (x INT)")
        self.con.execute("INSERT INTO s.t VALUES (1)")
        self.folder = Path(self.table.metadata.location)

    def connect(self, **access: Any) -> icesql.Connection:
        if self.kind == "directory":
            return icesql.connect(warehouse=str(self.warehouse), **access)
        return icesql.connect(
            uri=f"sqlite:///{self.warehouse}/c.db",
            warehouse=str(self.warehouse),
            properties={"init_catalog_tables": "true"},
            **access,
        )

    @property
    def catalog(self) -> Any:
        if self.kind == "directory":
            return DirectoryCatalog(str(self.warehouse))
        return SqliteCatalog(str(self.warehouse / "c.db"))

    @property
    def table(self) -> Any:
        return self.catalog.load(("s", "t"))

    def name_in_old_snapshot(self, *paths: str) -> None:
        """Data files that only an expiring snapshot names."""
        files = [replace(fake("x"), path=path) for path in paths]
        table = commit_append(self.catalog, self.table, files).table
        start = table.metadata.current_snapshot_id
        commit_overwrite(self.catalog, table, removed=files, start_id=start)

    def change_metadata(self, change: Any) -> None:
        path = Path(self.table.metadata_location)
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document))

    def victims(self) -> set[str]:
        return {each.name for each in self.victim.rglob("*") if each.is_file()}

    def spelled(self, spelling: str, name: str) -> str:
        victim = f"{self.victim}/{name}"
        up = "../" * len(self.folder.parts)
        escaped = "%2e%2e/" * len(self.folder.parts)
        match spelling:
            case "plain":
                return victim
            case "file:" | "file://":
                return f"{spelling}{victim}"
            case "dots":
                return f"{self.folder}/data/{up}{victim.lstrip('/')}"
            case "escapes":
                return f"file:{self.folder}/data/{escaped}{victim.lstrip('/')}"
            case "host":
                return f"file://x{victim}"
            case _:
                link = self.folder / "data" / "link"
                if not link.is_symlink():
                    link.symlink_to(self.victim)
                return f"{link}/{name}"


ALL = {"thesis.docx", "keys.pem", "inner.txt"}
SPELLINGS = ("plain", "file:", "file://", "dots", "escapes", "host", "link")


@pytest.fixture(params=["directory", "sqlite"])
def lake(request, tmp_path) -> Iterator[Lake]:
    found = Lake(request.param, tmp_path)
    yield found
    found.con.close()


def told(con: icesql.Connection, sql: str) -> str:
    cursor = con.execute(sql)
    if cursor.description:
        cursor.fetchall()
    return "; ".join(cursor.notes)


def test_expiry_keeps_and_tells_what_lies_elsewhere(lake: Lake) -> None:
    paths = [lake.spelled(each, "thesis.docx") for each in SPELLINGS]
    lake.name_in_old_snapshot(*paths)
    planned = lake.con.execute(f"EXPLAIN {EXPIRE.format('')}").fetchall()
    classes = {row[2]: (row[0], row[5]) for row in planned if row[1] == "data file"}
    assert classes.keys() == {*paths}
    for action, reason in classes.values():
        assert (action, "outside of the table's location" in reason) == ("keep", True)
    manifests = [row for row in planned if row[1] == "manifest list"]
    assert manifests
    assert all("in the table's location" in row[5] and row[0] == "remove" for row in manifests)
    cursor = lake.con.execute(EXPIRE.format(""))
    assert cursor.fetchall()[0][0] == 0
    note = "; ".join(cursor.notes)
    assert f"{len(paths)} files outside of {lake.folder} stayed" in note
    assert all(path in note for path in paths)
    assert lake.victims() == ALL
    assert lake.con.execute("SELECT * FROM s.t").fetchall() == [(1,)]


def test_expiry_keeps_statistics_that_lie_elsewhere(lake: Lake) -> None:
    shot = lake.table.metadata.current_snapshot_id
    lake.con.execute("INSERT INTO s.t VALUES (2)")

    def named(document: Any) -> None:
        document["statistics"] = [
            {"snapshot-id": shot, "statistics-path": f"{lake.victim}/keys.pem",
             "file-size-in-bytes": 8, "file-footer-size-in-bytes": 4, "blob-metadata": []}
        ]  # fmt: skip
        document["partition-statistics"] = [
            {"snapshot-id": shot, "statistics-path": f"{lake.victim}/thesis.docx",
             "file-size-in-bytes": 8}
        ]  # fmt: skip

    lake.change_metadata(named)
    assert "2 files outside" in told(lake.con, EXPIRE.format(""))
    assert lake.victims() == ALL


def test_the_caller_names_folders_or_takes_everything(lake: Lake) -> None:
    paths = [f"{lake.victim}/thesis.docx", f"{lake.victim}/docs/inner.txt"]
    lake.name_in_old_snapshot(*paths)
    named = f", delete_below => array('{lake.victim}/docs')"
    planned = lake.con.execute(f"EXPLAIN {EXPIRE.format(named)}").fetchall()
    assert [(row[0], row[5].partition("; ")[2]) for row in planned if row[1] == "data file"] == [
        ("remove", "in a folder that delete_below names"),
        ("keep", "outside of the table's location"),
    ]
    assert "1 file outside" in told(lake.con, EXPIRE.format(named))
    assert lake.victims() == ALL - {"inner.txt"}
    lake.name_in_old_snapshot(paths[0])
    assert told(lake.con, EXPIRE.format(", delete_outside => true")) == ""
    assert lake.victims() == {"keys.pem"}


def test_the_setting_names_folders(lake: Lake) -> None:
    lake.name_in_old_snapshot(f"{lake.victim}/thesis.docx", f"{lake.victim}/docs/inner.txt")
    lake.con.execute(f"SET delete_below = '/nowhere, file://{lake.victim}/docs'")
    assert "1 file outside" in told(lake.con, EXPIRE.format(""))
    assert lake.victims() == ALL - {"inner.txt"}
    lake.con.execute("SET delete_below = '/'")
    with pytest.raises(errors.ProgrammingError, match="no folder of a table"):
        lake.con.execute(EXPIRE.format(""))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_purge_keeps_what_lies_elsewhere(lake: Lake, spelling: str) -> None:
    path = lake.spelled(spelling, "thesis.docx")
    lake.name_in_old_snapshot(path)
    shot = lake.table.metadata.current_snapshot_id

    def named(document: Any) -> None:
        where = lake.spelled(spelling, "keys.pem")
        document["statistics"] = [
            {"snapshot-id": shot, "statistics-path": where, "blob-metadata": [],
             "file-size-in-bytes": 8, "file-footer-size-in-bytes": 4}
        ]  # fmt: skip
        entry = {"timestamp-ms": 1, "metadata-file": lake.spelled(spelling, "docs/inner.txt")}
        document["metadata-log"] = [entry, *document["metadata-log"]]

    lake.change_metadata(named)
    note = told(lake.con, "DROP TABLE s.t PURGE")
    assert "3 files outside of" in note
    assert path in note
    assert lake.victims() == ALL
    assert [each for each in lake.folder.rglob("*") if each.is_file()] == []


def test_old_metadata_elsewhere_outlives_commits(lake: Lake) -> None:
    """With delete-after-commit, and paths with the names of metadata files."""
    other = lake.victim / "v1.metadata.json"
    forged = lake.folder / "data" / "v2.metadata.json"
    for each in (other, forged):
        each.write_text("{}")

    def named(document: Any) -> None:
        document["metadata-log"] = [
            {"timestamp-ms": 1, "metadata-file": str(other)},
            {"timestamp-ms": 1, "metadata-file": f"file:{lake.spelled('dots', other.name)}"},
            {"timestamp-ms": 1, "metadata-file": str(forged)},
            *document["metadata-log"],
        ]
        document["properties"] |= {
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": "true",
        }

    lake.change_metadata(named)
    before = len([*(lake.folder / "metadata").glob("*.metadata.json")])
    for number in range(3):
        lake.con.execute(f"INSERT INTO s.t VALUES ({number})")
    assert len([*(lake.folder / "metadata").glob("*.metadata.json")]) < before + 3
    assert other.exists()
    assert forged.exists()


# ------------------------------------------------------------------ permissions


def test_a_service_does_not_let_its_sql_say_where(lake: Lake) -> None:
    lake.name_in_old_snapshot(f"{lake.victim}/thesis.docx")
    for access in (
        {"service": True, "read_only": False},
        {"service": True, "read_only": False, "confine": False},
    ):
        with lake.connect(**access) as con:
            for option in (
                ", delete_outside => true",
                f", delete_below => array('{lake.victim}')",
            ):
                for call in ("", "EXPLAIN "):
                    if "below" in option and access.get("confine") is None:
                        continue
                    with pytest.raises(errors.AccessDeniedError):
                        con.execute(call + EXPIRE.format(option))
            with pytest.raises(errors.AccessDeniedError):
                con.execute("CALL system.remove_orphan_files('s.t', delete_below => array('/x'))")
            with pytest.raises(errors.AccessDeniedError):
                con.execute(f"SET delete_below = '{lake.victim}'")
    assert lake.victims() == ALL


def test_confined_tables_are_cleaned_in_their_own_folder(lake: Lake) -> None:
    lake.name_in_old_snapshot(f"{lake.victim}/thesis.docx", f"{lake.victim}/keys.pem")
    with lake.connect(confine=True, read_only=False) as con:
        with pytest.raises(errors.AccessDeniedError, match="confine"):
            con.execute(EXPIRE.format(", delete_outside => true"))
        cursor = con.execute(EXPIRE.format(f", delete_below => array('{lake.victim}')"))
        assert cursor.fetchall()[0][0] == 0
        assert "2 files could not be deleted" in cursor.notes[0]
    assert lake.victims() == ALL


def test_the_owner_of_a_service_names_folders(lake: Lake) -> None:
    lake.name_in_old_snapshot(f"{lake.victim}/thesis.docx")
    settings = {"delete_below": str(lake.victim)}
    with lake.connect(service=True, read_only=False, confine=False, settings=settings) as con:
        assert told(con, EXPIRE.format("")) == ""
    assert lake.victims() == ALL - {"thesis.docx"}


# ------------------------------------------------------------------ locations


@pytest.mark.parametrize(("root", "path", "held"), read_table(__file__, "roots.tsv"))
def test_what_lies_below_a_folder(root: str, path: str, held: str) -> None:
    assert Roots.of([root]).hold_for_removal(path) is (held == "yes")


def test_a_location_by_another_link_is_the_same(tmp_path) -> None:
    (tmp_path / "real" / "t").mkdir(parents=True)
    (tmp_path / "one").symlink_to(tmp_path / "real")
    (tmp_path / "two").symlink_to(tmp_path / "real")
    roots = Roots.of([f"{tmp_path}/one/t"])
    assert roots.hold_for_removal(f"{tmp_path}/two/t/x")
    os.symlink(tmp_path, tmp_path / "real" / "t" / "out")
    assert not roots.hold_for_removal(f"{tmp_path}/one/t/out/x")


def test_two_names_of_one_table_are_refused_for_both(tmp_path) -> None:
    import icesql
    from icesql.errors import NotSupportedError

    deletes = [
        "CALL c.system.expire_snapshots('s.{}', older_than => now())",
        "CALL c.system.remove_orphan_files('s.{}')",
        "DROP TABLE c.s.{} PURGE",
    ]
    uri = f"sqlite:///{tmp_path}/c.db"
    with icesql.connect("c", uri=uri, warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA c.s")
        for name in ("t", "other"):
            con.execute(f"CREATE TABLE c.s.{name} (a INT)")
            for number in range(3):
                con.execute(f"INSERT INTO c.s.{name} VALUES ({number})")
        con.execute(deletes[0].format("other"))  # caches of other names must not be used
        place = con.catalog.load(("s", "t")).metadata_location
        con.execute(f"CALL c.system.register_table('s.u', '{place}')")
        con.execute("DELETE FROM c.s.t WHERE a = 1")
        for name in ("t", "u"):
            for sql in deletes:
                with pytest.raises(NotSupportedError, match=r"deleting files of s\.t or s\.u"):
                    con.execute(sql.format(name))
        done = {e.table: e for e in con.maintain(actions=["expire", "orphans"]).tables}
        assert "s.t or s.u" in str(done)
        assert {e.status for each in done.values() for e in each.actions} == {"refused"}
        assert con.execute("SELECT count(*) FROM c.s.u").fetchone() == (3,)
        con.execute(deletes[0].format("other"))
        con.execute("DROP TABLE c.s.u")
        con.execute(deletes[0].format("t"))
        assert con.execute("SELECT count(*) FROM c.s.t").fetchone() == (2,)
        assert con.execute("SELECT count(*) FROM c.s.t.snapshots").fetchone() == (1,)
