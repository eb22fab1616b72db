"""Advice is checked by following it: the statement brings the number that was promised."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.cli import main
from icesql.commit.create import create_table, stage_table
from icesql.commit.rows import commit_append
from icesql.context import QueryContext
from icesql.health import examinations
from icesql.health import live_files as live_files_module
from icesql.health.examinations import share_read
from icesql.health.finding import Diagnosis, Finding, call, set_properties
from icesql.health.live_files import live_files
from icesql.health.policy import ACTIONS
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from tests.commit.tables import fake
from tests.health.lake import many_deletes, upserts
from tests.health.stage import Doctored
from tests.scenes import Scene, read_scenes, scenes

NEAR = 0.1
# Without statistics a table is well.
TOLD = {*ACTIONS} - {"statistics", "partition_statistics"}


@pytest.fixture
def sick(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "w").mkdir()
    with icesql.connect(warehouse=str(tmp_path / "w"), read_only=False) as connection:
        connection.execute("CREATE SCHEMA ns")
        yield connection


class Patient(Doctored):
    """The table ns.t, and the finding that was looked for last."""

    def insert(self, times: str, rows: str) -> None:
        """Commits of these rows, in which ``$i`` is the number of the commit."""
        for number in range(int(times)):
            self.con.execute(f"INSERT INTO ns.t SELECT {rows.replace('$i', str(number))}")

    def finds(self, now: str, name: str) -> None:
        """The first finding of a name, and its number now; ``-`` is any."""
        self.found = [each for each in self.findings() if each.name == name]
        assert self.found, name
        assert now == "-" or self.found[0].now == float(now)

    def above(self, number: str) -> None:
        assert (self.found[0].now or 0) > float(number)

    def report(self, text: str) -> None:
        """What is part of the doctor's text."""
        assert text in str(self.con.doctor("ns.t"))

    def doctor(self, table: str) -> None:
        self.con.doctor(table)

    def follow_all(self) -> None:
        """The advice of each finding; as many files go as the gain says."""
        diagnosis, before = self.con.doctor("ns.t"), self.number("SELECT count(*) FROM ns.t.files")
        for each in diagnosis.findings:
            self.sql(each.statement)
        gone = before - self.number("SELECT count(*) FROM ns.t.files")
        assert gone == diagnosis.gain.files

    def number(self, text: str) -> int:
        self.sql(text)
        return int(self.answer[0][0])

    def near(self, text: str) -> None:
        """A query gives about the number that was promised."""
        self._is_promised(self.number(text))

    def reads_share(self, column: str) -> None:
        """The share of the files that a value of a column is in is the promised one."""
        files = live_files(self.con.catalog.load(("ns", "t")), [column], QueryContext())
        self._is_promised(share_read(files, column))

    def spread(self, files: str) -> None:
        """The manifests that hold the files of a partition are as many as promised."""
        found = live_files(self.con.catalog.load(("ns", "t")), [], QueryContext())
        self._is_promised(sum(found.spread) / int(files))

    def _is_promised(self, value: float | None) -> None:
        now, after = self.found[0].now, self.found[0].after
        assert value is not None
        assert now is not None
        assert after is not None
        assert abs(value - after) <= NEAR * max(now, 1e-9)

    def leave(self, name: str, age: str) -> None:
        """A file beside the data files that no snapshot names, old or young."""
        (data,) = {each.parent for each in Path(self.con.catalog.folder).rglob("*.parquet")}
        (data / name).write_bytes(b"x" * 1000)
        if age == "old":
            os.utime(data / name, (0, 0))

    def upserts(self, commits: str) -> None:
        upserts(Path(self.con.catalog.folder, "ns", "t"), 3, int(commits))

    def many_deletes(self) -> None:
        many_deletes(Path(self.con.catalog.folder, "ns", "t"))

    def maintained_by(self, action: str) -> None:
        """Maintenance has the statement of the finding for an action."""
        (table,) = self.con.maintain("ns.t", actions=[*TOLD], dry_run=True).tables
        planned = {each.action: each.statement for each in table.actions}
        assert planned[action] == self.found[0].statement

    def files(self, count: str, pattern: str) -> None:
        assert len(list(Path(self.con.catalog.folder).rglob(pattern))) == int(count)


