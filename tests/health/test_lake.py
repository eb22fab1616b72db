"""A lake is kept healthy: rows stay, promises hold, and a second run finds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from icesql.health import lake as lake_module
from icesql.health import of_table as of_table_module
from icesql.health import run_history as history_module
from icesql.health.run_report import MaintenanceReport, TableReport
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


def test_snapshots_say_which_run_made_them(one: Any) -> None:
    done = one.maintain("ns.t")
    summary = dict(
        one.execute(
            "SELECT summary FROM ns.t.snapshots ORDER BY committed_at DESC LIMIT 1"
        ).fetchone()[0]
    )
    assert summary["icesql.maintain.run"] == done.run
    assert summary["icesql.maintain.action"] == "compact"
    one.execute("CALL system.rewrite_manifests('ns.t')")
    latest = one.execute("SELECT summary FROM ns.t.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert "icesql.maintain.run" not in dict(latest.fetchone()[0])


def test_orphans_go_only_if_asked_for_and_never_young_ones(lake: Path) -> None:
    old, young = leave_orphan(lake, "fine", 4), leave_orphan(lake, "fine", 2.9)
    with connect(lake) as con:
        assert con.maintain("ns.fine").tables[0].status == "nothing"
        assert old.exists()
        done = con.maintain("ns.fine", actions=["orphans"]).tables[0]
        assert (done.status, old.exists(), young.exists()) == ("done", False, True)
        (action,) = done.actions
        assert (action.predicted, action.reached) == ({"removed_orphans": 1},) * 2
        assert con.maintain("ns.fine", actions=["orphans"]).tables[0].status == "nothing"
        refused = con.maintain("ns.kept", actions=["orphans", "expire"])
    assert [each.status for each in refused.tables[0].actions] == ["refused", "refused"]
    assert refused.exit_code == 0


def test_a_past_that_nobody_gave_up_stays(one: Any) -> None:
    one.execute("CALL system.rewrite_data_files('ns.t')")
    count = "SELECT count(*) FROM ns.t.snapshots"
    kept = one.execute(count).fetchone()
    assert one.maintain("ns.t").tables[0].status == "nothing"
    assert one.execute(count).fetchone() == kept == (7,)
    assert one.maintain("ns.t", actions=["expire"]).tables[0].status == "nothing"  # 5 days


def test_of_policy_and_table_the_longer_time_counts(one: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('retention = "0s"\nshort_retention = true\nmin_snapshots = 2\n')
    one.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('history.expire.min-snapshots-to-keep' = '4')")
    done = one.maintain("ns.t", policy=policy, actions=["expire"]).tables[0]
    assert done.reached["snapshots"] == 4
    one.execute(
        "ALTER TABLE ns.t SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '86400000', "
        "'history.expire.min-snapshots-to-keep' = '1')"
    )
    assert one.maintain("ns.t", policy=policy, actions=["expire"]).tables[0].status == "nothing"


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
    real = of_table_module.examine_history

    def late(parts: Any, table: Any, query: Any) -> Any:
        monkeypatch.undo()
        with connect(tmp_path / "wh") as other:
            other.maintain("ns.t", actions=["compact", "expire"])
            other.execute("CALL system.expire_snapshots('ns.t', older_than => now())")
        assert real(parts, table, query).findings
        return real(parts, table, query)

    monkeypatch.setattr(of_table_module, "examine_history", late)
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
    real, look = module.rewrite_data_files, of_table_module.examine_history

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
        monkeypatch.setattr(of_table_module, "examine_history", examine)
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


def test_a_view_is_no_table_and_is_passed_over(tmp_path: Path) -> None:
    place = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}
    with icesql.connect(**place, properties={"init_catalog_tables": "true"}) as con:
        con.execute("CREATE SCHEMA ns")
        con.execute("CREATE TABLE ns.t AS SELECT 1 AS a")
        con.execute("CREATE VIEW ns.v AS SELECT * FROM ns.t")
        assert statuses(con.maintain()) == {"ns.t": "nothing"}
        assert statuses(con.maintain("ns.v")) == {"ns.v": "failed"}


def test_tables_are_listed_by_pattern_and_a_rule_of_none_is_told(
    lake: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "lake.toml"
    policy.write_text(
        'actions = ["compact"]\n'
        '[[tables]]\nmatch = "ns.*"\nskip = true\n'
        '[[tables]]\nmatch = ["ns.odd [1]", "ns.none*"]\nskip = false\n'
        '[[tables]]\nmatch = "nowhere.*"\nretention = "3 days"\n'
    )
    with connect(lake) as con:
        done = con.maintain(policy=policy)
        one = con.maintain("ns.small", policy=policy)
    assert {name for name, each in statuses(done).items() if each != "skipped"} == {'ns."odd [1]"'}
    assert done.warnings == (f"{policy}: [[tables]] 3: no table is like 'nowhere.*'",)
    assert one.warnings == ()


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


def test_partition_of_several_specs_converges(one: Any) -> None:
    one.execute("ALTER TABLE ns.t ADD PARTITION FIELD bucket(2, id)")
    for n in range(6):
        one.execute(f"INSERT INTO ns.t VALUES ({n})")
    before = sorted(one.execute("SELECT * FROM ns.t").fetchall())
    assert one.maintain("ns.t").tables[0].status == "done"
    assert one.maintain("ns.t").tables[0].status == "nothing"
    assert sorted(one.execute("SELECT * FROM ns.t").fetchall()) == before


@pytest.mark.parametrize("version", [2, 3])
def test_a_stream_without_small_files_is_converted(tmp_path: Path, version: int) -> None:
    (tmp_path / "wh").mkdir()
    upserts(tmp_path / "wh" / "ns" / "t", version, commits=3)
    before = contents(tmp_path / "wh")
    with connect(tmp_path / "wh") as con:
        done = con.maintain("ns.t").tables[0]
        assert [each.action for each in done.actions][:1] == ["convert"]
        assert done.reached["equality_delete_files"] == 0
        assert con.maintain("ns.t").tables[0].status == "nothing"
    assert contents(tmp_path / "wh") == before


def test_statistics_are_of_the_rows_of_now(one: Any) -> None:
    asked = ["compact", "statistics", "partition_statistics"]
    done = one.maintain("ns.t", actions=asked).tables[0]
    assert [each.action for each in done.actions] == ["compact", "statistics"]
    assert one.maintain("ns.t", actions=asked).tables[0].status == "nothing"
    one.execute("CALL system.rewrite_manifests('ns.t')")
    assert one.maintain("ns.t", actions=asked).tables[0].status == "nothing"
    one.execute("INSERT INTO ns.t VALUES (99)")
    assert one.maintain("ns.t", actions=asked).tables[0].status == "done"


def test_call_maintains_one_table(lake: Path) -> None:
    with connect(lake) as con:
        steps = con.execute("EXPLAIN CALL system.maintain('ns.upserts_v3')").fetchall()
        assert {each[0] for each in steps} == {"call"}
        dry = con.execute("CALL system.maintain(table => 'ns.small', dry_run => true)").fetchall()
        assert [each[:3] for each in dry] == [("compact", "planned", "data files 7 → 1")]
        rows = con.execute("CALL system.maintain('ns.small')").fetchall()
        assert [each[:4] for each in rows] == [
            ("compact", "done", "data files 7 → 1", "data files 7 → 1")
        ]
        cursor = con.execute("CALL system.maintain('ns.small')")
        assert (cursor.fetchall(), list(cursor.notes)) == ([], ["nothing is to be done"])
        cursor = con.execute(f"CALL system.maintain('{DAMAGED}')")
        assert cursor.fetchall() == []
        assert "damaged" in cursor.notes[0]
        chosen = con.execute(
            "CALL system.maintain('ns.partitioned', actions => array('expire', 'compact'), "
            "policy => map('retention', '0s', 'short_retention', 'true', 'min_snapshots', '2'))"
        ).fetchall()
        assert [each[0] for each in chosen] == ["compact", "expire"]
        with pytest.raises(ProgrammingError, match="did you mean retention"):
            con.execute("CALL system.maintain('ns.small', policy => map('retension', '1 day'))")
        with pytest.raises(ProgrammingError, match="3 days"):
            con.execute("CALL system.maintain('ns.small', policy => map('orphan_age', '1h'))")


@pytest.mark.parametrize(
    ("actions", "planned", "said"),
    [
        (["compact", "expire"], "snapshots 6 → those made now", "snapshots 6 → 1 (1 made now)"),
        (["expire"], "snapshots 6 → 1", "snapshots 6 → 1"),
        (["compact"], "", "snapshots 6 → 7 (1 made now)"),
    ],
)
def test_the_report_counts_the_snapshots_that_are_left(
    one: Any, tmp_path: Path, actions: list[str], planned: str, said: str
) -> None:
    one.execute(
        "ALTER TABLE ns.t SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '0', "
        "'history.expire.min-snapshots-to-keep' = '1')"
    )
    dry = str(one.maintain(["ns.t"], actions=actions, dry_run=True))
    assert planned in dry
    text = str(one.maintain(["ns.t"], actions=actions))
    assert f"{said}\n" in text
    assert "made snapshots" not in text
    count = one.execute("SELECT count(*) FROM ns.t.snapshots").fetchone()[0]
    assert said.partition("→ ")[2].startswith(str(count))


def test_windows_are_kept(one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    policy = tmp_path / "p.toml"
    policy.write_text('windows = ["Mon 22:00-06:00"]\n')
    moment = datetime(2026, 1, 5, 21, 59, tzinfo=UTC)  # a Monday
    monkeypatch.setattr(lake_module, "_now", lambda: moment)
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
    assert history_module._time("nonsense") is None


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


@pytest.mark.parametrize("version", [2, 3])
def test_a_conversion_is_no_damage_to_the_doctor(tmp_path: Path, version: int) -> None:
    (tmp_path / "wh").mkdir()
    upserts(tmp_path / "wh" / "ns" / "t", version, commits=3)
    with connect(tmp_path / "wh") as con:
        con.execute("CALL system.convert_equality_deletes('ns.t')")
        assert "deletes dropped" not in {each.name for each in con.doctor("ns.t").findings}


def test_what_an_action_refuses_stops_no_other(tmp_path: Path) -> None:
    """Two names of one table: no expiry, and the rest is done."""
    place = str(tmp_path)
    with icesql.connect(
        uri=f"sqlite:///{place}/c.db", warehouse=place, properties={"init_catalog_tables": "true"}
    ) as con:
        con.execute("CREATE SCHEMA ns")
        con.execute(
            "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')"
        )
        for n in range(6):
            con.execute(f"INSERT INTO ns.t VALUES ({n})")
        (metadata,) = con.execute(
            "SELECT file FROM ns.t.metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1"
        ).fetchone()
        con.execute(f"CALL system.register_table('ns.u', '{metadata}')")
        (found,) = con.maintain(["ns.t"], actions=["expire", "compact"]).tables
    assert found.status == "done"
    assert {each.action: each.status for each in found.actions} == {
        "compact": "done", "expire": "refused",
    }  # fmt: skip
