"""Rows that another writer deleted stay deleted when a statement rewrites their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import icesql
import icesql.commit.attempts as attempts
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.errors import CommitConflictError
from tests.campaigns.histories.others import equality_delete

CATALOGS = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def delete_by_key(given: dict[str, Any], keys: list[int], **more: Any) -> None:
    """Commit an equality delete of s.t on field 1, as Flink does."""
    catalog: Any = DirectoryCatalog(given["warehouse"])
    if "uri" in given:
        path = given["uri"].removeprefix("sqlite:///")
        catalog = SqliteCatalog(path, "c", properties={"warehouse": given["warehouse"]})
    equality_delete(catalog, catalog.load(("s", "t")), keys, field=1, **more)


def before_next_commit(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Call ``action`` after the files of the next commit are written, and before the commit."""
    real = attempts._until_known

    def once(*given: Any) -> Any:
        monkeypatch.setattr(attempts, "_until_known", real)
        action()
        return real(*given)

    monkeypatch.setattr(attempts, "_until_known", once)


def table(con: icesql.Connection, version: int, **properties: str) -> None:
    """Rows (0, 0) to (9, 9) in one file."""
    listed = ", ".join(
        f"'{name}' = '{value}'"
        for name, value in {"format-version": str(version), **properties}.items()
    )
    con.execute(f"CREATE TABLE s.t (id BIGINT NOT NULL, x INT) TBLPROPERTIES ({listed})")
    con.execute("INSERT INTO s.t SELECT range, range FROM range(10)")


def numbers(con: icesql.Connection) -> list[int]:
    return [each for (each,) in con.execute("SELECT id FROM s.t ORDER BY id").fetchall()]


@CATALOGS
@VERSIONS
@pytest.mark.parametrize(
    "statement",
    [
        "CALL system.rewrite_data_files('s.t', where => 'id < 5', "
        "options => map('rewrite-all', 'true'))",
        "CALL system.rewrite_data_files('s.t', where => 'x < 5', "
        "options => map('rewrite-all', 'true'))",
        "OPTIMIZE s.t WHERE id < 5",
    ],
)
def test_compaction_of_some_rows_applies_the_deletes_of_all(
    con: icesql.Connection, catalog: dict[str, Any], version: int, statement: str
) -> None:
    table(con, version)
    for n in range(20, 26):
        con.execute(f"INSERT INTO s.t SELECT {n}, range FROM range(1)")
    delete_by_key(catalog, [7, 24])
    before = [0, 1, 2, 3, 4, 5, 6, 8, 9, 20, 21, 22, 23, 25]
    assert numbers(con) == before
    con.execute(statement)
    assert numbers(con) == before


CHANGES = pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM s.t WHERE id = 5",
        "UPDATE s.t SET x = 99 WHERE id = 5",
        "MERGE INTO s.t USING (SELECT 5::BIGINT AS id) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET x = 99",
    ],
)


@CATALOGS
@VERSIONS
@CHANGES
def test_a_file_is_not_written_anew_over_a_delete_of_another_of_its_rows(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch,
    version: int,
    statement: str,
) -> None:
    table(con, version)
    con.execute("SET conflict_retries = 0")
    before_next_commit(monkeypatch, lambda: delete_by_key(catalog, [7]))
    with pytest.raises(CommitConflictError, match="which it rewrites, were deleted"):
        con.execute(statement)
    assert numbers(con) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    con.execute(statement)
    assert 7 not in numbers(con)


@VERSIONS
@CHANGES
def test_a_delete_of_keys_that_the_file_cannot_have_is_no_conflict(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch,
    version: int,
    statement: str,
) -> None:
    table(con, version)
    before_next_commit(monkeypatch, lambda: delete_by_key(catalog, [70, 90]))
    con.execute(statement)
    assert len(numbers(con)) == (9 if "DELETE" in statement else 10)


REWRITE = (
    "CALL system.rewrite_data_files('s.t', {where} options => map('rewrite-all', 'true'{more}))"
)
NEW_AGE = ", 'use-starting-sequence-number', 'false'"


