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
from icesql.commit.append import commit_append
from icesql.commit.create import create_table, stage_table
from icesql.context import QueryContext
from icesql.health import live_files as live_files_module
from icesql.health import metadata as metadata_module
from icesql.health.finding import Diagnosis, Finding
from icesql.health.live_files import live_files
from icesql.health.statement import call, set_properties
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from tests.commit.tables import fake

NEAR = 0.1


@pytest.fixture
def sick(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "w").mkdir()
    with icesql.connect(warehouse=str(tmp_path / "w"), read_only=False) as connection:
        connection.execute("CREATE SCHEMA ns")
        yield connection


def insert(connection: Any, times: int, rows: str, start: int = 0) -> None:
    for i in range(start, start + times):
        connection.execute(f"INSERT INTO ns.t SELECT {rows.replace('$i', str(i))}")


def found(connection: Any, name: str) -> Finding:
    findings = connection.doctor("ns.t").findings
    by_name = {each.name: each for each in reversed(findings)}  # the first of a name
    assert name in by_name, by_name.keys()
    return by_name[name]


def follow(connection: Any, finding: Finding) -> None:
    for cursor in connection.execute_script(finding.statement):
        cursor.fetchall() if cursor.description else None


def number(connection: Any, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


def near(value: float, finding: Finding) -> bool:
    assert finding.now is not None
    assert finding.after is not None
    return abs(value - finding.after) <= NEAR * max(finding.now, 1e-9)


def test_small_files_become_as_few_as_promised(sick: Any) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT, v VARCHAR)")
    insert(sick, 12, "range, 'x' || range FROM range(100)")
    finding = found(sick, "small files")
    assert finding.now == 12
    follow(sick, finding)
    assert near(number(sick, "SELECT count(*) FROM ns.t.data_files"), finding)
    assert "small files" not in [each.name for each in sick.doctor("ns.t").findings]


def test_files_whose_rows_are_all_deleted_become_none(sick: Any) -> None:
    sick.execute(
        "CREATE TABLE ns.t (id BIGINT, p INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'format-version' = '2')"
    )
    for p in (0, 1):
        insert(sick, 5, f"range, {p} FROM range(2)")
    for deleted in (0, 1):
        sick.execute(f"DELETE FROM ns.t WHERE p = 0 AND id = {deleted}")
    gain = sick.doctor("ns.t").gain
    before = number_of_files(sick)
    for finding in sick.doctor("ns.t").findings:
        follow(sick, finding)
    assert before - number_of_files(sick) == gain.files
    assert number(sick, "SELECT count(*) FROM ns.t.data_files") == 1


def number_of_files(connection: Any) -> int:
    return number(connection, "SELECT count(*) FROM ns.t.files")