@scenes(__file__, "advice.scenes")
def test_advice_brings_what_it_promises(
    scene: Scene, sick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "large metadata" in scene.name:
        monkeypatch.setattr(examinations, "_LARGE_METADATA", 1000)
    Patient(sick).play(scene)


def test_each_need_is_advised_as_maintenance_does_it() -> None:
    steps = [step for each in read_scenes(__file__, "advice.scenes") for _, step in each.steps]
    words = {step.split()[1] for step in steps if step.startswith("maintained_by ")}
    assert words == TOLD


def test_young_snapshots_are_expired_by_a_constant_time(
    sick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.health.facts import Performed, facts_of
    from icesql.health.policy import TablePolicy

    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    Patient(sick).insert(3, "$i")
    table = sick.catalog.load(("ns", "t"))
    facts = facts_of(
        ("ns", "t"), table, QueryContext(), lambda statement, keys: Performed(), TablePolicy(), 0
    )
    monkeypatch.setattr(examinations, "_MANY_SNAPSHOTS", 3)
    (finding,) = examinations.snapshots(facts)
    assert "older_than => TIMESTAMP '" in finding.statement  # Spark refuses now() - INTERVAL 1 DAY
    assert "+00:00', retain_last => 10)" in finding.statement
    sick.execute(f"EXPLAIN {finding.statement}")


def test_spark_has_a_spelling_of_its_own() -> None:
    table = ("ns", "it's a \"t`\\")
    both = set_properties(table, {"a'b": "\\"}).then(call("rewrite_data_files", table, n=1))
    finding = Finding("small files", "low", "told", "cost", both)
    assert finding.statement == (
        "ALTER TABLE ns.\"it's a \"\"t`\\\" SET TBLPROPERTIES ('a''b' = '\\'); "
        "CALL system.rewrite_data_files(table => 'ns.\"it''s a \"\"t`\\\"', n => 1)"
    )
    assert finding.spark_statement == (
        "ALTER TABLE catalog.ns.`it's a \"t``\\` SET TBLPROPERTIES ('a\\'b' = '\\\\'); "
        "CALL catalog.system.rewrite_data_files(table => 'ns.`it\\'s a \"t``\\\\`', n => 1)"
    )
    assert finding.to_dict()["spark_statement"] == finding.spark_statement
    assert f"in Spark: {finding.spark_statement};" in str(Diagnosis("t", None, (finding,)))


@pytest.mark.parametrize("name", ["it's \"a` b.c", "new\nline\x1b[31m\u202e", "SELECT"])
def test_every_name_is_quoted_where_it_needs_it(sick: Any, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    sick.execute(f"CREATE TABLE ns.{quoted} ({quoted} BIGINT, v VARCHAR) TBLPROPERTIES ("
                 "'write.target-file-size-bytes' = '1500', 'write.metadata.metrics.column.v' = 'none',"
                 " 'write.delete.mode' = 'merge-on-read', 'history.expire.max-snapshot-age-ms' = '1',"
                 " 'write.parquet.row-group-size-bytes' = '500')")  # fmt: skip
    for start in range(6):
        sick.execute(f"INSERT INTO ns.{quoted} SELECT hash(range + {start}) % 9999, 'x' "
                     "FROM range(99)")  # fmt: skip
    sick.execute(f"DELETE FROM ns.{quoted} WHERE {quoted} % 20 = 3")
    diagnosis = sick.doctor(f"ns.{quoted}")
    assert {"overlap", "deletes", "no bounds", "old snapshots"} <= {
        each.name for each in diagnosis.findings
    }
    for finding in diagnosis.findings:
        Patient(sick).sql(finding.statement)
    for line in f"{diagnosis}\n{diagnosis._repr_html_()}".splitlines():
        assert line.isprintable()


def test_a_sample_stands_for_very_many_files(sick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    Patient(sick).insert(8, "hash(range + $i) % 9999, range % 3 FROM range(99)")
    table = sick.catalog.load(("ns", "t"))
    whole = live_files(table, ["id"], QueryContext())
    monkeypatch.setattr(live_files_module, "_MOST_SAMPLED", 8)
    part = live_files(table, ["id"], QueryContext())
    assert (whole.count, len(whole.sampled)) == (24, 24)
    assert (part.count, len(part.sampled)) == (24, 8)
    chosen = [place % 3 == 0 for place in whole.partitions]
    assert [*part.bounds["id"].low] == [
        low for low, is_in in zip(whole.bounds["id"].low, chosen, strict=True) if is_in
    ]
    assert part.whole(8) == 24


def test_files_that_do_not_count_nan_are_told(sick: Any) -> None:
    schema = Schema((t.NestedField(1, "x", t.DOUBLE),))
    table = create_table(sick.catalog, stage_table(sick.catalog, ("ns", "t"), schema)).table
    bounds = {1: struct.pack("<d", 1.5)}
    files = [
        fake(f"f{i}", value_counts={1: 1}, lower_bounds=bounds, upper_bounds=bounds, size=9 << 30,
             nan_value_counts=None if i < 5 else {1: 0})
        for i in range(6)
    ]  # fmt: skip
    commit_append(sick.catalog, table, files)
    found = {each.name: (each.now, each.after) for each in sick.doctor("ns.t").findings}
    assert found["no NaN counts"] == (5, 0)


def test_the_command_tells_it_in_three_forms(
    sick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    Patient(sick).insert(6, "range FROM range(10)")
    words = ["doctor", "ns.t", "--warehouse", str(tmp_path / "w")]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "1. small files (high)" in told
    assert "   CALL system.rewrite_data_files('ns.t');" in told
    assert "data files: 6 → 1" in told
    assert main([*words, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["findings"][0]["now"] == 6
    assert main([*words, "--format", "html"]) == 0
    assert "<table>" in capsys.readouterr().out


def test_the_command_looks_the_installation_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--no-ping", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,value,advice"
    assert any(line.startswith("extra spark,") for line in lines)
    assert any(line.startswith("java,") for line in lines)


def test_the_exit_code_tells_of_findings_of_a_weight(
    sick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    words = ["doctor", "ns.t", "--warehouse", str(tmp_path / "w"), "--fail-on"]
    assert main([*words, "low"]) == 0, "there is none at all"
    Patient(sick).insert(6, "range FROM range(10)")
    assert {each.weight for each in sick.doctor("ns.t").findings} == {"high"}
    for weight in ("high", "medium", "low"):
        assert main([*words, weight]) == 1
    assert "small files (high)" in capsys.readouterr().out
    sick.execute("DROP TABLE ns.t PURGE")
    sick.execute("CREATE TABLE ns.t (id BIGINT, x DOUBLE)")
    sick.execute("INSERT INTO ns.t VALUES (1, 1)")
    sick.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('write.metadata.metrics.column.x' = 'none')")
    sick.execute("INSERT OVERWRITE ns.t VALUES (1, 1)")
    assert {each.weight for each in sick.doctor("ns.t").findings} == {"low"}
    assert [main([*words, weight]) for weight in ("high", "medium", "low")] == [0, 0, 1]
    for wrong in (["doctor", "--fail-on", "high"], ["doctor", "ns.t", "--fail-on", "all"]):
        assert main(wrong) == 2
