"""A lake is kept healthy: rows stay, promises hold, and a second run finds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.errors import (
    AccessDeniedError,
    CommitConflictError,
    ProgrammingError,
    QueryCancelledError,
    StorageError,
    UnsupportedSqlError,
)
from icesql.health import runs, upkeep
from icesql.health.runs import MaintenanceReport, TableReport
from icesql.modify.procedures.system import rewrite_data_files as module
from tests.health.lake import (
    DAMAGED,
    QUIET,
    TROUBLED,
    build,
    connect,
    contents,
    leave_orphan,
    upserts,
)
from tests.scenes import Scene, Session, scenes


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return build(tmp_path / "wh")


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "wh").mkdir()
    with connect(tmp_path / "wh") as con:
        con.execute("CREATE SCHEMA ns")
        con.execute("CREATE TABLE ns.t (id BIGINT)")
        for n in range(6):
            con.execute(f"INSERT INTO ns.t VALUES ({n})")
        yield con


def by_table(report: MaintenanceReport) -> dict[str, TableReport]:
    return {each.table: each for each in report.tables}


def statuses(report: MaintenanceReport) -> dict[str, str]:
    return {each.table: each.status for each in report.tables}


def test_each_table_gets_what_it_needs_and_a_second_run_finds_nothing(lake: Path) -> None:
    before = contents(lake)
    with connect(lake) as con:
        first = con.maintain()
    assert statuses(first) == {
        DAMAGED: "damaged", **dict.fromkeys(TROUBLED, "done"), **dict.fromkeys(QUIET, "nothing"),
    }  # fmt: skip
    assert contents(lake) == before
    for table in first.tables:
        for action in table.actions:
            assert action.predicted, action
            for name, promised in action.predicted.items():
                assert abs(action.reached[name] - promised) <= 0.1 * promised, (table, name)
        for name, promised in table.predicted.items():
            assert table.reached[name] == promised, (table, name)
    found = by_table(first)
    assert found["ns.upserts_v2"].reached["equality_delete_files"] == 0
    assert found["ns.upserts_v3"].reached["equality_delete_files"] == 0
    assert found["ns.positions"].reached["delete_files"] == 0
    assert found["ns.old"].reached["snapshots"] == 1
    assert found["ns.small"].reached["data_files"] == 1
    assert "missing files" in found[DAMAGED].note
    assert first.exit_code == 1
    with connect(lake, caches="off") as con:
        second = con.maintain()
    assert statuses(second) == {
        DAMAGED: "damaged", **dict.fromkeys(TROUBLED | QUIET, "nothing")
    }  # fmt: skip
    assert contents(lake) == before


def test_a_dry_run_changes_no_file(lake: Path, tmp_path: Path) -> None:
    def files() -> dict[str, float]:
        return {str(each): each.stat().st_mtime for each in lake.rglob("*") if each.is_file()}

    before, history = files(), tmp_path / "history"
    with connect(lake) as con:
        planned = con.maintain(dry_run=True, history=history)
    assert files() == before
    assert not history.exists()
    assert {each.table for each in planned.tables if each.status == "planned"} == TROUBLED
    text = str(planned)
    assert "CALL system.rewrite_data_files('ns.\"odd [1]\"');" in text
    # The statements are those that run.
    with connect(lake) as con:
        for each in by_table(planned)["ns.small"].actions:
            con.execute(each.statement)
        assert con.maintain("ns.small").tables[0].status == "nothing"


class Keeper(Session):
    """A warehouse in ``${folder}``, and what the last maintenance says."""

    done: MaintenanceReport

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self.folder, self.values["folder"] = folder / "wh", folder

    def lake(self) -> None:
        self.con = connect(build(self.folder))

    def six(self) -> None:
        """The table ns.t of six rows, each in a file of its own."""
        self.folder.mkdir()
        self.con = connect(self.folder)
        self.sql("CREATE SCHEMA ns; CREATE TABLE ns.t (id BIGINT)")
        self.sql(";".join(f"INSERT INTO ns.t VALUES ({n})" for n in range(6)))

    def upserts(self, version: str) -> None:
        upserts(self.folder / "ns" / "t", int(version), commits=3)
        self.con = connect(self.folder)

    def catalog(self) -> None:
        """A catalog in a file, which has views and names for tables that are there."""
        place = {"uri": f"sqlite:///{self.folder}.db", "warehouse": str(self.folder)}
        self.con = icesql.connect(**place, properties={"init_catalog_tables": "true"})

    def policy(self, line: str) -> None:
        """One more line of ``${folder}/policy.toml``."""
        with (self.folder.parent / "policy.toml").open("a") as file:
            file.write(f"{line}\n")

    def orphan(self, table: str, days: str) -> None:
        leave_orphan(self.folder, table, float(days))

    def files(self, count: str, pattern: str) -> None:
        assert len([*self.folder.rglob(pattern)]) == int(count)

    def remember(self) -> None:
        self.before = contents(self.folder)

    def remembered(self) -> None:
        """The rows are those of then."""
        assert contents(self.folder) == self.before

    def maintain(self, *words: str) -> None:
        """Maintain tables, all where none is named, by options; actions are cut at commas."""
        tables = [each for each in words if "=" not in each]
        options: dict[str, Any] = dict(each.split("=", 1) for each in words if "=" in each)
        if "actions" in options:
            options["actions"] = options["actions"].split(",")
        self.done = self.con.maintain(tables or None, **options)
        self.values["run"] = self.done.run

    def tables(self, wanted: str) -> None:
        """The tables of the report, each with its status."""
        assert ", ".join(f"{each.table} {each.status}" for each in self.done.tables) == wanted

    def acts(self, wanted: str) -> None:
        """The actions for the only table, each with its status."""
        (table,) = self.done.tables
        assert ", ".join(f"{each.action} {each.status}" for each in table.actions) == wanted

    def reached(self, name: str, number: str) -> None:
        assert self.done.tables[0].reached[name] == int(number)

    def promised(self, name: str, number: str) -> None:
        """What the only action for the only table promised and reached."""
        ((action,),) = (each.actions for each in self.done.tables)
        assert action.predicted == action.reached == {name: int(number)}

    def mentions(self, text: str = "") -> None:
        assert text in str(self.done)

    def ends_a_line(self, text: str) -> None:
        self.mentions(f"{text}\n")

    def omits(self, text: str) -> None:
        assert text not in str(self.done)

    def warns(self, text: str = "") -> None:
        assert "; ".join(self.done.warnings) == text

    def exits(self, code: str) -> None:
        assert self.done.exit_code == int(code)

    def lacks(self, name: str) -> None:
        """The doctor has no finding of this name."""
        assert name not in {each.name for each in self.con.doctor("ns.t").findings}


@scenes(__file__, "lake.scenes")
def test_a_lake_is_kept(scene: Scene, tmp_path: Path) -> None:
    with closing(Keeper(tmp_path)) as keeper:
        keeper.play(scene)


def test_a_budget_ends_the_beginning_of_actions(lake: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    with connect(lake) as con:
        nothing = con.maintain(budget="0s")
        assert (nothing.tables, len(nothing.left), nothing.exit_code) == ((), 11, 3)
        some = con.maintain(budget="1B", history=history)
    assert some.exit_code == 1  # the damaged table comes first
    assert some.ended_by == "budget"
    assert some.left
    with connect(lake) as con:
        rest = con.maintain(history=history)
    assert rest.run == some.run
    assert {*rest.earlier} >= {each.table for each in some.tables if each.status == "done"}
    assert {each.table for each in rest.tables} >= {*some.left}
    with connect(lake) as con:
        new = con.maintain(history=history)
    assert new.run != some.run
    assert set(statuses(new).values()) == {"nothing", "damaged"}


def test_a_killed_run_goes_on_where_it_was(lake: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    killed: list[str] = []

    def kill(table: TableReport, number: int, count: int) -> None:
        killed.append(table.table)
        if number == 4:
            raise KeyboardInterrupt

    with connect(lake) as con:
        with pytest.raises(KeyboardInterrupt):
            con.maintain(history=history, tell=kill)
        with open(history, "ab") as file:
            file.write(b'{"run": "half of a li')
        rest = con.maintain(history=history)
        assert [DAMAGED, *rest.earlier] == killed  # what is damaged may have been mended
        assert not {*rest.earlier} & {each.table for each in rest.tables}
        # Another policy is another run.
        assert con.maintain(history=history, actions=["compact"], dry_run=False).earlier == ()
    lines = [
        line for line in history.read_text().splitlines() if not line.startswith('{"run": "half')
    ]
    assert len({json.loads(line)["run"] for line in lines}) == 2


def test_a_run_beside_another_one_leaves_its_tables_to_nobody(lake: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    inner: list[MaintenanceReport] = []

    def beside(table: TableReport, number: int, count: int) -> None:
        if number == 2:
            with connect(lake) as other:
                inner.append(other.maintain(history=history))

    with connect(lake) as con:
        outer = con.maintain(history=history, tell=beside)
    assert inner[0].run != outer.run
    assert inner[0].earlier == ()
    assert "failed" not in {*statuses(outer).values(), *statuses(inner[0]).values()}


@pytest.mark.parametrize(
    "error",
    [CommitConflictError("another was first"), StorageError("no such file", "gone.parquet")],
)
def test_what_another_has_done_meanwhile_is_no_failure(
    one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = module.rewrite_data_files

    def beaten(call: Any) -> Any:
        monkeypatch.undo()
        with connect(tmp_path / "wh") as other:
            other.execute("CALL system.rewrite_data_files('ns.t')")
        raise error

    monkeypatch.setattr(module, "rewrite_data_files", replace(real, plan=beaten))
    done = one.maintain("ns.t")
    assert real is module.rewrite_data_files
    (action,) = done.tables[0].actions
    assert (action.status, action.note) == ("nothing", "another did it")
    assert done.exit_code == 0


def test_what_another_expires_meanwhile_is_no_damage(
    one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = upkeep.examine_history

    def late(parts: Any, table: Any, query: Any) -> Any:
        monkeypatch.undo()
        with connect(tmp_path / "wh") as other:
            other.maintain("ns.t", actions=["compact", "expire"])
            other.execute("CALL system.expire_snapshots('ns.t', older_than => now())")
        assert real(parts, table, query).findings
        return real(parts, table, query)

    monkeypatch.setattr(upkeep, "examine_history", late)
    assert one.maintain("ns.t").tables[0].status == "nothing"


def test_a_failing_table_stops_no_other(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icesql.errors import CommitStateUnknownError

    real = module.rewrite_data_files

    def fails(call: Any) -> Any:
        if call.table_name().parts[-1] == "small":
            raise CommitStateUnknownError("nobody knows")
        if call.table_name().parts[-1] == "partitioned":
            raise CommitConflictError("another was first")
        return real.plan(call)

    monkeypatch.setattr(module, "rewrite_data_files", replace(real, plan=fails))
    with connect(lake) as con:
        done = con.maintain()
    found = by_table(done)
    assert (found["ns.small"].status, found["ns.partitioned"].status) == ("failed", "failed")
    assert "nobody knows" in found["ns.small"].note
    assert found["ns.upserts_v2"].status == "done"
    assert done.exit_code == 1
    monkeypatch.undo()
    with connect(lake) as con:
        again = con.maintain()
    assert {each.table for each in again.tables if each.status == "done"} == {
        "ns.small", "ns.partitioned",
    }  # fmt: skip


@pytest.mark.parametrize("error", [OverflowError, RecursionError, MemoryError, KeyError])
@pytest.mark.parametrize("where", ["history", "action"])
def test_whatever_one_table_raises_the_next_is_maintained(
    lake: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: type[Exception]
) -> None:
    real, look = module.rewrite_data_files, upkeep.examine_history

    def plan(call: Any) -> Any:
        if call.table_name().parts[-1] == "small":
            raise error("of one table")
        return real.plan(call)

    def examine(parts: Any, *others: Any) -> Any:
        if parts[-1] == "small":
            raise error("of one table")
        return look(parts, *others)

    if where == "action":
        monkeypatch.setattr(module, "rewrite_data_files", replace(real, plan=plan))
    else:
        monkeypatch.setattr(upkeep, "examine_history", examine)
    with connect(lake) as con:
        done = con.maintain(["ns.small", "ns.upserts_v2"])
    assert [each.status for each in done.tables] == ["failed", "done"]
    assert done.tables[0].note


def test_a_table_that_is_dropped_meanwhile_is_gone(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(table: TableReport, number: int, count: int) -> None:
        if table.table == "ns.small":
            with connect(lake) as other:
                other.execute("DROP TABLE ns.upserts_v2 PURGE")

    with connect(lake) as con:
        done = con.maintain(tell=drop)
        assert statuses(done)["ns.upserts_v2"] == "gone"
        named = con.maintain(["ns.upserts_v2", "ns.fine"])
    assert statuses(named) == {"ns.upserts_v2": "failed", "ns.fine": "nothing"}


def test_what_may_not_write_is_refused_at_once(lake: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    with icesql.connect(warehouse=str(lake), read_only=True) as con:
        with pytest.raises(AccessDeniedError, match="only reads"):
            con.maintain(history=history)
        with pytest.raises(AccessDeniedError, match="only reads"):
            con.execute("CALL system.maintain('ns.small')")
        assert con.maintain(dry_run=True).exit_code in (0, 1)
        assert con.execute("EXPLAIN CALL system.maintain('ns.small')").fetchall()
    assert not history.exists()
    with connect(lake) as con:
        con.execute("BEGIN")
        with pytest.raises(UnsupportedSqlError):
            con.maintain()
        con.execute("ROLLBACK")
        with pytest.raises(ProgrammingError, match="budget"):
            con.maintain(budget="soon")


def test_windows_are_kept(one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    policy = tmp_path / "p.toml"
    policy.write_text('windows = ["Mon 22:00-06:00"]\n')
    moment = datetime(2026, 1, 5, 21, 59, tzinfo=UTC)  # a Monday
    monkeypatch.setattr(upkeep, "_now", lambda: moment)
    assert one.maintain("ns.t", policy=policy).tables[0].status == "skipped"
    moment = datetime(2026, 1, 6, 5, 59, tzinfo=UTC)
    assert one.maintain("ns.t", policy=policy).tables[0].status == "done"


def test_a_history_of_long_ago_leaves_no_table_out(one: Any, tmp_path: Path) -> None:
    history = tmp_path / "h"
    one.maintain("ns.t", history=history)
    text = history.read_text()
    assert text.count("\n") == 3
    first, *rest = (json.loads(each) for each in text.splitlines())
    history.write_text(json.dumps(first) + "\n" + json.dumps(rest[0]) + "\n")
    assert one.maintain("ns.t", history=history).earlier == ("ns.t",)
    old = first | {"begun": "2020-01-01T00:00:00+00:00"}
    history.write_text(json.dumps(old) + "\n" + json.dumps(rest[0]) + "\n")
    assert one.maintain("ns.t", history=history).earlier == ()
    assert runs._time("nonsense") is None


def test_a_table_that_takes_too_long_stops_no_other(lake: Path) -> None:
    with connect(lake) as con:
        con.execute("SET query_timeout = 0.0001")
        done = con.maintain(["ns.small", "ns.fine"])
        assert statuses(done) == {"ns.small": "failed", "ns.fine": "failed"}
        assert "time limit" in done.tables[0].note
    with connect(lake) as con:
        assert con.maintain("ns.small").exit_code == 0


def test_a_cancelled_run_ends(lake: Path) -> None:
    with connect(lake) as con, pytest.raises(QueryCancelledError):
        con.maintain(tell=lambda table, number, count: con.cancel())
