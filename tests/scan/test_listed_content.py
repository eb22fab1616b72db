"""A manifest list whose ``content`` is wrong hides rows or brings them back: it is refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

import icesql
from icesql.errors import CorruptFileError
from icesql.scan import manifest_reader

QUESTIONS = (
    "SELECT * FROM s.t",
    "SELECT count(*) FROM s.t",
    "SELECT * FROM s.t WHERE id >= 0",
    "SELECT * FROM s.t WHERE p = 1",
    "SELECT max(id) FROM s.t",
    "DELETE FROM s.t WHERE id < 0",
    "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
    "CALL system.expire_snapshots('s.t', older_than => now() + INTERVAL 1 DAY)",
)


@pytest.fixture
def con(tmp_path) -> Any:
    with icesql.connect(warehouse=str(tmp_path), read_only=False) as made:
        made.execute("CREATE SCHEMA s")
        yield made


def filled(con: icesql.Connection, version: int, commits: int = 3, *, deletes: bool) -> None:
    con.execute(
        "CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p) TBLPROPERTIES ("
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    for n in range(commits):
        con.execute(f"INSERT INTO s.t VALUES ({n}, {n % 2}), ({n + 10}, {n % 2})")
    if deletes:
        con.execute("DELETE FROM s.t WHERE id = 1")


def edit_list(con: icesql.Connection, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the current manifest list in place."""
    (path,) = con.execute(
        "SELECT manifest_list FROM s.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).fetchone()
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
    edit(rows)
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec="deflate")
    Path(path).write_bytes(out.getvalue())


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("flipped", [(0,), (1,), (2,), (0, 1, 2)])
def test_rows_are_not_hidden(
    con: icesql.Connection, tmp_path, version: int, flipped: tuple[int, ...], deletes: bool
) -> None:
    filled(con, version, deletes=deletes)

    def hide(rows: list[dict[str, Any]]) -> None:
        data = [each for each in rows if each["content"] == 0]
        for index in flipped:
            data[index]["content"] = 1

    edit_list(con, hide)
    for sql in QUESTIONS:
        with (
            icesql.connect(warehouse=str(tmp_path), read_only=False) as fresh,
            pytest.raises(CorruptFileError, match="a manifest of data that the manifest list says"),
        ):
            fresh.execute(sql).fetchall()


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_do_not_come_back(con: icesql.Connection, tmp_path, version: int) -> None:
    filled(con, version, deletes=True)

    def reveal(rows: list[dict[str, Any]]) -> None:
        for each in rows:
            each["content"] = 0

    edit_list(con, reveal)
    for sql in QUESTIONS:
        with (
            icesql.connect(warehouse=str(tmp_path), read_only=False) as fresh,
            pytest.raises(CorruptFileError, match="a manifest of deletes that the manifest list"),
        ):
            fresh.execute(sql).fetchall()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_healthy_tables_are_read_as_ever(
    con: icesql.Connection, tmp_path, version: int, monkeypatch
) -> None:
    def unasked(*_: Any) -> None:
        raise AssertionError("a manifest is looked at for its content")

    monkeypatch.setattr(manifest_reader, "check_content", unasked)
    filled(con, version, deletes=version > 1)
    for sql in (
        *QUESTIONS,
        "UPDATE s.t SET id = id + 100 WHERE p = 0",
        "DELETE FROM s.t WHERE p = 1",
        "TRUNCATE TABLE s.t",
        "INSERT INTO s.t VALUES (1, 1)",
    ):
        con.execute(sql).fetchall()
        with icesql.connect(warehouse=str(tmp_path)) as fresh:
            assert fresh.execute("SELECT * FROM s.t").fetchall() is not None


def test_deletes_that_are_left_alone_are_no_fault(con: icesql.Connection, tmp_path) -> None:
    """Also if the summary of the snapshot has no totals: then the manifest is read."""
    filled(con, 2, deletes=True)

    def only_deletes(rows: list[dict[str, Any]]) -> None:
        rows[:] = [each for each in rows if each["content"] == 1]

    edit_list(con, only_deletes)
    for folder in tmp_path.rglob("*.metadata.json"):
        folder.write_text(folder.read_text().replace('"total-', '"no-'))
    with icesql.connect(warehouse=str(tmp_path)) as fresh:
        assert fresh.execute("SELECT * FROM s.t").fetchall() == []
