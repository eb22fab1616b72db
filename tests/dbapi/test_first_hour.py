"""What a program sees that makes the mistakes of a first hour."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql.health.finding import CatalogDiagnosis
from icesql.repl.render import Style, write_rows

df = pa.table({"a": [1]})


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a INT)")
        yield connection


def test_a_variable_of_the_program_is_no_table(con: icesql.Connection) -> None:
    local = [1]
    for name in ("df", "local"):
        with pytest.raises(icesql.TableNotFoundError, match=rf'register\("{name}", {name}\)'):
            con.execute(f"SELECT * FROM {name}")
    for name in ("re", "Path", "nothing_of_that_name", "s.df"):  # no rows
        with pytest.raises(icesql.TableNotFoundError) as caught:
            con.execute(f"SELECT * FROM {name}")
        assert "register" not in str(caught.value)
    con.register("df", df)
    assert con.execute("SELECT * FROM df").fetchall() == [(1,)]
    assert local


def test_what_is_no_statement_and_no_table_is_an_error_of_ours(con: icesql.Connection) -> None:
    for wrong in (None, 5, b"SELECT 1", Path("x.sql")):
        for run in (
            lambda it: con.execute(it),
            lambda it: con.cursor().executemany(it, [(1,)]),
            lambda it: list(con.execute_script(it)),
        ):
            with pytest.raises(icesql.ProgrammingError, match=f"not {type(wrong).__name__}"):
                run(wrong)
        with pytest.raises(icesql.ProgrammingError, match=f"{type(wrong).__name__} is no table"):
            con.register("y", wrong)  # type: ignore[arg-type]


def test_the_names_of_other_drivers(con: icesql.Connection) -> None:
    con.execute("INSERT INTO s.t VALUES (1)")
    assert con.execute("SELECT a FROM s.t").fetch_arrow_table() == pa.table(
        {"a": pa.array([1], pa.int32())}
    )
    assert con.execute("SELECT a FROM s.t").fetchdf()["a"].to_list() == [1]


def test_no_catalog_is_said() -> None:
    with icesql.connect() as connection:
        for sql in ("SHOW TABLES", "SHOW SCHEMAS"):
            with pytest.warns(icesql.Warning, match=r"no catalog.*arguments of connect"):
                assert connection.execute(sql).fetchall() == []
        (cursor,) = connection.execute_script("SHOW TABLES")  # which the command shows itself
        assert "no catalog" in cursor.notes[0]


def test_rows_that_write_audit_publish_keeps_from_main_are_said(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.w (a INT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    con.execute("INSERT INTO s.w VALUES (0)")
    con.execute("SET wap.id = 'x'")
    (note,) = con.execute("INSERT INTO s.w VALUES (1)").notes
    assert "staged as wap.id x, which no query reads" in note
    assert con.execute("INSERT INTO s.t VALUES (1)").notes == []  # which takes no part
    con.execute("RESET wap.id")
    assert con.execute("SELECT count(*) FROM s.w").fetchall() == [(1,)]
    con.execute(call_in(note))
    assert con.execute("SELECT count(*) FROM s.w").fetchall() == [(2,)]
    con.execute("ALTER TABLE s.w CREATE BRANCH audit")
    con.execute("SET wap.branch = 'audit'")
    for change in ("UPDATE s.w SET a = 5 WHERE a = 0", "DELETE FROM s.w WHERE a = 1"):
        (note,) = con.execute(change).notes
        assert note.startswith("in branch audit alone")
    assert con.execute("INSERT INTO s.w.branch_main VALUES (9)").notes == []
    con.execute("RESET wap.branch")
    assert con.execute("SELECT sum(a) FROM s.w").fetchall() == [(10,)]


def test_drop_says_how_the_table_comes_back(tmp_path: Path) -> None:
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}
    with icesql.connect(**given, properties={"init_catalog_tables": "true"}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 7 AS a")
        (note,) = con.execute("DROP TABLE s.t").notes
        con.execute(call_in(note))
        con.execute("INSERT INTO s.t VALUES (8)")
        with pytest.raises(icesql.CatalogError, match="already exists"):
            con.execute("UNDROP TABLE s.t")
        con.execute("DELETE FROM s.t WHERE a = 8")
        con.execute("ALTER TABLE s.t RENAME TO s.u")
        with pytest.raises(icesql.ProgrammingError, match=r"'FILE'.*which DROP TABLE has named"):
            con.execute("UNDROP TABLE s.t")  # what lies there is the file of s.u
        con.execute("ALTER TABLE s.u RENAME TO s.t")
        con.execute("DROP TABLE s.t")
        with pytest.raises(icesql.ProgrammingError, match="newest metadata") as raised:
            con.execute("UNDROP TABLE s.t")
        con.execute(call_in(str(raised.value)))
        assert con.execute("SELECT a FROM s.t").fetchall() == [(7,)]
        assert con.execute("DROP TABLE s.t PURGE").notes == []


def test_a_second_create_names_the_table(con: icesql.Connection) -> None:
    for sql in ("CREATE TABLE s.t (a INT)", "CREATE TABLE s.t AS SELECT 1 AS a"):
        with pytest.raises(icesql.CatalogError, match=r"^s\.t already exists; CREATE TABLE IF"):
            con.execute(sql)
    with pytest.raises(icesql.CatalogError, match="namespace s already exists"):
        con.execute("CREATE SCHEMA s")


def test_snapshots_fit_a_terminal_and_a_number_goes_back(con: icesql.Connection) -> None:
    for number in range(3):
        con.execute(f"INSERT INTO s.t VALUES ({number})")
    names = [column[0] for column in con.execute("SHOW SNAPSHOTS FROM s.t").description or ()]
    assert names == ["committed_at", "snapshot_id", "operation", "refs", "records"]
    con.execute("ALTER TABLE s.t CREATE TAG nine_long")
    con.execute("DELETE FROM s.t")
    con.execute("SET timezone = 'Asia/Kolkata'")
    shown = con.execute("SHOW SNAPSHOTS FROM s.t")
    (zoned, *_), *_ = con.execute("SHOW SNAPSHOTS EXTENDED FROM s.t").fetchall()
    rows, out = shown.fetchall(), io.StringIO()
    write_rows(out, "table", names, rows, Style())
    assert max(map(len, out.getvalue().splitlines())) == 80
    assert rows[0][0] == zoned.replace(tzinfo=None)
    at = con.execute(f"SELECT count(*) FROM s.t TIMESTAMP AS OF '{rows[1][0]}'").fetchone()
    assert at == (2,), "the time that is shown is that of its snapshot"
    con.execute("RESET timezone")
    con.execute("ALTER TABLE s.t DROP TAG nine_long")
    con.execute("CALL system.rollback_to_snapshot('s.t', -1)")
    cursor = con.execute("SHOW SNAPSHOTS EXTENDED FROM s.t")
    assert {column[0] for column in cursor.description or ()} - set(names) == {
        "parent_id", "summary",
    }  # fmt: skip
    con.execute("CREATE TABLE s.extended AS SELECT 1 AS a")
    for sql in ("SHOW SNAPSHOTS s.extended", "SHOW SNAPSHOTS EXTENDED s.extended"):
        assert len(con.execute(sql).fetchall()) == 1
    for back, count in ((1, 2), (2, 1)):
        con.execute(f"SET snapshot_ref = '-{back}'")
        assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(count,)]
    con.execute("SET snapshot_ref = '-9'")
    with pytest.raises(icesql.SnapshotNotFoundError, match="9 commits before"):
        con.execute("SELECT count(*) FROM s.t")


def test_a_branch_that_looks_like_a_number_is_that_branch(con: icesql.Connection) -> None:
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute('ALTER TABLE s.t CREATE BRANCH "-1"')
    con.execute("INSERT INTO s.t VALUES (2)")
    con.execute("INSERT INTO s.t VALUES (3)")
    con.execute("SET snapshot_ref = '-1'")
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(1,)]


def test_the_doctor_s_page_says_what_its_numbers_are_and_when(con: icesql.Connection) -> None:
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("INSERT INTO s.t VALUES (2)")
    found = con.doctor()
    assert isinstance(found, CatalogDiagnosis)
    page = found.page("/data/<lake>")
    assert "<title>icesql doctor: /data/&lt;lake&gt;</title>" in page
    assert re.search(r"<p>\d{4}-\d\d-\d\d \d\d:\d\d UTC, icesql [\d.]+</p>", page)
    assert "<th>files that would be saved</th>" in page
    assert "<details>" not in page


def call_in(note: str) -> str:
    found = re.search(r"CALL .*?'\)", note)
    assert found is not None
    return found[0]