def test_deletes_go_as_promised(sick: Any) -> None:
    sick.execute(
        "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    insert(sick, 3, "range + 100 * $i FROM range(100)")
    sick.execute("DELETE FROM ns.t WHERE id % 10 = 3")
    finding = found(sick, "deletes")
    assert finding.now == 3
    follow(sick, finding)
    assert number(sick, "SELECT count(*) FROM ns.t.delete_files") == finding.after
    assert number(sick, "SELECT count(*) FROM ns.t") == 270


def test_sorting_prunes_as_much_as_promised(sick: Any) -> None:
    from icesql.health.bounds import share_read

    sick.execute(
        "CREATE TABLE ns.t (customer_id BIGINT, v VARCHAR) TBLPROPERTIES "
        "('write.target-file-size-bytes' = '40000', 'write.parquet.row-group-size-bytes' = '20000')"
    )
    insert(sick, 8, "hash(range * 31 + $i) % 1000000, md5(range::VARCHAR) FROM range(4000)")
    finding = found(sick, "overlap")
    assert finding.now is not None
    assert finding.now > 0.9
    follow(sick, finding)
    table = sick.catalog.load(("ns", "t"))
    share = share_read(live_files(table, ["customer_id"], QueryContext()), "customer_id")
    assert share is not None
    assert near(share, finding)


def test_manifests_become_as_few_as_promised(sick: Any) -> None:
    sick.execute(
        "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    insert(sick, 12, "range FROM range(3)")
    finding = found(sick, "manifests")
    assert finding.now == 12
    follow(sick, finding)
    assert near(number(sick, "SELECT count(*) FROM ns.t.manifests"), finding)


def test_old_snapshots_go_as_promised(sick: Any) -> None:
    sick.execute(
        "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')"
    )
    insert(sick, 8, "$i")
    finding = found(sick, "old snapshots")
    assert finding.now == 8
    follow(sick, finding)
    assert near(number(sick, "SELECT count(*) FROM ns.t.snapshots"), finding)
    assert number(sick, "SELECT count(*) FROM ns.t") == 8


def test_orphans_go_as_promised(sick: Any, tmp_path: Path) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    insert(sick, 2, "$i")
    assert "orphans" not in [each.name for each in sick.doctor("ns.t").findings]
    kept = next(tmp_path.rglob("*.parquet"))
    for number in range(4):
        left = kept.with_name(f"left-{number}.parquet")
        left.write_bytes(b"x" * 1000)
        if number:
            os.utime(left, (0, 0))
    finding = found(sick, "orphans")
    assert finding.now == 3
    assert "1 more are younger" in finding.told
    follow(sick, finding)
    assert len(list(tmp_path.rglob("left-*"))) == 1
    assert "orphans" not in [each.name for each in sick.doctor("ns.t").findings]


def test_bounds_are_there_afterwards(sick: Any) -> None:
    sick.execute(
        "CREATE TABLE ns.t (id BIGINT, v VARCHAR) "
        "TBLPROPERTIES ('write.metadata.metrics.column.v' = 'none')"
    )
    insert(sick, 2, "range, 'x' || range FROM range(10)")
    finding = found(sick, "no bounds")
    assert finding.now == 2
    follow(sick, finding)
    assert "no bounds" not in [each.name for each in sick.doctor("ns.t").findings]


def test_columns_of_nan_and_null_lack_no_bounds(sick: Any) -> None:
    sick.execute("CREATE TABLE ns.t (f DOUBLE, g DOUBLE, v VARCHAR)")
    insert(sick, 2, "'nan'::DOUBLE, if(range = 0, NULL, 'nan'::DOUBLE), NULL FROM range(3)")
    assert "no bounds" not in [each.name for each in sick.doctor("ns.t").findings]


def test_many_columns_without_bounds_are_one_finding(sick: Any) -> None:
    names = [f"c{i}" for i in range(9)]
    sick.execute(
        f"CREATE TABLE ns.t ({', '.join(f'{each} BIGINT' for each in names)}) "
        "TBLPROPERTIES ('write.metadata.metrics.default' = 'counts')"
    )
    insert(
        sick,
        1,
        ", ".join(f"range + {i} AS {each}" for i, each in enumerate(names)) + " FROM range(9)",
    )
    (finding,) = [each for each in sick.doctor("ns.t").findings if each.name == "no bounds"]
    assert "c0, c1, c2 and 6 more columns" in finding.told
    assert finding.weight == "low"
    follow(sick, finding)
    assert sick.doctor("ns.t").findings == ()


def test_a_partition_with_an_odd_value_is_no_obstacle(sick: Any) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT, s VARCHAR) PARTITIONED BY (s)")
    insert(sick, 1, "range, chr(range::INT) || '%00/\x1b' FROM range(3)")
    assert sick.doctor("ns.t").findings == ()


def test_young_snapshots_are_expired_by_a_constant_time(
    sick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.health import metadata
    from icesql.health.facts import Answer, facts_of

    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    insert(sick, 3, "$i")
    table = sick.catalog.load(("ns", "t"))
    facts = facts_of(("ns", "t"), table, QueryContext(), lambda need: Answer(()))
    monkeypatch.setattr(metadata, "_MANY_SNAPSHOTS", 3)
    (finding,) = metadata.snapshots(facts)
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
        follow(sick, finding)
    for line in f"{diagnosis}\n{diagnosis._repr_html_()}".splitlines():
        assert line.isprintable()


def test_a_table_that_icesql_does_not_write_is_left_to_spark(sick: Any) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    insert(sick, 6, "$i")
    sick.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('write.format.default' = 'orc')")
    finding = found(sick, "small files")
    assert finding.statement == ""
    assert finding.spark_statement == "CALL catalog.system.rewrite_data_files('ns.t')"
    told = str(sick.doctor("ns.t"))
    assert "icesql cannot mend it: not supported: writing orc files" in told
    assert "   in Spark: CALL catalog.system.rewrite_data_files('ns.t');" in told


def test_partitions_are_brought_together_as_promised(sick: Any) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT, p BIGINT) PARTITIONED BY (p) TBLPROPERTIES "
                 "('commit.manifest.target-size-bytes' = '5000', 'commit.manifest-merge.enabled' = 'false')")  # fmt: skip
    insert(sick, 12, "range, range FROM range(20)")
    finding = found(sick, "manifest clustering")
    assert finding.now == 12
    follow(sick, finding)
    table = sick.catalog.load(("ns", "t"))
    files = live_files(table, [], QueryContext())
    assert near(sum(files.spread) / 20, finding)
    assert "manifest clustering" not in [each.name for each in sick.doctor("ns.t").findings]


def test_a_sample_stands_for_very_many_files(sick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    insert(sick, 8, "hash(range + $i) % 9999, range % 3 FROM range(99)")
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


def test_a_large_metadata_file_is_told(sick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    insert(sick, 2, "$i")
    monkeypatch.setattr(metadata_module, "_LARGE_METADATA", 1000)
    finding = found(sick, "metadata size")
    assert "with 2 snapshots and 1 schema" in finding.told
    follow(sick, finding)


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
    finding = found(sick, "no NaN counts")
    assert (finding.now, finding.after) == (5, 0)


def test_a_healthy_table_has_no_findings(sick: Any) -> None:
    sick.execute('CREATE TABLE ns.t (id BIGINT, "Odd name" VARCHAR)')
    assert sick.doctor("ns.t").findings == ()
    insert(sick, 1, "range, 'x' FROM range(10)")
    assert str(sick.doctor("ns.t")) == "ns.t: nothing found"
    with pytest.raises(icesql.TableNotFoundError):
        sick.doctor("ns.nothing")


def test_the_command_tells_it_in_three_forms(
    sick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sick.execute("CREATE TABLE ns.t (id BIGINT)")
    insert(sick, 6, "range FROM range(10)")
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
    insert(sick, 6, "range FROM range(10)")
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
