"""CALL: arguments, errors, EXPLAIN and the procedures that move branches."""

from __future__ import annotations

import sys

import pytest

import icesql
from icesql import errors
from icesql.modify.procedures import system
from icesql.modify.procedures.procedure import find_procedure, procedure_names
from icesql.repl.completion_names import ConnectionSource, Names
from icesql.repl.suggestions import suggestions
from tests.manual import reference


def test_every_file_is_a_procedure_of_its_name() -> None:
    for each in map(find_procedure, procedure_names()):
        assert each.plan.__module__ == f"{system.__name__}.{each.name}"
        required = [parameter.required for parameter in each.parameters]
        assert required == sorted(required, reverse=True), each.name  # required ones first


def test_a_parameter_is_an_argument(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 0 AS i")
    (first,) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchone()
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("CALL system.rollback_to_snapshot(?, ?)", ["s.t", first])
    assert con.execute("SELECT * FROM s.t").fetchall() == [(0,)]


_TOY = """
from icesql.modify.procedures.procedure import Plan, Rows, Step
from icesql.modify.procedures.procedure import TABLE, Parameter, procedure


@procedure("counts to a number", TABLE, Parameter("to", "int", "2"), rows="number bigint")
def toy(call):
    steps = [Step("read", "table", call.target()[1].name, "to be named")]
    return Plan(steps, lambda: Rows([(each,) for each in range(call["to"] or 2)], "counted"))
"""


def test_one_file_makes_a_procedure(con: icesql.Connection, tmp_path, monkeypatch) -> None:
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
