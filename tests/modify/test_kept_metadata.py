"""A session's cache of the metadata that it has written equals the files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.iceberg.manifest.manifest import decode_manifest_list
from icesql.iceberg.metadata.table_metadata import metadata_document, parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.storage.open import Storage

STATEMENTS = (
    "INSERT INTO s.t VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO s.t VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO s.t SELECT id + 10, v FROM s.t WHERE id < 3",
    "DELETE FROM s.t WHERE id > 5",
    "UPDATE s.t SET v = 'null,' WHERE id = 1",
    "ALTER TABLE s.t SET TBLPROPERTIES ('k' = 'é:null')",
    "ALTER TABLE s.t CREATE OR REPLACE TAG x",
    "INSERT INTO s.t.branch_b VALUES (7, 'c')",
    "CALL system.rewrite_manifests('s.t')",
    "CALL system.expire_snapshots('s.t', retain_last => 2, older_than => TIMESTAMP '2999-01-01')",
    "CALL system.rewrite_data_files('s.t')",
    "ALTER TABLE s.t WRITE ORDERED BY id",
)
MERGING = "'commit.manifest.min-count-to-merge' = '3'"


def check_kept(con: icesql.Connection) -> set[str]:
    """Check that cached metadata equals the files; return the kinds of cached objects."""
    found = set()
    for key, (value, _) in list(con._session.state.names._cache._kept.items()):
        kind = key[0]
        if kind not in ("metadata", "written metadata", "manifest list"):
            continue
        place, *version = key[1] if kind == "manifest list" else key[1:]
        if Storage().version_of(place) != (place, *version):
            continue  # of a removed file
        data = Path(place).read_bytes()
        match kind:
            case "metadata":
                read = parse_metadata(data, place)
                assert value == read
                assert list(value.snapshots.items()) == list(read.snapshots.items())
            case "written metadata":
                assert metadata_bytes(value) == data
                assert value == metadata_document(data, place)
            case "manifest list":
                assert value == decode_manifest_list(data, path=place)
        found.add(kind)
    return found


def connected(folder: Path, kind: str) -> icesql.Connection:
    if kind == "folder":
        return icesql.connect(warehouse=str(folder))
    return icesql.connect(uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/wh")


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_it_is_what_the_files_say(kind: str, version: int, tmp_path) -> None:
    if kind == "sqlite":
        from pyiceberg.catalog.sql import SqlCatalog

        SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    one, two = connected(tmp_path, kind), connected(tmp_path, kind)
    one.execute("CREATE SCHEMA s")
    partitioned = "PARTITIONED BY (bucket(2, id))" if version > 1 else ""
    one.execute(
        f"CREATE TABLE s.t (id BIGINT, v VARCHAR) {partitioned} "
        f"TBLPROPERTIES ('format-version' = '{version}', {MERGING})"
    )
    one.execute(STATEMENTS[0]).fetchall()
    one.execute("ALTER TABLE s.t CREATE BRANCH b")
    chance, seen = random.Random(version), set()
    statements = [each for each in STATEMENTS if version > 1 or "UPDATE" not in each]
    for number in range(30):
        con = one if chance.random() < 0.8 else two
        con.execute(chance.choice(statements) if number > 3 else STATEMENTS[0])
        for each in (one, two):
            seen |= check_kept(each)
        answers = {
            tuple(each.execute("SELECT count(*), sum(id) FROM s.t").fetchone())
            for each in (one, two)
        }
        one.execute("SET caches = off")
        answers.add(tuple(one.execute("SELECT count(*), sum(id) FROM s.t").fetchone()))
        one.execute("RESET caches")
        assert len(answers) == 1
    assert seen == {"metadata", "written metadata", "manifest list"}


def test_what_was_replaced_is_not_kept(tmp_path) -> None:
    con = connected(tmp_path, "folder")
    con.execute("CREATE SCHEMA s")
    con.execute("CREATE TABLE s.t (id BIGINT, v VARCHAR)")
    for _ in range(5):
        con.execute(STATEMENTS[0]).fetchall()
    kept: Any = con._session.state.names._cache._kept
    kinds = [key[0] for key in kept]
    assert [kinds.count(each) for each in ("metadata", "written metadata", "manifest list")] == [
        1
    ] * 3


def test_a_table_made_anew_under_its_name_is_read(tmp_path) -> None:
    """Its versions have the names of the previous table's, and once also the size."""
    con = connected(tmp_path, "folder")
    con.execute("CREATE SCHEMA s")
    for number in range(3):
        con.execute("CREATE TABLE s.t (id BIGINT)")
        con.execute(f"INSERT INTO s.t VALUES ({number})").fetchall()
        assert con.execute("SELECT id FROM s.t").fetchall() == [(number,)]
        check_kept(con)
        con.execute("DROP TABLE s.t PURGE")
