"""Orphans of a table in an object store: found by listing, removed by requests of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from icesql import errors
from tests.sessions import fetched
from tests.stores.server import Store


@pytest.fixture
def own_bucket(bucket: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bucket, tmp_path / "bucket"))


@pytest.fixture
def own_store(own_bucket: Path) -> Iterator[Store]:
    with Store(own_bucket).running() as running:
        yield running


@pytest.fixture
def con(own_bucket: Path, own_store: Store, tmp_path: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(
        uri=f"sqlite:///{own_bucket}/catalog.db",
        properties=own_store.properties(),
        settings={
            "cache_directory": str(tmp_path / "cache"),
            "temp_directory": str(tmp_path / "t"),
        },
    ) as connection:
        yield connection


def test_they_are_listed_and_removed(
    con: icesql.Connection, own_bucket: Path, own_store: Store
) -> None:
    folder = own_bucket / "lake" / "small"
    # Files from before the table was published are not part of it.
    con.execute("CALL system.remove_orphan_files('lake.small')")
    whole = {each for each in folder.rglob("*") if each.is_file()}
    planted = {folder / name for name in ("data/x.parquet", "data/p=é ü/y+z%2F.parquet", "loose")}
    for each in (*planted, folder / "data" / "_hidden"):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(b"x")
    (own_bucket / "lake" / "smaller").mkdir()
    neighbour = own_bucket / "lake" / "smaller" / "x"
    neighbour.write_bytes(b"x")
    expected = {f"s3://lake/small/{each.relative_to(folder)}" for each in planted}
    own_store.requests.clear()
    for call in (
        "CALL system.remove_orphan_files('lake.small', dry_run => true)",
        "CALL system.remove_orphan_files('lake.small', location => 's3a://lake/small', dry_run => true)",
    ):
        found = {row[0].replace("s3a:", "s3:") for row in fetched(con, call)}
        assert found == expected
    assert {each.method for each in own_store.requests} <= {"GET", "HEAD"}
    told = fetched(con, "EXPLAIN CALL system.remove_orphan_files('lake.small')")
    assert [(row[2], row[3]) for row in told] == [(each, 1) for each in sorted(expected)]
    assert planted < {*folder.rglob("*")}
    con.execute("CALL system.remove_orphan_files('lake.small')")
    left = {each for each in folder.rglob("*") if each.is_file()}
    assert left == whole | {folder / "data" / "_hidden"}
    assert neighbour.exists()
    assert fetched(con, "SELECT count(*), count(DISTINCT name) FROM lake.small") == [(960, 960)]


def test_another_bucket_is_refused(con: icesql.Connection) -> None:
    for place in ("s3://other/small", "s3://lake", "s3://lake/smaller", "gs://lake/small"):
        with pytest.raises(errors.NotSupportedError, match="other tables may have files"):
            con.execute(f"CALL system.remove_orphan_files('lake.small', location => '{place}')")
