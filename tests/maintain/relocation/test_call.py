"""CALL system.copy_table and restore_table, and the commands that call them."""

from __future__ import annotations

import json
import shutil
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from tests.maintain.rewrite.test_run import with_deletes
from tests.tables import read_table
from tests.warm import icesql as command


@pytest.fixture
def table(tmp_path) -> Any:
    return with_deletes(tmp_path, 2)


def test_a_copy_is_verified_and_restored_without_its_source(table: Any, tmp_path) -> None:
    target, warehouse = str(tmp_path / "copy"), str(tmp_path / "wh")
    with icesql.connect(warehouse=warehouse) as con:
        (done,) = con.execute(
            "CALL system.copy_table('ns.t', ?, verify => true)", [target]
        ).fetchall()
        count = con.execute("SELECT count(*) FROM ns.t").fetchone()[0]
        assert done[0] == f"{target}/metadata/{Path(table.metadata_path).name}"
        assert done[1] == table.current
        assert done[7] == count
        (again,) = con.execute(
            "CALL system.copy_table(?, ?, since => 'latest')", [table.folder, target]
        ).fetchall()
        assert (again[2], again[4]) == (0, 0)
        assert con.execute(
            f"CALL system.copy_table('ns.t', '{target}', since => {table.current})"
        ).fetchall()
        explained = con.execute(f"EXPLAIN CALL system.copy_table('ns.t', '{target}2')").fetchall()
        assert explained[0][:3] == ("write", "table", f"{target}2")
        assert not Path(f"{target}2").exists()
    shutil.rmtree(table.folder)
    with icesql.connect(
        uri=f"sqlite:///{tmp_path}/c.db",
        warehouse=str(tmp_path),
        properties={"init_catalog_tables": "true"},
    ) as con:
        con.execute("CREATE SCHEMA s")
        shown = con.execute("CALL system.restore_table(?, 's.t')", [target]).fetchall()
        assert shown == [("main", "branch", table.current, done[6] and 7, 2, count)]
        assert con.execute("SELECT count(*) FROM s.t").fetchone()[0] == count


@pytest.mark.parametrize("cut", ["data", "metadata"])
def test_a_damaged_copy_is_told(cut: str, table: Any, tmp_path) -> None:
    target = tmp_path / "copy"
    with icesql.connect() as con:
        con.execute("CALL system.copy_table(?, ?)", [table.folder, str(target)])
        each = next(
            each for each in (target / cut).iterdir() if each.suffix in (".parquet", ".avro")
        )
        data = each.read_bytes()
        each.write_bytes(data[:-1])
        with pytest.raises(errors.Error, match=each.name):
            con.execute("CALL system.restore_table(?)", [str(target)])
        each.unlink()
        with pytest.raises(errors.Error, match=each.name):
            con.execute("CALL system.restore_table(?)", [str(target)])


@pytest.mark.parametrize(("access", "argument"), read_table(__file__, "access.tsv"))
def test_access_is_asked(access: str, argument: str, table: Any, tmp_path) -> None:
    warehouse = str(tmp_path / "wh")
    given = literal_eval(access.replace("{wh}", warehouse))
    with icesql.connect(warehouse=warehouse, **given) as con:
        for sql in (
            f"CALL system.copy_table('ns.t', '{tmp_path}/copy')",
            f"CALL system.copy_table('ns.t', '{warehouse}/../copy')",
            f"CALL system.restore_table('{tmp_path}/copy')",
        ):
            with pytest.raises(errors.AccessDeniedError) as refused:
                con.execute(sql)
            assert argument in ("", refused.value.argument)
    assert not (tmp_path / "copy").exists()


def test_a_copy_within_the_roots_is_made(table: Any, tmp_path) -> None:
    warehouse = str(tmp_path / "wh")
    with icesql.connect(warehouse=warehouse, confine=[tmp_path], read_only=False) as con:
        con.execute(f"CALL system.copy_table('ns.t', '{tmp_path}/copy', verify => true)")
        con.execute(f"CALL system.restore_table('{tmp_path}/copy')")


@pytest.mark.parametrize(("sql", "problem"), read_table(__file__, "refused.tsv"))
def test_what_cannot_be_is_refused(sql: str, problem: str, table: Any, tmp_path) -> None:
    with (
        icesql.connect(warehouse=str(tmp_path / "wh")) as con,
        pytest.raises(errors.Error, match=problem),
    ):
        con.execute(f"CALL system.{sql.format(tmp_path)}")
    assert not (tmp_path / "copy").exists()


def test_the_commands(table: Any, tmp_path) -> None:
    target, where = tmp_path / "it's a copy", ("--warehouse", tmp_path / "wh")
    done = command("copy", "ns.t", "TO", target, *where, "--verify", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["verified_rows_count"] > 0
    done = command("copy", table.folder, target, "since", "latest", "--format", "csv")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(table.folder)
    done = command("restore", target, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows_count"] == row["verified_rows_count"]
    for wrong in (
        ("copy", "ns.t"),
        ("copy", "ns.t", "TO", target, "1"),
        ("restore",),
        ("restore", "a", "b", "c"),
        ("query", "SELECT 1", "--verify"),
    ):
        assert command(*wrong).returncode == 2, wrong
