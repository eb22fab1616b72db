"""CALL: arguments, errors, EXPLAIN and the procedures that move branches."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.modify.procedures import system
from icesql.modify.procedures.procedure import find_procedure, procedure_names
from icesql.repl.completing.names import Names
from icesql.repl.completing.source import ConnectionSource
from icesql.repl.completing.suggest import suggestions
from tests.manual import reference


@pytest.fixture
def history(con: icesql.Connection) -> tuple[icesql.Connection, list[int]]:
    """A table with the rows 0, 1, 2, a snapshot for each."""
    con.execute("CREATE TABLE s.t (i INT)")
    for number in range(3):
        con.execute(f"INSERT INTO s.t VALUES ({number})")
    return con, snapshots(con)


def snapshots(con: icesql.Connection) -> list[int]:
    found = con.execute("SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at").fetchall()
    return [row[0] for row in found]


def rows(con: icesql.Connection, table: str = "s.t") -> list[int]:
    return sorted(row[0] for row in con.execute(f"SELECT i FROM {table}").fetchall())


def test_every_file_is_a_procedure_of_its_name() -> None:
    for each in map(find_procedure, procedure_names()):
        assert each.plan.__module__ == f"{system.__name__}.{each.name}"
        required = [parameter.required for parameter in each.parameters]
        assert required == sorted(required, reverse=True), each.name  # those by position first


@pytest.mark.parametrize(
    "arguments",
    [
        "('s.t', {id})", "(table => 's.t', snapshot_id => {id})", "('s.t', snapshot_id := {id})",
        "(SNAPSHOT_ID => {id}, `table` => 's.t')", "('\"s\".\"t\"', {id} + 0)", "('`s`.`t`', {id})",
    ],
)  # fmt: skip
def test_arguments_stand_by_position_or_name(history: Any, arguments: str) -> None:
    con, ids = history
    cursor = con.execute(f"CALL system.rollback_to_snapshot{arguments.format(id=ids[0])}")
    assert [each[0] for each in cursor.description] == [
        "previous_snapshot_id",
        "current_snapshot_id",
    ]
    assert (cursor.rowcount, cursor.fetchall()) == (1, [(ids[2], ids[0])])
    assert rows(con) == [0]


def test_a_parameter_is_an_argument(history: Any) -> None:
    con, ids = history
    con.execute("CALL system.rollback_to_snapshot(?, ?)", ["s.t", ids[1]])
    assert rows(con) == [0, 1]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("rollback_to_snapshot('s.t')", "snapshot_id is missing; the signature is "
            r"rollback_to_snapshot\(table string, snapshot_id bigint\)"),
        ("rollback_to_snapshot('s.t', 'x')", r"snapshot_id is 'x', and takes a bigint \(line 1, column 41\)"),
        ("rollback_to_snapshot('s.t', 1.5)", "snapshot_id is Decimal"),
        ("rollback_to_snapshot('s.t', 9223372036854775808)", "takes a bigint"),
        ("rollback_to_snapshot('s.t', true)", "takes a bigint"),
        ("rollback_to_snapshot('s.t', 1, 2)", "it takes 2 arguments, not 3"),
        ("rollback_to_snapshot(tabel => 's.t')", "no parameter tabel; did you mean table?"),
        ("rollback_to_snapshot('s.t', table => 's.t')", "table is given twice"),
        ("rollback_to_snapshot(table => 's.t', 1)", "by position follows one by name"),
        ("rollback_to_snapshot(NULL, 1)", "table is missing"),
        ("rollback_to_snapshot('', 1)", "no name of a table"),
        ("rollback_to_snapshot('s..t', 1)", "no name of a table"),
        ("rollback_to_snapshot('s.t.branch_b', 1)", "branch 'b' not found"),
        ("rollback_to_snapshot('s.t', 1)", "snapshot 1 not found"),
        ("rollback_to_timestamp('s.t', 'yesterday')", "takes a timestamp"),
        ("rollback_to_timestamp('s.t', DATE '2000-01-01')", "before that time not found"),
        ("set_current_snapshot('s.t')", "give one of them"),
        ("set_current_snapshot('s.t', 1, 'main')", "give one of them"),
        ("set_current_snapshot('s.t', ref => 'mian')", 'did you mean "main"'),
        ("fast_forward('s.t', 'main', 'b')", "no branch or tag 'b'"),
        ("fast_forward('s.t', map('a', 1), 'b')", "branch is {'a': 1}, and takes a string"),
        ("publish_changes('s.t', 'w')", "wap.id 'w' not found"),
        ("cherrypick_snapshot('s.t', 5)", "snapshot 5 not found"),
        ("rollback_to_snapshots('s.t', 5)", "did you mean system.rollback_to_snapshot"),
        ("frobnicate()", "SHOW PROCEDURES lists them"),
        ("migrate('s.t')", "not supported: CALL system.migrate"),
        ("rollback_to_snapshot('s.x', 5)", 'table "s.x" not found'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(lasting: Any, sql: str, told: str) -> None:
    con, _ = lasting
    con.execute("CREATE TABLE IF NOT EXISTS s.t (i INT)")
    if not snapshots(con):
        con.execute("INSERT INTO s.t VALUES (1)")
    for explain in ("", "EXPLAIN "):
        with pytest.raises(errors.Error, match=None if explain else told):
            con.execute(f"{explain}CALL system.{sql}")
    assert rows(con) == [1]


def test_rollbacks_go_back_and_forth(history: Any) -> None:
    con, ids = history
    (at,) = con.execute(
        f"SELECT committed_at FROM s.t.snapshots WHERE snapshot_id = {ids[1]}"
    ).fetchone()
    told = con.execute("CALL system.rollback_to_timestamp('s.t', ?)", [at]).fetchall()
    assert (told, rows(con)) == ([(ids[2], ids[0])], [0])  # strictly before
    told = con.execute(f"CALL system.set_current_snapshot('s.t', {ids[2]})").fetchall()
    assert (told, rows(con)) == ([(ids[0], ids[2])], [0, 1, 2])
    con.execute("SET timezone = 'Asia/Tokyo'")
    local = at.astimezone(UTC).replace(tzinfo=None)
    with pytest.raises(errors.SnapshotNotFoundError):  # nine hours before
        con.execute(f"CALL system.rollback_to_timestamp('s.t', TIMESTAMP '{local}')")
    con.execute(f"CALL system.rollback_to_timestamp('s.t', TIMESTAMP '{local}+00:00')")
    assert rows(con) == [0]
    assert con.execute("CALL system.ancestors_of('s.t')").fetchall() == [
        (ids[0], milliseconds(con, ids[0]))
    ]
    told = con.execute(f"CALL system.ancestors_of('s.t', {ids[2]})").fetchall()
    assert [row[0] for row in told] == ids[::-1]


def milliseconds(con: icesql.Connection, snapshot_id: int) -> int:
    (at,) = con.execute(
        f"SELECT committed_at FROM s.t.snapshots WHERE snapshot_id = {snapshot_id}"
    ).fetchone()
    assert isinstance(at, datetime)
    return round(at.timestamp() * 1000)


def test_a_branch_is_made_and_brought_to_main(history: Any) -> None:
    con, ids = history
    told = con.execute("CALL system.fast_forward('s.t', 'audit', 'main')").fetchall()
    assert told == [("audit", None, ids[2])]
    con.execute("INSERT INTO s.t.branch_audit VALUES (3)")
    head = snapshots(con)[-1]
    plan = con.execute("EXPLAIN CALL system.fast_forward('s.t', 'main', 'audit')").fetchall()
    assert plan == [
        ("set", "branch", "main", None, None, f"from snapshot {ids[2]} to snapshot {head}, the head of audit")
    ]  # fmt: skip
    assert rows(con) == [0, 1, 2]
    told = con.execute("CALL system.fast_forward('s.t', 'main', 'audit')").fetchall()
    assert (told, rows(con)) == ([("main", ids[2], head)], [0, 1, 2, 3])
    again = con.execute("EXPLAIN CALL system.fast_forward('s.t', 'main', 'audit')")
    assert (again.fetchall(), again.notes) == ([], ["nothing is to be done: it is there already"])


def test_the_rows_of_a_branch_are_picked(history: Any) -> None:
    con, _ = history
    con.execute("CALL system.fast_forward('s.t', 'audit', 'main')")
    con.execute("INSERT INTO s.t.branch_audit VALUES (3)")
    staged = snapshots(con)[-1]
    con.execute("INSERT INTO s.t VALUES (4)")
    ((action, what, _, _, records, reason),) = con.execute(
        f"EXPLAIN CALL system.cherrypick_snapshot('s.t', {staged})"
    ).fetchall()
    assert (action, what, records) == ("write", "snapshot", 1)
    assert str(staged) in reason
    assert rows(con) == [0, 1, 2, 4]
    ((source, current),) = con.execute(
        f"CALL system.cherrypick_snapshot('s.t', {staged})"
    ).fetchall()
    assert (source, current, rows(con)) == (staged, snapshots(con)[-1], [0, 1, 2, 3, 4])
    for explain in ("", "EXPLAIN "):
        with pytest.raises(errors.ProgrammingError, match="was picked already"):
            con.execute(f"{explain}CALL system.cherrypick_snapshot('s.t', {staged})")


def test_a_connection_that_only_reads_explains(history: Any, catalog: dict[str, Any]) -> None:
    _, ids = history
    sql = f"CALL system.rollback_to_snapshot('s.t', {ids[0]})"
    with icesql.connect(**catalog, read_only=True) as other:
        assert other.execute(f"EXPLAIN {sql}").fetchall()[0][:3] == ("set", "branch", "main")
        for each in (sql, "CALL system.ancestors_of('s.t')"):
            with pytest.raises(errors.AccessDeniedError, match="only reads"):
                other.execute(each)
        assert rows(other) == [0, 1, 2]


_TOY = """
from icesql.modify.procedures.procedure import Plan, Rows, Step
from icesql.modify.procedures.procedure import TABLE, Parameter, procedure