@CATALOGS
@VERSIONS
@pytest.mark.parametrize("where", ["", "where => 'id < 5',"])
@pytest.mark.parametrize("keeps_age", [True, False])
def test_compaction_and_a_delete_by_key_that_comes_meanwhile(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch,
    version: int,
    where: str,
    keeps_age: bool,
) -> None:
    table(con, version)
    before_next_commit(monkeypatch, lambda: delete_by_key(catalog, [7]))
    statement = REWRITE.format(where=where, more="" if keeps_age else NEW_AGE)
    if keeps_age:
        con.execute(statement)  # the delete applies to the new file, too
    else:
        with pytest.raises(CommitConflictError, match="were deleted"):
            con.execute(statement)
    assert numbers(con) == [0, 1, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("where", ["", "where => 'id < 5',"])
def test_compaction_of_a_table_that_becomes_one_with_deletes(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch, where: str
) -> None:
    table(con, 1)

    def meanwhile() -> None:
        with icesql.connect(**catalog) as other:
            other.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '2')")
        delete_by_key(catalog, [7])

    before_next_commit(monkeypatch, meanwhile)
    with pytest.raises(CommitConflictError):
        con.execute(REWRITE.format(where=where, more=""))
    assert numbers(con) == [0, 1, 2, 3, 4, 5, 6, 8, 9]


@CATALOGS
@VERSIONS
@pytest.mark.parametrize("of_old_spec", [True, False])
def test_compaction_into_another_spec_and_a_delete_of_a_partition(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch,
    version: int,
    of_old_spec: bool,
) -> None:
    """A delete of a partition applies only to its files; rewritten rows may leave or enter it."""
    con.execute(
        "CREATE TABLE s.t (id BIGINT NOT NULL, p INT, q INT) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    con.execute("INSERT INTO s.t SELECT range, 1, 2 FROM range(10)")
    con.execute("ALTER TABLE s.t DROP PARTITION FIELD p")
    con.execute("ALTER TABLE s.t ADD PARTITION FIELD q")
    con.execute("INSERT INTO s.t VALUES (20, 1, 2)")
    specs = sorted(
        each for (each,) in con.execute("SELECT DISTINCT spec_id FROM s.t.files").fetchall()
    )
    partition = (1,) if of_old_spec else (2,) if version > 1 else (None, 2)

    def meanwhile() -> None:
        spec_id = specs[0 if of_old_spec else -1]
        delete_by_key(catalog, [7, 20], spec_id=spec_id, partition=partition)

    before_next_commit(monkeypatch, meanwhile)
    cursor = con.execute(REWRITE.format(where="", more=""))
    # Rows that would change their partition stay; the other file is rewritten.
    assert any("were deleted" in each for each in cursor.notes)
    assert con.execute("SELECT count(*) FROM s.t.files WHERE content = 0").fetchall() == [(2,)]
    gone = [7] if of_old_spec else [20]
    assert numbers(con) == [each for each in [*range(10), 20] if each not in gone]


@CATALOGS
@VERSIONS
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize(
    ("meanwhile", "conflicts"),
    [("UPDATE s.t SET x = 50 WHERE id = 1", True), ("DELETE FROM s.t WHERE id = 1", False)],
)
def test_a_delete_of_all_rows_of_a_file(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch,
    version: int,
    isolation: str,
    meanwhile: str,
    conflicts: bool,
) -> None:
    wanted = {
        f"write.{each}.{name}": value
        for each in ("delete", "update")
        for name, value in (("mode", "merge-on-read"), ("isolation-level", isolation))
    }
    table(con, version, **wanted)
    con.execute("SET conflict_retries = 0")
    # Vectors record row counts, and the statement has counted one more row; delete files and
    # keys do not.
    conflicts = conflicts or version == 3
    with icesql.connect(**catalog) as other:
        before_next_commit(monkeypatch, lambda: other.execute(meanwhile))
        # A condition that metadata cannot decide, so that rows are read.
        statement = "DELETE FROM s.t WHERE id % 1 = 0"
        if conflicts:
            with pytest.raises(CommitConflictError):
                con.execute(statement)
            found = con.execute("SELECT x FROM s.t WHERE id <> 1 ORDER BY id").fetchall()
            assert found == [(each,) for each in range(10) if each != 1]
            left = con.execute("SELECT x FROM s.t WHERE id = 1").fetchall()
            assert left == ([(50,)] if "UPDATE" in meanwhile else [])
        else:
            con.execute(statement)
            assert numbers(con) == []