@procedure("counts to a number", TABLE, Parameter("to", "int", "2"), rows="number bigint")
def toy(call):
    steps = [Step("read", "table", call.target()[1].name, "to be named")]
    return Plan(steps, lambda: Rows([(each,) for each in range(call["to"] or 2)], "counted"))
"""


def test_one_file_makes_a_procedure(
    con: icesql.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.py").write_text(_TOY)
    monkeypatch.setattr(system, "__path__", [*system.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{system.__name__}.toy", raising=False)
    con.execute("CREATE TABLE s.t (i INT)")
    cursor = con.execute("CALL system.toy('s.t', to => 3)")
    assert [each[0] for each in cursor.description] == ["number"]
    assert (cursor.fetchall(), [*cursor.notes]) == ([(0,), (1,), (2,)], ["counted"])
    assert con.execute("EXPLAIN CALL system.toy('s.t')").fetchall()[0][:3] == (
        "read", "table", "s.t",
    )  # fmt: skip
    with pytest.raises(errors.ProgrammingError, match="to is 'x', and takes an int"):
        con.execute("CALL system.toy('s.t', 'x')")
    with pytest.raises(errors.ProgrammingError, match=r"did you mean system\.toy"):
        con.execute("CALL system.toi('s.t')")
    assert con.execute("SHOW PROCEDURES LIKE 'toy'").fetchall() == [
        ("system.toy", "toy(table string, [to int = 2])", "number bigint", "counts to a number")
    ]
    names = Names(ConnectionSource(con))
    assert "to => " in {each.text for each in suggestions("CALL system.toy(", names)}
    assert "## toy\n\nCounts to a number." in reference.procedures()


def test_trinos_two_parameters_of_a_table(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    con.execute("INSERT INTO s.t VALUES (1)")
    (first,) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchall()[0]
    con.execute("INSERT INTO s.t VALUES (2)")
    con.execute(
        "CALL system.rollback_to_snapshot(schema_name => 's', table_name => 't', "
        f"snapshot_id => {first})"
    )
    assert con.execute("SELECT i FROM s.t").fetchall() == [(1,)]
    with pytest.raises(errors.ProgrammingError, match="no parameter table_name"):
        con.execute("CALL system.rewrite_manifests(table_name => 't')")
    con.execute("ANALYZE TABLE s.t COMPUTE STATISTICS FOR COLUMNS i")
